//! Derivatives of reductions.

mod forward;

use nxla_expr::{BinaryOp, ExprId, Graph, Op, Padding, Program, Reduce, ReduceOp};
use nxla_tensor::{DType, Shape, to_i64};

use super::control::differentiate_program;
use crate::builder::{cast, reshape, scalar, select_or_zero, slice, sum, unreduce};
use crate::error::Result;
use crate::reverse::{ReversePass, Visit};

pub(super) use forward::reduce_tangent;

/// Returns whether a reduction has a nonzero derivative.
pub(super) fn carries(op: ReduceOp) -> bool {
    match op {
        ReduceOp::Sum | ReduceOp::Product | ReduceOp::Max | ReduceOp::Min => true,
        ReduceOp::All | ReduceOp::Any => false,
    }
}

/// Adds the contribution of every reduction to its operand.
pub(super) fn reduce(
    pass: &mut ReversePass<'_>,
    visit: &Visit,
    op: ReduceOp,
    attributes: &Reduce,
) -> Result<()> {
    let dy = pass.dy(visit)?;
    let x = pass.operand(visit, 0)?;
    let shape = pass.graph.shape(x).clone();
    let axes = attributes.axes_of(shape.rank());
    let group = Group { shape: &shape, axes: &axes };
    let dx = match op {
        ReduceOp::Sum => group.spread(pass.graph, dy)?,
        ReduceOp::Product if shape.size() == 0 => return Ok(()),
        ReduceOp::Product => {
            let product = ProductTree::new(pass.graph, x, &axes, visit.id)?;
            return differentiate_program(pass, visit, &product.program, &[x]);
        }
        ReduceOp::Max | ReduceOp::Min => {
            let y = pass.result(visit)?;
            extremum(pass.graph, &group, dy, x, y)?
        }
        ReduceOp::All | ReduceOp::Any => return Ok(()),
    };
    pass.add_cotangent(visit, 0, dx)
}

/// The elements that are reduced to one result.
struct Group<'a> {
    shape: &'a Shape,
    axes: &'a [usize],
}

impl Group<'_> {
    /// Broadcasts a value per group to the elements of the group.
    fn spread(&self, graph: &mut Graph, per_group: ExprId) -> nxla_expr::Result<ExprId> {
        unreduce(graph, per_group, self.shape, self.axes)
    }

    /// Counts the elements of each group for which `mask` is true, in a float dtype that holds the
    /// count.
    fn count(&self, graph: &mut Graph, mask: ExprId, dtype: DType) -> nxla_expr::Result<ExprId> {
        let ones = cast(graph, mask, dtype)?;
        sum(graph, ones, self.axes.into())
    }
}

/// A product as a program of multiplications, whose derivatives of every order are exact at zeros.
///
/// Each axis is halved until one element remains, so the cost of the derivative is proportional to
/// the cost of the product and its depth is logarithmic in the size. Dividing the product by each
/// element would fail at zeros, and treating zeros as special cases would make second derivatives
/// wrong.
struct ProductTree {
    program: Program,
}

impl ProductTree {
    /// Builds the product over `axes` of `x`, with the shape and dtype of `node`.
    fn new(around: &Graph, x: ExprId, axes: &[usize], node: ExprId) -> Result<Self> {
        let (from, to) = (around.tensor_type(x).clone(), around.tensor_type(node).clone());
        let mut graph = Graph::with_options(around.options());
        let x = graph.parameter(0, from.clone());
        let mut product = cast(&mut graph, x, to.dtype.to_counting())?;
        for &axis in axes {
            product = halve(&mut graph, product, axis)?;
        }
        let product = cast(&mut graph, product, to.dtype)?;
        let product = reshape(&mut graph, product, to.shape)?;
        Ok(Self { program: Program::new(&graph, vec![from], &[product])? })
    }
}

/// Multiplies the elements along a non-empty axis until its size is 1.
fn halve(graph: &mut Graph, mut x: ExprId, axis: usize) -> Result<ExprId> {
    let one = scalar(graph, 1.0, graph.dtype(x))?;
    while graph.shape(x)[axis] > 1 {
        let shape = graph.shape(x).clone();
        let (size, rank) = (shape[axis], shape.rank());
        let half = size.next_power_of_two() / 2;
        let part = |graph: &mut Graph, start: usize, length: usize| {
            let (mut starts, mut lengths) = (vec![0; rank], shape.to_vec());
            (starts[axis], lengths[axis]) = (start, length);
            slice(graph, x, &starts, lengths.into(), vec![1; rank].into())
        };
        let low = part(graph, 0, half)?;
        let mut high = part(graph, half, size - half)?;
        if size < 2 * half {
            let mut padding = vec![Padding::NONE; rank];
            padding[axis].high = to_i64(2 * half - size);
            high = graph.make(Op::Pad(padding.into()), &[high, one])?;
        }
        x = graph.multiply(low, high)?;
    }
    Ok(x)
}

/// The elements that equal the extremum share the cotangent. No element equals an extremum of NaN,
/// whose derivative is undefined.
fn extremum(
    graph: &mut Graph,
    group: &Group<'_>,
    dy: ExprId,
    x: ExprId,
    y: ExprId,
) -> Result<ExprId> {
    let best = group.spread(graph, y)?;
    let wins = graph.binary(BinaryOp::Equal, x, best)?;
    let dtype = graph.dtype(dy);
    let count = group.count(graph, wins, dtype)?;
    let shape = graph.shape(count).clone();
    let dy = reshape(graph, dy, shape.clone())?;
    let dy = cast(graph, dy, graph.dtype(count))?;
    let share = graph.divide(dy, count)?;
    let share = cast(graph, share, dtype)?;
    let share = group.spread(graph, share)?;
    if !graph.dtype(y).is_float() {
        return Ok(select_or_zero(graph, wins, share)?);
    }
    let y = reshape(graph, y, shape)?;
    let is_nan = graph.is_nan(y)?;
    let [nan, one] =
        [scalar(graph, f64::NAN, graph.dtype(dy))?, scalar(graph, 1.0, graph.dtype(dy))?];
    // A factor of NaN for every group would make further derivatives NaN.
    let factor = graph.select(is_nan, nan, one)?;
    let undefined = graph.multiply(dy, factor)?;
    let undefined = select_or_zero(graph, is_nan, undefined)?;
    let undefined = cast(graph, undefined, dtype)?;
    let undefined = group.spread(graph, undefined)?;
    Ok(graph.select(wins, share, undefined)?)
}
