//! Slices, gathers, scatters and sorts.

use crate::common::{assert_lines, body, program, scalar, ty};
use nxla_expr::Op;
use nxla_expr::build::{Combine, Cumulative, SliceStart, Subscript, Update};
use nxla_stablehlo::{CustomCall, LowerOptions, kernel_program, lower};
use nxla_tensor::DType;

fn at(start: i64) -> SliceStart {
    SliceStart::Static(start)
}

#[test]
fn static_slice_starts_are_clamped() {
    let text = body(&[ty(DType::F32, [4, 5])], |g, p| {
        Ok(vec![g.slice(p[0], &[at(-3), at(9)], &[2, 4], Some(&[1, 3]))?])
    });
    assert_lines(
        &text,
        r#"
        %1 = "stablehlo.slice"(%0) {start_indices = array<i64: 0, 1>, limit_indices = array<i64: 2, 5>, strides = array<i64: 1, 3>} : (tensor<4x5xf32>) -> tensor<2x2xf32>
        "#,
    );
}

#[test]
fn dynamic_slices_take_indices_of_one_dtype() {
    let inputs = [ty(DType::F32, [4, 5]), scalar(DType::U32), scalar(DType::S8)];
    let text = body(&inputs, |g, p| {
        Ok(vec![g.slice(p[0], &[p[1].into(), p[2].into()], &[2, 4], Some(&[1, 2]))?])
    });
    assert_lines(
        &text,
        r#"
        %3 = stablehlo.constant dense<2147483647> : tensor<ui32>
        %4 = stablehlo.minimum %1, %3 : tensor<ui32>
        %5 = "stablehlo.convert"(%4) : (tensor<ui32>) -> tensor<i32>
        %6 = "stablehlo.convert"(%2) : (tensor<i8>) -> tensor<i32>
        %7 = "stablehlo.dynamic_slice"(%0, %5, %6) {slice_sizes = array<i64: 2, 4>} : (tensor<4x5xf32>, tensor<i32>, tensor<i32>) -> tensor<2x4xf32>
        %8 = "stablehlo.slice"(%7) {start_indices = array<i64: 0, 0>, limit_indices = array<i64: 2, 4>, strides = array<i64: 1, 2>} : (tensor<2x4xf32>) -> tensor<2x2xf32>
        "#,
    );
}

#[test]
fn updates_of_slices() {
    let inputs = [ty(DType::S32, [4]), ty(DType::F32, [2]), scalar(DType::S64)];
    let text = body(&inputs, |g, p| {
        Ok(vec![g.put_slice(p[0], &[p[2].into()], p[1])?, g.put_slice(p[1], &[at(1 << 40)], p[1])?])
    });
    assert_lines(
        &text,
        r#"
        %3 = "stablehlo.convert"(%0) : (tensor<4xi32>) -> tensor<4xf32>
        %4 = "stablehlo.dynamic_update_slice"(%3, %1, %2) : (tensor<4xf32>, tensor<2xf32>, tensor<i64>) -> tensor<4xf32>
        %5 = stablehlo.constant dense<2> : tensor<i32>
        %6 = "stablehlo.dynamic_update_slice"(%1, %1, %5) : (tensor<2xf32>, tensor<2xf32>, tensor<i32>) -> tensor<2xf32>
        "#,
    );
}

#[test]
fn gathers() {
    let text = body(&[ty(DType::F32, [3, 4, 5]), ty(DType::S32, [7, 2])], |g, p| {
        Ok(vec![g.gather(p[0], p[1], Some(&[0, 2]))?])
    });
    assert_lines(
        &text,
        r#"
        %2 = "stablehlo.gather"(%0, %1) {dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0, 2], start_index_map = [0, 2], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4, 1>} : (tensor<3x4x5xf32>, tensor<7x2xi32>) -> tensor<7x4xf32>
        "#,
    );
}

#[test]
fn scatters() {
    let inputs = [ty(DType::F32, [3, 4]), ty(DType::S32, [2, 1]), ty(DType::F32, [2, 4])];
    let text = body(&inputs, |g, p| Ok(vec![g.indexed_put(p[0], p[1], p[2], None)?]));
    assert_lines(
        &text,
        r#"
        %3 = "stablehlo.scatter"(%0, %1, %2) ({
        ^bb0(%4: tensor<f32>, %5: tensor<f32>):
        stablehlo.return %5 : tensor<f32>
        }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>} : (tensor<3x4xf32>, tensor<2x1xi32>, tensor<2x4xf32>) -> tensor<3x4xf32>
        "#,
    );
    let text = body(&inputs, |g, p| Ok(vec![g.indexed_add(p[0], p[1], p[2], None)?]));
    assert!(text.contains("stablehlo.add"), "{text}");
}

#[test]
fn sorts() {
    let text = body(&[ty(DType::S32, [3, 4])], |g, p| Ok(vec![g.sort(p[0], 1, true, false)?]));
    assert_lines(
        &text,
        r#"
        %1 = "stablehlo.sort"(%0) ({
        ^bb0(%2: tensor<i32>, %3: tensor<i32>):
        %4 = "stablehlo.compare"(%3, %2) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %4 : tensor<i1>
        }) {dimension = 1 : i64, is_stable = true} : (tensor<3x4xi32>) -> tensor<3x4xi32>
        "#,
    );
}

#[test]
fn nan_sorts_last() {
    let text = body(&[ty(DType::F32, [4])], |g, p| {
        Ok(vec![g.argsort(p[0], 0, false, true, DType::U8)?])
    });
    assert_lines(
        &text,
        r#"
        %1 = "stablehlo.iota"() {iota_dimension = 0 : i64} : () -> tensor<4xi32>
        %2:2 = "stablehlo.sort"(%0, %1) ({
        ^bb0(%3: tensor<f32>, %4: tensor<f32>, %5: tensor<i32>, %6: tensor<i32>):
        %7 = "stablehlo.compare"(%3, %4) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<f32>, tensor<f32>) -> tensor<i1>
        %8 = "stablehlo.compare"(%4, %4) {comparison_direction = #stablehlo<comparison_direction NE>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<f32>, tensor<f32>) -> tensor<i1>
        %9 = "stablehlo.compare"(%3, %3) {comparison_direction = #stablehlo<comparison_direction EQ>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<f32>, tensor<f32>) -> tensor<i1>
        %10 = stablehlo.and %9, %8 : tensor<i1>
        %11 = stablehlo.or %7, %10 : tensor<i1>
        stablehlo.return %11 : tensor<i1>
        }) {dimension = 0 : i64, is_stable = true} : (tensor<4xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xi32>)
        %12 = "stablehlo.convert"(%2#1) : (tensor<4xi32>) -> tensor<4xui8>
        "#,
    );
}

#[test]
fn custom_call_option_selects_nodes() {
    let sorted = program(&[ty(DType::F32, [8])], |g, p| {
        Ok(vec![g.sort(p[0], 0, false, true)?, g.cumulative(Cumulative::Sum, p[0], 0, false)?])
    });
    let calls = |custom_call: Option<CustomCall<'_>>| {
        let options = LowerOptions { custom_call, ..LowerOptions::default() };
        let text = lower(&sorted, &options).unwrap().text;
        let programs = text.split("program = \"").skip(1).filter_map(|call| call.split('"').next());
        let names = programs.map(|text| {
            let program = kernel_program(text).unwrap();
            program.graph().op(program.outputs()[0]).name().to_owned()
        });
        names.collect::<Vec<_>>()
    };
    assert_eq!(calls(None), Vec::<String>::new());
    assert_eq!(calls(Some(&|_, _| false)), Vec::<String>::new());
    assert_eq!(calls(Some(&|graph, id| matches!(graph.op(id), Op::Sort(_)))), ["sort"]);
    assert_eq!(calls(Some(&|graph, id| matches!(graph.op(id), Op::Block(_)))).len(), 1);
}

#[test]
fn updates_of_one_element_are_one_scatter() {
    for op in [Combine::Multiply, Combine::Max, Combine::Min] {
        let types = [ty(DType::F32, [5]), ty(DType::S32, [9]), ty(DType::F32, [9])];
        let program = program(&types, |g, p| {
            let items = [Subscript::Take(p[1])];
            Ok(vec![g.subscript_update(p[0], &items, p[2], Update::Combine(op))?])
        });
        let text = lower(&program, &LowerOptions::default()).unwrap().text;
        assert_eq!(
            text.matches("stablehlo.scatter").count(),
            2,
            "the op and its attribute: {text}"
        );
        assert!(!text.contains("stablehlo.sort"), "{text}");
    }
}
