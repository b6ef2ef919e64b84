//! The executor: runs the instructions of a program.

use nxla_expr::{Graph, TensorType};
use nxla_tensor::{DType, Element, HostTensor, match_dtype};
use smallvec::SmallVec;

use super::code::{
    Bytecode, Bytes, Call, CallWork, Elements, Handle, Inst, Origin, Slice, SliceUpdate, Source,
    Span, Starts,
};
use super::dispatch::{self, NodeRef};
use super::fold;
use crate::context::{
    Args, Cancel, Cx, EvalError, Fault, Results, Stop, bytes_mut, catch_stop, integer_of,
    run_cancellable,
};
use crate::kernels::elementwise::{Kernel, Src, owned, repeat};
use crate::kernels::finite;

/// The state of a run.
struct Machine<'a> {
    bytecode: &'a Bytecode,
    arena: &'a mut [u8],
    slots: &'a mut [Option<HostTensor>],
    cx: Cx<'a>,
    /// The length of the vectors on which a program of scalars runs element by element.
    lanes: Option<usize>,
}

impl Bytecode {
    /// Runs the code on these operands.
    pub(crate) fn run(
        &self,
        cx: Cx<'_>,
        inputs: impl IntoIterator<Item = HostTensor>,
    ) -> Result<Results, EvalError> {
        self.run_lanes(cx, None, inputs)
    }

    /// Runs code on scalars element by element on vectors of this length.
    pub(crate) fn run_lanes(
        &self,
        cx: Cx<'_>,
        lanes: Option<usize>,
        inputs: impl IntoIterator<Item = HostTensor>,
    ) -> Result<Results, EvalError> {
        let mut slots: SmallVec<[Option<HostTensor>; 4]> = SmallVec::new();
        slots.resize(self.slots, None);
        for (slot, input) in self.inputs.iter().zip(inputs) {
            if let Some(slot) = *slot {
                slots[slot] = Some(input);
            }
        }
        let mut scratch = cx.scratch();
        let arena = scratch.bytes(self.arena);
        if cfg!(debug_assertions) {
            // Bytecode must not read memory that it has not written. Values left by earlier runs
            // would hide such a read.
            arena.fill(u8::MAX);
        }
        let mut machine = Machine { bytecode: self, arena, slots: &mut slots, cx, lanes };
        machine.run()?;
        Ok(machine.results())
    }

    /// The graph of the node of an instruction.
    pub(super) fn graph(&self, origin: Origin) -> &Graph {
        self.programs[origin.program as usize].graph()
    }
}

impl Machine<'_> {
    fn run(&mut self) -> Result<(), EvalError> {
        let insts = &*self.bytecode.insts;
        let mut at = 0;
        while let Some(inst) = insts.get(at) {
            at += 1;
            match inst {
                Inst::Kernel { kernel, operands, to } => self.kernel(*kernel, *operands, *to),
                Inst::Copy { from, to } => {
                    self.arena.copy_within(from.range(), to.at as usize);
                }
                Inst::Elements(elements) => self.elements(elements),
                Inst::SliceUpdate(put) => self.put(put)?,
                Inst::Handle(handle) => self.handle(handle)?,
                Inst::Call(call) => self.call(call)?,
                Inst::Check => self.cx.check()?,
                Inst::Jump(by) => at = (at - 1).wrapping_add_signed(*by as isize),
                Inst::JumpUnless { predicate, dtype, by } => {
                    if !is_true(*dtype, &self.arena[predicate.range()]) {
                        at = (at - 1).wrapping_add_signed(*by as isize);
                    }
                }
            }
        }
        Ok(())
    }

    /// Runs an instruction on boxed values.
    fn handle(&mut self, handle: &Handle) -> Result<(), EvalError> {
        match handle {
            Handle::Box { from, ty, to } => self.slots[*to] = Some(self.box_value(*from, ty)),
            Handle::Full { value, ty, to, origin } => {
                let tensor = HostTensor::full(*value, ty.dtype, ty.shape.clone());
                let tensor = tensor.map_err(|error| self.error(Fault::from(error), *origin))?;
                self.slots[*to] = Some(tensor);
            }
            Handle::Move { from, to } => self.slots[*to] = self.slots[*from].take(),
            Handle::Share { from, to } => self.slots[*to] = self.slots[*from].clone(),
            Handle::Drop(slot) => self.slots[*slot] = None,
        }
        Ok(())
    }

    /// A tensor with a copy of a value of the arena.
    fn box_value(&self, from: Span, ty: &TensorType) -> HostTensor {
        let tensor = HostTensor::from_bytes(ty.dtype, ty.shape.clone(), &self.arena[from.range()]);
        tensor.expect("a value of the arena has the size of its type")
    }

    /// Runs an instruction that writes elements to the arena.
    fn elements(&mut self, elements: &Elements) {
        match elements {
            Elements::Repeat { from, size, to } => {
                let (source, out) = self.both(*from, *to);
                repeat(&source[..usize::from(*size)], out);
            }
            Elements::Fill { value, to } => repeat(value, &mut self.arena[to.range()]),
            Elements::Pad { of, size } => {
                let size = usize::from(*size);
                let bytes = &mut self.arena[of.with_padding(size).range()];
                let (elements, rest) = bytes.split_at_mut(of.len as usize);
                repeat(&elements[..size], rest);
            }
            Elements::Unbox { slot, first, to } => {
                let out = &mut self.arena[to.range()];
                let source = &tensor(self.slots, *slot).bytes()[*first as usize..];
                out.copy_from_slice(&source[..out.len()]);
            }
            Elements::Literal { from, to } => {
                self.arena[to.range()].copy_from_slice(from.bytes());
            }
            Elements::Read { rule, size, from, to } => {
                let (source, out) = self.both(*from, *to);
                rule.read_bytes(usize::from(*size), source, 0, out);
            }
            Elements::Write { rule, size, from, to } => {
                let (source, out) = self.both(Bytes::Arena(*from), *to);
                rule.write_bytes(usize::from(*size), source, out);
            }
            Elements::Slice(slice) => self.slice(slice),
            Elements::Reduce { reduction, from, to } => {
                let cx = self.cx;
                let (source, out) = self.both(Bytes::Arena(*from), *to);
                reduction.fill(cx, source, out);
            }
            Elements::Product { product, operands: [left, right], to } => {
                let (around, out) = around(self.arena, *to);
                product.fill(self.cx, around.span(*left), around.span(*right), out);
            }
        }
    }

    #[inline]
    fn kernel(&mut self, kernel: Kernel, operands: [Source; 3], to: Span) {
        let (around, out) = around(self.arena, to);
        let [x, y, z] = operands;
        kernel([around.source(x), around.source(y), around.source(z)], out);
    }

    /// The bytes of a value, and a span to write to.
    fn both(&mut self, from: Bytes, to: Span) -> (&[u8], &mut [u8]) {
        match from {
            Bytes::Arena(from) => {
                let (around, out) = around(self.arena, to);
                (around.span(from), out)
            }
            Bytes::Slot(slot) => (tensor(self.slots, slot).bytes(), &mut self.arena[to.range()]),
        }
    }

    fn slice(&mut self, slice: &Slice) {
        let Slice { starts, rule, size, from, to } = slice;
        let size = usize::from(*size);
        let first = self.offset(starts) * size;
        let (source, out) = self.both(*from, *to);
        match rule {
            Some(rule) => rule.read_bytes(size, &source[first..], 0, out),
            None => out.copy_from_slice(&source[first..][..out.len()]),
        }
    }

    fn put(&mut self, put: &SliceUpdate) -> Result<(), EvalError> {
        let first = self.offset(&put.starts) * usize::from(put.size);
        match put.into {
            Bytes::Arena(to) => {
                let (update, out) = self.both(Bytes::Arena(put.update), to);
                put.write(update, &mut out[first..]);
            }
            Bytes::Slot(slot) => {
                let value = self.slots[slot].take().expect("a value lives until its last use");
                let dtype = value.dtype();
                let value = owned(self.cx, value, dtype);
                let mut value = value.map_err(|fault| self.error(fault, put.origin))?;
                put.write(&self.arena[put.update.range()], &mut bytes_mut(&mut value)[first..]);
                self.slots[slot] = Some(value);
            }
        }
        Ok(())
    }

    /// The offset of a slice in elements.
    fn offset(&self, starts: &Starts) -> usize {
        starts.dynamic.iter().fold(starts.first, |first, start| {
            let number = integer_of(start.dtype, &self.arena[start.number.range()]);
            first + number.clamp(0, start.last) as usize * start.step
        })
    }

    /// Runs a step on boxed values.
    fn call(&mut self, call: &Call) -> Result<(), EvalError> {
        for (from, ty, slot) in &call.boxed_args {
            self.slots[*slot] = Some(self.box_value(*from, ty));
        }
        self.cx.check()?;
        let checks = self.bytecode.checks && self.has_finite_operands(call);
        let mut results = self.compute(call)?;
        if checks {
            finite::check(&results).map_err(|fault| self.error(fault, call.origin))?;
        }
        for arg in call.args.iter().filter(|arg| arg.is_last) {
            self.slots[arg.slot] = None;
        }
        for (target, result) in call.targets.iter().zip(results.drain(..)) {
            if let Some(slot) = *target {
                self.slots[slot] = Some(result);
            }
        }
        for &(slot, to) in &call.unboxed_results {
            let tensor = self.slots[slot].take().expect("the step has computed it");
            self.arena[to.range()].copy_from_slice(tensor.bytes());
        }
        Ok(())
    }

    /// The results of a step. A step that may run long runs on a new thread if the caller may cancel it.
    fn compute(&mut self, call: &Call) -> Result<Results, EvalError> {
        let graph = self.bytecode.graph(call.origin);
        let node = NodeRef { graph, id: call.origin.id, targets: &call.targets };
        let lanes = self.lanes;
        let mut operands = Args::new(self.slots, &call.args);
        let mut work = |cx: Cx<'_>| -> Result<Results, Stop> {
            Ok(match &call.work {
                CallWork::Body(code) => code.run(cx, &mut operands, lanes)?,
                CallWork::Nest(nest) => nest.run(cx, &mut operands)?,
                CallWork::Op => dispatch::evaluate(cx, node, &mut operands)?,
                CallWork::Fold(function) => fold::evaluate(cx, node, function, &operands)?,
                CallWork::Outlined(code) => {
                    code.run(cx, (0..operands.len()).map(|index| operands.take(index)))?
                }
            })
        };
        let done = match self.cx.cancel {
            Cancel::Poll(interrupt) if call.is_long => {
                run_cancellable(self.cx, interrupt, |cx| catch_stop(|| work(cx)))?
            }
            Cancel::Poll(_) | Cancel::Token(_) | Cancel::Never => catch_stop(|| work(self.cx)),
        };
        done.map_err(|stop: Stop| stop.at(graph, call.origin.id))
    }

    /// Returns true if a step must return finite results. Literals are values of the user, and some
    /// constants are part of the step that reads them.
    fn has_finite_operands(&self, call: &Call) -> bool {
        let graph = self.bytecode.graph(call.origin);
        let is_finite = |slot| finite::first_not_finite(tensor(self.slots, slot)).is_none();
        !dispatch::is_literal(graph.op(call.origin.id))
            && graph
                .operands(call.origin.id)
                .iter()
                .all(|&x| !dispatch::is_nonfinite_constant(graph, x))
            && call.args.iter().all(|arg| is_finite(arg.slot))
    }

    /// The error of an instruction.
    fn error(&self, fault: Fault, origin: Origin) -> EvalError {
        Stop::from(fault).at(self.bytecode.graph(origin), origin.id)
    }

    fn results(&mut self) -> Results {
        let results = self.bytecode.results.iter();
        let result = |(ty, bytes): &(_, Bytes)| match *bytes {
            Bytes::Arena(span) => self.box_value(span, ty),
            Bytes::Slot(slot) => self.slots[slot].take().expect("each result has a slot"),
        };
        results.map(result).collect()
    }
}

impl SliceUpdate {
    fn write(&self, update: &[u8], out: &mut [u8]) {
        match &self.rule {
            Some(rule) => rule.write_bytes(usize::from(self.size), update, out),
            None => out[..update.len()].copy_from_slice(update),
        }
    }
}

/// The arena without one span.
struct ArenaRest<'a> {
    before: &'a [u8],
    after: &'a [u8],
    end: usize,
}

/// A span of the arena to write to, and the rest to read.
#[inline]
fn around(arena: &mut [u8], to: Span) -> (ArenaRest<'_>, &mut [u8]) {
    let range = to.range();
    let (before, rest) = arena.split_at_mut(range.start);
    let (out, after) = rest.split_at_mut(range.len());
    (ArenaRest { before, after, end: range.end }, out)
}

impl<'a> ArenaRest<'a> {
    /// The bytes from an offset on.
    #[inline]
    fn from(&self, at: u32) -> &'a [u8] {
        let at = at as usize;
        if at < self.end { &self.before[at..] } else { &self.after[at - self.end..] }
    }

    fn span(&self, span: Span) -> &'a [u8] {
        &self.from(span.at)[..span.len as usize]
    }

    #[inline]
    fn source(&self, source: Source) -> Src<'a> {
        match source {
            Source::NONE => Src::NONE,
            Source { at, splat } => Src { bytes: self.from(at), splat },
        }
    }
}

fn tensor(slots: &[Option<HostTensor>], slot: usize) -> &HostTensor {
    slots[slot].as_ref().expect("a value lives until its last use")
}

/// Returns true if a predicate with these bytes is true.
fn is_true(dtype: DType, bytes: &[u8]) -> bool {
    match dtype {
        DType::Pred => bytes[0] != 0,
        _ => {
            match_dtype!(dtype, T => !bytemuck::pod_read_unaligned::<T>(bytes).to_scalar().is_zero())
        }
    }
}
