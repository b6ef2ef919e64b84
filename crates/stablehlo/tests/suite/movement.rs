//! Creation and movement.

use crate::common::{assert_lines, body, scalar, ty};
use nxla_expr::Padding;
use nxla_tensor::{DType, Scalar};

#[test]
fn reshapes() {
    assert_lines(
        &body(&[ty(DType::F32, [1, 6])], |g, p| {
            Ok(vec![g.squeeze(p[0], None)?, g.reshape(p[0], [2, 3])?])
        }),
        r#"
        %1 = "stablehlo.reshape"(%0) : (tensor<1x6xf32>) -> tensor<6xf32>
        %2 = "stablehlo.reshape"(%0) : (tensor<1x6xf32>) -> tensor<2x3xf32>
        "#,
    );
}

#[test]
fn permutations_and_broadcasts() {
    assert_lines(
        &body(&[ty(DType::F32, [2, 3])], |g, p| {
            let transposed = g.transpose(p[0], None)?;
            let reversed = g.reverse(p[0], Some(&[1]))?;
            Ok(vec![transposed, reversed, g.broadcast(p[0], [2, 4, 3], Some(&[0, 2]))?])
        }),
        r#"
        %1 = "stablehlo.transpose"(%0) {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
        %2 = "stablehlo.reverse"(%0) {dimensions = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
        %3 = "stablehlo.broadcast_in_dim"(%0) {broadcast_dimensions = array<i64: 0, 2>} : (tensor<2x3xf32>) -> tensor<2x4x3xf32>
        "#,
    );
}

#[test]
fn padding_and_joining_promote() {
    assert_lines(
        &body(&[ty(DType::U8, [2]), ty(DType::F32, [1])], |g, p| {
            let half = g.scalar_constant(Scalar::Float(0.5), DType::F32)?;
            let padded = g.pad(p[0], half, &[Padding { low: -1, high: 2, interior: 1 }])?;
            Ok(vec![padded, g.concatenate(&[p[0], p[1]], 0)?, g.stack(&[p[1], p[1]], 0, None)?])
        }),
        r#"
        %2 = "stablehlo.convert"(%0) : (tensor<2xui8>) -> tensor<2xf32>
        %3 = stablehlo.constant dense<0.5> : tensor<f32>
        %4 = "stablehlo.pad"(%2, %3) {edge_padding_low = array<i64: -1>, edge_padding_high = array<i64: 2>, interior_padding = array<i64: 1>} : (tensor<2xf32>, tensor<f32>) -> tensor<4xf32>
        %5 = "stablehlo.concatenate"(%2, %1) {dimension = 0 : i64} : (tensor<2xf32>, tensor<1xf32>) -> tensor<3xf32>
        %6 = "stablehlo.reshape"(%1) : (tensor<1xf32>) -> tensor<1x1xf32>
        %7 = "stablehlo.reshape"(%1) : (tensor<1xf32>) -> tensor<1x1xf32>
        %8 = "stablehlo.concatenate"(%6, %7) {dimension = 0 : i64} : (tensor<1x1xf32>, tensor<1x1xf32>) -> tensor<2x1xf32>
        "#,
    );
}

#[test]
fn packed_elements_are_moved_as_bytes() {
    let text = body(&[ty(DType::U4, [2, 3])], |g, p| Ok(vec![g.transpose(p[0], None)?]));
    assert_lines(
        &text,
        r#"
        %1 = "stablehlo.convert"(%0) : (tensor<2x3xui4>) -> tensor<2x3xui8>
        %2 = "stablehlo.optimization_barrier"(%1) : (tensor<2x3xui8>) -> tensor<2x3xui8>
        %3 = "stablehlo.transpose"(%2) {permutation = array<i64: 1, 0>} : (tensor<2x3xui8>) -> tensor<3x2xui8>
        %4 = "stablehlo.optimization_barrier"(%3) : (tensor<3x2xui8>) -> tensor<3x2xui8>
        %5 = "stablehlo.convert"(%4) : (tensor<3x2xui8>) -> tensor<3x2xui4>
        "#,
    );
}

#[test]
fn constants_are_written_in_their_shape() {
    let text = body(&[], |g, _| Ok(vec![g.constant(Scalar::Float(1.5), ty(DType::BF16, [2, 1]))?]));
    assert_lines(&text, "%0 = stablehlo.constant dense<1.5> : tensor<2x1xbf16>");
}

#[test]
fn iota_dtypes() {
    assert_lines(
        &body(&[], |g, _| {
            let rows = g.iota([2, 3], Some(0), DType::S64)?;
            let columns = g.iota([2, 3], Some(1), DType::F32)?;
            let all = g.iota([2, 3], None, DType::F16)?;
            Ok(vec![rows, columns, all, g.eye([2, 2], DType::F32)?])
        }),
        r#"
        %0 = "stablehlo.iota"() {iota_dimension = 0 : i64} : () -> tensor<2x3xi64>
        %1 = "stablehlo.iota"() {iota_dimension = 1 : i64} : () -> tensor<2x3xf32>
        %2 = "stablehlo.iota"() {iota_dimension = 0 : i64} : () -> tensor<6xi32>
        %3 = "stablehlo.reshape"(%2) : (tensor<6xi32>) -> tensor<2x3xi32>
        %4 = "stablehlo.convert"(%3) : (tensor<2x3xi32>) -> tensor<2x3xf16>
        %5 = "stablehlo.iota"() {iota_dimension = 0 : i64} : () -> tensor<2x2xi32>
        %6 = "stablehlo.iota"() {iota_dimension = 1 : i64} : () -> tensor<2x2xi32>
        %7 = "stablehlo.compare"(%5, %6) {comparison_direction = #stablehlo<comparison_direction EQ>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<2x2xi32>, tensor<2x2xi32>) -> tensor<2x2xi1>
        %8 = stablehlo.constant dense<1.0> : tensor<2x2xf32>
        %9 = stablehlo.constant dense<0.0> : tensor<2x2xf32>
        %10 = "stablehlo.select"(%7, %8, %9) : (tensor<2x2xi1>, tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
        "#,
    );
}

#[test]
fn empty_results_are_empty_constants() {
    let text = body(&[ty(DType::F32, [0, 3]), scalar(DType::F32)], |g, p| {
        let sorted = g.sort(p[0], 1, false, false)?;
        Ok(vec![g.add(sorted, p[1])?])
    });
    assert_lines(&text, "%2 = stablehlo.constant dense<> : tensor<0x3xf32>");
}
