//! Stencils: element-wise code on windows of one grid, which are slices of one size from tensors with rows of one
//! length.
//!
//! Copying a window to a register takes as long as computing with it. The distance between elements that are used
//! together is the same in all rows of the grid, including the ends of the rows. Code that runs over whole rows can
//! therefore read each window in place. The results of the ends are dropped, which is one copy instead of one copy
//! per window.

use nxla_tensor::DType;

use super::code::Code;
use super::exec::{Feed, Feeds, Outs};
use crate::context::Cx;
use crate::kernels::strided::Window;

/// Rows for which a copy is faster than starting a loop.
const SHORTEST: usize = 32;

/// At most one in this many elements is computed in vain.
const WASTE: usize = 8;

/// Inputs that are windows of one grid, or single elements.
pub(super) struct Grid<'a> {
    /// Each window from its first element on.
    feeds: Feeds<'a>,
    /// Elements of a row of the windows.
    columns: usize,
    /// Elements from the start of a row to the start of the next row.
    pitch: usize,
}

impl<'a> Grid<'a> {
    /// The inputs of a run as windows of a grid, if that saves copies.
    pub(super) fn of(code: &Code, feeds: &[Feed<'a>]) -> Option<Self> {
        let (mut shifted, mut windows) = (Feeds::new(), 0);
        let mut grid = None;
        for (feed, input) in feeds.iter().zip(&code.inputs) {
            shifted.push(match *feed {
                Feed::Single(value) => Feed::Single(value),
                Feed::Strided(bytes, rule, 0) => {
                    let Window { first, rows, pitch, columns } = rule.window()?;
                    if *grid.get_or_insert((rows, pitch, columns)) != (rows, pitch, columns) {
                        return None;
                    }
                    windows += 1;
                    Feed::Whole(&bytes[first * input.dtype.size()..])
                }
                Feed::Strided(..) | Feed::Whole(_) | Feed::Overwritten(_) | Feed::Below(_) => {
                    return None;
                }
            });
        }
        let (_, pitch, columns) = grid?;
        let pays =
            windows > code.results.len() && columns >= SHORTEST && pitch - columns <= pitch / WASTE;
        pays.then_some(Self { feeds: shifted, columns, pitch })
    }

    /// Elements of a row. Pieces have whole rows.
    pub(super) fn columns(&self) -> usize {
        self.columns
    }

    /// Computes the elements of the results from `first` on, where a row starts, on the calling
    /// thread.
    pub(super) fn run_rows(&self, cx: Cx<'_>, code: &Code, first: usize, outs: &mut [&mut [u8]]) {
        let (pitch, columns) = (self.pitch, self.columns);
        let rows = outs[0].len() / code.results[0].size() / columns;
        let begin = first / columns * pitch;
        let range = begin..begin + (rows - 1) * pitch + columns;
        let block = code.block(range.len());
        let bytes = |dtype: &DType| block * dtype.size();
        let mut scratch = cx.scratch();
        let scratch = scratch.bytes(code.results.iter().map(bytes).sum());
        code.run_blocks(cx, &self.feeds, range, block, &mut |range, compute| {
            let (mut rest, mut parts) = (&mut *scratch, Outs::new());
            for dtype in &code.results {
                let part;
                (part, rest) = rest.split_at_mut(bytes(dtype));
                parts.push(&mut part[..range.len() * dtype.size()]);
            }
            compute(&mut parts);
            for ((part, out), dtype) in parts.iter().zip(&mut *outs).zip(&code.results) {
                self.put_rows(dtype.size(), range.start - begin, part, out);
            }
        });
    }

    /// Copies the rows of a block of the grid, which begins at `at`, to their positions in a
    /// result.
    fn put_rows(&self, size: usize, mut at: usize, block: &[u8], out: &mut [u8]) {
        let (start, end) = (at, at + block.len() / size);
        while at < end {
            let (row, column) = (at / self.pitch, at % self.pitch);
            if column < self.columns {
                let count = (self.columns - column).min(end - at);
                let target = (row * self.columns + column) * size;
                let source = (at - start) * size;
                let run = &block[source..source + count * size];
                out[target..target + run.len()].copy_from_slice(run);
            }
            at += self.pitch - column;
        }
    }
}
