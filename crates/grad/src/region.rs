//! Programs inside ops: putting their nodes into another graph, and differentiating them.
//!
//! A body is differentiated in a graph of its own, on fresh parameters. On the actual operands it
//! would be wrong: they may depend on each other, and nodes of the body may be nodes of the
//! surrounding graph already.

use std::sync::Arc;

use nxla_expr::{ExprId, Graph, HookOp, Op, Operands, Program, TensorType};
use nxla_tensor::{DType, promote};

use crate::emit;
use crate::error::Result;
use crate::sweep::pull;

/// What becomes of the hooks of a program that is copied.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hooks {
    /// They are hooks of the copy too.
    Keep,
    /// The copy computes values again that the original computes: its hooks have run there.
    Drop,
}

/// Appends what some outputs of a program need to a graph, and gives the nodes of these outputs.
///
/// Inputs that are not needed can be left out of the arguments.
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
    let mut copies: Vec<Copied> = vec![Copied::No; last.index() + 1];
    let source = into.current_source();
    let mut lines = Lines::new();
    for id in from.ids().take(last.index() + 1).filter(|&id| reachable.contains(id)) {
        lines.follow(from, id, into);
        let copied = match (from.op(id), from.operands(id)) {
            (Op::Parameter(parameter), _) => {
                let argument = arguments[parameter.index as usize];
                Copied::Node(argument.expect("an input that is used has an argument"))
            }
            (Op::Hook(hook), _) if hooks == Hooks::Drop && hook.results.is_none() => {
                Copied::Dropped(id)
            }
            (Op::Elem(index), [tuple]) => match &copies[tuple.index()] {
                Copied::Dropped(hook) => copies[from.operands(*hook)[*index].index()].clone(),
                Copied::Tuple(parts) => Copied::Node(parts[*index]),
                copied => Copied::Node(into.elem(copied.node(), *index)?),
            },
            (op, operands) => {
                let operands: Operands =
                    operands.iter().map(|&operand| value(from, &copies, operand)).collect();
                match op {
                    Op::Hook(hook) => copy_hook(into, hook, &operands)?,
                    op if hooks == Hooks::Drop => Copied::Node(into.make(quiet(op)?, &operands)?),
                    op => Copied::Node(into.make(op.clone(), &operands)?),
                }
            }
        };
        copies[id.index()] = copied;
    }
    into.set_source(source);
    Ok(wanted.iter().map(|&id| value(from, &copies, id)).collect())
}

/// What stands for a node of a program that is copied.
#[derive(Clone)]
enum Copied {
    No,
    Node(ExprId),
    /// The parts of a hook of several values.
    Tuple(Vec<ExprId>),
    /// A hook that was left out: what it shows stands for it.
    Dropped(ExprId),
}

impl Copied {
    fn node(&self) -> ExprId {
        match self {
            Copied::Node(id) => *id,
            Copied::No | Copied::Tuple(_) | Copied::Dropped(_) => {
                unreachable!("operands are copied first, and tuples are read part by part")
            }
        }
    }
}

/// The copy of a tensor node, behind the hooks that were left out.
fn value(from: &Graph, copies: &[Copied], mut id: ExprId) -> ExprId {
    while let Copied::Dropped(hook) = &copies[id.index()] {
        id = from.operands(*hook)[0];
    }
    match &copies[id.index()] {
        Copied::Tuple(parts) => parts[0],
        copied => copied.node(),
    }
}

fn copy_hook(into: &mut Graph, hook: &HookOp, operands: &[ExprId]) -> Result<Copied> {
    let node = into.make(Op::Hook(Box::new(hook.clone())), operands)?;
    let parts = into.parts(node)?;
    Ok(if parts.len() == 1 { Copied::Node(parts[0]) } else { Copied::Tuple(parts) })
}

/// Makes the source of each node of one graph the current one of another, each run of nodes of
/// one line once.
pub(crate) struct Lines {
    last: Option<(nxla_expr::SourceId, nxla_expr::SourceId)>,
}

impl Lines {
    pub(crate) fn new() -> Self {
        Lines { last: None }
    }

    /// Nodes made from now on come from where a node of the other graph comes from.
    pub(crate) fn follow(&mut self, from: &Graph, id: ExprId, into: &mut Graph) {
        let source = from.source_id(id);
        let known = self.last.filter(|(last, _)| *last == source).map(|(_, known)| known);
        let known = known.unwrap_or_else(|| into.add_source(from.source(id).clone()));
        self.last = Some((source, known));
        into.set_source(known);
    }
}

/// The op without hooks in its regions. A user's derivative keeps its own: they have not run yet.
fn quiet(op: &Op) -> Result<Op> {
    if !op.has_effects() {
        return Ok(op.clone());
    }
    let mut error = None;
    let quiet = op.map_regions(|program| {
        quiet_program(program).unwrap_or_else(|why| {
            error = Some(why);
            program.clone()
        })
    });
    error.map_or(Ok(quiet), Err)
}

/// A program without its hooks, and without those of its regions.
pub(crate) fn quiet_program(program: &Arc<Program>) -> Result<Arc<Program>> {
    let all: Vec<bool> = vec![true; program.inputs().len()];
    narrow(program, program.inputs(), &all, Hooks::Drop)
}

/// A program of fewer or more inputs: those of `inputs` that are kept, of which the first ones
/// are the inputs of `program`. The program uses no input that is not kept.
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
    let outputs: Vec<usize> = (0..program.outputs().len()).collect();
    let outputs = splice(program, &mut graph, &arguments, &outputs, hooks)?;
    Ok(Arc::new(Program::new(&graph, kept, &outputs)?))
}

/// The dtype in which a region hands out the cotangent of a value, fixed beforehand because all
/// branches, and all trips of a loop, must agree on it: the value's own where it is a float or
/// complex, else the widest real one around.
pub(crate) fn cotangent_dtype(primal: DType, around: impl IntoIterator<Item = DType>) -> DType {
    if primal == primal.to_floating() {
        return primal;
    }
    around.into_iter().fold(DType::F32, |wide, dtype| promote(wide, dtype.to_real()))
}

/// A body with its derivative, in a graph of its own.
pub(crate) struct Backward {
    graph: Graph,
    /// The inputs of the body, then the cotangents of the outputs that were given.
    inputs: Vec<TensorType>,
    /// The cotangent of each input that was wanted, as far as anything flows into it.
    flows: Vec<Option<ExprId>>,
    /// The type in which each of them is handed out.
    types: Vec<TensorType>,
}

impl Backward {
    /// Differentiates some outputs of a body, whose cotangents have these types, with respect to
    /// some inputs.
    pub(crate) fn new(
        body: &Program,
        given: &[usize],
        cotangents: &[TensorType],
        wanted: &[usize],
    ) -> Result<Self> {
        let mut graph = Graph::with_options(body.graph().options());
        let inputs: Vec<TensorType> = body.inputs().iter().chain(cotangents).cloned().collect();
        let parameters: Vec<ExprId> =
            inputs.iter().enumerate().map(|(at, ty)| graph.parameter(at, ty.clone())).collect();
        let (primals, seeds) = parameters.split_at(body.inputs().len());
        let arguments: Vec<Option<ExprId>> = primals.iter().copied().map(Some).collect();
        let outputs = splice(body, &mut graph, &arguments, given, Hooks::Drop)?;
        let wrt: Vec<ExprId> = wanted.iter().map(|&input| primals[input]).collect();
        let flows = pull(&mut graph, &outputs, seeds, &wrt)?;
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

    /// For each wanted input, whether anything flows into it.
    pub(crate) fn flows(&self) -> Vec<bool> {
        self.flows.iter().map(Option::is_some).collect()
    }

    /// Hands out the cotangent of a wanted input, by its position among them, in this type.
    pub(crate) fn hand_out(&mut self, position: usize, ty: TensorType) {
        self.types[position] = ty;
    }

    /// The type of the cotangent of each wanted input.
    pub(crate) fn types(&self) -> &[TensorType] {
        &self.types
    }

    /// The types of the inputs of the program.
    pub(crate) fn inputs(&self) -> &[TensorType] {
        &self.inputs
    }

    /// The program `(inputs…, cotangents…) -> cotangents of the wanted inputs` that are kept,
    /// with zeros where nothing flows.
    pub(crate) fn program(mut self, keep: &[bool]) -> Result<Arc<Program>> {
        let mut outputs = Vec::new();
        for ((flow, ty), _) in
            self.flows.iter().zip(&self.types).zip(keep).filter(|(_, keep)| **keep)
        {
            outputs.push(match flow {
                Some(flow) => emit::cast(&mut self.graph, *flow, ty.dtype)?,
                None => emit::filled(&mut self.graph, 0.0, ty.dtype, &ty.shape)?,
            });
        }
        Ok(Arc::new(Program::new(&self.graph, self.inputs, &outputs)?))
    }
}
