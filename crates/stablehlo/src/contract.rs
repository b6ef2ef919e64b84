//! Dot products and convolutions.

use nxla_expr::{Conv, Dot, Op, TensorType};
use nxla_tensor::Shape;

use crate::context::Cx;
use crate::literal::{I64s, List, Pairs};
use crate::region::Source;
use crate::widen;
use crate::writer::Value;

pub(crate) fn lower(cx: &mut Cx<'_>, op: &Op, operands: &[Source], ty: &TensorType) -> Value {
    let left = cx.cast(operands[0], ty.dtype);
    let right = cx.cast(operands[1], ty.dtype);
    match op {
        Op::Dot(attributes) => dot(cx, attributes, left, right, ty),
        Op::Conv(attributes) => conv(cx, attributes, left, right, ty),
        op @ nxla_expr::outside!(contract) => unreachable!("{} is of another family", op.name()),
    }
}

/// The factors stay narrow, for hardware that multiplies narrow floats; only the sum is wider.
fn dot(cx: &mut Cx<'_>, dot: &Dot, left: Value, right: Value, ty: &TensorType) -> Value {
    let Dot { left_contract, left_batch, right_contract, right_batch } = dot;
    let sum = cx.ty(widen::accumulator(ty.dtype), &ty.shape);
    let precision = cx.precision.name();
    let attributes = format_args!(
        "dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [{}], \
         rhs_batching_dimensions = [{}], lhs_contracting_dimensions = [{}], \
         rhs_contracting_dimensions = [{}]>, precision_config = [#stablehlo<precision {precision}>, \
         #stablehlo<precision {precision}>]",
        List(left_batch),
        List(right_batch),
        List(left_contract),
        List(right_contract)
    );
    let sum = cx.writer.operation("stablehlo.dot_general", &[left, right], attributes, sum);
    cx.convert(sum, ty.dtype)
}

fn conv(cx: &mut Cx<'_>, conv: &Conv, input: Value, kernel: Value, ty: &TensorType) -> Value {
    let (padding, shape) = padding(cx, conv, input, kernel, &ty.shape);
    let sum = cx.ty(widen::accumulator(ty.dtype), &shape);
    let precision = cx.precision.name();
    let attributes = format_args!(
        "window_strides = {}, padding = {}, lhs_dilation = {}, rhs_dilation = {}, \
         dimension_numbers = #stablehlo.conv<[{}]x[{}]->[{}]>, feature_group_count = {} : i64, \
         batch_group_count = {} : i64, precision_config = [#stablehlo<precision {precision}>, \
         #stablehlo<precision {precision}>]",
        I64s(&conv.strides),
        Pairs(&padding),
        I64s(&conv.input_dilation),
        I64s(&conv.kernel_dilation),
        layout(&conv.input_permutation, ["b", "f"]),
        layout(&conv.kernel_permutation, ["o", "i"]),
        layout(&conv.output_permutation, ["b", "f"]),
        conv.feature_groups,
        conv.batch_groups
    );
    let mut sum = cx.writer.operation("stablehlo.convolution", &[input, kernel], attributes, sum);
    if shape != ty.shape {
        sum = cx.slice_first(sum, &ty.shape);
    }
    cx.convert(sum, ty.dtype)
}

/// Returns the padding to write, and the resulting shape. The result of the convolution is a
/// leading part of it.
///
/// XLA's compiler matches convolutions that are equivalent to a batch of products: along an axis,
/// neither padding nor dilation of the kernel, an input dilated by the kernel's size, and a stride of
/// one less. It assumes that input and kernel have equal sizes along the axis, and ends the process
/// otherwise. One more element of padding prevents the match.
fn padding(
    cx: &Cx<'_>,
    conv: &Conv,
    input: Value,
    kernel: Value,
    shape: &Shape,
) -> (Vec<(i64, i64)>, Shape) {
    let mut padding = conv.padding.to_vec();
    let mut sizes: Vec<usize> = shape.to_vec();
    for (axis, padding) in padding.iter_mut().enumerate() {
        let size = cx.shape(input.ty)[conv.input_permutation[axis + 2]];
        let window = cx.shape(kernel.ty)[conv.kernel_permutation[axis + 2]];
        let (stride, dilation) = (conv.strides[axis], conv.input_dilation[axis]);
        let resembles_products = *padding == (0, 0)
            && conv.kernel_dilation[axis] == 1
            && dilation == window
            && stride + 1 == window;
        if resembles_products && size != window && shape.size() > 0 {
            *padding = (0, 1);
            let padded = (size - 1) * dilation + 2;
            sizes[conv.output_permutation[axis + 2]] = (padded - window) / stride + 1;
        }
    }
    (padding, Shape::from(sizes))
}

/// The label of each axis, such as `b, f, 0, 1`: the first two canonical axes have letters, the
/// spatial ones are counted.
fn layout(permutation: &[usize], letters: [&str; 2]) -> String {
    let mut labels = vec![String::new(); permutation.len()];
    for (canonical, &axis) in permutation.iter().enumerate() {
        labels[axis] = match letters.get(canonical) {
            Some(letter) => (*letter).to_owned(),
            None => (canonical - letters.len()).to_string(),
        };
    }
    labels.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts() {
        assert_eq!(layout(&[0, 1, 2, 3], ["b", "f"]), "b, f, 0, 1");
        // Channels last.
        assert_eq!(layout(&[0, 3, 1, 2], ["b", "f"]), "b, 0, 1, f");
        assert_eq!(layout(&[3, 2, 0, 1], ["o", "i"]), "0, 1, i, o");
    }
}
