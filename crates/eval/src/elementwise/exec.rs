//! Running the code of a group.
//!
//! Registers live in one buffer per thread, which is kept between runs, so that a group of
//! scalars allocates nothing but its result. An input that is overwritten by the result, and one
//! that is broadcast, is first copied to a register block by block.

use std::cell::RefCell;

use nxla_tensor::{HostTensor, Shape};
use smallvec::SmallVec;

use super::code::{Access, Code, Instruction, Loc, OUTPUT};
use super::lanes::{LANES, Src};
use crate::args::Args;
use crate::error::Fault;
use crate::layout::Strided;
use crate::parallel;
use crate::value;

/// Bytes of one register: a handful of them fit into a first-level cache.
const REGISTER_BYTES: usize = 8192;

/// Bytes of the largest element.
const MAX_SIZE: usize = 16;

thread_local! {
    /// The registers of this thread, of 8-byte words for their alignment.
    static SCRATCH: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// An input of a run.
#[derive(Clone, Copy)]
enum Feed<'a> {
    /// Read where it is.
    Whole(&'a [u8]),
    /// Its one element is repeated.
    Single(&'a [u8]),
    /// Copied to a register by a rule.
    Strided(&'a [u8], &'a Strided),
    /// It is what the output holds before it is written, and is copied to a register.
    Overwritten,
}

type Feeds<'a> = SmallVec<[Feed<'a>; 4]>;

impl Code {
    /// Computes the group. An operand of the same type that nobody else holds becomes the result.
    ///
    /// A group of scalars can also run on vectors of `lanes` elements, some of which may be
    /// single numbers that count for all lanes.
    pub(crate) fn run(
        &self,
        args: &mut Args<'_>,
        lanes: Option<usize>,
    ) -> Result<HostTensor, Fault> {
        let vector;
        let shape = match lanes {
            None => &self.shape,
            Some(count) => {
                vector = Shape::from([count]);
                &vector
            }
        };
        let len = shape.size();
        let reused = self.reuse(args, len);
        let mut feeds = Feeds::new();
        for (index, input) in self.inputs.iter().enumerate() {
            feeds.push(match &input.access {
                _ if reused.as_ref().is_some_and(|(taken, _)| *taken == index) => Feed::Overwritten,
                Access::Same if lanes.is_some() && args.get(index).size() != len => {
                    Feed::Single(args.get(index).bytes())
                }
                Access::Same => Feed::Whole(args.get(index).bytes()),
                Access::Single => Feed::Single(args.get(index).bytes()),
                Access::Strided(rule) => Feed::Strided(args.get(index).bytes(), rule),
            });
        }
        let mut result = match reused {
            Some((_, tensor)) => value::reshaped(tensor, shape),
            None => value::fresh(self.dtype, shape)?,
        };
        let size = self.dtype.size();
        let out = value::bytes_mut(&mut result);
        let steps = len.saturating_mul(self.cost);
        parallel::blocks(out, self.block(usize::MAX) * size, steps, |first, out| {
            self.run_range(&feeds, first / size, out);
        });
        Ok(result)
    }

    /// Takes an operand whose memory can hold the result.
    fn reuse(&self, args: &mut Args<'_>, len: usize) -> Option<(usize, HostTensor)> {
        (0..self.inputs.len()).find_map(|index| {
            let input = &self.inputs[index];
            let fits = matches!(input.access, Access::Same)
                && input.dtype == self.dtype
                && args.get(index).size() == len;
            let taken = if fits { args.take_unique(index) } else { None };
            taken.map(|tensor| (index, tensor))
        })
    }

    /// Elements of a block of at most `len`.
    fn block(&self, len: usize) -> usize {
        (REGISTER_BYTES / usize::from(self.widest)).min(len)
    }

    /// Computes the elements of the result that begin at `first`.
    fn run_range(&self, feeds: &[Feed<'_>], first: usize, out: &mut [u8]) {
        let size = self.dtype.size();
        let len = out.len() / size;
        if len == 0 {
            return;
        }
        let layout = Layout::new(self, feeds, self.block(len));
        SCRATCH.with_borrow_mut(|scratch| {
            if scratch.len() < layout.words {
                scratch.resize(layout.words, 0);
            }
            let scratch = bytemuck::cast_slice_mut(&mut scratch[..layout.words]);
            self.fill_splats(feeds, &layout, scratch);
            for (index, out) in out.chunks_mut(layout.block * size).enumerate() {
                let start = first + index * layout.block;
                self.stage(feeds, &layout, start, out, scratch);
                for instruction in &self.instructions {
                    self.step(instruction, feeds, &layout, start, out, scratch);
                }
            }
        });
    }

    /// Repeats constants and single elements.
    fn fill_splats(&self, feeds: &[Feed<'_>], layout: &Layout, scratch: &mut [u8]) {
        let lanes = LANES.min(layout.block);
        for (index, constant) in self.constants.iter().enumerate() {
            let value = &constant.bytes[..usize::from(constant.size)];
            repeat(value, &mut scratch[layout.constant(index)..][..lanes * value.len()]);
        }
        for (index, feed) in feeds.iter().enumerate() {
            if let Feed::Single(value) = feed {
                repeat(value, &mut scratch[layout.places[index]..][..lanes * value.len()]);
            }
        }
    }

    /// Copies inputs that cannot be read in place to their registers.
    fn stage(
        &self,
        feeds: &[Feed<'_>],
        layout: &Layout,
        start: usize,
        out: &[u8],
        scratch: &mut [u8],
    ) {
        let len = out.len() / self.dtype.size();
        for (index, feed) in feeds.iter().enumerate() {
            let size = self.inputs[index].dtype.size();
            let target = &mut scratch[layout.places[index]..];
            match feed {
                Feed::Whole(_) | Feed::Single(_) => {}
                Feed::Strided(bytes, rule) => {
                    rule.read_bytes(size, bytes, start, &mut target[..len * size]);
                }
                Feed::Overwritten => target[..out.len()].copy_from_slice(out),
            }
        }
    }

    /// Runs one instruction on one block.
    #[inline]
    fn step(
        &self,
        instruction: &Instruction,
        feeds: &[Feed<'_>],
        layout: &Layout,
        start: usize,
        out: &mut [u8],
        scratch: &mut [u8],
    ) {
        let len = out.len() / self.dtype.size();
        // The target lies between two parts of the scratch memory that can be read.
        let (target, hole) = match instruction.target {
            OUTPUT => (None, scratch.len()..scratch.len()),
            register => {
                let at = layout.register(register);
                (Some(at), at..at + layout.register_bytes)
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
            Loc::Constant(index) => {
                Src { bytes: read(layout.constant(usize::from(index))), splat: true }
            }
            Loc::Input(index) => {
                let index = usize::from(index);
                match feeds[index] {
                    Feed::Whole(bytes) => {
                        let bytes = &bytes[start * self.inputs[index].dtype.size()..];
                        Src { bytes, splat: false }
                    }
                    Feed::Single(_) => Src { bytes: read(layout.places[index]), splat: true },
                    Feed::Strided(..) | Feed::Overwritten => {
                        Src { bytes: read(layout.places[index]), splat: false }
                    }
                }
            }
        };
        let sources = instruction.operands.map(resolve);
        match target {
            None => (instruction.kernel)(sources, out),
            Some(_) => {
                (instruction.kernel)(sources, &mut written[..len * usize::from(instruction.size)]);
            }
        }
    }
}

/// Where things are in the scratch memory, in bytes.
struct Layout {
    block: usize,
    /// Bytes of a repeated value.
    splat_bytes: usize,
    /// Where the repeated value or the register of each input is, for those that have one.
    places: SmallVec<[usize; 4]>,
    /// Where the registers of the instructions begin.
    registers: usize,
    register_bytes: usize,
    words: usize,
}

impl Layout {
    fn new(code: &Code, feeds: &[Feed<'_>], block: usize) -> Self {
        let splat_bytes = LANES.min(block) * MAX_SIZE;
        let register_bytes = (block * usize::from(code.widest)).next_multiple_of(MAX_SIZE);
        let mut end = code.constants.len() * splat_bytes;
        let mut places = SmallVec::new();
        for feed in feeds {
            places.push(end);
            end += match feed {
                Feed::Whole(_) => 0,
                Feed::Single(_) => splat_bytes,
                Feed::Strided(..) | Feed::Overwritten => register_bytes,
            };
        }
        let total = end + usize::from(code.registers) * register_bytes;
        Self { block, splat_bytes, places, registers: end, register_bytes, words: total / 8 }
    }

    fn constant(&self, index: usize) -> usize {
        index * self.splat_bytes
    }

    fn register(&self, index: u16) -> usize {
        self.registers + usize::from(index) * self.register_bytes
    }
}

fn repeat(value: &[u8], out: &mut [u8]) {
    for out in out.chunks_exact_mut(value.len()) {
        out.copy_from_slice(value);
    }
}
