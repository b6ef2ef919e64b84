//! Checks and axis-name rules that several families share.
//!
//! An op that keeps an axis keeps its name. Corresponding axes of operands must have equal names if
//! both have a name. A list without any name is stored as `None`, so that equal types compare
//! equal.

use nxla_tensor::{DType, Names, NamesError};

use crate::graph::{ErrorKind, Program, TensorType, Type};

/// The result of a type rule; the graph adds the op's name and the source line to errors.
pub(crate) type Inferred = Result<Type, ErrorKind>;

/// Checks that every operand is a tensor.
pub(super) fn tensors<'a>(operands: &[&'a Type]) -> Result<Vec<&'a TensorType>, ErrorKind> {
    operands
        .iter()
        .map(|ty| {
            ty.as_tensor().ok_or_else(|| ErrorKind::NotATensor {
                argument: "operand",
                found: Box::new((*ty).clone()),
            })
        })
        .collect()
}

/// Checks the number of operands and returns them as an array.
pub(super) fn operands<'a, const N: usize>(
    types: &[&'a TensorType],
) -> Result<[&'a TensorType; N], ErrorKind> {
    <[&TensorType; N]>::try_from(types)
        .map_err(|_| ErrorKind::Arity { expected: N.to_string(), found: types.len() })
}

/// Returns a tensor type as the result of a rule.
pub(super) fn tensor(ty: TensorType) -> Inferred {
    Ok(Type::Tensor(ty))
}

/// Returns the names of these axes of a type.
pub(super) fn names_at(ty: &TensorType, axes: impl Iterator<Item = usize>) -> Option<Names> {
    let names = ty.names.as_ref()?;
    drop_if_unnamed(axes.map(|axis| names[axis].clone()).collect())
}

/// Returns names, or `None` if no axis has a name.
pub(super) fn drop_if_unnamed(names: Names) -> Option<Names> {
    (!names.is_unnamed()).then_some(names)
}

/// Checks axis names from an attribute: one entry per axis of the result.
pub(super) fn attribute_names(
    names: Option<&Names>,
    result: &TensorType,
) -> Result<Option<Names>, ErrorKind> {
    let Some(names) = names else { return Ok(None) };
    count("names", names.len(), result.rank(), result)?;
    Ok(drop_if_unnamed(names.clone()))
}

/// Normalizes a type from an attribute.
pub(super) fn given_type(ty: &TensorType) -> Inferred {
    let names = attribute_names(ty.names.as_ref(), ty)?;
    tensor(TensorType { names, ..ty.clone() })
}

/// Converts a conflict of names to an error.
pub(super) fn names_error(error: &NamesError) -> ErrorKind {
    ErrorKind::Names(error.to_string())
}

/// Checks that an attribute has one entry per axis of an operand.
pub(super) fn count(
    argument: &'static str,
    found: usize,
    expected: usize,
    ty: &TensorType,
) -> Result<(), ErrorKind> {
    if found == expected {
        return Ok(());
    }
    Err(ErrorKind::Count { argument, expected, found, ty: Box::new(ty.clone()) })
}

/// Checks that an axis of an operand is in range.
pub(super) fn axis_in_range(axis: usize, ty: &TensorType) -> Result<(), ErrorKind> {
    if axis < ty.rank() {
        return Ok(());
    }
    let axis = i64::try_from(axis).unwrap_or(i64::MAX);
    Err(ErrorKind::Axis { argument: "axis", axis, ty: Box::new(ty.clone()) })
}

/// Checks that axes of an operand are in range and distinct.
pub(super) fn distinct_axes(
    argument: &'static str,
    axes: &[usize],
    ty: &TensorType,
) -> Result<(), ErrorKind> {
    for (position, &axis) in axes.iter().enumerate() {
        axis_in_range(axis, ty)?;
        if axes[..position].contains(&axis) {
            return Err(ErrorKind::DuplicateAxis { argument, axis });
        }
    }
    Ok(())
}

/// Checks a set of axes of an operand, which is increasing so that equal sets are equal nodes.
pub(super) fn increasing_axes(
    argument: &'static str,
    axes: &[usize],
    ty: &TensorType,
) -> Result<(), ErrorKind> {
    distinct_axes(argument, axes, ty)?;
    if axes.is_sorted() {
        return Ok(());
    }
    Err(ErrorKind::invalid(argument, format!("must be in increasing order; got {axes:?}")))
}

/// Checks a permutation of the axes of an operand.
pub(super) fn permutation(
    argument: &'static str,
    axes: &[usize],
    ty: &TensorType,
) -> Result<(), ErrorKind> {
    count(argument, axes.len(), ty.rank(), ty)?;
    distinct_axes(argument, axes, ty)
}

/// Checks that an operand is a scalar.
pub(super) fn scalar(argument: &'static str, ty: &TensorType) -> Result<(), ErrorKind> {
    if ty.rank() == 0 {
        return Ok(());
    }
    let found = ty.shape.to_string();
    Err(ErrorKind::Shape { argument, found, expected: "a scalar".into() })
}

/// Returns a dtype that is an integer dtype.
pub(super) fn integer(argument: &'static str, dtype: DType) -> Result<DType, ErrorKind> {
    if dtype.is_integer() {
        return Ok(dtype);
    }
    Err(ErrorKind::DType { argument, found: dtype, expected: "an integer dtype" })
}

/// Checks the index dtype of an attribute.
pub(super) fn index_dtype(dtype: DType) -> Result<(), ErrorKind> {
    if dtype.is_integer() {
        return Ok(());
    }
    Err(ErrorKind::invalid("dtype", format!("must be an integer dtype; got {dtype}")))
}

/// Returns a dtype that is ordered.
pub(super) fn orderable(argument: &'static str, dtype: DType) -> Result<DType, ErrorKind> {
    if !dtype.is_complex() {
        return Ok(dtype);
    }
    Err(ErrorKind::DType { argument, found: dtype, expected: "a real dtype" })
}

/// Checks that entries, such as strides, are at least one and fit in 64 bits with a sign, which XLA uses.
pub(super) fn positive(argument: &'static str, values: &[usize]) -> Result<(), ErrorKind> {
    for (axis, &value) in values.iter().enumerate() {
        if value == 0 {
            let why = format!("must be at least 1; got 0 for axis {axis}");
            return Err(ErrorKind::invalid(argument, why));
        }
        if i64::try_from(value).is_err() {
            let why = format!("must be less than 2^63; got {value} for axis {axis}");
            return Err(ErrorKind::invalid(argument, why));
        }
    }
    Ok(())
}

/// Checks the operands of a fold and its function, and returns the type of the folded tensor.
/// Builders convert operands before.
pub(super) fn fold<'a>(
    function: &Program,
    types: &[&'a TensorType],
) -> Result<&'a TensorType, ErrorKind> {
    let [x, initial, captures @ ..] = types else {
        return Err(ErrorKind::Arity { expected: "two or more".into(), found: types.len() });
    };
    scalar("initial", initial)?;
    if initial.dtype != x.dtype {
        let why = format!("must have the dtype of the operand {x}; got {}", initial.dtype);
        return Err(ErrorKind::invalid("initial", why));
    }
    fold_function(function, x.dtype, captures)?;
    Ok(x)
}

/// Checks the function of a fold: `(element, accumulator, captures…) -> accumulator`.
fn fold_function(
    function: &Program,
    dtype: DType,
    captures: &[&TensorType],
) -> Result<(), ErrorKind> {
    let scalar = TensorType::scalar(dtype);
    let expected = [&scalar, &scalar].into_iter().chain(captures.iter().copied());
    let why = if !function.inputs().iter().eq(expected) {
        format!("must take two {scalar} and the captures; got {}", describe(function.inputs()))
    } else if !function.output_types().eq([&scalar]) {
        format!("must return one {scalar}; got {}", describe(function.output_types()))
    } else if !function.effects().is_empty() {
        "must not contain hooks, because the order of a fold is not defined".into()
    } else {
        return Ok(());
    };
    Err(ErrorKind::invalid("function", why))
}

/// Formats a list of types.
pub(super) fn describe<'a>(types: impl IntoIterator<Item = &'a TensorType>) -> String {
    let types: Vec<String> = types.into_iter().map(ToString::to_string).collect();
    format!("({})", types.join(", "))
}

/// The limit for the absolute value of the padding of windows. Kernels add positions and padding in
/// 64 bits, where larger numbers would overflow, also if `low` and `high` cancel.
const MAX_PADDING: u64 = 1 << 60;

/// Checks the padding of windows.
pub(super) fn padding(low: i64, high: i64) -> Result<(), ErrorKind> {
    if low.unsigned_abs().max(high.unsigned_abs()) <= MAX_PADDING {
        return Ok(());
    }
    let why = format!("must be at most 2^60 in absolute value; got ({low}, {high})");
    Err(ErrorKind::invalid("padding", why))
}

/// Adds padding, which may be negative, to a size.
pub(super) fn padded_size(size: usize, low: i64, high: i64) -> Option<usize> {
    let size = i128::try_from(size).ok()? + i128::from(low) + i128::from(high);
    usize::try_from(size).ok()
}

/// Returns the size of an axis with `step - 1` elements inserted between neighbors.
pub(super) fn dilated_size(size: usize, step: usize) -> Option<usize> {
    match size.checked_sub(1) {
        None => Some(0),
        Some(gaps) => gaps.checked_mul(step)?.checked_add(1),
    }
}

/// Returns the number of windows that fit: zero if the window is larger than the axis.
pub(super) fn window_count(size: usize, window: usize, stride: usize) -> usize {
    size.checked_sub(window).map_or(0, |slack| slack / stride + 1)
}
