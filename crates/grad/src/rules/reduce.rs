//! Derivatives of reductions.

mod forward;

use nxla_expr::{BinaryOp, ExprId, Graph, Op, Padding, Program, Reduce, ReduceOp};
use nxla_tensor::{DType, Shape};

use super::control::through;
use crate::emit::{cast, keep_where, number, reduced_axes, reshape, signed, slice, sum, unreduce};
use crate::error::Result;
use crate::sweep::{Sweep, Visit};

pub(super) use forward::reduce_tangent;

/// Whether a reduction has a derivative other than zero.
pub(super) fn carries(op: ReduceOp) -> bool {
    match op {
        ReduceOp::Sum | ReduceOp::Product | ReduceOp::Max | ReduceOp::Min => true,
        ReduceOp::All | ReduceOp::Any => false,
    }
}

/// The rule of each uniform reduction.
pub(super) fn reduce(
    sweep: &mut Sweep<'_>,
    visit: &Visit,
    op: ReduceOp,
    attributes: &Reduce,
) -> Result<()> {
    let dy = sweep.dy(visit)?;
    let x = sweep.operand(visit, 0)?;
    let shape = sweep.graph.shape(x).clone();
    let axes = reduced_axes(attributes, shape.rank());
    let group = Group { shape: &shape, axes: &axes };
    let dx = match op {
        ReduceOp::Sum => group.spread(sweep.graph, dy)?,
        ReduceOp::Product if shape.size() == 0 => return Ok(()),
        ReduceOp::Product => {
            let product = Product::new(sweep.graph, x, &axes, visit.id)?;
            return through(sweep, visit, &product.program, &[x]);
        }
        ReduceOp::Max | ReduceOp::Min => {
            let y = sweep.answer(visit)?;
            extremum(sweep.graph, &group, dy, x, y)?
        }
        ReduceOp::All | ReduceOp::Any => return Ok(()),
    };
    sweep.give(visit, 0, dx)
}

/// The elements that one result comes from.
struct Group<'a> {
    shape: &'a Shape,
    axes: &'a [usize],
}

impl Group<'_> {
    /// A value per group, repeated for each element of the group.
    fn spread(&self, graph: &mut Graph, per_group: ExprId) -> nxla_expr::Result<ExprId> {
        unreduce(graph, per_group, self.shape, self.axes)
    }

    /// The number of elements per group for which a mask holds, in a float dtype or in a wider one
    /// that holds it.
    fn count(&self, graph: &mut Graph, mask: ExprId, dtype: DType) -> nxla_expr::Result<ExprId> {
        let ones = cast(graph, mask, dtype)?;
        sum(graph, ones, self.axes.into())
    }
}

/// The product as a program of multiplications, whose derivatives of every order are exact at zeros.
///
/// Each axis is halved until one element is left, so that the derivative takes as long as the
/// product and has a depth of the logarithm of the size. A quotient by the elements would be wrong
/// at zeros, and a selection of special cases loses its own derivative there.
struct Product {
    program: Program,
}

impl Product {
    /// The product over axes of `x`, in the shape and dtype of `node`.
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

/// Multiplies the elements along an axis, of which there is at least one, until its size is 1.
fn halve(graph: &mut Graph, mut x: ExprId, axis: usize) -> Result<ExprId> {
    let one = number(graph, 1.0, graph.dtype(x))?;
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
            let mut padding = vec![Padding { low: 0, high: 0, interior: 0 }; rank];
            padding[axis].high = signed(2 * half - size);
            high = graph.make(Op::Pad(padding.into()), &[high, one])?;
        }
        x = graph.multiply(low, high)?;
    }
    Ok(x)
}

/// The elements equal to the extremum share the cotangent.
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
    let dy = reshape(graph, dy, shape)?;
    let dy = cast(graph, dy, graph.dtype(count))?;
    let share = graph.divide(dy, count)?;
    let share = cast(graph, share, dtype)?;
    let share = group.spread(graph, share)?;
    Ok(keep_where(graph, wins, share)?)
}

/// `argmax` and `argmin`: none, a position is constant by parts.
pub(super) fn no_derivative() -> Result<()> {
    Ok(())
}
