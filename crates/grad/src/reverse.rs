//! Reverse mode: propagating cotangents from the outputs to the inputs.
//!
//! Side tables are flat and cover only the ids between the first input and the last output. The
//! derivative of a small region at the end of a large graph therefore costs only the size of the
//! region.

use nxla_expr::rewrite::Substitution;
use nxla_expr::{ExprId, Graph, Op, Operands, TensorType};
use nxla_tensor::DType;

use crate::active::Active;
use crate::builder;
use crate::error::{GradError, Result};
use crate::rules;

/// Appends the gradient of the sum of `output` with respect to each of `wrt` to the graph.
///
/// Result `i` has the shape and axis names of `wrt[i]`. It also has the dtype of a float or complex
/// input; the gradient of an integer is a float. The gradient is zero if `output` does not depend
/// on the input. See the [crate documentation](crate) for the conventions.
///
/// # Errors
/// Returns `NotATensor` if `output` or an input is a tuple, `NotDifferentiable` if an op without a
/// derivative rule lies between an input and `output`, and the errors of custom rules.
pub fn gradients(graph: &mut Graph, output: ExprId, wrt: &[ExprId]) -> Result<Vec<ExprId>> {
    Ok(values_and_gradients(graph, &[], output, wrt)?.1)
}

/// Appends the gradients like [`gradients`], and also returns nodes equal to `values`. The
/// derivative may already compute nodes that `values` need; a caller that uses the returned nodes
/// does not compute them twice.
///
/// # Errors
/// Returns the errors of [`gradients`].
pub fn values_and_gradients(
    graph: &mut Graph,
    values: &[ExprId],
    output: ExprId,
    wrt: &[ExprId],
) -> Result<(Vec<ExprId>, Vec<ExprId>)> {
    let ty = tensor_type(graph, output, "output")?;
    let (dtype, shape) = (ty.dtype.to_floating(), ty.shape.clone());
    let seed = builder::full(graph, 1.0, dtype, &shape)?;
    values_and_vjp(graph, values, (&[output], &[seed]), wrt)
}

/// Appends the vector-Jacobian product to the graph: the sum over outputs of `cotangents[i]` times
/// the derivative of `outputs[i]` with respect to each of `wrt`.
///
/// The results have the types of [`gradients`], which is the case of one output and a cotangent of
/// ones.
///
/// # Errors
/// Returns the errors of [`gradients`], `Count` if the number of cotangents differs from the number
/// of outputs, and `Cotangent` if a cotangent has another shape than its output.
pub fn vjp(
    graph: &mut Graph,
    outputs: &[ExprId],
    cotangents: &[ExprId],
    wrt: &[ExprId],
) -> Result<Vec<ExprId>> {
    Ok(values_and_vjp(graph, &[], (outputs, cotangents), wrt)?.1)
}

/// Computes [`values_and_gradients`] for several outputs and their cotangents.
pub(crate) fn values_and_vjp(
    graph: &mut Graph,
    values: &[ExprId],
    (outputs, cotangents): (&[ExprId], &[ExprId]),
    wrt: &[ExprId],
) -> Result<(Vec<ExprId>, Vec<ExprId>)> {
    if outputs.len() != cotangents.len() {
        let (outputs, cotangents) = (outputs.len(), cotangents.len());
        return Err(GradError::Count { outputs, cotangents });
    }
    for (&output, &cotangent) in outputs.iter().zip(cotangents) {
        let expected = tensor_type(graph, output, "output")?;
        let found = tensor_type(graph, cotangent, "cotangent")?;
        if found.shape != expected.shape {
            let (found, expected) = (Box::new(found.clone()), Box::new(expected.clone()));
            return Err(GradError::Cotangent { found, expected });
        }
    }
    for &input in wrt {
        tensor_type(graph, input, "input")?;
    }
    let mut found = pass_through(graph, outputs, cotangents, wrt)?;
    let mut roots: Vec<ExprId> = wrt
        .iter()
        .zip(&found.cotangents)
        .map(|(&input, &cotangent)| result(graph, input, cotangent))
        .collect::<Result<_>>()?;
    roots.extend(values);
    found.substitute_replaced(graph, &mut roots)?;
    let values = roots.split_off(wrt.len());
    Ok((values, roots))
}

fn tensor_type<'g>(graph: &'g Graph, id: ExprId, argument: &'static str) -> Result<&'g TensorType> {
    let ty = graph.ty(id);
    ty.as_tensor().ok_or_else(|| GradError::NotATensor { argument, found: Box::new(ty.clone()) })
}

/// Converts a cotangent to the dtype and the axis names of the input.
fn result(graph: &mut Graph, input: ExprId, cotangent: Option<ExprId>) -> Result<ExprId> {
    let ty = graph.tensor_type(input).clone();
    let cotangent = match cotangent {
        Some(cotangent) if ty.dtype == ty.dtype.to_floating() => {
            builder::cast(graph, cotangent, ty.dtype)?
        }
        Some(cotangent) => cotangent,
        None => builder::full(graph, 0.0, ty.dtype.to_floating(), &ty.shape)?,
    };
    Ok(builder::with_names(graph, cotangent, ty.names)?)
}

/// Runs the reverse pass and returns the cotangent of each of `wrt` without names or casts, or
/// `None` if no output depends on it. Cotangents must have the shapes of the outputs.
pub(crate) fn backpropagate(
    graph: &mut Graph,
    outputs: &[ExprId],
    cotangents: &[ExprId],
    wrt: &[ExprId],
) -> Result<Vec<Option<ExprId>>> {
    let mut found = pass_through(graph, outputs, cotangents, wrt)?;
    let mut roots: Vec<ExprId> = found.cotangents.iter().copied().flatten().collect();
    found.substitute_replaced(graph, &mut roots)?;
    let mut roots = roots.into_iter();
    Ok(found.cotangents.iter().map(|found| found.and_then(|_| roots.next())).collect())
}

/// The result of a reverse pass.
struct PassResult {
    cotangents: Vec<Option<ExprId>>,
    /// Pairs of a node and its replacement. The op that returns a replacement also returns residuals
    /// for the derivative.
    replaced: Vec<(ExprId, ExprId)>,
}

impl PassResult {
    /// Substitutes the replaced nodes in the graphs of these roots. Otherwise the replaced ops and
    /// their replacements would both run.
    fn substitute_replaced(&mut self, graph: &mut Graph, roots: &mut Vec<ExprId>) -> Result<()> {
        let mut substitution = Substitution::from_iter(self.replaced.drain(..));
        *roots = graph.substitute(roots, &mut substitution)?;
        Ok(())
    }
}

fn pass_through(
    graph: &mut Graph,
    outputs: &[ExprId],
    cotangents: &[ExprId],
    wrt: &[ExprId],
) -> Result<PassResult> {
    let none = PassResult { cotangents: vec![None; wrt.len()], replaced: Vec::new() };
    let Some(&last) = outputs.iter().max() else { return Ok(none) };
    let active = Active::new(graph, wrt, last);
    let base = active.base();
    let flowing = vec![Flow::default(); (last.index() + 1).saturating_sub(base)];
    let mut pass = ReversePass { graph, active, flowing, tuples: Vec::new(), replaced: Vec::new() };
    for (&output, &cotangent) in outputs.iter().zip(cotangents) {
        if pass.active.contains(output) {
            let cotangent = builder::strip_names(pass.graph, cotangent)?;
            let cotangent = builder::to_float(pass.graph, cotangent)?;
            pass.accumulate(output, cotangent)?;
        }
    }
    let source = pass.graph.current_source();
    for index in (base..=last.index()).rev() {
        if !matches!(pass.flowing[index - base], Flow::None) {
            pass.visit(ExprId::from_index(index))?;
        }
    }
    pass.graph.set_source(source);
    let cotangents = wrt.iter().map(|&input| pass.cotangent(input)).collect::<Result<Vec<_>>>()?;
    Ok(PassResult { cotangents, replaced: pass.replaced })
}

/// The cotangent of a node that has accumulated so far.
#[derive(Clone, Copy, Default)]
enum Flow {
    #[default]
    None,
    /// The cotangent of a tensor.
    Tensor(ExprId),
    /// The position of a tuple's cotangents in [`ReversePass::tuples`].
    Tuple(u32),
}

/// A pass in progress.
pub(crate) struct ReversePass<'g> {
    /// The graph, to which rules append.
    pub(crate) graph: &'g mut Graph,
    active: Active,
    /// One entry per node from the base of `active`.
    flowing: Vec<Flow>,
    /// The cotangents of the parts of tuples.
    tuples: Vec<Box<[Option<ExprId>]>>,
    /// See [`PassResult::replaced`].
    replaced: Vec<(ExprId, ExprId)>,
}

/// A node whose cotangent is complete, and whose rule runs.
pub(crate) struct Visit {
    /// The node.
    pub(crate) id: ExprId,
    /// Its operands, with their axis names.
    pub(crate) operands: Operands,
}

impl ReversePass<'_> {
    /// Runs the rule of a node that something has flowed into.
    fn visit(&mut self, id: ExprId) -> Result<()> {
        let operands = self.graph.operands(id);
        if !operands.iter().any(|&operand| self.active.contains(operand)) {
            return Ok(());
        }
        let visit = Visit { id, operands: Operands::from_slice(operands) };
        let op = self.graph.op(id).clone();
        self.graph.set_source(self.graph.source_id(id).mark_derived());
        match op {
            Op::Elem(index) => {
                let Some(cotangent) = self.cotangent(id)? else { return Ok(()) };
                self.accumulate_part(visit.operands[0], index, cotangent)
            }
            op => rules::rule(self, &visit, &op),
        }
    }

    /// The complete cotangent of a tensor node, real if the node is.
    fn cotangent(&mut self, id: ExprId) -> Result<Option<ExprId>> {
        let flow = id.index().checked_sub(self.active.base()).and_then(|at| self.flowing.get(at));
        let Some(&Flow::Tensor(cotangent)) = flow else { return Ok(None) };
        let dtype = self.graph.dtype(id);
        Ok(Some(builder::complete_cotangent(self.graph, cotangent, dtype)?))
    }

    /// The complete cotangent of the node that is visited, which is a tensor.
    pub(crate) fn dy(&mut self, visit: &Visit) -> Result<ExprId> {
        Ok(self.cotangent(visit.id)?.expect("only nodes with a cotangent are visited"))
    }

    /// The complete cotangents of the results of the node that is visited.
    pub(crate) fn parts(&mut self, visit: &Visit) -> Result<Vec<Option<ExprId>>> {
        let at = visit.id.index() - self.active.base();
        let Flow::Tuple(position) = self.flowing[at] else {
            return Ok(vec![Some(self.dy(visit)?)]);
        };
        let parts = std::mem::take(&mut self.tuples[position as usize]);
        let dtypes: Vec<DType> =
            self.graph.ty(visit.id).parts().iter().map(|part| part.dtype).collect();
        parts
            .iter()
            .zip(dtypes)
            .map(|(part, dtype)| {
                part.map(|part| Ok(builder::complete_cotangent(self.graph, part, dtype)?))
                    .transpose()
            })
            .collect()
    }

    /// The value of the node that is visited, without axis names.
    pub(crate) fn result(&mut self, visit: &Visit) -> Result<ExprId> {
        Ok(builder::strip_names(self.graph, visit.id)?)
    }

    /// An operand of the node that is visited, without axis names.
    pub(crate) fn operand(&mut self, visit: &Visit, position: usize) -> Result<ExprId> {
        Ok(builder::strip_names(self.graph, visit.operands[position])?)
    }

    /// Returns whether the cotangent of this operand is needed.
    pub(crate) fn needs_cotangent(&self, visit: &Visit, position: usize) -> bool {
        self.active.contains(visit.operands[position])
    }

    /// Adds pairs of a node and its replacement, see [`PassResult::replaced`].
    pub(crate) fn replace(&mut self, nodes: Vec<(ExprId, ExprId)>) {
        self.replaced.extend(nodes);
    }

    /// Adds to the cotangent of an operand; the contribution has its shape.
    pub(crate) fn add_cotangent(
        &mut self,
        visit: &Visit,
        position: usize,
        part: ExprId,
    ) -> Result<()> {
        if !self.needs_cotangent(visit, position) {
            return Ok(());
        }
        self.accumulate(visit.operands[position], part)
    }

    /// Adds to the cotangent of an operand that was broadcast to the shape of the contribution.
    pub(crate) fn add_unbroadcast(
        &mut self,
        visit: &Visit,
        position: usize,
        part: ExprId,
    ) -> Result<()> {
        if !self.needs_cotangent(visit, position) {
            return Ok(());
        }
        let operand = visit.operands[position];
        if self.graph.shape(part) == self.graph.shape(operand) {
            return self.accumulate(operand, part);
        }
        let shape = self.graph.shape(operand).clone();
        let summed = builder::unbroadcast(self.graph, part, &shape)?;
        self.accumulate(operand, summed)
    }

    fn accumulate(&mut self, id: ExprId, part: ExprId) -> Result<()> {
        debug_assert_eq!(self.graph.shape(id), self.graph.shape(part), "cotangent of {id}");
        let at = id.index() - self.active.base();
        let sum = match self.flowing[at] {
            Flow::None => part,
            Flow::Tensor(sum) => builder::add(self.graph, sum, part)?,
            Flow::Tuple(_) => unreachable!("tuples get cotangents for each part"),
        };
        self.flowing[at] = Flow::Tensor(sum);
        Ok(())
    }

    fn accumulate_part(&mut self, tuple: ExprId, index: usize, part: ExprId) -> Result<()> {
        let at = tuple.index() - self.active.base();
        let position = match self.flowing[at] {
            Flow::Tuple(position) => position as usize,
            Flow::None => {
                let position = self.tuples.len();
                let number = u32::try_from(position).expect("fewer than 2^32 tuples");
                self.flowing[at] = Flow::Tuple(number);
                self.tuples.push(vec![None; self.graph.ty(tuple).parts().len()].into());
                position
            }
            Flow::Tensor(_) => unreachable!("only elements of a tuple have cotangents"),
        };
        let sum = match self.tuples[position][index] {
            Some(sum) => builder::add(self.graph, sum, part)?,
            None => part,
        };
        self.tuples[position][index] = Some(sum);
        Ok(())
    }
}
