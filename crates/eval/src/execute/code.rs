//! The instruction set of the executor.
//!
//! A program, with its loops and branches, is a list of [instructions](Inst). Small values have
//! fixed offsets in the *arena*, one block of memory. Instructions on them take nanoseconds,
//! because they neither allocate nor count references. Other values are *boxed*: they are tensors
//! in slots, which move between iterations of a loop without a copy. A step without an instruction
//! is a [`Call`]: its operands and results are boxed, and results that belong in the arena are
//! copied there.

use std::sync::Arc;

use nxla_expr::{ExprId, Program, TensorType};
use nxla_tensor::{DType, HostTensor, Scalar};

use super::nest::TiledNest;
use crate::context::Arg;
use crate::kernels::contract::Product;
use crate::kernels::elementwise::{BodyCode, Kernel, NARROW_LANES};
use crate::kernels::reduce::InMemory;
use crate::kernels::strided::Strided;

/// An executable program.
pub(crate) struct Bytecode {
    pub(crate) insts: Box<[Inst]>,
    /// Bytes of the arena.
    pub(crate) arena: usize,
    /// The number of slots for boxed values.
    pub(crate) slots: usize,
    /// The slot of each operand, or `None` if the code does not read it.
    pub(crate) inputs: Box<[Option<usize>]>,
    pub(crate) results: Box<[(TensorType, Bytes)]>,
    /// The programs of the steps, for errors and for ops that are dispatched by their node.
    pub(crate) programs: Box<[Arc<Program>]>,
    /// True if the results of each step are checked to be finite.
    pub(crate) checks: bool,
}

/// A part of the arena.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Span {
    pub(crate) at: u32,
    pub(crate) len: u32,
}

/// The bytes of a value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Bytes {
    /// A part of the arena.
    Arena(Span),
    /// The tensor in a slot.
    Slot(usize),
}

/// An operand of a kernel in the arena.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Source {
    pub(crate) at: u32,
    /// True if the operand is one repeated value.
    pub(crate) splat: bool,
}

impl Source {
    /// The placeholder for an operand that a kernel does not have.
    pub(crate) const NONE: Self = Self { at: u32::MAX, splat: true };
}

/// The node that an instruction computes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    /// The index of its program in [`Bytecode::programs`].
    pub(crate) program: u32,
    pub(crate) id: ExprId,
}

/// An instruction.
pub(crate) enum Inst {
    /// Computes a block of elements.
    Kernel { kernel: Kernel, operands: [Source; 3], to: Span },
    /// Copies bytes within the arena.
    Copy { from: Span, to: Span },
    /// Writes elements to the arena.
    Elements(Elements),
    /// Writes a slice of a value.
    SliceUpdate(Box<SliceUpdate>),
    /// Creates, moves or drops a boxed value.
    Handle(Handle),
    /// Runs a step on boxed values.
    Call(Box<Call>),
    /// Ends the run if it is cancelled.
    Check,
    /// Jumps by a number of instructions.
    Jump(i32),
    /// Jumps if a predicate is false.
    JumpUnless { predicate: Span, dtype: DType, by: i32 },
}

/// Instructions that write elements to the arena.
pub(crate) enum Elements {
    /// Repeats an element.
    Repeat { from: Bytes, size: u8, to: Span },
    /// Repeats a constant.
    Fill { value: Box<[u8]>, to: Span },
    /// Repeats the first element behind the elements of a span, see [`padded_bytes`].
    Pad { of: Span, size: u8 },
    /// Copies bytes of a boxed value, from `first` on.
    Unbox { slot: usize, first: u32, to: Span },
    /// Copies a literal.
    Literal { from: HostTensor, to: Span },
    /// Reads elements of `size` bytes by an access rule.
    Read { rule: Box<Strided>, size: u8, from: Bytes, to: Span },
    /// Writes elements of `size` bytes by an access rule.
    Write { rule: Box<Strided>, size: u8, from: Span, to: Span },
    /// Reads a slice.
    Slice(Box<Slice>),
    /// Reduces a tensor.
    Reduce { reduction: Box<InMemory>, from: Span, to: Span },
    /// Multiplies matrices.
    Product { product: Box<Product>, operands: [Span; 2], to: Span },
}

/// Instructions on boxed values.
pub(crate) enum Handle {
    /// Boxes a value of the arena.
    Box {
        from: Span,
        ty: Box<TensorType>,
        to: usize,
    },
    /// Boxes a tensor of one repeated value.
    Full {
        value: Scalar,
        ty: Box<TensorType>,
        to: usize,
        origin: Origin,
    },
    Move {
        from: usize,
        to: usize,
    },
    /// Creates another handle.
    Share {
        from: usize,
        to: usize,
    },
    Drop(usize),
}

impl From<Elements> for Inst {
    fn from(elements: Elements) -> Self {
        Inst::Elements(elements)
    }
}

impl From<Handle> for Inst {
    fn from(handle: Handle) -> Self {
        Inst::Handle(handle)
    }
}

/// A slice of a value at starts that may be dynamic.
pub(crate) struct Slice {
    pub(crate) starts: Starts,
    /// The access rule; `None` if the elements are contiguous.
    pub(crate) rule: Option<Strided>,
    pub(crate) size: u8,
    pub(crate) from: Bytes,
    pub(crate) to: Span,
}

/// An update of a slice at starts that may be dynamic.
pub(crate) struct SliceUpdate {
    pub(crate) starts: Starts,
    /// The access rule; `None` if the elements are contiguous.
    pub(crate) rule: Option<Strided>,
    pub(crate) size: u8,
    pub(crate) update: Span,
    pub(crate) into: Bytes,
    pub(crate) origin: Origin,
}

/// The offset of a slice.
pub(crate) struct Starts {
    /// The offset of the static starts.
    pub(crate) first: usize,
    pub(crate) dynamic: Box<[Start]>,
}

/// A dynamic start along an axis.
pub(crate) struct Start {
    pub(crate) number: Span,
    pub(crate) dtype: DType,
    /// The last start at which the slice fits.
    pub(crate) last: i64,
    /// The stride of the axis.
    pub(crate) step: usize,
}

/// A step on boxed values.
pub(crate) struct Call {
    pub(crate) origin: Origin,
    pub(crate) work: CallWork,
    /// Values of the arena that are boxed before the step.
    pub(crate) boxed_args: Box<[(Span, TensorType, usize)]>,
    pub(crate) args: Box<[Arg]>,
    /// The slot of each result, or `None` if no step reads it.
    pub(crate) targets: Box<[Option<usize>]>,
    /// Results that are copied to the arena after the step.
    pub(crate) unboxed_results: Box<[(usize, Span)]>,
    /// True if the step may run so long that the caller cancels it.
    pub(crate) is_long: bool,
}

/// The computation of a call.
pub(crate) enum CallWork {
    Body(Box<BodyCode>),
    Nest(Box<TiledNest>),
    /// The op of the node.
    Op,
    /// A fold with the function of a user.
    Fold(Arc<Bytecode>),
    /// Control flow whose instructions are in separate code.
    Outlined(Arc<Bytecode>),
}

/// The bytes of `elements` elements of `size` bytes, rounded up to whole vectors of a kernel, which
/// are faster than a part of a vector. Copies of the first element follow the elements, so that the
/// additional results are as cheap as the others.
pub(crate) fn padded_bytes(elements: usize, size: usize) -> usize {
    elements.next_multiple_of(NARROW_LANES) * size
}

impl Span {
    pub(crate) fn new(at: usize, len: usize) -> Self {
        let number = |x: usize| u32::try_from(x).expect("the arena is small");
        Self { at: number(at), len: number(len) }
    }

    /// The span with the padding after its elements of `size` bytes.
    pub(crate) fn with_padding(self, size: usize) -> Self {
        Self::new(self.at as usize, padded_bytes(self.len as usize / size, size))
    }

    pub(crate) fn range(self) -> std::ops::Range<usize> {
        self.at as usize..self.at as usize + self.len as usize
    }
}
