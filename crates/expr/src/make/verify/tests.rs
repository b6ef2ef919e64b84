//! Tests that `verify` finds a violation of each invariant.

use nxla_tensor::DType;

use super::{Invariant, Violations, verify, verify_program};
use crate::graph::{BinaryOp, ExprId, Graph, Op, Parameter, Program, TensorType, Type, UnaryOp};

/// Returns the graph of `exp x`, `sin (exp x)` and `exp x + y`.
fn graph() -> (Graph, Vec<ExprId>) {
    let mut graph = Graph::new();
    let x = graph.parameter(0, ty());
    let y = graph.parameter(1, ty());
    let exp = graph.exp(x).unwrap();
    let sin = graph.sin(exp).unwrap();
    let sum = graph.add(exp, y).unwrap();
    let ids = vec![x, y, exp, sin, sum];
    (graph, ids)
}

fn ty() -> TensorType {
    TensorType::new(DType::F32, [2])
}

fn tensor() -> Type {
    Type::Tensor(ty())
}

fn violations(result: Result<(), Violations>) -> Vec<(Option<ExprId>, Invariant)> {
    let violations = result.expect_err("the graph was corrupted");
    violations.into_iter().map(|violation| (violation.node, violation.invariant)).collect()
}

#[test]
fn valid_graphs_pass() {
    let (graph, ids) = graph();
    assert_eq!(verify(&graph), Ok(()));
    let program = Program::new(&graph, vec![ty(), ty()], &[ids[3], ids[4]]).unwrap();
    assert_eq!(verify_program(&program), Ok(()));
}

#[test]
fn violations_are_one_error() {
    let (mut graph, ids) = graph();
    graph.push_twin(ids[3]);
    graph.push_twin(ids[2]);
    let error: Box<dyn std::error::Error + Send + Sync> = verify(&graph).unwrap_err().into();
    assert_eq!(error.to_string().split("; ").count(), 2, "{error}");
}

#[test]
fn duplicate_nodes_are_found() {
    let (mut graph, ids) = graph();
    let twin = graph.push_twin(ids[3]);
    assert_eq!(violations(verify(&graph)), [(Some(twin), Invariant::Unique)]);
}

#[test]
fn later_operands_are_found() {
    let (mut graph, ids) = graph();
    for later in [ids[2], ids[4], ExprId::from_index(77)] {
        graph.overwrite(ids[2], Op::Unary(UnaryOp::Exp), &[later], tensor());
        assert_eq!(violations(verify(&graph)), [(Some(ids[2]), Invariant::Order)]);
    }
}

#[test]
fn wrong_types_are_found() {
    let (mut graph, ids) = graph();
    let wrong = Type::Tensor(TensorType::new(DType::F64, [2]));
    graph.overwrite(ids[4], Op::Binary(BinaryOp::Add), &[ids[2], ids[1]], wrong);
    let violations = verify(&graph).unwrap_err();
    let expected =
        "%4: add is stored as f64[2], inference says f32[2] (stored types equal inferred types)";
    assert_eq!(violations[0].to_string(), expected);
    assert_eq!(violations.len(), 1);
}

#[test]
fn changed_nodes_are_found() {
    let (mut graph, ids) = graph();
    graph.overwrite(ids[3], Op::Unary(UnaryOp::Cos), &[ids[2]], tensor());
    assert_eq!(violations(verify(&graph)), [(Some(ids[3]), Invariant::Unchanged)]);
}

#[test]
fn unsimplified_nodes_are_found() {
    let (mut graph, ids) = graph();
    let ty = graph.type_id(ids[0]);
    let no_op = graph.intern(Op::AsType(DType::F32), &[ids[0]], ty);
    let violations = verify(&graph).unwrap_err();
    assert_eq!(violations.len(), 1);
    assert_eq!((violations[0].node, violations[0].invariant), (Some(no_op), Invariant::Simplified));
    assert_eq!(violations[0].facts, "as_type becomes parameter []");
}

#[test]
fn foreign_parameters_are_found() {
    let (mut graph, ids) = graph();
    let scope = graph.open_scope("while", &[ty()]);
    let foreign = scope.parameters[0];
    let beyond = graph.parameter(7, ty());
    let (inputs, parameters) = (vec![ty(), ty()], ids[..2].to_vec());
    let program = Program::from_parts(graph, inputs, parameters, vec![ids[4]], vec![]);
    let expected = [(Some(foreign), Invariant::Closed), (Some(beyond), Invariant::Closed)];
    assert_eq!(violations(verify_program(&program)), expected);
}

#[test]
fn inputs_without_parameters_are_found() {
    let (graph, ids) = graph();
    let other = TensorType::scalar(DType::F32);
    let program =
        Program::from_parts(graph.clone(), vec![ty(), other], ids[..2].to_vec(), vec![], vec![]);
    assert_eq!(violations(verify_program(&program)), [(Some(ids[1]), Invariant::Closed)]);
    let missing = ExprId::from_index(99);
    let program =
        Program::from_parts(graph, vec![ty(), ty()], ids[..1].to_vec(), vec![missing], vec![]);
    let expected =
        [(None, Invariant::Closed), (Some(ids[1]), Invariant::Closed), (None, Invariant::Closed)];
    assert_eq!(violations(verify_program(&program)), expected);
}

#[test]
fn unordered_and_unlisted_hooks_are_found() {
    let mut graph = Graph::new();
    let x = graph.parameter(0, ty());
    let first = graph.hook(&[x], Some("first"), None).unwrap()[0];
    let second = graph.hook(&[x], Some("second"), None).unwrap()[0];
    let program = |effects: &[ExprId]| {
        let graph = graph.clone();
        Program::from_parts(graph, vec![ty()], vec![x], vec![x], effects.to_vec())
    };
    assert_eq!(verify_program(&program(&[first, second])), Ok(()));
    let swapped = violations(verify_program(&program(&[second, first])));
    assert_eq!(swapped, [(Some(first), Invariant::Hooks)]);
    assert_eq!(violations(verify_program(&program(&[second]))), [(Some(first), Invariant::Hooks)]);
    let no_hook = violations(verify_program(&program(&[x, first, second])));
    assert_eq!(no_hook, [(Some(x), Invariant::Hooks)]);
}

#[test]
fn violations_in_regions_name_their_path() {
    let mut graph = Graph::new();
    let x = graph.parameter(0, ty());
    let block = |graph: &mut Graph, x: &[ExprId]| -> crate::Result<Vec<ExprId>> {
        let inner =
            graph.block("inner", vec![], x, |graph, x| graph.exp(x[0]).map(|id| vec![id]))?;
        Ok(vec![graph.negate(inner[0])?])
    };
    let outer = graph.block("outer", vec![], &[x], block).unwrap()[0];
    assert_eq!(verify(&graph), Ok(()));

    // The program in the innermost region contains an undeclared parameter.
    let op = graph.op(outer).map_regions(|program| {
        let mut inner = program.graph().clone();
        let holder = inner.ids().find(|&id| !inner.op(id).regions().is_empty()).unwrap();
        let op = inner.op(holder).map_regions(|program| {
            let mut graph = program.graph().clone();
            let parameter = Parameter { scope: 3, index: 0, ty: ty() };
            graph.make(Op::Parameter(Box::new(parameter)), &[]).unwrap();
            let (inputs, parameters) = (program.inputs().to_vec(), program.parameters().to_vec());
            Program::from_parts(graph, inputs, parameters, program.outputs().to_vec(), vec![])
                .into()
        });
        let operands = inner.operands(holder).to_vec();
        let holder = inner.make(op, &operands).unwrap();
        let (inputs, parameters) = (program.inputs().to_vec(), program.parameters().to_vec());
        Program::from_parts(inner, inputs, parameters, vec![holder], vec![]).into()
    });
    let corrupt = graph.make(op, &[x]).unwrap();
    let violations = verify(&graph).unwrap_err();
    let texts: Vec<String> = violations.iter().map(ToString::to_string).collect();
    let expected = format!(
        "%2 in region 0 of %3 in region 0 of {corrupt}: a parameter of the open region 3 (a \
         program refers only to its own parameters)"
    );
    assert_eq!(texts, [expected]);
}
