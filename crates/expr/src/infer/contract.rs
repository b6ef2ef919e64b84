//! Types of contractions: dot products and convolutions.

use nxla_tensor::{AxisName, Names, Shape, promote};

use super::check;
use super::check::{Inferred, operands, tensor};
use crate::graph::{Conv, Dot, ErrorKind, Op, TensorType};

pub(crate) fn infer(op: &Op, types: &[&TensorType]) -> Inferred {
    match op {
        Op::Dot(attributes) => dot(attributes, types),
        Op::Conv(attributes) => conv(attributes, types),
        op @ crate::outside!(contract) => unreachable!("{} is of another family", op.name()),
    }
}

fn dot(attributes: &Dot, types: &[&TensorType]) -> Inferred {
    let [left, right] = operands(types)?;
    let Dot { left_contract, left_batch, right_contract, right_batch } = attributes;
    check_side(("left_contract", left_contract), ("left_batch", left_batch), left)?;
    check_side(("right_contract", right_contract), ("right_batch", right_batch), right)?;
    check_pairs(("left_contract", left_contract), right_contract, left, right)?;
    check_pairs(("left_batch", left_batch), right_batch, left, right)?;

    let free = |ty: &TensorType, contract: &[usize], batch: &[usize]| -> Vec<usize> {
        (0..ty.rank()).filter(|axis| !contract.contains(axis) && !batch.contains(axis)).collect()
    };
    let left_free = free(left, left_contract, left_batch);
    let right_free = free(right, right_contract, right_batch);
    let left_sizes = left_batch.iter().chain(&left_free).map(|&axis| left.shape[axis]);
    let right_sizes = right_free.iter().map(|&axis| right.shape[axis]);
    let shape: Shape = left_sizes.chain(right_sizes).collect();
    let names = dot_names(attributes, (left, &left_free), (right, &right_free))?;
    tensor(TensorType { dtype: promote(left.dtype, right.dtype), shape, names })
}

/// Checks the axes of one operand: each is used once, and the batch axes are leading and in order.
fn check_side(
    (contract_name, contract): (&'static str, &[usize]),
    (batch_name, batch): (&'static str, &[usize]),
    ty: &TensorType,
) -> Result<(), ErrorKind> {
    check::distinct_axes(contract_name, contract, ty)?;
    check::distinct_axes(batch_name, batch, ty)?;
    if !batch.iter().copied().eq(0..batch.len()) {
        let why = format!("must be 0, 1, … in order; got {batch:?}");
        return Err(ErrorKind::invalid(batch_name, why));
    }
    if let Some(axis) = contract.iter().find(|axis| batch.contains(axis)) {
        let why = format!("must differ from the batch axes; got {axis}");
        return Err(ErrorKind::invalid(contract_name, why));
    }
    Ok(())
}

/// Checks paired axes of the operands: equal counts and equal sizes.
fn check_pairs(
    (left_name, left_axes): (&'static str, &[usize]),
    right_axes: &[usize],
    left: &TensorType,
    right: &TensorType,
) -> Result<(), ErrorKind> {
    if left_axes.len() != right_axes.len() {
        let count = right_axes.len();
        let noun = if count == 1 { "axis" } else { "axes" };
        let why = format!(
            "must have {count} {noun}, the number for the other operand; got {left_axes:?}"
        );
        return Err(ErrorKind::invalid(left_name, why));
    }
    for (&left_axis, &right_axis) in left_axes.iter().zip(right_axes) {
        let (left_size, right_size) = (left.shape[left_axis], right.shape[right_axis]);
        if left_size != right_size {
            return Err(ErrorKind::AxisSizes {
                left_axis,
                left_size,
                right_axis,
                right_size,
                left: Box::new(left.clone()),
                right: Box::new(right.clone()),
            });
        }
    }
    Ok(())
}

/// Computes the axis names of a product. Batch axes merge their names, contracted names are dropped
/// without comparison, and free axes keep their names. The result must have distinct names.
fn dot_names(
    attributes: &Dot,
    (left, left_free): (&TensorType, &[usize]),
    (right, right_free): (&TensorType, &[usize]),
) -> Result<Option<Names>, ErrorKind> {
    if left.names.is_none() && right.names.is_none() {
        return Ok(None);
    }
    let (left, right) = (left.axis_names(), right.axis_names());
    let pick = |names: &[Option<AxisName>], axes: &[usize]| -> Names {
        axes.iter().map(|&axis| names[axis].clone()).collect()
    };
    let batch = pick(&left, &attributes.left_batch)
        .merge(&pick(&right, &attributes.right_batch))
        .map_err(|error| check::names_error(&error))?;
    let (left, right) = (pick(&left, left_free), pick(&right, right_free));
    let names: Names = batch.iter().chain(left.iter()).chain(right.iter()).cloned().collect();
    names.check_unique().map_err(|error| check::names_error(&error))?;
    Ok(check::drop_if_unnamed(names))
}

fn conv(attributes: &Conv, types: &[&TensorType]) -> Inferred {
    let [input, kernel] = operands(types)?;
    for (argument, ty) in [("input", input), ("kernel", kernel)] {
        if ty.rank() < 3 {
            let why = format!("must have batch, channel and spatial axes; got {ty}");
            return Err(ErrorKind::invalid(argument, why));
        }
    }
    if kernel.rank() != input.rank() {
        let why = format!("must have the rank of the input {input}; got {kernel}");
        return Err(ErrorKind::invalid("kernel", why));
    }
    check::permutation("input_permutation", &attributes.input_permutation, input)?;
    check::permutation("kernel_permutation", &attributes.kernel_permutation, kernel)?;
    check::permutation("output_permutation", &attributes.output_permutation, input)?;
    check_spatial_attributes(attributes, input)?;

    // The sizes below are in canonical layout.
    let at = |ty: &TensorType, permutation: &[usize]| -> Vec<usize> {
        permutation.iter().map(|&axis| ty.shape[axis]).collect()
    };
    let input_sizes = at(input, &attributes.input_permutation);
    let kernel_sizes = at(kernel, &attributes.kernel_permutation);
    check_groups(attributes, &input_sizes, &kernel_sizes)?;
    let mut sizes = vec![input_sizes[0] / attributes.batch_groups, kernel_sizes[0]];
    for axis in 0..input.rank() - 2 {
        sizes.push(spatial_size(attributes, axis, input_sizes[axis + 2], kernel_sizes[axis + 2])?);
    }
    let names = input.axis_names();
    let mut shape = Shape::from(vec![0; input.rank()]);
    let mut result_names: Vec<Option<AxisName>> = vec![None; input.rank()];
    for (canonical, &axis) in attributes.output_permutation.iter().enumerate() {
        shape.as_mut_slice()[axis] = sizes[canonical];
        result_names[axis] = names[attributes.input_permutation[canonical]].clone();
    }
    let dtype = promote(input.dtype, kernel.dtype).to_floating();
    tensor(TensorType { dtype, shape, names: check::drop_if_unnamed(Names::new(result_names)) })
}

fn check_spatial_attributes(attributes: &Conv, input: &TensorType) -> Result<(), ErrorKind> {
    let spatial = input.rank() - 2;
    let count = |argument, found: usize| {
        if found == spatial {
            return Ok(());
        }
        let why = format!(
            "must have one entry for each of the {spatial} spatial axes of {input}; got {found}"
        );
        Err(ErrorKind::invalid(argument, why))
    };
    count("padding", attributes.padding.len())?;
    for (argument, values) in [
        ("strides", &attributes.strides),
        ("input_dilation", &attributes.input_dilation),
        ("kernel_dilation", &attributes.kernel_dilation),
    ] {
        count(argument, values.len())?;
        check::positive(argument, values)?;
    }
    Ok(())
}

/// Checks that the groups divide the input channels (or the batch) and the output channels.
fn check_groups(attributes: &Conv, input: &[usize], kernel: &[usize]) -> Result<(), ErrorKind> {
    let Conv { feature_groups, batch_groups, .. } = *attributes;
    let invalid = |argument, why: String| Err(ErrorKind::invalid(argument, why));
    if feature_groups == 0 || batch_groups == 0 {
        return invalid("groups", "must be at least 1; got 0".into());
    }
    if feature_groups > 1 && batch_groups > 1 {
        let why = format!(
            "at most one number of groups can exceed 1; got {feature_groups} feature groups and \
             {batch_groups} batch groups"
        );
        return invalid("groups", why);
    }
    let (batch, channels, outputs) = (input[0], input[1], kernel[0]);
    if channels % feature_groups != 0 || outputs % feature_groups != 0 {
        let why = format!(
            "must divide {channels} input channels and {outputs} output channels; got \
             {feature_groups}"
        );
        return invalid("feature_groups", why);
    }
    if batch % batch_groups != 0 || outputs % batch_groups != 0 {
        let why = format!(
            "must divide a batch of {batch} and {outputs} output channels; got {batch_groups}"
        );
        return invalid("batch_groups", why);
    }
    if channels / feature_groups != kernel[1] {
        let why = format!(
            "must have {channels} / {feature_groups} input channels (channels of the input / \
             feature groups); got {}",
            kernel[1]
        );
        return invalid("kernel", why);
    }
    Ok(())
}

/// Returns the size of a spatial axis of the result.
fn spatial_size(
    attributes: &Conv,
    axis: usize,
    input: usize,
    kernel: usize,
) -> Result<usize, ErrorKind> {
    if kernel == 0 {
        return Err(ErrorKind::invalid(
            "kernel",
            format!("must not be empty; got size 0 for spatial axis {axis}"),
        ));
    }
    let (low, high) = attributes.padding[axis];
    check::padding(low, high)?;
    let spread = check::dilated_size(input, attributes.input_dilation[axis]);
    let padded = spread.and_then(|size| check::padded_size(size, low, high));
    let extent = check::dilated_size(kernel, attributes.kernel_dilation[axis]);
    let (Some(padded), Some(extent)) = (padded, extent) else {
        let why = format!(
            "must leave a valid size; got ({low}, {high}) for spatial axis {axis} of size {input}"
        );
        return Err(ErrorKind::invalid("padding", why));
    };
    Ok(check::window_count(padded, extent, attributes.strides[axis]))
}
