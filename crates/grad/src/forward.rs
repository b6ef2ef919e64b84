//! The push: a program is put into a graph, and every value brings its tangent along.
//!
//! One walk over the ids, upwards. A tangent has the shape of its value and no axis names; that of
//! a float or a complex number has its dtype, that of an integer is a float. A value without a
//! tangent does not change with the inputs: no zeros are made for it.
//!
//! A loop or a conditional becomes one that computes values and tangents in one go, which is why
//! the program is put into the graph rather than differentiated where it stands.

use nxla_expr::{ExprId, Family, Graph, Op, Operands, Program, TensorType};
use smallvec::SmallVec;

use crate::demand::Demand;
use crate::emit;
use crate::error::{GradError, Result};
use crate::region::Lines;
use crate::rules;

/// A value and how it changes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dual {
    pub(crate) value: ExprId,
    /// None where it does not change.
    pub(crate) tangent: Option<ExprId>,
}

impl Dual {
    /// A value that does not change.
    pub(crate) fn constant(value: ExprId) -> Self {
        Dual { value, tangent: None }
    }
}

/// The results of a node.
pub(crate) type Duals = SmallVec<[Dual; 1]>;

/// The tangents of the results of a node.
pub(crate) type Tangents = SmallVec<[Option<ExprId>; 1]>;

/// Appends a program to a graph together with its derivative in one direction (the Jacobian-vector
/// product): gives the outputs for these inputs, and how the first `outputs` of them change when each
/// input changes as its tangent says. An input without a tangent is constant.
///
/// A tangent of the result has the shape and the names of its output, and its dtype where that is a
/// float or complex one; the tangent of an integer is a float. An output that does not change gets
/// zeros.
///
/// ```
/// use nxla_tensor::DType;
/// use nxla_expr::{Graph, Program, TensorType};
///
/// let ty = TensorType::new(DType::F64, [3]);
/// let mut graph = Graph::new();
/// let x = graph.parameter(0, ty.clone());
/// let y = graph.sin(x)?;
/// let sine = Program::new(&graph, vec![ty.clone()], &[y])?;
///
/// let mut graph = Graph::new();
/// let (x, dx) = (graph.parameter(0, ty.clone()), graph.parameter(1, ty));
/// let (values, tangents) = nxla_grad::jvp(&mut graph, &sine, &[x], &[Some(dx)], 1)?;
/// assert_eq!(values, [graph.sin(x)?]);
/// let slope = graph.cos(x)?;
/// assert_eq!(tangents, [graph.multiply(dx, slope)?]);
/// # Ok::<(), nxla_grad::GradError>(())
/// ```
///
/// # Errors
/// Not one tangent for each input, or one of another shape; a path from a tangent to an output
/// through an op that has no derivative rule; what a user's own derivative raises.
pub fn jvp(
    graph: &mut Graph,
    program: &Program,
    inputs: &[ExprId],
    tangents: &[Option<ExprId>],
    outputs: usize,
) -> Result<(Vec<ExprId>, Vec<ExprId>)> {
    let expected = program.inputs().len();
    if inputs.len() != expected || tangents.len() != expected {
        let found = if inputs.len() == expected { tangents.len() } else { inputs.len() };
        return Err(GradError::Inputs { expected, found });
    }
    let mut duals = Vec::with_capacity(expected);
    for (&value, &tangent) in inputs.iter().zip(tangents) {
        let tangent = tangent.map(|tangent| seed(graph, value, tangent)).transpose()?;
        duals.push(Dual { value, tangent });
    }
    let wanted: Vec<bool> = (0..program.outputs().len()).map(|at| at < outputs).collect();
    let found = push(graph, program, &duals, &wanted)?;
    let mut changes = Vec::with_capacity(outputs);
    for dual in &found[..outputs] {
        let ty = graph.tensor_type(dual.value).clone();
        let tangent = match dual.tangent {
            Some(tangent) => tangent,
            None => emit::filled(graph, 0.0, ty.dtype.to_floating(), &ty.shape)?,
        };
        changes.push(emit::named(graph, tangent, ty.names)?);
    }
    Ok((found.into_iter().map(|dual| dual.value).collect(), changes))
}

/// A tangent that a caller gave, as rules expect it.
fn seed(graph: &mut Graph, value: ExprId, tangent: ExprId) -> Result<ExprId> {
    let (expected, found) = (graph.tensor_type(value).clone(), graph.tensor_type(tangent));
    if found.shape != expected.shape || (found.dtype.is_complex() && !expected.dtype.is_complex()) {
        let found = Box::new(found.clone());
        return Err(GradError::Tangent { found, expected: expected.into() });
    }
    let tangent = emit::plain(graph, tangent)?;
    let tangent = emit::floating(graph, tangent)?;
    settle(graph, tangent, &expected)
}

/// A tangent in the dtype and the shape of the value that it belongs to.
pub(crate) fn settle(graph: &mut Graph, tangent: ExprId, ty: &TensorType) -> Result<ExprId> {
    let tangent = emit::real_if(graph, tangent, ty.dtype)?;
    let tangent = match ty.dtype == ty.dtype.to_floating() {
        true => emit::cast(graph, tangent, ty.dtype)?,
        false => tangent,
    };
    let rank = graph.shape(tangent).rank();
    let axes = (ty.shape.rank() - rank..ty.shape.rank()).collect();
    Ok(emit::broadcast(graph, tangent, ty.shape.clone(), axes)?)
}

/// The push itself: the outputs of a program for these inputs, with tangents as far as they are
/// wanted and something flows. Hooks of the program become hooks of the graph.
pub(crate) fn push(
    graph: &mut Graph,
    program: &Program,
    inputs: &[Dual],
    wanted: &[bool],
) -> Result<Vec<Dual>> {
    let from = program.graph();
    let demand = Demand::new(program, wanted);
    let source = graph.current_source();
    let mut lines = Lines::new();
    let mut made: Vec<Duals> = Vec::with_capacity(from.len());
    for id in from.ids() {
        lines.follow(from, id, graph);
        let operands = from.operands(id);
        let duals = match from.op(id) {
            Op::Parameter(parameter) => Duals::from_elem(inputs[parameter.index as usize], 1),
            Op::Elem(index) => Duals::from_elem(made[operands[0].index()][*index], 1),
            op => {
                let operands: Duals = operands.iter().map(|id| made[id.index()][0]).collect();
                let count = from.ty(id).parts().len();
                let asked = || {
                    if demand.contains(id) { demand.parts(id, count) } else { Default::default() }
                };
                node(graph, op, &operands, asked)?
            }
        };
        made.push(duals);
    }
    graph.set_source(source);
    Ok(program.outputs().iter().map(|id| made[id.index()][0]).collect())
}

/// One node with its tangents; `asked` gives the parts that are asked for, none at all if empty.
fn node(
    graph: &mut Graph,
    op: &Op,
    operands: &[Dual],
    asked: impl FnOnce() -> Vec<bool>,
) -> Result<Duals> {
    let changes = operands.iter().any(|operand| operand.tangent.is_some());
    let asked = if changes { asked() } else { Vec::new() };
    if !asked.contains(&true) {
        return unchanged(graph, op, operands);
    }
    if op.family() == Family::Control {
        return rules::control::push(graph, op, operands, &asked);
    }
    let node = graph.make(op.clone(), &values(operands))?;
    let mut step = Step { graph, operands, node };
    let tangents = rules::tangents(&mut step, op)?;
    with_tangents(graph, node, tangents)
}

/// A node as it is, without tangents.
pub(crate) fn unchanged(graph: &mut Graph, op: &Op, operands: &[Dual]) -> Result<Duals> {
    let node = graph.make(op.clone(), &values(operands))?;
    Ok(graph.parts(node)?.into_iter().map(Dual::constant).collect())
}

/// The results of a node with these tangents, which may still broadcast to their shapes.
pub(crate) fn with_tangents(graph: &mut Graph, node: ExprId, tangents: Tangents) -> Result<Duals> {
    let mut duals = Duals::new();
    for (value, tangent) in
        graph.parts(node)?.into_iter().zip(tangents.into_iter().chain(std::iter::repeat(None)))
    {
        let ty = graph.tensor_type(value).clone();
        let tangent = tangent.map(|tangent| settle(graph, tangent, &ty)).transpose()?;
        duals.push(Dual { value, tangent });
    }
    Ok(duals)
}

/// The values alone.
pub(crate) fn values(duals: &[Dual]) -> Operands {
    duals.iter().map(|dual| dual.value).collect()
}

/// A node that has been made, and whose rule runs.
pub(crate) struct Step<'a> {
    /// The graph, to which rules append.
    pub(crate) graph: &'a mut Graph,
    operands: &'a [Dual],
    /// The node.
    pub(crate) node: ExprId,
}

impl Step<'_> {
    /// How an operand changes.
    pub(crate) fn dx(&self, position: usize) -> Option<ExprId> {
        self.operands[position].tangent
    }

    /// How an operand changes, zeros if it does not: for ops that join operands.
    pub(crate) fn dx_or_zeros(
        &mut self,
        position: usize,
        dtype: nxla_tensor::DType,
    ) -> Result<ExprId> {
        match self.operands[position].tangent {
            Some(tangent) => Ok(tangent),
            None => {
                let shape = self.graph.shape(self.operands[position].value).clone();
                Ok(emit::filled(self.graph, 0.0, dtype, &shape)?)
            }
        }
    }

    /// The dtype that zeros take beside the tangents there are.
    pub(crate) fn tangent_dtype(&self) -> nxla_tensor::DType {
        let tangents = self.operands.iter().filter_map(|operand| operand.tangent);
        let dtypes = tangents.map(|tangent| self.graph.dtype(tangent));
        dtypes.reduce(nxla_tensor::promote).unwrap_or(nxla_tensor::DType::F32)
    }

    /// How many operands there are.
    pub(crate) fn count(&self) -> usize {
        self.operands.len()
    }

    /// An operand, without axis names.
    pub(crate) fn x(&mut self, position: usize) -> Result<ExprId> {
        Ok(emit::plain(self.graph, self.operands[position].value)?)
    }

    /// An operand as it is.
    pub(crate) fn value(&self, position: usize) -> ExprId {
        self.operands[position].value
    }

    /// The value of the node, without axis names.
    pub(crate) fn y(&mut self) -> Result<ExprId> {
        Ok(emit::plain(self.graph, self.node)?)
    }

    /// The operands after a position as they are: indices, which have no tangents.
    pub(crate) fn rest(&self, position: usize) -> impl Iterator<Item = ExprId> {
        self.operands[position..].iter().map(|operand| operand.value)
    }
}
