//! Evaluation of a program, node by node.

use std::sync::Arc;

use nxla_expr::{ExprId, Family, Graph, HookOp, HostFn, Op, Program, TensorType};
use nxla_tensor::HostTensor;

use crate::array::Array;
use crate::error::Error;
use crate::{contract, control, create, elementwise, index, linalg, movement, reduce, window};

/// Returns the host function of a hook or a runtime call.
pub type HostFnLookup<'a> = dyn Fn(&HookOp) -> Option<Arc<dyn HostFn>> + 'a;

/// Runs a program with the host functions that it contains.
///
/// # Errors
/// Returns an error for inputs that do not fit, and the errors of host functions.
///
/// ```
/// use nxla_expr::{Graph, Program, TensorType};
/// use nxla_tensor::{DType, HostTensor};
///
/// let mut graph = Graph::new();
/// let ty = TensorType::new(DType::U8, [2]);
/// let x = graph.parameter(0, ty.clone());
/// let doubled = graph.add(x, x)?;
/// let program = Program::new(&graph, vec![ty], &[doubled])?;
///
/// let x = HostTensor::from_slice(&[1_u8, 200], [2])?;
/// let results = nxla_reference::run(&program, &[x])?;
/// assert_eq!(results[0].as_slice::<u8>()?, [2, 144]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn run(program: &Program, inputs: &[HostTensor]) -> Result<Vec<HostTensor>, Error> {
    run_with(program, inputs, &|hook| hook.default.clone())
}

/// Runs a program with the host functions that `listener` returns.
///
/// # Errors
/// Returns the errors of [`run`].
pub fn run_with(
    program: &Program,
    inputs: &[HostTensor],
    listener: &HostFnLookup<'_>,
) -> Result<Vec<HostTensor>, Error> {
    let expected = program.inputs();
    if inputs.len() != expected.len() {
        return Err(Error::InputCount { expected: expected.len(), found: inputs.len() });
    }
    for (index, (input, ty)) in inputs.iter().zip(expected).enumerate() {
        if input.dtype() != ty.dtype || *input.shape() != ty.shape {
            let found = TensorType::new(input.dtype(), input.shape().clone());
            let (expected, found) = (Box::new(ty.clone()), Box::new(found));
            return Err(Error::InputType { index, expected, found });
        }
    }
    let inputs: Vec<Array> = inputs.iter().map(Array::of).collect();
    let results = call(program, &inputs.iter().collect::<Vec<_>>(), listener)?;
    results.iter().zip(program.output_types()).map(|(x, ty)| Ok(x.host(ty)?)).collect()
}

/// Runs a program or a region. Operands precede their users, and hooks are in the order in which
/// they run, so one pass over the nodes suffices.
pub(crate) fn call(
    program: &Program,
    inputs: &[&Array],
    listener: &HostFnLookup<'_>,
) -> Result<Vec<Array>, Error> {
    let graph = program.graph();
    // The results of each node; only tuples have several.
    let mut values: Vec<Vec<Array>> = Vec::with_capacity(graph.len());
    for id in graph.ids() {
        let operands = graph.operands(id).iter().map(|operand| &values[operand.index()][..]);
        let site = Site { graph, id, inputs, listener };
        let results = evaluate(site, &operands.collect::<Vec<_>>())?;
        values.push(results);
    }
    Ok(program.outputs().iter().map(|id| values[id.index()][0].clone()).collect())
}

/// A node with the context of its evaluation.
#[derive(Clone, Copy)]
pub(crate) struct Site<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) id: ExprId,
    /// The inputs of the program.
    pub(crate) inputs: &'a [&'a Array],
    pub(crate) listener: &'a HostFnLookup<'a>,
}

impl Site<'_> {
    pub(crate) fn op(&self) -> &Op {
        self.graph.op(self.id)
    }
}

/// Returns the results of a node. Only control ops accept tuples.
fn evaluate(site: Site<'_>, operands: &[&[Array]]) -> Result<Vec<Array>, Error> {
    let (op, types) = (site.op(), site.graph.ty(site.id).parts());
    let x: Vec<&Array> = operands.iter().filter_map(|parts| parts.first()).collect();
    // Ops of other families have one result, except factorizations.
    let ty = || types.first().expect("the op has a result");
    Ok(match op.family() {
        Family::Create => vec![create::evaluate(op, ty())],
        Family::Elementwise => vec![elementwise::evaluate(op, ty(), &x)],
        Family::Movement => vec![movement::evaluate(op, ty(), &x)],
        Family::Reduce => vec![reduce::evaluate(site, ty(), &x)?],
        Family::Window => vec![window::evaluate(site, ty(), &x)?],
        Family::Contract => vec![contract::evaluate(op, ty(), &x)],
        Family::Index => vec![index::evaluate(op, ty(), &x)],
        Family::Linalg => linalg::evaluate(op, types, &x),
        Family::Control => control::evaluate(site, operands)?,
    })
}
