//! The ops of the graph: one variant per operand shape, static attributes inside.
//!
//! Operands never hide in here: they are on the node (see [`Node`](crate::Node)), in the order
//! that each variant documents. A region (the body of a loop, the branch of a conditional) is a
//! closed [`Program`]: it names only its own parameters, and what it needs from outside is an
//! operand of the node that holds it. Two equal ops with equal operands are the same node, so
//! every attribute compares by value, numbers by their bits.

use std::sync::Arc;

use nxla_tensor::{DType, HostTensor, Names, Scalar, Shape};
use serde::{Deserialize, Serialize};

use super::block::BlockKind;
use super::factorization::Factorization;
use super::hook::HookOp;
use super::notes::Notes;
use super::program::Program;
use super::table::{BinaryOp, UnaryOp};
use super::types::TensorType;
use crate::family_ops;

/// Axes or sizes, one entry each.
pub type Axes = Box<[usize]>;

/// The nine families; the same name is a file in every layer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[expect(missing_docs, reason = "the names say it; the list is in ARCHITECTURE.md")]
pub enum Family {
    Create,
    Elementwise,
    Movement,
    Reduce,
    Window,
    Contract,
    Index,
    Linalg,
    Control,
}

/// An operation with its static attributes.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Op {
    // --- create ---
    /// Counts 0, 1, 2… along one axis, or through the whole tensor in row-major order. No operands.
    Iota(Box<Iota>),
    /// The identity matrix in the last two axes. No operands.
    Eye(Box<TensorType>),

    // --- elementwise ---
    /// `[x]`.
    Unary(UnaryOp),
    /// `[x, y]`, which broadcast and promote.
    Binary(BinaryOp),
    /// `[predicate, on_true, on_false]`, which broadcast; non-zero is true.
    Select,
    /// `[x, min, max]` with scalar bounds.
    Clip,
    /// `[x]`, converted; see [`Scalar::cast`] for the rules.
    AsType(DType),
    /// `[x]`, the same bits read as another dtype of equal width.
    Bitcast(DType),

    // --- movement ---
    /// `[x]`, the same elements in row-major order under another shape.
    Reshape(Box<Reshape>),
    /// `[x]`, without these axes, each of size 1.
    Squeeze(Axes),
    /// `[x]`; axis `i` of the result is axis `permutation[i]` of `x`.
    Transpose(Axes),
    /// `[x]`, reversed along these axes.
    Reverse(Axes),
    /// `[x]`; axis `i` of `x` becomes axis `axes[i]` of the result.
    Broadcast(Box<Broadcast>),
    /// `[x, value]`, with the scalar `value` around and between elements.
    Pad(Box<[Padding]>),
    /// `[x, y, …]`, joined along an existing axis.
    Concatenate(usize),
    /// `[x, y, …]`, joined along a new axis.
    Stack(Box<Stack>),

    // --- reduce ---
    /// `[x]`.
    Reduce(ReduceOp, Box<Reduce>),
    /// `[x]`, the index of the extremum.
    ArgReduce(ArgReduceOp, Box<ArgReduce>),
    /// `[x, initial, captures…]`, folded with `function(element, accumulator, captures…)`.
    ReduceFun(Box<ReduceFun>),

    // --- window ---
    /// `[x]`.
    Window(WindowOp, Box<Window>),
    /// `[x, initial, captures…]`, folded with a function; `initial` is also the padding.
    WindowFun(Box<WindowFun>),
    /// `[x, source, initial]`: each window of `x` sends its element of `source` to the position
    /// of its extremum; what lands on one position adds up, starting from `initial`.
    WindowScatter(ScatterOp, Box<Window>),

    // --- contract ---
    /// `[left, right]`.
    Dot(Box<Dot>),
    /// `[input, kernel]`.
    Conv(Box<Conv>),

    // --- index ---
    /// `[x, dynamic starts…]`.
    Slice(Box<Slice>),
    /// `[x, update, dynamic starts…]`.
    PutSlice(Box<[Start]>),
    /// `[x, indices]`: the last axis of `indices` holds one coordinate for each of these axes.
    Gather(Axes),
    /// `[x, indices, updates]`: updates are added; indices are laid out as for `Gather`.
    IndexedAdd(Axes),
    /// `[x, indices, updates]`: updates replace; indices are laid out as for `Gather`.
    IndexedPut(Axes),
    /// `[x]`, sorted along an axis; NaN counts as the largest.
    Sort(Sort),
    /// `[x]`, the indices that sort it.
    Argsort(Sort, DType),

    // --- linalg ---
    /// `[x]`, the discrete Fourier transform along one axis.
    Fft(Fft),
    /// `[a, b]`: solves `a x = b` (or `x a = b`) for triangular `a`.
    TriangularSolve(TriangularSolve),
    /// `[a]`: the lower-triangular `l` with `l l^H = a`, batched over leading axes.
    Cholesky,
    /// `[a]`: a product of simpler matrices that is `a`, batched over leading axes. Several parts.
    Factorize(Factorization),

    // --- control ---
    /// An input of the program or of a region. No operands.
    Parameter(Box<Parameter>),
    /// One number, possibly repeated over a shape. No operands.
    Constant(Box<Constant>),
    /// A literal tensor. No operands.
    Tensor(Literal),
    /// `[x, …]`, unchanged but annotated; several operands give a tuple.
    Metadata(Box<Metadata>),
    /// `[tuple]`, one of its parts.
    Elem(usize),
    /// `[captures…]`: the first clause whose predicate holds gives the result.
    Cond(Arc<Cond>),
    /// `[state…, captures…]`.
    While(Arc<While>),
    /// `[x, …]`, shown to a host function when it is reached: unchanged, or what the function gives.
    Hook(Box<HookOp>),
    /// `[x, …]`, a named composite with a default body.
    Block(Arc<Block>),
}

/// Attributes of [`Op::Iota`].
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Iota {
    /// The axis to count along; `None` counts through the whole tensor.
    pub axis: Option<usize>,
    /// The type of the result.
    pub ty: TensorType,
}

/// Attributes of [`Op::Reshape`].
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Reshape {
    /// The new shape, of the same size.
    pub shape: Shape,
    /// Names of the new axes.
    pub names: Option<Names>,
}

/// Attributes of [`Op::Broadcast`].
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Broadcast {
    /// The shape of the result.
    pub shape: Shape,
    /// For each axis of the operand, the axis of the result it becomes; strictly increasing.
    pub axes: Axes,
    /// Names of the result's axes.
    pub names: Option<Names>,
}

/// Padding of one axis; negative `low` and `high` trim.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Padding {
    /// Elements before the first.
    pub low: i64,
    /// Elements after the last.
    pub high: i64,
    /// Elements between neighbours.
    pub interior: usize,
}

/// Attributes of [`Op::Stack`].
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Stack {
    /// Position of the new axis in the result.
    pub axis: usize,
    /// Name of the new axis.
    pub name: Option<Arc<str>>,
}

/// The uniform reductions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub enum ReduceOp {
    Sum,
    Product,
    All,
    Any,
    Max,
    Min,
}

/// Attributes of [`Op::Reduce`].
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Reduce {
    /// The reduced axes as given, sorted; `None` means all.
    pub axes: Option<Axes>,
    /// Whether reduced axes stay with size 1.
    pub keep_axes: bool,
}

/// Which extremum an arg-reduction looks for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub enum ArgReduceOp {
    Argmax,
    Argmin,
}

/// Attributes of [`Op::ArgReduce`].
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct ArgReduce {
    /// The reduced axis; `None` searches the flattened tensor.
    pub axis: Option<usize>,
    /// Whether the reduced axis stays with size 1.
    pub keep_axis: bool,
    /// Whether the last of several equal extrema wins, rather than the first.
    pub tie_high: bool,
    /// The integer dtype of the result.
    pub dtype: DType,
}

/// Attributes of [`Op::ReduceFun`].
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct ReduceFun {
    /// Axes and `keep_axes`.
    pub reduce: Reduce,
    /// `(element, accumulator, captures…) -> accumulator`, all but the captures scalar.
    pub function: Arc<Program>,
}

/// The uniform window reductions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub enum WindowOp {
    Sum,
    Product,
    Max,
    Min,
}

/// Attributes of the window ops: one entry per axis in each list.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Window {
    /// Size of the window.
    pub dimensions: Axes,
    /// Elements between the starts of neighbouring windows.
    pub strides: Axes,
    /// Elements added before and after each axis; the neutral element fills them.
    pub padding: Box<[(i64, i64)]>,
    /// Elements between neighbours inside a window, plus one.
    pub dilations: Axes,
}

/// Attributes of [`Op::WindowFun`].
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct WindowFun {
    /// The windows.
    pub window: Window,
    /// `(element, accumulator, captures…) -> accumulator`, all but the captures scalar.
    pub function: Arc<Program>,
}

/// Which element of a window receives the source.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub enum ScatterOp {
    Max,
    Min,
}

/// Attributes of [`Op::Dot`]. The result has the batch axes, then the free axes of the left
/// operand, then those of the right one.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Dot {
    /// Axes of the left operand that are multiplied and summed.
    pub left_contract: Axes,
    /// Batch axes of the left operand.
    pub left_batch: Axes,
    /// Axes of the right operand, matched in order with `left_contract`.
    pub right_contract: Axes,
    /// Batch axes of the right operand, matched in order with `left_batch`.
    pub right_batch: Axes,
}

/// Attributes of [`Op::Conv`]. In canonical layout the input is `[batch][channel][spatial…]`,
/// the kernel `[output channel][input channel][spatial…]` and the result like the input; the
/// permutations say where each canonical axis is found.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Conv {
    /// Window strides, one per spatial axis.
    pub strides: Axes,
    /// Elements added before and after each spatial axis.
    pub padding: Box<[(i64, i64)]>,
    /// Dilation of the input.
    pub input_dilation: Axes,
    /// Dilation of the kernel.
    pub kernel_dilation: Axes,
    /// Groups that split the input channels.
    pub feature_groups: usize,
    /// Groups that split the batch.
    pub batch_groups: usize,
    /// Canonical axis `i` of the input is its axis `input_permutation[i]`.
    pub input_permutation: Axes,
    /// Canonical axis `i` of the kernel is its axis `kernel_permutation[i]`.
    pub kernel_permutation: Axes,
    /// Canonical axis `i` of the result is its axis `output_permutation[i]`.
    pub output_permutation: Axes,
}

/// Where a slice begins along one axis.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Start {
    /// At this index.
    Static(i64),
    /// At the value of the next dynamic-start operand, a scalar integer.
    Dynamic,
}

/// Attributes of [`Op::Slice`]. Starts are clamped so that the slice fits.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Slice {
    /// One start per axis.
    pub starts: Box<[Start]>,
    /// Length of the range per axis, before striding.
    pub lengths: Axes,
    /// Stride per axis.
    pub strides: Axes,
}

/// Attributes of [`Op::Sort`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Sort {
    /// The axis along which elements are ordered.
    pub axis: usize,
    /// Largest first.
    pub descending: bool,
    /// Whether the user asked for equal elements to keep their order. Every engine keeps it
    /// anyway; the flag is part of the text.
    pub stable: bool,
}

/// Attributes of [`Op::Fft`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Fft {
    /// The transform of `length` points divided by `length`, with the opposite sign.
    pub inverse: bool,
    /// Number of points; the input is cut or padded with zeros to it.
    pub length: usize,
    /// The axis that is transformed.
    pub axis: usize,
}

/// What is done to the matrix of a triangular solve first.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Transform {
    None,
    Transpose,
    Conjugate,
}

/// Attributes of [`Op::TriangularSolve`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct TriangularSolve {
    /// Whether `a` is lower triangular; the other half is not read.
    pub lower: bool,
    /// `a x = b` rather than `x a = b`.
    pub left_side: bool,
    /// Applied to `a` first.
    pub transform: Transform,
}

/// Attributes of [`Op::Parameter`].
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Parameter {
    /// Whose parameter it is: 0 is the program itself, other numbers are regions that are still
    /// being traced. A finished program holds scope 0 only.
    pub scope: u32,
    /// Position among the inputs.
    pub index: u32,
    /// Type of the input.
    pub ty: TensorType,
}

/// Attributes of [`Op::Constant`].
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Constant {
    /// The number, in the dtype's variant of [`Scalar`] but with a literal's full precision.
    pub value: Scalar,
    /// The type; a shape other than scalar repeats the number.
    pub ty: TensorType,
}

/// A literal tensor, compared by its bits. Boxed, because every node is as large as the largest op.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Literal(pub Box<HostTensor>);

impl PartialEq for Literal {
    fn eq(&self, other: &Self) -> bool {
        self.0.names() == other.0.names() && self.0.same_bits(&other.0)
    }
}

impl Eq for Literal {}

impl std::hash::Hash for Literal {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        state.write_u64(self.0.content_hash());
    }
}

/// Attributes of [`Op::Metadata`].
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Metadata {
    /// Shown in expression text; without it the node is invisible there.
    pub inspect: Option<Arc<str>>,
    /// No gradient flows through.
    pub stop_grad: bool,
    /// A derivative of the user's, in place of that of the expression.
    pub custom_grad: Option<CustomGrad>,
    /// What else users have written on the values. In bytes it stands beside the nodes, see
    /// [`serialize`](crate::serialize).
    #[serde(skip)]
    pub notes: Notes,
}

/// A user's derivative, see [`Metadata::custom_grad`].
///
/// The operands of the node are the outputs, then the declared inputs, then the captures of the
/// program. The node's results are the outputs alone.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct CustomGrad {
    /// Which way the program goes; the other way is its transpose.
    pub rule: RuleFor,
    /// How many operands are values of the expression.
    pub outputs: usize,
    /// How many operands after the outputs are declared inputs.
    pub inputs: usize,
    /// `(cotangents of the outputs…, captures…) -> cotangents of the declared inputs`, or
    /// `(tangents of the declared inputs…, captures…) -> tangents of the outputs`.
    pub program: Arc<Program>,
}

/// What a user's derivative is given.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum RuleFor {
    /// Cotangents, which it hands back from the outputs to the inputs.
    Cotangents,
    /// Tangents, which it takes on from the inputs to the outputs.
    Tangents,
}

impl CustomGrad {
    /// The positions of the declared inputs among the operands.
    pub fn declared(&self) -> std::ops::Range<usize> {
        self.outputs..self.outputs + self.inputs
    }

    /// How many inputs of the program are cotangents or tangents; the others are captures.
    pub fn changes(&self) -> usize {
        match self.rule {
            RuleFor::Cotangents => self.outputs,
            RuleFor::Tangents => self.inputs,
        }
    }
}

/// Attributes of [`Op::Cond`]; every program takes the node's operands.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Cond {
    /// Tried in order: `(predicate, body)`. A predicate gives one scalar, non-zero is true.
    pub clauses: Vec<(Arc<Program>, Arc<Program>)>,
    /// Taken when no predicate holds.
    pub otherwise: Arc<Program>,
}

/// Attributes of [`Op::While`]; both programs take the node's operands.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct While {
    /// How many operands are state; the rest are captures, the same in every trip.
    pub state: usize,
    /// `(state…, captures…) -> scalar`; the loop goes on while it is non-zero.
    pub condition: Arc<Program>,
    /// `(state…, captures…) -> state`.
    pub body: Arc<Program>,
    /// How its derivative comes to what it has to know of each trip.
    pub replay: Replay,
}

/// How the derivative of a loop, which goes through the trips backwards, comes to what it has to know
/// of each.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Replay {
    /// What is kept, and what is computed again.
    pub method: ReplayMethod,
    /// How many bytes may be kept of all trips together, where `method` leaves it open.
    pub bytes: u64,
}

impl Replay {
    /// How many bytes are kept unless something else is said.
    pub const BYTES: u64 = 1 << 30;
}

impl Default for Replay {
    fn default() -> Self {
        Replay { method: ReplayMethod::Auto, bytes: Self::BYTES }
    }
}

/// What the derivative of a loop keeps of its trips.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub enum ReplayMethod {
    /// The first of these that is possible, as far as it fits: `Store`, `Recompute`, `Log`.
    #[default]
    Auto,
    /// All that the derivative of a trip has to know. Nothing is computed again.
    Store,
    /// The state before each trip. Each trip is computed once more.
    Recompute,
    /// The state before one trip in √n, and in turn those between two of them. Each trip is computed
    /// twice more.
    Sqrt,
    /// A few states, whatever the number of trips n. Each trip is computed up to log n times more.
    Log,
}

impl ReplayMethod {
    /// All of them.
    pub const ALL: [ReplayMethod; 5] = [
        ReplayMethod::Auto,
        ReplayMethod::Store,
        ReplayMethod::Recompute,
        ReplayMethod::Sqrt,
        ReplayMethod::Log,
    ];

    /// What callers say.
    pub const fn name(self) -> &'static str {
        match self {
            ReplayMethod::Auto => "auto",
            ReplayMethod::Store => "store",
            ReplayMethod::Recompute => "recompute",
            ReplayMethod::Sqrt => "sqrt",
            ReplayMethod::Log => "log",
        }
    }
}

/// Attributes of [`Op::Block`].
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Block {
    /// What it computes.
    pub kind: BlockKind,
    /// How many axes the operands have in front of those that the kind speaks of: the block is
    /// computed for each of their entries.
    pub batch_axes: usize,
    /// The default: a program from the operands to the results.
    pub body: Arc<Program>,
}

impl Block {
    /// The name in text.
    pub fn name(&self) -> &str {
        self.kind.name()
    }

    /// The configuration in text.
    pub fn attributes(&self) -> Vec<(Arc<str>, String)> {
        let mut attributes = self.kind.attributes();
        if self.batch_axes > 0 {
            attributes.push(("batch_axes".into(), self.batch_axes.to_string()));
        }
        attributes
    }
}

impl Op {
    /// The name in expression text, which is Nx's.
    pub fn name(&self) -> &'static str {
        match self {
            Op::Iota(_) => "iota",
            Op::Eye(_) => "eye",
            Op::Unary(op) => op.name(),
            Op::Binary(op) => op.name(),
            Op::Select => "select",
            Op::Clip => "clip",
            Op::AsType(_) => "as_type",
            Op::Bitcast(_) => "bitcast",
            Op::Reshape(_) => "reshape",
            Op::Squeeze(_) => "squeeze",
            Op::Transpose(_) => "transpose",
            Op::Reverse(_) => "reverse",
            Op::Broadcast(_) => "broadcast",
            Op::Pad(_) => "pad",
            Op::Concatenate(_) => "concatenate",
            Op::Stack(_) => "stack",
            Op::Reduce(op, _) => op.name(),
            Op::ArgReduce(ArgReduceOp::Argmax, _) => "argmax",
            Op::ArgReduce(ArgReduceOp::Argmin, _) => "argmin",
            Op::ReduceFun(_) => "reduce",
            Op::Window(op, _) => op.name(),
            Op::WindowFun(_) => "window_reduce",
            Op::WindowScatter(ScatterOp::Max, _) => "window_scatter_max",
            Op::WindowScatter(ScatterOp::Min, _) => "window_scatter_min",
            Op::Dot(_) => "dot",
            Op::Conv(_) => "conv",
            Op::Slice(_) => "slice",
            Op::PutSlice(_) => "put_slice",
            Op::Gather(_) => "gather",
            Op::IndexedAdd(_) => "indexed_add",
            Op::IndexedPut(_) => "indexed_put",
            Op::Sort(_) => "sort",
            Op::Argsort(..) => "argsort",
            Op::Fft(Fft { inverse: false, .. }) => "fft",
            Op::Fft(Fft { inverse: true, .. }) => "ifft",
            Op::TriangularSolve(_) => "triangular_solve",
            Op::Cholesky => "cholesky",
            Op::Factorize(factorization) => factorization.name(),
            Op::Parameter(_) => "parameter",
            Op::Constant(_) => "constant",
            Op::Tensor(_) => "tensor",
            Op::Metadata(_) => "metadata",
            Op::Elem(_) => "elem",
            Op::Cond(_) => "cond",
            Op::While(_) => "while",
            Op::Hook(hook) if hook.results.is_some() => "runtime_call",
            Op::Hook(_) => "io_call",
            Op::Block(_) => "block",
        }
    }

    /// The family, which is the file that knows the op in every layer.
    pub fn family(&self) -> Family {
        match self {
            family_ops!(create) => Family::Create,
            family_ops!(elementwise) => Family::Elementwise,
            family_ops!(movement) => Family::Movement,
            family_ops!(reduce) => Family::Reduce,
            family_ops!(window) => Family::Window,
            family_ops!(contract) => Family::Contract,
            family_ops!(index) => Family::Index,
            family_ops!(linalg) => Family::Linalg,
            family_ops!(control) => Family::Control,
        }
    }
}

impl ReduceOp {
    /// Every uniform reduction.
    pub const ALL: &[ReduceOp] = &[
        ReduceOp::Sum,
        ReduceOp::Product,
        ReduceOp::All,
        ReduceOp::Any,
        ReduceOp::Max,
        ReduceOp::Min,
    ];

    /// The name in expression text.
    pub const fn name(self) -> &'static str {
        match self {
            ReduceOp::Sum => "sum",
            ReduceOp::Product => "product",
            ReduceOp::All => "all",
            ReduceOp::Any => "any",
            ReduceOp::Max => "reduce_max",
            ReduceOp::Min => "reduce_min",
        }
    }
}

impl WindowOp {
    /// Every uniform window reduction.
    pub const ALL: &[WindowOp] = &[WindowOp::Sum, WindowOp::Product, WindowOp::Max, WindowOp::Min];

    /// The name in expression text.
    pub const fn name(self) -> &'static str {
        match self {
            WindowOp::Sum => "window_sum",
            WindowOp::Product => "window_product",
            WindowOp::Max => "window_max",
            WindowOp::Min => "window_min",
        }
    }
}

/// A million nodes are an ordinary graph, so the size of an op is a budget.
const _: () = assert!(std::mem::size_of::<Op>() <= 32);
