//! Element-wise ops: implicit conversions and broadcasts, and the operations that XLA requires
//! explicitly.

use crate::common::{assert_lines, body, module, scalar, ty};
use nxla_expr::{BinaryOp, ExprId, Graph, Op, UnaryOp};
use nxla_tensor::{DType, Scalar};

#[test]
fn operands_promote_and_broadcast() {
    let inputs = [ty(DType::S32, [2, 1]), ty(DType::F32, [3])];
    assert_lines(
        &body(&inputs, |g, p| Ok(vec![g.add(p[0], p[1])?])),
        r#"
        %2 = "stablehlo.convert"(%0) : (tensor<2x1xi32>) -> tensor<2x1xf32>
        %3 = "stablehlo.broadcast_in_dim"(%2) {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x1xf32>) -> tensor<2x3xf32>
        %4 = "stablehlo.broadcast_in_dim"(%1) {broadcast_dimensions = array<i64: 1>} : (tensor<3xf32>) -> tensor<2x3xf32>
        %5 = stablehlo.add %3, %4 : tensor<2x3xf32>
        "#,
    );
}

#[test]
fn conversions_are_shared() {
    let inputs = [ty(DType::S32, [4]), ty(DType::F32, [4])];
    let text = body(&inputs, |g, p| {
        let sum = g.add(p[0], p[1])?;
        let difference = g.subtract(p[0], p[1])?;
        Ok(vec![sum, difference])
    });
    assert_eq!(text.matches("stablehlo.convert").count(), 1, "{text}");
}

#[test]
fn constants_are_written_in_the_dtype_of_their_use() {
    let inputs = [ty(DType::F32, [2]), ty(DType::BF16, [2, 2])];
    assert_lines(
        &body(&inputs, |g, p| {
            let tenth = g.scalar_constant(Scalar::Float(0.1), DType::BF16)?;
            Ok(vec![g.multiply(p[0], tenth)?, g.multiply(p[1], tenth)?])
        }),
        "
        %2 = stablehlo.constant dense<0.100097656> : tensor<2xf32>
        %3 = stablehlo.multiply %2, %0 : tensor<2xf32>
        %4 = stablehlo.constant dense<0.100097656> : tensor<2x2xbf16>
        %5 = stablehlo.multiply %4, %1 : tensor<2x2xbf16>
        ",
    );
}

#[test]
fn comparisons_use_the_promoted_dtype() {
    let inputs = [scalar(DType::U8), scalar(DType::S8)];
    assert_lines(
        &body(&inputs, |g, p| Ok(vec![g.less(p[0], p[1])?])),
        r#"
        %2 = "stablehlo.convert"(%0) : (tensor<ui8>) -> tensor<i16>
        %3 = "stablehlo.convert"(%1) : (tensor<i8>) -> tensor<i16>
        %4 = "stablehlo.compare"(%2, %3) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<i16>, tensor<i16>) -> tensor<i1>
        "#,
    );
    let text =
        body(&[scalar(DType::Pred), scalar(DType::Pred)], |g, p| Ok(vec![g.equal(p[0], p[1])?]));
    assert!(!text.contains("convert"), "{text}");
}

#[test]
fn logical_operands_are_compared_with_zero() {
    let inputs = [ty(DType::F32, [2]), ty(DType::C64, [2])];
    assert_lines(
        &body(&inputs, |g, p| Ok(vec![g.logical_and(p[0], p[1])?])),
        r#"
        %2 = "stablehlo.convert"(%0) : (tensor<2xf32>) -> tensor<2xi1>
        %3 = stablehlo.constant dense<(0.0, 0.0)> : tensor<2xcomplex<f32>>
        %4 = "stablehlo.compare"(%1, %3) {comparison_direction = #stablehlo<comparison_direction NE>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<2xcomplex<f32>>, tensor<2xcomplex<f32>>) -> tensor<2xi1>
        %5 = stablehlo.and %2, %4 : tensor<2xi1>
        "#,
    );
}

#[test]
fn select_accepts_scalar_predicates() {
    let inputs = [scalar(DType::S32), ty(DType::F32, [2]), scalar(DType::F32)];
    assert_lines(
        &body(&inputs, |g, p| Ok(vec![g.select(p[0], p[1], p[2])?])),
        r#"
        %3 = "stablehlo.broadcast_in_dim"(%2) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<2xf32>
        %4 = "stablehlo.convert"(%0) : (tensor<i32>) -> tensor<i1>
        %5 = "stablehlo.select"(%4, %1, %3) : (tensor<i1>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
        "#,
    );
}

#[test]
fn shifts_and_signs_depend_on_the_kind() {
    let shift =
        |dtype| body(&[scalar(dtype), scalar(dtype)], |g, p| Ok(vec![g.right_shift(p[0], p[1])?]));
    assert!(shift(DType::U8).contains("shift_right_logical"));
    assert!(shift(DType::S8).contains("shift_right_arithmetic"));
    let sign = |dtype| body(&[scalar(dtype)], |g, p| Ok(vec![g.sign(p[0])?]));
    assert!(sign(DType::U8).contains("stablehlo.minimum"));
    assert!(sign(DType::F32).contains("stablehlo.sign"));
}

#[test]
fn is_nan_of_integers_is_false() {
    let text = body(&[ty(DType::S32, [2])], |g, p| Ok(vec![g.is_nan(p[0])?]));
    assert_lines(&text, "%1 = stablehlo.constant dense<false> : tensor<2xi1>");
    let text = body(&[ty(DType::C64, [2])], |g, p| Ok(vec![g.is_nan(p[0])?]));
    assert!(text.contains("stablehlo.real") && text.contains("stablehlo.imag"), "{text}");
}

#[test]
fn large_integer_exponents_are_decomposed() {
    let constant = |exponent: i64| {
        body(&[scalar(DType::S32)], |g, p| {
            let exponent = g.scalar_constant(Scalar::Int(exponent), DType::S32)?;
            Ok(vec![g.pow(p[0], exponent)?])
        })
    };
    assert_eq!(constant(63).matches("stablehlo.power").count(), 1);
    // XLA divides by the base for an exponent of -1.
    assert_eq!(constant(-1).matches("stablehlo.power").count(), 6);
    assert_eq!(constant(64).matches("stablehlo.power").count(), 6);
    let variable =
        body(&[scalar(DType::U64), scalar(DType::U64)], |g, p| Ok(vec![g.pow(p[0], p[1])?]));
    assert_eq!(variable.matches("stablehlo.power").count(), 11);
}

#[test]
fn only_saturating_conversions_are_clamped() {
    let cast = |from, to| body(&[scalar(from)], |g, p| Ok(vec![g.as_type(p[0], to)?]));
    let plain = [
        (DType::S64, DType::S8),
        (DType::F16, DType::S32),
        (DType::F32, DType::S32),
        (DType::F64, DType::S64),
        (DType::F16, DType::U32),
        (DType::F8E4M3FN, DType::S16),
        (DType::S32, DType::F32),
        (DType::F64, DType::F32),
        (DType::F32, DType::Pred),
        (DType::F32, DType::C64),
    ];
    for (from, to) in plain {
        assert_eq!(cast(from, to).lines().count(), 1, "{from} to {to}");
    }
    assert!(cast(DType::F32, DType::F8E4M3FN).contains("stablehlo.clamp"));
}

#[test]
fn bitcasts_to_pred_convert_a_byte() {
    let text = body(&[scalar(DType::F8E5M2)], |g, p| Ok(vec![g.bitcast(p[0], DType::Pred)?]));
    assert_lines(
        &text,
        r#"
        %1 = "stablehlo.bitcast_convert"(%0) : (tensor<f8E5M2>) -> tensor<ui8>
        %2 = "stablehlo.convert"(%1) : (tensor<ui8>) -> tensor<i1>
        "#,
    );
}

/// The result type of `@main`.
fn result_of(text: &str) -> &str {
    let head = text.lines().find(|line| line.contains("@main")).unwrap();
    head.split_once(") -> ").unwrap().1.trim_end_matches(" {")
}

/// Every op of the table can be lowered for every dtype that it accepts, and returns the type in
/// the graph.
#[test]
fn every_op_and_dtype() {
    let check = |inputs: &[nxla_expr::TensorType], op: Op| {
        let mut result = None;
        let build = |g: &mut Graph, p: &[ExprId]| {
            let id = g.make(op.clone(), p).unwrap_or(p[0]);
            result = (id != p[0]).then(|| g.dtype(id));
            Ok(vec![id])
        };
        let text = module(inputs, build).text;
        let Some(dtype) = result else { return };
        let expected = module(&[ty(dtype, [3])], |_, p| Ok(vec![p[0]])).text;
        assert_eq!(result_of(&text), result_of(&expected), "{}: {text}", op.name());
        assert!(text.contains(" = "), "{}: {text}", op.name());
    };
    for dtype in DType::ALL {
        let input = ty(dtype, [3]);
        UnaryOp::ALL.iter().for_each(|&op| check(std::slice::from_ref(&input), Op::Unary(op)));
        let two = [input.clone(), input.clone()];
        BinaryOp::ALL.iter().for_each(|&op| check(&two, Op::Binary(op)));
    }
}
