//! Running the code of a loop.

use std::cell::RefCell;

use nxla_tensor::{DType, Element, HostTensor, match_dtype};

use super::{
    Bytecode, Bytes, Call, Elements, Handle, Inst, Load, Put, Slice, Source, Span, Starts,
};
use crate::args::Args;
use crate::elementwise::{Kernel, Src, repeat};
use crate::error::{Fault, Stop};
use crate::memory::Scratch;
use crate::run::{Context, Results};
use crate::value;

thread_local! {
    /// Pieces of memory that no loop of this thread is using.
    static SPARE: RefCell<Vec<Scratch>> = const { RefCell::new(Vec::new()) };
}

/// What instructions work on.
struct Machine<'a> {
    code: &'a Bytecode,
    memory: &'a mut [u8],
    slots: &'a mut [Option<HostTensor>],
    context: Context<'a>,
}

impl Bytecode {
    /// Runs the loop on its operands.
    pub(crate) fn run(&self, args: &mut Args<'_>, context: Context<'_>) -> Result<Results, Stop> {
        let mut slots: Vec<Option<HostTensor>> = vec![None; self.slots];
        for (index, slot) in slots[..args.len()].iter_mut().enumerate() {
            *slot = Some(args.take(index));
        }
        let mut scratch = SPARE.with_borrow_mut(Vec::pop).unwrap_or(Scratch::EMPTY);
        let memory = scratch.bytes(self.bytes);
        if cfg!(debug_assertions) {
            // Nothing is read that has not been written: what runs before have left would hide it.
            memory.fill(u8::MAX);
        }
        let mut machine = Machine { code: self, memory, slots: &mut slots, context };
        let done = machine.run().and_then(|()| machine.results());
        SPARE.with_borrow_mut(|spare| spare.push(scratch));
        done
    }
}

impl Machine<'_> {
    fn run(&mut self) -> Result<(), Stop> {
        let insts = &*self.code.insts;
        let mut at = 0;
        while let Some(inst) = insts.get(at) {
            at += 1;
            match inst {
                Inst::Kernel { kernel, operands, to } => self.kernel(*kernel, *operands, *to),
                Inst::Copy { from, to } => {
                    self.memory.copy_within(from.range(), to.at as usize);
                }
                Inst::Elements(elements) => self.elements(elements),
                Inst::Put(put) => self.put(put)?,
                Inst::Handle(handle) => self.handle(handle)?,
                Inst::Call(call) => self.call(call)?,
                Inst::Check => self.context.check()?,
                Inst::Jump(by) => at = (at - 1).wrapping_add_signed(*by as isize),
                Inst::JumpUnless { predicate, dtype, by } => {
                    if !is_true(*dtype, &self.memory[predicate.range()]) {
                        at = (at - 1).wrapping_add_signed(*by as isize);
                    }
                }
            }
        }
        Ok(())
    }

    /// Makes, moves or drops a tensor.
    fn handle(&mut self, handle: &Handle) -> Result<(), Stop> {
        match handle {
            Handle::Store { from, ty, to } => {
                let bytes = &self.memory[from.range()];
                let tensor = HostTensor::from_bytes(ty.dtype, ty.shape.clone(), bytes);
                self.slots[*to] = Some(tensor.map_err(Fault::from)?);
            }
            Handle::Full { value, ty, to, origin } => {
                let tensor = HostTensor::full(*value, ty.dtype, ty.shape.clone());
                self.slots[*to] = Some(tensor.map_err(|error| self.stop(error.into(), *origin))?);
            }
            Handle::Move { from, to } => self.slots[*to] = self.slots[*from].take(),
            Handle::Share { from, to } => self.slots[*to] = self.slots[*from].clone(),
            Handle::Drop(slot) => self.slots[*slot] = None,
        }
        Ok(())
    }

    /// Writes elements.
    fn elements(&mut self, elements: &Elements) {
        match elements {
            Elements::Repeat { from, size, to } => {
                let (source, out) = self.both(*from, *to);
                repeat(&source[..usize::from(*size)], out);
            }
            Elements::Fill { value, to } => repeat(value, &mut self.memory[to.range()]),
            Elements::Spread { of, size } => {
                let size = usize::from(*size);
                let bytes = &mut self.memory[of.padded(size).range()];
                let (elements, rest) = bytes.split_at_mut(of.len as usize);
                repeat(&elements[..size], rest);
            }
            Elements::Load { slot, first, to } => {
                let out = &mut self.memory[to.range()];
                let source = &held(self.slots, *slot).bytes()[*first as usize..];
                out.copy_from_slice(&source[..out.len()]);
            }
            Elements::Literal { from, to } => {
                self.memory[to.range()].copy_from_slice(from.bytes());
            }
            Elements::Read { rule, size, from, to } => {
                let (source, out) = self.both(*from, *to);
                rule.read_bytes(usize::from(*size), source, 0, out);
            }
            Elements::Write { rule, size, from, to } => {
                let (source, out) = self.both(Bytes::Near(*from), *to);
                rule.write_bytes(usize::from(*size), source, out);
            }
            Elements::Slice(slice) => self.slice(slice),
            Elements::Reduce { reduction, from, to } => {
                let (source, out) = self.both(Bytes::Near(*from), *to);
                reduction.fill(source, out);
            }
            Elements::Product { product, operands: [left, right], to } => {
                let (around, out) = around(self.memory, *to);
                product.fill(around.span(*left), around.span(*right), out);
            }
        }
    }

    #[inline]
    fn kernel(&mut self, kernel: Kernel, operands: [Source; 3], to: Span) {
        let (around, out) = around(self.memory, to);
        let [x, y, z] = operands;
        kernel([around.source(x), around.source(y), around.source(z)], out);
    }

    /// The bytes of a tensor, and a place to write to.
    fn both(&mut self, from: Bytes, to: Span) -> (&[u8], &mut [u8]) {
        match from {
            Bytes::Near(from) => {
                let (around, out) = around(self.memory, to);
                (around.span(from), out)
            }
            Bytes::Far(slot) => (held(self.slots, slot).bytes(), &mut self.memory[to.range()]),
        }
    }

    fn slice(&mut self, slice: &Slice) {
        let Slice { starts, rule, size, from, to } = slice;
        let size = usize::from(*size);
        let first = self.first(starts) * size;
        let (source, out) = self.both(*from, *to);
        match rule {
            Some(rule) => rule.read_bytes(size, &source[first..], 0, out),
            None => out.copy_from_slice(&source[first..][..out.len()]),
        }
    }

    fn put(&mut self, put: &Put) -> Result<(), Stop> {
        let first = self.first(&put.starts) * usize::from(put.size);
        match put.into {
            Bytes::Near(to) => {
                let (update, out) = self.both(Bytes::Near(put.update), to);
                put.write(update, &mut out[first..]);
            }
            Bytes::Far(slot) => {
                let tensor = self.slots[slot].as_mut().expect("a value lives until its last use");
                if tensor.try_unique_mut().is_none() {
                    let owned = value::owned(tensor.clone(), tensor.dtype());
                    let owned = owned.map_err(|fault| self.stop(fault, put.origin))?;
                    self.slots[slot] = Some(owned);
                }
                let tensor = self.slots[slot].as_mut().expect("it is there");
                let out = &mut value::bytes_mut(tensor)[first..];
                put.write(&self.memory[put.update.range()], out);
            }
        }
        Ok(())
    }

    /// The element at which a slice begins.
    fn first(&self, starts: &Starts) -> usize {
        starts.dynamic.iter().fold(starts.first, |first, start| {
            let number = value::integer_of(start.dtype, &self.memory[start.number.range()]);
            first + number.clamp(0, start.last) as usize * start.step
        })
    }

    /// Does a step as a plan does.
    fn call(&mut self, call: &Call) -> Result<(), Stop> {
        for (load, slot) in &call.loads {
            self.slots[*slot] = match load {
                Load::Near(span, ty) => {
                    let bytes = &self.memory[span.range()];
                    let tensor = HostTensor::from_bytes(ty.dtype, ty.shape.clone(), bytes);
                    Some(tensor.map_err(|error| self.stop(error.into(), call.origin))?)
                }
                Load::Share(from) => self.slots[*from].clone(),
                Load::Move(from) => self.slots[*from].take(),
            };
        }
        self.context.check()?;
        let (plan, first) = &self.code.plans[call.origin.plan as usize];
        let slots = &mut self.slots[*first..*first + plan.slots];
        plan.step(call.origin.position as usize, slots, None, self.context)?;
        for &slot in &call.dead {
            self.slots[slot] = None;
        }
        for &(slot, to) in &call.stores {
            let tensor = self.slots[slot].take().expect("the step has made it");
            self.memory[to.range()].copy_from_slice(tensor.bytes());
        }
        Ok(())
    }

    /// The error of a step.
    fn stop(&self, fault: Fault, origin: super::Origin) -> Stop {
        let (plan, _) = &self.code.plans[origin.plan as usize];
        let id = plan.steps[origin.position as usize].id;
        Stop::from(fault).at(plan.program().graph(), id).into()
    }

    fn results(&mut self) -> Result<Results, Stop> {
        let mut results = Results::new();
        for (ty, bytes) in &self.code.results {
            results.push(match *bytes {
                Bytes::Near(span) => {
                    let bytes = &self.memory[span.range()];
                    let tensor = HostTensor::from_bytes(ty.dtype, ty.shape.clone(), bytes);
                    tensor.map_err(Fault::from)?
                }
                Bytes::Far(slot) => self.slots[slot].take().expect("each is in its own slot"),
            });
        }
        Ok(results)
    }
}

impl Put {
    fn write(&self, update: &[u8], out: &mut [u8]) {
        match &self.rule {
            Some(rule) => rule.write_bytes(usize::from(self.size), update, out),
            None => out[..update.len()].copy_from_slice(update),
        }
    }
}

/// A memory without a part of it.
struct Around<'a> {
    before: &'a [u8],
    after: &'a [u8],
    end: usize,
}

/// A part of the memory to write to, and the others to read.
#[inline]
fn around(memory: &mut [u8], to: Span) -> (Around<'_>, &mut [u8]) {
    let range = to.range();
    let (before, rest) = memory.split_at_mut(range.start);
    let (out, after) = rest.split_at_mut(range.len());
    (Around { before, after, end: range.end }, out)
}

impl<'a> Around<'a> {
    /// The bytes from a place on.
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

fn held(slots: &[Option<HostTensor>], slot: usize) -> &HostTensor {
    slots[slot].as_ref().expect("a value lives until its last use")
}

/// Whether a predicate holds, of which these are the bytes.
fn is_true(dtype: DType, bytes: &[u8]) -> bool {
    match dtype {
        DType::Pred => bytes[0] != 0,
        _ => {
            match_dtype!(dtype, T => !bytemuck::pod_read_unaligned::<T>(bytes).to_scalar().is_zero())
        }
    }
}
