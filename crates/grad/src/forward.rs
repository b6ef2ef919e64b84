//! Forward mode: copying a program into a graph with the tangent of each value.
//!
//! One pass over the ids in increasing order. A tangent has the shape of its value and no axis
//! names. The tangent of a float or complex value has the dtype of the value; the tangent of an
//! integer is a float. A value that does not depend on a tangent has no tangent: no zeros are
//! created.
//!
//! A loop or a conditional is replaced by one that computes values and tangents together. The
//! program is therefore copied instead of being differentiated in place.

use nxla_expr::{ExprId, Family, Graph, Op, Operands, Program, SourceMap, TensorType};
use smallvec::SmallVec;

use crate::builder;
use crate::error::{GradError, Result};
use crate::needed::{NeededTangents, needed_operands};
use crate::rules;

/// A value and its tangent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dual {
    pub(crate) value: ExprId,
    /// `None` if the value does not change.
    pub(crate) tangent: Option<ExprId>,
}

impl Dual {
    /// Creates a value without a tangent.
    pub(crate) fn constant(value: ExprId) -> Self {
        Dual { value, tangent: None }
    }
}

/// The results of a node with their tangents.
pub(crate) type Duals = SmallVec<[Dual; 1]>;

/// The tangents of the results of a node.
pub(crate) type Tangents = SmallVec<[Option<ExprId>; 1]>;

/// Appends a program and its directional derivative (the Jacobian-vector product) to a graph.
/// Returns the outputs for `inputs`, and the tangents of the first `outputs` outputs for the given
/// tangents of the inputs. An input without a tangent is constant.
///
/// A resulting tangent has the shape and the axis names of its output. It also has the dtype of a
/// float or complex output; the tangent of an integer is a float. An output that does not depend on
/// a tangent has zeros.
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
/// Returns `Inputs` if the number of values or tangents differs from the number of inputs,
/// `Tangent` if a tangent does not fit its input, `NotDifferentiable` if an op without a derivative
/// rule lies between a tangent and an output, and the errors of custom rules.
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
    let found = jvp_program(graph, program, &duals, &wanted)?;
    let mut changes = Vec::with_capacity(outputs);
    for dual in &found[..outputs] {
        let ty = graph.tensor_type(dual.value).clone();
        let tangent = match dual.tangent {
            Some(tangent) => tangent,
            None => builder::full(graph, 0.0, ty.dtype.to_floating(), &ty.shape)?,
        };
        changes.push(builder::with_names(graph, tangent, ty.names)?);
    }
    Ok((found.into_iter().map(|dual| dual.value).collect(), changes))
}

/// Validates a tangent from the caller and converts it to the form that rules expect.
fn seed(graph: &mut Graph, value: ExprId, tangent: ExprId) -> Result<ExprId> {
    let (expected, found) = (graph.tensor_type(value).clone(), graph.tensor_type(tangent));
    if found.shape != expected.shape || (found.dtype.is_complex() && !expected.dtype.is_complex()) {
        let found = Box::new(found.clone());
        return Err(GradError::Tangent { found, expected: expected.into() });
    }
    let tangent = builder::strip_names(graph, tangent)?;
    let tangent = builder::to_float(graph, tangent)?;
    cast_and_broadcast(graph, tangent, &expected)
}

/// Casts and broadcasts a tangent to the dtype and the shape of its value.
pub(crate) fn cast_and_broadcast(
    graph: &mut Graph,
    tangent: ExprId,
    ty: &TensorType,
) -> Result<ExprId> {
    let tangent = builder::real_part_if_real(graph, tangent, ty.dtype)?;
    let tangent = if ty.dtype == ty.dtype.to_floating() {
        builder::cast(graph, tangent, ty.dtype)?
    } else {
        tangent
    };
    let rank = graph.shape(tangent).rank();
    let axes = (ty.shape.rank() - rank..ty.shape.rank()).collect();
    Ok(builder::broadcast(graph, tangent, ty.shape.clone(), axes)?)
}

/// Copies a program with its tangents. An output has a tangent if it is marked in `wanted` and
/// depends on a tangent of an input. Hooks of the program become hooks of the graph.
pub(crate) fn jvp_program(
    graph: &mut Graph,
    program: &Program,
    inputs: &[Dual],
    wanted: &[bool],
) -> Result<Vec<Dual>> {
    let from = program.graph();
    let needed_tangents = NeededTangents::new(program, wanted);
    let source = graph.current_source();
    let mut sources = SourceMap::default();
    let mut made: Vec<Duals> = Vec::with_capacity(from.len());
    for id in from.ids() {
        graph.copy_source(from, id, &mut sources);
        let operands = from.operands(id);
        let duals = match from.op(id) {
            Op::Parameter(parameter) => Duals::from_elem(inputs[parameter.index as usize], 1),
            Op::Elem(index) => Duals::from_elem(made[operands[0].index()][*index], 1),
            op => {
                let operands: Duals = operands.iter().map(|id| made[id.index()][0]).collect();
                let count = from.ty(id).parts().len();
                node(graph, op, &operands, || needed_tangents.parts(id, count))?
            }
        };
        made.push(duals);
    }
    graph.set_source(source);
    Ok(program.outputs().iter().map(|id| made[id.index()][0]).collect())
}

/// Creates one node and its tangents. `needed` returns for each result whether its tangent is
/// needed.
fn node(
    graph: &mut Graph,
    op: &Op,
    operands: &[Dual],
    needed: impl FnOnce() -> Vec<bool>,
) -> Result<Duals> {
    let changes = operands.iter().any(|operand| operand.tangent.is_some());
    let needed = if changes { needed() } else { Vec::new() };
    if !needed.contains(&true) {
        return make_without_tangents(graph, op, operands);
    }
    // Another node may need the tangent of an operand that carries none to this node.
    let ids = values(operands);
    let is_needed = needed_operands(graph, op, &ids, &needed);
    let carried = operands
        .iter()
        .zip(is_needed)
        .map(|(dual, is_needed)| Dual { tangent: dual.tangent.filter(|_| is_needed), ..*dual });
    let operands: Duals = carried.collect();
    if operands.iter().all(|operand| operand.tangent.is_none()) {
        return make_without_tangents(graph, op, &operands);
    }
    if op.family() == Family::Control {
        return rules::control::jvp(graph, op, &operands, &needed);
    }
    let node = graph.make(op.clone(), &ids)?;
    let mut step = JvpStep { graph, operands: &operands, node };
    let tangents = rules::tangents(&mut step, op)?;
    with_tangents(graph, node, tangents)
}

/// Creates a node without tangents.
pub(crate) fn make_without_tangents(
    graph: &mut Graph,
    op: &Op,
    operands: &[Dual],
) -> Result<Duals> {
    let node = graph.make(op.clone(), &values(operands))?;
    Ok(graph.parts(node)?.into_iter().map(Dual::constant).collect())
}

/// Returns the results of a node with these tangents, which may still have to be broadcast.
pub(crate) fn with_tangents(graph: &mut Graph, node: ExprId, tangents: Tangents) -> Result<Duals> {
    let mut duals = Duals::new();
    for (value, tangent) in
        graph.parts(node)?.into_iter().zip(tangents.into_iter().chain(std::iter::repeat(None)))
    {
        let ty = graph.tensor_type(value).clone();
        let tangent = tangent.map(|tangent| cast_and_broadcast(graph, tangent, &ty)).transpose()?;
        duals.push(Dual { value, tangent });
    }
    Ok(duals)
}

/// Returns the values without their tangents.
pub(crate) fn values(duals: &[Dual]) -> Operands {
    duals.iter().map(|dual| dual.value).collect()
}

/// A node that was created and whose forward-mode rule runs.
pub(crate) struct JvpStep<'a> {
    /// The graph to which the rule appends.
    pub(crate) graph: &'a mut Graph,
    operands: &'a [Dual],
    /// The node.
    pub(crate) node: ExprId,
}

impl JvpStep<'_> {
    /// Returns the tangent of an operand.
    pub(crate) fn dx(&self, position: usize) -> Option<ExprId> {
        self.operands[position].tangent
    }

    /// Returns the tangent of an operand, or zeros; used by ops that join several operands.
    pub(crate) fn dx_or_zeros(
        &mut self,
        position: usize,
        dtype: nxla_tensor::DType,
    ) -> Result<ExprId> {
        match self.operands[position].tangent {
            Some(tangent) => Ok(tangent),
            None => {
                let shape = self.graph.shape(self.operands[position].value).clone();
                Ok(builder::full(self.graph, 0.0, dtype, &shape)?)
            }
        }
    }

    /// Returns the dtype for zeros that are joined with the existing tangents.
    pub(crate) fn tangent_dtype(&self) -> nxla_tensor::DType {
        let tangents = self.operands.iter().filter_map(|operand| operand.tangent);
        let dtypes = tangents.map(|tangent| self.graph.dtype(tangent));
        dtypes.reduce(nxla_tensor::promote).unwrap_or(nxla_tensor::DType::F32)
    }

    /// Returns the number of operands.
    pub(crate) fn count(&self) -> usize {
        self.operands.len()
    }

    /// Returns an operand without axis names.
    pub(crate) fn x(&mut self, position: usize) -> Result<ExprId> {
        Ok(builder::strip_names(self.graph, self.operands[position].value)?)
    }

    /// Returns an operand with its axis names.
    pub(crate) fn value(&self, position: usize) -> ExprId {
        self.operands[position].value
    }

    /// Returns the value of the node without axis names.
    pub(crate) fn y(&mut self) -> Result<ExprId> {
        Ok(builder::strip_names(self.graph, self.node)?)
    }

    /// Returns the operands from a position on, such as indices, which have no tangents.
    pub(crate) fn rest(&self, position: usize) -> impl Iterator<Item = ExprId> {
        self.operands[position..].iter().map(|operand| operand.value)
    }
}
