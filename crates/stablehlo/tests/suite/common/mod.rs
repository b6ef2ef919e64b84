//! Helpers that build programs and return their StableHLO text.
#![allow(dead_code, reason = "each test binary uses some of these")]

use nxla_expr::{ExprId, Graph, Program, Result, TensorType};
use nxla_stablehlo::{LowerOptions, LoweredModule, lower};
use nxla_tensor::{DType, Shape};

/// Returns a type without names.
pub(crate) fn ty(dtype: DType, shape: impl Into<Shape>) -> TensorType {
    TensorType::new(dtype, shape)
}

/// Returns a scalar type.
pub(crate) fn scalar(dtype: DType) -> TensorType {
    TensorType::scalar(dtype)
}

/// Builds the program of a function.
pub(crate) fn program(
    inputs: &[TensorType],
    build: impl FnOnce(&mut Graph, &[ExprId]) -> Result<Vec<ExprId>>,
) -> Program {
    let mut graph = Graph::new();
    let parameters: Vec<ExprId> =
        inputs.iter().enumerate().map(|(index, ty)| graph.parameter(index, ty.clone())).collect();
    let outputs = build(&mut graph, &parameters).expect("the function is well typed");
    Program::new(&graph, inputs.to_vec(), &outputs).expect("the function is closed")
}

/// Returns the module of a function, with default options.
pub(crate) fn module(
    inputs: &[TensorType],
    build: impl FnOnce(&mut Graph, &[ExprId]) -> Result<Vec<ExprId>>,
) -> LoweredModule {
    lower(&program(inputs, build), &LowerOptions::default()).expect("the function can be lowered")
}

/// Returns the lines of `@main` between its head and its `return`, without indentation.
pub(crate) fn body(
    inputs: &[TensorType],
    build: impl FnOnce(&mut Graph, &[ExprId]) -> Result<Vec<ExprId>>,
) -> String {
    lines(&module(inputs, build).text)
}

/// Returns these lines of a given text.
pub(crate) fn lines(text: &str) -> String {
    let body = text
        .lines()
        .skip_while(|line| !line.contains("@main"))
        .skip(1)
        .take_while(|line| !line.starts_with("    return"))
        .map(|line| line.strip_prefix("    ").expect("the body of @main is indented"));
    body.collect::<Vec<_>>().join("\n")
}

/// Compares text with lines that have the indentation of the test.
#[track_caller]
pub(crate) fn assert_lines(found: &str, expected: &str) {
    let expected: Vec<&str> =
        expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let found_lines: Vec<&str> = found.lines().map(str::trim).collect();
    assert_eq!(found_lines, expected, "\n{found}");
}
