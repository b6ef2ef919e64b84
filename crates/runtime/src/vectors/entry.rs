//! Functions of vectorized operands, defined by a function of one entry.

use std::sync::Arc;

use nxla_expr::batch::Batched;
use nxla_expr::build::Fold;
use nxla_expr::{Broadcast, ExprId, Graph, Op, Program};
use smallvec::SmallVec;

use super::{VectorAxes, VectorAxis};
use crate::apply::{Build, Ids, called_once};
use crate::error::{Error, Result};

/// Applies `build`, which describes one entry, to all entries of vectorized operands.
///
/// Operands are nodes, which have their vectorized axes in front, with these axes. `build` is
/// called on a separate graph with the nodes of one entry: shapes, dtypes, axes and names are equal
/// to the ones of the handles, also in errors. The results have the vectorized axes of all
/// operands.
///
/// # Errors
/// Returns an error for vectorized axes that do not match, and errors of `build`.
pub fn per_entry(
    graph: &mut Graph,
    operands: &[(ExprId, VectorAxes)],
    build: &mut Build<'_>,
) -> Result<(Ids, VectorAxes)> {
    let mut entry = Graph::with_options(graph.options());
    entry.copy_current_source(graph);
    let mut parameters = Ids::new();
    for (position, (id, own)) in operands.iter().enumerate() {
        parameters.push(match graph.op(*id) {
            // `build` may depend on the value of a constant operand.
            Op::Constant(constant) if own.is_empty() => {
                entry.constant(constant.value, constant.ty.clone())?
            }
            _ => entry.parameter(position, own.entry_type(graph.tensor_type(*id))),
        });
    }
    let results = build(&mut entry, &parameters)?;
    let function = results.first().map_or("vectorized", |&id| entry.op(id).name());
    let vectors = VectorAxes::union(function, operands.iter().map(|(_, own)| own))?;
    let mut arguments: SmallVec<[Batched; 4]> = SmallVec::new();
    for (id, own) in operands {
        arguments.push(if own.is_empty() {
            Batched::from_shared(*id)
        } else {
            Batched::each(spread(graph, *id, own, &vectors)?)
        });
    }
    let sizes = vectors.sizes();
    let results = graph.batch(&entry, &results, &arguments, &sizes)?;
    let ids = results.into_iter().map(|result| graph.lift(result, &sizes));
    Ok((ids.collect::<Result<Ids, _>>().map_err(Error::from)?, vectors))
}

/// Ends the tracing of a fold whose function returned `result`, and builds the fold for each entry of its
/// operands, which have these vectorized axes.
///
/// # Errors
/// Returns an error if the result is of another scope, if vectorized axes of one name have different sizes,
/// or the error of `build`.
pub fn fold_per_entry(
    graph: &mut Graph,
    fold: &Fold,
    result: ExprId,
    vectors: impl IntoIterator<Item = VectorAxes>,
    build: impl FnOnce(&mut Graph, Arc<Program>, &[ExprId]) -> Result<ExprId>,
) -> Result<(ExprId, VectorAxes)> {
    let (function, operands) = graph.close_fold(fold, result)?;
    // Captured values follow the operands and have no vectorized axes.
    let vectors = vectors.into_iter().chain(std::iter::repeat(VectorAxes::NONE));
    let operands: SmallVec<[(ExprId, VectorAxes); 4]> = operands.into_iter().zip(vectors).collect();
    if operands.iter().all(|(_, own)| own.is_empty()) {
        let ids: Ids = operands.iter().map(|(id, _)| *id).collect();
        return Ok((build(graph, function, &ids)?, VectorAxes::NONE));
    }
    let mut build = called_once(|graph, ids| Ok(Ids::from_slice(&[build(graph, function, ids)?])));
    let (ids, vectors) = per_entry(graph, &operands, &mut build)?;
    Ok((ids[0], vectors))
}

/// Returns a node with the vectorized axes `to`: it is summed over other axes, and repeated along
/// missing axes. This converts the cotangent of a result to the cotangent of an operand.
///
/// # Errors
/// Returns an error for axes of equal names and different sizes.
pub fn reduce_to_vectors(
    graph: &mut Graph,
    x: ExprId,
    own: &VectorAxes,
    to: &VectorAxes,
) -> Result<ExprId> {
    // An axis of size 1 in `to` is broadcast to the size in `own`, so entries along it are added, too.
    let is_kept = |axis: &VectorAxis| {
        to.iter().any(|other| other.name == axis.name && (axis.size == 1 || other.size != 1))
    };
    if own.iter().all(is_kept) {
        return spread(graph, x, own, to);
    }
    let others = (0..).zip(own.iter()).filter(|(_, axis)| !is_kept(axis)).map(|(axis, _)| axis);
    let dtype = graph.dtype(x);
    let sum = graph.sum(x, Some(&others.collect::<Vec<i64>>()), false)?;
    let sum = graph.as_type(sum, dtype)?;
    let kept = VectorAxes::new(own.iter().filter(|axis| is_kept(axis)).cloned());
    spread(graph, sum, &kept, to)
}

/// The node with vectorized axes `to`, which include all of the node's axes, in their order. It is
/// repeated along axes that it lacks or has with size 1.
///
/// # Errors
/// Returns an error for vectorized axes of equal names and different sizes.
pub fn spread(graph: &mut Graph, x: ExprId, own: &VectorAxes, to: &VectorAxes) -> Result<ExprId> {
    if own == to {
        return Ok(x);
    }
    let positions: Vec<usize> = own.iter().filter_map(|axis| to.position(&axis.name)).collect();
    let depth = positions.len();
    let rank = graph.shape(x).rank();
    // The existing axes must be in their final order before new axes are inserted.
    let mut order: Vec<usize> = (0..depth).collect();
    order.sort_by_key(|&axis| positions[axis]);
    let x = graph.make(Op::Transpose(order.iter().copied().chain(depth..rank).collect()), &[x])?;
    let ty = to.full_type(&own.entry_type(graph.tensor_type(x)));
    let axes = order
        .iter()
        .map(|&axis| positions[axis])
        .chain((depth..rank).map(|axis| axis - depth + to.len()))
        .collect();
    let broadcast = Broadcast { shape: ty.shape, axes, names: ty.names };
    Ok(graph.make(Op::Broadcast(Box::new(broadcast)), &[x])?)
}
