//! Pooling.

use nxla_expr::build::{WindowOptions, WindowPadding};
use nxla_expr::{ExprId, Graph, Padding};
use nxla_tensor::{DType, HostTensor, Scalar, Shape};

use super::{Operator, operator};
use crate::numbers::{to_f64, to_i64};
use crate::onnx::error::{Built, invalid};
use crate::onnx::node::{Call, to_sizes};

/// The operators of this family.
pub(super) const OPERATORS: &[Operator] = &[
    operator("AveragePool", |call| {
        let x = call.input(0)?;
        Ok(vec![average_pool(call, x)?])
    }),
    operator("GlobalAveragePool", |call| {
        let (x, axes) = spatial_axes(call)?;
        Ok(vec![call.graph().mean(x, Some(&axes), true)?])
    }),
    operator("GlobalLpPool", |call| {
        let (x, axes) = spatial_axes(call)?;
        lp_norm(call, x, |graph, powers| graph.sum(powers, Some(&axes), true))
    }),
    operator("GlobalMaxPool", |call| {
        let (x, axes) = spatial_axes(call)?;
        Ok(vec![call.graph().reduce_max(x, Some(&axes), true)?])
    }),
    operator("LRN", local_response_norm),
    operator("LpPool", lp_pool),
    operator("MaxPool", max_pool),
    operator("MaxUnpool", max_unpool),
];

/// The number of window elements for which indices of maxima are computed at once.
const WINDOW_ELEMENTS: usize = 1 << 22;

/// The limit of window sizes, strides, dilations and padding: the sum of two products of such
/// numbers fits 64 bits.
const LIMIT: usize = 1 << 31;

/// Returns the sizes of the axes after batch and channel.
pub(super) fn spatial_sizes(call: &Call<'_, '_, '_>, x: ExprId) -> Built<Vec<usize>> {
    let shape = call.shape(x);
    if shape.rank() < 3 {
        let found = call.ty(x);
        return invalid(format!("input: must have spatial axes after two others; got {found}"));
    }
    Ok(shape[2..].to_vec())
}

/// Windows over the spatial axes.
pub(super) struct Windows {
    pub(super) sizes: Vec<usize>,
    pub(super) strides: Vec<usize>,
    pub(super) dilations: Vec<usize>,
    pub(super) padding: Vec<(i64, i64)>,
    /// The further padding at the end of each axis with which partial windows count.
    ceil: Vec<i64>,
}

/// Checks that a list has a positive entry for each spatial axis.
fn check_entries(name: &str, list: &[usize], spatial: usize) -> Built<()> {
    if list.len() == spatial && list.iter().all(|entry| (1..=LIMIT).contains(entry)) {
        return Ok(());
    }
    let why = format!("must have {spatial} positive entries up to {LIMIT}; got {list:?}");
    invalid(format!("{name}: {why}"))
}

impl Windows {
    /// Returns the strides and dilations of a node.
    pub(super) fn strides_and_dilations(
        call: &Call<'_, '_, '_>,
        spatial: usize,
    ) -> Built<(Vec<usize>, Vec<usize>)> {
        let list = |name: &str| -> Built<Vec<usize>> {
            let list = call.attribute_sizes(name)?.unwrap_or_else(|| vec![1; spatial]);
            check_entries(name, &list, spatial)?;
            Ok(list)
        };
        Ok((list("strides")?, list("dilations")?))
    }

    /// Reads the attributes of a convolution or pool over axes of these sizes.
    pub(super) fn read(
        call: &Call<'_, '_, '_>,
        window: &[usize],
        sizes: &[usize],
    ) -> Built<Windows> {
        let spatial = sizes.len();
        check_entries("kernel_shape", window, spatial)?;
        let (strides, dilations) = Windows::strides_and_dilations(call, spatial)?;
        let pads = call.ints_of_length("pads", 2 * spatial)?;
        let pads = pads.unwrap_or_else(|| vec![0; 2 * spatial]);
        if pads.iter().any(|pad| pad.unsigned_abs() > LIMIT as u64) {
            return invalid(format!("pads: must be at most {LIMIT}; got {pads:?}"));
        }
        let auto = call.text("auto_pad", "NOTSET")?;
        let is_ceil = call.flag("ceil_mode", false)?;
        let (mut padding, mut ceil) = (Vec::new(), Vec::new());
        for axis in 0..spatial {
            let (size, stride) = (to_i64(sizes[axis]), to_i64(strides[axis]));
            let reach = to_i64(window[axis] - 1).saturating_mul(to_i64(dilations[axis])) + 1;
            let (low, high) = match auto.as_str() {
                "NOTSET" | "" => (pads[axis], pads[spatial + axis]),
                "VALID" => (0, 0),
                "SAME_UPPER" | "SAME_LOWER" => {
                    let windows = size.div_euclid(stride) + i64::from(size % stride != 0);
                    let span = (windows - 1).saturating_mul(stride).saturating_add(reach);
                    let total = span.saturating_sub(size).max(0);
                    let half = total / 2;
                    if auto == "SAME_UPPER" { (half, total - half) } else { (total - half, half) }
                }
                other => {
                    let names = "NOTSET, VALID, SAME_UPPER or SAME_LOWER";
                    return invalid(format!("auto_pad: must be {names}; got {other:?}"));
                }
            };
            let rest = size.saturating_add(low).saturating_add(high).saturating_sub(reach);
            let partial = if rest > 0 { rest % stride } else { 0 };
            let mut more = 0;
            // A window that would start in the padding at the end is not counted.
            if is_ceil
                && partial != 0
                && (rest / stride + 1).saturating_mul(stride) < size.saturating_add(low)
            {
                more = stride - partial;
            }
            padding.push((low, high));
            ceil.push(more);
        }
        Ok(Windows { sizes: window.to_vec(), strides, dilations, padding, ceil })
    }

    /// Reads the attributes of a pool.
    fn of_pool(call: &Call<'_, '_, '_>, x: ExprId) -> Built<Windows> {
        let window = call.attribute_sizes("kernel_shape")?.unwrap_or_default();
        Windows::read(call, &window, &spatial_sizes(call, x)?)
    }

    fn around<T: Clone>(values: &[T], first: T) -> Vec<T> {
        let mut all = vec![first; 2];
        all.extend_from_slice(values);
        all
    }

    fn dimensions(&self) -> Vec<usize> {
        Windows::around(&self.sizes, 1)
    }

    /// Returns the options for a tensor whose spatial axes have this padding.
    fn options(&self, padding: &[(i64, i64)]) -> WindowOptions {
        WindowOptions {
            strides: Some(Windows::around(&self.strides, 1)),
            padding: WindowPadding::Explicit(Windows::around(padding, (0, 0))),
            dilations: Some(Windows::around(&self.dilations, 1)),
        }
    }

    /// Returns the padding with the elements that complete partial windows.
    fn whole_padding(&self) -> Vec<(i64, i64)> {
        self.padding.iter().zip(&self.ceil).map(|(&(low, high), more)| (low, high + more)).collect()
    }
}

fn max_pool(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let x = call.input(0)?;
    let windows = Windows::of_pool(call, x)?;
    let options = windows.options(&windows.whole_padding());
    let result = call.graph().window_max(x, &windows.dimensions(), &options)?;
    if !call.has_output(1) {
        return Ok(vec![result]);
    }
    let shape = call.shape(result);
    let indices = max_indices(call, x, &windows, &shape)?;
    Ok(vec![result, indices])
}

/// Returns the index in the flattened tensor of the largest element of each window. The elements of
/// all windows are gathered by a table.
fn max_indices(
    call: &mut Call<'_, '_, '_>,
    x: ExprId,
    windows: &Windows,
    result: &[usize],
) -> Built<ExprId> {
    let sizes = spatial_sizes(call, x)?;
    let is_column_major = call.flag("storage_order", false)?;
    let (outer, inner) = (Shape::from(&result[2..]), Shape::from(windows.sizes.as_slice()));
    let (count, each) = (outer.size(), inner.size());
    if count.checked_mul(each).is_none_or(|all| all > WINDOW_ELEMENTS) {
        return invalid(format!("Indices: must have at most {WINDOW_ELEMENTS} window elements"));
    }
    let (sources, places) = window_table(windows, &sizes, &outer, is_column_major);
    let table = [count, each];
    let (n, c, size) = (result[0], result[1], Shape::from(sizes.as_slice()).size());
    let graph = call.graph();
    let sources = graph.tensor(HostTensor::from_slice(&sources, table)?)?;
    let places = graph.tensor(HostTensor::from_slice(&places, table)?)?;
    let flat = graph.reshape(x, [n, c, size])?;
    let elements = graph.take(flat, sources, 2)?;
    let largest = graph.argmax(elements, Some(-1), true, false, DType::S64)?;
    let places = graph.broadcast(places, [n, c, count, each], None)?;
    let place = graph.take_along_axis(places, largest, -1)?;
    let place = graph.squeeze(place, Some(&[-1]))?;
    let channel = graph.iota([n.saturating_mul(c)], None, DType::S64)?;
    let size = graph.scalar_constant(Scalar::Int(to_i64(size)), DType::S64)?;
    let offset = graph.multiply(channel, size)?;
    let offset = graph.reshape(offset, [n, c, 1])?;
    let index = graph.add(place, offset)?;
    Ok(graph.reshape(index, Shape::from(result))?)
}

/// Returns the index of each element of each window in the flattened spatial axes, in row-major order
/// and in the order of the indices of a `MaxPool`. Padding repeats the first element of its window
/// inside the tensor, so that the index of an extremum is never outside, even if all elements are the
/// smallest number of the dtype.
fn window_table(
    windows: &Windows,
    sizes: &[usize],
    outer: &Shape,
    is_column_major: bool,
) -> (Vec<i64>, Vec<i64>) {
    let inner = Shape::from(windows.sizes.as_slice());
    let strides = Shape::from(sizes).strides();
    let (outer_strides, inner_strides) = (outer.strides(), inner.strides());
    let cell = |window: usize, element: usize| {
        let (mut source, mut place, mut column) = (0, 0, 1);
        for (axis, &size) in sizes.iter().enumerate() {
            let start = window / outer_strides[axis] % outer[axis] * windows.strides[axis];
            let offset = element / inner_strides[axis] % inner[axis] * windows.dilations[axis];
            let low = usize::try_from(windows.padding[axis].0).unwrap_or(0);
            let at = (start + offset).checked_sub(low).filter(|&at| at < size)?;
            source += at * strides[axis];
            place += at * column;
            column *= size;
        }
        let place = if is_column_major { place } else { source };
        Some((to_i64(source), to_i64(place)))
    };
    let (mut sources, mut places) = (Vec::new(), Vec::new());
    for window in 0..outer.size() {
        let cells: Vec<_> = (0..inner.size()).map(|element| cell(window, element)).collect();
        let first = cells.iter().flatten().next().copied().unwrap_or((0, 0));
        for (source, place) in cells.into_iter().map(|cell| cell.unwrap_or(first)) {
            sources.push(source);
            places.push(place);
        }
    }
    (sources, places)
}

/// Writes elements to the places that the indices of a `MaxPool` name.
fn max_unpool(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let [x, indices] = call.inputs()?;
    let shape = call.shape(x);
    let window = call.attribute_sizes("kernel_shape")?.unwrap_or_default();
    let sizes = spatial_sizes(call, x)?;
    let windows = Windows::read(call, &window, &sizes)?;
    let mut natural = vec![shape[0], shape[1]];
    for (axis, size) in sizes.iter().enumerate() {
        let (low, high) = windows.padding[axis];
        let gaps = size.saturating_sub(1).saturating_mul(windows.strides[axis]);
        let full = gaps.saturating_add(windows.sizes[axis]);
        let full = to_i64(full).saturating_sub(low).saturating_sub(high);
        natural.push(usize::try_from(full).map_err(|_| "pads: are too large")?);
    }
    let result = match call.optional(2) {
        Some(output) => call.sizes(output, "output_shape")?,
        None => natural.clone(),
    };
    // The indices refer to the tensor before it is padded to the requested shape.
    let zero = call.scalar(0.0, x)?;
    let count = Shape::from(natural.as_slice()).checked_size();
    let count = count.ok_or_else(|| {
        format!("kernel_shape, strides: must leave a result that fits memory; got {natural:?}")
    })?;
    let flat = call.broadcast(zero, &[count])?;
    let graph = call.graph();
    let (values, places) = (graph.flatten(x, None)?, graph.flatten(indices, None)?);
    let places = graph.new_axis(places, -1, None)?;
    let filled = graph.indexed_put(flat, places, values, None)?;
    let filled = graph.reshape(filled, Shape::from(natural.as_slice()))?;
    if result.len() != natural.len() {
        let (expected, found) = (natural.len(), result.len());
        return invalid(format!("output_shape: must have {expected} entries; got {found}"));
    }
    let padding: Vec<Padding> = natural
        .iter()
        .zip(&result)
        .map(|(&own, &size)| Padding { low: 0, high: to_i64(size) - to_i64(own), interior: 0 })
        .collect();
    Ok(vec![graph.pad(filled, zero, &padding)?])
}

pub(super) fn average_pool(call: &mut Call<'_, '_, '_>, x: ExprId) -> Built<ExprId> {
    let windows = Windows::of_pool(call, x)?;
    let counts_padding = call.flag("count_include_pad", false)?;
    let dtype = call.dtype(x);
    let sizes = spatial_sizes(call, x)?;
    let whole = windows.whole_padding();
    let one = call.scalar_of(1.0, dtype.at_least_f32())?;
    let graph = call.graph();
    let wide = graph.as_type(x, dtype.at_least_f32())?;
    let sums = graph.window_sum(wide, &windows.dimensions(), &windows.options(&whole))?;
    let mut shape = vec![1, 1];
    let rest: Vec<(i64, i64)> =
        if counts_padding { windows.ceil.iter().map(|&more| (0, more)).collect() } else { whole };
    for (&size, &(low, high)) in sizes.iter().zip(&windows.padding) {
        let padded = if counts_padding {
            let size = to_i64(size);
            usize::try_from(size.saturating_add(low).saturating_add(high)).unwrap_or(0)
        } else {
            size
        };
        shape.push(padded);
    }
    let ones = graph.broadcast(one, shape, None)?;
    let counts = graph.window_sum(ones, &windows.dimensions(), &windows.options(&rest))?;
    let means = graph.divide(sums, counts)?;
    Ok(graph.as_type(means, dtype)?)
}

/// Returns `x` to a power that is a constant.
fn to_power(call: &mut Call<'_, '_, '_>, x: ExprId, power: f64) -> Built<ExprId> {
    let power = call.scalar(power, x)?;
    Ok(call.graph().pow(x, power)?)
}

/// Returns the `p`-th root of a sum of the `p`-th powers of magnitudes. The order `p` is an attribute.
fn lp_norm(
    call: &mut Call<'_, '_, '_>,
    x: ExprId,
    sum: impl FnOnce(&mut Graph, ExprId) -> nxla_expr::Result<ExprId>,
) -> Built<Vec<ExprId>> {
    #[expect(clippy::cast_precision_loss, reason = "orders of norms are small")]
    let p = call.int("p", 2)? as f64;
    let norm = call.in_wide_float(x, |call, x| {
        let size = call.graph().abs(x)?;
        let powers = to_power(call, size, p)?;
        let sums = sum(call.graph(), powers)?;
        to_power(call, sums, 1.0 / p)
    })?;
    Ok(vec![norm])
}

fn lp_pool(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let x = call.input(0)?;
    let windows = Windows::of_pool(call, x)?;
    let options = windows.options(&windows.whole_padding());
    lp_norm(call, x, |graph, powers| graph.window_sum(powers, &windows.dimensions(), &options))
}

/// Returns the operand of a pool over all spatial axes, and these axes.
fn spatial_axes(call: &Call<'_, '_, '_>) -> Built<(ExprId, Vec<i64>)> {
    let x = call.input(0)?;
    let spatial = spatial_sizes(call, x)?.len();
    Ok((x, (2..).take(spatial).collect()))
}

/// Divides by a power of the sum of squares over neighboring channels.
fn local_response_norm(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let x = call.input(0)?;
    let size = to_sizes(&[call.int("size", 1)?], "size")?[0];
    if size == 0 || call.rank(x) < 2 {
        return invalid("size: must be positive, for an input with channels");
    }
    let (alpha, beta) = (call.float("alpha", 1e-4)?, call.float("beta", 0.75)?);
    let bias = call.float("bias", 1.0)?;
    let low = to_i64((size - 1) / 2);
    let high = to_i64(size / 2);
    let mut dimensions = vec![1; call.rank(x)];
    let mut padding = vec![(0, 0); call.rank(x)];
    (dimensions[1], padding[1]) = (size, (low, high));
    let options = WindowOptions::default().padding(WindowPadding::Explicit(padding));
    let normal = call.in_wide_float(x, |call, x| {
        let factor = call.scalar(alpha / to_f64(size), x)?;
        let bias = call.scalar(bias, x)?;
        let graph = call.graph();
        let square = graph.multiply(x, x)?;
        let sums = graph.window_sum(square, &dimensions, &options)?;
        let scaled = graph.multiply(sums, factor)?;
        let base = graph.add(scaled, bias)?;
        let divisor = to_power(call, base, beta)?;
        Ok(call.graph().divide(x, divisor)?)
    })?;
    Ok(vec![normal])
}
