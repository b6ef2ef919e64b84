//! Tensors that are created by a formula.

use crate::common::{assert_lines, body};
use nxla_expr::TensorType;
use nxla_tensor::{DType, Scalar};

#[test]
fn iota() {
    let text = body(&[], |g, _| Ok(vec![g.iota([2, 3], Some(1), DType::F32)?]));
    assert_lines(
        &text,
        r#"%0 = "stablehlo.iota"() {iota_dimension = 1 : i64} : () -> tensor<2x3xf32>"#,
    );
    // Iota over all elements counts one axis, then reshapes it.
    let text = body(&[], |g, _| Ok(vec![g.iota([2, 3], None, DType::S32)?]));
    assert!(text.contains("() -> tensor<6xi32>"), "{text}");
    assert!(text.ends_with("(tensor<6xi32>) -> tensor<2x3xi32>"), "{text}");
}

#[test]
fn constants_are_written_in_their_shape() {
    let text = body(&[], |g, _| {
        let ty = TensorType::new(DType::BF16, [2, 1]);
        Ok(vec![g.constant(Scalar::Float(1.5), ty)?])
    });
    assert_lines(&text, "%0 = stablehlo.constant dense<1.5> : tensor<2x1xbf16>");
}

#[test]
fn eye_compares_two_iotas() {
    let text = body(&[], |g, _| Ok(vec![g.eye([2, 2], DType::F32)?]));
    assert_eq!(text.matches("stablehlo.iota").count(), 2, "{text}");
    assert!(text.contains("comparison_direction EQ"), "{text}");
    assert!(text.ends_with("-> tensor<2x2xf32>"), "{text}");
}
