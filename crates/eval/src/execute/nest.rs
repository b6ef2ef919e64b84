//! The execution of loop nests, tile by tile.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use nxla_expr::ReduceOp;
use nxla_tensor::{DType, HostTensor, Shape};
use smallvec::SmallVec;

use super::limits::TILE_ELEMENTS;
use crate::context::{self, Args, Cx, Fault, Results, ScratchGuard};
use crate::kernels::elementwise::{
    Access, BodyCode, Broadcast, Domain, Feed, Feeds, Outs, PairFunction, split_off,
};
use crate::kernels::reduce::{self, RowOperand};
use crate::kernels::strided::Strided;

/// A loop nest over tiles of rows.
pub(crate) struct TiledNest {
    pub(crate) domain: Domain,
    /// The cost per element, in sixteenths of a nanosecond.
    pub(crate) cost: usize,
    pub(crate) parts: Box<[LoweredPart]>,
    /// Bytes per row of each tile that is not a result.
    pub(crate) locals: Box<[usize]>,
    pub(crate) outputs: Box<[Output]>,
}

/// A lowered part of a nest, or two parts that run together.
pub(crate) struct LoweredPart {
    pub(crate) work: LoweredWork,
    /// Elements per row of a body.
    pub(crate) width: usize,
    pub(crate) operands: SmallVec<[(TileOperand, Broadcast); 3]>,
    /// The tiles of the results; `None` for results that are not stored.
    pub(crate) results: SmallVec<[Option<usize>; 2]>,
    /// True if the rows of a tile are computed one by one.
    pub(crate) by_row: bool,
}

/// The computation of a part.
pub(crate) enum LoweredWork {
    Body(Box<BodyCode>),
    /// Reduces each row.
    Reduce(ReduceOp, DType),
    /// Reduces a result of a body while the body computes it.
    FusedReduction(Box<FusedReduction>),
    /// Reduces a function of two operands without storing it. An operand has an access rule if it is strided.
    MapReduce {
        function: PairFunction,
        dtype: DType,
        rules: [Option<Box<Strided>>; 2],
    },
}

/// A body and the reduction of one of its results.
pub(crate) struct FusedReduction {
    pub(crate) code: BodyCode,
    /// The number of the result that is reduced.
    pub(crate) reduced: usize,
    /// True if that result is stored as well.
    pub(crate) is_stored: bool,
    pub(crate) op: ReduceOp,
}

/// A tensor that a part reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TileOperand {
    /// An input of the nest.
    Input(usize),
    /// A tile: first the results of the nest, then the local tiles.
    Tile(usize),
}

/// A result of the nest.
pub(crate) struct Output {
    pub(crate) dtype: DType,
    pub(crate) shape: Shape,
    /// Bytes per row.
    pub(crate) row: usize,
    /// The inputs whose memory the result may reuse, because no part reads them after the result
    /// is written.
    pub(crate) over: SmallVec<[usize; 2]>,
}

/// The state that all tiles of a run share.
struct NestRun<'a> {
    cx: Cx<'a>,
    nest: &'a TiledNest,
    inputs: SmallVec<[&'a [u8]; 8]>,
    /// The input whose memory each result reuses.
    taken: SmallVec<[Option<usize>; 4]>,
}

impl TiledNest {
    /// Computes the results. A result reuses the memory of an operand that dies here.
    pub(crate) fn run(&self, cx: Cx<'_>, args: &mut Args<'_>) -> Result<Results, Fault> {
        let (mut results, mut taken) = (Results::new(), SmallVec::new());
        for output in &self.outputs {
            let mut inputs = output.over.iter().copied();
            let found = inputs.find(|&input| args.is_unique(input));
            taken.push(found);
            results.push(match found {
                Some(input) => context::reshape(args.take(input), &output.shape),
                None => context::fresh(output.dtype, &output.shape)?,
            });
        }
        // An input whose memory became a result is no longer in `args`; it is read from the result.
        let bytes = |index| if args.is_present(index) { args.get(index).bytes() } else { &[] };
        let inputs = (0..args.len()).map(bytes).collect();
        NestRun { cx, nest: self, inputs, taken }.fill(&mut results);
        Ok(results)
    }
}

impl NestRun<'_> {
    /// Computes all rows, on several threads if that pays. The kernels of the parts split a single row.
    fn fill(&self, results: &mut [HostTensor]) {
        let TiledNest { domain: Domain { rows, columns }, cost, .. } = *self.nest;
        let mut outs: Outs<'_> = results.iter_mut().map(context::bytes_mut).collect();
        let elements = rows * columns;
        let piece = self.cx.piece(elements, columns, elements.saturating_mul(cost));
        let Some(piece) = piece.filter(|_| rows > 1) else {
            return self.fill_rows(0, rows, outs);
        };
        let piece = piece / columns;
        let mut pieces = Vec::with_capacity(rows.div_ceil(piece));
        for first in (0..rows).step_by(piece) {
            let count = piece.min(rows - first);
            pieces.push((first, count, self.split_off(count, &mut outs)));
        }
        self.cx.each(pieces, |(first, count, outs)| self.fill_rows(first, count, outs));
    }

    /// Splits the first rows off each result.
    fn split_off<'o>(&self, count: usize, outs: &mut Outs<'o>) -> Outs<'o> {
        split_off(outs, self.nest.outputs.iter().map(|output| count * output.row))
    }

    /// Computes rows tile by tile.
    fn fill_rows(&self, first: usize, count: usize, mut outs: Outs<'_>) {
        let tile = (TILE_ELEMENTS / self.nest.domain.columns).max(1);
        // All tiles but the last have the same size.
        let tile = count.div_ceil(count.div_ceil(tile));
        let mut locals: SmallVec<[ScratchGuard; 4]> =
            self.nest.locals.iter().map(|_| self.cx.scratch()).collect();
        for begin in (0..count).step_by(tile) {
            let rows = tile.min(count - begin);
            let mut tiles = Outs::new();
            for out in self.split_off(rows, &mut outs) {
                tiles.push(out);
            }
            for (local, row) in locals.iter_mut().zip(&self.nest.locals) {
                tiles.push(local.bytes(rows * row));
            }
            for part in &self.nest.parts {
                self.run_part(part, first + begin, rows, &mut tiles);
            }
        }
    }

    /// Runs a part for the tile of `rows` rows that begins at the row `first`.
    fn run_part(&self, part: &LoweredPart, first: usize, rows: usize, tiles: &mut [&mut [u8]]) {
        // Move the results out of the list, so that the other tiles can be borrowed.
        let take = |&tile: &Option<usize>| {
            tile.map_or(&mut [][..], |tile| std::mem::take(&mut tiles[tile]))
        };
        let mut outs: Outs<'_> = part.results.iter().map(take).collect();
        let tile = Tile { run: self, first, tiles };
        match &part.work {
            LoweredWork::Body(code) if part.by_row => {
                for row in 0..rows {
                    let feeds = tile.feeds(part, code, row..row + 1);
                    code.run_range(self.cx, &feeds, 0, &mut row_of(&mut outs, row, rows));
                }
            }
            LoweredWork::Body(code) => {
                code.run_range(self.cx, &tile.feeds(part, code, 0..rows), 0, &mut outs);
            }
            LoweredWork::Reduce(op, dtype) => {
                let columns = self.nest.domain.columns;
                let x = tile.bytes(part.operands[0].0, columns * dtype.size(), 0..rows);
                reduce::fill_by_row(self.cx, *op, *dtype, x, columns, outs[0]);
            }
            LoweredWork::MapReduce { function, dtype, rules } => {
                let operand = |index: usize| {
                    let rule = rules[index].as_deref();
                    tile.row_operand(part.operands[index], rule, dtype.size(), rows)
                };
                let operands = [operand(0), operand(1)];
                reduce::map_reduce_rows(*function, *dtype, operands, part.width, outs[0]);
            }
            LoweredWork::FusedReduction(fold) => {
                for row in 0..rows {
                    let feeds = tile.feeds(part, &fold.code, row..row + 1);
                    fold.run(self.cx, &feeds, part.width, row_of(&mut outs, row, rows));
                }
            }
        }
        for (tile, out) in part.results.iter().zip(outs) {
            if let Some(tile) = *tile {
                tiles[tile] = out;
            }
        }
    }

    /// The tile that contains a tensor. An input may share the memory of a result.
    fn tile(&self, operand: TileOperand) -> Option<usize> {
        match operand {
            TileOperand::Tile(tile) => Some(tile),
            TileOperand::Input(input) => self.taken.iter().position(|&taken| taken == Some(input)),
        }
    }
}

/// One of `rows` rows of each result.
fn row_of<'o>(outs: &'o mut Outs<'_>, row: usize, rows: usize) -> Outs<'o> {
    let row_out = |out: &'o mut &mut [u8]| {
        let bytes = out.len() / rows;
        &mut out[row * bytes..][..bytes]
    };
    outs.iter_mut().map(row_out).collect()
}

impl FusedReduction {
    /// Computes a row of `columns` elements, and reduces it. `outs` are the results of the body, then the result
    /// of the reduction. A reduction of stored elements has the same pieces, so the bits are the same.
    fn run(&self, cx: Cx<'_>, feeds: &[Feed<'_>], columns: usize, mut outs: Outs<'_>) {
        let out = outs.pop().expect("the reduction has the last result");
        let dtype = self.code.results[self.reduced];
        let results = out.len() / reduce::result_dtype(self.op, dtype).size();
        let piece = reduce::piece(columns, results);
        let pieces = self.pieces(outs, columns, piece);
        let make = |range: Range<usize>, sink: &mut dyn FnMut(&[u8])| {
            if cx.is_cancelled() {
                return;
            }
            let Some(piece) = pieces.get(range.start / piece) else {
                return self.run_piece(cx, feeds, range, &mut Outs::new(), sink);
            };
            let mut stored = piece.lock().unwrap_or_else(PoisonError::into_inner);
            self.run_piece(cx, feeds, range, &mut stored, sink);
        };
        reduce::fill_total(cx, self.op, dtype, columns, &make, out);
    }

    /// Returns true if a result of the body is stored.
    fn stores(&self, result: usize) -> bool {
        result != self.reduced || self.is_stored
    }

    /// The stored results, split at the pieces of the reduction; no pieces if no result is stored, because a sum of
    /// elements that are not stored can have more pieces than fit in memory.
    fn pieces<'o>(&self, outs: Outs<'o>, columns: usize, piece: usize) -> Vec<Mutex<Outs<'o>>> {
        if !(0..outs.len()).any(|result| self.stores(result)) {
            return Vec::new();
        }
        let mut pieces: Vec<Outs<'o>> = (0..columns.div_ceil(piece)).map(|_| Outs::new()).collect();
        for (result, out) in outs.into_iter().enumerate().filter(|(result, _)| self.stores(*result))
        {
            let parts = out.chunks_mut(piece * self.code.results[result].size());
            pieces.iter_mut().zip(parts).for_each(|(piece, part)| piece.push(part));
        }
        pieces.into_iter().map(Mutex::new).collect()
    }

    /// Computes a piece, and passes the elements to reduce to the sink.
    fn run_piece(
        &self,
        cx: Cx<'_>,
        feeds: &[Feed<'_>],
        range: Range<usize>,
        stored: &mut Outs<'_>,
        sink: &mut dyn FnMut(&[u8]),
    ) {
        let (code, first) = (&self.code, range.start);
        // With blocks of full size, the processor would stop prefetching the inputs.
        let block = code.block(usize::MAX) / 2;
        debug_assert!(block.is_multiple_of(reduce::ROUND));
        let block = block.min(range.len());
        let mut scratch = cx.scratch();
        code.run_blocks(cx, feeds, range, block, &mut |range, compute| {
            let bytes = |size: usize| (range.start - first) * size..(range.end - first) * size;
            let (mut stored, mut scratch) = (stored.iter_mut(), Some(&mut scratch));
            let outs = code.results.iter().enumerate().map(|(result, dtype)| {
                let size = dtype.size();
                if self.stores(result) {
                    &mut stored.next().expect("there is one output for each stored result")
                        [bytes(size)]
                } else {
                    let scratch = scratch.take().expect("at most one result is not stored");
                    scratch.bytes(range.len() * size)
                }
            });
            let mut outs: Outs<'_> = outs.collect();
            compute(&mut outs);
            sink(&*outs[self.reduced]);
        });
    }
}

/// The tensors that parts read while they work on a tile.
struct Tile<'a, 'r, 't> {
    run: &'a NestRun<'r>,
    /// The first row of the tile.
    first: usize,
    tiles: &'a [&'t mut [u8]],
}

impl Tile<'_, '_, '_> {
    /// The inputs of a body for some rows of the tile.
    fn feeds<'s>(
        &'s self,
        part: &'s LoweredPart,
        code: &'s BodyCode,
        rows: Range<usize>,
    ) -> Feeds<'s> {
        (0..code.inputs.len()).map(|input| self.feed(part, code, input, rows.clone())).collect()
    }

    fn feed<'s>(
        &'s self,
        part: &LoweredPart,
        code: &'s BodyCode,
        index: usize,
        rows: Range<usize>,
    ) -> Feed<'s> {
        let ((operand, broadcast), input) = (part.operands[index], &code.inputs[index]);
        let size = input.dtype.size();
        match (broadcast, &input.access) {
            (Broadcast::None, _) => {
                let tile = self.run.tile(operand);
                let is_same = |result: &Option<usize>| result.is_some() && *result == tile;
                match part.results.iter().position(is_same) {
                    Some(result) => code.feed_below(index, result),
                    None => Feed::Whole(self.bytes(operand, part.width * size, rows)),
                }
            }
            (Broadcast::PerRow, _) if part.by_row => Feed::Single(self.bytes(operand, size, rows)),
            (Broadcast::PerColumn, _) if part.by_row => Feed::Whole(self.all(operand)),
            (_, Access::Strided(rule)) => {
                let first = self.first_of(operand) + rows.start;
                Feed::Strided(self.all(operand), rule, first * part.width)
            }
            (_, Access::Single | Access::Same) => Feed::Single(self.all(operand)),
        }
    }

    /// The rows of one of two operands that are reduced together.
    fn row_operand(
        &self,
        (operand, broadcast): (TileOperand, Broadcast),
        rule: Option<&Strided>,
        size: usize,
        rows: usize,
    ) -> RowOperand<'_> {
        let columns = self.run.nest.domain.columns;
        let (bytes, starts) = match (broadcast, rule) {
            (Broadcast::None, _) => {
                let starts = (0..rows).map(|row| row * columns).collect();
                (self.bytes(operand, columns * size, 0..rows), starts)
            }
            (Broadcast::PerRow, _) => (self.bytes(operand, size, 0..rows), (0..rows).collect()),
            (Broadcast::Strided, Some(rule)) => {
                let first = self.first_of(operand) * columns;
                (self.all(operand), rule.row_starts(first, rows, columns))
            }
            (Broadcast::Scalar | Broadcast::PerColumn | Broadcast::Strided, _) => {
                (self.all(operand), vec![0; rows])
            }
        };
        let is_single = matches!(broadcast, Broadcast::PerRow | Broadcast::Scalar);
        RowOperand { bytes, starts, is_single }
    }

    /// The row of a tensor at which the tile begins.
    fn first_of(&self, operand: TileOperand) -> usize {
        match operand {
            TileOperand::Input(_) => self.first,
            TileOperand::Tile(_) => 0,
        }
    }

    /// All bytes of an input or of a tile.
    fn all(&self, operand: TileOperand) -> &[u8] {
        match operand {
            TileOperand::Input(input) => self.run.inputs[input],
            TileOperand::Tile(tile) => &*self.tiles[tile],
        }
    }

    /// The bytes of some rows of the tile, of `row` bytes each.
    fn bytes(&self, operand: TileOperand, row: usize, rows: Range<usize>) -> &[u8] {
        match self.run.tile(operand) {
            Some(tile) => &self.tiles[tile][rows.start * row..rows.end * row],
            None => {
                &self.all(operand)[(self.first + rows.start) * row..(self.first + rows.end) * row]
            }
        }
    }
}
