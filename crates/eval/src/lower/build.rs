//! The state of lowering: values, their locations, and instructions in order.

use std::sync::Arc;

use nxla_expr::{ExprId, Program, TensorType};
use rustc_hash::FxHashMap;

use super::arena::{Arena, Slots};
use super::limits::{ARENA_BYTES, MAX_INLINED, REDUCED_SMALL_BYTES};
use crate::execute::code::{
    Bytecode, Bytes, Elements, Handle, Inst, Origin, Source, Span, padded_bytes,
};
use crate::kernels::elementwise::{Constant, NARROW_LANES, WIDE_LANES};
use crate::schedule::{SMALL_BYTES, Schedule, Step, without_names};

/// The level of a program outside of its loops. Level 0 is the prologue, which runs once before the program.
const BASE: usize = 1;

/// A value during lowering.
#[derive(Clone, Debug)]
pub(super) struct Value {
    pub(super) ty: TensorType,
    pub(super) location: Location,
    /// The number of loops around the instruction that computes the value. A value of a lower level than the
    /// current loop is the same in all of its iterations.
    pub(super) level: usize,
}

/// The memory of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Location {
    Arena(Span),
    /// A slot. A value that does not own its slot must leave the tensor there.
    Slot {
        slot: usize,
        owned: bool,
    },
}

impl Value {
    pub(super) fn bytes(&self) -> Bytes {
        match self.location {
            Location::Arena(span) => Bytes::Arena(span),
            Location::Slot { slot, .. } => Bytes::Slot(slot),
        }
    }

    pub(super) fn slot(&self) -> Option<usize> {
        match self.location {
            Location::Arena(_) => None,
            Location::Slot { slot, .. } => Some(slot),
        }
    }

    /// The same value in a slot that another value owns.
    pub(super) fn to_borrowed(&self) -> Self {
        let location = match self.location {
            Location::Slot { slot, .. } => Location::Slot { slot, owned: false },
            Location::Arena(_) => self.location,
        };
        Self { location, ..self.clone() }
    }
}

/// Code that is not inlined: of steps, by the address of their schedule and their node, and of whole schedules.
pub(super) type OutlinedCode = FxHashMap<(*const Schedule, Option<ExprId>), Arc<Bytecode>>;

pub(super) struct BytecodeBuilder {
    /// Bytes of the largest value in the arena, outside of loops and inside.
    limits: [usize; 2],
    /// The instructions of each level: the prologue, the program, and the current loops, outermost first.
    pub(super) levels: Vec<Vec<Inst>>,
    pub(super) arena: Arena,
    pub(super) slots: Slots,
    programs: Vec<Arc<Program>>,
    pub(super) outlined: OutlinedCode,
    written: usize,
    /// The spans of constants by value.
    constants: FxHashMap<Constant, Span>,
    /// The spans of elements that are repeated in the prologue.
    repeated: FxHashMap<(Bytes, u8), Source>,
    /// The temporary spans of the current step.
    temporary: Vec<Span>,
    /// The slots of constants that are created before the outermost loop.
    hoisted: Vec<usize>,
    /// The number of branches around the current step.
    pub(super) branches: usize,
    pub(super) checks: bool,
}

/// Lowers a program. If `uses_arena`, small values outside of loops live in the arena as well.
pub(super) fn lower_program(schedule: &Schedule, uses_arena: bool) -> Bytecode {
    lower_within_cache(schedule, uses_arena, &mut OutlinedCode::default(), |builder| {
        let types = schedule.program.inputs().iter();
        let inputs: Vec<Value> = types.map(|ty| builder.operand(&without_names(ty))).collect();
        // The slot of an input that no step reads stays empty.
        let slots = inputs.iter().zip(&schedule.inputs);
        let slots = slots.map(|(input, value)| value.and(input.slot())).collect();
        let inputs = inputs.into_iter().zip(&schedule.inputs);
        let inputs: Vec<Value> = inputs
            .map(|(input, value)| if value.is_some() { builder.in_arena(input) } else { input })
            .collect();
        (slots, builder.region(schedule, &inputs))
    })
}

/// Lowers a single step as a program whose inputs are the operands of the step.
pub(super) fn lower_step(
    schedule: &Schedule,
    step: &Step,
    operands: &[TensorType],
    outlined: &mut OutlinedCode,
) -> Bytecode {
    lower_within_cache(schedule, false, outlined, |builder| {
        let operands: Vec<Value> = operands.iter().map(|ty| builder.operand(ty)).collect();
        let slots = operands.iter().map(Value::slot).collect();
        (slots, builder.lone_step(schedule, step, &operands))
    })
}

/// Lowers with the usual limit of the arena, or with a smaller one if the arena would exceed a cache.
fn lower_within_cache(
    schedule: &Schedule,
    uses_arena: bool,
    outlined: &mut OutlinedCode,
    lower: impl Fn(&mut BytecodeBuilder) -> (Vec<Option<usize>>, Vec<Value>),
) -> Bytecode {
    let mut code = |small: usize| {
        let small = if schedule.checks { 0 } else { small };
        let limits = [if uses_arena { small } else { 0 }, small];
        let mut builder = BytecodeBuilder::new(limits, schedule.checks, std::mem::take(outlined));
        let (inputs, results) = lower(&mut builder);
        *outlined = std::mem::take(&mut builder.outlined);
        builder.finish(inputs, results)
    };
    Some(code(SMALL_BYTES))
        .filter(|code| code.arena <= ARENA_BYTES)
        .unwrap_or_else(|| code(REDUCED_SMALL_BYTES))
}

/// Returns true if a limit of the arena includes values of a type. The limit 0 includes no values.
fn is_within(ty: &TensorType, limit: usize) -> bool {
    limit > 0 && ty.byte_size() <= limit
}

impl BytecodeBuilder {
    fn new(limits: [usize; 2], checks: bool, outlined: OutlinedCode) -> Self {
        Self {
            limits,
            levels: vec![Vec::new(), Vec::new()],
            arena: Arena::default(),
            slots: Slots::default(),
            programs: Vec::new(),
            outlined,
            written: 0,
            constants: FxHashMap::default(),
            repeated: FxHashMap::default(),
            temporary: Vec::new(),
            hoisted: Vec::new(),
            branches: 0,
            checks,
        }
    }

    /// The next operand of the program, in a slot.
    fn operand(&mut self, ty: &TensorType) -> Value {
        let location = Location::Slot { slot: self.slots.take(), owned: true };
        Value { ty: ty.clone(), location, level: self.depth() }
    }

    /// Moves a value to the arena if it belongs there.
    fn in_arena(&mut self, value: Value) -> Value {
        match value.location {
            Location::Slot { owned: true, .. } if self.is_small(&value.ty) => {
                let (copy, to) = self.result(value.ty.clone(), value.level);
                self.copy(&value, to);
                self.release(&value);
                copy
            }
            Location::Slot { .. } | Location::Arena(_) => value,
        }
    }

    /// Appends the instructions of the innermost loop to the level around it.
    pub(super) fn end_loop(&mut self) {
        let insts = self.levels.pop().expect("a loop has begun");
        let depth = self.depth();
        self.levels[depth].extend(insts);
        if depth == BASE {
            for slot in std::mem::take(&mut self.hoisted) {
                self.push(Handle::Drop(slot));
                self.slots.release(slot);
            }
        }
    }

    fn finish(mut self, inputs: Vec<Option<usize>>, results: Vec<Value>) -> Bytecode {
        let program = self.levels.pop().expect("the program");
        let mut insts = self.levels.pop().expect("the prologue");
        insts.extend(program);
        Bytecode {
            insts: insts.into(),
            arena: self.arena.len(),
            slots: self.slots.len(),
            inputs: inputs.into(),
            results: results.into_iter().map(|value| (value.ty.clone(), value.bytes())).collect(),
            programs: self.programs.into(),
            checks: self.checks,
        }
    }

    /// The current level.
    pub(super) fn depth(&self) -> usize {
        self.levels.len() - 1
    }

    /// Returns true if the current step is in a loop.
    pub(super) fn in_loop(&self) -> bool {
        self.depth() > BASE
    }

    /// Appends an instruction.
    pub(super) fn push(&mut self, inst: impl Into<Inst>) {
        self.push_at(self.depth(), inst);
    }

    /// Appends an instruction to a level.
    pub(super) fn push_at(&mut self, level: usize, inst: impl Into<Inst>) {
        self.written += 1;
        self.levels[level].push(inst.into());
    }

    /// Returns true if steps with regions are no longer inlined.
    pub(super) fn is_full(&self) -> bool {
        self.written >= MAX_INLINED
    }

    /// The node of a step, for errors.
    pub(super) fn origin(&mut self, schedule: &Schedule, step: &Step) -> Origin {
        let is_known = |program: &Arc<Program>| Arc::ptr_eq(program, &schedule.program);
        let program = self.programs.iter().rposition(is_known).unwrap_or_else(|| {
            self.programs.push(schedule.program.clone());
            self.programs.len() - 1
        });
        Origin { program: u32::try_from(program).expect("few programs are inlined"), id: step.id }
    }

    /// Returns true if values of a type live in the arena.
    pub(super) fn is_small(&self, ty: &TensorType) -> bool {
        is_within(ty, self.limits[usize::from(self.in_loop())])
    }

    /// Returns true if values of a type live in the arena inside of loops.
    pub(super) fn is_small_in_loops(&self, ty: &TensorType) -> bool {
        is_within(ty, self.limits[1])
    }

    /// A span for a value of this level. A value from before the current loop does not share its span.
    fn allocate(&mut self, bytes: usize, level: usize) -> Span {
        if level < self.depth() { self.arena.take_pinned(bytes) } else { self.arena.take(bytes) }
    }

    /// A span that only the current step uses.
    pub(super) fn scratch(&mut self, bytes: usize, level: usize) -> Span {
        let span = self.allocate(bytes, level);
        self.temporary.push(span);
        span
    }

    /// A span that only the current step uses, for elements of the dtype and level of a value.
    pub(super) fn scratch_value(&mut self, elements: usize, like: &Value) -> Span {
        let size = like.ty.dtype.size();
        let at = self.scratch(padded_bytes(elements, size), like.level).at as usize;
        Span::new(at, elements * size)
    }

    /// Copies bytes of a boxed value to the arena.
    pub(super) fn unbox(&mut self, slot: usize, first: u32, to: Span, value: &Value) {
        self.push_at(value.level, Elements::Unbox { slot, first, to });
        self.pad(to, value.ty.dtype.size(), value.level);
    }

    /// Copies a value to a span for its type.
    pub(super) fn copy(&mut self, value: &Value, to: Span) {
        let (size, level) = (value.ty.dtype.size(), self.depth());
        match value.location {
            Location::Slot { slot, .. } => {
                self.unbox(slot, 0, to, &Value { level, ..value.clone() })
            }
            Location::Arena(from) => {
                self.push(Inst::Copy { from: from.with_padding(size), to: to.with_padding(size) });
            }
        }
    }

    /// Pads a span whose elements an instruction other than a kernel has written.
    pub(super) fn pad(&mut self, of: Span, size: usize, level: usize) {
        if of.with_padding(size) != of {
            self.push_at(level, Elements::Pad { of, size: size as u8 });
        }
    }

    /// Releases the temporary spans of the current step.
    pub(super) fn release_scratch(&mut self) {
        for span in std::mem::take(&mut self.temporary) {
            self.arena.release(span.at);
        }
    }

    /// A new value in the arena, and its span.
    pub(super) fn result(&mut self, ty: TensorType, level: usize) -> (Value, Span) {
        let (elements, size) = (ty.shape.size(), ty.dtype.size());
        let at = self.allocate(padded_bytes(elements, size), level).at as usize;
        let span = Span::new(at, elements * size);
        (Value { ty, location: Location::Arena(span), level }, span)
    }

    /// The span of a value, or of a copy if the value is boxed.
    pub(super) fn arena_copy(&mut self, value: &Value) -> Span {
        match value.location {
            Location::Arena(span) => span,
            Location::Slot { slot, .. } => {
                let to = self.scratch_value(value.ty.shape.size(), value);
                self.unbox(slot, 0, to, value);
                to
            }
        }
    }

    /// The span of a small value, or of its copy.
    pub(super) fn small(&mut self, value: &Value) -> Option<Span> {
        self.is_small(&value.ty).then(|| self.arena_copy(value))
    }

    /// The repeated elements of a constant.
    pub(super) fn constant(&mut self, value: &Constant) -> Source {
        if let Some(&to) = self.constants.get(value) {
            return Source { at: to.at, splat: true };
        }
        let to = self.arena.take_pinned(WIDE_LANES * value.len());
        self.constants.insert(value.clone(), to);
        self.push_at(0, Elements::Fill { value: value.as_slice().into(), to });
        Source { at: to.at, splat: true }
    }

    /// The repeated element of a value with one element, for a kernel of `len` elements.
    pub(super) fn splat(&mut self, value: &Value, len: usize) -> Source {
        if len <= NARROW_LANES {
            // The copy in the arena is padded with repetitions of the element.
            return Source { at: self.arena_copy(value).at, splat: true };
        }
        let size = value.ty.dtype.size() as u8;
        let known = self.repeated.get(&(value.bytes(), size)).copied();
        if let Some(source) = known.filter(|_| value.level == 0) {
            return source;
        }
        let to = self.scratch(WIDE_LANES * usize::from(size), value.level);
        self.push_at(value.level, Elements::Repeat { from: value.bytes(), size, to });
        let source = Source { at: to.at, splat: true };
        if value.level == 0 {
            self.repeated.insert((value.bytes(), size), source);
        }
        source
    }

    /// A boxed constant, which is created before the outermost loop.
    pub(super) fn hoist_constant(
        &mut self,
        value: nxla_tensor::Scalar,
        ty: &TensorType,
        origin: Origin,
    ) -> Value {
        let to = self.slots.take_pinned();
        self.hoisted.push(to);
        self.push_at(BASE, Handle::Full { value, ty: Box::new(ty.clone()), to, origin });
        Value { ty: ty.clone(), location: Location::Slot { slot: to, owned: false }, level: BASE }
    }

    /// Ends the life of a value, and drops the tensor in its slot.
    pub(super) fn release(&mut self, value: &Value) {
        if let Location::Slot { slot, owned: true } = value.location {
            self.push(Handle::Drop(slot));
        }
        self.release_moved(value);
    }

    /// Ends the life of a value whose tensor an instruction has moved out of its slot.
    pub(super) fn release_moved(&mut self, value: &Value) {
        match value.location {
            Location::Arena(span) => self.arena.release(span.at),
            Location::Slot { slot, owned: true } => self.slots.release(slot),
            Location::Slot { .. } => {}
        }
    }

    /// Adds a reference to the location of a value.
    pub(super) fn retain(&mut self, value: &Value) {
        match value.location {
            Location::Arena(span) => self.arena.retain(span.at),
            Location::Slot { slot, owned: true } => self.slots.retain(slot),
            Location::Slot { .. } => {}
        }
    }
}
