//! Writing a loop as code: values, where they are, and instructions in order.

use std::sync::Arc;

use nxla_expr::TensorType;
use rustc_hash::FxHashMap;

use super::memory::Memory;
use super::{Bytecode, Bytes, Elements, Handle, Inst, Loop, Source, Span, padded, unnamed};
use crate::elementwise::{Constant, LANES, SHORT};
use crate::plan::Plan;

/// Bytes of the largest near tensor: those of a block of element-wise code.
pub(crate) const NEAR: usize = 1 << 14;

/// The same where a loop has so many values that they would not fit into a cache.
const NEARER: usize = 1 << 10;

/// The slot of what is in none.
pub(super) const NOWHERE: usize = usize::MAX;

/// Bytes of memory that fit into one.
const CACHE: usize = 1 << 20;

/// Instructions after which regions are not written out any more: one that is used twice by
/// each of many that are nested would be written a number of times that doubles with each.
const MANY: usize = 1 << 14;

/// A value while code is written.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) ty: TensorType,
    pub(super) at: At,
    /// How many loops are around what computes it. What is below the loop at hand is the same in
    /// all of its trips.
    pub(super) level: usize,
}

/// Where a value is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum At {
    Near(Span),
    /// In a slot, which is somebody else's or its own.
    Far {
        slot: usize,
        is_own: bool,
    },
}

impl Held {
    pub(super) fn bytes(&self) -> Bytes {
        match self.at {
            At::Near(span) => Bytes::Near(span),
            At::Far { slot, .. } => Bytes::Far(slot),
        }
    }

    pub(super) fn slot(&self) -> Option<usize> {
        match self.at {
            At::Near(_) => None,
            At::Far { slot, .. } => Some(slot),
        }
    }

    /// The same value for those who must leave it there.
    pub(super) fn lent(&self) -> Self {
        let at = match self.at {
            At::Far { slot, .. } => At::Far { slot, is_own: false },
            At::Near(_) => self.at,
        };
        Self { at, ..self.clone() }
    }
}

pub(super) struct Builder {
    near: usize,
    /// The instructions of the loops that are being written, outermost first; the first are those
    /// before all loops, or before the program.
    pub(super) blocks: Vec<Vec<Inst>>,
    pub(super) memory: Memory,
    pub(super) slots: usize,
    pub(super) plans: Vec<(Arc<Plan>, usize)>,
    written: usize,
    /// Places of constants, by value.
    constants: FxHashMap<Box<[u8]>, Span>,
    /// Where elements are repeated that no loop changes.
    repeated: FxHashMap<(Bytes, u8), Source>,
    /// What the step at hand has computed for itself.
    temporary: Vec<Span>,
    /// How many branches are around what is being written.
    pub(super) branches: usize,
}

/// The code of a loop for operands of these types.
pub(super) fn of_loop(it: &Loop, operands: &[TensorType]) -> Bytecode {
    sized(|builder| {
        let (state, captures) = operands.split_at(it.state);
        let mut given: Vec<Held> = state.iter().map(|ty| builder.operand(ty)).collect();
        given.extend(captures.iter().map(|ty| builder.near_operand(ty)));
        let lasts = vec![true; given.len()];
        builder.while_loop(it, &given, &lasts)
    })
}

/// The code of a program for the inputs that it needs.
pub(super) fn of_program(plan: &Arc<Plan>) -> Bytecode {
    sized(|builder| {
        // What is known beforehand comes first, outside of all branches.
        builder.blocks.push(Vec::new());
        let inputs = plan.inputs.iter().zip(plan.program().inputs());
        let given = inputs.map(|(slot, ty)| match slot {
            Some(_) => builder.near_operand(&unnamed(ty)),
            None => {
                Held { ty: unnamed(ty), at: At::Far { slot: NOWHERE, is_own: false }, level: 0 }
            }
        });
        let given: Vec<Held> = given.collect();
        let results = builder.region(plan, &given);
        builder.end_block();
        results
    })
}

/// Code that fits into a cache, if it can.
fn sized(write: impl Fn(&mut Builder) -> Vec<Held>) -> Bytecode {
    let code = |near: usize| {
        let mut builder = Builder::new(near);
        let results = write(&mut builder);
        builder.finish(results)
    };
    Some(code(NEAR)).filter(|code| code.bytes <= CACHE).unwrap_or_else(|| code(NEARER))
}

impl Builder {
    fn new(near: usize) -> Self {
        Self {
            near,
            blocks: vec![Vec::new()],
            memory: Memory::default(),
            slots: 0,
            plans: Vec::new(),
            written: 0,
            constants: FxHashMap::default(),
            repeated: FxHashMap::default(),
            temporary: Vec::new(),
            branches: 0,
        }
    }

    /// The next operand, which is in the next slot.
    fn operand(&mut self, ty: &TensorType) -> Held {
        let slot = self.new_slot();
        Held { ty: ty.clone(), at: At::Far { slot, is_own: true }, level: self.depth() }
    }

    /// The next operand, in the memory if it is small.
    fn near_operand(&mut self, ty: &TensorType) -> Held {
        let held = self.operand(ty);
        if !self.is_near(ty) {
            return held;
        }
        let (near, to) = self.result(ty.clone(), self.depth());
        self.copy(&held, to);
        near
    }

    /// Ends a block, which goes on behind what comes before it.
    pub(super) fn end_block(&mut self) {
        let block = self.blocks.pop().expect("a block was begun");
        let depth = self.depth();
        self.blocks[depth].extend(block);
    }

    fn finish(mut self, results: Vec<Held>) -> Bytecode {
        let [insts] = &mut self.blocks[..] else { unreachable!("every loop has been closed") };
        Bytecode {
            insts: std::mem::take(insts).into(),
            bytes: self.memory.len(),
            slots: self.slots,
            plans: self.plans.into(),
            results: results.into_iter().map(|held| (held.ty.clone(), held.bytes())).collect(),
        }
    }

    /// How many loops are around what is being written.
    pub(super) fn depth(&self) -> usize {
        self.blocks.len() - 1
    }

    /// Writes an instruction.
    pub(super) fn push(&mut self, inst: impl Into<Inst>) {
        self.push_at(self.depth(), inst);
    }

    /// Writes an instruction behind those that come before a loop.
    pub(super) fn push_at(&mut self, level: usize, inst: impl Into<Inst>) {
        self.written += 1;
        self.blocks[level].push(inst.into());
    }

    /// Whether there is no end to it.
    pub(super) fn is_full(&self) -> bool {
        self.written >= MANY
    }

    pub(super) fn new_slot(&mut self) -> usize {
        self.slots += 1;
        self.slots - 1
    }

    pub(super) fn is_near(&self, ty: &TensorType) -> bool {
        is_at_most(ty, self.near)
    }

    /// A place for a value that is computed at this level: one that lives as long as all others if
    /// it is computed before the loop at hand.
    pub(super) fn place(&mut self, bytes: usize, level: usize) -> Span {
        if level < self.depth() { self.memory.pinned(bytes) } else { self.memory.take(bytes) }
    }

    /// A place for what only the step at hand reads.
    pub(super) fn scratch(&mut self, bytes: usize, level: usize) -> Span {
        let span = self.place(bytes, level);
        self.temporary.push(span);
        span
    }

    /// The same for so many elements of the dtype of a value, and of its level.
    pub(super) fn scratch_value(&mut self, elements: usize, like: &Held) -> Span {
        let size = like.ty.dtype.size();
        let at = self.scratch(padded(elements, size), like.level).at as usize;
        Span::new(at, elements * size)
    }

    /// Copies bytes of a far value to a place.
    pub(super) fn copy_far(&mut self, slot: usize, first: u32, to: Span, held: &Held) {
        self.push_at(held.level, Elements::Load { slot, first, to });
        self.spread(to, held.ty.dtype.size(), held.level);
    }

    /// Copies a value to a place for its type.
    pub(super) fn copy(&mut self, held: &Held, to: Span) {
        let (size, level) = (held.ty.dtype.size(), self.depth());
        match held.at {
            At::Far { slot, .. } => self.copy_far(slot, 0, to, &Held { level, ..held.clone() }),
            At::Near(from) => {
                self.push(Inst::Copy { from: from.padded(size), to: to.padded(size) });
            }
        }
    }

    /// All elements of a place have been written, by something else than a kernel.
    pub(super) fn spread(&mut self, of: Span, size: usize, level: usize) {
        if of.padded(size) != of {
            self.push_at(level, Elements::Spread { of, size: size as u8 });
        }
    }

    /// The step is written.
    pub(super) fn forget_scratch(&mut self) {
        for span in std::mem::take(&mut self.temporary) {
            self.memory.release(span.at);
        }
    }

    /// A new value that a step computes at this level.
    pub(super) fn result(&mut self, ty: TensorType, level: usize) -> (Held, Span) {
        let (elements, size) = (ty.shape.size(), ty.dtype.size());
        let at = self.place(padded(elements, size), level).at as usize;
        let span = Span::new(at, elements * size);
        (Held { ty, at: At::Near(span), level }, span)
    }

    /// Where a value is in the memory, which is a copy for one that is not there.
    pub(super) fn near_copy(&mut self, held: &Held) -> Span {
        match held.at {
            At::Near(span) => span,
            At::Far { slot, .. } => {
                let to = self.scratch_value(held.ty.shape.size(), held);
                self.copy_far(slot, 0, to, held);
                to
            }
        }
    }

    /// The same, for values that are small.
    pub(super) fn near(&mut self, held: &Held) -> Option<Span> {
        self.is_near(&held.ty).then(|| self.near_copy(held))
    }

    /// Where copies of a constant are, as many as kernels read.
    pub(super) fn constant(&mut self, constant: &Constant) -> Source {
        let value: Box<[u8]> = constant.bytes[..usize::from(constant.size)].into();
        if let Some(&to) = self.constants.get(&value) {
            return Source { at: to.at, splat: true };
        }
        let to = self.memory.pinned(LANES * value.len());
        self.constants.insert(value.clone(), to);
        self.push_at(0, Elements::Fill { value, to });
        Source { at: to.at, splat: true }
    }

    /// Where copies of the single element of a value are, for so many elements.
    pub(super) fn splat(&mut self, held: &Held, len: usize) -> Source {
        if len <= SHORT {
            // There are as many behind it.
            return Source { at: self.near_copy(held).at, splat: true };
        }
        let size = held.ty.dtype.size() as u8;
        let known = self.repeated.get(&(held.bytes(), size)).copied();
        if let Some(source) = known.filter(|_| held.level == 0) {
            return source;
        }
        let to = self.scratch(LANES * usize::from(size), held.level);
        self.push_at(held.level, Elements::Repeat { from: held.bytes(), size, to });
        let source = Source { at: to.at, splat: true };
        if held.level == 0 && self.depth() > 0 {
            self.repeated.insert((held.bytes(), size), source);
        }
        source
    }

    /// A value dies. What a far one is in is emptied, unless somebody has taken it.
    pub(super) fn release(&mut self, held: &Held, is_taken: bool) {
        match held.at {
            At::Near(span) => self.memory.release(span.at),
            At::Far { slot, is_own: true } if !is_taken => self.push(Handle::Drop(slot)),
            At::Far { .. } => {}
        }
    }
}

/// Whether a tensor has no more bytes.
pub(crate) fn is_at_most(ty: &TensorType, bytes: usize) -> bool {
    ty.shape.checked_size().is_some_and(|size| size * ty.dtype.size() <= bytes)
}

/// Bytes of a tensor that is known to fit into memory.
pub(super) fn byte_size(ty: &TensorType) -> usize {
    ty.shape.size() * ty.dtype.size()
}
