//! Lowering of element-wise bodies in the arena: a kernel for each instruction.

use super::build::{BytecodeBuilder, Location, Value};
use super::region::StepContext;
use crate::context::may_split;
use crate::execute::code::{Elements, Inst, Source, Span, padded_bytes};
use crate::kernels::elementwise::{
    Access, BodyCode, Instruction, Loc, NARROW_LANES, Target, WIDE_LANES,
};
use crate::kernels::strided::Strided;

/// An operand of an instruction.
#[derive(Clone, Copy)]
struct Operand {
    source: Source,
    /// See [`Value::level`].
    level: usize,
}

impl Operand {
    /// The placeholder for an operand that a kernel does not have.
    const NONE: Self = Self { source: Source::NONE, level: 0 };

    /// The elements from an offset in the arena on.
    fn at(at: u32, level: usize) -> Self {
        Self { source: Source { at, splat: false }, level }
    }
}

/// The operands for the values of a body so far.
struct Operands {
    len: usize,
    /// Bytes of the largest element in a register.
    widest: usize,
    inputs: Vec<Operand>,
    constants: Vec<Operand>,
    once: Vec<Operand>,
    /// The contents of each register.
    registers: Vec<Option<Operand>>,
    /// The offset of each register in the current loop.
    offsets: Vec<Option<u32>>,
    results: Vec<Option<Operand>>,
}

impl Operands {
    /// The operands of an instruction, and the level of its result.
    fn read_all(&self, instruction: &Instruction) -> ([Source; 3], usize) {
        let operands = instruction.operands.map(|loc| self.read(loc));
        let level = operands.iter().map(|operand| operand.level).max().unwrap_or(0);
        (operands.map(|operand| operand.source), level)
    }

    fn read(&self, loc: Loc) -> Operand {
        match loc {
            Loc::None => Operand::NONE,
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

impl BytecodeBuilder {
    /// Lowers a body whose elements are one block on one thread.
    pub(super) fn body(&mut self, code: &BodyCode, site: &StepContext<'_>) -> Option<Vec<Value>> {
        if !site.types.iter().all(|ty| self.is_small(ty)) {
            return None;
        }
        // Kernels compute whole vectors, so values are padded, see [`padded_bytes`].
        let len = code.shape.size();
        let padded = padded_bytes(len, 1);
        let is_block = code.block(padded) == padded;
        let is_read = |(value, input): (&Value, &_)| match input {
            Access::Strided(_) => true,
            Access::Same | Access::Single => self.is_small(&value.ty),
        };
        let accesses = code.inputs.iter().map(|input| &input.access);
        let is_small = is_block
            && !may_split(padded.saturating_mul(code.cost))
            && site.operands.iter().zip(accesses).all(is_read);
        is_small.then(|| self.kernels(code, site, len))
    }

    fn kernels(&mut self, code: &BodyCode, site: &StepContext<'_>, len: usize) -> Vec<Value> {
        let inputs = code.inputs.iter().zip(site.operands);
        let inputs = inputs.map(|(input, value)| self.input(&input.access, value, len)).collect();
        let constants =
            code.constants.iter().map(|value| Operand { source: self.constant(value), level: 0 });
        let mut known = Operands {
            len,
            widest: code.widest,
            inputs,
            constants: constants.collect(),
            once: Vec::new(),
            registers: vec![None; usize::from(code.registers)],
            offsets: vec![None; usize::from(code.registers)],
            results: vec![None; code.results.len()],
        };
        self.compute_once(code, &mut known);
        let mut results = vec![None; code.results.len()];
        for instruction in &code.instructions {
            let (operands, level) = known.read_all(instruction);
            let bytes = padded_bytes(len, instruction.size);
            let to = match instruction.target {
                Target::Result(result) => {
                    let result = usize::from(result);
                    let (value, to) = self.result(site.types[result].clone(), level);
                    known.results[result] = Some(Operand::at(to.at, level));
                    results[result] = Some(value);
                    to.with_padding(instruction.size)
                }
                Target::Register(register) => self.register(&mut known, register, bytes, level),
            };
            self.push_at(level, Inst::Kernel { kernel: instruction.kernel, operands, to });
        }
        results.into_iter().map(|value| value.expect("a body writes all of its results")).collect()
    }

    /// The span of a register: the same for all its values in the current loop, and a new one for each value before
    /// the loop.
    fn register(
        &mut self,
        known: &mut Operands,
        register: u16,
        bytes: usize,
        level: usize,
    ) -> Span {
        let register = usize::from(register);
        let is_inside = level == self.depth();
        let at = match known.offsets[register].filter(|_| is_inside) {
            Some(at) => at,
            // A later value of another size may use the register.
            None if is_inside => {
                let at = self.scratch(padded_bytes(known.len, known.widest), level).at;
                known.offsets[register] = Some(at);
                at
            }
            None => self.scratch(bytes, level).at,
        };
        known.registers[register] = Some(Operand::at(at, level));
        Span::new(at as usize, bytes)
    }

    /// Computes the instructions on constants and single elements.
    fn compute_once(&mut self, code: &BodyCode, known: &mut Operands) {
        let lanes = if known.len <= NARROW_LANES { NARROW_LANES } else { WIDE_LANES };
        for instruction in &code.once {
            let (operands, level) = known.read_all(instruction);
            let to = self.scratch(lanes * instruction.size, level);
            let operands = operands.map(|source| Source { splat: true, ..source });
            self.push_at(level, Inst::Kernel { kernel: instruction.kernel, operands, to });
            known.once.push(Operand { source: Source { at: to.at, splat: true }, level });
        }
    }

    /// The operand from which kernels read an input.
    fn input(&mut self, access: &Access, value: &Value, len: usize) -> Operand {
        let level = value.level;
        let rule = match access {
            Access::Same => return Operand::at(self.arena_copy(value).at, level),
            Access::Single => return Operand { source: self.splat(value, len), level },
            Access::Strided(rule) => rule,
        };
        let size = value.ty.dtype.size();
        let first = rule.neighbors(0, len).and_then(|first| u32::try_from(first * size).ok());
        if let (Some(first), Location::Arena(span)) = (first, value.location)
            && len.is_multiple_of(NARROW_LANES)
        {
            return Operand::at(span.at + first, level);
        }
        let to = self.scratch_value(len, value);
        match (first, value.location) {
            (Some(first), Location::Slot { slot, .. }) => self.unbox(slot, first, to, value),
            _ => {
                self.read(rule, value, to, level);
                self.pad(to, size, level);
            }
        }
        Operand::at(to.at, level)
    }

    /// Reads elements by an access rule.
    pub(super) fn read(&mut self, rule: &Strided, value: &Value, to: Span, level: usize) {
        let (rule, size) = (Box::new(rule.clone()), value.ty.dtype.size() as u8);
        self.push_at(level, Elements::Read { rule, size, from: value.bytes(), to });
    }
}
