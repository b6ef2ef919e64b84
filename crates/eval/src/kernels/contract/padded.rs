//! Copies of the rows of a convolution's input, with their padding.
//!
//! A run is what one tap of the kernel reads for a row of the result, or what a row of a long kernel reads for one
//! position. Neighbors in a run are `step` elements apart, so that a copied row has a section for each remainder of
//! positions by `step`. A run is then contiguous, and all its elements exist.

use super::conv::Geometry;
use crate::context::{self, Cx};
use crate::kernels::number::Number;

/// Runs are copied in chunks of this many elements. What a chunk has beyond the end of its run is overwritten by the
/// next run, or never read.
const CHUNK: usize = 16;

/// The number of elements after the end of a run that can be read.
pub(super) const SLACK: usize = 32;

pub(super) struct Padded<T> {
    elements: Vec<T>,
    /// The input row of each row of the result and the kernel, if it is not padding.
    input_rows: Vec<Option<usize>>,
    /// The rows of the kernel.
    taps: usize,
    /// The rows of a plane of the input.
    height: usize,
    /// The elements of a copied row.
    width: usize,
    /// The start of the run of each tap in a copied row, or of each position for a long kernel.
    starts: Vec<usize>,
}

impl<T: Number> Padded<T> {
    pub(super) fn new(cx: Cx<'_>, geometry: &Geometry, input: &[T]) -> Self {
        let last = geometry.last();
        let (rows, taps) = (geometry.out_size / last.count, geometry.kernel_size / last.taps);
        let pairs = (0..rows).flat_map(|row| (0..taps).map(move |tap| (row, tap)));
        let (step, length, shift, count) = if geometry.is_long_kernel() {
            (last.dilation, last.taps, last.stride, last.count)
        } else {
            (last.stride, last.count, last.dilation, last.taps)
        };
        let section = length + (count - 1) * shift / step;
        let height = geometry.in_size / last.size;
        let width = section * step;
        let rows = input.len() / last.size;
        let mut elements = context::filled(T::default(), rows * width + SLACK);
        cx.rows(&mut elements[..rows * width], width, width, |first, out| {
            let input = input[first * last.size..].chunks_exact(last.size);
            for (row, out) in input.zip(out.chunks_exact_mut(width)) {
                for (remainder, section) in out.chunks_exact_mut(section).enumerate() {
                    read_inside(row, remainder as i64 - last.low, step, section);
                }
            }
        });
        let input_rows = pairs.map(|(row, tap)| geometry.input_row(row, tap)).collect();
        let starts = (0..count).map(|index| index * shift);
        let starts = starts.map(|at| at % step * section + at / step).collect();
        Self { elements, input_rows, taps, height, width, starts }
    }

    /// The input rows that the rows of the kernel read for a row of the result.
    pub(super) fn input_rows(&self, row: usize) -> &[Option<usize>] {
        &self.input_rows[row * self.taps..][..self.taps]
    }

    /// The run of a tap, or the run of a position for a long kernel, and what follows it.
    #[inline(always)]
    pub(super) fn run(&self, plane: usize, row: usize, index: usize) -> &[T] {
        &self.elements[(plane * self.height + row) * self.width + self.starts[index]..]
    }

    /// Copies `count` elements of a run from `first` on, and some that follow; or zeros, if the row is padding.
    #[inline(always)]
    pub(super) fn copy_run(
        &self,
        plane: usize,
        row: Option<usize>,
        index: usize,
        (first, count): (usize, usize),
        out: &mut [T],
    ) {
        let Some(row) = row else { return out[..count].fill(T::default()) };
        let run = &self.run(plane, row, index)[first..];
        for at in (0..count).step_by(CHUNK) {
            let chunk: &[T; CHUNK] = run[at..].first_chunk().expect("slack follows runs");
            *out[at..].first_chunk_mut().expect("slack follows runs") = *chunk;
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
