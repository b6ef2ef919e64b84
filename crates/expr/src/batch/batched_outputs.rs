//! An analysis that finds the results that differ between the entries of a batch.
//!
//! The analysis follows the batching rules without building nodes, so that the rules of regions know
//! the results of a region before they batch it.

use smallvec::SmallVec;

use crate::graph::{
    Block, BlockKind, Cond, Fact, Family, Metadata, Op, Program, Sources, While,
    close_over_iterations,
};

impl Program {
    /// Returns for each output whether its value depends on an input that is marked; `inputs` has an
    /// entry for each input. The analysis visits regions: a state of a loop depends on another state
    /// only if an iteration uses it.
    ///
    /// ```
    /// use nxla_expr::{Graph, Program, TensorType};
    /// use nxla_tensor::DType;
    ///
    /// let ty = TensorType::new(DType::F32, [3]);
    /// let mut graph = Graph::new();
    /// let x = graph.parameter(0, ty.clone());
    /// let y = graph.parameter(1, ty.clone());
    /// let outputs = [graph.sin(x)?, graph.add(x, y)?];
    /// let program = Program::new(&graph, vec![ty.clone(), ty], &outputs)?;
    /// assert_eq!(program.dependent_outputs(&[false, true]), [false, true]);
    /// # Ok::<(), nxla_expr::Error>(())
    /// ```
    #[must_use]
    pub fn dependent_outputs(&self, inputs: &[bool]) -> Vec<bool> {
        // A value has batch axes if it depends on an input with batch axes.
        batched_outputs(self, inputs)
    }
}

/// The facts about the results of a node.
type Parts<F> = SmallVec<[F; 1]>;

/// Returns the facts about the outputs of a program with these facts about its inputs. With `bool`,
/// a fact is whether the value has batch axes; with [`Sources`], the inputs that add batch axes.
pub(super) fn batched_outputs<F: Fact>(program: &Program, inputs: &[F]) -> Vec<F> {
    let graph = program.graph();
    let outputs = program.outputs();
    if inputs.iter().all(F::is_empty) {
        return vec![F::default(); outputs.len()];
    }
    let reachable = graph.reachable(outputs);
    let count = outputs.iter().max().map_or(0, |last| last.index() + 1);
    let mut facts: Vec<Parts<F>> = Vec::with_capacity(count);
    for id in graph.ids().take(count) {
        if !reachable.contains(id) {
            facts.push(Parts::new());
            continue;
        }
        let operands = graph.operands(id);
        facts.push(match graph.op(id) {
            Op::Parameter(parameter) => {
                Parts::from_elem(inputs[parameter.index as usize].clone(), 1)
            }
            Op::Elem(index) => Parts::from_elem(facts[operands[0].index()][*index].clone(), 1),
            op => {
                let operands: Vec<F> =
                    operands.iter().map(|id| facts[id.index()][0].clone()).collect();
                node(op, &operands, graph.ty(id).parts().len())
            }
        });
    }
    outputs.iter().map(|id| facts[id.index()][0].clone()).collect()
}

/// Returns the facts about the results of a node.
fn node<F: Fact>(op: &Op, operands: &[F], count: usize) -> Parts<F> {
    if operands.iter().all(F::is_empty) {
        return Parts::from_elem(F::default(), count);
    }
    if op.family() != Family::Control {
        return Parts::from_elem(F::union(operands), count);
    }
    match op {
        Op::Metadata(metadata) => annotation(metadata, operands),
        Op::Hook(hook) if hook.results.is_some() => Parts::from_elem(F::union(operands), count),
        Op::Hook(_) => operands.into(),
        Op::Cond(cond) => conditional(cond, operands),
        Op::While(op) => repetition(op, operands),
        Op::Block(op) => block(op, operands, count),
        Op::Parameter(_) | Op::Constant(_) | Op::Tensor(_) | Op::Elem(_) => {
            unreachable!("{} has no operands, or is a part of its operand", op.name())
        }
        op @ crate::outside!(control) => unreachable!("{} is of another family", op.name()),
    }
}

/// The output of a custom rule differs between entries if an input of the rule does.
fn annotation<F: Fact>(metadata: &Metadata, operands: &[F]) -> Parts<F> {
    let Some(custom) = &metadata.custom_grad else { return operands.into() };
    let (outputs, rest) = operands.split_at(custom.outputs);
    let rest = F::union(rest);
    outputs.iter().map(|output| F::union([output, &rest])).collect()
}

/// If a predicate differs between entries, all results do.
fn conditional<F: Fact>(cond: &Cond, operands: &[F]) -> Parts<F> {
    let (results, predicates) = branch_outputs(cond, operands);
    results.iter().map(|result| F::union([result, &predicates])).collect()
}

/// Returns the facts about the outputs of the branches of a conditional together, and the fact about
/// its predicates.
pub(super) fn branch_outputs<F: Fact>(cond: &Cond, operands: &[F]) -> (Vec<F>, F) {
    let mut results = batched_outputs(&cond.otherwise, operands);
    let mut predicates = F::default();
    for (predicate, body) in &cond.clauses {
        predicates.merge(&F::union(&batched_outputs(predicate, operands)));
        for (result, output) in results.iter_mut().zip(batched_outputs(body, operands)) {
            result.merge(&output);
        }
    }
    (results, predicates)
}

/// If the condition differs between entries, all states do.
fn repetition<F: Fact>(op: &While, operands: &[F]) -> Parts<F> {
    let (inputs, condition) = loop_inputs(op, operands);
    inputs[..op.state].iter().map(|state| F::union([state, &condition])).collect()
}

/// Returns the facts about the inputs of the body of a loop after any number of iterations, and the
/// fact about the condition.
pub(super) fn loop_inputs<F: Fact>(op: &While, operands: &[F]) -> (Vec<F>, F) {
    let mut inputs = operands.to_vec();
    let sources = Sources::of_inputs(inputs.len());
    close_over_iterations(&batched_outputs(&op.body, &sources), &mut inputs);
    let condition = F::union(&batched_outputs(&op.condition, &inputs));
    (inputs, condition)
}

fn block<F: Fact>(block: &Block, operands: &[F], count: usize) -> Parts<F> {
    match block.kind {
        // These blocks have batching rules of their own, whose results have batch axes.
        BlockKind::Scatter { .. } | BlockKind::Search(_) => {
            Parts::from_elem(F::union(operands), count)
        }
        BlockKind::Cumulative { .. }
        | BlockKind::TopK { .. }
        | BlockKind::Checkpoint { .. }
        | BlockKind::Named { .. }
        | BlockKind::Threefry { .. }
        | BlockKind::Factorize(_)
        | BlockKind::Solve { .. } => batched_outputs(&block.body, operands).into(),
    }
}
