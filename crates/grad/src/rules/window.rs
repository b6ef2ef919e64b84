//! Derivatives of window reductions.
//!
//! Along an axis with stride `s`, dilation `d` and `low` padding elements, window `j` reads element
//! `j s + t d - low` at its offset `t`. For one offset, all windows together thus read a strided
//! range of the padded axis. Rules that need single elements of a window iterate over the offsets.

mod forward;

use nxla_expr::{Axes, ExprId, Graph, Op, Padding, ScatterOp, WindowAttributes, WindowOp};
use nxla_tensor::{Scalar, Shape, to_i64};

use super::movement::put_back;
use crate::builder::{self, dilated_size, pad_zeros, scalar, sum_all};
use crate::error::Result;
use crate::reverse::{ReversePass, Visit};

pub(super) use forward::{scatter_tangent, window_tangent};

/// Adds the contribution of every window reduction to its operand.
pub(super) fn window(
    pass: &mut ReversePass<'_>,
    visit: &Visit,
    op: WindowOp,
    window: &WindowAttributes,
) -> Result<()> {
    let dy = pass.dy(visit)?;
    let x = pass.operand(visit, 0)?;
    if pass.graph.shape(dy).size() == 0 {
        return Ok(());
    }
    let dx = match op {
        WindowOp::Sum => sum(pass.graph, window, dy, x)?,
        WindowOp::Product => product(pass.graph, window, dy, x)?,
        WindowOp::Max | WindowOp::Min => extremum(pass.graph, scatter_of(op), window, dy, x)?,
    };
    pass.add_cotangent(visit, 0, dx)
}

/// Returns the scatter op that corresponds to an extremum.
fn scatter_of(op: WindowOp) -> ScatterOp {
    match op {
        WindowOp::Min => ScatterOp::Min,
        WindowOp::Max | WindowOp::Sum | WindowOp::Product => ScatterOp::Max,
    }
}

/// Element `i` is read by the windows `j` with `j s = i + low - t d`. After inserting `s - 1` zeros
/// between the cotangents, the contribution is a window sum of stride 1 with the same dilation over
/// cotangents shifted by the extent of a window.
fn sum(graph: &mut Graph, window: &WindowAttributes, dy: ExprId, x: ExprId) -> Result<ExprId> {
    let (from, to) = (graph.shape(x).clone(), graph.shape(dy).clone());
    let padding: Vec<Padding> = (0..from.rank())
        .map(|axis| {
            let low = window.padding[axis].0;
            let reach = to_i64(dilated_size(window.dimensions[axis], window.dilations[axis])) - 1;
            let last = to_i64(dilated_size(to[axis], window.strides[axis]));
            let high = to_i64(from[axis]) + low - last;
            Padding { low: reach - low, high, interior: window.strides[axis] - 1 }
        })
        .collect();
    let spaced = pad_zeros(graph, dy, &padding)?;
    let adjoint = WindowAttributes {
        strides: vec![1; from.rank()].into(),
        padding: vec![(0, 0); from.rank()].into(),
        ..window.clone()
    };
    Ok(graph.make(Op::Window(WindowOp::Sum, Box::new(adjoint)), &[spaced])?)
}

/// The contribution to an element of a window is the product of the elements at smaller offsets and
/// the elements at larger offsets, which is exact for zeros.
fn product(graph: &mut Graph, window: &WindowAttributes, dy: ExprId, x: ExprId) -> Result<ExprId> {
    let offsets = Offsets::new(window, graph.shape(x), graph.shape(dy));
    let padded = offsets.pad_windows(graph, x, Scalar::UInt(1))?;
    let elements = offsets
        .iter()
        .map(|offset| offsets.take(graph, padded, &offset))
        .collect::<Result<Vec<_>>>()?;
    let mut after = vec![dy; elements.len()];
    for at in (1..elements.len()).rev() {
        after[at - 1] = graph.multiply(after[at], elements[at])?;
    }
    let mut before: Option<ExprId> = None;
    let mut dx: Option<ExprId> = None;
    for (at, offset) in offsets.iter().enumerate() {
        let part = match before {
            Some(before) => graph.multiply(before, after[at])?,
            None => after[at],
        };
        before = Some(match before {
            Some(before) => graph.multiply(before, elements[at])?,
            None => elements[at],
        });
        dx = Some(offsets.put(graph, dx, part, &offset)?);
    }
    Ok(dx.expect("a window has at least one offset"))
}

/// The last extremal element of each window receives the cotangent of the window.
fn extremum(
    graph: &mut Graph,
    op: ScatterOp,
    window: &WindowAttributes,
    dy: ExprId,
    x: ExprId,
) -> Result<ExprId> {
    let zero = scalar(graph, 0.0, graph.dtype(dy))?;
    let scatter = Op::WindowScatter(op, Box::new(window.clone()));
    Ok(graph.make(scatter, &[x, dy, zero])?)
}

/// The searched tensor only selects indices; the source and the initial value carry derivatives.
pub(super) fn scatter_carries(position: usize) -> bool {
    position != 0
}

/// Each source element receives the cotangent at the index of the extremum of its window; the
/// initial value receives the sum over all elements.
pub(super) fn scatter(
    pass: &mut ReversePass<'_>,
    visit: &Visit,
    op: ScatterOp,
    window: &WindowAttributes,
) -> Result<()> {
    let dy = pass.dy(visit)?;
    let x = pass.operand(visit, 0)?;
    let graph = &mut *pass.graph;
    let source = graph.shape(visit.operands[1]).clone();
    if pass.needs_cotangent(visit, 1) && source.size() > 0 {
        let graph = &mut *pass.graph;
        let offsets = Offsets::new(window, graph.shape(x), &source);
        let part = offsets.select_winners(graph, op, x, dy)?;
        pass.add_cotangent(visit, 1, part)?;
    }
    if pass.needs_cotangent(visit, 2) {
        let initial = sum_all(pass.graph, dy)?;
        pass.add_cotangent(visit, 2, initial)?;
    }
    Ok(())
}

/// The offsets inside the windows over a tensor.
pub(crate) struct Offsets<'a> {
    window: &'a WindowAttributes,
    from: Shape,
    /// The number of windows along each axis.
    count: Shape,
}

impl<'a> Offsets<'a> {
    pub(crate) fn new(window: &'a WindowAttributes, from: &Shape, count: &Shape) -> Self {
        Self { window, from: from.clone(), count: count.clone() }
    }

    /// Iterates over all offsets in row-major order.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = Vec<usize>> + use<> {
        let dimensions = Shape::from(&self.window.dimensions[..]);
        (0..dimensions.size()).map(move |position| dimensions.index_at(position))
    }

    /// Pads a tensor as the windows require, with elements of one value.
    fn pad_windows(&self, graph: &mut Graph, x: ExprId, value: Scalar) -> Result<ExprId> {
        let value = graph.scalar_constant(value, graph.dtype(x))?;
        let padding: Box<[Padding]> = self
            .window
            .padding
            .iter()
            .map(|&(low, high)| Padding { low, high, interior: 0 })
            .collect();
        Ok(graph.make(Op::Pad(padding), &[x, value])?)
    }

    /// Returns the element of a padded tensor that each window reads at an offset.
    pub(crate) fn take(
        &self,
        graph: &mut Graph,
        padded: ExprId,
        offset: &[usize],
    ) -> Result<ExprId> {
        let WindowAttributes { strides, dilations, .. } = self.window;
        let starts: Vec<usize> = offset.iter().zip(dilations).map(|(at, step)| at * step).collect();
        let lengths: Axes = self
            .count
            .iter()
            .zip(strides)
            .map(|(&count, &stride)| dilated_size(count, stride))
            .collect();
        Ok(builder::slice(graph, padded, &starts, lengths, strides.clone())?)
    }

    /// Adds a value per window to the elements that the windows read at an offset.
    fn put(
        &self,
        graph: &mut Graph,
        sum: Option<ExprId>,
        part: ExprId,
        offset: &[usize],
    ) -> Result<ExprId> {
        let WindowAttributes { strides, dilations, padding, .. } = self.window;
        let padding: Vec<Padding> = (0..self.from.rank())
            .map(|axis| {
                let start = to_i64(offset[axis] * dilations[axis]) - padding[axis].0;
                put_back(start, self.count[axis], strides[axis], self.from[axis])
            })
            .collect();
        let placed = pad_zeros(graph, part, &padding)?;
        Ok(match sum {
            Some(sum) => graph.add(sum, placed)?,
            None => placed,
        })
    }
}
