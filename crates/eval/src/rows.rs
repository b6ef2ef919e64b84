//! Reductions by row and the element-wise code around them, run tile by tile.
//!
//! A softmax goes over each row three times, a layer norm four times. Done one after the other for
//! the whole tensor, each of these steps reads and writes memory. So a plan puts them together:
//! a tile of a few rows goes through all of them before the next tile does, and what passes from one
//! to another stays in the cache. Each row is reduced by itself and in the same order as it would
//! be otherwise, so this changes no bits.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use nxla_expr::ReduceOp;
use nxla_tensor::{DType, HostTensor, Shape};
use smallvec::SmallVec;

use crate::args::Args;
use crate::elementwise::{Access, Code, Feed, Feeds, Outs};
use crate::error::Fault;
use crate::layout::Strided;
use crate::memory::Scratch;
use crate::reduce::{Zipped, ZippedRows};
use crate::run::Results;
use crate::{parallel, reduce, value};

/// Elements of a tile, if a row has not more: the handful of tiles that are alive at a time fit into
/// a second-level cache.
const TILE: usize = 8192;

/// Elements of the longest rows.
pub(crate) const LONGEST: usize = 1 << 15;

/// Elements of a row that is worth being computed by itself.
const WIDE: usize = 512;

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
    pub(crate) operands: SmallVec<[(Place, Lies); 3]>,
    /// Its tiles.
    pub(crate) results: SmallVec<[u16; 2]>,
    /// Whether its rows are computed one after the other, see [`pays_by_row`].
    pub(crate) by_row: bool,
}

/// Whether it pays to compute rows one after the other: what counts for a row or for all rows is then
/// read where it is.
pub(crate) fn pays_by_row(width: usize, operands: &[(Place, Lies)]) -> bool {
    let spares = |&(_, lies): &(Place, Lies)| matches!(lies, Lies::ByRow | Lies::ByColumn);
    width >= WIDE && operands.iter().any(spares)
}

/// What a step does.
pub(crate) enum Work {
    Code(Box<Code>),
    Reduce(ReduceOp, DType),
    /// Reduces what code computes of each row, block by block.
    Fold(Box<Code>, ReduceOp),
    /// Reduces what two operands give element by element, without writing it. Where they are in no plain way,
    /// there are rules.
    Zip(Zipped, [Option<Box<Strided>>; 2]),
}

/// Where a tensor is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// An operand of the whole.
    Input(u16),
    /// A tile: first come those of the results, then those that no other step sees.
    Tile(u16),
}

/// How an operand of a step lies to what the step computes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lies {
    /// Element by element.
    Same,
    /// One element counts for all.
    Single,
    /// One element counts for a row.
    ByRow,
    /// One row counts for all.
    ByColumn,
    /// As the rule of the code's input says.
    Strided,
}

impl Lies {
    /// How what is read so lies to rows of so many columns.
    pub(crate) fn of(access: &Access, (rows, columns): (usize, usize)) -> Self {
        let rule = |by_row, by_column| Strided::new(0, [(rows, by_row), (columns, by_column)]);
        match access {
            Access::Same => Lies::Same,
            Access::Single => Lies::Single,
            Access::Strided(found) if **found == rule(1, 0) => Lies::ByRow,
            Access::Strided(found) if **found == rule(0, 1) => Lies::ByColumn,
            Access::Strided(_) => Lies::Strided,
        }
    }
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
    static TILES: RefCell<Vec<Scratch>> = const { RefCell::new(Vec::new()) };
}

/// What all tiles share.
struct Run<'a> {
    rows: &'a Rows,
    inputs: SmallVec<[&'a [u8]; 8]>,
    /// For each result the operand that lies in its memory.
    taken: SmallVec<[Option<u16>; 4]>,
}

impl Rows {
    /// Rows of a tile.
    fn tile(&self) -> usize {
        (TILE / self.columns).max(1)
    }

    /// Computes all of it. Operands that nobody else holds become results.
    pub(crate) fn run(&self, args: &mut Args<'_>) -> Result<Results, Fault> {
        let (mut results, mut taken) = (Results::new(), SmallVec::new());
        for result in &self.results {
            let mut inputs = result.over.iter().copied();
            let found = inputs.find(|&input| args.is_unique(usize::from(input)));
            taken.push(found);
            results.push(match found {
                Some(input) => value::reshaped(args.take(usize::from(input)), &result.shape),
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
        let Some(piece) = parallel::piece(elements, columns, elements.saturating_mul(cost)) else {
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
        let locals = &self.rows.locals;
        // Tiles of the same size, but for the last.
        let most = count.div_ceil(count.div_ceil(self.rows.tile()));
        let mut kept = TILES.take();
        if kept.len() < locals.len() {
            kept.resize_with(locals.len(), || Scratch::EMPTY);
        }
        for begin in (0..count).step_by(most) {
            let rows = most.min(count - begin);
            self.fill_tile(first + begin, rows, self.split_off(rows, &mut outs), &mut kept);
        }
        TILES.set(kept);
    }

    /// Computes the tile of `rows` rows that begins at the row `first`.
    fn fill_tile(&self, first: usize, rows: usize, outs: Outs<'_>, kept: &mut [Scratch]) {
        let mut tiles = Outs::new();
        for out in outs {
            tiles.push(out);
        }
        for (tile, row) in kept.iter_mut().zip(&self.rows.locals) {
            tiles.push(tile.bytes(rows * row));
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
        let tile = Tile { run: self, first, tiles };
        match &part.work {
            Work::Code(code) if part.by_row => {
                for row in 0..rows {
                    let rows_outs = outs.iter_mut().map(|out| {
                        let bytes = out.len() / rows;
                        &mut out[row * bytes..][..bytes]
                    });
                    let mut row_outs: Outs<'_> = rows_outs.collect();
                    code.run_range(&tile.feeds(part, code, row..row + 1), 0, &mut row_outs);
                }
            }
            Work::Code(code) => code.run_range(&tile.feeds(part, code, 0..rows), 0, &mut outs),
            Work::Reduce(op, dtype) => {
                let columns = self.rows.columns;
                let x = tile.bytes(part.operands[0].0, columns * dtype.size(), 0..rows);
                reduce::fill_by_row(*op, *dtype, x, columns, outs[0]);
            }
            Work::Zip(zipped, rules) => {
                let size = zipped.dtype.size();
                let operand = |index: usize| {
                    tile.zipped_rows(part.operands[index], rules[index].as_deref(), size, rows)
                };
                zipped.fill_by_row([operand(0), operand(1)], part.width, outs[0]);
            }
            Work::Fold(code, op) => {
                let (out, rest) = outs.split_first_mut().expect("a fold has a result and a tile");
                for row in 0..rows {
                    let feeds = tile.feeds(part, code, row..row + 1);
                    let bytes = out.len() / rows;
                    fold_row(
                        code,
                        *op,
                        &feeds,
                        part.width,
                        rest[0],
                        &mut out[row * bytes..][..bytes],
                    );
                }
            }
        }
        for (&tile, out) in part.results.iter().zip(outs) {
            tiles[usize::from(tile)] = out;
        }
    }

    /// The tile in which a tensor is; operands may lie where results will.
    fn tile(&self, place: Place) -> Option<usize> {
        match place {
            Place::Tile(tile) => Some(usize::from(tile)),
            Place::Input(input) => self.taken.iter().position(|&taken| taken == Some(input)),
        }
    }
}

/// Reduces what code computes of a row of so many columns to one element; a block of it goes through
/// the tile at a time.
fn fold_row(
    code: &Code,
    op: ReduceOp,
    feeds: &[Feed<'_>],
    columns: usize,
    tile: &mut [u8],
    out: &mut [u8],
) {
    let dtype = code.results[0];
    let tile = Mutex::new(tile);
    let make = |range: Range<usize>, sink: &mut dyn FnMut(&[u8])| {
        let mut tile = tile.lock().unwrap_or_else(PoisonError::into_inner);
        let block = code.block(range.len());
        code.run_blocks(feeds, range, block, &mut |block, compute| {
            let mut outs: Outs<'_> =
                [&mut tile[..block.len() * dtype.size()]].into_iter().collect();
            compute(&mut outs);
            sink(&*outs[0]);
        });
    };
    reduce::fill_total(op, dtype, columns, &make, out);
}

/// What steps read while they work on a tile.
struct Tile<'a, 'r, 't> {
    run: &'a Run<'r>,
    /// The row of the tensors that it begins at.
    first: usize,
    tiles: &'a [&'t mut [u8]],
}

impl Tile<'_, '_, '_> {
    /// The inputs of code for some rows of the tile.
    fn feeds<'s>(&'s self, part: &'s Part, code: &'s Code, rows: Range<usize>) -> Feeds<'s> {
        (0..code.inputs.len()).map(|input| self.feed(part, code, input, rows.clone())).collect()
    }

    fn feed<'s>(
        &'s self,
        part: &Part,
        code: &'s Code,
        index: usize,
        rows: Range<usize>,
    ) -> Feed<'s> {
        let ((place, lies), input) = (part.operands[index], &code.inputs[index]);
        let size = input.dtype.size();
        match (lies, &input.access) {
            (Lies::Same, _) => {
                let tile = self.run.tile(place);
                let is_it = |&result: &u16| tile == Some(usize::from(result));
                match part.results.iter().position(is_it) {
                    Some(result) => code.feed_below(index, result),
                    None => Feed::Whole(self.bytes(place, part.width * size, rows)),
                }
            }
            (Lies::ByRow, _) if part.by_row => Feed::Single(self.bytes(place, size, rows)),
            (Lies::ByColumn, _) if part.by_row => Feed::Whole(self.all(place)),
            (_, Access::Strided(rule)) => match place {
                Place::Input(_) => {
                    Feed::Strided(self.all(place), rule, (self.first + rows.start) * part.width)
                }
                Place::Tile(_) => Feed::Strided(self.all(place), rule, rows.start * part.width),
            },
            (_, Access::Single | Access::Same) => Feed::Single(self.all(place)),
        }
    }

    /// The rows of an operand that are reduced with those of another one.
    fn zipped_rows(
        &self,
        (place, lies): (Place, Lies),
        rule: Option<&Strided>,
        size: usize,
        rows: usize,
    ) -> ZippedRows<'_> {
        let columns = self.run.rows.columns;
        let (bytes, starts) = match (lies, rule) {
            (Lies::Same, _) => {
                let starts = (0..rows).map(|row| row * columns).collect();
                (self.bytes(place, columns * size, 0..rows), starts)
            }
            (Lies::ByRow, _) => (self.bytes(place, size, 0..rows), (0..rows).collect()),
            (Lies::Strided, Some(rule)) => {
                let first = match place {
                    Place::Input(_) => self.first,
                    Place::Tile(_) => 0,
                };
                (self.all(place), rule.row_starts(first * columns, rows, columns))
            }
            (Lies::Single | Lies::ByColumn | Lies::Strided, _) => (self.all(place), vec![0; rows]),
        };
        ZippedRows { bytes, starts, is_single: matches!(lies, Lies::ByRow | Lies::Single) }
    }

    /// All bytes of an operand, or of a tile.
    fn all(&self, place: Place) -> &[u8] {
        match place {
            Place::Input(input) => self.run.inputs[usize::from(input)],
            Place::Tile(tile) => &*self.tiles[usize::from(tile)],
        }
    }

    /// The bytes of some rows of the tile, of so many each.
    fn bytes(&self, place: Place, row: usize, rows: Range<usize>) -> &[u8] {
        match self.run.tile(place) {
            Some(tile) => &self.tiles[tile][rows.start * row..rows.end * row],
            None => {
                &self.all(place)[(self.first + rows.start) * row..(self.first + rows.end) * row]
            }
        }
    }
}
