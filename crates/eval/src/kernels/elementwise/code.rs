//! Code for a group of element-wise ops, run block by block.
//!
//! A group is a list of instructions over blocks of a few thousand elements. The values that one
//! instruction writes are still in the cache when the next instruction reads them, so a chain of
//! ops reads and writes memory once. A single op is a group of one instruction. A group may have
//! several results of one shape, which later instructions read in place.

use nxla_tensor::{DType, Shape};
use smallvec::SmallVec;

use super::lanes::Kernel;
use crate::kernels::strided::Strided;

/// The location of an operand.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Loc {
    /// An input of the group.
    Input(u16),
    /// A constant of the group.
    Constant(u16),
    /// A register that an earlier instruction wrote.
    Register(u16),
    /// A result of the group that an earlier instruction wrote.
    Result(u16),
    /// A value that is computed once for all blocks.
    Once(u16),
    /// The placeholder for an operand that a kernel does not have.
    None,
}

/// The location of a result of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Target {
    /// A register, which later values reuse.
    Register(u16),
    /// A result of the group.
    Result(u16),
}

/// One kernel call per block.
#[derive(Clone)]
pub(crate) struct Instruction {
    pub(crate) kernel: Kernel,
    pub(crate) operands: [Loc; 3],
    pub(crate) target: Target,
    /// Bytes of an element of the result.
    pub(crate) size: usize,
}

/// The access to an input.
#[derive(Clone, Debug)]
pub(crate) enum Access {
    /// The input has the shape of the group.
    Same,
    /// The input has one element.
    Single,
    /// The input is broadcast along some axes.
    Strided(Box<Strided>),
}

/// The rows and columns over which a loop nest ranges.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Domain {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
}

/// The broadcast of an operand over a domain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Broadcast {
    /// One element for each element of the domain.
    None,
    /// One element for the whole domain.
    Scalar,
    /// One element for each row.
    PerRow,
    /// One row for all rows.
    PerColumn,
    /// Any other access rule.
    Strided,
}

impl Broadcast {
    /// The broadcast of an access over a domain.
    pub(crate) fn of(access: &Access, Domain { rows, columns }: Domain) -> Self {
        let rule = |by_row, by_column| Strided::new(0, [(rows, by_row), (columns, by_column)]);
        match access {
            Access::Same => Broadcast::None,
            Access::Single => Broadcast::Scalar,
            Access::Strided(found) if **found == rule(1, 0) => Broadcast::PerRow,
            Access::Strided(found) if **found == rule(0, 1) => Broadcast::PerColumn,
            Access::Strided(_) => Broadcast::Strided,
        }
    }
}

/// An input of a group.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    pub(crate) dtype: DType,
    pub(crate) access: Access,
}

/// The bytes of one constant, in the dtype in which it is used.
pub(crate) type Constant = SmallVec<[u8; 16]>;

/// A function of two elements that a reduction can compute while it reads them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PairFunction {
    Product,
    SquaredDifference,
}

/// The compiled form of a group.
#[derive(Clone)]
pub(crate) struct BodyCode {
    pub(crate) inputs: SmallVec<[Input; 3]>,
    pub(crate) constants: Box<[Constant]>,
    /// The instructions that read only constants and single elements. They run once; each writes the value of its
    /// number.
    pub(crate) once: Box<[Instruction]>,
    pub(crate) instructions: Box<[Instruction]>,
    /// The number of registers.
    pub(crate) registers: u16,
    /// Bytes of the largest element in a register.
    pub(crate) widest: usize,
    /// The cost per element, in sixteenths of a nanosecond: the time of a vector instruction for four bytes.
    pub(crate) cost: usize,
    /// The function of two inputs of the result's dtype, if the code computes only this function.
    pub(crate) pair_function: Option<(PairFunction, [u16; 2])>,
    /// The dtypes of the results; there is at least one.
    pub(crate) results: SmallVec<[DType; 2]>,
    pub(crate) shape: Shape,
}

impl BodyCode {
    /// The cost of all elements, in sixteenths of a nanosecond.
    pub(crate) fn total_cost(&self) -> usize {
        self.shape.size().saturating_mul(self.cost)
    }

    /// Returns true if an input can share the memory of a result: all instructions read the input before the result
    /// is written.
    pub(crate) fn is_read_in_time(&self, input: usize, result: usize) -> bool {
        let (input, result) = (Loc::Input(input as u16), Target::Result(result as u16));
        let reads = |instruction: &Instruction| instruction.operands.contains(&input);
        let writes = |instruction: &Instruction| instruction.target == result;
        let Some(writer) = self.instructions.iter().position(writes) else { return false };
        !self.instructions[writer..].iter().any(reads)
    }

    /// Converts the results that no step needs to registers.
    pub(crate) fn keep(&mut self, needed: &[bool]) {
        let mut numbers = Vec::with_capacity(needed.len());
        let mut kept = 0;
        for &is_needed in needed {
            let next = if is_needed { &mut kept } else { &mut self.registers };
            numbers.push((is_needed, *next));
            *next += 1;
        }
        for instruction in &mut self.instructions {
            if let Target::Result(result) = instruction.target {
                let (is_needed, number) = numbers[usize::from(result)];
                instruction.target =
                    if is_needed { Target::Result(number) } else { Target::Register(number) };
            }
            for operand in &mut instruction.operands {
                if let Loc::Result(result) = *operand {
                    let (is_needed, number) = numbers[usize::from(result)];
                    *operand = if is_needed { Loc::Result(number) } else { Loc::Register(number) };
                }
            }
        }
        let mut needed = needed.iter();
        self.results.retain(|_| *needed.next().expect("one for each result"));
    }
}
