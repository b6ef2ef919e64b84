//! Derivatives of reductions.

mod forward;

use nxla_expr::{BinaryOp, ExprId, Graph, Op, Reduce, ReduceOp};
use nxla_tensor::{DType, Shape};

use crate::emit::{cast, keep_where, number, reduced_axes, sum, unreduce};
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
        ReduceOp::Product => product(sweep.graph, &group, dy, x)?,
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

/// Each element gets the product of the others. With `p` the product of the elements that are
/// not zero: that is `p / x` in a group without zeros, `p` for the only zero of a group, and 0
/// for everything else.
fn product(graph: &mut Graph, group: &Group<'_>, dy: ExprId, x: ExprId) -> Result<ExprId> {
    let dtype = graph.dtype(dy);
    let (zero, one) = (graph.zero_like(x)?, graph.one_like(x)?);
    let is_zero = graph.equal(x, zero)?;
    let safe = graph.select(is_zero, one, x)?;
    let attributes = Reduce { axes: Some(group.axes.into()), keep_axes: false };
    let others = graph.make(Op::Reduce(ReduceOp::Product, Box::new(attributes)), &[safe])?;
    let zeros = group.count(graph, is_zero, dtype.to_real())?;
    let counted = graph.dtype(zeros);
    let (none, single) = (number(graph, 0.0, counted)?, number(graph, 1.0, counted)?);
    let (no_zero, one_zero) = (graph.equal(zeros, none)?, graph.equal(zeros, single)?);

    let shape = graph.shape(others).clone();
    let dy = crate::emit::reshape(graph, dy, shape)?;
    let scaled = graph.multiply(dy, others)?;
    let for_the_zero = keep_where(graph, one_zero, scaled)?;
    let for_the_others = keep_where(graph, no_zero, scaled)?;
    let for_the_zero = group.spread(graph, for_the_zero)?;
    let for_the_others = group.spread(graph, for_the_others)?;
    let for_the_others = graph.divide(for_the_others, safe)?;
    Ok(graph.select(is_zero, for_the_zero, for_the_others)?)
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
    let dy = crate::emit::reshape(graph, dy, shape)?;
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
