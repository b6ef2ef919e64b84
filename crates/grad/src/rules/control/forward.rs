//! How what holds the graph together changes. A region is pushed in a graph of its own: the node
//! that holds it computes values and tangents in one go, and so replaces the original.

use std::sync::Arc;

use nxla_expr::{
    Block, BlockKind, Cond, CustomGrad, ExprId, Graph, HookOp, Metadata, Op, Program, RuleFor,
    TensorType, While,
};
use nxla_tensor::DType;

use crate::active::close_over_trips;
use crate::demand::{ask_over_trips, asked_inputs};
use crate::emit::{self, filled};
use crate::error::Result;
use crate::push::{Dual, Duals, Tangents, push as push_program, unchanged, values, with_tangents};
use crate::region::{Hooks, cotangent_dtype, splice};
use crate::transpose::{Linear, transpose};

/// The operands whose tangents the marked results ask for.
pub(crate) fn asked_operands(op: &Op, results: &[bool]) -> Vec<bool> {
    match op {
        Op::Parameter(_) | Op::Constant(_) | Op::Tensor(_) => Vec::new(),
        Op::Metadata(metadata) if metadata.stop_grad => vec![false; results.len()],
        Op::Metadata(metadata) => match &metadata.custom_grad {
            Some(custom) => {
                let captures = custom.program.inputs().len() - custom.changes();
                let operands = custom.declared().end + captures;
                (0..operands).map(|at| custom.declared().contains(&at)).collect()
            }
            None => results.to_vec(),
        },
        Op::Cond(cond) => {
            let bodies = cond.clauses.iter().map(|(_, body)| body);
            let mut asked = asked_inputs(&cond.otherwise, results);
            for body in bodies {
                for (asked, more) in asked.iter_mut().zip(asked_inputs(body, results)) {
                    *asked |= more;
                }
            }
            asked
        }
        Op::While(op) => {
            let mut states = results.to_vec();
            let mut asked = ask_over_trips(&op.body, &mut states);
            asked[..op.state].copy_from_slice(&states);
            asked
        }
        Op::Hook(hook) if hook.results.is_some() => Vec::new(),
        Op::Hook(_) => results.to_vec(),
        Op::Block(block) => asked_inputs(&block.body, results),
        Op::Elem(_) => unreachable!("a part is asked of its tuple"),
        op @ nxla_expr::outside!(control) => unreachable!("{} is of another family", op.name()),
    }
}

/// A node of control flow with its tangents, of the results that are asked for.
pub(crate) fn push(graph: &mut Graph, op: &Op, operands: &[Dual], asked: &[bool]) -> Result<Duals> {
    match op {
        Op::Parameter(_) | Op::Constant(_) | Op::Tensor(_) => unchanged(graph, op, operands),
        Op::Metadata(metadata) => push_metadata(graph, op, metadata, operands),
        Op::Cond(cond) => push_cond(graph, cond, operands, asked),
        Op::While(op) => push_loop(graph, op, operands, asked),
        Op::Hook(hook) => push_hook(graph, op, hook, operands),
        Op::Block(block) => push_block(graph, op, block, operands, asked),
        Op::Elem(_) => unreachable!("the push picks parts itself"),
        op @ nxla_expr::outside!(control) => unreachable!("{} is of another family", op.name()),
    }
}

/// Each result is the operand of the same position.
fn pass(graph: &mut Graph, op: &Op, operands: &[Dual]) -> Result<Duals> {
    let node = graph.make(op.clone(), &values(operands))?;
    let tangents: Tangents = operands.iter().map(|operand| operand.tangent).collect();
    with_tangents(graph, node, tangents)
}

/// An annotation is the identity, unless it stops the derivative or replaces it.
fn push_metadata(
    graph: &mut Graph,
    op: &Op,
    metadata: &Metadata,
    operands: &[Dual],
) -> Result<Duals> {
    match &metadata.custom_grad {
        _ if metadata.stop_grad => unchanged(graph, op, operands),
        Some(custom) => push_custom(graph, op, custom, operands),
        None => pass(graph, op, operands),
    }
}

/// Tangents go through the user's rule. One that says how cotangents go back is linear in them:
/// tangents go through its transpose.
fn push_custom(
    graph: &mut Graph,
    op: &Op,
    custom: &CustomGrad,
    operands: &[Dual],
) -> Result<Duals> {
    let node = graph.make(op.clone(), &values(operands))?;
    let declared = &operands[custom.declared()];
    let captures = values(&operands[custom.declared().end..]);
    let found: Tangents = match custom.rule {
        RuleFor::Cotangents => {
            let seeds: Vec<Option<ExprId>> = declared.iter().map(|dual| dual.tangent).collect();
            let linear = Linear::of(custom);
            transpose(graph, &linear, &captures, &seeds)?.into_iter().collect()
        }
        RuleFor::Tangents => {
            let mut arguments = Vec::with_capacity(custom.program.inputs().len());
            for (dual, ty) in declared.iter().zip(custom.program.inputs()) {
                arguments.push(typed(graph, dual.tangent, ty)?);
            }
            arguments.extend(captures);
            let found = custom.program.inline(graph, &arguments)?;
            let plain = found.into_iter().map(|id| emit::plain(graph, id).map(Some));
            plain.collect::<nxla_expr::Result<_>>()?
        }
    };
    with_tangents(graph, node, found)
}

/// A hook is shown values, and passes their tangents on. Nothing is known of what a host function
/// computes.
fn push_hook(graph: &mut Graph, op: &Op, hook: &HookOp, operands: &[Dual]) -> Result<Duals> {
    match hook.results {
        Some(_) => unchanged(graph, op, operands),
        None => pass(graph, op, operands),
    }
}

/// A composite stays what it is, since a compiler may know a better way to compute it; its default
/// body gives the tangents. One with hooks is no such composite, and is opened.
fn push_block(
    graph: &mut Graph,
    op: &Op,
    block: &Block,
    operands: &[Dual],
    asked: &[bool],
) -> Result<Duals> {
    if !block.body.effects().is_empty() {
        return Ok(push_program(graph, &block.body, operands, asked)?.into_iter().collect());
    }
    if let BlockKind::Checkpoint { .. } = block.kind {
        return push_checkpoint(graph, op, block, operands, asked);
    }
    let node = graph.make(op.clone(), &values(operands))?;
    let inside = push_program(graph, &block.body, operands, asked)?;
    with_tangents(graph, node, inside.into_iter().map(|dual| dual.tangent).collect())
}

/// A checkpoint gives tangents along with its values: if that is differentiated in reverse, it does
/// not keep them either.
fn push_checkpoint(
    graph: &mut Graph,
    op: &Op,
    block: &Block,
    operands: &[Dual],
    asked: &[bool],
) -> Result<Duals> {
    let tangents = carried_in(graph, operands, &asked_operands(op, asked));
    let inputs = Inputs::new(block.body.inputs(), 0, &tangents);
    let mut inside = Graph::with_options(graph.options());
    let parameters = inputs.parameters(&mut inside);
    let found = push_program(&mut inside, &block.body, &parameters, asked)?;
    let changes: Vec<bool> = found.iter().map(|dual| dual.tangent.is_some()).collect();
    if !changes.contains(&true) {
        return unchanged(graph, op, operands);
    }
    let mut outputs: Vec<ExprId> = found.iter().map(|dual| dual.value).collect();
    outputs.extend(found.iter().filter_map(|dual| dual.tangent));
    let body = Arc::new(Program::new(&inside, inputs.types.clone(), &outputs)?);
    let passed = inputs.operands(graph, operands)?;
    let pushed = Block { body, ..block.clone() };
    let node = graph.make(Op::Block(Arc::new(pushed)), &passed)?;
    results(graph, node, &changes)
}

/// The types of the tangents that are handed into a region: those that there are and that are
/// asked for.
fn carried_in(graph: &Graph, operands: &[Dual], asked: &[bool]) -> Vec<Option<TensorType>> {
    let carried = operands.iter().zip(asked).map(|(dual, &asked)| {
        let tangent = dual.tangent.filter(|_| asked)?;
        Some(graph.tensor_type(tangent).clone())
    });
    carried.collect()
}

/// The inputs of a pushed region: those of the original, then the tangents that it carries.
struct Inputs {
    types: Vec<TensorType>,
    /// For each input of the original, where it is now, and where its tangent is.
    places: Vec<(usize, Option<usize>)>,
}

impl Inputs {
    /// Inputs of which the first `states` are the state of a loop, and those of their number with
    /// a type in `tangents` change. The state comes first, with its tangents behind it.
    fn new(original: &[TensorType], states: usize, tangents: &[Option<TensorType>]) -> Self {
        let mut inputs = Inputs { types: Vec::new(), places: vec![(0, None); original.len()] };
        for range in [0..states, states..original.len()] {
            for at in range.clone() {
                inputs.places[at].0 = inputs.types.len();
                inputs.types.push(original[at].clone());
            }
            for at in range {
                if let Some(ty) = &tangents[at] {
                    inputs.places[at].1 = Some(inputs.types.len());
                    inputs.types.push(ty.clone());
                }
            }
        }
        inputs
    }

    /// Parameters for all of them, by input of the original.
    fn parameters(&self, graph: &mut Graph) -> Vec<Dual> {
        let ids: Vec<ExprId> =
            self.types.iter().enumerate().map(|(at, ty)| graph.parameter(at, ty.clone())).collect();
        let dual = |&(value, tangent): &(usize, Option<usize>)| Dual {
            value: ids[value],
            tangent: tangent.map(|at| ids[at]),
        };
        self.places.iter().map(dual).collect()
    }

    /// What to pass for them.
    fn operands(&self, graph: &mut Graph, operands: &[Dual]) -> Result<Vec<ExprId>> {
        let mut passed = vec![None; self.types.len()];
        for (dual, &(value, tangent)) in operands.iter().zip(&self.places) {
            passed[value] = Some(dual.value);
            if let Some(at) = tangent {
                passed[at] = Some(typed(graph, dual.tangent, &self.types[at])?);
            }
        }
        Ok(passed.into_iter().map(|id| id.expect("every place is one of an input")).collect())
    }

    /// A region without tangents that takes these inputs.
    fn widen(&self, program: &Program) -> Result<Arc<Program>> {
        let mut graph = Graph::with_options(program.graph().options());
        let arguments: Vec<Option<ExprId>> =
            self.parameters(&mut graph).iter().map(|dual| Some(dual.value)).collect();
        let outputs: Vec<usize> = (0..program.outputs().len()).collect();
        let outputs = splice(program, &mut graph, &arguments, &outputs, Hooks::Keep)?;
        Ok(Arc::new(Program::new(&graph, self.types.clone(), &outputs)?))
    }
}

/// The type in which a region carries the tangent of a value.
fn tangent_type(graph: &Graph, ty: &TensorType, operands: &[Dual]) -> TensorType {
    let around = operands.iter().filter_map(|operand| operand.tangent);
    let around: Vec<DType> = around.map(|tangent| graph.dtype(tangent)).collect();
    TensorType::new(cotangent_dtype(ty.dtype, around), ty.shape.clone())
}

/// A tangent of a type, zeros where there is none.
fn typed(graph: &mut Graph, tangent: Option<ExprId>, ty: &TensorType) -> Result<ExprId> {
    Ok(match tangent {
        Some(tangent) => emit::cast(graph, tangent, ty.dtype)?,
        None => filled(graph, 0.0, ty.dtype, &ty.shape)?,
    })
}

/// A loop that carries the tangents of the states that change and are asked for. A state that
/// begins to change in a later trip begins with zeros.
fn push_loop(graph: &mut Graph, op: &While, operands: &[Dual], asked: &[bool]) -> Result<Duals> {
    let mut changing: Vec<bool> = operands.iter().map(|dual| dual.tangent.is_some()).collect();
    close_over_trips(&op.body, op.state, &mut changing);
    let mut states = asked.to_vec();
    let mut wanted = ask_over_trips(&op.body, &mut states);
    wanted[..op.state].copy_from_slice(&states);
    let tangents: Vec<Option<TensorType>> = (0..operands.len())
        .map(|at| {
            let carries = changing[at] && wanted[at];
            carries.then(|| tangent_type(graph, &op.body.inputs()[at], operands))
        })
        .collect();
    let carried: Vec<bool> = tangents[..op.state].iter().map(Option::is_some).collect();
    if !carried.contains(&true) {
        return unchanged(graph, &Op::While(Arc::new(op.clone())), operands);
    }
    let inputs = Inputs::new(op.body.inputs(), op.state, &tangents);
    let mut inside = Graph::with_options(graph.options());
    let parameters = inputs.parameters(&mut inside);
    let found = push_program(&mut inside, &op.body, &parameters, &carried)?;
    let mut outputs: Vec<ExprId> = found.iter().map(|dual| dual.value).collect();
    for (dual, ty) in found.iter().zip(&tangents) {
        if let Some(ty) = ty {
            outputs.push(typed(&mut inside, dual.tangent, ty)?);
        }
    }
    let body = Arc::new(Program::new(&inside, inputs.types.clone(), &outputs)?);
    let condition = inputs.widen(&op.condition)?;
    let passed = inputs.operands(graph, operands)?;
    let pushed = While { state: outputs.len(), condition, body, replay: op.replay };
    let node = graph.make(Op::While(Arc::new(pushed)), &passed)?;
    results(graph, node, &carried)
}

/// The results of a pushed region: values, then the tangents of those that are marked.
fn results(graph: &mut Graph, node: ExprId, marked: &[bool]) -> Result<Duals> {
    let parts = graph.parts(node)?;
    let (values, tangents) = parts.split_at(marked.len());
    let mut tangents = tangents.iter().copied();
    let tangent = |marked: bool| if marked { tangents.next() } else { None };
    let tangents: Vec<Option<ExprId>> = marked.iter().copied().map(tangent).collect();
    let duals = values.iter().zip(tangents).map(|(&value, tangent)| Dual { value, tangent });
    Ok(duals.collect())
}

/// A conditional whose branches give tangents too; a branch without one gives zeros where another
/// has one.
fn push_cond(graph: &mut Graph, cond: &Cond, operands: &[Dual], asked: &[bool]) -> Result<Duals> {
    let op = Op::Cond(Arc::new(cond.clone()));
    let tangents = carried_in(graph, operands, &asked_operands(&op, asked));
    let inputs = Inputs::new(cond.otherwise.inputs(), 0, &tangents);
    let bodies = cond.clauses.iter().map(|(_, body)| body).chain([&cond.otherwise]);
    let mut branches = Vec::with_capacity(cond.clauses.len() + 1);
    for body in bodies {
        let mut inside = Graph::with_options(graph.options());
        let parameters = inputs.parameters(&mut inside);
        let found = push_program(&mut inside, body, &parameters, asked)?;
        branches.push((inside, found));
    }
    let changes: Vec<bool> = (0..asked.len())
        .map(|at| branches.iter().any(|(_, found)| found[at].tangent.is_some()))
        .collect();
    if !changes.contains(&true) {
        return unchanged(graph, &op, operands);
    }
    let types: Vec<TensorType> =
        cond.otherwise.output_types().map(|ty| tangent_type(graph, ty, operands)).collect();
    let mut bodies = Vec::with_capacity(branches.len());
    for (mut inside, found) in branches {
        let mut outputs: Vec<ExprId> = found.iter().map(|dual| dual.value).collect();
        for ((dual, ty), _) in found.iter().zip(&types).zip(&changes).filter(|(_, it)| **it) {
            outputs.push(typed(&mut inside, dual.tangent, ty)?);
        }
        bodies.push(Arc::new(Program::new(&inside, inputs.types.clone(), &outputs)?));
    }
    let otherwise = bodies.pop().expect("there is a last branch");
    let clauses = cond
        .clauses
        .iter()
        .zip(bodies)
        .map(|((predicate, _), body)| Ok((inputs.widen(predicate)?, body)))
        .collect::<Result<_>>()?;
    let passed = inputs.operands(graph, operands)?;
    let pushed = Cond { clauses, otherwise };
    let node = graph.make(Op::Cond(Arc::new(pushed)), &passed)?;
    results(graph, node, &changes)
}
