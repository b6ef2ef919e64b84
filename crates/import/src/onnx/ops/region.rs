//! Pooling over regions of images.

use nxla_expr::build::{Formula, Subscript};
use nxla_expr::{ExprId, Graph};
use nxla_tensor::DType;

use super::{Operator, operator};
use crate::numbers::to_f64;
use crate::onnx::error::{Built, invalid, unsupported};
use crate::onnx::node::Call;

/// The operators of this family.
pub(super) const OPERATORS: &[Operator] = &[operator("RoiAlign", roi_align)];

/// The samples along one axis of the regions.
struct Samples {
    /// The indices of the elements before and after each sample, `[regions, samples]`.
    indices: [ExprId; 2],
    /// The weights of these elements, which are zero outside of the image.
    weights: [ExprId; 2],
}

/// The parts of an axis into which each region is divided.
struct Bins {
    count: usize,
    /// The samples in a bin.
    each: usize,
    /// The number of elements of the axis.
    size: usize,
}

/// Returns the samples along an axis. The ends of the regions are `[regions, 1]`.
fn samples(
    call: &mut Call<'_, '_, '_>,
    [start, end]: [ExprId; 2],
    bins: &Bins,
    is_half_pixel: bool,
) -> Built<Samples> {
    let scale = call.float("spatial_scale", 1.0)?;
    let dtype = call.dtype(start);
    let graph = call.graph();
    let step = graph.iota([1, bins.count.saturating_mul(bins.each)], Some(1), dtype)?;
    let formula = Formula::new(graph);
    let [start, end, step] = formula.terms([start, end, step]);
    let offset = if is_half_pixel { 0.5 } else { 0.0 };
    let (start, end) = (start * scale - offset, end * scale - offset);
    let length = end - start;
    let length = if is_half_pixel { length } else { length.max(1.0) };
    let distance = length / to_f64(bins.count) / to_f64(bins.each);
    let at = start + (step + 0.5) * distance;
    let size = to_f64(bins.size);
    let is_inside = at.greater_equal(-1.0) & at.less_equal(size);
    let last = to_f64(bins.size.saturating_sub(1));
    let at = at.clip(0.0, last);
    let low = at.floor();
    let high = (low + 1.0).min(last);
    let after = at - low;
    let weights = [1.0 - after, after].map(|weight| is_inside.select(weight, 0.0));
    let weights = formula.ids(weights)?;
    let indices = [low.as_type(DType::S64).id()?, high.as_type(DType::S64).id()?];
    Ok(Samples { indices, weights })
}

/// Returns a column of a matrix as a matrix.
fn column(graph: &mut Graph, x: ExprId, index: i64) -> nxla_expr::Result<ExprId> {
    graph.slice_along_axis(x, index, 1, 1, 1)
}

/// Returns the mean or the maximum of samples of each bin of each region. A sample interpolates
/// between four elements; the maximum is the largest weighted element, as in ONNX Runtime.
fn roi_align(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let [x, regions, images] = call.inputs()?;
    let (image, columns) = (call.shape(x), call.shape(regions));
    let (&[_, channels, height, width], &[count, 4]) = (&image[..], &columns[..]) else {
        let (x, regions) = (call.ty(x), call.ty(regions));
        return invalid(format!("X, rois: must have 4 axes and 4 columns; got {x} and {regions}"));
    };
    if height == 0 || width == 0 {
        return invalid(format!("X: must have elements; got {}", call.ty(x)));
    }
    let each = call.int("sampling_ratio", 0)?;
    let Some(each) = usize::try_from(each).ok().filter(|&each| each > 0) else {
        return unsupported(format!(
            "sampling_ratio: must be positive, since the number of samples would depend on the data; \
             got {each}"
        ));
    };
    let (dtype, wide) = (call.dtype(x), call.dtype(x).at_least_f32());
    let mode = if call.version < 16 { "output_half_pixel" } else { "half_pixel" };
    let is_half_pixel = match call.text("coordinate_transformation_mode", mode)?.as_str() {
        "half_pixel" => true,
        "output_half_pixel" => false,
        other => {
            let names = "half_pixel or output_half_pixel";
            return invalid(format!(
                "coordinate_transformation_mode: must be {names}; got {other:?}"
            ));
        }
    };
    let rows = Bins { count: call.positive("output_height", 1)?, each, size: height };
    let columns = Bins { count: call.positive("output_width", 1)?, each, size: width };
    let graph = call.graph();
    let regions = graph.as_type(regions, wide)?;
    let (left, top) = (column(graph, regions, 0)?, column(graph, regions, 1)?);
    let (right, bottom) = (column(graph, regions, 2)?, column(graph, regions, 3)?);
    let vertical = samples(call, [top, bottom], &rows, is_half_pixel)?;
    let horizontal = samples(call, [left, right], &columns, is_half_pixel)?;
    let corners = corners(call, [x, images], &vertical, &horizontal)?;
    let is_maximum = match call.text("mode", "avg")?.as_str() {
        "avg" => false,
        "max" => true,
        other => return invalid(format!("mode: must be avg or max; got {other:?}")),
    };
    let graph = call.graph();
    let mut total = corners[0];
    for &corner in &corners[1..] {
        total = if is_maximum { graph.max(total, corner)? } else { graph.add(total, corner)? };
    }
    let split = [count, rows.count, each, columns.count, each, channels];
    let split = graph.reshape(total, split)?;
    let pooled = if is_maximum {
        graph.reduce_max(split, Some(&[2, 4]), false)?
    } else {
        graph.mean(split, Some(&[2, 4]), false)?
    };
    let pooled = graph.transpose(pooled, Some(&[0, 3, 1, 2]))?;
    Ok(vec![graph.as_type(pooled, dtype)?])
}

/// Returns the elements at the four corners around each sample times their weights,
/// `[regions, rows, columns, channels]`.
fn corners(
    call: &mut Call<'_, '_, '_>,
    [x, images]: [ExprId; 2],
    vertical: &Samples,
    horizontal: &Samples,
) -> Built<Vec<ExprId>> {
    let wide = call.dtype(x).at_least_f32();
    let count = call.shape(images).size();
    let rows = call.shape(vertical.indices[0])[1];
    let columns = call.shape(horizontal.indices[0])[1];
    let graph = call.graph();
    let x = graph.as_type(x, wide)?;
    let x = graph.move_axes(x, &[1], &[-1])?;
    let images = graph.as_type(images, DType::S64)?;
    let images = graph.reshape(images, [count, 1, 1])?;
    let mut corners = Vec::with_capacity(4);
    for (row, row_weight) in vertical.indices.into_iter().zip(vertical.weights) {
        for (place, weight) in horizontal.indices.into_iter().zip(horizontal.weights) {
            let row = graph.reshape(row, [count, rows, 1])?;
            let place = graph.reshape(place, [count, 1, columns])?;
            let items = [images, row, place].map(Subscript::Take);
            let elements = graph.subscript(x, &items)?;
            let row_weight = graph.reshape(row_weight, [count, rows, 1, 1])?;
            let weight = graph.reshape(weight, [count, 1, columns, 1])?;
            let weight = graph.multiply(row_weight, weight)?;
            corners.push(graph.multiply(elements, weight)?);
        }
    }
    Ok(corners)
}
