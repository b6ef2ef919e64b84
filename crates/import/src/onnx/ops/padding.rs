//! Padding and cropping.

use nxla_expr::build::{OuterPadding, SliceStart};
use nxla_expr::{ExprId, Padding};

use super::{Operator, operator};
use crate::numbers::to_i64;
use crate::onnx::error::{Built, invalid};
use crate::onnx::node::Call;

/// The operators of this family.
pub(super) const OPERATORS: &[Operator] =
    &[operator("CenterCropPad", center_crop_pad), operator("Pad", pad)];

/// Returns the widths before and after each axis.
fn widths(call: &mut Call<'_, '_, '_>, rank: usize) -> Built<Vec<(i64, i64)>> {
    let Some(pads) = call.int_list(1, "pads")? else {
        return invalid("pads: must not be missing");
    };
    let axes = call.optional(3).map(|axes| call.integers(axes, "axes")).transpose()?;
    let axes = call.axes(axes, rank)?;
    if pads.len() != 2 * axes.len() {
        let (expected, found) = (2 * axes.len(), pads.len());
        return invalid(format!("pads: must have {expected} entries; got {found}"));
    }
    let mut widths = vec![(0, 0); rank];
    for (index, &axis) in axes.iter().enumerate() {
        widths[axis] = (pads[index], pads[axes.len() + index]);
    }
    Ok(widths)
}

fn pad(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let x = call.input(0)?;
    let widths = widths(call, call.rank(x))?;
    let rule = match call.text("mode", "constant")?.as_str() {
        "constant" => {
            let value = match call.optional(2) {
                Some(value) => call.graph().reshape(value, nxla_tensor::Shape::scalar())?,
                None => {
                    let value = call.float("value", 0.0)?;
                    call.scalar(value, x)?
                }
            };
            let padding: Vec<Padding> =
                widths.iter().map(|&(low, high)| Padding { low, high, interior: 0 }).collect();
            return Ok(vec![call.graph().pad(x, value, &padding)?]);
        }
        "reflect" => OuterPadding::Reflect,
        "edge" => OuterPadding::Replicate,
        "wrap" => OuterPadding::Cyclic,
        other => {
            let names = "constant, reflect, edge or wrap";
            return invalid(format!("mode: must be {names}; got {other:?}"));
        }
    };
    // Negative widths crop before the other axes are padded.
    let zero = call.scalar(0.0, x)?;
    let crop: Vec<Padding> = widths
        .iter()
        .map(|&(low, high)| Padding { low: low.min(0), high: high.min(0), interior: 0 })
        .collect();
    let outer: Vec<(usize, usize)> = widths
        .iter()
        .map(|&(low, high)| (usize::try_from(low).unwrap_or(0), usize::try_from(high).unwrap_or(0)))
        .collect();
    let graph = call.graph();
    let x = graph.pad(x, zero, &crop)?;
    if outer.iter().all(|&width| width == (0, 0)) {
        return Ok(vec![x]);
    }
    Ok(vec![graph.pad_outer(x, rule, &outer)?])
}

fn center_crop_pad(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let [x, shape] = call.inputs()?;
    let sizes = call.sizes(shape, "shape")?;
    let rank = call.rank(x);
    let axes = call.axes(call.ints("axes")?, rank)?;
    if axes.len() != sizes.len() {
        let (expected, found) = (axes.len(), sizes.len());
        return invalid(format!("shape: must have {expected} entries; got {found}"));
    }
    let zero = call.scalar(0.0, x)?;
    let mut result = x;
    for (&axis, &size) in axes.iter().zip(&sizes) {
        let own = call.shape(result)[axis];
        let along = to_i64(axis);
        if own >= size {
            let start = SliceStart::at((own - size) / 2);
            result = call.graph().slice_along_axis(result, start, size, along, 1)?;
        } else {
            let missing = to_i64(size - own);
            let widths = (missing / 2, missing - missing / 2);
            result = call.pad_axis(result, zero, axis, widths)?;
        }
    }
    Ok(vec![result])
}
