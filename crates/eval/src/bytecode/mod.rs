//! Loops and programs over small tensors, as code over one piece of memory.
//!
//! A step of a [`Plan`] makes a tensor: it asks for memory, counts handles, and looks up what its code
//! reads. That takes a third of a microsecond, which is nothing for large tensors and all there is
//! for numbers. So a loop, or a program that makes nothing else, is written down with the loops and
//! branches inside of it as [instructions](Inst) whose operands are places in one piece of memory, known beforehand. Each
//! calls the kernel that the step would have called, so that the bits are the same.
//!
//! * Tensors of up to [some bytes](build::NEAR) are *near*: they have a place in that memory. Others
//!   are *far*: they are tensors, in slots, and go from trip to trip without a copy, so that a
//!   scan writes into what it collects. So does what is small but put into.
//! * A step that has no instruction is [called](Call) as in a plan: what it reads of near memory is
//!   made a tensor before, and what it gives is copied back.
//! * What depends on nothing that a loop changes is computed once, before the loop. Only kernels
//!   are, which cannot fail.

mod build;
mod code;
mod control;
mod memory;
mod moves;
mod region;
mod run;

use std::sync::{Arc, OnceLock};

use nxla_expr::{ExprId, Graph, TensorType};
use nxla_tensor::{DType, HostTensor, Scalar};

use crate::contract::Product;
use crate::elementwise::{Kernel, SHORT};
use crate::layout::Strided;
use crate::plan::Plan;
use crate::reduce::InMemory;
pub(crate) use build::{NEAR, is_at_most};

/// A loop or a program, which is written as code when it first runs. Loops inside of others are parts of
/// their code, and have one of their own only if there was no room there.
pub(crate) struct Written {
    what: What,
    code: OnceLock<Bytecode>,
}

/// What is written.
enum What {
    Loop(Loop),
    Program(Arc<Plan>),
}

/// A loop with the plans of its regions.
struct Loop {
    /// How many operands are state.
    state: usize,
    condition: Arc<Plan>,
    body: Arc<Plan>,
}

impl Written {
    /// A loop of which so many operands are state.
    pub(crate) fn loop_of(state: usize, condition: Arc<Plan>, body: Arc<Plan>) -> Self {
        let what = What::Loop(Loop { state, condition, body });
        Self { what, code: OnceLock::new() }
    }

    /// A program, of which the operands are those inputs that are needed.
    pub(crate) fn program_of(plan: Arc<Plan>) -> Self {
        Self { what: What::Program(plan), code: OnceLock::new() }
    }

    /// The program, if it is one.
    pub(crate) fn program(&self) -> Option<&Plan> {
        match &self.what {
            What::Loop(_) => None,
            What::Program(plan) => Some(plan),
        }
    }

    /// About how many steps a trip or a run takes.
    pub(crate) fn work(&self) -> f64 {
        match &self.what {
            What::Loop(it) => it.condition.work + it.body.work,
            What::Program(plan) => plan.work,
        }
    }

    /// The code, of a loop that is this node.
    pub(crate) fn code(&self, graph: &Graph, id: ExprId) -> &Bytecode {
        if let Some(code) = self.code.get() {
            return code;
        }
        let code = match &self.what {
            What::Loop(it) => {
                let operands = graph.operands(id).iter();
                let types = operands.map(|&operand| unnamed(graph.tensor_type(operand)));
                build::of_loop(it, &types.collect::<Vec<_>>())
            }
            What::Program(plan) => build::of_program(plan),
        };
        // Whoever is first decides. Nobody waits for another thread, which a fork may have left behind.
        let _ = self.code.set(code);
        self.code.get().expect("it has been set")
    }
}

/// A type without the names of its axes.
pub(crate) fn unnamed(ty: &TensorType) -> TensorType {
    TensorType::new(ty.dtype, ty.shape.clone())
}

/// A loop or a program as instructions.
pub(crate) struct Bytecode {
    insts: Box<[Inst]>,
    /// Bytes of the memory.
    bytes: usize,
    /// Slots for far tensors, of which the first hold the operands.
    slots: usize,
    /// The plans whose steps are called, each with its first slot.
    plans: Box<[(Arc<Plan>, usize)]>,
    results: Box<[(TensorType, Bytes)]>,
}

/// A part of the memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Span {
    at: u32,
    len: u32,
}

/// The bytes of a tensor.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Bytes {
    Near(Span),
    /// Those of the tensor in a slot.
    Far(usize),
}

/// Where a kernel finds an operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Source {
    at: u32,
    /// Whether it is one value, repeated.
    splat: bool,
}

impl Source {
    /// The operand that a kernel does not have.
    const NONE: Self = Self { at: u32::MAX, splat: true };
}

/// The step of a plan that an instruction stands for.
#[derive(Clone, Copy, Debug)]
struct Origin {
    plan: u32,
    position: u32,
}

/// One thing to do.
enum Inst {
    /// Computes a block of elements.
    Kernel {
        kernel: Kernel,
        operands: [Source; 3],
        to: Span,
    },
    /// Copies what is near to another place of its size.
    Copy {
        from: Span,
        to: Span,
    },
    Elements(Elements),
    Put(Box<Put>),
    Handle(Handle),
    Call(Box<Call>),
    /// Asks whether to stop.
    Check,
    /// Goes so many instructions on, or back.
    Jump(i32),
    JumpUnless {
        predicate: Span,
        dtype: DType,
        by: i32,
    },
}

/// What writes elements to a place.
enum Elements {
    /// Copies of an element.
    Repeat {
        from: Bytes,
        size: u8,
        to: Span,
    },
    /// The same of a known one.
    Fill {
        value: Box<[u8]>,
        to: Span,
    },
    /// Copies of the first behind those of a place, see [`padded`].
    Spread {
        of: Span,
        size: u8,
    },
    /// Bytes of a far tensor, from `first` on.
    Load {
        slot: usize,
        first: u32,
        to: Span,
    },
    /// Those of a literal.
    Literal {
        from: HostTensor,
        to: Span,
    },
    /// Those of `size` bytes that a rule reads.
    Read {
        rule: Box<Strided>,
        size: u8,
        from: Bytes,
        to: Span,
    },
    /// Those of `size` bytes, to where a rule says.
    Write {
        rule: Box<Strided>,
        size: u8,
        from: Span,
        to: Span,
    },
    Slice(Box<Slice>),
    Reduce {
        reduction: Box<InMemory>,
        from: Span,
        to: Span,
    },
    Product {
        product: Box<Product>,
        operands: [Span; 2],
        to: Span,
    },
}

/// What is done with far tensors.
enum Handle {
    /// Makes one of a near one.
    Store {
        from: Span,
        ty: Box<TensorType>,
        to: usize,
    },
    /// Makes one of one value.
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
    /// Makes another handle.
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

/// Reads elements by a rule, from where numbers say.
struct Slice {
    starts: Starts,
    /// None if they lie side by side.
    rule: Option<Strided>,
    size: u8,
    from: Bytes,
    to: Span,
}

/// Writes elements to where numbers say.
struct Put {
    starts: Starts,
    /// None if they lie side by side.
    rule: Option<Strided>,
    size: u8,
    update: Span,
    into: Bytes,
    origin: Origin,
}

/// Where a slice begins.
struct Starts {
    /// The element at which it begins, but for the axes below.
    first: usize,
    dynamic: Box<[Start]>,
}

/// A number that says where a slice begins along an axis.
struct Start {
    number: Span,
    dtype: DType,
    /// The last start at which it fits.
    last: i64,
    /// Elements from one start to the next.
    step: usize,
}

/// A step that is done as in a plan.
struct Call {
    origin: Origin,
    /// What its slots hold before it.
    loads: Box<[(Load, usize)]>,
    /// Slots that nobody reads after it.
    dead: Box<[usize]>,
    /// What of its results becomes near.
    stores: Box<[(usize, Span)]>,
}

/// What a slot is to hold.
enum Load {
    Near(Span, TensorType),
    Share(usize),
    Move(usize),
}

/// Bytes of so many elements of `size` bytes in whole loops of a kernel, which takes longer for a part of one.
/// Behind the elements are copies of the first: what kernels compute of them is at hand anyway, and
/// takes no longer than the rest.
fn padded(elements: usize, size: usize) -> usize {
    elements.next_multiple_of(SHORT) * size
}

impl Span {
    fn new(at: usize, len: usize) -> Self {
        let number = |x: usize| u32::try_from(x).expect("the memory is small");
        Self { at: number(at), len: number(len) }
    }

    /// The place with what is behind its elements of `size` bytes.
    fn padded(self, size: usize) -> Self {
        Self::new(self.at as usize, padded(self.len as usize / size, size))
    }

    fn range(self) -> std::ops::Range<usize> {
        self.at as usize..self.at as usize + self.len as usize
    }
}
