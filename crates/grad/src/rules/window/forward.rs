//! Tangents of window reductions.

use nxla_expr::{BinaryOp, ExprId, Graph, Op, ScatterOp, TensorType, WindowAttributes, WindowOp};
use nxla_tensor::{DType, Scalar};

use super::{Offsets, scatter_of};
use crate::error::Result;
use crate::forward::JvpStep;

/// Returns the tangent of a window reduction.
pub(in crate::rules) fn window_tangent(
    step: &mut JvpStep<'_>,
    op: WindowOp,
    window: &WindowAttributes,
) -> Result<Option<ExprId>> {
    let Some(dx) = step.dx(0) else { return Ok(None) };
    if step.graph.shape(step.node).size() == 0 {
        return Ok(None);
    }
    match op {
        WindowOp::Sum => {
            let sum = Op::Window(WindowOp::Sum, Box::new(window.clone()));
            Ok(Some(step.graph.make(sum, &[dx])?))
        }
        WindowOp::Product => product(step, window, dx).map(Some),
        WindowOp::Max | WindowOp::Min => extremum(step, scatter_of(op), window, dx).map(Some),
    }
}

/// Multiplies the elements of a window one by one with their tangents: `d(p e) = dp e + p de`,
/// which is exact for zeros.
fn product(step: &mut JvpStep<'_>, window: &WindowAttributes, dx: ExprId) -> Result<ExprId> {
    let (x, y) = (step.x(0)?, step.y()?);
    let graph = &mut *step.graph;
    let offsets = Offsets::new(window, graph.shape(x), graph.shape(y));
    let padded = offsets.pad_windows(graph, x, Scalar::UInt(1))?;
    let changes = offsets.pad_windows(graph, dx, Scalar::UInt(0))?;
    let mut folded: Option<(ExprId, ExprId)> = None;
    for offset in offsets.iter() {
        let element = offsets.take(graph, padded, &offset)?;
        let change = offsets.take(graph, changes, &offset)?;
        folded = Some(match folded {
            None => (element, change),
            Some((product, changed)) => {
                let changed = graph.multiply(changed, element)?;
                let change = graph.multiply(product, change)?;
                (graph.multiply(product, element)?, graph.add(changed, change)?)
            }
        });
    }
    Ok(folded.expect("a window has at least one offset").1)
}

/// Returns the tangent of the extremum of each window, of the last one in a tie.
fn extremum(
    step: &mut JvpStep<'_>,
    op: ScatterOp,
    window: &WindowAttributes,
    dx: ExprId,
) -> Result<ExprId> {
    let x = step.x(0)?;
    let offsets = Offsets::new(window, step.graph.shape(x), step.graph.shape(step.node));
    offsets.select_winners(step.graph, op, x, dx)
}

/// Returns the tangent of a window scatter. The values determine the indices; the tangents of the
/// source and the initial value are scattered to these indices.
pub(in crate::rules) fn scatter_tangent(
    step: &mut JvpStep<'_>,
    op: ScatterOp,
    window: &WindowAttributes,
) -> Result<Option<ExprId>> {
    let dtype = step.tangent_dtype();
    let (x, source) = (step.x(0)?, step.dx_or_zeros(1, dtype)?);
    let initial = step.dx_or_zeros(2, dtype)?;
    let scatter = Op::WindowScatter(op, Box::new(window.clone()));
    Ok(Some(step.graph.make(scatter, &[x, source, initial])?))
}

impl Offsets<'_> {
    /// Returns for each window the element of `values` at the index of its extremum, which is the index that
    /// the scatter of windows uses: an element stays if the next one is less extreme. Padding never wins.
    pub(super) fn select_winners(
        &self,
        graph: &mut Graph,
        op: ScatterOp,
        x: ExprId,
        values: ExprId,
    ) -> Result<ExprId> {
        let is_more_extreme = match op {
            ScatterOp::Max => BinaryOp::Greater,
            ScatterOp::Min => BinaryOp::Less,
        };
        let is_element = if self.has_padding() {
            let ty = TensorType::new(DType::Pred, graph.shape(x).clone());
            let all = graph.constant(Scalar::UInt(1), ty)?;
            Some(self.pad_windows(graph, all, Scalar::UInt(0))?)
        } else {
            None
        };
        let elements = self.pad_windows(graph, x, Scalar::UInt(0))?;
        let values = self.pad_windows(graph, values, Scalar::UInt(0))?;
        let mut best: Option<(ExprId, ExprId, Option<ExprId>)> = None;
        for offset in self.iter() {
            let element = self.take(graph, elements, &offset)?;
            let value = self.take(graph, values, &offset)?;
            let here = is_element.map(|mask| self.take(graph, mask, &offset)).transpose()?;
            best = Some(match best {
                None => (element, value, here),
                Some((extremum, found, before)) => {
                    let mut stays = graph.binary(is_more_extreme, extremum, element)?;
                    let mut any = None;
                    if let (Some(before), Some(here)) = (before, here) {
                        let both = graph.logical_and(stays, before)?;
                        let is_padding = graph.logical_not(here)?;
                        stays = graph.logical_or(both, is_padding)?;
                        any = Some(graph.logical_or(before, here)?);
                    }
                    let extremum = graph.select(stays, extremum, element)?;
                    (extremum, graph.select(stays, found, value)?, any)
                }
            });
        }
        Ok(best.expect("a window has at least one offset").1)
    }

    fn has_padding(&self) -> bool {
        self.window.padding.iter().any(|&(low, high)| low > 0 || high > 0)
    }
}
