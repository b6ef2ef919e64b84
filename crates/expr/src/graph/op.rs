//! The ops of a graph: a variant for each operand list, with static attributes.
//!
//! Operands are stored on the node (see [`Node`](crate::Node)) and never in the op, in the order
//! that each variant documents. A region (the body of a loop, the branch of a conditional) is a
//! closed [`Program`]: it refers only to its own parameters, and outer values are operands of the
//! node that contains the region. Equal ops with equal operands are the same node, so every
//! attribute compares by value, and floats compare by their bits.

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

/// The nine families; every layer has a file for each.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[expect(missing_docs, reason = "the names describe the values; the list is in ARCHITECTURE.md")]
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

/// An op with its static attributes.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Op {
    // --- create ---
    /// The integers 0, 1, 2… along one axis, or over the whole tensor in row-major order. No
    /// operands.
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
    /// `[x]`, the same bits interpreted as another dtype of equal width.
    Bitcast(DType),

    // --- movement ---
    /// `[x]`, the same elements in row-major order with another shape.
    Reshape(Box<Reshape>),
    /// `[x]`, without these axes of size 1.
    Squeeze(Axes),
    /// `[x]`; axis `i` of the result is axis `permutation[i]` of `x`.
    Transpose(Axes),
    /// `[x]`, reversed along these axes.
    Reverse(Axes),
    /// `[x]`; axis `i` of `x` becomes axis `axes[i]` of the result.
    Broadcast(Box<Broadcast>),
    /// `[x, value]`, with the scalar `value` around and between elements.
    Pad(Box<[Padding]>),
    /// `[x, y, …]`, concatenated along an existing axis.
    Concatenate(usize),
    /// `[x, y, …]`, stacked along a new axis.
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
    Window(WindowOp, Box<WindowAttributes>),
    /// `[x, initial, captures…]`, folded with a function; `initial` is also the padding.
    WindowFun(Box<WindowFun>),
    /// `[x, source, initial]`: each window of `x` adds its element of `source` at the position of
    /// its extremum; the sums start from `initial`.
    WindowScatter(ScatterOp, Box<WindowAttributes>),

    // --- contract ---
    /// `[left, right]`.
    Dot(Box<Dot>),
    /// `[input, kernel]`.
    Conv(Box<Conv>),

    // --- index ---
    /// `[x, dynamic starts…]`.
    Slice(Box<SliceAttributes>),
    /// `[x, update, dynamic starts…]`.
    PutSlice(Box<[Start]>),
    /// `[x, indices]`: the last axis of `indices` holds one coordinate for each of these axes.
    Gather(Axes),
    /// `[x, indices, updates]`: adds the updates; indices have the layout of `Gather`.
    IndexedAdd(Axes),
    /// `[x, indices, updates]`: writes the updates; indices have the layout of `Gather`.
    IndexedPut(Axes),
    /// `[x]`, sorted along an axis; NaN is larger than all numbers.
    Sort(SortAttributes),
    /// `[x]`, the indices that sort it.
    Argsort(SortAttributes, DType),

    // --- linalg ---
    /// `[x]`, the discrete Fourier transform along one axis.
    Fft(Fft),
    /// `[a, b]`: solves `a x = b` (or `x a = b`) for triangular `a`.
    TriangularSolve(TriangularSolve),
    /// `[a]`: the lower-triangular `l` with `l l^H = a`, batched over leading axes.
    Cholesky,
    /// `[a]`: the factors of `a`, batched over leading axes; several results.
    Factorize(Factorization),

    // --- control ---
    /// An input of the program or of a region. No operands.
    Parameter(Box<Parameter>),
    /// A scalar, possibly repeated over a shape. No operands.
    Constant(Box<Constant>),
    /// A literal tensor. No operands.
    Tensor(Literal),
    /// `[x, …]`, unchanged but annotated; a tuple for several operands.
    Metadata(Box<Metadata>),
    /// `[tuple]`, one of its elements.
    Elem(usize),
    /// `[captures…]`: the results of the body of the first clause whose predicate is true.
    Cond(Arc<Cond>),
    /// `[state…, captures…]`.
    While(Arc<While>),
    /// `[x, …]`, passed to a host function; the results are the operands or the results of the
    /// function.
    Hook(Box<HookOp>),
    /// `[x, …]`, a named block with a default body.
    Block(Arc<Block>),
}

/// Attributes of [`Op::Iota`].
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Iota {
    /// The axis along which the values increase; `None` for the whole tensor.
    pub axis: Option<usize>,
    /// The type of the result.
    pub ty: TensorType,
}

/// Attributes of [`Op::Reshape`].
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Reshape {
    /// The new shape, of equal size.
    pub shape: Shape,
    /// The names of the new axes.
    pub names: Option<Names>,
}

/// Attributes of [`Op::Broadcast`].
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Broadcast {
    /// The shape of the result.
    pub shape: Shape,
    /// For each axis of the operand, the corresponding axis of the result; strictly increasing.
    pub axes: Axes,
    /// The axis names of the result.
    pub names: Option<Names>,
}

/// Padding of one axis; negative `low` and `high` remove elements.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Padding {
    /// The number of elements before the first element.
    pub low: i64,
    /// The number of elements after the last element.
    pub high: i64,
    /// The number of elements between neighbors.
    pub interior: usize,
}

impl Padding {
    /// No padding.
    pub const NONE: Padding = Padding { low: 0, high: 0, interior: 0 };
}

/// Attributes of [`Op::Stack`].
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Stack {
    /// The position of the new axis in the result.
    pub axis: usize,
    /// The name of the new axis.
    pub name: Option<Arc<str>>,
}

/// The reductions that share one set of attributes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names describe the values")]
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
    /// The reduced axes in increasing order; `None` means all axes.
    pub axes: Option<Axes>,
    /// True if reduced axes remain with size 1. Otherwise they are removed.
    pub keep_axes: bool,
}

impl Reduce {
    /// Returns the reduced axes of an operand of this rank.
    pub fn axes_of(&self, rank: usize) -> Axes {
        self.axes.clone().unwrap_or_else(|| (0..rank).collect())
    }

    /// Returns whether an axis is reduced.
    pub fn reduces(&self, axis: usize) -> bool {
        self.axes.as_ref().is_none_or(|axes| axes.contains(&axis))
    }
}

/// The extremum of an arg-reduction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names describe the values")]
pub enum ArgReduceOp {
    Argmax,
    Argmin,
}

impl ArgReduceOp {
    /// Returns the name in expression text.
    pub fn name(self) -> &'static str {
        match self {
            ArgReduceOp::Argmax => "argmax",
            ArgReduceOp::Argmin => "argmin",
        }
    }
}

/// Attributes of [`Op::ArgReduce`].
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct ArgReduce {
    /// The reduced axis; `None` searches the flattened tensor.
    pub axis: Option<usize>,
    /// True if the reduced axis remains with size 1. Otherwise it is removed.
    pub keep_axis: bool,
    /// True if the result is the last of several equal extrema. Otherwise it is the first.
    pub tie_high: bool,
    /// The integer dtype of the result.
    pub dtype: DType,
}

/// Attributes of [`Op::ReduceFun`].
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct ReduceFun {
    /// The axes and `keep_axes`.
    pub reduce: Reduce,
    /// `(element, accumulator, captures…) -> accumulator`; all but the captures are scalars.
    pub function: Arc<Program>,
}

/// The window reductions that share one set of attributes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names describe the values")]
pub enum WindowOp {
    Sum,
    Product,
    Max,
    Min,
}

/// Attributes of the window ops: one entry per axis in each list.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct WindowAttributes {
    /// The size of the window.
    pub dimensions: Axes,
    /// The distance between the starts of neighboring windows.
    pub strides: Axes,
    /// The padding before and after each axis, filled with the neutral element.
    pub padding: Box<[(i64, i64)]>,
    /// The distance between neighboring elements inside a window.
    pub dilations: Axes,
}

/// Attributes of [`Op::WindowFun`].
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct WindowFun {
    /// The windows.
    pub window: WindowAttributes,
    /// `(element, accumulator, captures…) -> accumulator`; all but the captures are scalars.
    pub function: Arc<Program>,
}

/// The extremum whose position in a window receives the source element.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names describe the values")]
pub enum ScatterOp {
    Max,
    Min,
}

/// Attributes of [`Op::Dot`]. The axes of the result are the batch axes, the free axes of the left
/// operand and the free axes of the right operand.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Dot {
    /// The axes of the left operand that are multiplied and summed.
    pub left_contract: Axes,
    /// The batch axes of the left operand.
    pub left_batch: Axes,
    /// The contracted axes of the right operand, in the order of `left_contract`.
    pub right_contract: Axes,
    /// The batch axes of the right operand, in the order of `left_batch`.
    pub right_batch: Axes,
}

/// Attributes of [`Op::Conv`]. In canonical layout, the input is `[batch][channel][spatial…]`, the
/// kernel `[output channel][input channel][spatial…]` and the result `[batch][output
/// channel][spatial…]`. The permutations map canonical axes to actual axes.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Conv {
    /// The window strides, one per spatial axis.
    pub strides: Axes,
    /// The padding before and after each spatial axis.
    pub padding: Box<[(i64, i64)]>,
    /// The dilation of the input.
    pub input_dilation: Axes,
    /// The dilation of the kernel.
    pub kernel_dilation: Axes,
    /// The number of groups of input channels.
    pub feature_groups: usize,
    /// The number of groups of batch entries.
    pub batch_groups: usize,
    /// Canonical axis `i` of the input is its axis `input_permutation[i]`.
    pub input_permutation: Axes,
    /// Canonical axis `i` of the kernel is its axis `kernel_permutation[i]`.
    pub kernel_permutation: Axes,
    /// Canonical axis `i` of the result is its axis `output_permutation[i]`.
    pub output_permutation: Axes,
}

/// The start of a slice along one axis.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Start {
    /// A constant index.
    Static(i64),
    /// The value of the next dynamic-start operand, an integer scalar.
    Dynamic,
}

/// Attributes of [`Op::Slice`]. Starts are clamped so that the slice fits.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct SliceAttributes {
    /// The start of each axis.
    pub starts: Box<[Start]>,
    /// The length of the range of each axis, before striding.
    pub lengths: Axes,
    /// The stride of each axis.
    pub strides: Axes,
}

/// Attributes of [`Op::Sort`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct SortAttributes {
    /// The axis to sort.
    pub axis: usize,
    /// True if the largest element comes first. Otherwise the smallest element comes first.
    pub descending: bool,
    /// True if the user requested a stable sort. Every backend sorts stably; the flag only appears
    /// in printed expressions.
    pub stable: bool,
}

/// Attributes of [`Op::Fft`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Fft {
    /// True for the inverse transform: the opposite sign, and division by `length`.
    pub inverse: bool,
    /// The number of points; the input is cut or padded with zeros to this length.
    pub length: usize,
    /// The transformed axis.
    pub axis: usize,
}

/// The transformation of the matrix of a triangular solve.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names describe the values")]
pub enum Transform {
    None,
    Transpose,
    Conjugate,
}

/// Attributes of [`Op::TriangularSolve`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct TriangularSolve {
    /// True if `a` is lower triangular, false if upper. The other triangle is not read.
    pub lower: bool,
    /// True to solve `a x = b`, false to solve `x a = b`.
    pub left_side: bool,
    /// The transformation of `a`.
    pub transform: Transform,
}

/// Attributes of [`Op::Parameter`].
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Parameter {
    /// The owner of the parameter: 0 for the program, other numbers for regions that are being
    /// traced. A finished program has only scope 0.
    pub scope: u32,
    /// The position among the inputs.
    pub index: u32,
    /// The type of the input.
    pub ty: TensorType,
}

/// Attributes of [`Op::Constant`].
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Constant {
    /// The value, rounded to the dtype by [`Graph::make`](crate::Graph::make).
    pub value: Scalar,
    /// The type; a scalar is repeated over the shape.
    pub ty: TensorType,
}

impl Constant {
    /// Returns the value to print: the shortest number that rounds to the constant.
    pub fn literal(&self) -> Scalar {
        self.value.shortest_in(self.ty.dtype)
    }
}

/// A constant tensor, compared by its bits. Boxed, because every node has the size of the largest
/// op.
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
    /// The annotation in printed expressions. If it is `None`, the node is not printed.
    pub inspect: Option<Arc<str>>,
    /// True if no gradient flows through the node.
    pub stop_grad: bool,
    /// A custom derivative rule.
    pub custom_grad: Option<CustomGrad>,
    /// Notes of the user. They are serialized separately from the nodes, see
    /// [`serialize`](crate::serialize).
    #[serde(skip)]
    pub notes: Notes,
}

impl Metadata {
    /// Returns the operands that the node returns; the others belong to a custom derivative rule.
    pub fn values_of<'a, T>(&self, operands: &'a [T]) -> &'a [T] {
        self.custom_grad.as_ref().map_or(operands, |custom| &operands[..custom.outputs])
    }
}

/// A custom derivative rule, see [`Metadata::custom_grad`].
///
/// The operands of the node are the outputs, the declared inputs, and the captures of the program.
/// The results of the node are the outputs.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct CustomGrad {
    /// The mode for which the program is written; the other mode uses its transpose.
    pub rule: RuleFor,
    /// The number of outputs.
    pub outputs: usize,
    /// The number of declared inputs, which follow the outputs in the operands.
    pub inputs: usize,
    /// `(cotangents of the outputs…, captures…) -> cotangents of the declared inputs`, or
    /// `(tangents of the declared inputs…, captures…) -> tangents of the outputs`.
    pub program: Arc<Program>,
}

/// The mode for which a custom rule is written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum RuleFor {
    /// Reverse mode: the rule maps cotangents of the outputs to cotangents of the inputs.
    Cotangents,
    /// Forward mode: the rule maps tangents of the inputs to tangents of the outputs.
    Tangents,
}

impl RuleFor {
    /// Returns the name of the function that registers a rule.
    pub fn function_name(self) -> &'static str {
        match self {
            RuleFor::Cotangents => "custom_grad",
            RuleFor::Tangents => "custom_jvp",
        }
    }
}

impl CustomGrad {
    /// Returns the positions of the declared inputs among the operands.
    pub fn declared_inputs(&self) -> std::ops::Range<usize> {
        self.outputs..self.outputs + self.inputs
    }

    /// Returns the number of inputs of the program that are cotangents or tangents.
    pub fn changes(&self) -> usize {
        match self.rule {
            RuleFor::Cotangents => self.outputs,
            RuleFor::Tangents => self.inputs,
        }
    }
}

/// Attributes of [`Op::Cond`]; every program receives the operands of the node.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Cond {
    /// The clauses `(predicate, body)` in order. A predicate returns a scalar, and nonzero is true.
    pub clauses: Vec<(Arc<Program>, Arc<Program>)>,
    /// The body that runs if no predicate is true.
    pub otherwise: Arc<Program>,
}

impl Cond {
    /// Returns the bodies in order; the last one runs if no predicate is true.
    pub fn bodies(&self) -> impl Iterator<Item = &Arc<Program>> {
        self.clauses.iter().map(|(_, body)| body).chain([&self.otherwise])
    }

    /// Returns the programs in order: the predicate and the body of each clause, and the last body.
    pub(crate) fn programs(&self) -> impl Iterator<Item = &Arc<Program>> {
        let clauses = self.clauses.iter().flat_map(|(predicate, body)| [predicate, body]);
        clauses.chain([&self.otherwise])
    }
}

/// Attributes of [`Op::While`]; both programs receive the operands of the node.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct While {
    /// The number of operands that are state; the others are captures, which do not change.
    pub state: usize,
    /// `(state…, captures…) -> scalar`; the loop continues while the scalar is nonzero.
    pub condition: Arc<Program>,
    /// `(state…, captures…) -> state`.
    pub body: Arc<Program>,
    /// The replay method and limits for the derivative.
    pub replay: Replay,
}

/// The rule by which the derivative of a loop stores or recomputes states.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Replay {
    /// The method.
    pub method: ReplayMethod,
    /// The limit in bytes for stored values of all iterations, if `method` is `Auto`.
    pub bytes: u64,
}

impl Replay {
    /// The default limit in bytes.
    pub const BYTES: u64 = 1 << 30;
}

impl Default for Replay {
    fn default() -> Self {
        Replay { method: ReplayMethod::Auto, bytes: Self::BYTES }
    }
}

/// The values that the derivative of a loop stores.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub enum ReplayMethod {
    /// The first of `Store`, `Recompute` and `Log` that is possible and within the limit.
    #[default]
    Auto,
    /// All residuals of each iteration; nothing is recomputed.
    Store,
    /// The states before each iteration; each iteration is recomputed once.
    Recompute,
    /// The states before one of √n iterations, and then those between two of them. Each iteration
    /// is recomputed twice.
    Sqrt,
    /// A fixed number of states for any trip count n. Each iteration is recomputed up to log n
    /// times.
    Log,
}

impl ReplayMethod {
    /// All methods.
    pub const ALL: [ReplayMethod; 5] = [
        ReplayMethod::Auto,
        ReplayMethod::Store,
        ReplayMethod::Recompute,
        ReplayMethod::Sqrt,
        ReplayMethod::Log,
    ];

    /// Returns the public name.
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
    /// The function that the block computes.
    pub kind: BlockKind,
    /// The number of leading batch axes of the operands: the block computes its function for each
    /// entry.
    pub batch_axes: usize,
    /// The default: a program from the operands to the results.
    pub body: Arc<Program>,
}

impl Block {
    /// Returns the name in expression text.
    pub fn name(&self) -> &str {
        self.kind.name()
    }

    /// Returns the attributes in expression text.
    pub fn attributes(&self) -> Vec<(Arc<str>, String)> {
        let mut attributes = self.kind.attributes();
        if self.batch_axes > 0 {
            attributes.push(("batch_axes".into(), self.batch_axes.to_string()));
        }
        attributes
    }
}

impl Op {
    /// Returns the name in expression text.
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
            Op::ArgReduce(op, _) => op.name(),
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

    /// Returns the family, which names the file of the op in every layer.
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
    /// All reductions.
    pub const ALL: &[ReduceOp] = &[
        ReduceOp::Sum,
        ReduceOp::Product,
        ReduceOp::All,
        ReduceOp::Any,
        ReduceOp::Max,
        ReduceOp::Min,
    ];

    /// Returns the name in expression text.
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
    /// All window reductions.
    pub const ALL: &[WindowOp] = &[WindowOp::Sum, WindowOp::Product, WindowOp::Max, WindowOp::Min];

    /// Returns the name in expression text.
    pub const fn name(self) -> &'static str {
        match self {
            WindowOp::Sum => "window_sum",
            WindowOp::Product => "window_product",
            WindowOp::Max => "window_max",
            WindowOp::Min => "window_min",
        }
    }
}

/// Graphs with millions of nodes are ordinary, so the size of an op is limited.
const _: () = assert!(std::mem::size_of::<Op>() <= 32);
