//! Dot products and convolutions.

use nxla_expr::{Conv, Dot, Op, TensorType};

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

/// The factors stay narrow, for hardware that multiplies those; only the sum is wider.
fn dot(cx: &mut Cx<'_>, attributes: &Dot, left: Value, right: Value, ty: &TensorType) -> Value {
    let Dot { left_contract, left_batch, right_contract, right_batch } = attributes;
    let sum = cx.ty(widen::accumulator(ty.dtype), &ty.shape);
    let precision = cx.options.precision.name();
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
    let sum = cx.ty(widen::accumulator(ty.dtype), &ty.shape);
    let precision = cx.options.precision.name();
    let attributes = format_args!(
        "window_strides = {}, padding = {}, lhs_dilation = {}, rhs_dilation = {}, \
         dimension_numbers = #stablehlo.conv<[{}]x[{}]->[{}]>, feature_group_count = {} : i64, \
         batch_group_count = {} : i64, precision_config = [#stablehlo<precision {precision}>, \
         #stablehlo<precision {precision}>]",
        I64s(&conv.strides),
        Pairs(&conv.padding),
        I64s(&conv.input_dilation),
        I64s(&conv.kernel_dilation),
        layout(&conv.input_permutation, ["b", "f"]),
        layout(&conv.kernel_permutation, ["o", "i"]),
        layout(&conv.output_permutation, ["b", "f"]),
        conv.feature_groups,
        conv.batch_groups
    );
    let sum = cx.writer.operation("stablehlo.convolution", &[input, kernel], attributes, sum);
    cx.convert(sum, ty.dtype)
}

/// What each axis is, such as `b, f, 0, 1`: the first two canonical axes have letters, the spatial
/// ones are counted.
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
