//! Running the code of a loop.

use std::cell::RefCell;

use nxla_tensor::{DType, Element, HostTensor, match_dtype};

use super::{Bytecode, Bytes, Call, Inst, Load, Put, Slice, Source, Span, Starts};
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
        let mut machine = Machine { code: self, memory, slots: &mut slots, context };
        let done = machine.run().and_then(|()| machine.results());
        SPARE.with_borrow_mut(|spare| spare.push(scratch));
        done
    }
}

impl Machine<'_> {
    fn run(&mut self) -> Result<(), Stop> {
        let code = self.code;
        let mut at = 0;
        while let Some(inst) = code.insts.get(at) {
            at = at.wrapping_add_signed(self.step(inst)?);
        }
        Ok(())
    }

    /// Does one thing, and says how far the next one is.
    #[inline]
    fn step(&mut self, inst: &Inst) -> Result<isize, Stop> {
        match inst {
            Inst::Kernel { kernel, operands, to } => self.kernel(*kernel, *operands, *to),
            Inst::Jump(by) => return Ok(*by as isize),
            Inst::JumpUnless { predicate, dtype, by } => {
                let holds = is_true(*dtype, &self.memory[predicate.range()]);
                return Ok(if holds { 1 } else { *by as isize });
            }
            Inst::Check => self.context.check()?,
            Inst::Call(call) => self.call(call)?,
            Inst::Move { from, to } => self.slots[*to] = self.slots[*from].take(),
            Inst::Share { from, to } => self.slots[*to] = self.slots[*from].clone(),
            Inst::Drop(slot) => self.slots[*slot] = None,
            Inst::Store { from, ty, to } => {
                let bytes = &self.memory[from.range()];
                let tensor = HostTensor::from_bytes(ty.dtype, ty.shape.clone(), bytes);
                self.slots[*to] = Some(tensor.map_err(Fault::from)?);
            }
            Inst::Full { value, ty, to, origin } => {
                let tensor = HostTensor::full(*value, ty.dtype, ty.shape.clone());
                self.slots[*to] = Some(tensor.map_err(|error| self.stop(error.into(), *origin))?);
            }
            Inst::Put(put) => self.put(put)?,
            _ => self.moves(inst),
        }
        Ok(1)
    }

    /// Moves, reduces or multiplies elements.
    fn moves(&mut self, inst: &Inst) {
        match inst {
            Inst::Repeat { from, size, to } => {
                let (source, out) = self.both(*from, *to);
                repeat(&source[..usize::from(*size)], out);
            }
            Inst::Fill { value, to } => repeat(value, &mut self.memory[to.range()]),
            Inst::Copy { from, first, to } => {
                let (source, out) = self.both(*from, *to);
                out.copy_from_slice(&source[*first as usize..][..out.len()]);
            }
            Inst::Literal { from, to } => {
                self.memory[to.range()].copy_from_slice(from.bytes());
            }
            Inst::Read { rule, size, from, to } => {
                let (source, out) = self.both(*from, *to);
                rule.read_bytes(usize::from(*size), source, 0, out);
            }
            Inst::Write { rule, size, from, to } => {
                let (source, out) = self.both(Bytes::Near(*from), *to);
                rule.write_bytes(usize::from(*size), source, out);
            }
            Inst::Slice(slice) => self.slice(slice),
            Inst::Reduce { reduction, from, to } => {
                let (source, out) = self.both(Bytes::Near(*from), *to);
                reduction.fill(source, out);
            }
            Inst::Product { product, operands: [left, right], to } => {
                let (around, out) = around(self.memory, *to);
                product.fill(around.span(*left), around.span(*right), out);
            }
            Inst::Kernel { .. }
            | Inst::Jump(_)
            | Inst::JumpUnless { .. }
            | Inst::Check
            | Inst::Call(_)
            | Inst::Move { .. }
            | Inst::Share { .. }
            | Inst::Drop(_)
            | Inst::Store { .. }
            | Inst::Full { .. }
            | Inst::Put(_) => unreachable!("these are done above"),
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
        let first = self.first(starts);
        let (source, out) = self.both(*from, *to);
        rule.read_bytes(size, &source[first * size..], 0, out);
    }

    fn put(&mut self, put: &Put) -> Result<(), Stop> {
        let Put { starts, rule, size, update, into, origin } = put;
        let size = usize::from(*size);
        let first = self.first(starts) * size;
        match *into {
            Bytes::Near(to) => {
                let (update, out) = self.both(Bytes::Near(*update), to);
                rule.write_bytes(size, update, &mut out[first..]);
            }
            Bytes::Far(slot) => {
                let tensor = self.slots[slot].take().expect("a value lives until its last use");
                let dtype = tensor.dtype();
                let owned = value::owned(tensor, dtype);
                let mut tensor = owned.map_err(|fault| self.stop(fault, *origin))?;
                let out = &mut value::bytes_mut(&mut tensor)[first..];
                rule.write_bytes(size, &self.memory[update.range()], out);
                self.slots[slot] = Some(tensor);
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
        _ => match_dtype!(dtype, T => !bytemuck::pod_read_unaligned::<T>(bytes).to_scalar().is_zero()),
    }
}
