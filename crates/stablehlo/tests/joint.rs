//! Reductions of the same rows are one call of a kernel.

mod common;

use common::{kernels, program, ty};
use nxla_expr::{ExprId, Graph, Program, Result};
use nxla_tensor::DType;

/// Of each call of a kernel, how many inputs and results its program has.
fn calls(
    dtype: DType,
    shape: [usize; 2],
    build: impl FnOnce(&mut Graph, ExprId) -> Result<Vec<ExprId>>,
) -> Vec<(usize, usize)> {
    let program = program(&[ty(dtype, shape)], |graph, inputs| build(graph, inputs[0]));
    let sizes = |kernel: &Program| (kernel.inputs().len(), kernel.outputs().len());
    kernels(&program).iter().map(sizes).collect()
}

/// The logarithm of the sum of exponentials of each row, without overflow.
fn log_sum_exp(graph: &mut Graph, x: ExprId) -> Result<Vec<ExprId>> {
    let largest = graph.reduce_max(x, Some(&[1]), true)?;
    let moved = graph.subtract(x, largest)?;
    let exp = graph.exp(moved)?;
    let sum = graph.sum(exp, Some(&[1]), true)?;
    let log = graph.log(sum)?;
    Ok(vec![graph.add(log, largest)?])
}

#[test]
fn a_sum_of_what_is_compared_with_the_largest_goes_with_it() {
    for dtype in [DType::F32, DType::F64] {
        assert_eq!(calls(dtype, [64, 512], log_sum_exp), [(1, 2)]);
        // Few numbers, few rows, and rows that are short or long.
        assert!(calls(dtype, [63, 512], log_sum_exp).iter().all(|&(_, results)| results == 1));
        assert!(calls(dtype, [15, 4096], log_sum_exp).iter().all(|&(_, results)| results == 1));
        assert!(calls(dtype, [2048, 31], log_sum_exp).iter().all(|&(_, results)| results == 1));
        assert!(calls(dtype, [16, 40_000], log_sum_exp).iter().all(|&(_, results)| results == 1));
    }
    assert_eq!(calls(DType::F16, [64, 512], log_sum_exp), []);
}

#[test]
fn a_variance_goes_with_its_mean() {
    let moments = |graph: &mut Graph, x: ExprId| {
        let mean = graph.mean(x, Some(&[1]), false)?;
        let by_row = graph.reshape(mean, [64, 1])?;
        let moved = graph.subtract(x, by_row)?;
        let square = graph.multiply(moved, moved)?;
        Ok(vec![graph.mean(square, Some(&[1]), false)?, mean])
    };
    assert_eq!(calls(DType::F64, [64, 512], moments), [(1, 2)]);
}

#[test]
fn what_others_need_as_well_stays_with_xla() {
    let softmax = |graph: &mut Graph, x: ExprId| {
        let largest = graph.reduce_max(x, Some(&[1]), true)?;
        let moved = graph.subtract(x, largest)?;
        let exp = graph.exp(moved)?;
        let sum = graph.sum(exp, Some(&[1]), true)?;
        Ok(vec![graph.divide(exp, sum)?])
    };
    assert!(calls(DType::F64, [64, 512], softmax).iter().all(|&(_, results)| results == 1));
}

#[test]
fn sums_that_keep_the_axis_and_those_that_do_not_are_one() {
    let together = |graph: &mut Graph, x: ExprId| {
        let exp = graph.exp(x)?;
        let sums = [graph.sum(exp, Some(&[1]), false)?, graph.sum(x, Some(&[1]), true)?];
        let again = graph.sum(x, Some(&[1]), false)?;
        Ok(vec![sums[0], sums[1], again])
    };
    assert_eq!(calls(DType::F64, [64, 512], together), [(1, 2)]);
}
