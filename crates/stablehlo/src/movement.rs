//! Ops that move elements without computing.

use nxla_expr::{Op, Padding, TensorType};
use smallvec::SmallVec;

use crate::builder::Pad;
use crate::context::Cx;
use crate::literal::I64s;
use crate::region::Source;
use crate::writer::{Value, Values};

pub(crate) fn lower(cx: &mut Cx<'_>, op: &Op, operands: &[Source], ty: &TensorType) -> Value {
    match op {
        Op::Reshape(_) | Op::Squeeze(_) => {
            let x = cx.value(operands[0]);
            cx.reshape(x, &ty.shape)
        }
        Op::Transpose(permutation) => {
            let x = cx.value(operands[0]);
            cx.transpose(x, permutation)
        }
        Op::Reverse(axes) => {
            let x = cx.value(operands[0]);
            let attributes = format_args!("dimensions = {}", I64s(axes));
            cx.writer.operation("stablehlo.reverse", &[x], attributes, x.ty)
        }
        Op::Broadcast(attributes) => match operands[0] {
            Source::Splat(number, _) => cx.splat(number, ty.dtype, &ty.shape),
            Source::Value(x) => cx.broadcast(x, &attributes.axes, &ty.shape),
        },
        Op::Pad(config) => pad(cx, config, operands, ty),
        Op::Concatenate(axis) => {
            let values: Values = operands.iter().map(|&x| cx.cast(x, ty.dtype)).collect();
            cx.concatenate(&values, *axis)
        }
        Op::Stack(attributes) => {
            let mut shape = ty.shape.clone();
            shape.as_mut_slice()[attributes.axis] = 1;
            let row = |&x: &Source| {
                let x = cx.cast(x, ty.dtype);
                cx.reshape(x, &shape)
            };
            let rows: Values = operands.iter().map(row).collect();
            cx.concatenate(&rows, attributes.axis)
        }
        op @ nxla_expr::outside!(movement) => unreachable!("{} is of another family", op.name()),
    }
}

fn pad(cx: &mut Cx<'_>, config: &[Padding], operands: &[Source], ty: &TensorType) -> Value {
    let (x, filling) = (cx.cast(operands[0], ty.dtype), cx.cast(operands[1], ty.dtype));
    let padding = Pad {
        low: config.iter().map(|axis| axis.low).collect(),
        high: config.iter().map(|axis| axis.high).collect(),
        interior: config.iter().map(|axis| axis.interior).collect::<SmallVec<_>>(),
        shape: &ty.shape,
    };
    cx.pad(x, filling, &padding)
}
