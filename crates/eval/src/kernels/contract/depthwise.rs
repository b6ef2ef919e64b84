//! Convolutions with one output channel in each group, as in depthwise convolutions.
//!
//! A row of the result is a sum of runs of the input, one for each tap. With a long kernel, as in the derivative of
//! another convolution, a result is a sum of products of runs and rows of the kernel. Parts of the sums stay in registers.

use super::conv::Geometry;
use super::padded::{Padded, Runs, SLACK};
use crate::context::Cx;
use crate::kernels::elementwise::vectorize;
use crate::kernels::number::Number;
use crate::kernels::reduce::{FEW_LANES, kept_whole, narrowed};

/// The number of results whose sums are in registers.
const LANES: usize = SLACK;

pub(super) fn run<T: Number>(
    cx: Cx<'_>,
    geometry: &Geometry,
    input: &[T],
    kernel: &[T],
    out: &mut [T],
) {
    let (count, inner) = (geometry.last().count, geometry.inner());
    let is_long = geometry.last().taps > count;
    let runs = if is_long { Runs::OfPositions } else { Runs::OfTaps };
    let padded = Padded::new(cx, geometry, input, runs);
    let height = geometry.out_size / count;
    cx.rows(out, count, count * inner, |first, out| {
        vectorize(
            #[inline(always)]
            || {
                for (index, out) in out.chunks_exact_mut(count).enumerate() {
                    let (plane, row) = ((first + index) / height, (first + index) % height);
                    let (image, group) = (plane / geometry.groups, plane % geometry.groups);
                    let kernel = &kernel[group * inner..][..inner];
                    let plane = geometry.plane(image, group);
                    if is_long {
                        multiply_runs(geometry, &padded, plane, row, kernel, out);
                    } else {
                        add_runs(geometry, &padded, plane, row, kernel, out);
                    }
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
    for (at, out) in out.chunks_mut(LANES).enumerate() {
        let mut sums = [T::default(); LANES];
        for (channel, weights) in kernel.chunks_exact(geometry.kernel_size).enumerate() {
            let elements = &padded.elements_from(plane + channel)[at * LANES..];
            let weights = weights.chunks_exact(geometry.last().taps);
            for (&row, weights) in padded.rows(row).iter().zip(weights) {
                for (&start, &weight) in padded.starts.iter().zip(weights) {
                    let run: &[T; LANES] =
                        elements[row + start..].first_chunk().expect("slack follows runs");
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

/// Writes one row of the result of a long kernel.
#[inline(always)]
fn multiply_runs<T: Number>(
    geometry: &Geometry,
    padded: &Padded<T>,
    plane: usize,
    row: usize,
    kernel: &[T],
    out: &mut [T],
) {
    for (&start, out) in padded.starts.iter().zip(out) {
        let (mut sums, mut rest) = ([T::default(); FEW_LANES], T::default());
        for (channel, weights) in kernel.chunks_exact(geometry.kernel_size).enumerate() {
            let elements = &padded.elements_from(plane + channel)[start..];
            let weights = weights.chunks_exact(geometry.last().taps);
            for (&row, weights) in padded.rows(row).iter().zip(weights) {
                let (runs, run_rest) = elements[row..][..weights.len()].as_chunks::<FEW_LANES>();
                let (weights, weights_rest) = weights.as_chunks::<FEW_LANES>();
                for (run, weights) in runs.iter().zip(weights) {
                    for lane in 0..FEW_LANES {
                        sums[lane] = sums[lane].plus(run[lane].times(weights[lane]));
                    }
                }
                for (&x, &weight) in run_rest.iter().zip(weights_rest) {
                    rest = rest.plus(x.times(weight));
                }
            }
        }
        let [sums] = kept_whole([sums]);
        *out = rest.plus(narrowed(sums, &T::plus));
    }
}
