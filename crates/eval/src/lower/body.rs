//! Lowering of element-wise bodies in the arena: a kernel for each instruction.

use super::build::{At, Builder, Held};
use super::region::Site;
use crate::context::may_split;
use crate::execute::code::{Elements, Inst, Source, Span, padded};
use crate::kernels::elementwise::{Access, Code, LANES, Loc, SHORT, Target};
use crate::kernels::strided::Strided;

/// An operand of an instruction, and its level.
type Known = (Source, usize);

/// The places of the values of a body so far.
struct Values {
    len: usize,
    /// Bytes of the largest element in a register.
    widest: usize,
    inputs: Vec<Known>,
    constants: Vec<Known>,
    once: Vec<Known>,
    /// The contents of each register.
    registers: Vec<Option<Known>>,
    /// The offset of each register in the current loop.
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
                self.registers[usize::from(index)].expect("a value is written before it is read")
            }
            Loc::Result(index) => {
                self.results[usize::from(index)].expect("a value is written before it is read")
            }
        }
    }
}

impl Builder {
    /// Lowers a body whose elements are one block on one thread.
    pub(super) fn body(&mut self, code: &Code, site: &Site<'_>) -> Option<Vec<Held>> {
        if !site.types.iter().all(|ty| self.is_small(ty)) {
            return None;
        }
        // Kernels compute whole vectors, so values are padded, see [`padded`].
        let len = code.shape.size();
        let padded = padded(len, 1);
        let is_block = code.block(padded) == padded;
        let is_read = |(held, input): (&Held, &_)| match input {
            Access::Strided(_) => true,
            Access::Same | Access::Single => self.is_small(&held.ty),
        };
        let accesses = code.inputs.iter().map(|input| &input.access);
        let is_small = is_block
            && !may_split(padded.saturating_mul(code.cost))
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
        self.compute_once(code, &mut values);
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
        results.into_iter().map(|held| held.expect("a body writes all of its results")).collect()
    }

    /// The span of a register: the same for all its values in the current loop, and a new one for each value before
    /// the loop.
    fn register(&mut self, values: &mut Values, register: u16, bytes: usize, level: usize) -> Span {
        let register = usize::from(register);
        let is_inside = level == self.depth();
        let at = match values.places[register].filter(|_| is_inside) {
            Some(at) => at,
            // A later value of another size may use the register.
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

    /// Computes the instructions on constants and single elements.
    fn compute_once(&mut self, code: &Code, values: &mut Values) {
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

    /// The place from which kernels read an input.
    fn input(&mut self, access: &Access, held: &Held, len: usize) -> Known {
        let source = |at: u32| Source { at, splat: false };
        let rule = match access {
            Access::Same => return (source(self.arena_copy(held).at), held.level),
            Access::Single => return (self.splat(held, len), held.level),
            Access::Strided(rule) => rule,
        };
        let size = held.ty.dtype.size();
        let first = rule.neighbors(0, len).and_then(|first| u32::try_from(first * size).ok());
        if let (Some(first), At::Arena(span)) = (first, held.at)
            && len.is_multiple_of(SHORT)
        {
            return (source(span.at + first), held.level);
        }
        let to = self.scratch_value(len, held);
        match (first, held.at) {
            (Some(first), At::Slot { slot, .. }) => self.load(slot, first, to, held),
            _ => {
                self.read(rule, held, to, held.level);
                self.pad(to, size, held.level);
            }
        }
        (source(to.at), held.level)
    }

    /// Reads elements by an access rule.
    pub(super) fn read(&mut self, rule: &Strided, held: &Held, to: Span, level: usize) {
        let (rule, size) = (Box::new(rule.clone()), held.ty.dtype.size() as u8);
        self.push_at(level, Elements::Read { rule, size, from: held.bytes(), to });
    }
}
