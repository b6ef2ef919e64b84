//! Resampling. Each axis is multiplied by a matrix of weights, which is computed from the sizes.

use nxla_expr::ExprId;
use nxla_tensor::{DType, HostTensor};

use super::{Operator, operator};
use crate::numbers::{to_f64, to_i64};
use crate::onnx::error::{Built, invalid};
use crate::onnx::node::Call;

/// The operators of this family.
pub(super) const OPERATORS: &[Operator] =
    &[operator("Resize", resize), operator("Upsample", |call| asymmetric(call, false))];

/// The number of weights of an axis, beyond which a size is rejected.
const WEIGHTS: usize = 1 << 26;

/// The interpolation between elements.
#[derive(Clone, Copy, Debug)]
enum Method {
    Nearest(Rounding),
    Linear,
    Cubic { a: f64 },
}

/// The rounding of coordinates to the nearest element.
#[derive(Clone, Copy, Debug)]
enum Rounding {
    Floor,
    Ceil,
    PreferFloor,
    PreferCeil,
    /// The next element along an axis that becomes shorter, otherwise the element below.
    CeilIfShorter,
}

/// The transformation of an index in the result to a coordinate in the original axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum CoordinateTransform {
    HalfPixel,
    HalfPixelSymmetric,
    TfHalfPixelForNearest,
    PytorchHalfPixel,
    AlignCorners,
    Asymmetric,
    TfCropAndResize,
}

/// The parameters that all axes share.
struct Resampling {
    method: Method,
    transform: CoordinateTransform,
    antialias: bool,
    excludes_outside: bool,
    extrapolation: f64,
}

impl Resampling {
    /// Returns whether the result is a region of the original, which can extend beyond it.
    fn crops(&self) -> bool {
        self.transform == CoordinateTransform::TfCropAndResize
    }
}

/// An axis that is resized.
struct Axis {
    size: usize,
    result: usize,
    scale: f64,
    /// The length of the result before its rounding to a size.
    length: f64,
    region: (f64, f64),
}

fn method(call: &Call<'_, '_, '_>) -> Built<Method> {
    match call.text("mode", "nearest")?.as_str() {
        "nearest" => Ok(Method::Nearest(rounding(call)?)),
        "linear" | "bilinear" => Ok(Method::Linear),
        "cubic" => Ok(Method::Cubic { a: call.float("cubic_coeff_a", -0.75)? }),
        other => invalid(format!("mode: must be nearest, linear or cubic; got {other:?}")),
    }
}

fn rounding(call: &Call<'_, '_, '_>) -> Built<Rounding> {
    match call.text("nearest_mode", "round_prefer_floor")?.as_str() {
        "floor" => Ok(Rounding::Floor),
        "ceil" => Ok(Rounding::Ceil),
        "round_prefer_floor" => Ok(Rounding::PreferFloor),
        "round_prefer_ceil" => Ok(Rounding::PreferCeil),
        other => invalid(format!("nearest_mode: is unknown; got {other:?}")),
    }
}

fn coordinate_transform(call: &Call<'_, '_, '_>) -> Built<CoordinateTransform> {
    match call.text("coordinate_transformation_mode", "half_pixel")?.as_str() {
        "half_pixel" => Ok(CoordinateTransform::HalfPixel),
        "half_pixel_symmetric" => Ok(CoordinateTransform::HalfPixelSymmetric),
        "tf_half_pixel_for_nn" => Ok(CoordinateTransform::TfHalfPixelForNearest),
        "pytorch_half_pixel" => Ok(CoordinateTransform::PytorchHalfPixel),
        "align_corners" => Ok(CoordinateTransform::AlignCorners),
        "asymmetric" => Ok(CoordinateTransform::Asymmetric),
        "tf_crop_and_resize" => Ok(CoordinateTransform::TfCropAndResize),
        other => invalid(format!("coordinate_transformation_mode: is unknown; got {other:?}")),
    }
}

/// Inputs are `X, roi, scales, sizes`, or `X, scales` in operator set 10.
fn resize(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let x = call.input(0)?;
    if call.version < 11 {
        return asymmetric(call, true);
    }
    let shape = call.shape(x);
    let axes = call.axes(call.ints("axes")?, shape.rank())?;
    let list = |call: &mut Call<'_, '_, '_>, index: usize, name: &str| -> Built<Option<Vec<f64>>> {
        let Some(id) = call.optional(index) else { return Ok(None) };
        if call.shape(id).size() == 0 {
            return Ok(None);
        }
        Ok(Some(call.numbers(id, name)?))
    };
    let region = list(call, 1, "roi")?;
    let (scales, sizes) = (list(call, 2, "scales")?, list(call, 3, "sizes")?);
    let resampling = Resampling {
        method: method(call)?,
        transform: coordinate_transform(call)?,
        antialias: call.flag("antialias", false)?,
        excludes_outside: call.flag("exclude_outside", false)?,
        extrapolation: call.float("extrapolation_value", 0.0)?,
    };
    let given = sizes.as_ref().or(scales.as_ref());
    let found = given.map_or(0, Vec::len);
    let Some(given) = given.filter(|_| found == axes.len()) else {
        let why = format!("must have {} entries; got {found}", axes.len());
        return invalid(format!("scales, sizes: {why}"));
    };
    let region = region.filter(|_| resampling.crops());
    let expected = 2 * axes.len();
    if let Some(region) = region.as_ref().filter(|region| region.len() != expected) {
        let found = region.len();
        return invalid(format!("roi: must have {expected} entries; got {found}"));
    }
    let policy = call.text("keep_aspect_ratio_policy", "stretch")?;
    let common = common_scale(&policy, given, &axes, &shape)?;
    let mut resized = Vec::with_capacity(axes.len());
    for (index, &at) in axes.iter().enumerate() {
        let size = shape[at];
        let target = given[index];
        let (scale, length, wanted) = if sizes.is_none() {
            let length = scaled_length(target, size);
            (target, length, length.floor())
        } else if let Some(scale) = common {
            (scale, scaled_length(scale, size), (scale * to_f64(size) + 0.5).floor())
        } else {
            (target / to_f64(size.max(1)), target, target)
        };
        let region =
            region.as_ref().map_or((0.0, 1.0), |all| (all[index], all[axes.len() + index]));
        resized.push((at, Axis { size, result: to_size(wanted)?, scale, length, region }));
    }
    Ok(vec![resample(call, x, &resized, &resampling)?])
}

/// Rounds to 32 bits, in which ONNX computes sizes. A scale of 0.7 is slightly less in 32 bits, so more
/// bits would resize 10 elements to 6.
#[expect(clippy::cast_possible_truncation, reason = "rounds to 32 bits")]
fn in_f32(x: f64) -> f64 {
    f64::from(x as f32)
}

/// Returns the length of an axis that is multiplied by a scale.
fn scaled_length(scale: f64, size: usize) -> f64 {
    in_f32(scale * to_f64(size))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "was checked")]
fn to_size(size: f64) -> Built<usize> {
    if (0.0..1e12).contains(&size) {
        return Ok(size as usize);
    }
    invalid(format!("sizes: must not be negative or too large; got {size}"))
}

/// Returns the scale of all axes if the aspect ratio is kept.
fn common_scale(
    policy: &str,
    sizes: &[f64],
    axes: &[usize],
    shape: &[usize],
) -> Built<Option<f64>> {
    let scales = sizes.iter().zip(axes).map(|(size, &at)| size / to_f64(shape[at].max(1)));
    match policy {
        "stretch" => Ok(None),
        "not_larger" => Ok(scales.reduce(f64::min)),
        "not_smaller" => Ok(scales.reduce(f64::max)),
        other => {
            let names = "stretch, not_larger or not_smaller";
            invalid(format!("keep_aspect_ratio_policy: must be {names}; got {other:?}"))
        }
    }
}

/// Resizes by `Upsample`, or by `Resize` of operator set 10. Scales are an input, or an attribute in old
/// operator sets. A coordinate is the quotient of an index and a scale. The nearest element is the
/// one below, but `Resize` takes the one above along an axis that becomes shorter, as ONNX Runtime does.
fn asymmetric(call: &mut Call<'_, '_, '_>, shrinks_up: bool) -> Built<Vec<ExprId>> {
    let x = call.input(0)?;
    let scales = match call.optional(1) {
        Some(scales) => call.numbers(scales, "scales")?,
        None => call.floats("scales")?.unwrap_or_default(),
    };
    let shape = call.shape(x);
    if scales.len() != shape.rank() {
        let (expected, found) = (shape.rank(), scales.len());
        return invalid(format!("scales: must have {expected} entries; got {found}"));
    }
    let method = match method(call)? {
        Method::Nearest(_) if shrinks_up => Method::Nearest(Rounding::CeilIfShorter),
        Method::Nearest(_) => Method::Nearest(Rounding::Floor),
        method @ (Method::Linear | Method::Cubic { .. }) => method,
    };
    let resampling = Resampling {
        method,
        transform: CoordinateTransform::Asymmetric,
        antialias: false,
        excludes_outside: false,
        extrapolation: 0.0,
    };
    let mut resized = Vec::with_capacity(scales.len());
    for (at, &scale) in scales.iter().enumerate() {
        let (size, length) = (shape[at], scaled_length(scale, shape[at]));
        let result = to_size(length.floor())?;
        resized.push((at, Axis { size, result, scale, length, region: (0.0, 1.0) }));
    }
    Ok(vec![resample(call, x, &resized, &resampling)?])
}

/// Resizes axes one after another. An integer is rounded once, after the interpolation of all axes.
fn resample(
    call: &mut Call<'_, '_, '_>,
    x: ExprId,
    axes: &[(usize, Axis)],
    resampling: &Resampling,
) -> Built<ExprId> {
    let crops = resampling.crops();
    let changes = |axis: &Axis| {
        let is_same = axis.size == axis.result && axis.scale == 1.0 && !crops;
        !(is_same || axis.size == 0 && axis.result == 0)
    };
    let dtype = call.dtype(x);
    let mut result = x;
    for (at, axis) in axes.iter().filter(|(_, axis)| changes(axis)) {
        let (size, length) = (axis.size, axis.result);
        if size == 0 || axis.scale <= 0.0 || size.saturating_mul(length) > WEIGHTS {
            let why = format!("cannot resize an axis from {size} to {length}");
            return invalid(format!("scales: {why}"));
        }
        let along = to_i64(*at);
        result = match resampling.method {
            // A crop extrapolates outside of the axis, so its elements are not all copies.
            Method::Nearest(rounding) if !crops => {
                take_nearest(call, result, along, axis, rounding, resampling.transform)?
            }
            Method::Nearest(_) | Method::Linear | Method::Cubic { .. } => {
                interpolate_axis(call, result, along, axis, resampling, interpolation_dtype(dtype))?
            }
        };
    }
    Ok(call.graph().as_type(result, dtype)?)
}

/// Copies the nearest element of an axis to each element of the result.
fn take_nearest(
    call: &mut Call<'_, '_, '_>,
    x: ExprId,
    along: i64,
    axis: &Axis,
    rounding: Rounding,
    transform: CoordinateTransform,
) -> Built<ExprId> {
    let last = to_i64(axis.size) - 1;
    let source = |index: usize| {
        nearest(original(axis, transform, index), rounding, axis.scale).clamp(0, last)
    };
    let sources: Vec<i64> = (0..axis.result).map(source).collect();
    let sources = call.literal(&sources)?;
    Ok(call.graph().take(x, sources, along)?)
}

/// Multiplies an axis by its matrix of weights. The result has the dtype of the interpolation.
fn interpolate_axis(
    call: &mut Call<'_, '_, '_>,
    x: ExprId,
    along: i64,
    axis: &Axis,
    resampling: &Resampling,
    dtype: DType,
) -> Built<ExprId> {
    let (weights, outside) = weights(axis, resampling)?;
    let matrix = HostTensor::from_vec(weights, [axis.result, axis.size])?.cast(dtype);
    let rest = HostTensor::from_vec(outside, [axis.result])?.cast(dtype);
    let is_plain = rest.splat_value().is_some_and(nxla_tensor::Scalar::is_zero);
    let graph = call.graph();
    let matrix = graph.tensor(matrix)?;
    let x = graph.as_type(x, dtype)?;
    let mut result = graph.dot_general(x, &[along], &[], matrix, &[1], &[])?;
    if !is_plain {
        let rest = graph.tensor(rest)?;
        result = graph.add(result, rest)?;
    }
    Ok(graph.move_axes(result, &[-1], &[along])?)
}

/// Returns the dtype in which elements are interpolated, which represents all of them.
pub(super) fn interpolation_dtype(dtype: DType) -> DType {
    match dtype {
        dtype if dtype.is_float() || dtype.is_complex() => dtype.at_least_f32(),
        dtype if dtype.bits() > 16 => DType::F64,
        _ => DType::F32,
    }
}

/// Returns the coordinate in the original axis of an index in the result. Each step rounds to 32 bits,
/// as in ONNX Runtime: 1.5 / 0.6 - 0.5 is 2 in 32 bits, but slightly less if only the result is rounded.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "rounds to 32 bits"
)]
fn original(axis: &Axis, transform: CoordinateTransform, index: usize) -> f64 {
    let (size, scale, index) = (axis.size as f32, axis.scale as f32, index as f32);
    let (start, end) = (axis.region.0 as f32, axis.region.1 as f32);
    let length = axis.length as f32;
    f64::from(match transform {
        CoordinateTransform::PytorchHalfPixel | CoordinateTransform::AlignCorners
            if axis.result == 1 =>
        {
            0.0
        }
        CoordinateTransform::HalfPixel | CoordinateTransform::PytorchHalfPixel => {
            (index + 0.5) / scale - 0.5
        }
        CoordinateTransform::HalfPixelSymmetric => {
            // ONNX Runtime adds these terms in 64 bits.
            let offset = size / 2.0 * (1.0 - axis.result as f32 / length);
            let coordinate = (f64::from(index) + 0.5) / f64::from(scale) - 0.5;
            (f64::from(offset) + coordinate) as f32
        }
        CoordinateTransform::TfHalfPixelForNearest => (index + 0.5) / scale,
        // PyTorch and ONNX Runtime align the last elements also if the length is rounded to a size.
        // The specification divides by `length - 1`, with which the last element is not reached.
        CoordinateTransform::AlignCorners => index * (size - 1.0) / (axis.result as f32 - 1.0),
        CoordinateTransform::Asymmetric => index / scale,
        CoordinateTransform::TfCropAndResize => {
            let inside = if axis.result == 1 {
                (end - start) * (size - 1.0) / 2.0
            } else {
                index * (end - start) * (size - 1.0) / (length - 1.0)
            };
            inside + start * (size - 1.0)
        }
    })
}

#[expect(clippy::cast_possible_truncation, reason = "clamped to an axis later")]
fn nearest(coordinate: f64, rounding: Rounding, scale: f64) -> i64 {
    let low = coordinate.ceil() - 1.0;
    let ratio = coordinate - low;
    let up = match rounding {
        Rounding::Floor => ratio == 1.0,
        Rounding::Ceil => true,
        Rounding::PreferFloor => ratio > 0.5,
        Rounding::PreferCeil => ratio >= 0.5,
        Rounding::CeilIfShorter => ratio == 1.0 || scale < 1.0,
    };
    (low + f64::from(u8::from(up))) as i64
}

/// Returns the matrix from an axis to its result, and the constants added to the result.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "indices of an axis")]
fn weights(axis: &Axis, resampling: &Resampling) -> Built<(Vec<f64>, Vec<f64>)> {
    let mut matrix = vec![0.0; axis.result * axis.size];
    let mut outside = vec![0.0; axis.result];
    let last = to_f64(axis.size) - 1.0;
    for index in 0..axis.result {
        let coordinate = original(axis, resampling.transform, index);
        if resampling.crops() && !(0.0..=last).contains(&coordinate) {
            outside[index] = resampling.extrapolation;
            continue;
        }
        let low = coordinate.ceil() - 1.0;
        let (first, mut factors) = factors(coordinate - low, coordinate, axis.scale, resampling)?;
        let at = |offset: usize| low + first + to_f64(offset);
        if resampling.excludes_outside {
            for (offset, factor) in factors.iter_mut().enumerate() {
                if !(0.0..=last).contains(&at(offset)) {
                    *factor = 0.0;
                }
            }
            let sum: f64 = factors.iter().sum();
            factors.iter_mut().for_each(|factor| *factor /= sum);
        }
        for (offset, factor) in factors.iter().enumerate() {
            let source = at(offset).clamp(0.0, last) as usize;
            matrix[index * axis.size + source] += factor;
        }
    }
    Ok((matrix, outside))
}

/// Returns the offset of the first neighbor from the element below, and the factor of each neighbor.
fn factors(
    ratio: f64,
    coordinate: f64,
    scale: f64,
    resampling: &Resampling,
) -> Built<(f64, Vec<f64>)> {
    let narrow = if resampling.antialias { scale.min(1.0) } else { 1.0 };
    let kernel = |x: f64| match resampling.method {
        Method::Cubic { a } => cubic(x.abs(), a),
        Method::Nearest(_) | Method::Linear => (1.0 - x.abs()).max(0.0),
    };
    let support = match resampling.method {
        Method::Nearest(rounding) => {
            let low = coordinate.ceil() - 1.0;
            #[expect(clippy::cast_precision_loss, reason = "an index of an axis")]
            return Ok((nearest(coordinate, rounding, scale) as f64 - low, vec![1.0]));
        }
        Method::Linear => 1.0,
        Method::Cubic { .. } => 2.0,
    };
    let first = (-support / narrow).floor() + 1.0;
    let count = to_size(2.0 - 2.0 * first)?;
    let mut factors: Vec<f64> =
        (0..count).map(|offset| kernel((first + to_f64(offset) - ratio) * narrow)).collect();
    let sum: f64 = factors.iter().sum();
    if resampling.antialias {
        factors.iter_mut().for_each(|factor| *factor /= sum);
    }
    Ok((first, factors))
}

/// The kernel of cubic convolution, for a distance that is not negative.
fn cubic(x: f64, a: f64) -> f64 {
    if x <= 1.0 {
        ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
    } else if x < 2.0 {
        ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a
    } else {
        0.0
    }
}
