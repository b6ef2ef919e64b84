//! `vmap`: functions of one entry as functions of many.

use std::cell::Cell;
use std::panic::Location;

use nxla_expr::{ErrorKind, ExprId, Graph, Op};
use nxla_tensor::normalize_axis;

use super::mistake;
use crate::containers::{Container, Leaves, leaves_of, trace_of};
use crate::error::Result;
use crate::expr::Expr;

thread_local! {
    /// How many maps are being traced inside each other on this thread. Their axes are told apart
    /// by it, so that equal functions trace equally.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// A function of many entries, of one that is written for a single entry: `in_axis` of each value
/// in the argument holds the entries, and so does `out_axis` of each result. What the function
/// captures is shared by all entries.
///
/// It is [`Expr::vectorize`] for axes without names.
///
/// ```
/// use nxla::{Expr, Tensor, grad, jit, vmap};
///
/// let slopes = jit(vmap(grad(|x: Expr| x.pow(2).sum()), 0, 0));
/// let rows = Tensor::new(vec![1.0f32, 2.0, 3.0, 4.0], [2, 2])?;
/// assert_eq!(slopes.call(&rows)?.to_vec::<f32>()?, [2.0, 4.0, 6.0, 8.0]);
///
/// let products = jit(|x: Expr, y: Expr| vmap(|x: Expr| &x * &y, 0, -1)(x));
/// let (x, y) = (Tensor::from(vec![1, 2, 3]), Tensor::from(vec![10, 20]));
/// assert_eq!(products.call((&x, &y))?.to_vec::<i32>()?, [10, 20, 30, 20, 40, 60]);
/// # Ok::<(), nxla::Error>(())
/// ```
#[track_caller]
pub fn vmap<F, A, R>(function: F, in_axis: i64, out_axis: i64) -> impl Fn(A) -> R
where
    F: Fn(A) -> R,
    A: Container,
    R: Container,
{
    let location = Location::caller();
    move |argument| {
        let leaves = leaves_of(&argument);
        let trace = trace_of(&leaves.items);
        let depth = DEPTH.get();
        let name = format!("vmap:{depth}");
        let mapped = trace.attempt(|| {
            trace.enter_rust(location)?;
            let entries = leaves.items.iter().map(|leaf| entries(leaf, &name, in_axis));
            entries.collect::<Result<Vec<Expr>>>()
        });
        let size = mapped.iter().flatten().find_map(|leaf| {
            leaf.vectors().iter().find(|axis| *axis.name == *name).map(|axis| axis.size)
        });
        let mut given = match mapped {
            Some(mapped) => Leaves::new(mapped, leaves.lengths.clone()),
            None => leaves,
        };
        DEPTH.set(depth + 1);
        let result = function(A::rebuild(&mut given));
        DEPTH.set(depth);
        let results = leaves_of(&result);
        let collected = trace.attempt(|| {
            let Some(size) = size else {
                return Err(mistake("vmap", "the argument has no value to map over"));
            };
            let results = results.items.iter().map(|leaf| collect(leaf, &name, size, out_axis));
            results.collect::<Result<Vec<Expr>>>()
        });
        match collected {
            Some(collected) => R::rebuild(&mut Leaves::new(collected, results.lengths)),
            None => result,
        }
    }
}

/// The value with an axis as a vectorized one.
fn entries(leaf: &Expr, name: &str, axis: i64) -> Result<Expr> {
    let rank = leaf.shape().rank();
    let from = position(leaf, axis, rank)?;
    moved(leaf, from, 0)?.try_vectorize(&[name.into()])
}

/// The value with a vectorized axis as an ordinary one.
fn collect(leaf: &Expr, name: &str, size: usize, axis: i64) -> Result<Expr> {
    let leaf = leaf.devectorize_axis(name, size)?;
    let rank = leaf.shape().rank();
    let to = position(&leaf, axis, rank)?;
    moved(&leaf, 0, to)
}

fn position(leaf: &Expr, axis: i64, rank: usize) -> Result<usize> {
    normalize_axis(axis, rank)
        .map_err(|_| ErrorKind::Axis { axis, ty: Box::new(leaf.ty()) }.of("vmap").into())
}

/// The value with an axis of its entries in another place.
fn moved(leaf: &Expr, from: usize, to: usize) -> Result<Expr> {
    let (trace, vectors) = (leaf.trace(), leaf.vectors().clone());
    let id = trace.build(|graph: &mut Graph| -> Result<ExprId> {
        let rank = graph.shape(leaf.id()).rank();
        let mut order: Vec<usize> =
            (0..rank).filter(|&axis| axis != from + vectors.len()).collect();
        order.insert(to + vectors.len(), from + vectors.len());
        Ok(graph.make(Op::Transpose(order.into()), &[leaf.id()])?)
    })?;
    Ok(Expr::with_vectors(trace.clone(), id, vectors))
}
