//! Reductions by row and the element-wise code around them, run tile by tile.
//!
//! A softmax goes over each row three times, a layer norm four times. Done one after the other for
//! the whole tensor, each of these steps reads and writes memory. So a plan puts them together:
//! a tile of a few rows goes through all of them before the next tile does, and what passes from one
//! to another stays in the cache. Each row is reduced by itself and in the same order as it would
//! be otherwise, so this changes no bits.

use std::cell::RefCell;
use std::ops::Range;

use bytemuck::cast_slice_mut;
use nxla_expr::ReduceOp;
use nxla_tensor::{DType, HostTensor, Shape};
use smallvec::SmallVec;

use crate::args::Args;
use crate::elementwise::{Access, Code, Feed, Feeds, Input, Outs};
use crate::error::Fault;
use crate::run::Results;
use crate::{memory, parallel, reduce, value};

/// Elements of a tile, if a row has not more: the handful of tiles that are alive at a time fit into
/// a second-level cache.
const TILE: usize = 8192;

/// Elements of the longest rows.
pub(crate) const LONGEST: usize = 1 << 15;

/// Bytes of a word of the buffers, which every element is aligned to.
const WORD: usize = size_of::<u64>();

/// Steps that run together on tiles of rows.
pub(crate) struct Rows {
    pub(crate) rows: usize,
    /// What an element takes, see [`Code::cost`].
    pub(crate) cost: usize,
    pub(crate) columns: usize,
    pub(crate) parts: Box<[Part]>,
    /// Bytes of a row of each tensor that no other step sees.
    pub(crate) locals: Box<[usize]>,
    pub(crate) results: Box<[Outcome]>,
}

/// One of the steps.
pub(crate) struct Part {
    pub(crate) work: Work,
    /// Elements of a row of what it computes: those of the row, or one.
    pub(crate) width: usize,
    pub(crate) operands: SmallVec<[Place; 3]>,
    /// Its tiles.
    pub(crate) results: SmallVec<[u16; 2]>,
}

/// What a step does.
pub(crate) enum Work {
    Code(Box<Code>),
    Reduce(ReduceOp, DType),
}

/// Where a tensor is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// An operand of the whole.
    Input(u16),
    /// A tile: first come those of the results, then those that no other step sees.
    Tile(u16),
}

/// A result of the whole, which is a tensor that other steps see.
pub(crate) struct Outcome {
    pub(crate) dtype: DType,
    pub(crate) shape: Shape,
    /// Bytes of a row.
    pub(crate) row: usize,
    /// Operands whose memory may become its own: nobody reads them after it was written.
    pub(crate) over: SmallVec<[u16; 2]>,
}

thread_local! {
    /// The tiles of this thread.
    static TILES: RefCell<Vec<Vec<u64>>> = const { RefCell::new(Vec::new()) };
}

/// What all tiles share.
struct Run<'a> {
    rows: &'a Rows,
    inputs: SmallVec<[&'a [u8]; 8]>,
    /// For each result the operand that lies in its memory.
    taken: SmallVec<[Option<u16>; 4]>,
}

impl Rows {
    /// Computes all of it. Operands that nobody else holds become results.
    pub(crate) fn run(&self, args: &mut Args<'_>) -> Result<Results, Fault> {
        let (mut results, mut taken) = (Results::new(), SmallVec::new());
        for result in &self.results {
            let found = result.over.iter().find_map(|&input| {
                let index = usize::from(input);
                let tensor = args.is_there(index).then(|| args.take_unique(index)).flatten();
                tensor.map(|tensor| (input, tensor))
            });
            taken.push(found.as_ref().map(|&(input, _)| input));
            results.push(match found {
                Some((_, tensor)) => value::reshaped(tensor, &result.shape),
                None => value::fresh(result.dtype, &result.shape)?,
            });
        }
        // Those whose memory was taken are read where they are.
        let is_there = |index| if args.is_there(index) { args.get(index).bytes() } else { &[] };
        let inputs = (0..args.len()).map(is_there).collect();
        Run { rows: self, inputs, taken }.fill(&mut results);
        Ok(results)
    }
}

impl Run<'_> {
    /// Computes all rows, in pieces that are shared out if that pays.
    fn fill(&self, results: &mut [HostTensor]) {
        let Rows { rows, columns, cost, .. } = *self.rows;
        let mut outs: Outs<'_> = results.iter_mut().map(value::bytes_mut).collect();
        let elements = rows * columns;
        let tile = (TILE / columns).max(1) * columns;
        let Some(piece) = parallel::piece(elements, tile, elements.saturating_mul(cost)) else {
            return self.fill_rows(0, rows, outs);
        };
        let piece = piece / columns;
        let mut pieces = Vec::with_capacity(rows.div_ceil(piece));
        for first in (0..rows).step_by(piece) {
            let count = piece.min(rows - first);
            pieces.push((first, count, self.split_off(count, &mut outs)));
        }
        parallel::each(pieces, |(first, count, outs)| self.fill_rows(first, count, outs));
    }

    /// The first rows of each result, which are taken away from it.
    fn split_off<'o>(&self, count: usize, outs: &mut Outs<'o>) -> Outs<'o> {
        let rows = outs.iter_mut().zip(&self.rows.results).map(|(out, result)| {
            let (part, rest) = std::mem::take(out).split_at_mut(count * result.row);
            *out = rest;
            part
        });
        rows.collect()
    }

    /// Computes some rows, tile by tile.
    fn fill_rows(&self, first: usize, count: usize, mut outs: Outs<'_>) {
        let Rows { columns, locals, .. } = self.rows;
        let most = (TILE / columns).max(1).min(count);
        let mut kept = TILES.take();
        if kept.len() < locals.len() {
            kept.resize_with(locals.len(), Vec::new);
        }
        for (words, row) in kept.iter_mut().zip(locals) {
            let needed = (most * row).div_ceil(WORD);
            if words.len() < needed {
                memory::resize(words, 0, needed);
            }
        }
        for begin in (0..count).step_by(most) {
            let rows = most.min(count - begin);
            self.fill_tile(first + begin, rows, self.split_off(rows, &mut outs), &mut kept);
        }
        TILES.set(kept);
    }

    /// Computes the tile of `rows` rows that begins at the row `first`.
    fn fill_tile(&self, first: usize, rows: usize, outs: Outs<'_>, kept: &mut [Vec<u64>]) {
        let mut tiles = Outs::new();
        for out in outs {
            tiles.push(out);
        }
        for (words, row) in kept.iter_mut().zip(&self.rows.locals) {
            tiles.push(&mut cast_slice_mut(words)[..rows * row]);
        }
        for part in &self.rows.parts {
            self.step(part, first, rows, &mut tiles);
        }
    }

    /// Does one step for the tile of `rows` rows that begins at the row `first`.
    fn step(&self, part: &Part, first: usize, rows: usize, tiles: &mut [&mut [u8]]) {
        // What it writes is taken out, so that all else can be read.
        let results =
            part.results.iter().map(|&tile| std::mem::take(&mut tiles[usize::from(tile)]));
        let mut outs: Outs<'_> = results.collect();
        match &part.work {
            Work::Code(code) => {
                let operands = part.operands.iter().zip(&code.inputs);
                let feeds: Feeds<'_> = operands
                    .map(|(&place, input)| {
                        let range = first * part.width..(first + rows) * part.width;
                        self.feed(place, input, range, part, tiles)
                    })
                    .collect();
                code.run_range(&feeds, 0, &mut outs);
            }
            Work::Reduce(op, dtype) => {
                let row = self.rows.columns * dtype.size();
                let x = self.bytes(part.operands[0], first * row..(first + rows) * row, tiles);
                reduce::fill_by_row(*op, *dtype, x, self.rows.columns, outs[0]);
            }
        }
        for (&tile, out) in part.results.iter().zip(outs) {
            tiles[usize::from(tile)] = out;
        }
    }

    /// An input of code, of whose elements this range is needed.
    fn feed<'t>(
        &'t self,
        place: Place,
        input: &'t Input,
        range: Range<usize>,
        part: &Part,
        tiles: &'t [&mut [u8]],
    ) -> Feed<'t> {
        let size = input.dtype.size();
        match (&input.access, place) {
            (Access::Same, _) => {
                let written = self.tile(place).and_then(|tile| {
                    part.results.iter().position(|&result| usize::from(result) == tile)
                });
                match written {
                    Some(result) => Feed::Overwritten(result),
                    None => {
                        let bytes = range.start * size..range.end * size;
                        Feed::Whole(self.bytes(place, bytes, tiles))
                    }
                }
            }
            (Access::Single, Place::Input(input)) => Feed::Single(self.inputs[usize::from(input)]),
            (Access::Single, Place::Tile(tile)) => Feed::Single(&*tiles[usize::from(tile)]),
            (Access::Strided(rule), Place::Input(input)) => {
                Feed::Strided(self.inputs[usize::from(input)], rule, range.start)
            }
            (Access::Strided(rule), Place::Tile(tile)) => {
                Feed::Strided(&*tiles[usize::from(tile)], rule, 0)
            }
        }
    }

    /// The tile in which a tensor is; operands may lie where results will.
    fn tile(&self, place: Place) -> Option<usize> {
        match place {
            Place::Tile(tile) => Some(usize::from(tile)),
            Place::Input(input) => self.taken.iter().position(|&taken| taken == Some(input)),
        }
    }

    /// The bytes of a tile, which are this range of the whole tensor.
    fn bytes<'t>(&'t self, place: Place, range: Range<usize>, tiles: &'t [&mut [u8]]) -> &'t [u8] {
        match (self.tile(place), place) {
            (Some(tile), _) => &*tiles[tile],
            (None, Place::Input(input)) => &self.inputs[usize::from(input)][range],
            (None, Place::Tile(_)) => unreachable!("a tile is one"),
        }
    }
}
