//! Convolutions, as products of the kernel and a matrix of the input's patches.
//!
//! Both operands are first brought into the canonical layout `[batch][channel][spatial…]`. The
//! patches are computed tile by tile, so that the matrix of a large image is never stored as a
//! whole. A group with one output channel, as in depthwise convolutions, would use each patch once.
//! Rows of the input are then accumulated in place.

use nxla_expr::Conv;
use nxla_tensor::{HostTensor, Shape};

use super::matmul::{Factor, Sizes, matmul};
use super::phases;
use crate::context::{self, Cx, Fault};
use crate::kernels::elementwise::vectorize;
use crate::kernels::limits::CACHE_BYTES;
use crate::kernels::matrix::Kernels;
use crate::kernels::movement::permuted;
use crate::kernels::number::{Number, match_number};
use crate::kernels::window::WindowAxis;

/// Positions of the result whose patches are computed at a time, and the bytes of those patches,
/// which should stay in the second-level cache.
const TILE: usize = 1024;
const LEAST_TILE: usize = 128;
const TILE_STEP: usize = 64;

pub(super) fn conv(
    cx: Cx<'_>,
    attributes: &Conv,
    input: &HostTensor,
    kernel: &HostTensor,
    shape: &Shape,
) -> Result<HostTensor, Fault> {
    let input = permuted(cx, input, &attributes.input_permutation)?;
    let kernel = permuted(cx, kernel, &attributes.kernel_permutation)?;
    let canonical: Shape = attributes.output_permutation.iter().map(|&axis| shape[axis]).collect();
    let (input_shape, kernel_shape) = (input.shape(), kernel.shape());
    let result = match_number!(input.dtype(), T => {
        let dtype = input.dtype();
        let (input, kernel) = (context::slice::<T>(&input), context::slice::<T>(&kernel));
        context::build(dtype, &canonical, |out: &mut [T]| {
            if phases::has_gaps(attributes) {
                let (input, kernel) = ((input, &input_shape[..]), (kernel, &kernel_shape[..]));
                phases::run(cx, attributes, input, kernel, (out, &canonical));
            } else {
                Geometry::new(attributes, input_shape, kernel_shape, &canonical)
                    .run(cx, input, kernel, out);
            }
        })
    })?;
    // Axis `i` of the canonical layout is axis `output_permutation[i]` of the result; the
    // transposition needs the inverse permutation.
    let mut inverse = vec![0; shape.rank()];
    for (canonical, &axis) in attributes.output_permutation.iter().enumerate() {
        inverse[axis] = canonical;
    }
    permuted(cx, &result, &inverse)
}

/// The sizes of a convolution in canonical layout, whose input has no [gaps](phases).
pub(super) struct Geometry {
    /// Images of the result.
    batch: usize,
    /// Groups of output channels; each reads separate input channels, or a separate part of the
    /// batch.
    groups: usize,
    batch_groups: usize,
    in_channels: usize,
    /// Input channels that one output channel reads.
    group_channels: usize,
    group_outputs: usize,
    axes: Vec<WindowAxis>,
    /// Elements of the spatial axes of input, kernel and result.
    in_size: usize,
    kernel_size: usize,
    out_size: usize,
}

/// Reads the inputs of one tap of the kernel in a row, for the positions that begin at `column`.
fn read_along_result<T: Copy>(
    axis: &WindowAxis,
    row: &[T],
    tap: usize,
    column: usize,
    out: &mut [T],
) {
    read_inside(row, (column * axis.stride) as i64 + axis.offset(tap), axis.stride, out);
}

/// Adds the products of the taps of a kernel row with a row of the input, for neighboring
/// positions. No tap is outside of the row.
#[inline(always)]
fn add_runs<T: Number>(
    axis: &WindowAxis,
    row: &[T],
    column: usize,
    weights: &[T],
    sums: &mut [T::Sum],
) {
    for (tap, &weight) in weights.iter().enumerate() {
        let first = column as i64 + axis.offset(tap);
        let skip = usize::try_from(-first).unwrap_or(0).min(sums.len());
        let Ok(first) = usize::try_from(first + skip as i64) else { continue };
        let Some(row) = row.get(first..) else { continue };
        for (sum, &x) in sums[skip..].iter_mut().zip(row) {
            *sum = T::add_product(*sum, weight, T::widen(x), false);
        }
    }
}

/// Reads every `step`th element of a row from `first` on, and skips positions outside of the row.
fn read_inside<T: Copy>(row: &[T], first: i64, step: usize, out: &mut [T]) {
    let skip = usize::try_from(-first).map_or(0, |before| before.div_ceil(step)).min(out.len());
    let Ok(first) = usize::try_from(first + (skip * step) as i64) else { return };
    let Some(row) = row.get(first..) else { return };
    let count = row.len().div_ceil(step).min(out.len() - skip);
    let out = &mut out[skip..skip + count];
    if step == 1 {
        out.copy_from_slice(&row[..count]);
    } else {
        out.iter_mut().zip(row.iter().step_by(step)).for_each(|(out, &x)| *out = x);
    }
}

impl Geometry {
    pub(super) fn new(attributes: &Conv, input: &[usize], kernel: &[usize], out: &[usize]) -> Self {
        let axes = (0..input.len() - 2).map(|axis| WindowAxis {
            size: input[axis + 2],
            count: out[axis + 2],
            taps: kernel[axis + 2],
            stride: attributes.strides[axis],
            dilation: attributes.kernel_dilation[axis],
            low: attributes.padding[axis].0,
        });
        let groups = attributes.feature_groups.max(attributes.batch_groups);
        Self {
            batch: out[0],
            groups,
            batch_groups: attributes.batch_groups,
            in_channels: input[1],
            group_channels: kernel[1],
            group_outputs: kernel[0] / groups,
            in_size: input[2..].iter().product(),
            kernel_size: kernel[2..].iter().product(),
            out_size: out[2..].iter().product(),
            axes: axes.collect(),
        }
    }

    pub(super) fn run<T: Number + Kernels>(
        &self,
        cx: Cx<'_>,
        input: &[T],
        kernel: &[T],
        out: &mut [T],
    ) {
        let block = self.group_outputs * self.out_size;
        let inner = self.group_channels * self.kernel_size;
        if block == 0 || inner == 0 {
            // Each result is an empty sum.
            return out.fill(T::default());
        }
        let last = self.axes.last().expect("there is a spatial axis");
        if self.group_outputs == 1 && last.stride == 1 {
            return self.run_in_place(cx, input, kernel, inner, out);
        }
        // One block per image and group.
        cx.rows(out, block, block * inner, |first, out| {
            for (index, out) in out.chunks_exact_mut(block).enumerate() {
                let (image, group) = ((first + index) / self.groups, (first + index) % self.groups);
                let kernel =
                    &kernel[group * self.group_outputs * inner..][..self.group_outputs * inner];
                self.block(cx, self.channels(input, image, group), kernel, inner, out);
            }
        });
    }

    /// Adds rows of the input into the result, a part of a row at a time; each group has one
    /// output.
    fn run_in_place<T: Number>(
        &self,
        cx: Cx<'_>,
        input: &[T],
        kernel: &[T],
        inner: usize,
        out: &mut [T],
    ) {
        let last = self.axes.last().expect("there is a spatial axis");
        cx.pieces(out, TILE, inner, |start, out| {
            let mut scratch = cx.scratch();
            let sums = scratch.elements::<T::Sum>(TILE.min(last.count).min(out.len()));
            let mut done = 0;
            while done < out.len() {
                let (plane, position) =
                    ((start + done) / self.out_size, (start + done) % self.out_size);
                let (image, group) = (plane / self.groups, plane % self.groups);
                let (row, column) = (position / last.count, position % last.count);
                let count = (last.count - column).min(out.len() - done).min(TILE);
                let (channels, kernel) =
                    (self.channels(input, image, group), &kernel[group * inner..][..inner]);
                let sums = &mut sums[..count];
                sums.fill(T::EMPTY_SUM);
                self.add_taps(channels, kernel, (row, column), sums);
                let out = &mut out[done..done + count];
                out.iter_mut().zip(&*sums).for_each(|(out, &sum)| *out = T::narrow(sum));
                done += count;
            }
        });
    }

    /// Adds the products of all taps and channels for neighboring positions of a row.
    fn add_taps<T: Number>(
        &self,
        channels: &[T],
        kernel: &[T],
        (row, column): (usize, usize),
        sums: &mut [T::Sum],
    ) {
        let last = self.axes.last().expect("there is a spatial axis");
        let channels = channels.chunks_exact(self.in_size);
        for (channel, kernel) in channels.zip(kernel.chunks_exact(self.kernel_size)) {
            for (tap, weights) in kernel.chunks_exact(last.taps).enumerate() {
                let Some(row) = self.row_of(tap, row) else { continue };
                let row = &channel[row * last.size..][..last.size];
                vectorize(
                    #[inline(always)]
                    || add_runs(last, row, column, weights, sums),
                );
            }
        }
    }

    /// The input channels of an image that a group of output channels reads.
    fn channels<'a, T>(&self, input: &'a [T], image: usize, group: usize) -> &'a [T] {
        let (image, channel) = if self.batch_groups > 1 {
            (group * self.batch + image, 0)
        } else {
            (image, group * self.group_channels)
        };
        let first = (image * self.in_channels + channel) * self.in_size;
        &input[first..first + self.group_channels * self.in_size]
    }

    /// The output channels of one group for one image: `[outputs][positions]`.
    fn block<T: Number + Kernels>(
        &self,
        cx: Cx<'_>,
        channels: &[T],
        kernel: &[T],
        inner: usize,
        out: &mut [T],
    ) {
        let mut patches = Vec::new();
        let mut product = Vec::new();
        let last = self.axes.last().expect("there is a spatial axis");
        // The contiguous axis of a patch is the longer one, so that reads are long. A kernel is
        // longer than the output in the derivative of another convolution.
        let by_position = last.taps > last.count;
        let most = 2 * CACHE_BYTES / (inner * size_of::<T>()) / TILE_STEP * TILE_STEP;
        let tile = most.clamp(LEAST_TILE, TILE);
        for start in (0..self.out_size).step_by(tile) {
            let count = tile.min(self.out_size - start);
            context::fill(&mut patches, T::default(), inner * count);
            if by_position {
                for (position, patch) in patches.chunks_exact_mut(inner).enumerate() {
                    self.read_patch(channels, start + position, patch);
                }
            } else {
                for (row, patches) in patches.chunks_exact_mut(count).enumerate() {
                    let (channel, tap) = (row / self.kernel_size, row % self.kernel_size);
                    let channel = &channels[channel * self.in_size..][..self.in_size];
                    self.read_patch_row(channel, tap, start, patches);
                }
            }
            let sizes = Sizes { batches: 1, rows: self.group_outputs, inner, columns: count };
            let left = Factor { elements: kernel, inner_first: false };
            let right = Factor { elements: &patches, inner_first: !by_position };
            if count == self.out_size {
                matmul(cx, sizes, left, right, out);
                break;
            }
            context::fill(&mut product, T::default(), self.group_outputs * count);
            matmul(cx, sizes, left, right, &mut product);
            for (out, row) in out.chunks_exact_mut(self.out_size).zip(product.chunks_exact(count)) {
                out[start..start + count].copy_from_slice(row);
            }
        }
    }

    /// Reads the inputs of all taps and channels at one position of the result. `out` is zeroed, like the padding.
    fn read_patch<T: Number>(&self, channels: &[T], position: usize, out: &mut [T]) {
        let inner = self.axes.last().expect("there is a spatial axis");
        let (row, column) = (position / inner.count, position % inner.count);
        for tap in 0..self.kernel_size / inner.taps {
            let Some(row) = self.row_of(tap, row) else { continue };
            let patches = out.chunks_exact_mut(self.kernel_size);
            for (channel, patch) in channels.chunks_exact(self.in_size).zip(patches) {
                let row = &channel[row * inner.size..][..inner.size];
                let patch = &mut patch[tap * inner.taps..][..inner.taps];
                let first = (column * inner.stride) as i64 + inner.offset(0);
                read_inside(row, first, inner.dilation, patch);
            }
        }
    }

    /// Reads the inputs of one tap and channel at the positions of the result from `start` on. `out` is zeroed, like the
    /// padding.
    fn read_patch_row<T: Number>(&self, channel: &[T], tap: usize, start: usize, out: &mut [T]) {
        let last = self.axes.len() - 1;
        let inner = &self.axes[last];
        let mut done = 0;
        while done < out.len() {
            let position = start + done;
            let column = position % inner.count;
            let count = (inner.count - column).min(out.len() - done);
            if let Some(row) = self.row_of(tap / inner.taps, position / inner.count) {
                let row = &channel[row * inner.size..][..inner.size];
                let out = &mut out[done..done + count];
                read_along_result(inner, row, tap % inner.taps, column, out);
            }
            done += count;
        }
    }

    /// The row of the input, without its last axis, that a tap reads for a row of the result.
    fn row_of(&self, mut tap: usize, mut position: usize) -> Option<usize> {
        let (mut row, mut step) = (0, 1);
        for axis in self.axes[..self.axes.len() - 1].iter().rev() {
            let place = axis.place(position % axis.count, tap % axis.taps)?;
            row += place * step;
            step *= axis.size;
            tap /= axis.taps;
            position /= axis.count;
        }
        Some(row)
    }
}
