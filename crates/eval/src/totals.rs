//! Element-wise code and the reduction of all that it computes to an element or a row, run together.
//!
//! A loss is the mean of squares, a norm the root of a sum of them. Done one after the other, the code
//! writes to memory what the reduction then reads. So a plan puts the two together: what the code has
//! computed of a block is reduced while it is in the first-level cache, and is nowhere else. Pieces
//! and their order are those of a reduction of what lies in memory, so this changes no bits.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use nxla_expr::ReduceOp;
use nxla_tensor::Shape;

use crate::args::Args;
use crate::elementwise::{Code, Feed, Outs};
use crate::error::Fault;
use crate::memory::Scratch;
use crate::reduce::Zipped;
use crate::run::Results;
use crate::threads::Brake;
use crate::{reduce, value};

/// Elements from which on it pays not to write them.
pub(crate) const LEAST: usize = 1 << 12;

/// Code and a reduction of one of its results.
pub(crate) struct Totals {
    pub(crate) code: Box<Code>,
    /// The result that is reduced.
    pub(crate) reduced: usize,
    /// Whether others read that result as well.
    pub(crate) is_kept: bool,
    pub(crate) op: ReduceOp,
    /// The shape of what it is reduced to.
    pub(crate) shape: Shape,
}

impl Totals {
    /// Computes all of it: the results that others read, then the total.
    pub(crate) fn run(&self, args: &mut Args<'_>) -> Result<Results, Fault> {
        let code = &*self.code;
        let len = code.shape.size();
        let (feeds, mut results) = code.begin(args, &code.shape, |result| self.keeps(result))?;
        let dtype = code.results[self.reduced];
        let mut total = value::fresh(self.dtype(), &self.shape)?;
        if let Some((zipped, operands)) = self.zipped(&feeds) {
            zipped.fill_total(operands, value::bytes_mut(&mut total));
            results.push(total);
            return Ok(results);
        }
        let pieces = self.pieces(&mut results);
        let brake = Brake::current();
        let make = |range: Range<usize>, sink: &mut dyn FnMut(&[u8])| {
            if !brake.is_pulled() {
                let piece = &pieces[range.start / self.piece()];
                let mut kept = piece.lock().unwrap_or_else(PoisonError::into_inner);
                self.run_piece(&feeds, range, &mut kept, sink);
            }
        };
        reduce::fill_total(self.op, dtype, len, &make, value::bytes_mut(&mut total));
        drop(pieces);
        results.push(total);
        Ok(results)
    }

    /// The dtype of the total.
    pub(crate) fn dtype(&self) -> nxla_tensor::DType {
        reduce::given(self.op, self.code.results[self.reduced])
    }

    /// The reduction with the two operands that it can read by itself, if there is no more to compute.
    fn zipped<'a>(&self, feeds: &[Feed<'a>]) -> Option<(Zipped, [&'a [u8]; 2])> {
        let (zip, inputs) = self.code.zip.filter(|_| !self.is_kept && self.shape.size() == 1)?;
        let zipped = Zipped { zip, op: self.op, dtype: self.code.results[self.reduced] };
        let [left, right] = inputs.map(|input| match feeds[usize::from(input)] {
            Feed::Whole(bytes) => Some((bytes, true)),
            Feed::Single(bytes) => Some((bytes, false)),
            Feed::Strided(..) | Feed::Overwritten(_) | Feed::Below(_) => None,
        });
        let ((left, is_whole), (right, is_too)) = (left?, right?);
        (zipped.is_known() && (is_whole || is_too)).then_some((zipped, [left, right]))
    }

    /// Whether others read a result of the code.
    fn keeps(&self, result: usize) -> bool {
        result != self.reduced || self.is_kept
    }

    /// Elements of a piece of the reduction.
    fn piece(&self) -> usize {
        reduce::piece(self.code.shape.size(), self.shape.size())
    }

    /// What is kept of the results, cut where the reduction is.
    fn pieces<'o>(&self, results: &'o mut [nxla_tensor::HostTensor]) -> Vec<Mutex<Outs<'o>>> {
        let len = self.code.shape.size();
        let piece = self.piece();
        let mut pieces: Vec<Outs<'o>> = (0..len.div_ceil(piece)).map(|_| Outs::new()).collect();
        for tensor in results {
            let size = tensor.dtype().size();
            let parts = value::bytes_mut(tensor).chunks_mut(piece * size);
            pieces.iter_mut().zip(parts).for_each(|(piece, part)| piece.push(part));
        }
        pieces.into_iter().map(Mutex::new).collect()
    }

    /// Computes a piece, of which these are the results that are kept, and gives what is reduced to
    /// the sink.
    fn run_piece(
        &self,
        feeds: &[Feed<'_>],
        range: Range<usize>,
        kept: &mut Outs<'_>,
        sink: &mut dyn FnMut(&[u8]),
    ) {
        let code = &*self.code;
        let first = range.start;
        // So short that the machine goes on fetching what comes next.
        let block = code.block(usize::MAX) / 2;
        debug_assert!(block.is_multiple_of(reduce::TURN));
        let block = block.min(range.len());
        let mut tile = Scratch::EMPTY;
        code.run_blocks(feeds, range, block, &mut |range, compute| {
            let bytes = |size: usize| (range.start - first) * size..(range.end - first) * size;
            let mut kept = kept.iter_mut();
            let mut tile = Some(&mut tile);
            let outs = code.results.iter().enumerate().map(|(result, dtype)| {
                let size = dtype.size();
                if self.keeps(result) {
                    &mut kept.next().expect("one for each that is kept")[bytes(size)]
                } else {
                    tile.take().expect("only one is not kept").bytes(range.len() * size)
                }
            });
            let mut outs: Outs<'_> = outs.collect();
            compute(&mut outs);
            sink(&*outs[self.reduced]);
        });
    }
}
