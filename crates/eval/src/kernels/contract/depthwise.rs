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
    let padded = &Padded::new(cx, geometry, input, runs);
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
                    let row = Row { geometry, padded, plane, row, kernel };
                    if is_long { row.multiply_runs(out) } else { row.add_runs(out) }
                }
            },
        );
    });
}

/// The operands of one row of the result.
struct Row<'a, T> {
    geometry: &'a Geometry,
    padded: &'a Padded<T>,
    /// The plane of the first input channel.
    plane: usize,
    row: usize,
    kernel: &'a [T],
}

impl<T: Number> Row<'_, T> {
    /// Writes the sums of runs.
    #[inline(always)]
    fn add_runs(&self, out: &mut [T]) {
        let Row { geometry, padded, .. } = *self;
        for (at, out) in out.chunks_mut(LANES).enumerate() {
            let mut sums = [T::default(); LANES];
            for (channel, weights) in self.kernel.chunks_exact(geometry.kernel_size).enumerate() {
                let elements = &padded.elements_from(self.plane + channel)[at * LANES..];
                let weights = weights.chunks_exact(geometry.last().taps);
                for (&row, weights) in padded.rows(self.row).iter().zip(weights) {
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

    /// Writes the sums of products of runs and rows of a long kernel.
    #[inline(always)]
    fn multiply_runs(&self, out: &mut [T]) {
        let Row { geometry, padded, .. } = *self;
        for (&start, out) in padded.starts.iter().zip(out) {
            let (mut sums, mut rest) = ([T::default(); FEW_LANES], T::default());
            for (channel, weights) in self.kernel.chunks_exact(geometry.kernel_size).enumerate() {
                let elements = &padded.elements_from(self.plane + channel)[start..];
                let weights = weights.chunks_exact(geometry.last().taps);
                for (&row, weights) in padded.rows(self.row).iter().zip(weights) {
                    let (runs, run_rest) =
                        elements[row..][..weights.len()].as_chunks::<FEW_LANES>();
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
}
