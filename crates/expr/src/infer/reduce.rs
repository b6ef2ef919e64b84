//! Types of reductions.
//!
//! Sums and products of narrow integers have a wider dtype ([`DType::to_aggregate`]); `all` and
//! `any` return `pred`; maximum and minimum keep the dtype. An empty axis reduces to the neutral
//! element. It has no extremum, so `argmax` rejects it.
//!
//! [`DType::to_aggregate`]: nxla_tensor::DType::to_aggregate

use nxla_tensor::{DType, Names, Shape};

use super::check;
use super::check::{Inferred, operands, tensor};
use crate::graph::{ArgReduce, ErrorKind, Op, Reduce, ReduceOp, TensorType};

pub(crate) fn infer(op: &Op, types: &[&TensorType]) -> Inferred {
    match op {
        Op::Reduce(reduction, attributes) => {
            let [x] = operands(types)?;
            let dtype = reduced_dtype(*reduction, x.dtype)?;
            reduced_type(x, attributes, dtype)
        }
        Op::ArgReduce(_, attributes) => arg_reduce(attributes, types),
        Op::ReduceFun(attributes) => {
            let x = check::fold(&attributes.function, types)?;
            reduced_type(x, &attributes.reduce, x.dtype)
        }
        op @ crate::outside!(reduce) => unreachable!("{} is of another family", op.name()),
    }
}

fn reduced_dtype(reduction: ReduceOp, dtype: DType) -> Result<DType, ErrorKind> {
    match reduction {
        ReduceOp::Sum | ReduceOp::Product => Ok(dtype.to_aggregate()),
        ReduceOp::All | ReduceOp::Any => Ok(DType::Pred),
        ReduceOp::Max | ReduceOp::Min => check::orderable("operand", dtype),
    }
}

fn reduced_type(x: &TensorType, attributes: &Reduce, dtype: DType) -> Inferred {
    if let Some(axes) = &attributes.axes {
        check::increasing_axes("axes", axes, x)?;
    }
    let (shape, names) = without_axes(x, |axis| attributes.reduces(axis), attributes.keep_axes);
    tensor(TensorType { dtype, shape, names })
}

/// Returns the shape and names without the reduced axes, or with size 1 for these axes.
pub(crate) fn without_axes(
    x: &TensorType,
    is_reduced: impl Fn(usize) -> bool,
    keep_axes: bool,
) -> (Shape, Option<Names>) {
    if keep_axes {
        let sizes = x.shape.iter().enumerate();
        let shape = sizes.map(|(axis, &size)| if is_reduced(axis) { 1 } else { size }).collect();
        return (shape, x.names.clone());
    }
    let kept = || (0..x.rank()).filter(|&axis| !is_reduced(axis));
    (kept().map(|axis| x.shape[axis]).collect(), check::names_at(x, kept()))
}

fn arg_reduce(attributes: &ArgReduce, types: &[&TensorType]) -> Inferred {
    let [x] = operands(types)?;
    check::orderable("operand", x.dtype)?;
    check::index_dtype(attributes.dtype)?;
    let searched = match attributes.axis {
        Some(axis) => {
            check::axis_in_range(axis, x)?;
            x.shape[axis]
        }
        None => x.shape.size(),
    };
    if searched == 0 {
        let why = format!("must have elements along the reduced axes; got {x}");
        return Err(ErrorKind::invalid("operand", why));
    }
    let (shape, names) = match attributes.axis {
        Some(reduced) => without_axes(x, |axis| axis == reduced, attributes.keep_axis),
        // The result is a scalar even with `keep_axis`, because no single axis was reduced.
        None => (Shape::scalar(), None),
    };
    tensor(TensorType { dtype: attributes.dtype, shape, names })
}
