//! Batching rules of control ops: regions, annotations and hooks.
//!
//! If all entries share the predicate, the region remains and contains a batched program. If
//! predicates differ between entries, the conditional becomes a selection between results.

use std::sync::Arc;

use nxla_tensor::{DType, Scalar};

use super::batched_outputs::{branch_outputs, loop_inputs};
use super::batcher::{Batched, Batcher, Parts, batched_type, ids};
use crate::graph::{
    Block, BlockKind, Cond, CustomGrad, ErrorKind, ExprId, Metadata, Op, Operands, Program, Result,
    RuleFor, TensorType, Type, While, counter,
};

pub(super) fn batch(
    batcher: &mut Batcher<'_>,
    op: &Op,
    operands: &[Batched],
    ty: &Type,
) -> Result<Parts> {
    match op {
        Op::Parameter(_) | Op::Constant(_) | Op::Tensor(_) => {
            unreachable!("{} has no operand with batch axes", op.name())
        }
        Op::Elem(_) => unreachable!("elem is the part of a node that is batched"),
        Op::Metadata(metadata) => annotation(batcher, metadata, operands),
        Op::Hook(hook) if hook.results.is_some() => {
            let why = "a host function is not called for each entry of a batch; make the call \
                       outside, on all entries";
            Err(batcher.graph.error(op.name(), ErrorKind::invalid("function", why)))
        }
        Op::Hook(_) => {
            let node = batcher.make(op.clone(), &ids(operands))?;
            batcher.parts(node, marks(operands))
        }
        Op::Cond(cond) => conditional(batcher, cond, operands, ty),
        Op::While(op) => repetition(batcher, op, operands),
        Op::Block(op) => block(batcher, op, operands),
        op @ crate::outside!(control) => unreachable!("{} is of another family", op.name()),
    }
}

impl Batcher<'_> {
    /// Returns the results of a node.
    fn parts(&mut self, node: ExprId, marks: impl IntoIterator<Item = bool>) -> Result<Parts> {
        let ids = self.graph.parts(node)?;
        Ok(ids.into_iter().zip(marks).map(|(id, batched)| Batched { id, batched }).collect())
    }

    /// Copies the nodes of a program.
    fn inline(&mut self, program: &Program, arguments: &[Batched]) -> Result<Vec<Batched>> {
        self.run(program.graph(), program.outputs(), arguments)
    }

    /// Converts a predicate to `pred` with one value for each entry.
    fn predicate_mask(&mut self, predicate: Batched) -> Result<ExprId> {
        let id = self.lift(predicate)?;
        self.graph.as_type(id, DType::Pred)
    }

    /// Selects `on_true` for the entries where `mask` is true.
    fn choose(&mut self, mask: ExprId, on_true: ExprId, on_false: ExprId) -> Result<ExprId> {
        let rank = self.graph.shape(on_true).rank() - self.depth();
        let mask = self.widen(Batched::each(mask), rank)?;
        self.graph.select(mask, on_true, on_false)
    }

    /// Returns the used operands with safe values: entries outside `mask` have the values of
    /// another entry.
    fn fill_entries(
        &mut self,
        mask: ExprId,
        operands: &[Batched],
        used: &[bool],
    ) -> Result<Vec<Batched>> {
        let mut filled = operands.to_vec();
        for (operand, _) in filled.iter_mut().zip(used).filter(|(x, used)| x.batched && **used) {
            operand.id = self.graph.fill_entries(mask, operand.id)?;
        }
        Ok(filled)
    }

    /// Lifts the operands that are marked.
    fn lift_marked(&mut self, operands: &[Batched], marks: &[bool]) -> Result<Vec<Batched>> {
        let mut result = operands.to_vec();
        for (operand, &mark) in result.iter_mut().zip(marks) {
            if mark {
                *operand = Batched::each(self.lift(*operand)?);
            }
        }
        Ok(result)
    }
}

fn marks(operands: &[Batched]) -> Vec<bool> {
    operands.iter().map(|operand| operand.batched).collect()
}

/// Batches an annotation. If an input or a capture of a custom rule differs between entries, the derivative of a shared
/// output differs too, so the output is not shared any more.
fn annotation(b: &mut Batcher<'_>, metadata: &Metadata, operands: &[Batched]) -> Result<Parts> {
    let Some(custom) = &metadata.custom_grad else {
        let node = b.make(Op::Metadata(Box::new(metadata.clone())), &ids(operands))?;
        return b.parts(node, marks(operands));
    };
    let (outputs, rest) = operands.split_at(custom.outputs);
    let differs = rest.iter().any(|operand| operand.batched);
    let marks: Vec<bool> = outputs.iter().map(|output| output.batched || differs).collect();
    let program = match custom.rule {
        RuleFor::Tangents => {
            custom.program.add_batch_axes_as(&self::marks(rest), b.sizes, Some(&marks))?.0
        }
        RuleFor::Cotangents => cotangents(b, custom, &marks, rest)?,
    };
    let mut all = Operands::new();
    for (&output, &batched) in outputs.iter().zip(&marks) {
        all.push(if batched { b.lift(output)? } else { output.id });
    }
    all.extend(ids(rest));
    let custom_grad = Some(CustomGrad { program: Arc::new(program), ..custom.clone() });
    let metadata = Metadata { custom_grad, ..metadata.clone() };
    let node = b.make(Op::Metadata(Box::new(metadata)), &all)?;
    b.parts(node, marks)
}

/// Batches a custom rule for cotangents. The cotangents of an input that entries share add up.
fn cotangents(
    b: &Batcher<'_>,
    custom: &CustomGrad,
    outputs: &[bool],
    rest: &[Batched],
) -> Result<Program> {
    let (inputs, captures) = rest.split_at(custom.inputs);
    let captures = captures.iter().map(|operand| operand.batched);
    let arguments: Vec<bool> = outputs.iter().copied().chain(captures).collect();
    let (program, found) =
        custom.program.add_batch_axes_as(&arguments, b.sizes, Some(&marks(inputs)))?;
    let mut graph = crate::Graph::with_options(program.graph().options());
    let types = program.inputs().to_vec();
    let parameters: Vec<ExprId> =
        types.iter().enumerate().map(|(index, ty)| graph.parameter(index, ty.clone())).collect();
    let mut results = program.inline(&mut graph, &parameters)?;
    let batch: Vec<i64> = (0..).take(b.depth()).collect();
    for ((result, found), input) in results.iter_mut().zip(found).zip(inputs) {
        if found && !input.batched {
            let dtype = graph.dtype(*result);
            let sum = graph.sum(*result, Some(&batch), false)?;
            *result = graph.as_type(sum, dtype)?;
        }
    }
    Program::new(&graph, types, &results)
}

fn block(b: &mut Batcher<'_>, block: &Block, operands: &[Batched]) -> Result<Parts> {
    if let BlockKind::Scatter { op } = block.kind {
        let result = super::index::scatter(b, op, operands)?;
        return Ok([Batched::each(result)].into_iter().collect());
    }
    if let (BlockKind::Search(order), [sorted, x]) = (&block.kind, operands)
        && !sorted.batched
    {
        let result = b.graph.search(sorted.id, x.id, *order)?;
        return Ok([Batched::each(result)].into_iter().collect());
    }
    let (body, results) = block.body.add_batch_axes(&marks(operands), b.sizes)?;
    let (kind, batch_axes) = (block.kind.clone(), block.batch_axes + b.depth());
    let block = Block { kind, batch_axes, body: Arc::new(body) };
    let node = b.make(Op::Block(Arc::new(block)), &ids(operands))?;
    b.parts(node, results)
}

fn conditional(b: &mut Batcher<'_>, cond: &Cond, operands: &[Batched], ty: &Type) -> Result<Parts> {
    let inputs = marks(operands);
    let (results, predicates_differ) = branch_outputs(cond, &inputs);
    if predicates_differ {
        return choice(b, cond, operands, ty);
    }
    let branch = |program: &Program| -> Result<Arc<Program>> {
        Ok(Arc::new(program.add_batch_axes_as(&inputs, b.sizes, Some(&results))?.0))
    };
    let clause = |(predicate, body): &(Arc<Program>, Arc<Program>)| {
        let predicate = Arc::new(predicate.add_batch_axes(&inputs, b.sizes)?.0);
        Ok((predicate, branch(body)?))
    };
    let clauses = cond.clauses.iter().map(clause).collect::<Result<_>>()?;
    let otherwise = branch(&cond.otherwise)?;
    let node = b.make(Op::Cond(Arc::new(Cond { clauses, otherwise })), &ids(operands))?;
    b.parts(node, results)
}

/// Batches a conditional whose entries take different branches: each branch that some entry takes
/// is computed for all entries, and each entry selects its result.
fn choice(b: &mut Batcher<'_>, cond: &Cond, operands: &[Batched], ty: &Type) -> Result<Parts> {
    let mask_type = TensorType::new(DType::Pred, b.sizes.to_vec());
    let mut undecided = b.graph.constant(Scalar::one(DType::Pred), mask_type)?;
    let mut chosen: Vec<(ExprId, Vec<ExprId>)> = Vec::new();
    for (predicate, body) in &cond.clauses {
        let holds = b.inline(predicate, operands)?[0];
        let holds = b.predicate_mask(holds)?;
        let takes = b.graph.logical_and(undecided, holds)?;
        let fails = b.graph.logical_not(holds)?;
        undecided = b.graph.logical_and(undecided, fails)?;
        chosen.push((takes, run_if_any(b, takes, body, operands, ty)?));
    }
    let mut results = run_if_any(b, undecided, &cond.otherwise, operands, ty)?;
    for (takes, values) in chosen.into_iter().rev() {
        for (result, value) in results.iter_mut().zip(values) {
            *result = b.choose(takes, value, *result)?;
        }
    }
    Ok(results.into_iter().map(Batched::each).collect())
}

/// Returns the results of a branch if any entry takes it, and zeros otherwise.
fn run_if_any(
    b: &mut Batcher<'_>,
    takes: ExprId,
    body: &Program,
    operands: &[Batched],
    ty: &Type,
) -> Result<Vec<ExprId>> {
    let any = b.graph.any(takes, None, false)?;
    let mark = b.graph.mark();
    let operands = b.fill_entries(takes, operands, &body.used_inputs())?;
    let results = b.inline(body, &operands)?;
    let results = b.lift_all(&results)?.to_vec();
    let branch = b.graph.traced(mark, results);
    let start = b.graph.mark();
    let mut zeros = Vec::new();
    for ty in ty.parts() {
        let ty = batched_type(ty, b.sizes);
        zeros.push(b.graph.constant(Scalar::zero(ty.dtype), ty)?);
    }
    let zeros = b.graph.traced(start, zeros);
    let predicate = b.graph.traced(b.graph.mark(), vec![any]);
    b.graph.cond(mark, vec![(predicate, branch)], zeros)
}

fn repetition(b: &mut Batcher<'_>, op: &While, operands: &[Batched]) -> Result<Parts> {
    // The body can make a state differ between entries even if its initial value is shared.
    let (inputs, condition_differs) = loop_inputs(op, &marks(operands));
    if condition_differs {
        return batch_masked_loop(b, op, operands);
    }
    let state = inputs[..op.state].to_vec();
    let condition = Arc::new(op.condition.add_batch_axes(&inputs, b.sizes)?.0);
    let (body, found) = op.body.add_batch_axes_as(&inputs, b.sizes, Some(&state))?;
    assert_eq!(found, state, "the analysis of the body agrees with the batching rules");
    let body = Arc::new(body);
    let operands = b.lift_marked(operands, &inputs)?;
    let node = While { state: op.state, condition, body, replay: op.replay };
    let node = b.make(Op::While(Arc::new(node)), &ids(&operands))?;
    b.parts(node, state)
}

/// Batches a loop whose entries have different trip counts: the loop runs while any entry
/// continues. The mask of the continuing entries is part of the state.
///
/// A finished entry is recomputed from the state before its last iteration, for which the body is
/// defined; this state is part of the state too. An entry without iterations uses the values of an
/// entry with iterations.
///
/// If the loop is bounded, a counter that all entries share bounds the new loop: a derivative can
/// then store values of each iteration.
fn batch_masked_loop(b: &mut Batcher<'_>, op: &While, operands: &[Batched]) -> Result<Parts> {
    let (state, captures) = operands.split_at(op.state);
    let initial: Vec<Batched> = b.lift_all(state)?.into_iter().map(Batched::each).collect();
    let goes_on = |b: &mut Batcher<'_>, state: &[Batched]| -> Result<ExprId> {
        let arguments: Vec<Batched> = state.iter().chain(captures).copied().collect();
        let holds = b.inline(&op.condition, &arguments)?[0];
        b.predicate_mask(holds)
    };
    let mask = goes_on(b, &initial)?;
    let used = op.body.used_inputs();
    let (used_state, used_captures) = used.split_at(op.state);
    let safe = b.fill_entries(mask, &initial, used_state)?;
    let safe_captures = b.fill_entries(mask, captures, used_captures)?;
    let counter = counter(b.graph, op, &ids(operands));
    let bound = counter.and_then(|counter| i64::try_from(counter.trips).ok());
    let mut count = |number| b.graph.scalar_constant(Scalar::Int(number), DType::S64);
    let (zero, one, end) = (count(0)?, count(1)?, bound.map(count).transpose()?);
    let mut operands: Operands =
        [mask].into_iter().chain(ids(&initial)).chain(ids(&safe)).collect();
    operands.extend(end.map(|_| zero));
    let types: Vec<TensorType> =
        operands.iter().map(|&id| b.graph.tensor_type(id).clone()).collect();

    let mark = b.graph.mark();
    let scope = b.graph.open_scope("while", &types);
    let (&mask, states) = scope.parameters.split_first().expect("the mask is a parameter");
    let (old, rest) = states.split_at(op.state);
    let (safe, count) = rest.split_at(op.state);
    let start = b.graph.mark();
    let mut continues = b.graph.any(mask, None, false)?;
    if let (&[count], Some(end)) = (count, end) {
        let is_below = b.graph.less(count, end)?;
        continues = b.graph.logical_and(is_below, continues)?;
    }
    let condition = b.graph.traced(start, vec![continues]);
    let start = b.graph.mark();
    let inputs = b.safe_state(mask, old, safe)?;
    let arguments: Vec<Batched> =
        inputs.iter().copied().map(Batched::each).chain(safe_captures).collect();
    let new = b.inline(&op.body, &arguments)?;
    let mut next = Vec::new();
    for (new, &old) in new.into_iter().zip(old) {
        let new = b.lift(new)?;
        next.push(Batched::each(b.choose(mask, new, old)?));
    }
    let holds = goes_on(b, &next)?;
    let mut results = vec![b.graph.logical_and(mask, holds)?];
    results.extend(ids(&next));
    results.extend(inputs);
    for &count in count {
        results.push(b.graph.add(count, one)?);
    }
    let body = b.graph.traced(start, results);
    let results = b.graph.while_loop_with(mark, &scope, &operands, (condition, body), op.replay)?;
    Ok(results.into_iter().skip(1).take(op.state).map(Batched::each).collect())
}

impl Batcher<'_> {
    /// Returns the state from which an iteration is computed. For finished entries, it is a
    /// constant copy of the state before their last iteration.
    fn safe_state(
        &mut self,
        mask: ExprId,
        state: &[ExprId],
        before: &[ExprId],
    ) -> Result<Vec<ExprId>> {
        let mut safe = Vec::with_capacity(state.len());
        for (&state, &before) in state.iter().zip(before) {
            let before = self.graph.stop_grad(before)?;
            safe.push(self.choose(mask, state, before)?);
        }
        Ok(safe)
    }
}
