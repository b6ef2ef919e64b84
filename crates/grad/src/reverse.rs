//! The sweep: cotangents flow from the outputs down to the inputs.
//!
//! Side tables are flat and cover only the ids between the first input and the last output, so
//! that the derivative of a small region at the end of a large graph costs what the region costs.

use nxla_expr::rewrite::Substitution;
use nxla_expr::{ExprId, Graph, Op, Operands, TensorType};
use nxla_tensor::DType;

use crate::active::Active;
use crate::emit;
use crate::error::{GradError, Result};
use crate::rules;

/// The gradient of the sum of `output` with respect to each of `wrt`, appended to the graph.
///
/// Result `i` has the shape and names of `wrt[i]`, and its dtype where that is a float or complex
/// one; the gradient of an integer is a float. An input that `output` does not depend on gets
/// zeros. See the [crate documentation](crate) for the conventions.
///
/// # Errors
/// An `output` or an input that is a tuple; a path between them through an op that has no
/// derivative rule; what a user's own derivative raises.
pub fn gradients(graph: &mut Graph, output: ExprId, wrt: &[ExprId]) -> Result<Vec<ExprId>> {
    Ok(values_and_gradients(graph, &[], output, wrt)?.1)
}

/// [`gradients`], and nodes that give the same as `values`. The derivative may compute some of what
/// they need along with what it needs itself: with these in place of `values` it is not computed
/// twice.
///
/// # Errors
/// As for [`gradients`].
pub fn values_and_gradients(
    graph: &mut Graph,
    values: &[ExprId],
    output: ExprId,
    wrt: &[ExprId],
) -> Result<(Vec<ExprId>, Vec<ExprId>)> {
    let ty = tensor_type(graph, output, "output")?;
    let (dtype, shape) = (ty.dtype.to_floating(), ty.shape.clone());
    let seed = emit::filled(graph, 1.0, dtype, &shape)?;
    values_and_vjp(graph, values, (&[output], &[seed]), wrt)
}

/// The sum over outputs of `cotangents[i]` times the derivative of `outputs[i]`, with respect to
/// each of `wrt` (the vector-Jacobian product), appended to the graph.
///
/// The results are as for [`gradients`], which is the case of one output and a cotangent of ones.
///
/// # Errors
/// As for [`gradients`]; not one cotangent per output, or one of another shape.
pub fn vjp(
    graph: &mut Graph,
    outputs: &[ExprId],
    cotangents: &[ExprId],
    wrt: &[ExprId],
) -> Result<Vec<ExprId>> {
    Ok(values_and_vjp(graph, &[], (outputs, cotangents), wrt)?.1)
}

/// [`values_and_gradients`] for several outputs with cotangents of their own.
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
    let mut found = sweep(graph, outputs, cotangents, wrt)?;
    let mut roots: Vec<ExprId> = wrt
        .iter()
        .zip(&found.cotangents)
        .map(|(&input, &cotangent)| result(graph, input, cotangent))
        .collect::<Result<_>>()?;
    roots.extend(values);
    found.put_in_place(graph, &mut roots)?;
    let values = roots.split_off(wrt.len());
    Ok((values, roots))
}

fn tensor_type<'g>(graph: &'g Graph, id: ExprId, argument: &'static str) -> Result<&'g TensorType> {
    let ty = graph.ty(id);
    ty.as_tensor().ok_or_else(|| GradError::NotATensor { argument, found: Box::new(ty.clone()) })
}

/// A cotangent as users get it: in the dtype and with the names of the input.
fn result(graph: &mut Graph, input: ExprId, cotangent: Option<ExprId>) -> Result<ExprId> {
    let ty = graph.tensor_type(input).clone();
    let cotangent = match cotangent {
        Some(cotangent) if ty.dtype == ty.dtype.to_floating() => {
            emit::cast(graph, cotangent, ty.dtype)?
        }
        Some(cotangent) => cotangent,
        None => emit::filled(graph, 0.0, ty.dtype.to_floating(), &ty.shape)?,
    };
    Ok(emit::named(graph, cotangent, ty.names)?)
}

/// The sweep itself: the cotangent of each of `wrt`, without names and not cast, or `None` where
/// nothing flows. Cotangents have the shapes of the outputs.
pub(crate) fn pull(
    graph: &mut Graph,
    outputs: &[ExprId],
    cotangents: &[ExprId],
    wrt: &[ExprId],
) -> Result<Vec<Option<ExprId>>> {
    let mut found = sweep(graph, outputs, cotangents, wrt)?;
    let mut roots: Vec<ExprId> = found.cotangents.iter().copied().flatten().collect();
    found.put_in_place(graph, &mut roots)?;
    let mut roots = roots.into_iter();
    Ok(found.cotangents.iter().map(|found| found.and_then(|_| roots.next())).collect())
}

/// What a sweep gives.
struct Swept {
    cotangents: Vec<Option<ExprId>>,
    /// Nodes that the derivative computes along with what it needs, and what computes them now; the
    /// last ones in the graph first.
    replaced: Vec<Vec<(ExprId, ExprId)>>,
}

impl Swept {
    /// Puts what the derivative computes along in place of the nodes that computed it before, in
    /// all that these roots need: otherwise both would run.
    fn put_in_place(&mut self, graph: &mut Graph, roots: &mut Vec<ExprId>) -> Result<()> {
        // One after the other, since what takes the place of a node can depend on those before it.
        for replaced in self.replaced.drain(..) {
            let mut substitution = Substitution::new();
            for (old, new) in replaced {
                substitution.insert(old, new);
            }
            *roots = graph.substitute(roots, &mut substitution)?;
        }
        Ok(())
    }
}

fn sweep(
    graph: &mut Graph,
    outputs: &[ExprId],
    cotangents: &[ExprId],
    wrt: &[ExprId],
) -> Result<Swept> {
    let none = Swept { cotangents: vec![None; wrt.len()], replaced: Vec::new() };
    let Some(&last) = outputs.iter().max() else { return Ok(none) };
    let active = Active::new(graph, wrt, last);
    let base = active.base();
    let flowing = vec![Flow::default(); (last.index() + 1).saturating_sub(base)];
    let mut sweep = Sweep { graph, active, flowing, tuples: Vec::new(), replaced: Vec::new() };
    for (&output, &cotangent) in outputs.iter().zip(cotangents) {
        if sweep.active.contains(output) {
            let cotangent = emit::plain(sweep.graph, cotangent)?;
            let cotangent = emit::floating(sweep.graph, cotangent)?;
            sweep.accumulate(output, cotangent)?;
        }
    }
    let source = sweep.graph.current_source();
    for index in (base..=last.index()).rev() {
        if !matches!(sweep.flowing[index - base], Flow::None) {
            sweep.visit(ExprId::from_index(index))?;
        }
    }
    sweep.graph.set_source(source);
    let cotangents = wrt.iter().map(|&input| sweep.cotangent(input)).collect::<Result<Vec<_>>>()?;
    Ok(Swept { cotangents, replaced: sweep.replaced })
}

/// What has flowed into a node so far.
#[derive(Clone, Copy, Default)]
enum Flow {
    #[default]
    None,
    /// The cotangent of a tensor.
    Tensor(ExprId),
    /// The position of a tuple's cotangents in [`Sweep::tuples`].
    Tuple(u32),
}

/// A sweep in progress.
pub(crate) struct Sweep<'g> {
    /// The graph, to which rules append.
    pub(crate) graph: &'g mut Graph,
    active: Active,
    /// One entry per node from the base of `active`.
    flowing: Vec<Flow>,
    /// The cotangents of the parts of tuples.
    tuples: Vec<Box<[Option<ExprId>]>>,
    /// See [`Swept::replaced`].
    replaced: Vec<Vec<(ExprId, ExprId)>>,
}

/// A node whose cotangent is complete, and whose rule runs.
pub(crate) struct Visit {
    /// The node.
    pub(crate) id: ExprId,
    /// Its operands, with their axis names.
    pub(crate) operands: Operands,
}

impl Sweep<'_> {
    /// Runs the rule of a node that something has flowed into.
    fn visit(&mut self, id: ExprId) -> Result<()> {
        let operands = self.graph.operands(id);
        if !operands.iter().any(|&operand| self.active.contains(operand)) {
            return Ok(());
        }
        let visit = Visit { id, operands: Operands::from_slice(operands) };
        let op = self.graph.op(id).clone();
        self.graph.set_source(self.graph.source_id(id).derived());
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
        Ok(Some(emit::real_if(self.graph, cotangent, dtype)?))
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
                part.map(|part| Ok(emit::real_if(self.graph, part, dtype)?)).transpose()
            })
            .collect()
    }

    /// The value of the node that is visited, without axis names.
    pub(crate) fn answer(&mut self, visit: &Visit) -> Result<ExprId> {
        Ok(emit::plain(self.graph, visit.id)?)
    }

    /// An operand of the node that is visited, without axis names.
    pub(crate) fn operand(&mut self, visit: &Visit, position: usize) -> Result<ExprId> {
        Ok(emit::plain(self.graph, visit.operands[position])?)
    }

    /// Whether a cotangent of this operand is of use.
    pub(crate) fn wants(&self, visit: &Visit, position: usize) -> bool {
        self.active.contains(visit.operands[position])
    }

    /// Nodes from which on others compute the same, along with what the derivative needs.
    pub(crate) fn replace(&mut self, nodes: Vec<(ExprId, ExprId)>) {
        self.replaced.push(nodes);
    }

    /// Adds to the cotangent of an operand; the contribution has its shape.
    pub(crate) fn give(&mut self, visit: &Visit, position: usize, part: ExprId) -> Result<()> {
        if !self.wants(visit, position) {
            return Ok(());
        }
        self.accumulate(visit.operands[position], part)
    }

    /// Adds to the cotangent of an operand that was broadcast to the shape of the contribution.
    pub(crate) fn give_summed(
        &mut self,
        visit: &Visit,
        position: usize,
        part: ExprId,
    ) -> Result<()> {
        if !self.wants(visit, position) {
            return Ok(());
        }
        let operand = visit.operands[position];
        if self.graph.shape(part) == self.graph.shape(operand) {
            return self.accumulate(operand, part);
        }
        let shape = self.graph.shape(operand).clone();
        let summed = emit::unbroadcast(self.graph, part, &shape)?;
        self.accumulate(operand, summed)
    }

    fn accumulate(&mut self, id: ExprId, part: ExprId) -> Result<()> {
        debug_assert_eq!(self.graph.shape(id), self.graph.shape(part), "cotangent of {id}");
        let at = id.index() - self.active.base();
        let sum = match self.flowing[at] {
            Flow::None => part,
            Flow::Tensor(sum) => emit::add(self.graph, sum, part)?,
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
            Flow::Tensor(_) => unreachable!("a tuple has no cotangent of its own"),
        };
        let sum = match self.tuples[position][index] {
            Some(sum) => emit::add(self.graph, sum, part)?,
            None => part,
        };
        self.tuples[position][index] = Some(sum);
        Ok(())
    }
}
