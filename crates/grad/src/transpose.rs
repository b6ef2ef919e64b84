//! Transposition of linear functions.
//!
//! A custom rule defines the derivative in one mode: the cotangents of the inputs, or the tangents
//! of the outputs. The rule of the other mode is the transpose, computed by one reverse pass over
//! the rule. This holds only for a linear rule. A rule that clips its argument is rejected: the
//! cotangents of a linear function do not depend on the point at which the function is
//! differentiated.
//!
//! The transpose does not call the hooks of the rule itself. A custom rule inside the rule is
//! rejected if one of its hooks reads an argument, because the transpose does not receive the
//! argument.

use nxla_expr::{CustomGrad, ExprId, Graph, Program, RuleFor, TensorType};
use nxla_tensor::Scalar;

use crate::builder;
use crate::error::{GradError, Result};
use crate::region::{Hooks, splice, splice_all};
use crate::reverse::backpropagate;

/// A program that is linear in its leading arguments; its other inputs are captures.
pub(crate) struct Linear<'a> {
    program: &'a Program,
    /// The number of arguments in which the program is linear.
    arguments: usize,
    rule: RuleFor,
}

impl<'a> Linear<'a> {
    /// Creates the linear function of a custom rule.
    pub(crate) fn of(custom: &'a CustomGrad) -> Self {
        Linear { program: &custom.program, arguments: custom.changes(), rule: custom.rule }
    }
}

/// Applies the transpose of a linear program: returns a value for each argument from `seeds`, one
/// for each output. An output may have fewer elements than its seed, to whose shape it broadcasts.
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
    let parameters = builder::parameters(&mut inside, &types);
    let (inputs, flowing) = parameters.split_at(program.inputs().len());
    let passed: Vec<Option<ExprId>> = inputs.iter().copied().map(Some).collect();
    let outputs = splice(program, &mut inside, &passed, &given, Hooks::Drop)?;
    let mut cotangents = Vec::with_capacity(outputs.len());
    for (&output, &seed) in outputs.iter().zip(flowing) {
        let shape = inside.shape(output).clone();
        cotangents.push(builder::unbroadcast(&mut inside, seed, &shape)?);
    }
    let found = backpropagate(&mut inside, &outputs, &cotangents, &inputs[..arguments])?;
    let results: Vec<ExprId> = found.iter().copied().flatten().collect();
    let transposed = Program::new(&inside, types, &results)?;
    if depends_on_arguments(&transposed, arguments) {
        let line = graph.current_line();
        let op = rule.function_name();
        return Err(GradError::NotLinear { op, line });
    }
    // A loop may compute coefficients of the rule together with values that depend on the
    // arguments. Nothing uses those values, so the arguments are zeros.
    let mut passed = Vec::with_capacity(transposed.inputs().len());
    for (ty, is_used) in transposed.inputs()[..arguments].iter().zip(transposed.used_inputs()) {
        let zeros = is_used.then(|| graph.constant(Scalar::zero(ty.dtype), ty.clone()));
        passed.push(zeros.transpose()?);
    }
    passed.extend(captures.iter().chain(&seeds).copied().map(Some));
    let mut results = splice_all(&transposed, graph, &passed, Hooks::Keep)?.into_iter();
    Ok(found.iter().map(|found| found.and_then(|_| results.next())).collect())
}

/// Returns whether an output or a hook of a program depends on one of its leading inputs.
fn depends_on_arguments(program: &Program, arguments: usize) -> bool {
    let is_argument: Vec<bool> = (0..program.inputs().len()).map(|at| at < arguments).collect();
    let observed = program.graph().reachable(program.effects());
    program.dependent_outputs(&is_argument).contains(&true)
        || program.parameters()[..arguments].iter().any(|&argument| observed.contains(argument))
}
