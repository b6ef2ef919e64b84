//! Reductions with the element-wise operations before them.
//!
//! `sum(x * x)` or a variance done by a kernel would make XLA write what is to be summed into memory,
//! only for the kernel to read it once. So the kernel takes such operations along: cheap ones, which
//! XLA may compute a second time for others, and functions like `exp` that nobody else needs.

use nxla_expr::{
    BinaryClass, BinaryOp, ExprId, Graph, Node, Op, Program, Reduce, TensorType, UnaryOp,
};
use nxla_tensor::{DType, Shape};
use rustc_hash::FxHashMap;

use crate::context::{Cx, is_in_memory};
use crate::reduce;
use crate::region::Frame;
use crate::writer::Values;

/// Operations that a reduction takes along, and tensors of the operand's size that it then reads.
const MOST_TAKEN: usize = 8;
pub(crate) const MOST_READ: usize = 2;

/// Elements of a row that is reduced by itself, rows that are reduced to one, and elements of that.
const LEAST_ROW: usize = 512;
const LEAST_ROWS: usize = 256;
const LONGEST_ROW: usize = 4096;

/// Elements that XLA had better not write.
const LARGE: usize = 1 << 20;

/// The program of a reduction with what it takes along, and what that is called with. Its result has
/// lost the axes that were reduced, so that those who keep them and those who do not make one call.
pub(crate) fn reduction(cx: &mut Cx<'_>, frame: &Frame<'_>, node: &Node<'_>) -> (Program, Values) {
    let Op::Reduce(op, attributes) = node.op else {
        unreachable!("{} is no reduction", node.op.name())
    };
    let reduce = Op::Reduce(*op, Box::new(Reduce { keep_axes: false, ..(**attributes).clone() }));
    let operand = node.operands[0];
    let mut joined = Joined::of(cx, frame, &taken(frame, operand, attributes));
    let made = joined.make(&reduce, &[operand]);
    joined.finish(&[made])
}

/// The program of a function of elements with what it takes along, and what that is called with.
pub(crate) fn function(cx: &mut Cx<'_>, frame: &Frame<'_>, node: &Node<'_>) -> (Program, Values) {
    let mut joined = Joined::of(cx, frame, &taken_by_function(frame, node));
    let made = joined.make(node.op, node.operands);
    joined.finish(&[made])
}

/// The operations that are taken along to compute the operands of a function, in their order: none if that
/// would read more than it spares.
fn taken_by_function(frame: &Frame<'_>, node: &Node<'_>) -> Vec<ExprId> {
    let graph = frame.graph;
    let goes = |id: ExprId| {
        let is_slow = is_slow(graph, graph.op(id), graph.operands(id));
        goes_along(frame, id) || is_slow && frame.is_used_once(id) && !frame.is_kept(id)
    };
    let (taken, read) = taken_and_read(graph, node.operands, goes);
    if read.len() > MOST_READ { Vec::new() } else { taken }
}

/// The operations among those before some tensors that go along, in their order, and the tensors of the size
/// of the largest that are read then.
fn taken_and_read(
    graph: &Graph,
    tensors: &[ExprId],
    goes: impl Fn(ExprId) -> bool,
) -> (Vec<ExprId>, Vec<ExprId>) {
    let size = |id: ExprId| graph.shape(id).size();
    let largest = tensors.iter().map(|&id| size(id)).max();
    let (mut taken, mut read, mut pending) = (Vec::new(), Vec::new(), tensors.to_vec());
    while let Some(id) = pending.pop() {
        if taken.contains(&id) || read.contains(&id) {
            continue;
        }
        if goes(id) && taken.len() < MOST_TAKEN {
            taken.push(id);
            pending.extend(graph.operands(id));
        } else if Some(size(id)) == largest {
            read.push(id);
        }
    }
    // Operands come before those who use them.
    taken.sort_unstable();
    (taken, read)
}

/// Whether XLA's code for the processor takes twice as long for a function as the evaluator or more: it calls
/// the library for each element, or goes through more digits than there are.
pub(crate) fn is_slow(graph: &Graph, op: &Op, operands: &[ExprId]) -> bool {
    let is_number = |id: &&ExprId| matches!(graph.op(**id), Op::Constant(_));
    let mut dtypes = operands.iter().filter(|id| !is_number(id)).map(|&id| graph.dtype(id));
    let is_double = match dtypes.next() {
        Some(DType::F32) if dtypes.all(|dtype| dtype == DType::F32) => false,
        Some(DType::F64) if dtypes.all(|dtype| dtype == DType::F64) => true,
        _ => return false,
    };
    match op {
        Op::Unary(
            UnaryOp::Sin
            | UnaryOp::Cos
            | UnaryOp::Tan
            | UnaryOp::Asin
            | UnaryOp::Acos
            | UnaryOp::Atan
            | UnaryOp::Sinh
            | UnaryOp::Cosh
            | UnaryOp::Asinh
            | UnaryOp::Acosh
            | UnaryOp::Atanh
            | UnaryOp::Cbrt
            | UnaryOp::Rsqrt,
        ) => true,
        Op::Unary(
            UnaryOp::Log | UnaryOp::Log1p | UnaryOp::Expm1 | UnaryOp::Erf | UnaryOp::ErfInv,
        ) => is_double,
        Op::Binary(BinaryOp::Pow) => !is_short_power(graph, operands[1]),
        Op::Binary(BinaryOp::Atan2 | BinaryOp::Remainder) => true,
        _ => false,
    }
}

/// Whether XLA multiplies, divides or takes a root in place of a power.
fn is_short_power(graph: &Graph, exponent: ExprId) -> bool {
    let Op::Constant(constant) = graph.op(exponent) else { return false };
    [-1.0, 0.0, 0.5, 1.0, 2.0, 3.0].contains(&constant.value.as_f64())
}

/// The program of some nodes, operands first, that gives these of them, and what that is called with.
pub(crate) fn together(
    cx: &mut Cx<'_>,
    frame: &Frame<'_>,
    nodes: &[ExprId],
    results: &[ExprId],
) -> (Program, Values) {
    let joined = Joined::of(cx, frame, nodes);
    let results: Vec<ExprId> = results.iter().map(|id| joined.known[id]).collect();
    joined.finish(&results)
}

/// Whether what a kernel reads to reduce a tensor is in memory anyway.
pub(crate) fn reads_memory(frame: &Frame<'_>, operand: ExprId, attributes: &Reduce) -> bool {
    are_in_memory(frame, operand, &taken(frame, operand, attributes))
}

/// Whether all that is read to compute a tensor by these operations is in memory.
fn are_in_memory(frame: &Frame<'_>, operand: ExprId, taken: &[ExprId]) -> bool {
    let graph = frame.graph;
    let is_there = |id: &ExprId| {
        taken.contains(id)
            || graph.shape(*id).size() < graph.shape(operand).size()
            || is_in_memory(graph.op(*id))
            || frame.is_kept(*id)
    };
    let mut read = taken.iter().flat_map(|&id| graph.operands(id)).chain([&operand]);
    read.all(is_there)
}

/// Whether XLA would take longer for short rows of `f32` than a kernel that computes them: for products of
/// tensors, which it reduces one element after the other, and for what is made of much smaller tensors, which it
/// writes before it is reduced.
pub(crate) fn takes_short_rows(frame: &Frame<'_>, operand: ExprId, attributes: &Reduce) -> bool {
    let graph = frame.graph;
    let is_short =
        graph.dtype(operand) == DType::F32 && reduce::is_written(graph.shape(operand), attributes);
    let taken = if is_short { taken(frame, operand, attributes) } else { Vec::new() };
    !taken.is_empty() && are_in_memory(frame, operand, &taken)
}

/// The operations that are taken along to compute a tensor, in their order: none if that would read
/// more than it spares.
fn taken(frame: &Frame<'_>, operand: ExprId, attributes: &Reduce) -> Vec<ExprId> {
    let graph = frame.graph;
    let (taken, read) = taken_and_read(graph, &[operand], |id| goes_along(frame, id));
    let (shape, dtype) = (graph.shape(operand), graph.dtype(operand));
    let are_rows = dtype == DType::F32 && reduce::is_written(shape, attributes);
    let pays = match read.len() {
        // XLA computes a product of what is broadcast as fast.
        0 if are_rows && !is_product(graph, operand) && shape.size() >= LARGE => true,
        1.. if are_rows && is_product(graph, operand) => true,
        _ => pays(shape, attributes, dtype),
    };
    if !pays || read.len() > MOST_READ { Vec::new() } else { taken }
}

/// Whether a kernel computes a node for a reduction: what costs little, and functions that nobody else
/// needs, but nothing that has to be computed once.
pub(crate) fn goes_along(frame: &Frame<'_>, id: ExprId) -> bool {
    let graph = frame.graph;
    let goes = is_cheap(graph, id) || is_smooth(graph, id) && frame.is_used_once(id);
    goes && !frame.is_kept(id)
}

/// Whether a node multiplies.
fn is_product(graph: &Graph, id: ExprId) -> bool {
    match graph.op(id) {
        Op::Binary(BinaryOp::Multiply) => true,
        Op::Binary(BinaryOp::Pow) => is_two(graph, graph.operands(id)[1]),
        _ => false,
    }
}

/// Whether a kernel reduces what it takes along without writing it, or without writing much: all of a tensor,
/// long rows, many rows that become one, and all rows of `f64`. Of others XLA computes it sooner.
fn pays(shape: &Shape, attributes: &Reduce, dtype: DType) -> bool {
    let is_reduced =
        |&axis: &usize| attributes.axes.as_ref().is_none_or(|axes| axes.contains(&axis));
    let axes = (0..shape.rank()).filter(|&axis| shape[axis] != 1);
    let (reduced, kept): (Vec<_>, Vec<_>) = axes.partition(is_reduced);
    let size = |axes: &[usize]| -> usize { axes.iter().map(|&axis| shape[axis]).product() };
    let (count, inner) = (size(&reduced), size(&kept));
    let is_long = dtype == DType::F64 || count >= LEAST_ROW;
    let are_rows = kept.last() < reduced.first() && is_long;
    let is_row = reduced.last() < kept.first() && count >= LEAST_ROWS && inner <= LONGEST_ROW;
    kept.is_empty() || are_rows || is_row
}

fn is_comparison(op: BinaryOp) -> bool {
    matches!(op.class(), BinaryClass::Equality | BinaryClass::Order)
}

/// Whether a node compares what a program is given.
pub(crate) fn compares_given(graph: &Graph, id: ExprId) -> bool {
    let is_given = |&id: &ExprId| matches!(graph.op(id), Op::Parameter(_) | Op::Constant(_));
    let is_comparison = matches!(graph.op(id), Op::Binary(op) if is_comparison(*op));
    is_comparison && is_cheap(graph, id) && graph.operands(id).iter().all(is_given)
}

/// Whether a node is done by the time its operands are read, which have one dtype.
fn is_cheap(graph: &Graph, id: ExprId) -> bool {
    let operands = graph.operands(id);
    // A number is read as what it counts as.
    let is_same = |&operand: &ExprId| {
        graph.dtype(operand) == graph.dtype(id) || matches!(graph.op(operand), Op::Constant(_))
    };
    match graph.op(id) {
        Op::Constant(_) => true,
        Op::Unary(UnaryOp::Negate | UnaryOp::Abs)
        | Op::Binary(
            BinaryOp::Add
            | BinaryOp::Subtract
            | BinaryOp::Multiply
            | BinaryOp::Divide
            | BinaryOp::Max
            | BinaryOp::Min,
        ) => operands.iter().all(is_same),
        Op::Unary(UnaryOp::LogicalNot) | Op::Binary(BinaryOp::LogicalAnd | BinaryOp::LogicalOr) => {
            operands.iter().all(is_same)
        }
        Op::Binary(op) if is_comparison(*op) => {
            graph.dtype(operands[0]) == graph.dtype(operands[1])
        }
        // The exponent is an integer even where the base is none.
        Op::Binary(BinaryOp::Pow) => is_same(&operands[0]) && is_two(graph, operands[1]),
        _ => false,
    }
}

/// Whether a node is a function that the kernel computes about as fast as XLA. It pays to take it along
/// where XLA need not compute it as well.
fn is_smooth(graph: &Graph, id: ExprId) -> bool {
    let is_smooth = matches!(
        graph.op(id),
        Op::Unary(UnaryOp::Exp | UnaryOp::Log | UnaryOp::Tanh | UnaryOp::Sigmoid | UnaryOp::Sqrt)
    );
    is_smooth && graph.operands(id).iter().all(|&x| graph.dtype(x) == graph.dtype(id))
}

fn is_two(graph: &Graph, id: ExprId) -> bool {
    matches!(graph.op(id), Op::Constant(constant) if constant.value.as_f64() == 2.0)
}

/// A program that is made of nodes of another one.
struct Joined<'a, 'c, 'f> {
    cx: &'a mut Cx<'c>,
    frame: &'a Frame<'f>,
    graph: Graph,
    /// What stands for each node: another node, or a parameter.
    known: FxHashMap<ExprId, ExprId>,
    types: Vec<TensorType>,
    values: Values,
}

impl<'a, 'c, 'f> Joined<'a, 'c, 'f> {
    /// One of these nodes, operands first.
    fn of(cx: &'a mut Cx<'c>, frame: &'a Frame<'f>, nodes: &[ExprId]) -> Self {
        let (graph, known) = (Graph::new(), FxHashMap::default());
        let mut joined = Self { cx, frame, graph, known, types: Vec::new(), values: Values::new() };
        for &id in nodes {
            let made = joined.make(frame.graph.op(id), frame.graph.operands(id));
            joined.known.insert(id, made);
        }
        joined
    }

    fn finish(self, results: &[ExprId]) -> (Program, Values) {
        let program = Program::new(&self.graph, self.types, results);
        (program.expect("all that it needs are parameters"), self.values)
    }

    fn make(&mut self, op: &Op, operands: &[ExprId]) -> ExprId {
        let operands: Vec<ExprId> = operands.iter().map(|&id| self.operand(id)).collect();
        self.graph.make(op.clone(), &operands).expect("inference has accepted the same operation")
    }

    fn operand(&mut self, id: ExprId) -> ExprId {
        if let Some(&known) = self.known.get(&id) {
            return known;
        }
        let outer = self.frame.graph;
        let ty = TensorType::new(outer.dtype(id), outer.shape(id).clone());
        self.values.push(self.cx.value(self.frame.tensor(id)));
        self.types.push(ty.clone());
        let parameter = self.graph.parameter(self.types.len() - 1, ty);
        self.known.insert(id, parameter);
        parameter
    }
}
