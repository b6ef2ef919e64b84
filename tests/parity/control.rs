//! Parameters, literals, tuples, conditionals, loops, hooks and blocks, around simple arithmetic.

use std::sync::Arc;

use nxla::graph::{BinaryOp, Compute, Constant, ExprId, Graph, HostFn, Literal, Op, Result};
use nxla::{DType, HostTensor, Scalar, TensorType};
use proptest::prelude::*;

use crate::case::Case;
use crate::values::{Numbers, RANKS, dtype_among, host, number, shape, tensor};

pub(crate) fn strategy(op: &Op, dtype: DType) -> BoxedStrategy<Case> {
    match op {
        Op::Parameter(_) => {
            any_tensor(dtype).prop_map(|x| Case::new(vec![x], (), |_, x| Ok(x[0]))).boxed()
        }
        Op::Constant(_) => constant(dtype),
        Op::Tensor(_) => any_tensor(dtype)
            .prop_map(|x| {
                Case::new(vec![], x.clone(), move |graph, _| {
                    graph.make(Op::Tensor(Literal(Box::new(x.clone()))), &[])
                })
            })
            .boxed(),
        Op::Metadata(_) | Op::Elem(_) => (any_tensor(dtype), any_tensor(dtype))
            .prop_map(|(x, y)| {
                Case::of_many(vec![x, y], (), |graph, x| {
                    let tuple = graph.metadata(x, Default::default())?;
                    Ok(vec![graph.elem(tuple, 1)?, graph.elem(tuple, 0)?])
                })
            })
            .boxed(),
        Op::Cond(_) => conditional_case(dtype),
        Op::While(_) => loop_case(dtype),
        Op::Hook(hook) if hook.results.is_some() => any_tensor(dtype)
            .prop_map(|x| {
                Case::new(vec![x], (), |graph, x| {
                    let identity: Arc<dyn HostFn> =
                        Arc::new(Compute(|values: &[HostTensor]| Ok(values.into())));
                    let result = graph.tensor_type(x[0]).clone();
                    graph.runtime_call(x, vec![result], identity).map(|values| values[0])
                })
            })
            .boxed(),
        Op::Hook(_) => any_tensor(dtype)
            .prop_map(|x| {
                Case::new(vec![x], (), |graph, x| {
                    let ignore: Arc<dyn HostFn> = Arc::new(|_: &[HostTensor]| Ok(()));
                    graph.hook(x, None, Some(ignore)).map(|values| values[0])
                })
            })
            .boxed(),
        Op::Block(_) => any_tensor(dtype)
            .prop_map(|x| {
                Case::of_many(vec![x], (), |graph, x| {
                    graph.block("pair", Vec::new(), x, |graph, x| {
                        Ok::<_, nxla::graph::Error>(vec![double(graph, x[0])?, x[0]])
                    })
                })
            })
            .boxed(),
        op @ nxla::graph::outside!(control) => unreachable!("{} is of another family", op.name()),
    }
}

fn any_tensor(dtype: DType) -> BoxedStrategy<HostTensor> {
    shape(RANKS).prop_flat_map(move |sizes| tensor(dtype, &sizes, Numbers::Any)).boxed()
}

/// Returns `x + x`, or `x or x` for booleans.
fn double(graph: &mut Graph, x: ExprId) -> Result<ExprId> {
    let is_pred = graph.dtype(x).is_pred();
    graph.binary(if is_pred { BinaryOp::LogicalOr } else { BinaryOp::Add }, x, x)
}

fn constant(dtype: DType) -> BoxedStrategy<Case> {
    (shape(RANKS), number(dtype, Numbers::Any))
        .prop_map(move |(sizes, value)| {
            let ty = TensorType::new(dtype, sizes);
            Case::new(vec![], (value, ty.clone()), move |graph, _| {
                graph.make(Op::Constant(Box::new(Constant { value, ty: ty.clone() })), &[])
            })
        })
        .boxed()
}

/// Two clauses and an otherwise; the predicates may be of any dtype.
fn conditional_case(dtype: DType) -> BoxedStrategy<Case> {
    let predicate =
        || dtype_among(DType::ALL.to_vec()).prop_flat_map(|dtype| tensor(dtype, &[], Numbers::Any));
    (any_tensor(dtype), predicate(), predicate())
        .prop_map(|(x, first, second)| {
            Case::new(vec![x, first, second], (), |graph, x| {
                let (x, first, second) = (x[0], x[1], x[2]);
                let mark = graph.mark();
                let mut clause = |predicate, value: fn(&mut Graph, ExprId) -> Result<ExprId>| {
                    let holds = graph.traced(graph.mark(), vec![predicate]);
                    let start = graph.mark();
                    let value = value(graph, x)?;
                    Ok((holds, graph.traced(start, vec![value])))
                };
                let clauses = vec![
                    clause(first, double)?,
                    clause(second, |graph, x| graph.reverse(x, None))?,
                ];
                let otherwise = graph.traced(graph.mark(), vec![x]);
                graph.cond(mark, clauses, otherwise).map(|values| values[0])
            })
        })
        .boxed()
}

/// Doubles repeatedly under a loop counter that is not a result.
fn loop_case(dtype: DType) -> BoxedStrategy<Case> {
    (any_tensor(dtype), 0..=4_i64)
        .prop_map(|(x, count)| {
            let count = host(DType::S32, [], &[Scalar::Int(count)]);
            Case::new(vec![x, count], (), |graph, x| {
                let types: Vec<TensorType> =
                    x.iter().map(|&id| graph.tensor_type(id).clone()).collect();
                let mark = graph.mark();
                let scope = graph.open_scope("while", &types);
                let (value, left) = (scope.parameters[0], scope.parameters[1]);
                let start = graph.mark();
                let zero = graph.zero_like(left)?;
                let is_positive = graph.binary(BinaryOp::Greater, left, zero)?;
                let condition = graph.traced(start, vec![is_positive]);
                let start = graph.mark();
                let next = double(graph, value)?;
                let one = graph.one_like(left)?;
                let left = graph.binary(BinaryOp::Subtract, left, one)?;
                let body = graph.traced(start, vec![next, left]);
                graph.while_loop(mark, &scope, x, condition, body).map(|values| values[0])
            })
        })
        .boxed()
}
