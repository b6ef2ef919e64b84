//! Lowering the nodes of one program into the block that is being written.
//!
//! Nodes are visited once, in order of their ids, which is a topological order. Nodes that only
//! a left-out hook needed are skipped.

use nxla_expr::{ExprId, Family, Graph, Node, Op, Program};
use nxla_tensor::Scalar;
use smallvec::SmallVec;

use crate::context::Cx;
use crate::error::Result;
use crate::types::Ty;
use crate::writer::Value;
use crate::{
    contract, control, create, elementwise, factorize, index, kernel, linalg, materialize,
    movement, reduce, widen, window,
};

/// The lowered form of one tensor of the graph: a value, or a number that is written when it is
/// used.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source {
    /// A value of the block, or of one around it.
    Value(Value),
    /// A number that is repeated over the shape. It is not rounded to the dtype yet.
    Splat(Scalar, Ty),
}

impl Source {
    /// Returns the type in the graph.
    pub(crate) fn ty(self) -> Ty {
        match self {
            Source::Value(value) => value.ty,
            Source::Splat(_, ty) => ty,
        }
    }
}

impl From<Value> for Source {
    fn from(value: Value) -> Self {
        Source::Value(value)
    }
}

/// A few sources.
pub(crate) type Sources = SmallVec<[Source; 4]>;

/// The lowered nodes of one program.
pub(crate) struct Frame<'p> {
    pub(crate) graph: &'p Graph,
    inputs: &'p [Option<Source>],
    uses: Vec<u32>,
    /// The nodes that must be computed once, see [`materialize`].
    materialized: Vec<bool>,
    /// The index in `parts` of the first part of each node.
    first: Vec<u32>,
    parts: Vec<Source>,
}

impl<'p> Frame<'p> {
    fn new(program: &'p Program, inputs: &'p [Option<Source>], uses: Vec<u32>) -> Self {
        let graph = program.graph();
        let materialized = materialize::find_materialized(graph, &uses, program.outputs());
        let (first, parts) = (vec![0; graph.len()], Vec::with_capacity(graph.len()));
        Self { graph, inputs, uses, materialized, first, parts }
    }

    /// The parts of a node: one for a tensor.
    pub(crate) fn parts(&self, id: ExprId) -> &[Source] {
        let first = self.first[id.index()] as usize;
        &self.parts[first..first + self.graph.ty(id).parts().len()]
    }

    /// A node that is one tensor.
    pub(crate) fn tensor(&self, id: ExprId) -> Source {
        self.parts[self.first[id.index()] as usize]
    }

    /// An input of the program that is needed.
    pub(crate) fn input(&self, index: u32) -> Source {
        self.inputs[index as usize].expect("an input that a node needs is given")
    }

    /// The operands of a node that takes single tensors.
    pub(crate) fn operands(&self, node: &Node<'_>) -> Sources {
        node.operands.iter().map(|&id| self.tensor(id)).collect()
    }

    fn set(&mut self, id: ExprId, parts: &[Source]) {
        self.first[id.index()] = u32::try_from(self.parts.len()).expect("fewer than 2^32 values");
        self.parts.extend_from_slice(parts);
    }
}

/// Counts the uses of each node by the outputs, the active hooks and the needed nodes of a program.
/// A node without uses is not needed.
///
/// One backward pass: every user of a node has a larger id.
pub(crate) fn uses<'a>(cx: &mut Cx<'a>, program: &'a Program) -> Vec<u32> {
    let graph = program.graph();
    let mut uses = vec![0; graph.len()];
    for &id in program.outputs() {
        uses[id.index()] += 1;
    }
    for &id in program.effects() {
        uses[id.index()] += u32::from(cx.active_hooks.are_called_by(graph.op(id)));
    }
    for id in graph.ids().rev() {
        if uses[id.index()] > 0 {
            for operand in operands_used(graph, id) {
                uses[operand.index()] += 1;
            }
        }
    }
    uses
}

/// The operands that the value of a node depends on, without the operands of a user's derivative.
fn operands_used(graph: &Graph, id: ExprId) -> &[ExprId] {
    match graph.op(id) {
        Op::Metadata(metadata) => metadata.values_of(graph.operands(id)),
        _ => graph.operands(id),
    }
}

/// Writes the nodes of a program for these inputs and returns its outputs. Inputs that are not
/// needed may be `None`.
pub(crate) fn lower<'a>(
    cx: &mut Cx<'a>,
    program: &'a Program,
    inputs: &[Option<Source>],
) -> Result<Sources> {
    let graph = program.graph();
    let mut frame = Frame::new(program, inputs, uses(cx, program));
    for id in graph.ids() {
        if frame.uses[id.index()] > 0 {
            cx.enter(graph, id);
            let mut parts = node(cx, &frame, id, &graph.node(id))?;
            if frame.materialized[id.index()]
                && let Source::Value(value) = parts[0]
            {
                parts[0] = cx.materialize(value).into();
            }
            frame.set(id, &parts);
        }
    }
    Ok(program.outputs().iter().map(|&id| frame.tensor(id)).collect())
}

fn node<'a>(cx: &mut Cx<'a>, frame: &Frame<'_>, id: ExprId, node: &Node<'a>) -> Result<Sources> {
    if let Some(parts) = kernel::lower(cx, frame, id, node) {
        return Ok(parts);
    }
    if let Op::Factorize(factorization) = node.op {
        let a = frame.operands(node)[0];
        return factorize::lower(cx, *factorization, a, node.ty.parts());
    }
    let family = node.op.family();
    if family == Family::Control {
        return control::lower(cx, frame, node);
    }
    let ty = node.ty.as_tensor().expect("ops of this family have one result");
    if ty.shape.size() == 0 {
        // Write a constant instead, because XLA fails for some ops on empty tensors.
        let ty = cx.ty(ty.dtype, &ty.shape);
        return Ok(Sources::from_slice(&[Source::Splat(Scalar::UInt(0), ty)]));
    }
    let operands = frame.operands(node);
    let computes = matches!(family, Family::Create | Family::Elementwise | Family::Linalg);
    let (operands, stored) = if computes {
        (operands, ty.clone())
    } else {
        // These ops move elements without computing, which XLA does not always support for packed
        // elements.
        let operands = operands.iter().map(|&operand| cx.unpack(operand)).collect();
        (operands, ty.with_dtype(widen::storage(ty.dtype)))
    };
    let value = match family {
        Family::Create => create::lower(cx, node.op),
        Family::Elementwise => elementwise::lower(cx, node.op, &operands, ty),
        Family::Movement => movement::lower(cx, node.op, &operands, &stored),
        Family::Reduce => reduce::lower(cx, node.op, &operands, ty)?,
        Family::Window => window::lower(cx, node.op, &operands, ty)?,
        Family::Contract => contract::lower(cx, node.op, &operands, &stored),
        Family::Index => index::lower(cx, node.op, &operands, &stored),
        Family::Linalg => linalg::lower(cx, node.op, &operands, ty)?,
        Family::Control => unreachable!("handled above"),
    };
    let value = cx.pack(value, ty.dtype);
    Ok(Sources::from_slice(&[value.into()]))
}
