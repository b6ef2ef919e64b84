//! Convolutions as products, in tiles.
//!
//! The product of a group has a row for each output channel, and a column for each position of each image. Threads
//! compute tiles of neighboring columns, whose patches stay in the cache.
//!
//! The patches of a long kernel are stored by position, so that runs are long. Its product has few columns, so that
//! threads also share its channels.

use std::borrow::Cow;
use std::ops::Range;

use super::conv::Geometry;
use super::matmul::{Factor, Sizes, matmul};
use super::padded::{Padded, SLACK};
use crate::context::{self, Cx};
use crate::kernels::limits::CACHE_BYTES;
use crate::kernels::matrix::Kernels;
use crate::kernels::number::Number;
use crate::kernels::strided::Strided;

/// The bytes of the patches of a tile, which stay in the second-level cache.
const PATCH_BYTES: usize = 2 * CACHE_BYTES;

/// Columns of a tile: at least a few registers of products, and a multiple of one register.
const LEAST_TILE: usize = 48;
const MOST_TILE: usize = 1024;
const TILE_STEP: usize = 16;

/// The number of tasks that balances threads. It does not depend on the number of threads, because
/// results must not.
const TASKS: usize = 16;

pub(super) fn run<T: Number + Kernels>(
    cx: Cx<'_>,
    geometry: &Geometry,
    padded: &Padded<T>,
    kernel: &[T],
    out: &mut [T],
) {
    // A multiplication is much cheaper than a copy of an element.
    let pays = cx.pays(out.len().saturating_mul(geometry.inner().div_ceil(16)));
    let product = Product { geometry, padded, kernel: ordered(cx, geometry, kernel) };
    let tiles = product.tiles(out);
    if pays && tiles.len() > 1 {
        let alone = cx.alone();
        cx.each(tiles, |tile| product.fill(&alone, tile));
    } else {
        tiles.into_iter().for_each(|tile| product.fill(cx, tile));
    }
}

/// The kernel as `[group][output][inner]`, or as `[group][inner][output]` if it is long.
fn ordered<'a, T: Number>(cx: Cx<'_>, geometry: &Geometry, kernel: &'a [T]) -> Cow<'a, [T]> {
    if !geometry.is_long_kernel() {
        return kernel.into();
    }
    let (outputs, inner) = (geometry.group_outputs, geometry.inner());
    let axes = [(geometry.groups, outputs * inner), (inner, 1), (outputs, inner)];
    let rule = Strided::new(0, axes.map(|(count, step)| (count, step as isize)));
    let mut ordered = context::filled(T::default(), kernel.len());
    rule.read_all(cx, kernel, &mut ordered);
    ordered.into()
}

/// A convolution with its operands.
struct Product<'a, T: Clone> {
    geometry: &'a Geometry,
    padded: &'a Padded<T>,
    kernel: Cow<'a, [T]>,
}

/// Columns of the product of a group, and their parts of the result: for each image, its rows for
/// all output channels, or a part of each row.
struct Tile<'a, T> {
    group: usize,
    columns: Range<usize>,
    parts: Vec<&'a mut [T]>,
}

/// Neighboring columns whose positions are in one row of the result.
struct Run {
    /// The first plane of the input.
    plane: usize,
    row: usize,
    /// The first position in the row.
    first: usize,
    count: usize,
}

impl<T: Number + Kernels> Product<'_, T> {
    /// Divides the columns of each group.
    fn tiles<'o>(&self, out: &'o mut [T]) -> Vec<Tile<'o, T>> {
        let (geometry, size) = (self.geometry, self.geometry.out_size);
        let columns = geometry.batch * size;
        // A long kernel is read in parts of at least one channel.
        let depth = if geometry.is_long_kernel() { geometry.kernel_size } else { geometry.inner() };
        let widest = (PATCH_BYTES / (depth * size_of::<T>())).clamp(LEAST_TILE, MOST_TILE);
        let count = columns.div_ceil(widest).max(TASKS.min(columns.div_ceil(LEAST_TILE)));
        let width = columns.div_ceil(count).next_multiple_of(TILE_STEP);
        // Results of long kernels are small. A tile of whole images has one part for each image.
        let rounded = width - width % size;
        let width = if geometry.is_long_kernel() { rounded.max(width.min(size)) } else { width };
        let count = columns.div_ceil(width);
        let mut tiles: Vec<Tile<'o, T>> = (0..geometry.groups * count)
            .map(|index| {
                let (group, first) = (index / count, index % count * width);
                Tile { group, columns: first..columns.min(first + width), parts: Vec::new() }
            })
            .collect();
        let images = out.chunks_exact_mut(geometry.group_outputs * size).enumerate();
        for (index, rows) in images {
            let (image, group) = (index / geometry.groups, index % geometry.groups);
            let tiles = &mut tiles[group * count..][..count];
            if width % size == 0 {
                tiles[image * size / width].parts.push(rows);
                continue;
            }
            for mut row in rows.chunks_exact_mut(size) {
                let mut column = image * size;
                while !row.is_empty() {
                    let tile = &mut tiles[column / width];
                    let (part, rest) = row.split_at_mut(row.len().min(tile.columns.end - column));
                    (row, column) = (rest, column + part.len());
                    tile.parts.push(part);
                }
            }
        }
        tiles
    }

    /// Computes the columns of a tile.
    fn fill(&self, cx: Cx<'_>, tile: Tile<'_, T>) {
        let (count, outputs) = (tile.columns.len(), self.geometry.group_outputs);
        let mut scratch = cx.scratch();
        let product = scratch.elements::<T>(outputs * count);
        let is_long = self.geometry.is_long_kernel();
        if is_long {
            self.add_channels(cx, &tile, product);
        } else {
            self.multiply_patches(cx, &tile, product);
        }
        let (mut first, mut output) = (0, 0);
        for row in tile.parts.into_iter().flat_map(|part| part.chunks_mut(self.geometry.out_size)) {
            if is_long {
                let column = product[first * outputs..].chunks_exact(outputs);
                row.iter_mut().zip(column).for_each(|(out, sums)| *out = sums[output]);
            } else {
                row.copy_from_slice(&product[output * count + first..][..row.len()]);
            }
            output += 1;
            if output == outputs {
                (first, output) = (first + row.len(), 0);
            }
        }
    }

    /// Writes `[output][column]`, the products of the kernel and the patches of a tile.
    fn multiply_patches(&self, cx: Cx<'_>, tile: &Tile<'_, T>, product: &mut [T]) {
        let Geometry { group_outputs: rows, kernel_size, .. } = *self.geometry;
        let (columns, inner) = (tile.columns.len(), self.geometry.inner());
        let (taps, runs) = (self.geometry.last().taps, self.runs(tile).collect::<Vec<_>>());
        let mut scratch = cx.scratch();
        let patches = scratch.elements::<T>(inner * columns + SLACK);
        for index in 0..inner {
            let (channel, tap) = (index / kernel_size, index % kernel_size);
            let mut out = &mut patches[index * columns..];
            for &Run { plane, row, first, count } in &runs {
                let input_row = self.padded.input_rows(row)[tap / taps];
                let plane = plane + channel;
                self.padded.copy_run(plane, input_row, tap % taps, (first, count), out);
                out = &mut out[count..];
            }
        }
        let elements = &self.kernel[tile.group * rows * inner..][..rows * inner];
        let left = Factor { elements, inner_first: false };
        let right = Factor { elements: &patches[..inner * columns], inner_first: true };
        matmul(cx, Sizes { batches: 1, rows, inner, columns }, left, right, product);
    }

    /// Writes `[column][output]`, the products of the patches of a tile and a long kernel, as a sum over parts of the
    /// channels.
    fn add_channels(&self, cx: Cx<'_>, tile: &Tile<'_, T>, product: &mut [T]) {
        let Geometry { group_channels, kernel_size, .. } = *self.geometry;
        let most = (PATCH_BYTES / (kernel_size * tile.columns.len() * size_of::<T>())).max(1);
        let columns = self.geometry.batch * self.geometry.out_size;
        let tiles = self.geometry.groups * columns.div_ceil(tile.columns.len());
        let most = most.min(group_channels.div_ceil(TASKS.div_ceil(tiles)));
        let parts = group_channels.div_ceil(most);
        if parts == 1 {
            return self.multiply_channels(cx, tile, 0..group_channels, product);
        }
        let parts = cx.collect(parts, &|part| {
            let first = part * most;
            let mut sums = context::filled(T::default(), product.len());
            let channels = first..group_channels.min(first + most);
            self.multiply_channels(cx, tile, channels, &mut sums);
            sums
        });
        product.fill(T::default());
        for part in parts {
            product.iter_mut().zip(part).for_each(|(sum, x)| *sum = sum.plus(x));
        }
    }

    /// Writes what some channels contribute to the product of a long kernel.
    fn multiply_channels(
        &self,
        cx: Cx<'_>,
        tile: &Tile<'_, T>,
        channels: Range<usize>,
        product: &mut [T],
    ) {
        let Geometry { group_outputs: columns, group_channels, kernel_size, .. } = *self.geometry;
        let (rows, inner) = (tile.columns.len(), channels.len() * kernel_size);
        let taps = self.geometry.last().taps;
        let mut scratch = cx.scratch();
        let patches = scratch.elements::<T>(rows * inner + SLACK);
        let mut written = 0;
        for run in self.runs(tile) {
            let input_rows = self.padded.input_rows(run.row);
            for position in run.first..run.first + run.count {
                for channel in channels.clone() {
                    for &row in input_rows {
                        let (plane, out) = (run.plane + channel, &mut patches[written..]);
                        self.padded.copy_run(plane, row, position, (0, taps), out);
                        written += taps;
                    }
                }
            }
        }
        let first = (tile.group * group_channels + channels.start) * kernel_size;
        let left = Factor { elements: &patches[..rows * inner], inner_first: false };
        let elements = &self.kernel[first * columns..][..inner * columns];
        let right = Factor { elements, inner_first: true };
        matmul(cx, Sizes { batches: 1, rows, inner, columns }, left, right, product);
    }

    /// The runs of the columns of a tile.
    fn runs(&self, tile: &Tile<'_, T>) -> impl Iterator<Item = Run> {
        let (geometry, group, columns) = (self.geometry, tile.group, tile.columns.clone());
        let width = geometry.last().count;
        let mut column = columns.start;
        std::iter::from_fn(move || {
            let (image, position) = (column / geometry.out_size, column % geometry.out_size);
            let (row, first) = (position / width, position % width);
            let count = (width - first).min(columns.end - column);
            column += count;
            (count > 0).then(|| Run { plane: geometry.plane(image, group), row, first, count })
        })
    }
}
