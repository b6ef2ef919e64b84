//! Slices, gathers, scatters and sorts.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod common;

use common::{assert_lines, body, kernels, program, scalar, ty};
use nxla_expr::build::{
    Combine, Cumulative, Draw, Side, SliceStart, Subscript, Update, WindowOptions,
};
use nxla_expr::{ExprId, Graph, Program, Result};
use nxla_stablehlo::{LowerOptions, lower};
use nxla_tensor::{DType, Scalar};

fn at(start: i64) -> SliceStart {
    SliceStart::Static(start)
}

#[test]
fn static_slices_are_moved_inside() {
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
fn large_sorts_and_scans_are_kernels_where_there_are_any() {
    let calls = |size: usize, kernels: bool| {
        let sorted = program(&[ty(DType::F32, [size])], |g, p| {
            Ok(vec![g.sort(p[0], 0, false, true)?, g.cumulative(Cumulative::Sum, p[0], 0, false)?])
        });
        let options = LowerOptions { kernels, ..LowerOptions::default() };
        lower(&sorted, &options).unwrap().text.matches("\"nxla_host_call\"").count()
    };
    assert_eq!([calls(128, true), calls(127, true), calls(128, false)], [2, 0, 0]);
}

#[test]
fn searches_for_many_numbers_are_kernels() {
    let calls = |size: usize, dtype: DType| {
        has_kernel(&program(&[ty(dtype, [1000]), ty(dtype, [size])], |g, p| {
            Ok(vec![g.searchsorted(p[0], p[1], Side::Left)?])
        }))
    };
    assert!(calls(256, DType::F32) && calls(1000, DType::S64));
    assert!(!calls(255, DType::F32) && !calls(1000, DType::BF16) && !calls(1000, DType::U4));
}

/// Whether a program calls a kernel.
fn has_kernel(program: &Program) -> bool {
    let options = LowerOptions { kernels: true, ..LowerOptions::default() };
    lower(program, &options).unwrap().text.contains("\"nxla_host_call\"")
}

#[test]
fn large_reductions_of_what_is_in_memory_are_kernels() {
    let sum = |dtype, shape: [usize; 2], axis: i64, is_computed: bool| {
        has_kernel(&program(&[ty(dtype, shape)], |g, p| {
            let x = if is_computed { g.erfc(p[0])? } else { p[0] };
            Ok(vec![g.sum(x, Some(&[axis]), false)?])
        }))
    };
    assert!(sum(DType::F32, [256, 256], 0, false) && sum(DType::F64, [256, 128], 0, false));
    assert!(!sum(DType::F32, [256, 255], 0, false) && !sum(DType::F64, [256, 127], 0, false));
    // XLA computes a function of a column while it adds up, and writes that of a row.
    assert!(!sum(DType::F32, [440, 600], 0, true) && sum(DType::F32, [440, 600], 1, true));
    // What a program computes, XLA reduces along with other things until it is larger.
    assert!(!sum(DType::F32, [400, 600], 1, true));
    // Its library has short rows, and those that can be cut into short ones.
    assert!(!sum(DType::F32, [1000, 512], 1, true) && !sum(DType::F32, [1000, 512], 1, false));
    assert!(!sum(DType::F32, [128, 600], 1, false) && sum(DType::F32, [128, 521], 1, false));
    // Of many given ones the evaluator is faster all the same.
    assert!(!sum(DType::F32, [436, 600], 1, false) && sum(DType::F32, [437, 600], 1, false));
    assert!(!sum(DType::F64, [2048, 32], 1, false) && sum(DType::F64, [2048, 33], 1, false));
    // Integers are reduced like floats, but for those that are computed in others.
    assert!(sum(DType::S32, [256, 256], 0, false) && sum(DType::U8, [128, 521], 1, false));
    assert!(!sum(DType::S32, [256, 255], 0, false) && !sum(DType::S32, [4096, 32], 1, false));
    assert!(!sum(DType::BF16, [1024, 1024], 0, false) && !sum(DType::C64, [1024, 1024], 0, false));
}

#[test]
fn counts_of_what_a_program_is_given_compare_along() {
    let counts = |size: usize, is_computed: bool, by: DType| {
        has_kernel(&program(&[ty(DType::F32, [size, size]), ty(by, [size, size])], |g, p| {
            let x = if is_computed { g.erfc(p[0])? } else { p[0] };
            let above = g.greater(x, p[1])?;
            Ok(vec![g.sum(above, None, false)?])
        }))
    };
    assert!(counts(256, false, DType::F32) && !counts(255, false, DType::F32));
    // What XLA computes or converts it compares and counts on the way.
    assert!(!counts(256, true, DType::F32) && !counts(256, false, DType::S32));
}

#[test]
fn pooling_of_what_a_program_is_given_is_a_kernel() {
    let pool_by = |dtype, size, is_computed: bool, stride| {
        has_kernel(&program(&[ty(dtype, [size, size])], |g, p| {
            let x = if is_computed { g.erfc(p[0])? } else { p[0] };
            let options = WindowOptions::default().strides(vec![2, stride]);
            Ok(vec![g.window_max(x, &[2, 2], &options)?])
        }))
    };
    let pool = |dtype, size, is_computed| pool_by(dtype, size, is_computed, 2);
    assert!(pool(DType::F32, 64, false) && pool(DType::F64, 64, false));
    assert!(pool(DType::F32, 1024, false) && !pool(DType::F64, 1024, false));
    assert!(pool_by(DType::F64, 1024, false, 1));
    assert!(!pool(DType::F32, 63, false) && !pool(DType::F16, 64, false));
    // XLA computes a function along with the extrema.
    assert!(!pool(DType::F32, 64, true));
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

/// Of each kernel that a program calls, the types of what it reads.
fn read_by_kernels(program: &Program) -> Vec<Vec<String>> {
    let types = |kernel: &Program| kernel.inputs().iter().map(ToString::to_string).collect();
    kernels(program).iter().map(types).collect()
}

#[test]
fn a_reduction_takes_cheap_operations_along() {
    // So few rows that each reduction is a call of its own.
    let program = program(&[ty(DType::F64, [8, 8192])], |g, p| {
        let (mean, kept) = (g.mean(p[0], Some(&[1]), false)?, g.mean(p[0], Some(&[1]), true)?);
        let difference = g.subtract(p[0], kept)?;
        let two = g.scalar_constant(Scalar::Int(2), DType::S32)?;
        let square = g.pow(difference, two)?;
        let missing = g.erfc(p[0])?;
        let product = g.multiply(missing, p[0])?;
        Ok(vec![mean, g.sum(square, Some(&[1]), false)?, g.sum(product, Some(&[1]), false)?])
    });
    let read = read_by_kernels(&program);
    let (rows, mean) = ("f64[8][8192]", "f64[8][1]");
    // The sums of both means are one, whether they keep the axis or not; what divides one goes along.
    assert_eq!(read, [vec![rows], vec![mean, rows], vec![rows, rows]]);
}

#[test]
fn short_rows_are_computed_by_a_kernel_where_xla_takes_longer() {
    // Of two tensors that are broadcast to these sizes.
    let sum = |sizes: [[usize; 3]; 2], is_product: bool| {
        has_kernel(&program(&sizes.map(|shape| ty(DType::F32, shape)), |g, p| {
            let x = match is_product {
                true => g.multiply(p[0], p[1])?,
                false => g.subtract(p[0], p[1])?,
            };
            Ok(vec![g.sum(x, Some(&[-1]), false)?])
        }))
    };
    // XLA adds up products of tensors of that size one by one, and writes differences for its library.
    assert!(sum([[32, 32, 32]; 2], true) && !sum([[31, 32, 32]; 2], true));
    assert!(sum([[32, 32, 32], [32, 32, 1]], true) && !sum([[32, 32, 32]; 2], false));
    // Of much smaller tensors it computes products on the way, and the library would read much more.
    assert!(!sum([[256, 1, 32], [1, 256, 32]], true) && sum([[256, 1, 32], [1, 256, 32]], false));
    assert!(!sum([[128, 1, 32], [1, 128, 32]], false));
}

#[test]
fn a_reduction_takes_functions_along_that_nobody_else_needs() {
    let sum = |is_shown: bool| {
        program(&[ty(DType::F64, [512, 512]), ty(DType::F64, [512, 1])], |g, p| {
            let difference = g.subtract(p[0], p[1])?;
            let powers = g.exp(difference)?;
            let sum = g.sum(powers, Some(&[1]), true)?;
            Ok(if is_shown { vec![g.divide(powers, sum)?] } else { vec![sum] })
        })
    };
    assert_eq!(read_by_kernels(&sum(false)), [vec!["f64[512][512]", "f64[512][1]"]]);
    assert_eq!(read_by_kernels(&sum(true)), [vec!["f64[512][512]"]]);
}

#[test]
fn many_random_words_are_kernels() {
    let words = |count: usize| {
        let inputs = [ty(DType::U32, [2]), scalar(DType::F32)];
        has_kernel(&program(&inputs, |g, p| {
            Ok(vec![g.random_exponential(p[0], p[1], &Draw::new([count]))?])
        }))
    };
    assert!(words(256) && !words(255));
}

#[test]
fn functions_that_xla_computes_slowly_are_kernels_with_what_is_around_them() {
    let calls = |size: usize, dtype, build: fn(&mut Graph, ExprId) -> Result<ExprId>| {
        has_kernel(&program(&[ty(dtype, [size])], |g, p| Ok(vec![build(g, p[0])?])))
    };
    let sine: fn(&mut Graph, ExprId) -> Result<ExprId> = |g, x| g.sin(x);
    assert!(calls(4096, DType::F32, sine) && calls(4096, DType::F64, sine));
    assert!(!calls(4095, DType::F32, sine) && !calls(4096, DType::F16, sine));
    let log: fn(&mut Graph, ExprId) -> Result<ExprId> = |g, x| g.log(x);
    assert!(!calls(4096, DType::F32, log) && calls(4096, DType::F64, log));
    let powers = |exponent: f64| {
        has_kernel(&program(&[ty(DType::F32, [4096])], |g, p| {
            let exponent = g.scalar_constant(Scalar::Float(exponent), DType::F32)?;
            Ok(vec![g.pow(p[0], exponent)?])
        }))
    };
    assert!(powers(2.5) && powers(-1.5) && powers(0.3));
    assert!(!powers(2.0) && !powers(0.5) && !powers(-1.0));
    // Of a sine of a tangent only what both read is an argument.
    let chain = program(&[ty(DType::F32, [5000]), ty(DType::F32, [5000])], |g, p| {
        let two = g.scalar_constant(Scalar::Int(2), DType::S32)?;
        let sum = g.add(p[0], p[1])?;
        let sum = g.multiply(sum, two)?;
        let tangent = g.tan(sum)?;
        Ok(vec![g.sin(tangent)?])
    });
    let vector = "f32[5000]";
    assert!(read_by_kernels(&chain).contains(&vec![vector.to_owned(), vector.to_owned()]));
}

#[test]
fn products_of_transposed_matrices_of_few_columns_are_kernels() {
    let calls = |rows: usize, columns: usize, dtype| {
        has_kernel(&program(&[ty(dtype, [rows, columns]), ty(dtype, [rows])], |g, p| {
            let transposed = g.transpose(p[0], None)?;
            Ok(vec![g.matmul(transposed, p[1])?])
        }))
    };
    assert!(calls(2000, 10, DType::F32) && calls(200, 63, DType::F64));
    assert!(!calls(100, 10, DType::F32) && !calls(2000, 64, DType::F32));
    assert!(!calls(2000, 10, DType::S32) && !calls(2000, 10, DType::BF16));
}
