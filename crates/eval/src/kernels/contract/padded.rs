//! Copies of a convolution's input with its padding.
//!
//! A run is what one tap of the kernel reads for a row of the result, or what a row of the kernel
//! reads for one position. Neighbors in a run are `step` elements apart, so that a copied row has a
//! section for each remainder of positions by
//! `step`. A run is then contiguous, and all its elements exist.

use std::ops::Range;

use super::conv::Geometry;
use crate::context::{self, Cx};
use crate::kernels::vectors::{InVectors, SimdVectors, VectorWork};

/// The number of elements after the end of a run that can be read.
pub(super) const SLACK: usize = 32;

/// The index that a run belongs to: a tap of the kernel, or a position of the result.
#[derive(Clone, Copy)]
pub(super) enum RunIndex {
    OfTaps,
    OfPositions,
}

/// The positions of elements in a copied plane.
pub(super) struct PaddedLayout {
    pub(super) index: RunIndex,
    /// The elements of an input row.
    size: usize,
    step: usize,
    sections: Vec<Section>,
    /// The elements of a copied row.
    width: usize,
    /// The input row of each copied row, unless it is padding.
    sources: Vec<Option<usize>>,
    /// The start of what each row reads: a row of the result if runs are of taps, or a row of the kernel.
    pub(super) rows: Vec<usize>,
    /// The start of each run, relative to the start of a row.
    pub(super) runs: Vec<usize>,
}

/// A part of a copied row.
struct Section {
    /// The first element of the input row.
    from: usize,
    /// Its offset in the copied row.
    to: usize,
    count: usize,
    /// The zeros between this section and the next.
    gap: usize,
}

impl PaddedLayout {
    pub(super) fn new(geometry: &Geometry, index: RunIndex) -> Self {
        let (last, outer) = (geometry.last(), geometry.outer());
        let (count, shift, length, step) = match index {
            RunIndex::OfTaps => (last.taps, last.dilation, last.count, last.stride),
            RunIndex::OfPositions => (last.count, last.stride, last.taps, last.dilation),
        };
        let section = length + (count - 1) * shift / step;
        let width = section * step;
        // The positions of each axis are combined with the positions of the axes before it.
        let (mut sources, mut taps, mut positions) = (vec![Some(0)], vec![0], vec![0]);
        for axis in outer {
            let extent = (axis.count - 1) * axis.stride + (axis.taps - 1) * axis.dilation + 1;
            let inside = |position: usize| {
                let at = usize::try_from(position as i64 - axis.low).ok();
                at.filter(|&at| at < axis.size)
            };
            sources = combine_indices(&sources, extent, |row, position| {
                Some(row? * axis.size + inside(position)?)
            });
            taps = combine_indices(&taps, axis.taps, |row, tap| row * extent + tap * axis.dilation);
            positions =
                combine_indices(&positions, axis.count, |row, at| row * extent + at * axis.stride);
        }
        let (rows, belonging) = match index {
            RunIndex::OfTaps => (positions, taps),
            RunIndex::OfPositions => (taps, positions),
        };
        let start =
            |row, index| row * width + index * shift % step * section + index * shift / step;
        Self {
            index,
            size: last.size,
            step,
            sections: sections(last.size, last.low, section, step),
            width,
            sources,
            rows: rows.into_iter().map(|row| row * width).collect(),
            runs: combine_indices(&belonging, count, start),
        }
    }

    /// The elements of a copied plane.
    pub(super) fn plane(&self) -> usize {
        self.sources.len() * self.width
    }

    /// The copied rows that some rows and some runs read.
    pub(super) fn read_by(&self, rows: &[usize], runs: &[usize]) -> Range<usize> {
        let sum = |row: Option<&usize>, run: Option<&usize>| Some((row? + run?) / self.width);
        let (first, last) = (sum(rows.first(), runs.first()), sum(rows.last(), runs.last()));
        first.unwrap_or(0)..last.map_or(0, |last| last + 1)
    }

    /// Copies all planes of an input.
    pub(super) fn copy<T: InVectors>(
        &self,
        cx: Cx<'_>,
        geometry: &Geometry,
        input: &[T],
    ) -> Vec<T> {
        let (size, plane) = (geometry.in_size, self.plane());
        let planes = input.len() / size;
        let mut elements = context::filled(T::default(), planes.saturating_mul(plane) + SLACK);
        cx.rows(&mut elements[..planes * plane], plane, plane, |first, out| {
            T::with_vectors(CopyPlanes { layout: self, input: &input[first * size..], size, out });
        });
        elements
    }

    /// Copies rows of a plane to their offsets. Elements after them are arbitrary.
    #[inline(always)]
    pub(super) fn copy_rows<T: InVectors, V: SimdVectors<T>>(
        &self,
        vectors: V,
        input: &[T],
        rows: Range<usize>,
        out: &mut [T],
    ) {
        let zeros = vectors.splat(T::default());
        // The zeros after the last row can exceed the memory.
        let fill = |out: &mut [T], count: usize| {
            for at in (0..count.min(out.len())).step_by(V::LANES) {
                vectors.store(zeros, &mut out[at..]);
            }
        };
        // The zeros before each row follow the row before it.
        let before = self.sections[0].to;
        fill(&mut out[rows.start * self.width..], before);
        for row in rows {
            let out = &mut out[row * self.width..];
            let Some(row) = self.sources[row] else {
                fill(out, self.width + before);
                continue;
            };
            for &Section { from, to, count, gap } in &self.sections {
                let (input, out) = (&input[row * self.size + from..], &mut out[to..]);
                if self.step == 1 {
                    for at in (0..count).step_by(V::LANES) {
                        vectors.store(vectors.load_some(&input[at..]), &mut out[at..]);
                    }
                } else {
                    let every = input.iter().step_by(self.step);
                    out[..count].iter_mut().zip(every).for_each(|(out, &x)| *out = x);
                }
                fill(&mut out[count..], gap);
            }
        }
    }
}

/// A list with the values of `combine` for each element of `list` and each index below `count`.
fn combine_indices<A: Copy>(list: &[A], count: usize, combine: impl Fn(A, usize) -> A) -> Vec<A> {
    let size = list.len().saturating_mul(count);
    context::collect_vec((0..size).map(|index| combine(list[index / count], index % count)))
}

/// The sections of a copied row, whose input row has `size` elements after `low` elements of padding.
fn sections(size: usize, low: i64, section: usize, step: usize) -> Vec<Section> {
    let inside = |remainder: usize| {
        let first = remainder as i64 - low;
        let before = usize::try_from(-first).map_or(0, |before| before.div_ceil(step));
        let from = usize::try_from(first + (before * step) as i64).unwrap_or(0).min(size);
        let count = (size - from).div_ceil(step).min(section.saturating_sub(before));
        Section { from, to: remainder * section + before.min(section), count, gap: 0 }
    };
    let mut sections = context::collect_vec((0..step).map(inside));
    for index in 0..step {
        let next = sections.get(index + 1).map_or(section * step + sections[0].to, |next| next.to);
        sections[index].gap = next - sections[index].to - sections[index].count;
    }
    sections
}

/// Planes of `size` elements and their copies.
struct CopyPlanes<'a, T> {
    layout: &'a PaddedLayout,
    input: &'a [T],
    size: usize,
    out: &'a mut [T],
}

impl<T: InVectors> VectorWork<T> for CopyPlanes<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: SimdVectors<T>>(self, vectors: V) {
        let Self { layout, input, size, out } = self;
        for (index, out) in out.chunks_exact_mut(layout.plane()).enumerate() {
            layout.copy_rows(vectors, &input[index * size..], 0..layout.sources.len(), out);
        }
    }
}
