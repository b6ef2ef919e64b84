//! Values that must be computed once and stored, because their elements are compared with each
//! other.
//!
//! XLA recomputes cheap values wherever they are used, each time in different code: a product that
//! is rounded in one loop is part of a fused multiply-add in another. The last digit then depends
//! on the loop. With `max(x)` from one computation of `x` and a second computation of `x`, `x ==
//! max(x)` may hold for no element, and the gradient of the maximum would be zero. The same holds
//! for a program that returns both `x` and `max(x)`, which its caller may compare.

use nxla_expr::{
    BinaryClass, BlockKind, Cumulative, ExprId, Graph, Op, ReduceOp, TensorType, UnaryOp, WindowOp,
    family_ops,
};
use nxla_tensor::{DType, Scalar};
use rustc_hash::FxHashSet;

use crate::context::Cx;
use crate::control::opaque_true;
use crate::writer::Value;

/// The tensor whose elements a value consists of.
#[derive(Clone, Copy)]
struct Origin {
    /// The tensor that computed them.
    tensor: ExprId,
    /// True if the elements were chosen by their values, as a maximum is.
    chosen: bool,
}

/// Returns for each node of a program whether it must be computed once.
pub(crate) fn find_materialized(graph: &Graph, uses: &[u32], outputs: &[ExprId]) -> Vec<bool> {
    let mut origins: Vec<Origin> = Vec::with_capacity(graph.len());
    let mut compared = vec![false; graph.len()];
    for id in graph.ids() {
        let operands = graph.operands(id);
        if let (Op::Binary(op), &[a, b]) = (graph.op(id), operands)
            && uses[id.index()] > 0
            && matches!(op.class(), BinaryClass::Equality | BinaryClass::Order)
            && a != b
        {
            let (a, b) = (origins[a.index()].tensor, origins[b.index()].tensor);
            compared[a.index()] |= a == b;
        }
        let itself = Origin { tensor: id, chosen: false };
        origins.push(comes_from(graph, id).map_or(itself, |(operand, chosen)| {
            let before = origins[operand.index()];
            Origin { chosen: chosen || before.chosen, ..before }
        }));
    }
    let given = |chosen: bool| {
        let origins = outputs.iter().map(|output| origins[output.index()]);
        origins.filter(move |origin| origin.chosen == chosen).map(|origin| origin.tensor)
    };
    let whole: FxHashSet<ExprId> = given(false).collect();
    for tensor in given(true).filter(|tensor| whole.contains(tensor)) {
        compared[tensor.index()] = true;
    }
    graph.ids().map(|id| compared[id.index()] && may_differ(graph, id)).collect()
}

/// Returns true if a second computation of a node may round differently. Integers do not round, and
/// XLA does not make a loop for a single number.
fn may_differ(graph: &Graph, id: ExprId) -> bool {
    let rounds = |dtype: DType| dtype.is_float() || dtype.is_complex();
    let is_tensor = |ty: &TensorType| rounds(ty.dtype) && ty.shape.size() > 1;
    graph.ty(id).as_tensor().is_some_and(is_tensor) && !matches!(graph.op(id), Op::Constant(_))
}

/// Returns the operand whose elements a node passes on, at other positions, with another sign or in
/// another dtype, and true if it chooses among them. Returns `None` for a node that computes.
fn comes_from(graph: &Graph, id: ExprId) -> Option<(ExprId, bool)> {
    let operands = graph.operands(id);
    let is_constant = |id: ExprId| matches!(graph.op(id), Op::Constant(_));
    match graph.op(id) {
        Op::Unary(UnaryOp::Negate | UnaryOp::Abs)
        | Op::AsType(_)
        | Op::Reshape(_)
        | Op::Squeeze(_)
        | Op::Transpose(_)
        | Op::Reverse(_)
        | Op::Broadcast(_)
        | Op::Pad(_)
        | Op::Slice(_)
        | Op::Gather(_) => Some((operands[0], false)),
        Op::Reduce(ReduceOp::Max | ReduceOp::Min, _)
        | Op::Window(WindowOp::Max | WindowOp::Min, _)
        | Op::Sort(_) => Some((operands[0], true)),
        Op::Block(block) => match block.kind {
            BlockKind::TopK { .. }
            | BlockKind::Cumulative { op: Cumulative::Max | Cumulative::Min, .. } => {
                Some((operands[0], true))
            }
            BlockKind::Cumulative { op: Cumulative::Sum | Cumulative::Product, .. }
            | BlockKind::Search(_)
            | BlockKind::Scatter { .. }
            | BlockKind::Checkpoint { .. }
            | BlockKind::Named { .. }
            | BlockKind::Solve { .. }
            | BlockKind::Factorize(_)
            | BlockKind::Threefry { .. } => None,
        },
        // A constant replaces some elements, as in a maximum of the other elements.
        Op::Select if is_constant(operands[2]) => Some((operands[1], false)),
        Op::Select if is_constant(operands[1]) => Some((operands[2], false)),
        Op::Metadata(_) if graph.ty(id).as_tensor().is_some() => Some((operands[0], false)),
        Op::Elem(index) => match graph.op(operands[0]) {
            Op::Metadata(_) => Some((graph.operands(operands[0])[*index], false)),
            Op::Block(_) if comes_from(graph, operands[0]).is_some() => Some((operands[0], false)),
            _ => None,
        },
        family_ops!(@ create contract linalg) => None,
        Op::Unary(_)
        | Op::Binary(_)
        | Op::Select
        | Op::Clip
        | Op::Bitcast(_)
        | Op::Concatenate(_)
        | Op::Stack(_)
        | Op::Reduce(..)
        | Op::ArgReduce(..)
        | Op::ReduceFun(_)
        | Op::Window(..)
        | Op::WindowFun(_)
        | Op::WindowScatter(..)
        | Op::PutSlice(_)
        | Op::IndexedAdd(_)
        | Op::IndexedPut(_)
        | Op::Argsort(..)
        | Op::Parameter(_)
        | Op::Constant(_)
        | Op::Tensor(_)
        | Op::Metadata(_)
        | Op::Cond(_)
        | Op::While(_)
        | Op::Hook(_) => None,
    }
}

/// Returns the name of the function for a type of `Cx::materialized_types`.
fn name(number: usize) -> String {
    format!("materialize_{number}")
}

impl Cx<'_> {
    /// Returns a value that is computed once. XLA's compiler for CPUs drops barriers before it
    /// decides what to recompute, but the result of a call is stored.
    ///
    /// The function selects between its argument and zeros by a condition that is always true. If XLA
    /// could simplify the condition, argument and result would share their memory, and code that uses
    /// both could overwrite one while it reads the other.
    pub(crate) fn materialize(&mut self, value: Value) -> Value {
        if !self.options.materialize_by_calls {
            return self.barrier(value);
        }
        let types = &mut self.materialized_types;
        let number = types.iter().position(|&ty| ty == value.ty).unwrap_or_else(|| {
            types.push(value.ty);
            types.len() - 1
        });
        self.writer.call(&name(number), &[value], &[value.ty], NOT_INLINED)[0]
    }

    /// Writes the functions that [`Cx::materialize`] has called.
    pub(crate) fn write_materializers(&mut self) {
        for (number, ty) in std::mem::take(&mut self.materialized_types).into_iter().enumerate() {
            let name = name(number);
            let argument =
                self.writer.begin_function("private", &name, &[ty], &[ty], |_| None, &[])[0];
            self.begin_function_body();
            let condition =
                opaque_true(self, argument).expect("only floats with elements are materialized");
            let zeros = self.splat_like(Scalar::UInt(0), argument);
            let stored = self.select(condition, argument, zeros);
            self.writer.end_function(&[stored]);
        }
    }
}

/// The attribute that keeps XLA from inlining a call.
const NOT_INLINED: &str = " {mhlo.frontend_attributes = {inlineable = \"false\"}}";
