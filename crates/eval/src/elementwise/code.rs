//! Code for a group of element-wise ops, run block by block.
//!
//! A group is a straight line of instructions over blocks of a few thousand elements, so that
//! what one instruction writes is still in the cache when the next one reads it, and a chain of
//! ops reads and writes memory once. A single op is a group of one.

use nxla_tensor::{DType, Shape};
use smallvec::SmallVec;

use super::lanes::Kernel;
use crate::layout::Strided;

/// Where an instruction finds an operand.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Loc {
    /// An input of the group.
    Input(u16),
    /// A constant of the group.
    Constant(u16),
    /// What an earlier instruction wrote.
    Register(u16),
    /// The operand that a kernel does not have.
    None,
}

/// Stands for the output of the group as destination of an instruction.
pub(crate) const OUTPUT: u16 = u16::MAX;

/// One kernel call per block.
#[derive(Clone)]
pub(crate) struct Instruction {
    pub(crate) kernel: Kernel,
    pub(crate) operands: [Loc; 3],
    /// A register, or [`OUTPUT`].
    pub(crate) target: u16,
    /// Bytes of an element of the result.
    pub(crate) size: u8,
}

/// How an input is read.
#[derive(Clone, Debug)]
pub(crate) enum Access {
    /// It has the shape of the group.
    Same,
    /// It has one element.
    Single,
    /// It is broadcast along some axes.
    Strided(Box<Strided>),
}

/// An input of a group.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    pub(crate) dtype: DType,
    pub(crate) access: Access,
}

/// The bytes of one constant, in the dtype in which it is used.
#[derive(Clone, Copy)]
pub(crate) struct Constant {
    pub(crate) bytes: [u8; 16],
    pub(crate) size: u8,
}

/// The compiled form of a group.
#[derive(Clone)]
pub(crate) struct Code {
    pub(crate) inputs: SmallVec<[Input; 3]>,
    pub(crate) constants: Box<[Constant]>,
    pub(crate) instructions: Box<[Instruction]>,
    /// How many registers the instructions use.
    pub(crate) registers: u16,
    /// Bytes of the largest element in a register.
    pub(crate) widest: u8,
    /// What an element takes, in steps of vector code on four bytes: a sixteenth of a nanosecond.
    pub(crate) cost: usize,
    pub(crate) dtype: DType,
    pub(crate) shape: Shape,
}
