//! Running the code of a group.
//!
//! Each thread stores its registers in one buffer, which later runs reuse, so that a group of
//! scalars only allocates its result. An input that the result overwrites, or that is broadcast, is
//! first copied to a register block by block.

use std::ops::Range;

use nxla_tensor::{DType, Shape};
use smallvec::SmallVec;

use super::code::{Access, BodyCode, Instruction, Loc, Target};
use super::lanes::{Src, WIDE_LANES};
use crate::context::{self, Args, Cx, Fault, LINE, Results};
use crate::kernels::limits::BLOCK_BYTES;
use crate::kernels::number::gcd;
use crate::kernels::strided::{Strided, match_size};

/// The size of pieces for threads is a multiple of this number of elements, which is small so that
/// the last piece is about as long as the others.
const PIECE_ELEMENTS: usize = 1024;

/// Bytes of the largest element.
const MAX_SIZE: usize = 16;

/// An input of a run.
#[derive(Clone, Copy)]
pub(crate) enum Feed<'a> {
    /// The input is read in place.
    Whole(&'a [u8]),
    /// The input has one element, which is repeated.
    Single(&'a [u8]),
    /// The input is copied to a register by an access rule, from this element of the rule on.
    Strided(&'a [u8], &'a Strided, usize),
    /// The input is overwritten by a result, so it is copied to a register.
    Overwritten(usize),
    /// The input is overwritten by a result, and is read in place before.
    OverwrittenInPlace(usize),
}

/// The location of the elements of a block of an input.
#[derive(Clone, Copy)]
enum Staged<'a> {
    /// They are read in place.
    InPlace(&'a [u8]),
    /// They are read from a result, which overwrites them.
    Result(usize),
    /// They are in the register of the input.
    Register,
    /// The input has one element, which is repeated.
    Splat,
}

pub(crate) type Feeds<'a> = SmallVec<[Feed<'a>; 4]>;

/// For each result, the operand whose memory it reuses, if there is one.
type ReusedOperands = SmallVec<[Option<usize>; 2]>;

/// The same elements of each result.
pub(crate) type Outs<'a> = SmallVec<[&'a mut [u8]; 2]>;

impl BodyCode {
    /// Computes the group. A result reuses the memory of an operand of its type that dies here.
    ///
    /// A group of scalars can also run on vectors of `lanes` elements. An operand with one element is then repeated.
    pub(crate) fn run(
        &self,
        cx: Cx<'_>,
        args: &mut Args<'_>,
        lanes: Option<usize>,
    ) -> Result<Results, Fault> {
        let vector = lanes.map(|count| Shape::from([count]));
        let shape = vector.as_ref().unwrap_or(&self.shape);
        let len = shape.size();
        let (mut reused, mut results) = (ReusedOperands::new(), Results::new());
        for &dtype in &self.results {
            let operand = self.reusable(args, dtype, len);
            reused.push(operand);
            results.push(match operand {
                Some(operand) => context::reshape(args.take(operand), shape),
                None => context::fresh(dtype, shape)?,
            });
        }
        let feeds = self.feeds(args, &reused, len);
        self.fill(cx, &feeds, len, results.iter_mut().map(context::bytes_mut).collect());
        Ok(results)
    }

    /// The inputs of a run of `len` elements.
    fn feeds<'a>(&'a self, args: &'a Args<'_>, reused: &ReusedOperands, len: usize) -> Feeds<'a> {
        let mut feeds = Feeds::new();
        for (index, input) in self.inputs.iter().enumerate() {
            if let Some(result) = reused.iter().position(|&of| of == Some(index)) {
                feeds.push(self.feed_below(index, result));
                continue;
            }
            let operand = args.get(index);
            feeds.push(match &input.access {
                // A scalar operand is used for all elements.
                Access::Same if operand.size() != len => Feed::Single(operand.bytes()),
                Access::Same => Feed::Whole(operand.bytes()),
                Access::Single => Feed::Single(operand.bytes()),
                Access::Strided(rule) => Feed::Strided(operand.bytes(), rule, 0),
            });
        }
        feeds
    }

    /// The input that shares the memory of a result.
    pub(crate) fn feed_below<'a>(&self, input: usize, result: usize) -> Feed<'a> {
        if self.is_read_in_time(input, result) {
            Feed::OverwrittenInPlace(result)
        } else {
            Feed::Overwritten(result)
        }
    }

    /// Computes all elements, in pieces that are shared among threads if that pays.
    fn fill(&self, cx: Cx<'_>, feeds: &[Feed<'_>], len: usize, mut outs: Outs<'_>) {
        let steps = len.saturating_mul(self.cost);
        let Some(piece) = cx.piece(len, PIECE_ELEMENTS, steps) else {
            return self.run_range(cx, feeds, 0, &mut outs);
        };
        let mut pieces = Vec::with_capacity(len.div_ceil(piece));
        for first in (0..len).step_by(piece) {
            let count = piece.min(len - first);
            let part = split_off(&mut outs, self.results.iter().map(|dtype| count * dtype.size()));
            pieces.push((first, part));
        }
        cx.each(pieces, |(first, mut outs)| self.run_range(cx, feeds, first, &mut outs));
    }

    /// An operand whose memory can hold a result.
    fn reusable(&self, args: &mut Args<'_>, dtype: DType, len: usize) -> Option<usize> {
        (0..self.inputs.len()).find(|&index| {
            let input = &self.inputs[index];
            matches!(input.access, Access::Same)
                && input.dtype == dtype
                && args.is_present(index)
                && args.get(index).size() == len
                && args.is_unique(index)
        })
    }

    /// Elements of a block of at most `len`.
    pub(crate) fn block(&self, len: usize) -> usize {
        let values = (self.inputs.len() + usize::from(self.registers)).clamp(1, 8);
        let bytes = BLOCK_BYTES / values.next_power_of_two();
        (bytes / self.widest).min(len)
    }

    /// Computes the elements of the results that begin at `first`, on the calling thread.
    pub(crate) fn run_range(
        &self,
        cx: Cx<'_>,
        feeds: &[Feed<'_>],
        first: usize,
        outs: &mut [&mut [u8]],
    ) {
        let len = outs[0].len() / self.results[0].size();
        self.run_blocks(cx, feeds, first..first + len, self.block(len), &mut |range, compute| {
            let (begin, end) = (range.start - first, range.end - first);
            let mut block = Outs::new();
            for (out, dtype) in outs.iter_mut().zip(&self.results) {
                block.push(&mut out[begin * dtype.size()..end * dtype.size()]);
            }
            compute(&mut block);
        });
    }

    /// Computes a range of elements in blocks on the calling thread. For each block, `each` calls its argument with the
    /// memory of the results, which are complete when the call returns.
    pub(crate) fn run_blocks(
        &self,
        cx: Cx<'_>,
        feeds: &[Feed<'_>],
        range: Range<usize>,
        block: usize,
        each: &mut dyn FnMut(Range<usize>, &mut dyn FnMut(&mut Outs<'_>)),
    ) {
        if range.is_empty() {
            return;
        }
        let layout = ScratchLayout::new(self, feeds, whole_periods(feeds, block, range.len()));
        let mut scratch = cx.scratch();
        let scratch = scratch.bytes(layout.bytes);
        self.fill_splats(feeds, &layout, scratch);
        for begin in range.clone().step_by(layout.block) {
            let block = begin..(begin + layout.block).min(range.end);
            let is_first = begin == range.start;
            each(block.clone(), &mut |outs| {
                let staged = self.stage(feeds, &layout, &block, is_first, outs, scratch);
                for instruction in &self.instructions {
                    self.step(instruction, &staged, &layout, block.len(), outs, scratch);
                }
            });
        }
    }

    /// Repeats constants and single elements, and runs the instructions on them.
    fn fill_splats(&self, feeds: &[Feed<'_>], layout: &ScratchLayout, scratch: &mut [u8]) {
        let lanes = WIDE_LANES.min(layout.block);
        for (index, value) in self.constants.iter().enumerate() {
            repeat(value, &mut scratch[layout.constant(index)..][..lanes * value.len()]);
        }
        for (index, feed) in feeds.iter().enumerate() {
            if let Feed::Single(value) = feed {
                repeat(value, &mut scratch[layout.inputs[index]..][..lanes * value.len()]);
            }
        }
        for (index, instruction) in self.once.iter().enumerate() {
            // The operands of an instruction precede its result in the scratch memory.
            let (before, rest) = scratch.split_at_mut(layout.once(index));
            let read = |at: usize| Src { bytes: &before[at..], splat: true };
            let operands = instruction.operands.map(|operand| match operand {
                Loc::Constant(constant) => read(layout.constant(usize::from(constant))),
                Loc::Input(input) => read(layout.inputs[usize::from(input)]),
                Loc::Once(value) => read(layout.once(usize::from(value))),
                Loc::None => Src::NONE,
                Loc::Register(_) | Loc::Result(_) => {
                    unreachable!("these feeds differ between blocks")
                }
            });
            (instruction.kernel)(operands, &mut rest[..lanes * instruction.size]);
        }
    }

    /// The location of the elements of a block in each input. Inputs that cannot be read in place
    /// are copied to registers; inputs that are the same in all blocks are copied only for the
    /// first block.
    fn stage<'a>(
        &self,
        feeds: &[Feed<'a>],
        layout: &ScratchLayout,
        range: &Range<usize>,
        is_first: bool,
        outs: &[&mut [u8]],
        scratch: &mut [u8],
    ) -> SmallVec<[Staged<'a>; 4]> {
        let mut staged = SmallVec::new();
        for (index, feed) in feeds.iter().enumerate() {
            let size = self.inputs[index].dtype.size();
            let target = &mut scratch[layout.inputs[index]..];
            staged.push(match feed {
                Feed::Whole(bytes) => Staged::InPlace(&bytes[range.start * size..]),
                Feed::Single(_) => Staged::Splat,
                Feed::OverwrittenInPlace(result) => Staged::Result(*result),
                Feed::Strided(bytes, rule, first) => {
                    let start = first + range.start;
                    match rule.neighbors(start, range.len()) {
                        Some(at) => Staged::InPlace(&bytes[at * size..]),
                        None => {
                            let is_same =
                                rule.period().is_some_and(|n| layout.block.is_multiple_of(n));
                            if is_first || !is_same {
                                let target = &mut target[..range.len() * size];
                                rule.read_bytes(size, bytes, start, target);
                            }
                            Staged::Register
                        }
                    }
                }
                Feed::Overwritten(result) => {
                    let out = &*outs[*result];
                    target[..out.len()].copy_from_slice(out);
                    Staged::Register
                }
            });
        }
        staged
    }

    /// Runs one instruction on one block.
    #[inline]
    fn step(
        &self,
        instruction: &Instruction,
        staged: &[Staged<'_>],
        layout: &ScratchLayout,
        len: usize,
        outs: &mut [&mut [u8]],
        scratch: &mut [u8],
    ) {
        // The target is a result, or a range of the scratch memory. The other ranges of the scratch
        // memory can be read.
        let (result, hole) = match instruction.target {
            Target::Result(result) => {
                let out = std::mem::take(&mut outs[usize::from(result)]);
                (Some((usize::from(result), out)), scratch.len()..scratch.len())
            }
            Target::Register(register) => {
                let at = layout.register(register);
                (None, at..at + layout.register_bytes)
            }
        };
        let (before, rest) = scratch.split_at_mut(hole.start);
        let (written, after) = rest.split_at_mut(hole.len());
        let (before, after) = (&*before, &*after);
        let read = |at: usize| {
            if at < hole.start { &before[at..] } else { &after[at - hole.end..] }
        };
        let resolve = |loc: Loc| match loc {
            Loc::None => Src::NONE,
            Loc::Register(index) => Src { bytes: read(layout.register(index)), splat: false },
            Loc::Result(index) => Src { bytes: &*outs[usize::from(index)], splat: false },
            Loc::Constant(index) => {
                Src { bytes: read(layout.constant(usize::from(index))), splat: true }
            }
            Loc::Once(index) => Src { bytes: read(layout.once(usize::from(index))), splat: true },
            Loc::Input(index) => {
                let index = usize::from(index);
                match staged[index] {
                    Staged::InPlace(bytes) => Src { bytes, splat: false },
                    Staged::Result(result) => Src { bytes: &*outs[result], splat: false },
                    Staged::Register => Src { bytes: read(layout.inputs[index]), splat: false },
                    Staged::Splat => Src { bytes: read(layout.inputs[index]), splat: true },
                }
            }
        };
        // Written out, because `map` on the array would call a function for each operand.
        let [x, y, z] = instruction.operands;
        let sources = [resolve(x), resolve(y), resolve(z)];
        match result {
            Some((result, out)) => {
                (instruction.kernel)(sources, out);
                outs[result] = out;
            }
            None => {
                (instruction.kernel)(sources, &mut written[..len * instruction.size]);
            }
        }
    }
}

/// Splits bytes off the front of each result.
pub(crate) fn split_off<'o>(outs: &mut Outs<'o>, bytes: impl Iterator<Item = usize>) -> Outs<'o> {
    let parts = outs.iter_mut().zip(bytes);
    parts
        .map(|(out, bytes)| out.split_off_mut(..bytes).expect("a result contains its parts"))
        .collect()
}

/// The number of elements of a block, at most `block`, in which each periodic input completes whole
/// periods, if there are several blocks. Periodic inputs are then copied only once.
fn whole_periods(feeds: &[Feed<'_>], block: usize, len: usize) -> usize {
    let period = |feed: &Feed<'_>| match feed {
        Feed::Strided(_, rule, _) => rule.period(),
        Feed::Whole(_) | Feed::Single(_) | Feed::Overwritten(_) | Feed::OverwrittenInPlace(_) => {
            None
        }
    };
    let mut periods = feeds.iter().filter_map(period);
    // A reduction needs blocks that contain whole iterations of the inner loops.
    let unit = periods.try_fold(WIDE_LANES, |unit, n| unit.checked_mul(n / gcd(unit, n)));
    match unit {
        Some(unit) if unit <= block && block < len => block / unit * unit,
        _ => block,
    }
}

/// The offsets in the scratch memory, in bytes.
struct ScratchLayout {
    block: usize,
    /// Bytes of a repeated value.
    splat_bytes: usize,
    /// The offset of the repeated value or the register of each input, if it has one.
    inputs: SmallVec<[usize; 4]>,
    /// The offset of the values that are computed once.
    once: usize,
    /// The offset of the registers of the instructions.
    registers: usize,
    register_bytes: usize,
    bytes: usize,
}

impl ScratchLayout {
    fn new(code: &BodyCode, feeds: &[Feed<'_>], block: usize) -> Self {
        let splat_bytes = (WIDE_LANES.min(block) * MAX_SIZE).next_multiple_of(LINE);
        let register_bytes = (block * code.widest).next_multiple_of(LINE);
        let mut end = code.constants.len() * splat_bytes;
        let mut inputs = SmallVec::new();
        for feed in feeds {
            inputs.push(end);
            end += match feed {
                Feed::Whole(_) | Feed::OverwrittenInPlace(_) => 0,
                Feed::Single(_) => splat_bytes,
                Feed::Strided(..) | Feed::Overwritten(_) => register_bytes,
            };
        }
        let registers = end + code.once.len() * splat_bytes;
        let bytes = registers + usize::from(code.registers) * register_bytes;
        Self { block, splat_bytes, inputs, once: end, registers, register_bytes, bytes }
    }

    fn once(&self, index: usize) -> usize {
        self.once + index * self.splat_bytes
    }

    fn constant(&self, index: usize) -> usize {
        index * self.splat_bytes
    }

    fn register(&self, index: u16) -> usize {
        self.registers + usize::from(index) * self.register_bytes
    }
}

/// Fills `out` with copies of a value.
pub(crate) fn repeat(value: &[u8], out: &mut [u8]) {
    match_size!(value.len(), T => {
        bytemuck::cast_slice_mut(out).fill(bytemuck::pod_read_unaligned::<T>(value));
    });
}
