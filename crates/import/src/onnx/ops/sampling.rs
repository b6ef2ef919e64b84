//! Samples of images at computed positions, and images from overlapping blocks.

use nxla_expr::build::{SliceStart, Subscript, Update};
use nxla_expr::{ExprId, Graph, Padding};
use nxla_tensor::{DType, Scalar, Shape};

use super::resize::interpolation_dtype;
use super::window::{Windows, spatial_sizes};
use super::{Operator, operator};
use crate::numbers::{to_f64, to_i64};
use crate::onnx::error::{Built, invalid};
use crate::onnx::node::Call;

/// The operators of this family.
pub(super) const OPERATORS: &[Operator] = &[
    operator("AffineGrid", affine_grid),
    operator("Col2Im", column_to_image),
    operator("GridSample", grid_sample),
];

/// The coefficient of cubic convolution.
const CUBIC: f64 = -0.75;

/// Returns `scale x + offset`.
fn line(graph: &mut Graph, x: ExprId, scale: f64, offset: f64) -> Built<ExprId> {
    let dtype = graph.dtype(x);
    let scale = graph.scalar_constant(Scalar::Float(scale), dtype)?;
    let offset = graph.scalar_constant(Scalar::Float(offset), dtype)?;
    let scaled = graph.multiply(x, scale)?;
    Ok(graph.add(scaled, offset)?)
}

/// Multiplies positions of an image, whose axes go from -1 to 1, by matrices. Coordinates are in the
/// opposite order of axes.
fn affine_grid(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let [theta, size] = call.inputs()?;
    let sizes = call.sizes(size, "size")?;
    let rank = sizes.len().saturating_sub(2);
    let shape = call.shape(theta);
    if rank == 0 || shape[..] != [sizes[0], rank, rank + 1] {
        let found = call.ty(theta);
        return invalid(format!("theta: must fit the size {sizes:?}; got {found}"));
    }
    let (dtype, aligns) = (call.dtype(theta), call.flag("align_corners", false)?);
    let image = Shape::from(&sizes[2..]);
    let one = call.scalar_of(1.0, dtype)?;
    let graph = call.graph();
    let mut coordinates = Vec::with_capacity(rank + 1);
    for axis in (0..rank).rev() {
        let position = graph.iota(image.clone(), Some(to_i64(axis)), dtype)?;
        let size = to_f64(image[axis]);
        let (scale, offset) = if !aligns {
            (2.0 / size, 1.0 / size - 1.0)
        } else if image[axis] == 1 {
            (0.0, 0.0)
        } else {
            (2.0 / (size - 1.0), -1.0)
        };
        coordinates.push(line(graph, position, scale, offset)?);
    }
    coordinates.push(graph.broadcast(one, image, None)?);
    let positions = graph.stack(&coordinates, -1, None)?;
    // From [batch, rank, …] to [batch, …, rank].
    let last = to_i64(rank);
    let product = graph.dot_general(theta, &[2], &[], positions, &[last], &[])?;
    Ok(vec![graph.move_axes(product, &[1], &[-1])?])
}

/// The interpolation between elements of an image, and the elements outside.
pub(super) struct Sampling {
    mode: Mode,
    padding: PaddingMode,
    aligns: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Nearest,
    Linear,
    Cubic,
}

/// The elements outside of an image.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PaddingMode {
    Zeros,
    Border,
    Reflection,
}

impl Sampling {
    /// Linear interpolation between elements; elements outside of the image are zero.
    pub(super) const LINEAR: Sampling =
        Sampling { mode: Mode::Linear, padding: PaddingMode::Zeros, aligns: true };

    /// Reads the attributes of `GridSample`.
    fn read(call: &Call<'_, '_, '_>) -> Built<Self> {
        let mode = match call.text("mode", "linear")?.as_str() {
            "nearest" => Mode::Nearest,
            "linear" | "bilinear" => Mode::Linear,
            "cubic" | "bicubic" => Mode::Cubic,
            other => {
                let why = format!("mode: must be nearest, linear or cubic; got {other:?}");
                return invalid(why);
            }
        };
        let padding = match call.text("padding_mode", "zeros")?.as_str() {
            "zeros" => PaddingMode::Zeros,
            "border" => PaddingMode::Border,
            "reflection" => PaddingMode::Reflection,
            other => {
                let names = "zeros, border or reflection";
                return invalid(format!("padding_mode: must be {names}; got {other:?}"));
            }
        };
        Ok(Self { mode, padding, aligns: call.flag("align_corners", false)? })
    }

    /// Returns the first and the last position of an axis.
    fn ends(&self, size: usize) -> (f64, f64) {
        if self.aligns { (0.0, to_f64(size) - 1.0) } else { (-0.5, to_f64(size) - 0.5) }
    }

    /// Returns the position in elements of coordinates from -1 to 1, moved into the image.
    fn position(&self, graph: &mut Graph, coordinate: ExprId, size: usize) -> Built<ExprId> {
        let (low, high) = self.ends(size);
        let half = (high - low) / 2.0;
        let mut position = line(graph, coordinate, half, low + half)?;
        if self.mode == Mode::Nearest {
            position = graph.round_half_even(position)?;
        }
        if self.mode == Mode::Cubic {
            // The padding applies to each of the 4 neighbors, so the weights must belong to the
            // position beyond the border.
            return Ok(position);
        }
        let moved = match self.padding {
            PaddingMode::Zeros => return Ok(position),
            PaddingMode::Border => clamp_to(graph, position, 0.0, to_f64(size) - 1.0)?,
            PaddingMode::Reflection => reflect(graph, position, low, high)?,
        };
        let dtype = graph.dtype(position);
        let low = graph.scalar_constant(Scalar::Float(low), dtype)?;
        let high = graph.scalar_constant(Scalar::Float(high), dtype)?;
        let (below, above) = (graph.less(position, low)?, graph.greater(position, high)?);
        let is_outside = graph.logical_or(below, above)?;
        Ok(graph.select(is_outside, moved, position)?)
    }

    /// Returns the neighbors of a position along an axis.
    fn neighbors(&self, graph: &mut Graph, position: ExprId, size: usize) -> Built<Vec<Neighbor>> {
        let first = match self.mode {
            Mode::Nearest => position,
            Mode::Linear | Mode::Cubic => graph.floor(position)?,
        };
        let ratio = graph.subtract(position, first)?;
        let weights: Vec<(f64, Option<ExprId>)> = match self.mode {
            Mode::Nearest => vec![(0.0, None)],
            Mode::Linear => vec![(0.0, Some(line(graph, ratio, -1.0, 1.0)?)), (1.0, Some(ratio))],
            Mode::Cubic => {
                let a = CUBIC;
                let (inner, outer) =
                    ([a + 2.0, -a - 3.0, 0.0, 1.0], [a, -5.0 * a, 8.0 * a, -4.0 * a]);
                let mut weights = Vec::with_capacity(4);
                for (offset, sign, start, factors) in [
                    (-1.0, 1.0, 1.0, outer),
                    (0.0, 1.0, 0.0, inner),
                    (1.0, -1.0, 1.0, inner),
                    (2.0, -1.0, 2.0, outer),
                ] {
                    let distance = line(graph, ratio, sign, start)?;
                    weights.push((offset, Some(polynomial(graph, distance, factors)?)));
                }
                weights
            }
        };
        let mut neighbors = Vec::with_capacity(weights.len());
        for (offset, weight) in weights {
            let index = line(graph, first, 1.0, offset)?;
            neighbors.push(self.neighbor(graph, index, weight, size)?);
        }
        Ok(neighbors)
    }

    /// Returns the neighbors of positions, which have an entry for each axis of an image, as indices of
    /// the flattened image.
    pub(super) fn neighbors_in_image(
        &self,
        graph: &mut Graph,
        positions: &[ExprId],
        sizes: &[usize],
    ) -> Built<Vec<Neighbor>> {
        let strides = Shape::from(sizes).strides();
        let mut combined = Vec::new();
        for (axis, &position) in positions.iter().enumerate() {
            let mut neighbors = self.neighbors(graph, position, sizes[axis])?;
            let stride = Scalar::Int(to_i64(strides[axis]));
            let stride = graph.scalar_constant(stride, DType::S64)?;
            for neighbor in &mut neighbors {
                neighbor.index = graph.multiply(neighbor.index, stride)?;
            }
            combined = if axis == 0 { neighbors } else { products(graph, &combined, &neighbors)? };
        }
        Ok(combined)
    }

    /// Moves an index into the axis. With zeros, an element outside is zero.
    fn neighbor(
        &self,
        graph: &mut Graph,
        index: ExprId,
        weight: Option<ExprId>,
        size: usize,
    ) -> Built<Neighbor> {
        let last = to_f64(size) - 1.0;
        let (low, high) = self.ends(size);
        let mut is_inside = None;
        let mut inner = index;
        match self.padding {
            PaddingMode::Border => {}
            PaddingMode::Reflection => inner = reflect(graph, index, low, high)?,
            PaddingMode::Zeros => {
                let inside = clamp_to(graph, index, 0.0, last)?;
                is_inside = Some(graph.equal(inside, index)?);
            }
        }
        let inner = clamp_to(graph, inner, 0.0, last)?;
        Ok(Neighbor { index: graph.as_type(inner, DType::S64)?, weight, is_inside })
    }
}

/// An index along an axis, and the factor of the element; without a factor it is one. The element is
/// zero where the position is outside of the image.
#[derive(Clone, Copy)]
pub(super) struct Neighbor {
    index: ExprId,
    weight: Option<ExprId>,
    is_inside: Option<ExprId>,
}

fn clamp_to(graph: &mut Graph, x: ExprId, low: f64, high: f64) -> Built<ExprId> {
    let dtype = graph.dtype(x);
    let low = graph.scalar_constant(Scalar::Float(low), dtype)?;
    let high = graph.scalar_constant(Scalar::Float(high), dtype)?;
    Ok(graph.clip(x, low, high)?)
}

/// Reflects positions at two ends until they are between them.
fn reflect(graph: &mut Graph, x: ExprId, low: f64, high: f64) -> Built<ExprId> {
    let span = high - low;
    if span <= 0.0 {
        return line(graph, x, 0.0, low);
    }
    let from_low = line(graph, x, 1.0, -low)?;
    let distance = graph.abs(from_low)?;
    let period = graph.scalar_constant(Scalar::Float(2.0 * span), graph.dtype(x))?;
    let rest = graph.remainder(distance, period)?;
    // A triangle wave: the distance from the middle of the period.
    let from_middle = line(graph, rest, 1.0, -span)?;
    let from_middle = graph.abs(from_middle)?;
    line(graph, from_middle, -1.0, span + low)
}

/// Returns the value of a cubic polynomial, whose highest coefficient is first.
fn polynomial(graph: &mut Graph, x: ExprId, factors: [f64; 4]) -> Built<ExprId> {
    let mut sum = line(graph, x, factors[0], factors[1])?;
    for factor in &factors[2..] {
        let product = graph.multiply(sum, x)?;
        sum = line(graph, product, 1.0, *factor)?;
    }
    Ok(sum)
}

/// Interpolates between the elements around positions. The axes of the image are one during the
/// gathers.
fn grid_sample(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let [x, grid] = call.inputs()?;
    let (sampling, sizes) = (Sampling::read(call)?, spatial_sizes(call, x)?);
    let (shape, grid_shape) = (call.shape(x), call.shape(grid));
    let rank = sizes.len();
    if grid_shape.rank() != rank + 2
        || grid_shape.last() != Some(&rank)
        || grid_shape[0] != shape[0]
    {
        let (x, grid) = (call.ty(x), call.ty(grid));
        return invalid(format!("grid: must have positions in {x}; got {grid}"));
    }
    if sizes.contains(&0) {
        return invalid(format!("X: must not be empty; got {}", call.ty(x)));
    }
    let (dtype, wide) = (call.dtype(x), call.dtype(grid).at_least_f32());
    let graph = call.graph();
    let grid = graph.as_type(grid, wide)?;
    let mut positions = Vec::with_capacity(rank);
    for (axis, &size) in sizes.iter().enumerate() {
        let one = graph.slice_along_axis(grid, SliceStart::at(rank - 1 - axis), 1, -1, 1)?;
        let coordinate = graph.squeeze(one, Some(&[-1]))?;
        positions.push(sampling.position(graph, coordinate, size)?);
    }
    let combined = sampling.neighbors_in_image(graph, &positions, &sizes)?;
    let outer = Shape::from(&grid_shape[..=rank]);
    let flat = graph.move_axes(x, &[1], &[-1])?;
    let flat = graph.reshape(flat, [shape[0], Shape::from(sizes.as_slice()).size(), shape[1]])?;
    let values = match sampling.mode {
        Mode::Nearest => dtype,
        Mode::Linear | Mode::Cubic => interpolation_dtype(dtype),
    };
    let flat = graph.as_type(flat, values)?;
    let batch = graph.iota(outer, Some(0), DType::S64)?;
    let sum = interpolate(graph, flat, &[batch], &combined)?;
    let result = graph.move_axes(sum, &[-1], &[1])?;
    Ok(vec![graph.as_type(result, dtype)?])
}

/// Returns the weighted sum of the neighbors of positions. The axes of `flat` are an axis for each of
/// the indices `outer`, an axis of elements, and an axis of channels.
pub(super) fn interpolate(
    graph: &mut Graph,
    flat: ExprId,
    outer: &[ExprId],
    neighbors: &[Neighbor],
) -> Built<ExprId> {
    let dtype = graph.dtype(flat);
    let zero = graph.scalar_constant(Scalar::zero(dtype), dtype)?;
    let mut sum = None;
    for neighbor in neighbors {
        let mut items: Vec<Subscript> = outer.iter().map(|&index| Subscript::Take(index)).collect();
        items.push(Subscript::Take(neighbor.index));
        let mut term = graph.subscript(flat, &items)?;
        if let Some(is_inside) = neighbor.is_inside {
            // A weight of zero would turn an infinite element into NaN.
            let is_inside = graph.new_axis(is_inside, -1, None)?;
            term = graph.select(is_inside, term, zero)?;
        }
        if let Some(weight) = neighbor.weight {
            let weight = graph.new_axis(weight, -1, None)?;
            term = graph.multiply(term, weight)?;
        }
        sum = Some(match sum {
            Some(sum) => graph.add(sum, term)?,
            None => term,
        });
    }
    Ok(sum.ok_or("X: must have spatial axes")?)
}

/// Combines each neighbor along the first axes with each neighbor along another axis.
fn products(graph: &mut Graph, first: &[Neighbor], second: &[Neighbor]) -> Built<Vec<Neighbor>> {
    let mut all = Vec::with_capacity(first.len() * second.len());
    for a in first {
        for b in second {
            let weight = match (a.weight, b.weight) {
                (Some(a), Some(b)) => Some(graph.multiply(a, b)?),
                (a, b) => a.or(b),
            };
            let is_inside = match (a.is_inside, b.is_inside) {
                (Some(a), Some(b)) => Some(graph.logical_and(a, b)?),
                (a, b) => a.or(b),
            };
            all.push(Neighbor { index: graph.add(a.index, b.index)?, weight, is_inside });
        }
    }
    Ok(all)
}

/// Adds blocks `[batch, channels * block, positions]` to the image that they are windows of.
fn column_to_image(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let [x, image, block] = call.inputs()?;
    let (image, block) = (call.sizes(image, "image_shape")?, call.sizes(block, "block_shape")?);
    let windows = Windows::read(call, &block, &image)?;
    let (shape, elements) = (call.shape(x), Shape::from(block.as_slice()).size());
    let (mut counts, mut padded) = (Vec::new(), Vec::new());
    for (axis, &size) in image.iter().enumerate() {
        let (low, high) = windows.padding[axis];
        let size = to_i64(size).saturating_add(low.saturating_add(high));
        let size = usize::try_from(size).unwrap_or(0);
        let reach = (block[axis] - 1).saturating_mul(windows.dilations[axis]);
        counts.push(size.saturating_sub(reach).div_ceil(windows.strides[axis]));
        padded.push(size);
    }
    let positions = Shape::from(counts.as_slice()).checked_size();
    let [batch, columns, found] = shape[..] else {
        return invalid(format!("input: must have 3 axes; got {}", call.ty(x)));
    };
    if positions != Some(found) || !columns.is_multiple_of(elements) {
        let why = format!("must have blocks of {elements} at {counts:?} positions");
        return invalid(format!("input: {why}; got {}", call.ty(x)));
    }
    let channels = columns / elements;
    let whole = Shape::from(padded);
    let total = whole.checked_size().ok_or("pads: are too large")?;
    let window_shape: Vec<usize> = block.iter().chain(&counts).copied().collect();
    let zero = call.scalar(0.0, x)?;
    let empty = call.broadcast(zero, &[batch, channels, total])?;
    let graph = call.graph();
    let flat = flat_indices(graph, &windows, &window_shape, &whole)?;
    let mut parts = vec![batch, channels];
    parts.extend(&window_shape);
    let parts = graph.reshape(x, parts)?;
    let items =
        [Subscript::whole_axis(batch), Subscript::whole_axis(channels), Subscript::Take(flat)];
    let filled = graph.subscript_update(empty, &items, parts, Update::Add)?;
    let mut full = vec![batch, channels];
    full.extend(&whole);
    let filled = graph.reshape(filled, full)?;
    let mut crop = vec![Padding::NONE; 2];
    crop.extend(windows.padding.iter().map(|&(low, high)| Padding {
        low: -low,
        high: -high,
        interior: 0,
    }));
    Ok(vec![graph.pad(filled, zero, &crop)?])
}

/// Returns the index in a flattened image of each element of each window. The axes of windows come
/// before the axes of positions.
fn flat_indices(
    graph: &mut Graph,
    windows: &Windows,
    window_shape: &[usize],
    image: &Shape,
) -> Built<ExprId> {
    let mut flat = graph.scalar_constant(Scalar::Int(0), DType::S64)?;
    let rank = image.rank();
    for (axis, stride) in image.strides().into_iter().enumerate() {
        for (along, step) in [(axis, windows.dilations[axis]), (rank + axis, windows.strides[axis])]
        {
            let along = to_i64(along);
            let index = graph.iota(Shape::from(window_shape), Some(along), DType::S64)?;
            let step = graph
                .scalar_constant(Scalar::Int(to_i64(step.saturating_mul(stride))), DType::S64)?;
            let moved = graph.multiply(index, step)?;
            flat = graph.add(flat, moved)?;
        }
    }
    Ok(flat)
}
