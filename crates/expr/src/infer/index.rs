//! Types of slices, gathers, scatters and sorts.
//!
//! The values of indices are known only at run time, so inference checks their shapes and dtypes.
//! At run time, out-of-range reads are clamped, and out-of-range writes are dropped. An axis of
//! size 0 has no valid index and is rejected here.

use nxla_tensor::{DType, Shape, promote, promote_keep_pred};

use super::check;
use super::check::{Inferred, operands, tensor};
use super::elementwise::merge_names;
use crate::graph::{ErrorKind, Op, SliceAttributes, SortAttributes, Start, TensorType, shape_text};

pub(crate) fn infer(op: &Op, types: &[&TensorType]) -> Inferred {
    match op {
        Op::Slice(attributes) => slice(attributes, types),
        Op::PutSlice(starts) => put_slice(starts, types),
        Op::Gather(axes) => gather(axes, types),
        Op::IndexedAdd(axes) => infer_scatter(axes, types, promote),
        Op::IndexedPut(axes) => infer_scatter(axes, types, promote_keep_pred),
        Op::Sort(attributes) => {
            let [x] = operands(types)?;
            check_sort(attributes, x)?;
            tensor(x.clone())
        }
        Op::Argsort(attributes, dtype) => {
            let [x] = operands(types)?;
            check_sort(attributes, x)?;
            check::index_dtype(*dtype)?;
            tensor(x.with_dtype(*dtype))
        }
        op @ crate::outside!(index) => unreachable!("{} is of another family", op.name()),
    }
}

fn slice(attributes: &SliceAttributes, types: &[&TensorType]) -> Inferred {
    let [x, dynamic @ ..] = types else {
        return Err(ErrorKind::Arity { expected: "one or more".into(), found: 0 });
    };
    let SliceAttributes { starts, lengths, strides } = attributes;
    check_starts(starts, dynamic, x)?;
    check::count("lengths", lengths.len(), x.rank(), x)?;
    check::count("strides", strides.len(), x.rank(), x)?;
    check::positive("strides", strides)?;
    for (axis, (&length, &size)) in lengths.iter().zip(&x.shape).enumerate() {
        if length > size {
            let why =
                format!("must be at most {size}, the size of axis {axis} of {x}; got {length}");
            return Err(ErrorKind::invalid("lengths", why));
        }
    }
    let shape = lengths.iter().zip(strides).map(|(length, &stride)| length.div_ceil(stride));
    tensor(TensorType { dtype: x.dtype, shape: shape.collect(), names: x.names.clone() })
}

/// Checks that there is one start per axis, and a scalar integer operand for each dynamic start.
fn check_starts(
    starts: &[Start],
    dynamic: &[&TensorType],
    x: &TensorType,
) -> Result<(), ErrorKind> {
    check::count("starts", starts.len(), x.rank(), x)?;
    let expected = starts.iter().filter(|start| **start == Start::Dynamic).count();
    if dynamic.len() != expected {
        let why = format!(
            "must have one operand for each of the {expected} dynamic starts; got {}",
            dynamic.len()
        );
        return Err(ErrorKind::invalid("starts", why));
    }
    for start in dynamic {
        check::scalar("start", start)?;
        check::integer("start", start.dtype)?;
    }
    Ok(())
}

fn put_slice(starts: &[Start], types: &[&TensorType]) -> Inferred {
    let [x, update, dynamic @ ..] = types else {
        return Err(ErrorKind::Arity { expected: "two or more".into(), found: types.len() });
    };
    check_starts(starts, dynamic, x)?;
    let fits = update.rank() == x.rank()
        && update.shape.iter().zip(&x.shape).all(|(update, size)| update <= size);
    if !fits {
        return Err(ErrorKind::Shape {
            argument: "update",
            found: shape_text(&update.shape),
            expected: format!("the rank of {x} and no larger axis"),
        });
    }
    let names = merge_names(x, update)?;
    let dtype = promote_keep_pred(x.dtype, update.dtype);
    tensor(TensorType { dtype, shape: x.shape.clone(), names })
}

/// Returns the shape of `indices` without its last axis, which holds a coordinate for each of
/// `axes`.
fn index_shape<'a>(
    axes: &[usize],
    x: &TensorType,
    indices: &'a TensorType,
) -> Result<&'a [usize], ErrorKind> {
    check::increasing_axes("axes", axes, x)?;
    check::integer("indices", indices.dtype)?;
    let shape = indices.shape.as_slice();
    let leading = match shape.split_last() {
        Some((&coordinates, leading)) if coordinates == axes.len() => leading,
        _ => {
            return Err(ErrorKind::Shape {
                argument: "indices",
                found: shape_text(&indices.shape),
                expected: format!("a last axis with one coordinate for each of axes {axes:?}"),
            });
        }
    };
    let is_empty = leading.contains(&0);
    if let Some(axis) = axes.iter().find(|&&axis| x.shape[axis] == 0 && !is_empty) {
        let why = format!("must have elements to index; got axis {axis} of {x}");
        return Err(ErrorKind::invalid("axes", why));
    }
    Ok(leading)
}

fn gather(axes: &[usize], types: &[&TensorType]) -> Inferred {
    let [x, indices] = operands(types)?;
    let leading = index_shape(axes, x, indices)?;
    let window = (0..x.rank()).filter(|axis| !axes.contains(axis)).map(|axis| x.shape[axis]);
    let shape: Shape = leading.iter().copied().chain(window).collect();
    tensor(TensorType { dtype: x.dtype, shape, names: None })
}

/// Infers the type of a scatter: `updates` has the leading axes of `indices`, followed by the axes
/// of `x` that are not indexed, which may be shorter.
fn infer_scatter(
    axes: &[usize],
    types: &[&TensorType],
    promote: impl Fn(DType, DType) -> DType,
) -> Inferred {
    let [x, indices, updates] = operands(types)?;
    let leading = index_shape(axes, x, indices)?;
    let window: Vec<usize> =
        (0..x.rank()).filter(|axis| !axes.contains(axis)).map(|axis| x.shape[axis]).collect();
    let fits = updates.rank() == leading.len() + window.len()
        && updates.shape.starts_with(leading)
        && updates.shape[leading.len()..].iter().zip(&window).all(|(size, limit)| size <= limit);
    if !fits {
        let full: Shape = leading.iter().chain(&window).copied().collect();
        return Err(ErrorKind::Shape {
            argument: "updates",
            found: shape_text(&updates.shape),
            expected: format!(
                "{}: the leading axes of indices {}, then the axes of {x} that are not indexed",
                shape_text(&full),
                indices.shape
            ),
        });
    }
    let dtype = promote(x.dtype, updates.dtype);
    tensor(TensorType { dtype, shape: x.shape.clone(), names: x.names.clone() })
}

fn check_sort(sort: &SortAttributes, x: &TensorType) -> Result<(), ErrorKind> {
    check::axis_in_range(sort.axis, x)?;
    check::orderable("operand", x.dtype)?;
    Ok(())
}
