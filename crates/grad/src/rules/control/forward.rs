//! Forward mode for control ops. A region is differentiated in a separate graph. The resulting op
//! computes values and tangents together and replaces the original op.

use std::sync::Arc;

use nxla_expr::{
    Block, BlockKind, Cond, CustomGrad, ExprId, Graph, HookOp, Metadata, Op, Program, RuleFor,
    TensorType, While,
};
use nxla_tensor::DType;

use crate::active::mark_active_states;
use crate::builder::{self, full, is_zero};
use crate::error::{GradError, Result};
use crate::forward::{
    Dual, Duals, Tangents, jvp_program, make_without_tangents, values, with_tangents,
};
use crate::needed::{needed_inputs, needed_loop_inputs};
use crate::region::{Hooks, cotangent_dtype, splice_all};
use crate::rules::is_continuous;
use crate::transpose::{Linear, transpose};

/// Returns for each operand of an op whether the marked results need its tangent.
pub(crate) fn needed_operands(
    graph: &Graph,
    op: &Op,
    operands: &[ExprId],
    results: &[bool],
) -> Vec<bool> {
    match op {
        Op::Parameter(_) | Op::Constant(_) | Op::Tensor(_) => Vec::new(),
        Op::Metadata(metadata) if metadata.stop_grad => vec![false; results.len()],
        Op::Metadata(metadata) => match &metadata.custom_grad {
            Some(custom) => {
                let captures = custom.program.inputs().len() - custom.changes();
                let operands = custom.declared_inputs().end + captures;
                (0..operands).map(|at| custom.declared_inputs().contains(&at)).collect()
            }
            None => results.to_vec(),
        },
        Op::Cond(cond) => {
            let mut needed = vec![false; operands.len()];
            for body in cond.bodies() {
                for (needed, more) in needed.iter_mut().zip(needed_inputs(body, results)) {
                    *needed |= more;
                }
            }
            needed
        }
        Op::While(op) => {
            let mut states = results.to_vec();
            let mut needed = needed_loop_inputs(&op.body, &mut states);
            needed[..op.state].copy_from_slice(&states);
            needed
        }
        Op::Hook(hook) => match &hook.results {
            Some(types) => {
                let needs =
                    types.iter().zip(results).any(|(ty, &it)| it && is_continuous(ty.dtype));
                operands.iter().map(|&id| needs && is_continuous(graph.dtype(id))).collect()
            }
            None => results.to_vec(),
        },
        Op::Block(block) => needed_inputs(&block.body, results),
        Op::Elem(_) => unreachable!("a tuple element takes the tangent of its tuple"),
        op @ nxla_expr::outside!(control) => unreachable!("{} is of another family", op.name()),
    }
}

/// Creates a control node with the tangents of the results that need them. Only operands whose
/// tangents are needed have one.
pub(crate) fn jvp(graph: &mut Graph, op: &Op, operands: &[Dual], needed: &[bool]) -> Result<Duals> {
    match op {
        Op::Parameter(_) | Op::Constant(_) | Op::Tensor(_) => {
            make_without_tangents(graph, op, operands)
        }
        Op::Metadata(metadata) => jvp_metadata(graph, op, metadata, operands),
        Op::Cond(cond) => jvp_cond(graph, cond, operands, needed),
        Op::While(op) => jvp_loop(graph, op, operands, needed),
        Op::Hook(hook) => jvp_hook(graph, op, hook, operands, needed),
        Op::Block(block) => jvp_block(graph, op, block, operands, needed),
        Op::Elem(_) => unreachable!("the forward pass selects tuple elements itself"),
        op @ nxla_expr::outside!(control) => unreachable!("{} is of another family", op.name()),
    }
}

/// Passes the operand at the same position to each result.
fn pass_through(graph: &mut Graph, op: &Op, operands: &[Dual]) -> Result<Duals> {
    let node = graph.make(op.clone(), &values(operands))?;
    let tangents: Tangents = operands.iter().map(|operand| operand.tangent).collect();
    with_tangents(graph, node, tangents)
}

/// An annotation is the identity unless it stops the derivative or holds a custom rule.
fn jvp_metadata(
    graph: &mut Graph,
    op: &Op,
    metadata: &Metadata,
    operands: &[Dual],
) -> Result<Duals> {
    match &metadata.custom_grad {
        _ if metadata.stop_grad => make_without_tangents(graph, op, operands),
        Some(custom) => jvp_custom(graph, op, custom, operands),
        None => pass_through(graph, op, operands),
    }
}

/// Applies the custom rule to the tangents. A rule for cotangents must be linear; its transpose is
/// applied instead.
fn jvp_custom(graph: &mut Graph, op: &Op, custom: &CustomGrad, operands: &[Dual]) -> Result<Duals> {
    let node = graph.make(op.clone(), &values(operands))?;
    let declared = &operands[custom.declared_inputs()];
    let captures = super::captures(graph, node, custom, &values(operands))?;
    let found: Tangents = match custom.rule {
        RuleFor::Cotangents => {
            let seeds: Vec<Option<ExprId>> = declared.iter().map(|dual| dual.tangent).collect();
            let linear = Linear::of(custom);
            transpose(graph, &linear, &captures, &seeds)?.into_iter().collect()
        }
        RuleFor::Tangents => {
            let mut arguments = Vec::with_capacity(custom.program.inputs().len());
            for (dual, ty) in declared.iter().zip(custom.program.inputs()) {
                arguments.push(with_type(graph, dual.tangent, ty)?);
            }
            arguments.extend(captures);
            let found = custom.program.inline(graph, &arguments)?;
            let plain = found.into_iter().map(|id| builder::strip_names(graph, id).map(Some));
            plain.collect::<nxla_expr::Result<_>>()?
        }
    };
    with_tangents(graph, node, found)
}

/// A hook receives the values, and their tangents are passed on. The derivative of a runtime call
/// is unknown, so a tangent of an operand is an error unless it is zero or no result needs it.
fn jvp_hook(
    graph: &mut Graph,
    op: &Op,
    hook: &HookOp,
    operands: &[Dual],
    needed: &[bool],
) -> Result<Duals> {
    let Some(types) = &hook.results else { return pass_through(graph, op, operands) };
    let is_needed = types.iter().zip(needed).any(|(ty, &needed)| needed && is_continuous(ty.dtype));
    let varies = operands.iter().any(|operand| {
        let is_changed = operand.tangent.is_some_and(|tangent| !is_zero(graph, tangent));
        is_changed && is_continuous(graph.dtype(operand.value))
    });
    let node = graph.make(op.clone(), &values(operands))?;
    if is_needed && varies {
        Err(GradError::no_rule(graph, node, super::NO_DERIVATIVE))
    } else {
        with_tangents(graph, node, Tangents::new())
    }
}

/// A composite remains, because a compiler may have a faster implementation; its default body
/// computes the tangents. A composite with hooks is inlined.
fn jvp_block(
    graph: &mut Graph,
    op: &Op,
    block: &Block,
    operands: &[Dual],
    needed: &[bool],
) -> Result<Duals> {
    if !block.body.effects().is_empty() {
        return Ok(jvp_program(graph, &block.body, operands, needed)?.into_iter().collect());
    }
    if let BlockKind::Checkpoint { .. } = block.kind {
        return jvp_checkpoint(graph, op, block, operands, needed);
    }
    let node = graph.make(op.clone(), &values(operands))?;
    let inside = jvp_program(graph, &block.body, operands, needed)?;
    with_tangents(graph, node, inside.into_iter().map(|dual| dual.tangent).collect())
}

/// A checkpoint computes tangents together with its values, so that differentiating the result in
/// reverse mode does not store them either.
fn jvp_checkpoint(
    graph: &mut Graph,
    op: &Op,
    block: &Block,
    operands: &[Dual],
    needed: &[bool],
) -> Result<Duals> {
    let tangents = tangent_types(graph, operands);
    let inputs = Inputs::new(block.body.inputs(), 0, &tangents);
    let mut inside = Graph::with_options(graph.options());
    let parameters = inputs.parameters(&mut inside);
    let found = jvp_program(&mut inside, &block.body, &parameters, needed)?;
    let changes: Vec<bool> = found.iter().map(|dual| dual.tangent.is_some()).collect();
    if !changes.contains(&true) {
        return make_without_tangents(graph, op, operands);
    }
    let mut outputs: Vec<ExprId> = found.iter().map(|dual| dual.value).collect();
    outputs.extend(found.iter().filter_map(|dual| dual.tangent));
    let body = Arc::new(Program::new(&inside, inputs.types.clone(), &outputs)?);
    let passed = inputs.operands(graph, operands)?;
    let pushed = Block { body, ..block.clone() };
    let node = graph.make(Op::Block(Arc::new(pushed)), &passed)?;
    results(graph, node, &changes)
}

/// Returns the types of the existing tangents of operands.
fn tangent_types(graph: &Graph, operands: &[Dual]) -> Vec<Option<TensorType>> {
    let tangents = operands.iter().map(|dual| dual.tangent);
    tangents.map(|tangent| Some(graph.tensor_type(tangent?).clone())).collect()
}

/// The inputs of a differentiated region: the original inputs and the tangents that it receives.
struct Inputs {
    types: Vec<TensorType>,
    /// For each original input, its new index and the index of its tangent.
    places: Vec<(usize, Option<usize>)>,
}

impl Inputs {
    /// Creates inputs with a tangent for each entry of `tangents` that is a type. The first
    /// `states` inputs are the state of a loop; they come first, followed by their tangents.
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

    /// Creates parameters for all inputs, in the order of the original inputs.
    fn parameters(&self, graph: &mut Graph) -> Vec<Dual> {
        let ids = builder::parameters(graph, &self.types);
        let dual = |&(value, tangent): &(usize, Option<usize>)| Dual {
            value: ids[value],
            tangent: tangent.map(|at| ids[at]),
        };
        self.places.iter().map(dual).collect()
    }

    /// Returns the operands for all inputs.
    fn operands(&self, graph: &mut Graph, operands: &[Dual]) -> Result<Vec<ExprId>> {
        let mut passed = vec![None; self.types.len()];
        for (dual, &(value, tangent)) in operands.iter().zip(&self.places) {
            passed[value] = Some(dual.value);
            if let Some(at) = tangent {
                passed[at] = Some(with_type(graph, dual.tangent, &self.types[at])?);
            }
        }
        Ok(passed
            .into_iter()
            .map(|id| id.expect("every operand of a custom rule belongs to an input"))
            .collect())
    }

    /// Returns a region with these inputs that ignores the tangents.
    fn widen(&self, program: &Program) -> Result<Arc<Program>> {
        let mut graph = Graph::with_options(program.graph().options());
        let arguments: Vec<Option<ExprId>> =
            self.parameters(&mut graph).iter().map(|dual| Some(dual.value)).collect();
        let outputs = splice_all(program, &mut graph, &arguments, Hooks::Keep)?;
        Ok(Arc::new(Program::new(&graph, self.types.clone(), &outputs)?))
    }
}

/// Returns the type in which a region receives or returns the tangent of a value.
fn tangent_type(graph: &Graph, ty: &TensorType, operands: &[Dual]) -> TensorType {
    let around = operands.iter().filter_map(|operand| operand.tangent);
    let around: Vec<DType> = around.map(|tangent| graph.dtype(tangent)).collect();
    TensorType::new(cotangent_dtype(ty.dtype, around), ty.shape.clone())
}

/// Casts a tangent to a type, or creates zeros if it is missing.
fn with_type(graph: &mut Graph, tangent: Option<ExprId>, ty: &TensorType) -> Result<ExprId> {
    Ok(match tangent {
        Some(tangent) => builder::cast(graph, tangent, ty.dtype)?,
        None => full(graph, 0.0, ty.dtype, &ty.shape)?,
    })
}

/// Creates a loop that carries the tangents of the states that change and need tangents. The
/// initial tangent is zero for a state that changes only in a later iteration.
fn jvp_loop(graph: &mut Graph, op: &While, operands: &[Dual], needed: &[bool]) -> Result<Duals> {
    let mut changing: Vec<bool> = operands.iter().map(|dual| dual.tangent.is_some()).collect();
    mark_active_states(&op.body, &mut changing);
    let mut states = needed.to_vec();
    let mut wanted = needed_loop_inputs(&op.body, &mut states);
    wanted[..op.state].copy_from_slice(&states);
    let tangents: Vec<Option<TensorType>> = (0..operands.len())
        .map(|at| {
            let carries = changing[at] && wanted[at];
            carries.then(|| tangent_type(graph, &op.body.inputs()[at], operands))
        })
        .collect();
    let carried: Vec<bool> = tangents[..op.state].iter().map(Option::is_some).collect();
    if !carried.contains(&true) {
        return make_without_tangents(graph, &Op::While(Arc::new(op.clone())), operands);
    }
    let inputs = Inputs::new(op.body.inputs(), op.state, &tangents);
    let mut inside = Graph::with_options(graph.options());
    let parameters = inputs.parameters(&mut inside);
    let found = jvp_program(&mut inside, &op.body, &parameters, &carried)?;
    let mut outputs: Vec<ExprId> = found.iter().map(|dual| dual.value).collect();
    for (dual, ty) in found.iter().zip(&tangents) {
        if let Some(ty) = ty {
            outputs.push(with_type(&mut inside, dual.tangent, ty)?);
        }
    }
    let body = Arc::new(Program::new(&inside, inputs.types.clone(), &outputs)?);
    let condition = inputs.widen(&op.condition)?;
    let passed = inputs.operands(graph, operands)?;
    let pushed = While { state: outputs.len(), condition, body, replay: op.replay };
    let node = graph.make(Op::While(Arc::new(pushed)), &passed)?;
    results(graph, node, &carried)
}

/// Returns the results of a differentiated region: values, then the tangents of the marked values.
fn results(graph: &mut Graph, node: ExprId, marked: &[bool]) -> Result<Duals> {
    let parts = graph.parts(node)?;
    let (values, tangents) = parts.split_at(marked.len());
    let mut tangents = tangents.iter().copied();
    let tangent = |marked: bool| if marked { tangents.next() } else { None };
    let tangents: Vec<Option<ExprId>> = marked.iter().copied().map(tangent).collect();
    let duals = values.iter().zip(tangents).map(|(&value, tangent)| Dual { value, tangent });
    Ok(duals.collect())
}

/// Creates a conditional whose branches also compute tangents. A branch returns zeros for a tangent
/// that only another branch has.
fn jvp_cond(graph: &mut Graph, cond: &Cond, operands: &[Dual], needed: &[bool]) -> Result<Duals> {
    let op = Op::Cond(Arc::new(cond.clone()));
    let tangents = tangent_types(graph, operands);
    let inputs = Inputs::new(cond.otherwise.inputs(), 0, &tangents);
    let mut branches = Vec::with_capacity(cond.clauses.len() + 1);
    for body in cond.bodies() {
        let mut inside = Graph::with_options(graph.options());
        let parameters = inputs.parameters(&mut inside);
        let found = jvp_program(&mut inside, body, &parameters, needed)?;
        branches.push((inside, found));
    }
    let changes: Vec<bool> = (0..needed.len())
        .map(|at| branches.iter().any(|(_, found)| found[at].tangent.is_some()))
        .collect();
    if !changes.contains(&true) {
        return make_without_tangents(graph, &op, operands);
    }
    let types: Vec<TensorType> =
        cond.otherwise.output_types().map(|ty| tangent_type(graph, ty, operands)).collect();
    let mut bodies = Vec::with_capacity(branches.len());
    for (mut inside, found) in branches {
        let mut outputs: Vec<ExprId> = found.iter().map(|dual| dual.value).collect();
        for ((dual, ty), _) in found.iter().zip(&types).zip(&changes).filter(|(_, it)| **it) {
            outputs.push(with_type(&mut inside, dual.tangent, ty)?);
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
