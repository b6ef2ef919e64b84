//! Convolutions with one output channel in each group, as in depthwise convolutions.
//!
//! A row of the result is a sum of runs of the input, one for each tap. With a long kernel, as in the derivative of
//! another convolution, a result is a sum of products of runs and rows of the kernel. Vectors hold
//! neighbors in a run, and some sums stay in registers.

use super::conv::Geometry;
use super::padded::{PaddedLayout, RunIndex, SLACK};
use crate::context::Cx;
use crate::kernels::vectors::{InVectors, SimdVectors, VectorWork};

/// Rows, or positions of a row, whose sums are in registers in one pass. Measured by `benches/python/products.py`.
const SUMS_PER_PASS: usize = 4;

pub(super) fn run<T: InVectors>(
    cx: Cx<'_>,
    geometry: &Geometry,
    input: &[T],
    kernel: &[T],
    out: &mut [T],
) {
    let (count, inner) = (geometry.last().count, geometry.inner());
    let index = if geometry.last().taps > count { RunIndex::OfPositions } else { RunIndex::OfTaps };
    let layout = &PaddedLayout::new(geometry, index);
    cx.rows(out, count, count * inner, |first, out| {
        let mut copies = cx.scratch();
        let copies = copies.elements(geometry.group_channels * layout.plane() + SLACK);
        T::with_vectors(DepthwiseRows { geometry, layout, input, kernel, first, copies, out });
    });
}

/// Neighboring rows of the result, in one or more planes.
struct DepthwiseRows<'a, T> {
    geometry: &'a Geometry,
    layout: &'a PaddedLayout,
    input: &'a [T],
    kernel: &'a [T],
    first: usize,
    /// The memory for the planes of a group.
    copies: &'a mut [T],
    out: &'a mut [T],
}

impl<T: InVectors> VectorWork<T> for DepthwiseRows<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: SimdVectors<T>>(self, vectors: V) {
        let DepthwiseRows { geometry, layout, input, kernel, mut first, copies, mut out } = self;
        let count = geometry.last().count;
        let height = geometry.out_size / count;
        let (mut results, mut copied) = (0..0, 0..0);
        while !out.is_empty() {
            let (plane, row) = (first / height, first % height);
            let rows = row..height.min(row + out.len() / count);
            let (part, rest) = out.split_at_mut(rows.len() * count);
            (first, out) = (first + rows.len(), rest);
            let (image, group) = geometry.image_and_output(plane);
            let (own_rows, own_runs) = match layout.index {
                RunIndex::OfTaps => (&layout.rows[rows.clone()], &layout.runs[..]),
                RunIndex::OfPositions => {
                    (&layout.rows[..], &layout.runs[rows.start * count..rows.end * count])
                }
            };
            if rows != results {
                (results, copied) = (rows, layout.read_by(own_rows, own_runs));
            }
            let plane = geometry.plane(image, group);
            for channel in 0..geometry.group_channels {
                let input = &input[(plane + channel) * geometry.in_size..];
                let copy = &mut copies[channel * layout.plane()..];
                layout.copy_rows(vectors, input, copied.clone(), copy);
            }
            let (rows, runs) = (own_rows, own_runs);
            let part =
                Part { geometry, layout, input: copies, kernel, group, rows, runs, out: part };
            match layout.index {
                RunIndex::OfTaps => part.add_runs(vectors),
                RunIndex::OfPositions => part.multiply_runs(vectors),
            }
        }
    }
}

/// Neighboring rows of a plane of the result.
struct Part<'a, T> {
    geometry: &'a Geometry,
    layout: &'a PaddedLayout,
    /// The copied planes that the rows read.
    input: &'a [T],
    kernel: &'a [T],
    group: usize,
    /// The starts of what the rows read, see [`PaddedLayout`].
    rows: &'a [usize],
    runs: &'a [usize],
    out: &'a mut [T],
}

impl<T: InVectors> Part<'_, T> {
    /// Writes the sums of runs.
    #[inline(always)]
    fn add_runs<V: SimdVectors<T>>(self, vectors: V) {
        let (width, plane) = (self.geometry.last().count, self.layout.plane());
        let span = self.runs.iter().max().map_or(0, |run| run + V::LANES);
        let out = self.out.chunks_mut(SUMS_PER_PASS * width);
        for (rows, out) in self.rows.chunks(SUMS_PER_PASS).zip(out) {
            for at in (0..width).step_by(V::LANES) {
                let mut sums = [vectors.splat(T::default()); SUMS_PER_PASS];
                for channel in 0..self.geometry.group_channels {
                    let weights = self.geometry.weights(self.kernel, self.group, channel);
                    let mut input: [&[T]; SUMS_PER_PASS] = [&[]; SUMS_PER_PASS];
                    for index in 0..SUMS_PER_PASS {
                        // Rows after the last one are computed in vain.
                        let row = rows[index.min(rows.len() - 1)];
                        input[index] = &self.input[channel * plane + row + at..][..span];
                    }
                    for (&start, &weight) in self.runs.iter().zip(weights) {
                        let weight = vectors.splat(weight);
                        for index in 0..SUMS_PER_PASS {
                            let run = vectors.load(&input[index][start..]);
                            sums[index] = vectors.multiply_add(run, weight, sums[index]);
                        }
                    }
                }
                for (index, out) in out.chunks_exact_mut(width).enumerate() {
                    vectors.store(sums[index], &mut out[at..]);
                }
            }
        }
    }

    /// Writes the sums of products of runs and rows of a long kernel.
    #[inline(always)]
    fn multiply_runs<V: SimdVectors<T>>(self, vectors: V) {
        let (taps, plane) = (self.geometry.last().taps, self.layout.plane());
        let span = self.rows.last().map_or(0, |row| row + taps.next_multiple_of(V::LANES));
        let out = self.out.chunks_mut(SUMS_PER_PASS);
        for (runs, out) in self.runs.chunks(SUMS_PER_PASS).zip(out) {
            let mut sums = [vectors.splat(T::default()); SUMS_PER_PASS];
            for channel in 0..self.geometry.group_channels {
                let kernel = self.geometry.weights(self.kernel, self.group, channel);
                let mut input: [&[T]; SUMS_PER_PASS] = [&[]; SUMS_PER_PASS];
                for index in 0..SUMS_PER_PASS {
                    // Positions after the last one are computed in vain.
                    let run = runs[index.min(runs.len() - 1)];
                    input[index] = &self.input[channel * plane + run..][..span];
                }
                for (&row, weights) in self.rows.iter().zip(kernel.chunks_exact(taps)) {
                    for at in (0..taps).step_by(V::LANES) {
                        let count = V::LANES.min(taps - at);
                        let weights = vectors.load_some(&weights[at..]);
                        for index in 0..SUMS_PER_PASS {
                            let run = vectors.load(&input[index][row + at..]);
                            let run = vectors.first(run, count);
                            sums[index] = vectors.multiply_add(run, weights, sums[index]);
                        }
                    }
                }
            }
            for (index, out) in out.iter_mut().enumerate() {
                *out = vectors.sum(sums[index]);
            }
        }
    }
}
