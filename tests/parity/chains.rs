//! Chains of element-wise ops, which the evaluator computes as one step. Each op is exact or rounded
//! once, so results must be equal: a step with several ops must round, wrap and convert like separate
//! ops.

use nxla::graph::{BinaryOp, ExprId, Graph, Op, UnaryOp};
use nxla::{DType, HostTensor};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, TestRunner};

use crate::case::{Case, Other, differences};
use crate::setting;
use crate::tolerance::EXACT;
use crate::values::{Numbers, broadcastable, dtype_among, tensor};

/// Ops whose results are determined to the bit. Extrema are not: either of two zeros may come out.
fn ops() -> Vec<Op> {
    let unary = [
        UnaryOp::Negate,
        UnaryOp::Sign,
        UnaryOp::Abs,
        UnaryOp::Floor,
        UnaryOp::Ceil,
        UnaryOp::Round,
        UnaryOp::RoundEven,
        UnaryOp::Sqrt,
        UnaryOp::IsNan,
        UnaryOp::LogicalNot,
        UnaryOp::BitwiseNot,
        UnaryOp::PopulationCount,
        UnaryOp::CountLeadingZeros,
        UnaryOp::Real,
        UnaryOp::Imag,
    ];
    let binary = [
        BinaryOp::Add,
        BinaryOp::Subtract,
        BinaryOp::Multiply,
        BinaryOp::Divide,
        BinaryOp::Remainder,
        BinaryOp::Quotient,
        BinaryOp::BitwiseAnd,
        BinaryOp::BitwiseXor,
        BinaryOp::LeftShift,
        BinaryOp::RightShift,
        BinaryOp::Equal,
        BinaryOp::Greater,
        BinaryOp::LessEqual,
        BinaryOp::LogicalAnd,
        BinaryOp::LogicalXor,
    ];
    let conversions = DType::ALL.into_iter().filter(|dtype| !dtype.is_complex()).map(Op::AsType);
    let all = unary.into_iter().map(Op::Unary).chain(binary.into_iter().map(Op::Binary));
    all.chain(conversions).chain([Op::Select, Op::Select]).collect()
}

/// An op, and which of the values before it are its operands.
type Link = (Index, [Index; 3]);

/// Returns the values of a chain without the ops that do not fit.
fn chain(graph: &mut Graph, inputs: &[ExprId], links: &[Link]) -> Vec<ExprId> {
    let (ops, mut values) = (ops(), inputs.to_vec());
    for (op, operands) in links {
        let op = op.get(&ops);
        let count = match op {
            Op::Binary(_) => 2,
            Op::Select => 3,
            _ => 1,
        };
        // The newest value is an operand, so that chains are long.
        let mut selected: Vec<ExprId> =
            operands[..count].iter().map(|at| *at.get(&values)).collect();
        selected[operands[0].index(count)] = values[values.len() - 1];
        // The type rule rejects operands that do not fit.
        values.extend(graph.make(op.clone(), &selected));
    }
    // Return the last values, so that some of them have several users.
    values.split_off(values.len().saturating_sub(3))
}

fn strategy() -> impl Strategy<Value = Case> {
    let real = DType::ALL.into_iter().filter(|dtype| !dtype.is_complex()).collect::<Vec<_>>();
    let inputs = (vec(dtype_among(real), 3), broadcastable(3)).prop_flat_map(|(dtypes, shapes)| {
        let tensors = dtypes.into_iter().zip(shapes);
        tensors.map(|(dtype, sizes)| tensor(dtype, &sizes, Numbers::Any)).collect::<Vec<_>>()
    });
    let links = vec((any::<Index>(), any::<[Index; 3]>()), 2..=14);
    (inputs, links).prop_map(|(inputs, links): (Vec<HostTensor>, Vec<Link>)| {
        Case::of_many(inputs, links.clone(), move |graph, x| Ok(chain(graph, x, &links)))
    })
}

#[test]
fn chains_match_separate_ops() {
    let cases = u32::try_from(400 * setting("NXLA_PARITY_ROUNDS", 1)).unwrap();
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let found = TestRunner::new(config).run(&strategy(), |case| {
        let found = differences(&[(&case, EXACT.for_backend(Other::Reference))], Other::Reference);
        prop_assert_eq!(found, Ok(vec![None]));
        Ok(())
    });
    found.unwrap();
}
