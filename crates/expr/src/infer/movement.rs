//! Types of movement ops, which keep the dtype of their operand, `pred` included.

use nxla_tensor::{Names, Shape, promote_keep_pred};

use super::check;
use super::check::{Inferred, operands, tensor};
use super::elementwise::merge_names;
use super::reduce::without_axes;
use crate::graph::{Broadcast, ErrorKind, Op, Padding, Reshape, Stack, TensorType};

pub(crate) fn infer(op: &Op, types: &[&TensorType]) -> Inferred {
    match op {
        Op::Reshape(attributes) => reshape(attributes, types),
        Op::Squeeze(axes) => squeeze(axes, types),
        Op::Transpose(permutation) => transpose(permutation, types),
        Op::Reverse(axes) => {
            let [x] = operands(types)?;
            check::increasing_axes("axes", axes, x)?;
            tensor(x.clone())
        }
        Op::Broadcast(attributes) => broadcast(attributes, types),
        Op::Pad(config) => pad(config, types),
        Op::Concatenate(axis) => concatenate(*axis, types),
        Op::Stack(attributes) => stack(attributes, types),
        op @ crate::outside!(movement) => unreachable!("{} is of another family", op.name()),
    }
}

fn reshape(attributes: &Reshape, types: &[&TensorType]) -> Inferred {
    let [x] = operands(types)?;
    let shape = &attributes.shape;
    if shape.checked_size() != x.shape.checked_size() {
        let size = shape.checked_size().map_or("too many".into(), |size| size.to_string());
        let why =
            format!("must have the {} elements of {x}; got {size} in {shape:?}", x.shape.size());
        return Err(ErrorKind::invalid("shape", why));
    }
    with_shape(x, shape.clone(), attributes.names.as_ref())
}

/// Returns a type with the operand's dtype and the axis names of an attribute.
fn with_shape(x: &TensorType, shape: Shape, names: Option<&Names>) -> Inferred {
    let mut result = TensorType::new(x.dtype, shape);
    result.names = check::attribute_names(names, &result)?;
    tensor(result)
}

fn squeeze(axes: &[usize], types: &[&TensorType]) -> Inferred {
    let [x] = operands(types)?;
    check::increasing_axes("axes", axes, x)?;
    if let Some(axis) = axes.iter().find(|&&axis| x.shape[axis] != 1) {
        let why = format!("must have size 1; got size {} of axis {axis} in {x}", x.shape[*axis]);
        return Err(ErrorKind::invalid("axes", why));
    }
    let (shape, names) = without_axes(x, |axis| axes.contains(&axis), false);
    tensor(TensorType { dtype: x.dtype, shape, names })
}

fn transpose(permutation: &[usize], types: &[&TensorType]) -> Inferred {
    let [x] = operands(types)?;
    check::permutation("axes", permutation, x)?;
    let shape = permutation.iter().map(|&axis| x.shape[axis]).collect();
    let names = check::names_at(x, permutation.iter().copied());
    tensor(TensorType { dtype: x.dtype, shape, names })
}

fn broadcast(attributes: &Broadcast, types: &[&TensorType]) -> Inferred {
    let [x] = operands(types)?;
    let Broadcast { shape, axes, names } = attributes;
    check::count("axes", axes.len(), x.rank(), x)?;
    let result = TensorType::new(x.dtype, shape.clone());
    check::increasing_axes("axes", axes, &result)?;
    if shape.checked_size().is_none() {
        return Err(ErrorKind::invalid(
            "shape",
            format!("must have fewer than 2^64 elements; got {shape:?}"),
        ));
    }
    for (axis, (&target, &size)) in axes.iter().zip(&x.shape).enumerate() {
        if size != 1 && size != shape[target] {
            let why = format!(
                "axis {axis} of {x} has size {size}, which cannot become {} (axis {target} of \
                 {shape:?})",
                shape[target]
            );
            return Err(ErrorKind::invalid("shape", why));
        }
    }
    with_shape(x, shape.clone(), names.as_ref())
}

fn pad(config: &[Padding], types: &[&TensorType]) -> Inferred {
    let [x, value] = operands(types)?;
    check::scalar("value", value)?;
    check::count("padding", config.len(), x.rank(), x)?;
    let sizes = config.iter().zip(&x.shape).enumerate().map(|(axis, (padding, &size))| {
        let step = padding.interior.checked_add(1).filter(|&step| i64::try_from(step).is_ok());
        let spread = step.and_then(|step| check::dilated_size(size, step));
        spread.and_then(|size| check::padded_size(size, padding.low, padding.high)).ok_or_else(
            || {
                let Padding { low, high, interior } = padding;
                let inside = if *interior == 0 { String::new() } else { format!(", {interior}") };
                let why = format!(
                    "must leave a valid size; got ({low}, {high}{inside}) for axis {axis} of {x}"
                );
                ErrorKind::invalid("padding", why)
            },
        )
    });
    let shape = sizes.collect::<Result<Shape, _>>()?;
    let dtype = promote_keep_pred(x.dtype, value.dtype);
    tensor(TensorType { dtype, shape, names: x.names.clone() })
}

fn concatenate(axis: usize, types: &[&TensorType]) -> Inferred {
    let mut result = first(types)?.clone();
    check::axis_in_range(axis, &result)?;
    for (position, other) in types.iter().enumerate().skip(1) {
        let fits = other.rank() == result.rank()
            && (0..result.rank()).all(|at| at == axis || result.shape[at] == other.shape[at]);
        if !fits {
            let why = format!(
                "must have equal shapes outside of axis {axis}; got {} as operand 0 and {other} as \
                 operand {position}",
                types[0]
            );
            return Err(ErrorKind::invalid("operands", why));
        }
        result.dtype = promote_keep_pred(result.dtype, other.dtype);
        result.names = merge_names(&result, other)?;
        let (left, right) = (result.shape[axis], other.shape[axis]);
        result.shape.as_mut_slice()[axis] = left.checked_add(right).ok_or_else(|| {
            let why = format!(
                "must have fewer than 2^64 elements along axis {axis}; got {left} and {right}"
            );
            ErrorKind::invalid("operands", why)
        })?;
    }
    tensor(result)
}

fn stack(attributes: &Stack, types: &[&TensorType]) -> Inferred {
    let mut result = first(types)?.clone();
    let Stack { axis, name } = attributes;
    for (position, other) in types.iter().enumerate().skip(1) {
        if other.shape != result.shape {
            let why = format!("got {} as operand 0 and {other} as operand {position}", types[0]);
            return Err(ErrorKind::invalid("operands", format!("must have equal shapes; {why}")));
        }
        result.dtype = promote_keep_pred(result.dtype, other.dtype);
        result.names = merge_names(&result, other)?;
    }
    if *axis > result.rank() {
        let why = format!("must be in range for a new axis of {result}; got {axis}");
        return Err(ErrorKind::invalid("axis", why));
    }
    let mut names = result.axis_names();
    names.insert(*axis, name.clone());
    result.shape.insert(*axis, types.len());
    result.names = check::drop_if_unnamed(Names::new(names));
    tensor(result)
}

fn first<'a>(types: &[&'a TensorType]) -> Result<&'a TensorType, ErrorKind> {
    let arity = ErrorKind::Arity { expected: "one or more".into(), found: 0 };
    types.first().copied().ok_or(arity)
}
