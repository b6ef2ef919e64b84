//! Nodes with effects: hooks, and loops, branches and blocks that contain hooks. They are never
//! merged, dropped or reordered, and closing many loops takes linear time.

use std::sync::Arc;

use nxla_expr::rewrite::Substitution;
use nxla_expr::verify::{verify, verify_program};
use nxla_expr::{
    BinaryOp, ExprId, Graph, MAX_NESTING, Op, Program, Result, TensorType, UnaryOp, serialize,
};
use nxla_tensor::{DType, Scalar};

fn ty() -> TensorType {
    TensorType::scalar(DType::S32)
}

/// Builds a loop from `start` to ten with `body` applied to the counter.
fn count_to_ten(
    graph: &mut Graph,
    start: ExprId,
    body: impl FnOnce(&mut Graph, ExprId) -> Result<ExprId>,
) -> Result<ExprId> {
    let mark = graph.mark();
    let scope = graph.open_scope("while", &[ty()]);
    let counter = scope.parameters[0];
    let ten = graph.scalar_constant(Scalar::Int(10), DType::S32)?;
    let is_below = graph.less(counter, ten)?;
    let condition = graph.traced(mark, vec![is_below]);
    let inner = graph.mark();
    let result = body(graph, counter)?;
    let one = graph.scalar_constant(Scalar::Int(1), DType::S32)?;
    let next = graph.add(result, one)?;
    let body = graph.traced(inner, vec![next]);
    Ok(graph.while_loop(mark, &scope, &[start], condition, body)?[0])
}

fn with_hook(graph: &mut Graph, start: ExprId) -> Result<ExprId> {
    count_to_ten(graph, start, |graph, x| Ok(graph.hook(&[x], Some("trip"), None)?[0]))
}

fn loops(program: &Program) -> usize {
    let graph = program.graph();
    graph.ids().filter(|&id| matches!(graph.op(id), Op::While(_))).count()
}

#[test]
fn unused_loops_with_hooks_are_kept() -> Result<()> {
    let mut graph = Graph::new();
    let x = graph.parameter(0, ty());
    with_hook(&mut graph, x)?;
    count_to_ten(&mut graph, x, |_, x| Ok(x))?;
    let program = Program::new(&graph, vec![ty()], &[x])?;
    assert_eq!((loops(&program), program.effects().len()), (1, 1));
    verify(&graph).unwrap();
    verify_program(&program).unwrap();
    Ok(())
}

#[test]
fn equal_loops_with_hooks_are_not_merged() -> Result<()> {
    let mut graph = Graph::new();
    let x = graph.parameter(0, ty());
    let first = with_hook(&mut graph, x)?;
    let second = with_hook(&mut graph, x)?;
    assert_ne!(first, second);
    let without_hook = count_to_ten(&mut graph, x, |_, x| Ok(x))?;
    assert_eq!(without_hook, count_to_ten(&mut graph, x, |_, x| Ok(x))?);
    let program = Program::new(&graph, vec![ty()], &[first, without_hook])?;
    assert_eq!((loops(&program), program.effects().len()), (3, 2));
    let again = serialize::from_bytes(&serialize::to_bytes(&program)).unwrap();
    assert_eq!((again.digest(), again.effects()), (program.digest(), program.effects()));
    Ok(())
}

#[test]
fn nested_effects_keep_their_order() -> Result<()> {
    let mut graph = Graph::new();
    let x = graph.parameter(0, ty());
    graph.hook(&[x], Some("before"), None)?;
    count_to_ten(&mut graph, x, |graph, x| {
        // The results of the inner loop are unused too.
        with_hook(graph, x)?;
        Ok(x)
    })?;
    graph.hook(&[x], Some("after"), None)?;
    let program = Program::new(&graph, vec![ty()], &[x])?;
    let names: Vec<&str> =
        program.effects().iter().map(|&id| program.graph().op(id).name()).collect();
    assert_eq!(names, ["io_call", "while", "io_call"]);
    let Op::While(outer) = program.graph().op(program.effects()[1]) else { panic!("a loop") };
    assert_eq!(outer.body.effects().len(), 1);
    verify_program(&program).unwrap();

    // Nodes with effects remain effects in another graph.
    let mut other = Graph::new();
    let y = other.parameter(0, ty());
    other.hook(&[y], Some("first"), None)?;
    program.inline(&mut other, &[y])?;
    program.inline(&mut other, &[y])?;
    assert_eq!(other.effects().len(), 7);
    verify(&other).unwrap();
    Ok(())
}

#[test]
fn branches_with_hooks_are_kept() -> Result<()> {
    let mut graph = Graph::new();
    let x = graph.parameter(0, ty());
    for _ in 0..2 {
        let mark = graph.mark();
        graph.hook(&[x], Some("taken"), None)?;
        let taken = graph.traced(mark, vec![]);
        let predicate = graph.traced(graph.mark(), vec![x]);
        let other = graph.traced(graph.mark(), vec![]);
        graph.cond(mark, vec![(predicate, taken)], other)?;
    }
    let program = Program::new(&graph, vec![ty()], &[x])?;
    assert_eq!(program.effects().len(), 2);
    verify_program(&program).unwrap();
    Ok(())
}

#[test]
fn parameters_created_in_branches_are_captured() -> Result<()> {
    let mut graph = Graph::new();
    let x = graph.parameter(0, ty());
    let mark = graph.mark();
    let late = graph.parameter(1, ty());
    let sum = graph.add(x, late)?;
    let taken = graph.traced(mark, vec![sum]);
    let predicate = graph.traced(graph.mark(), vec![x]);
    let other = graph.traced(graph.mark(), vec![late]);
    let result = graph.cond(mark, vec![(predicate, taken)], other)?[0];
    let program = Program::new(&graph, vec![ty(), ty()], &[result])?;
    verify_program(&program).unwrap();
    assert_eq!(program.used_inputs(), [true, true]);
    Ok(())
}

#[test]
fn substitution_keeps_the_order_of_effects() -> Result<()> {
    let mut graph = Graph::new();
    let (x, y) = (graph.parameter(0, ty()), graph.parameter(1, ty()));
    graph.hook(&[x], Some("first"), None)?;
    let second = graph.hook(&[y], Some("second"), None)?[0];
    let negated = graph.negate(second)?;
    with_hook(&mut graph, x)?;
    let mut substitution = Substitution::new();
    let three = graph.scalar_constant(Scalar::Int(3), DType::S32)?;
    substitution.insert(x, three);
    let roots = graph.substitute(&[negated], &mut substitution)?;
    let names: Vec<String> = graph
        .effects()
        .iter()
        .map(|&id| match graph.op(id) {
            Op::Hook(hook) => hook.name.as_deref().unwrap_or_default().to_owned(),
            op => op.name().to_owned(),
        })
        .collect();
    assert_eq!(names, ["first", "second", "while"]);
    assert_ne!(roots, [negated]);
    verify(&graph).unwrap();
    Ok(())
}

/// Tables as long as the graph for each region would take minutes here.
#[cfg_attr(miri, ignore = "it takes too long")]
#[test]
fn many_loops_close_in_linear_time() -> Result<()> {
    let mut graph = Graph::new();
    let mut x = graph.parameter(0, ty());
    for _ in 0..10_000 {
        x = count_to_ten(&mut graph, x, |_, x| Ok(x))?;
    }
    let program = Program::new(&graph, vec![ty()], &[x])?;
    assert_eq!(loops(&program), 10_000);
    Ok(())
}

/// Builds nested loops.
fn nest(graph: &mut Graph, start: ExprId, depth: usize) -> Result<ExprId> {
    match depth {
        0 => Ok(graph.hook(&[start], Some("deep"), None)?[0]),
        _ => count_to_ten(graph, start, |graph, x| nest(graph, x, depth - 1)),
    }
}

#[cfg_attr(miri, ignore = "it takes too long")]
#[test]
fn nesting_limit_fits_a_small_stack() {
    let nesting_error = || {
        let mut graph = Graph::new();
        let x = graph.parameter(0, ty());
        nest(&mut graph, x, MAX_NESTING + 1).unwrap_err().to_string()
    };
    // Building needs more stack than walking, because nodes are hoisted while the inner loops
    // close.
    let large = std::thread::Builder::new().stack_size(64 << 20);
    let (program, error) = large
        .spawn(move || {
            let mut graph = Graph::new();
            let x = graph.parameter(0, ty());
            let result = nest(&mut graph, x, MAX_NESTING).unwrap();
            assert_eq!(graph.nesting_depth(), MAX_NESTING);
            (Program::new(&graph, vec![ty()], &[result]).unwrap(), nesting_error())
        })
        .unwrap()
        .join()
        .unwrap();
    assert!(error.contains("nested at most 64 deep"), "{error}");
    let walk = move || {
        assert!(verify_program(&program).is_ok());
        let bytes = serialize::to_bytes(&program);
        assert_eq!(serialize::from_bytes(&bytes).unwrap().digest(), program.digest());
        assert!(program.to_string().contains("while"));
        let detached = Arc::new(program).detach_hooks(&|_| true);
        assert_eq!(detached.functions.len(), 0);
    };
    std::thread::Builder::new().stack_size(1 << 20).spawn(walk).unwrap().join().unwrap();
}

/// Creates an op that contains a program, from a value and a function of the value in the program.
type Holder =
    fn(&mut Graph, ExprId, &mut dyn FnMut(&mut Graph, ExprId) -> Result<ExprId>) -> Result<ExprId>;

/// All ops whose regions run with the op.
const HOLDERS: [(&str, Holder); 3] = [
    ("while", |graph, x, inner| count_to_ten(graph, x, inner)),
    ("block", |graph, x, inner| {
        let results = graph.block("named", vec![], &[x], |graph, inputs| {
            Ok::<_, nxla_expr::Error>(vec![inner(graph, inputs[0])?])
        })?;
        Ok(results[0])
    }),
    ("cond", |graph, x, inner| {
        let mark = graph.mark();
        let negative = graph.negate(x)?;
        let taken = inner(graph, negative)?;
        let taken = graph.traced(mark, vec![taken]);
        let predicate = graph.traced(graph.mark(), vec![x]);
        let other = graph.traced(graph.mark(), vec![x]);
        Ok(graph.cond(mark, vec![(predicate, taken)], other)?[0])
    }),
];

/// Creates the same node again.
fn make_again(graph: &mut Graph, id: ExprId) -> Result<ExprId> {
    let node = graph.node(id);
    let (op, operands) = (node.op.clone(), node.operands.to_vec());
    graph.make(op, &operands)
}

#[test]
fn ops_with_hooks_are_neither_dropped_nor_merged() -> Result<()> {
    let mut show = |graph: &mut Graph, x| Ok(graph.hook(&[x], Some("inside"), None)?[0]);
    let mut plain = |graph: &mut Graph, x| graph.exp(x).and_then(|x| graph.as_type(x, DType::S32));
    for (name, holder) in HOLDERS {
        let mut graph = Graph::new();
        let x = graph.parameter(0, ty());
        let without_hook = holder(&mut graph, x, &mut plain)?;
        assert_eq!(without_hook, make_again(&mut graph, without_hook)?, "{name}");
        let first = holder(&mut graph, x, &mut show)?;
        let second = holder(&mut graph, x, &mut show)?;
        assert_ne!(first, second, "{name}");
        assert_eq!(graph.effects().len(), 2, "{name}");
        assert!(graph.op(first).has_effects() && graph.op(first).name() == name, "{name}");
        let third = make_again(&mut graph, first)?;
        assert_eq!(graph.effects(), [first, second, third], "{name}");
        verify(&graph).unwrap();
        let program = Program::new(&graph, vec![ty()], &[])?;
        verify_program(&program).unwrap();
        let names: Vec<&str> =
            program.effects().iter().map(|&id| program.graph().op(id).name()).collect();
        assert_eq!(names, [name; 3]);
        let again = serialize::from_bytes(&serialize::to_bytes(&program)).unwrap();
        assert_eq!((again.digest(), again.effects()), (program.digest(), program.effects()));
    }
    Ok(())
}

#[test]
fn fold_functions_reject_hooks() {
    let mut graph = Graph::new();
    let x = graph.parameter(0, TensorType::new(DType::S32, [3]));
    let zero = graph.scalar_constant(Scalar::Int(0), DType::S32).unwrap();
    let show = |graph: &mut Graph, x, y| {
        let sum = graph.add(x, y)?;
        Ok::<_, nxla_expr::Error>(graph.hook(&[sum], Some("inside"), None)?[0])
    };
    assert!(graph.reduce_fun(x, zero, None, false, show).is_err());
    let windows = nxla_expr::build::WindowOptions::default();
    assert!(graph.window_reduce(x, zero, &[2], &windows, show).is_err());
}

#[test]
fn hooks_in_derivative_rules_are_not_effects() -> Result<()> {
    let mut graph = Graph::new();
    let x = graph.parameter(0, TensorType::scalar(DType::F32));
    let with_rule = |graph: &mut Graph| {
        graph.custom_grad(&[x], &[x], |graph, cotangents| {
            graph.hook(&[cotangents[0]], Some("later"), None)
        })
    };
    let first = with_rule(&mut graph)?;
    assert_eq!(first, with_rule(&mut graph)?);
    assert_eq!(graph.effects(), []);
    Ok(())
}

#[test]
fn substitutions_that_replace_nodes_by_each_other_are_errors() -> Result<()> {
    let mut graph = Graph::new();
    let (x, y) = (graph.parameter(0, ty()), graph.parameter(1, ty()));
    let sum = graph.add(x, y)?;
    let mut identity = Substitution::from_iter([(sum, sum)]);
    assert_eq!(graph.substitute(&[sum], &mut identity)?, [sum]);
    let mut exchange = Substitution::from_iter([(x, y), (y, x)]);
    let error = graph.substitute(&[sum], &mut exchange).unwrap_err().to_string();
    assert!(error.starts_with("substitute: substitution: must not replace nodes by each other"));
    Ok(())
}

#[test]
fn ids_that_the_graph_does_not_have_are_errors() -> Result<()> {
    let mut graph = Graph::new();
    let x = graph.parameter(0, ty());
    let mut other = graph.clone();
    let y = other.sin(x)?;
    let calls = [(Op::Unary(UnaryOp::Sin), vec![y]), (Op::Binary(BinaryOp::Add), vec![x, y])];
    for (op, operands) in calls {
        let error = graph.make(op, &operands).unwrap_err().to_string();
        let expected = "operands: must be nodes of this graph, which has 1; got %1";
        assert!(error.ends_with(expected), "{error}");
    }
    Ok(())
}

#[test]
fn programs_need_an_input_for_each_parameter() {
    let mut graph = Graph::new();
    let x = graph.parameter(1, ty());
    let y = graph.negate(x).unwrap();
    let float = TensorType::scalar(DType::F32);
    for (inputs, found) in [(vec![ty()], "no input"), (vec![ty(), float], "f32")] {
        let error = Program::new(&graph, inputs, &[y]).unwrap_err().to_string();
        let expected =
            format!("program: inputs: must have the type s32 at position 1; got {found}");
        assert_eq!(error, expected);
    }
}
