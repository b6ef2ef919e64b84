//! Values whose elements are compared with each other.

use crate::common::{assert_lines, program, ty};
use nxla_expr::{ExprId, Graph, Result};
use nxla_stablehlo::{LowerOptions, lower};
use nxla_tensor::{DType, Number};

fn text(
    options: &LowerOptions<'_>,
    dtype: DType,
    build: impl FnOnce(&mut Graph, ExprId) -> Result<Vec<ExprId>>,
) -> String {
    let program = program(&[ty(dtype, [4, 6])], |graph, p| build(graph, p[0]));
    lower(&program, options).unwrap().text
}

/// The number of values that are materialized for a CPU.
fn count_materialized(build: impl FnOnce(&mut Graph, ExprId) -> Result<Vec<ExprId>>) -> usize {
    let options = LowerOptions { materialize_by_calls: true, ..LowerOptions::default() };
    text(&options, DType::F32, build).matches("call @materialize").count()
}

/// The positions of the largest element of each row.
fn mask(graph: &mut Graph, x: ExprId) -> Result<ExprId> {
    let square = graph.multiply(x, x)?;
    let y = graph.add(square, x)?;
    let largest = graph.reduce_max(y, Some(&[1]), true)?;
    graph.equal(y, largest)
}

#[test]
fn values_are_materialized_by_calls_or_barriers() {
    let build = |graph: &mut Graph, x| Ok(vec![mask(graph, x)?]);
    let barrier = text(&LowerOptions::default(), DType::F32, build);
    assert_eq!(barrier.matches("optimization_barrier").count(), 1, "{barrier}");
    assert!(!barrier.contains("call"), "{barrier}");

    let options = LowerOptions { materialize_by_calls: true, ..LowerOptions::default() };
    let called = text(&options, DType::F32, build);
    assert!(!called.contains("optimization_barrier"), "{called}");
    let from = called.find("  func.func private").unwrap();
    let line = called.lines().find(|line| line.contains("call @")).unwrap();
    assert_lines(
        line,
        "%3 = call @materialize_0(%2) {mhlo.frontend_attributes = {inlineable = \"false\"}} : \
         (tensor<4x6xf32>) -> tensor<4x6xf32>",
    );
    let function = &called[from..];
    assert!(function.contains("func.func private @materialize_0(") && function.contains("select"));

    // Integers are not rounded.
    let whole = text(&options, DType::S32, build);
    assert!(!whole.contains("call") && !whole.contains("barrier"), "{whole}");
}

#[test]
fn compared_values_are_materialized() {
    assert_eq!(count_materialized(|graph, x| Ok(vec![mask(graph, x)?])), 1);
    // Moving elements or changing their sign does not change which elements are compared.
    let moved = |graph: &mut Graph, x| {
        let y = graph.multiply(x, x)?;
        let moved = graph.transpose(y, None)?;
        let moved = graph.abs(moved)?;
        let largest = graph.reduce_max(moved, Some(&[0]), false)?;
        let largest = graph.reshape(largest, [4, 1])?;
        Ok(vec![graph.greater_equal(y, largest)?])
    };
    assert_eq!(count_materialized(moved), 1);
    let sorted = |graph: &mut Graph, x| {
        let y = graph.multiply(x, x)?;
        let sorted = graph.sort(y, 1, false, false)?;
        let third = graph.slice_along_axis(sorted, 2, 1, 1, 1)?;
        Ok(vec![graph.less(y, third)?])
    };
    assert_eq!(count_materialized(sorted), 1);
    // If the program returns both, the caller may compare a tensor with its extremum.
    let scaled = |graph: &mut Graph, x| {
        let y = graph.multiply(x, x)?;
        Ok(vec![graph.reduce_min(y, Some(&[1]), false)?, y])
    };
    assert_eq!(count_materialized(scaled), 1);
}

#[test]
fn other_values_are_not_materialized() {
    let softmax = |graph: &mut Graph, x| {
        let y = graph.multiply(x, x)?;
        Ok(vec![graph.softmax(y, 1)?])
    };
    assert_eq!(count_materialized(softmax), 0);
    let relu = |graph: &mut Graph, x| {
        let y = graph.multiply(x, x)?;
        let one = graph.number(Number::Float(1.0))?;
        let mask = graph.greater(y, one)?;
        let largest = graph.reduce_max(y, None, false)?;
        Ok(vec![graph.select(mask, y, largest)?])
    };
    assert_eq!(count_materialized(relu), 0);
    // A value is equal to itself even if it is computed twice.
    let is_number = |graph: &mut Graph, x| {
        let y = graph.multiply(x, x)?;
        Ok(vec![graph.equal(y, y)?, graph.reduce_max(y, None, false)?])
    };
    assert_eq!(count_materialized(is_number), 0);
}
