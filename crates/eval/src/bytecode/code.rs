//! Writing element-wise code: a kernel for each of its instructions.

use super::build::{At, Builder, Held};
use super::region::Site;
use super::{Elements, Inst, Source, Span, padded};
use crate::elementwise::{Access, Code, LANES, Loc, SHORT, Target};
use crate::layout::Strided;
use crate::parallel;

/// An operand of an instruction, and the level at which it is known.
type Known = (Source, usize);

/// Where the values of code are that has been written so far.
struct Values {
    len: usize,
    /// Bytes of the largest element in a register.
    widest: usize,
    inputs: Vec<Known>,
    constants: Vec<Known>,
    once: Vec<Known>,
    /// What each register holds.
    registers: Vec<Option<Known>>,
    /// Where registers are that are not written before the loop.
    places: Vec<Option<u32>>,
    results: Vec<Option<Known>>,
}

impl Values {
    fn read(&self, loc: Loc) -> Known {
        match loc {
            Loc::None => (Source::NONE, 0),
            Loc::Input(index) => self.inputs[usize::from(index)],
            Loc::Constant(index) => self.constants[usize::from(index)],
            Loc::Once(index) => self.once[usize::from(index)],
            Loc::Register(index) => {
                self.registers[usize::from(index)].expect("it is written before it is read")
            }
            Loc::Result(index) => {
                self.results[usize::from(index)].expect("it is written before it is read")
            }
        }
    }
}

impl Builder {
    /// Code of which all elements are one block, that one thread computes.
    pub(super) fn code(&mut self, code: &Code, site: &Site<'_>) -> Option<Vec<Held>> {
        // In whole loops of kernels, see [`padded`].
        let len = code.shape.size();
        let padded = padded(len, 1);
        let is_block = code.block(padded) == padded;
        let is_read = |(held, input): (&Held, &_)| match input {
            Access::Strided(_) => true,
            Access::Same | Access::Single => self.is_near(&held.ty),
        };
        let accesses = code.inputs.iter().map(|input| &input.access);
        let is_small = is_block
            && !parallel::is_spread(padded.saturating_mul(code.cost))
            && site.types.iter().all(|ty| self.is_near(ty))
            && site.operands.iter().zip(accesses).all(is_read);
        is_small.then(|| self.kernels(code, site, len))
    }

    fn kernels(&mut self, code: &Code, site: &Site<'_>, len: usize) -> Vec<Held> {
        let inputs = code.inputs.iter().zip(site.operands);
        let inputs = inputs.map(|(input, held)| self.input(&input.access, held, len)).collect();
        let constants = code.constants.iter().map(|value| (self.constant(value), 0)).collect();
        let mut values = Values {
            len,
            widest: usize::from(code.widest),
            inputs,
            constants,
            once: Vec::new(),
            registers: vec![None; usize::from(code.registers)],
            places: vec![None; usize::from(code.registers)],
            results: vec![None; code.results.len()],
        };
        self.computed_once(code, &mut values);
        let mut results = vec![None; code.results.len()];
        for instruction in &code.instructions {
            let known = instruction.operands.map(|loc| values.read(loc));
            let level = known.iter().map(|&(_, level)| level).max().unwrap_or(0);
            let bytes = padded(len, usize::from(instruction.size));
            let to = match instruction.target {
                Target::Result(result) => {
                    let result = usize::from(result);
                    let (held, to) = self.result(site.types[result].clone(), level);
                    values.results[result] = Some((Source { at: to.at, splat: false }, level));
                    results[result] = Some(held);
                    to.padded(usize::from(instruction.size))
                }
                Target::Register(register) => self.register(&mut values, register, bytes, level),
            };
            let operands = known.map(|(source, _)| source);
            self.push_at(level, Inst::Kernel { kernel: instruction.kernel, operands, to });
        }
        results.into_iter().map(|held| held.expect("code writes all of its results")).collect()
    }

    /// Where a register is written: always at the same place, unless that is before the loop.
    fn register(&mut self, values: &mut Values, register: u16, bytes: usize, level: usize) -> Span {
        let register = usize::from(register);
        let is_inside = level == self.depth();
        let at = match values.places[register].filter(|_| is_inside) {
            Some(at) => at,
            // A register is written again with elements of other sizes.
            None if is_inside => {
                let at = self.scratch(padded(values.len, values.widest), level).at;
                values.places[register] = Some(at);
                at
            }
            None => self.scratch(bytes, level).at,
        };
        values.registers[register] = Some((Source { at, splat: false }, level));
        Span::new(at as usize, bytes)
    }

    /// What is computed of constants and single elements.
    fn computed_once(&mut self, code: &Code, values: &mut Values) {
        let lanes = if values.len <= SHORT { SHORT } else { LANES };
        for instruction in &code.once {
            let known = instruction.operands.map(|loc| values.read(loc));
            let level = known.iter().map(|&(_, level)| level).max().unwrap_or(0);
            let to = self.scratch(lanes * usize::from(instruction.size), level);
            let operands = known.map(|(source, _)| Source { splat: true, ..source });
            self.push_at(level, Inst::Kernel { kernel: instruction.kernel, operands, to });
            values.once.push((Source { at: to.at, splat: true }, level));
        }
    }

    /// Where kernels read an input.
    fn input(&mut self, access: &Access, held: &Held, len: usize) -> Known {
        let source = |at: u32| Source { at, splat: false };
        let rule = match access {
            Access::Same => return (source(self.near_copy(held).at), held.level),
            Access::Single => return (self.splat(held, len), held.level),
            Access::Strided(rule) => rule,
        };
        let size = held.ty.dtype.size();
        let first = rule.neighbours(0, len).and_then(|first| u32::try_from(first * size).ok());
        if let (Some(first), At::Near(span)) = (first, held.at)
            && len.is_multiple_of(SHORT)
        {
            return (source(span.at + first), held.level);
        }
        let to = self.scratch_value(len, held);
        match (first, held.at) {
            (Some(first), At::Far { slot, .. }) => self.copy_far(slot, first, to, held),
            _ => {
                self.read(rule, held, to, held.level);
                self.spread(to, size, held.level);
            }
        }
        (source(to.at), held.level)
    }

    /// Writes an instruction that reads elements by a rule.
    pub(super) fn read(&mut self, rule: &Strided, held: &Held, to: Span, level: usize) {
        let (rule, size) = (Box::new(rule.clone()), held.ty.dtype.size() as u8);
        self.push_at(level, Elements::Read { rule, size, from: held.bytes(), to });
    }
}
