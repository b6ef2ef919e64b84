//! Convolutions with one output channel in each group, as in depthwise convolutions.
//!
//! A row of the result is a sum of runs of the input, and parts of the sum stay in registers.

use super::conv::Geometry;
use super::padded::{Padded, SLACK};
use crate::context::Cx;
use crate::kernels::elementwise::vectorize;
use crate::kernels::limits::BLOCK_ELEMENTS;
use crate::kernels::number::Number;
use crate::kernels::reduce::kept_whole;

/// The number of results whose sums are in registers.
const LANES: usize = SLACK;

pub(super) fn run<T: Number>(
    cx: Cx<'_>,
    geometry: &Geometry,
    padded: &Padded<T>,
    kernel: &[T],
    out: &mut [T],
) {
    let (count, inner) = (geometry.last().count, geometry.inner());
    let height = geometry.out_size / count;
    let piece = BLOCK_ELEMENTS.div_ceil(count) * count;
    cx.pieces(out, piece, inner, |start, out| {
        vectorize(
            #[inline(always)]
            || {
                for (index, out) in out.chunks_exact_mut(count).enumerate() {
                    let row = start / count + index;
                    let (plane, row) = (row / height, row % height);
                    let (image, group) = (plane / geometry.groups, plane % geometry.groups);
                    let kernel = &kernel[group * inner..][..inner];
                    add_runs(geometry, padded, geometry.plane(image, group), row, kernel, out);
                }
            },
        );
    });
}

/// Writes one row of the result, whose input channels begin with a plane.
#[inline(always)]
fn add_runs<T: Number>(
    geometry: &Geometry,
    padded: &Padded<T>,
    plane: usize,
    row: usize,
    kernel: &[T],
    out: &mut [T],
) {
    let input_rows = padded.input_rows(row);
    for (at, out) in out.chunks_mut(LANES).enumerate() {
        let mut sums = [T::default(); LANES];
        for (channel, weights) in kernel.chunks_exact(geometry.kernel_size).enumerate() {
            let weights = weights.chunks_exact(geometry.last().taps);
            for (input_row, weights) in input_rows.iter().zip(weights) {
                let Some(input_row) = *input_row else { continue };
                for (tap, &weight) in weights.iter().enumerate() {
                    let run = &padded.run(plane + channel, input_row, tap)[at * LANES..];
                    let run: &[T; LANES] = run.first_chunk().expect("slack follows runs");
                    for lane in 0..LANES {
                        sums[lane] = sums[lane].plus(run[lane].times(weight));
                    }
                }
            }
        }
        let [sums] = kept_whole([sums]);
        out.copy_from_slice(&sums[..out.len()]);
    }
}
