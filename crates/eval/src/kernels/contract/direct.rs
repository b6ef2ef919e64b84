//! Convolutions of several output channels.
//!
//! Threads share blocks of output channels and ranges of columns; a column is a position of an image. Each task copies
//! the weights of its block, so that a vector of weights is contiguous, and computes [tiles](super::tile).

use std::ops::Range;

use super::conv::Geometry;
use super::padded::{PaddedLayout, RunIndex};
use super::tile::TileWork;
use crate::context::Cx;
use crate::kernels::limits::CACHE_BYTES;
use crate::kernels::vectors::{InVectors, SimdVectors, VectorWork};

/// Columns whose sums stay in the second-level cache.
const MOST_COLUMNS: usize = 1024;

/// Columns for which copying the weights pays.
const LEAST_COLUMNS: usize = 64;

pub(super) fn run<T: InVectors>(
    cx: Cx<'_>,
    geometry: &Geometry,
    input: &[T],
    kernel: &[T],
    out: &mut [T],
) {
    let layout = &PaddedLayout::new(geometry, RunIndex::OfTaps);
    let input = &layout.copy(cx, geometry, input);
    let conv = Direct { geometry, layout, input, kernel, block: 2 * T::with_vectors(LaneCount) };
    // A multiplication is much cheaper than a copy of an element.
    let pays = cx.pays(out.len().saturating_mul(geometry.inner().div_ceil(16)));
    let tasks = conv.tasks(cx, out);
    if pays && tasks.len() > 1 {
        let alone = cx.alone();
        cx.each(tasks, |task| conv.fill(&alone, task));
    } else {
        tasks.into_iter().for_each(|task| conv.fill(cx, task));
    }
}

/// The elements of a vector.
struct LaneCount;

impl<T> VectorWork<T> for LaneCount {
    type Output = usize;

    #[inline(always)]
    fn run<V: SimdVectors<T>>(self, _: V) -> usize {
        V::LANES
    }
}

/// A convolution with its operands.
pub(super) struct Direct<'a, T> {
    pub(super) geometry: &'a Geometry,
    pub(super) layout: &'a PaddedLayout,
    /// The copied planes of the input.
    pub(super) input: &'a [T],
    /// The weights, whose layout [`Geometry::weight_run`] describes.
    pub(super) kernel: &'a [T],
    /// Output channels that are computed together.
    block: usize,
}

/// A block of output channels for neighboring columns, and the parts of the result: for each image,
/// a part of the row of each channel.
pub(super) struct Task<'a, T> {
    pub(super) group: usize,
    pub(super) outputs: Range<usize>,
    pub(super) columns: Range<usize>,
    parts: Vec<&'a mut [T]>,
}

impl<T: InVectors> Direct<'_, T> {
    /// Divides the output channels and the columns.
    fn tasks<'o>(&self, cx: Cx<'_>, out: &'o mut [T]) -> Vec<Task<'o, T>> {
        let Geometry { groups, group_outputs, out_size: size, .. } = *self.geometry;
        let columns = self.geometry.batch * size;
        let blocks = group_outputs.div_ceil(self.block);
        // Some tasks for each thread, unless that copies the weights for few columns.
        let wanted = (4 * cx.threads()).div_ceil(groups * blocks);
        let most = (columns / LEAST_COLUMNS).max(1);
        let count = wanted.min(most).max(columns.div_ceil(MOST_COLUMNS));
        // Tasks have whole rows, unless rows are long.
        let row = self.geometry.last().count.min(LEAST_COLUMNS);
        let width = columns.div_ceil(count).next_multiple_of(row);
        let count = columns.div_ceil(width);
        let mut tasks: Vec<Task<'o, T>> = (0..groups * blocks * count)
            .map(|index| {
                let (block, first) = (index / count, index % count * width);
                let (group, output) = (block / blocks, block % blocks * self.block);
                let outputs = output..group_outputs.min(output + self.block);
                let columns = first..columns.min(first + width);
                Task { group, outputs, columns, parts: Vec::new() }
            })
            .collect();
        let (channels, run) = (groups * group_outputs, self.geometry.result_run());
        for (index, mut row) in out.chunks_exact_mut(run).enumerate() {
            let (mut column, channel) = (index / channels * run, index % channels);
            let (group, output) = (channel / group_outputs, channel % group_outputs);
            let tasks = &mut tasks[(group * blocks + output / self.block) * count..][..count];
            while !row.is_empty() {
                let task = &mut tasks[column / width];
                let (part, rest) = row.split_at_mut(row.len().min(task.columns.end - column));
                (row, column) = (rest, column + part.len());
                task.parts.push(part);
            }
        }
        tasks
    }

    fn fill(&self, cx: Cx<'_>, task: Task<'_, T>) {
        // As many weights of each output channel as stay in the cache.
        let steps = self.geometry.inner().min(CACHE_BYTES / (self.block * size_of::<T>()));
        let mut scratch = cx.scratch();
        let weights = scratch.elements(steps * self.block);
        T::with_vectors(TileWork { conv: self, task, weights });
    }
}

impl<T: InVectors> Task<'_, T> {
    /// Stores the sums `[row][position][lane]` of a tile from a column on, or adds them. Returns the column after them.
    #[inline(never)]
    pub(super) fn store(
        &mut self,
        geometry: &Geometry,
        mut column: usize,
        positions: usize,
        lanes: usize,
        mut sums: &[T],
        add: bool,
    ) -> usize {
        let (width, run, outputs) =
            (geometry.last().count, geometry.result_run(), self.outputs.len());
        // If a row has all positions of a row of the result, the next row follows it.
        let is_whole = positions == width;
        let row = if is_whole { run } else { width };
        while !sums.is_empty() && column < self.columns.end {
            let stored = if is_whole { sums.len() / lanes } else { positions };
            let end = ((column / row + 1) * row).min(column + stored).min(self.columns.end);
            let count = end - column;
            let start = column - self.columns.start.max(column / run * run);
            let first = (column / run - self.columns.start / run) * outputs;
            for (output, part) in self.parts[first..][..outputs].iter_mut().enumerate() {
                for (position, out) in part[start..][..count].iter_mut().enumerate() {
                    let sum = sums[position * lanes + output];
                    *out = if add { out.plus(sum) } else { sum };
                }
            }
            sums = &sums[lanes * if is_whole { count } else { positions }..];
            column = end;
        }
        column
    }
}
