//! Dispatch: from the op of a step to its kernel.

use nxla_expr::{ExprId, Family, Graph, HookOp, Op, TensorType};
use nxla_tensor::{HostTensor, TensorError};
use smallvec::SmallVec;

use super::limits::LARGE_RESULT;
use crate::context::{Args, Cx, Fault, Results, Stop, is_available, one};
use crate::kernels::{block, contract, create, index, linalg, movement, reduce, window};

/// The node of a step.
#[derive(Clone, Copy)]
pub(crate) struct NodeRef<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) id: ExprId,
    /// The slot of each result, or `None` if no step reads it.
    pub(crate) targets: &'a [Option<usize>],
}

impl<'a> NodeRef<'a> {
    pub(crate) fn op(&self) -> &'a Op {
        self.graph.op(self.id)
    }

    /// The type of the result of an op with one result.
    pub(crate) fn ty(&self) -> &'a TensorType {
        self.graph.tensor_type(self.id)
    }
}

/// Returns true if an op is a value of the program.
pub(crate) fn is_literal(op: &Op) -> bool {
    matches!(op, Op::Constant(_) | Op::Tensor(_))
}

/// Returns true if a value is a constant, possibly broadcast, that is not finite.
pub(crate) fn is_nonfinite_constant(graph: &Graph, mut id: ExprId) -> bool {
    while let Op::Broadcast(_) = graph.op(id) {
        id = graph.operands(id)[0];
    }
    let Op::Constant(constant) = graph.op(id) else { return false };
    let (re, im) = constant.value.parts();
    !re.is_finite() || !im.is_finite()
}

/// Computes the results of a step. Element-wise ops are part of bodies, and control flow has instructions.
pub(crate) fn evaluate(
    cx: Cx<'_>,
    node: NodeRef<'_>,
    args: &mut Args<'_>,
) -> Result<Results, Stop> {
    if let Some(empty) = empty_results(node)? {
        return Ok(empty);
    }
    let op = node.op();
    Ok(match op.family() {
        Family::Create => one(create::evaluate(cx, op, node.ty())?),
        Family::Elementwise => unreachable!("{} is part of a body", op.name()),
        Family::Movement => one(movement::evaluate(cx, op, node.ty(), args)?),
        Family::Reduce => one(reduce::evaluate(cx, op, node.ty(), args)?),
        Family::Window => one(window::evaluate(cx, op, node.ty(), args)?),
        Family::Contract => one(contract::evaluate(cx, op, node.ty(), args)?),
        Family::Index => one(index::evaluate(cx, op, node.ty(), args)?),
        Family::Linalg => {
            let is_read = |index: usize| node.targets[index].is_some();
            linalg::evaluate(cx, op, node.graph.ty(node.id), is_read, args)?
        }
        Family::Control => evaluate_control(cx, node, args)?,
    })
}

/// The results of a step whose results have no elements. Otherwise checks that memory is available for large results,
/// because kernels may allocate temporary memory.
pub(super) fn empty_results(node: NodeRef<'_>) -> Result<Option<Results>, Fault> {
    let types = node.graph.ty(node.id).parts();
    if types.iter().all(|ty| ty.shape.size() == 0) && !node.op().has_effects() {
        // An empty result needs no kernel, which would read operands and windows without using
        // them.
        let empty = types.iter().map(|ty| HostTensor::zeros(ty.dtype, ty.shape.clone()));
        return Ok(Some(empty.collect::<Result<_, _>>()?));
    }
    types.iter().try_for_each(require_memory)?;
    Ok(None)
}

/// Returns an error if memory is not available for a result.
fn require_memory(ty: &TensorType) -> Result<(), Fault> {
    let (dtype, shape) = (ty.dtype, &ty.shape);
    match shape.checked_byte_size(dtype).filter(|&bytes| isize::try_from(bytes).is_ok()) {
        Some(bytes) if bytes <= LARGE_RESULT || is_available(bytes) => Ok(()),
        Some(bytes) => Err(TensorError::OutOfMemory { dtype, shape: shape.clone(), bytes }.into()),
        None => Err(Fault::TooLarge { dtype, shape: shape.clone() }),
    }
}

/// Computes literals, native blocks and hooks.
fn evaluate_control(cx: Cx<'_>, node: NodeRef<'_>, args: &mut Args<'_>) -> Result<Results, Stop> {
    match node.op() {
        Op::Constant(constant) => {
            let ty = &constant.ty;
            let tensor = HostTensor::full(constant.value, ty.dtype, ty.shape.clone());
            Ok(one(tensor.map_err(Fault::from)?))
        }
        Op::Tensor(literal) => Ok(one(HostTensor::clone(&literal.0))),
        Op::Block(block) => Ok(block::evaluate(cx, block, args)?),
        Op::Hook(hook) => call_hook(cx, hook, node, args),
        Op::Cond(_) | Op::While(_) | Op::Parameter(_) | Op::Metadata(_) | Op::Elem(_) => {
            unreachable!("{} is not a call", node.op().name())
        }
        op @ nxla_expr::outside!(control) => unreachable!("{} is of another family", op.name()),
    }
}

/// Passes the operands to the listener of a hook. A runtime call returns the results of its function; the results
/// of other hooks are aliases of their operands.
fn call_hook(
    cx: Cx<'_>,
    hook: &HookOp,
    node: NodeRef<'_>,
    args: &Args<'_>,
) -> Result<Results, Stop> {
    let Some(listener) = cx.hooks.listener(hook) else {
        return match &hook.results {
            Some(_) => Err(Fault::NoFunction { name: hook.name.as_deref().map(Into::into) }.into()),
            None => Ok(Results::new()),
        };
    };
    let types = node.graph.operands(node.id).iter().map(|&id| node.graph.tensor_type(id));
    let values: SmallVec<[HostTensor; 2]> =
        types.enumerate().map(|(index, ty)| with_names(args.get(index).clone(), ty)).collect();
    let results = match &hook.results {
        Some(types) => listener.compute(&values, types),
        None => listener.call(&values).map(|()| Vec::new()),
    };
    results.map(Results::from_vec).map_err(|error| {
        let error = error.into();
        Stop::from(match &hook.results {
            Some(_) => Fault::RuntimeCall { error },
            None => Fault::Hook { name: hook.name.as_deref().map(Into::into), error },
        })
    })
}

/// The tensor with the axis names of its type.
pub(crate) fn with_names(tensor: HostTensor, ty: &TensorType) -> HostTensor {
    if tensor.names() == ty.names.as_ref() {
        return tensor;
    }
    tensor.with_names(ty.names.clone()).expect("inference has checked the names of the axes")
}
