//! Programs inside ops: copying their nodes into another graph, and differentiating them.
//!
//! A body is differentiated in a separate graph with fresh parameters. Differentiating it on the
//! actual operands would be wrong: operands may depend on each other, and interning may merge nodes
//! of the body with nodes of the surrounding graph.

use std::sync::Arc;

use nxla_expr::{ExprId, Graph, HookOp, Op, Operands, Program, SourceMap, TensorType};
use nxla_tensor::{DType, promote};

use crate::builder;
use crate::error::Result;
use crate::reverse::backpropagate;

/// The hooks of a copy of a program.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hooks {
    /// The copy has the same hooks.
    Keep,
    /// The copy has no hooks, because the original program also runs and calls them.
    Drop,
}

/// Appends the nodes that some outputs of a program need to a graph, and returns the copies of
/// these outputs. Arguments of unused inputs may be `None`.
pub(crate) fn splice(
    program: &Program,
    into: &mut Graph,
    arguments: &[Option<ExprId>],
    outputs: &[usize],
    hooks: Hooks,
) -> Result<Vec<ExprId>> {
    let from = program.graph();
    let wanted: Vec<ExprId> = outputs.iter().map(|&output| program.outputs()[output]).collect();
    let kept_hooks = if hooks == Hooks::Keep { program.effects() } else { &[] };
    let roots: Vec<ExprId> = wanted.iter().chain(kept_hooks).copied().collect();
    let Some(&last) = roots.iter().max() else { return Ok(Vec::new()) };
    let reachable = from.reachable(&roots);
    let mut copies: Vec<NodeCopy> = vec![NodeCopy::No; last.index() + 1];
    let source = into.current_source();
    let mut sources = SourceMap::default();
    for id in from.ids().take(last.index() + 1).filter(|&id| reachable.contains(id)) {
        into.copy_source(from, id, &mut sources);
        let copied = match (from.op(id), from.operands(id)) {
            (Op::Parameter(parameter), _) => {
                let argument = arguments[parameter.index as usize];
                NodeCopy::Node(argument.expect("an input that is used has an argument"))
            }
            (Op::Hook(hook), _) if hooks == Hooks::Drop && hook.results.is_none() => {
                NodeCopy::Dropped(id)
            }
            (Op::Elem(index), [tuple]) => match &copies[tuple.index()] {
                NodeCopy::Dropped(hook) => copies[from.operands(*hook)[*index].index()].clone(),
                NodeCopy::Tuple(parts) => NodeCopy::Node(parts[*index]),
                copied => NodeCopy::Node(into.elem(copied.node(), *index)?),
            },
            (op, operands) => {
                let operands: Operands =
                    operands.iter().map(|&operand| value(from, &copies, operand)).collect();
                match op {
                    Op::Hook(hook) => copy_hook(into, hook, &operands)?,
                    op if hooks == Hooks::Drop => {
                        NodeCopy::Node(into.make(strip_op_effects(op)?, &operands)?)
                    }
                    op => NodeCopy::Node(into.make(op.clone(), &operands)?),
                }
            }
        };
        copies[id.index()] = copied;
    }
    into.set_source(source);
    Ok(wanted.iter().map(|&id| value(from, &copies, id)).collect())
}

/// The copy of a node of a program.
#[derive(Clone)]
enum NodeCopy {
    No,
    Node(ExprId),
    /// The results of a hook with several values.
    Tuple(Vec<ExprId>),
    /// A hook that was not copied: its operands replace its results.
    Dropped(ExprId),
}

impl NodeCopy {
    fn node(&self) -> ExprId {
        match self {
            NodeCopy::Node(id) => *id,
            NodeCopy::No | NodeCopy::Tuple(_) | NodeCopy::Dropped(_) => {
                unreachable!(
                    "operands are copied before their users, and tuples are read element by element"
                )
            }
        }
    }
}

/// Returns the copy of a tensor node, skipping hooks that were not copied.
fn value(from: &Graph, copies: &[NodeCopy], mut id: ExprId) -> ExprId {
    while let NodeCopy::Dropped(hook) = &copies[id.index()] {
        id = from.operands(*hook)[0];
    }
    match &copies[id.index()] {
        NodeCopy::Tuple(parts) => parts[0],
        copied => copied.node(),
    }
}

fn copy_hook(into: &mut Graph, hook: &HookOp, operands: &[ExprId]) -> Result<NodeCopy> {
    let node = into.make(Op::Hook(Box::new(hook.clone())), operands)?;
    let parts = into.parts(node)?;
    Ok(if parts.len() == 1 { NodeCopy::Node(parts[0]) } else { NodeCopy::Tuple(parts) })
}

/// Removes the hooks from the regions of an op. Hooks in a custom rule remain, since they run only
/// in the derivative.
fn strip_op_effects(op: &Op) -> Result<Op> {
    if !op.has_effects() {
        return Ok(op.clone());
    }
    let mut error = None;
    let copy = op.map_regions(|program| {
        strip_effects(program).unwrap_or_else(|why| {
            error = Some(why);
            program.clone()
        })
    });
    error.map_or(Ok(copy), Err)
}

/// Returns a program without its hooks and without the hooks of its regions, for computing its
/// values a second time. Runtime calls remain, because other nodes use their results.
///
/// # Errors
/// Returns the error of [`Graph::make`], which accepts every node of a well-typed program.
pub fn strip_effects(program: &Arc<Program>) -> Result<Arc<Program>> {
    let all: Vec<bool> = vec![true; program.inputs().len()];
    narrow(program, program.inputs(), &all, Hooks::Drop)
}

/// Returns `program` with the inputs that `keep` marks in `inputs`. The first of `inputs` are the
/// inputs of `program`, which must not use an unmarked input.
pub(crate) fn narrow(
    program: &Arc<Program>,
    inputs: &[TensorType],
    keep: &[bool],
    hooks: Hooks,
) -> Result<Arc<Program>> {
    let is_same = program.inputs().len() == inputs.len() && keep.iter().all(|keep| *keep);
    if is_same && (hooks == Hooks::Keep || program.effects().is_empty()) {
        return Ok(program.clone());
    }
    let mut graph = Graph::with_options(program.graph().options());
    let mut kept = Vec::new();
    let mut arguments = Vec::new();
    for (ty, &keep) in inputs.iter().zip(keep) {
        arguments.push(keep.then(|| graph.parameter(kept.len(), ty.clone())));
        if keep {
            kept.push(ty.clone());
        }
    }
    let outputs = splice_all(program, &mut graph, &arguments, hooks)?;
    Ok(Arc::new(Program::new(&graph, kept, &outputs)?))
}

/// Appends the nodes of a program to a graph and returns the copies of all outputs.
pub(crate) fn splice_all(
    program: &Program,
    into: &mut Graph,
    arguments: &[Option<ExprId>],
    hooks: Hooks,
) -> Result<Vec<ExprId>> {
    let outputs: Vec<usize> = (0..program.outputs().len()).collect();
    splice(program, into, arguments, &outputs, hooks)
}

/// Returns the dtype in which a region returns the cotangent of a value. All branches and all
/// iterations must agree on it, so it is fixed before the region is differentiated: the dtype of a
/// float or complex value, otherwise the widest real dtype of `around`.
pub(crate) fn cotangent_dtype(primal: DType, around: impl IntoIterator<Item = DType>) -> DType {
    if primal == primal.to_floating() {
        return primal;
    }
    around.into_iter().fold(DType::F32, |wide, dtype| promote(wide, dtype.to_real()))
}

/// A body and its reverse-mode derivative in a separate graph.
pub(crate) struct Backward {
    graph: Graph,
    /// The inputs of the body, then the cotangents of the given outputs.
    inputs: Vec<TensorType>,
    /// For each requested input, its cotangent, or `None` if the outputs do not depend on it.
    flows: Vec<Option<ExprId>>,
    /// For each requested input, the type in which its cotangent is returned.
    types: Vec<TensorType>,
}

impl Backward {
    /// Differentiates the outputs `given` of a body, whose cotangents have the types `cotangents`,
    /// with respect to the inputs `wanted`.
    pub(crate) fn new(
        body: &Program,
        given: &[usize],
        cotangents: &[TensorType],
        wanted: &[usize],
    ) -> Result<Self> {
        let mut graph = Graph::with_options(body.graph().options());
        let inputs: Vec<TensorType> = body.inputs().iter().chain(cotangents).cloned().collect();
        let parameters = builder::parameters(&mut graph, &inputs);
        let (primals, seeds) = parameters.split_at(body.inputs().len());
        let arguments: Vec<Option<ExprId>> = primals.iter().copied().map(Some).collect();
        let outputs = splice(body, &mut graph, &arguments, given, Hooks::Drop)?;
        let wrt: Vec<ExprId> = wanted.iter().map(|&input| primals[input]).collect();
        let flows = backpropagate(&mut graph, &outputs, seeds, &wrt)?;
        let around = || cotangents.iter().map(|ty| ty.dtype);
        let types = wanted
            .iter()
            .map(|&input| {
                let ty = &body.inputs()[input];
                TensorType::new(cotangent_dtype(ty.dtype, around()), ty.shape.clone())
            })
            .collect();
        Ok(Self { graph, inputs, flows, types })
    }

    /// Returns for each requested input whether it has a cotangent.
    pub(crate) fn flows(&self) -> Vec<bool> {
        self.flows.iter().map(Option::is_some).collect()
    }

    /// Sets the type in which the cotangent of a requested input is returned.
    pub(crate) fn set_type(&mut self, position: usize, ty: TensorType) {
        self.types[position] = ty;
    }

    /// Returns the type of the cotangent of each requested input.
    pub(crate) fn types(&self) -> &[TensorType] {
        &self.types
    }

    /// Returns the types of the inputs of the program.
    pub(crate) fn inputs(&self) -> &[TensorType] {
        &self.inputs
    }

    /// Returns the program `(inputs…, cotangents…) -> (cotangents of the requested inputs that are
    /// marked in keep…)`, with zeros for missing cotangents.
    pub(crate) fn program(mut self, keep: &[bool]) -> Result<Arc<Program>> {
        let mut outputs = Vec::new();
        for ((flow, ty), _) in
            self.flows.iter().zip(&self.types).zip(keep).filter(|(_, keep)| **keep)
        {
            outputs.push(match flow {
                Some(flow) => builder::cast(&mut self.graph, *flow, ty.dtype)?,
                None => builder::full(&mut self.graph, 0.0, ty.dtype, &ty.shape)?,
            });
        }
        Ok(Arc::new(Program::new(&self.graph, self.inputs, &outputs)?))
    }
}
