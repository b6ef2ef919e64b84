//! Copies of the rows of a convolution's input, with their padding.
//!
//! A run is what one tap of the kernel reads for a row of the result, or what a row of the kernel reads for one position.
//! Neighbors in a run are `step` elements apart, so that a copied row has a section for each remainder of positions by
//! `step`. A run is then contiguous, and all its elements exist. If taps read rows of padding, a row of zeros follows the
//! rows of each plane.

use super::conv::Geometry;
use crate::context::{self, Cx};
use crate::kernels::number::Number;

/// The number of elements after the end of a run that can be read.
pub(super) const SLACK: usize = 32;

pub(super) struct Padded<T> {
    elements: Vec<T>,
    /// The elements of a plane.
    pub(super) plane: usize,
    /// The start of the row in a plane that each row of the kernel reads for each row of the result.
    rows: Vec<usize>,
    /// The rows of the kernel.
    height: usize,
    /// The start of each run in a row.
    pub(super) starts: Vec<usize>,
}

/// The index that a run belongs to: a tap of a row of the kernel, or a position of a row of the result.
pub(super) enum Runs {
    OfTaps,
    OfPositions,
}

impl<T: Number> Padded<T> {
    pub(super) fn new(cx: Cx<'_>, geometry: &Geometry, input: &[T], runs: Runs) -> Self {
        let last = geometry.last();
        let (rows, taps) = (geometry.out_size / last.count, geometry.kernel_size / last.taps);
        let height = geometry.in_size / last.size;
        let (count, shift, length, step) = match runs {
            Runs::OfTaps => (last.taps, last.dilation, last.count, last.stride),
            Runs::OfPositions => (last.count, last.stride, last.taps, last.dilation),
        };
        let section = length + (count - 1) * shift / step;
        let width = section * step;
        let pairs = (0..rows).flat_map(|row| (0..taps).map(move |tap| (row, tap)));
        let rows: Vec<_> = pairs.map(|(row, tap)| geometry.input_row(row, tap)).collect();
        let all = height + usize::from(rows.contains(&None));
        let planes = input.len() / geometry.in_size;
        let plane = all * width;
        let mut elements = context::filled(T::default(), planes * plane + SLACK);
        cx.rows(&mut elements[..planes * plane], width, width, |first, out| {
            for (index, out) in out.chunks_exact_mut(width).enumerate() {
                let (plane, row) = ((first + index) / all, (first + index) % all);
                if row == height {
                    continue;
                }
                let row = &input[(plane * height + row) * last.size..][..last.size];
                for (remainder, section) in out.chunks_exact_mut(section).enumerate() {
                    read_inside(row, remainder as i64 - last.low, step, section);
                }
            }
        });
        let rows = rows.into_iter().map(|row| row.unwrap_or(height) * width);
        let starts = (0..count).map(|index| index * shift);
        let starts = starts.map(|at| at % step * section + at / step).collect();
        Self { elements, plane, rows: rows.collect(), height: taps, starts }
    }

    /// The elements of a plane and of the planes after it.
    #[inline(always)]
    pub(super) fn elements_from(&self, plane: usize) -> &[T] {
        &self.elements[plane * self.plane..]
    }

    /// The start of the row in a plane that each row of the kernel reads for a row of the result.
    #[inline(always)]
    pub(super) fn rows(&self, row: usize) -> &[usize] {
        &self.rows[row * self.height..][..self.height]
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
