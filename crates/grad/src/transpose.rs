//! Turning a linear function around.
//!
//! A user gives a derivative in one direction: how cotangents go back, or how tangents go on. The
//! other direction is its transpose, which one sweep over the rule gives. That is only true of a
//! rule that is linear; one that clips what it gets has no other direction, and this is noticed: the
//! transpose of a linear function does not depend on where it is taken.

use nxla_expr::{CustomGrad, ExprId, Graph, Program, RuleFor, TensorType};

use crate::emit;
use crate::error::{GradError, Result};
use crate::region::{Hooks, splice};
use crate::sweep::pull;

/// A program that is linear in its first arguments; the others are captures.
pub(crate) struct Linear<'a> {
    program: &'a Program,
    /// How many arguments it is linear in.
    arguments: usize,
    rule: RuleFor,
}

impl<'a> Linear<'a> {
    /// A user's rule.
    pub(crate) fn of(custom: &'a CustomGrad) -> Self {
        Linear { program: &custom.program, arguments: custom.changes(), rule: custom.rule }
    }
}

/// What the transpose of a linear program gives for each argument, from one value for each output.
/// Values have the shapes that the outputs stand for, to which these may broadcast.
pub(crate) fn transpose(
    graph: &mut Graph,
    linear: &Linear<'_>,
    captures: &[ExprId],
    seeds: &[Option<ExprId>],
) -> Result<Vec<Option<ExprId>>> {
    let Linear { program, arguments, rule } = *linear;
    let given: Vec<usize> = (0..seeds.len()).filter(|&at| seeds[at].is_some()).collect();
    let seeds: Vec<ExprId> = seeds.iter().copied().flatten().collect();
    let mut inside = Graph::with_options(graph.options());
    let mut types: Vec<TensorType> = program.inputs().to_vec();
    types.extend(seeds.iter().map(|&seed| graph.tensor_type(seed).clone()));
    let parameters: Vec<ExprId> =
        types.iter().enumerate().map(|(at, ty)| inside.parameter(at, ty.clone())).collect();
    let (inputs, flowing) = parameters.split_at(program.inputs().len());
    let passed: Vec<Option<ExprId>> = inputs.iter().copied().map(Some).collect();
    let outputs = splice(program, &mut inside, &passed, &given, Hooks::Drop)?;
    let mut cotangents = Vec::with_capacity(outputs.len());
    for (&output, &seed) in outputs.iter().zip(flowing) {
        let shape = inside.shape(output).clone();
        cotangents.push(emit::unbroadcast(&mut inside, seed, &shape)?);
    }
    let found = pull(&mut inside, &outputs, &cotangents, &inputs[..arguments])?;
    let results: Vec<ExprId> = found.iter().copied().flatten().collect();
    let reached = inside.reachable(&results);
    if inputs[..arguments].iter().any(|&argument| reached.contains(argument)) {
        let line = graph.current_line();
        let op = match rule {
            RuleFor::Cotangents => "custom_grad",
            RuleFor::Tangents => "custom_jvp",
        };
        return Err(GradError::NotLinear { op, line });
    }
    let transposed = Program::new(&inside, types, &results)?;
    let mut passed: Vec<Option<ExprId>> = vec![None; arguments];
    passed.extend(captures.iter().chain(&seeds).copied().map(Some));
    let all: Vec<usize> = (0..results.len()).collect();
    let mut results = splice(&transposed, graph, &passed, &all, Hooks::Keep)?.into_iter();
    Ok(found.iter().map(|found| found.and_then(|_| results.next())).collect())
}
