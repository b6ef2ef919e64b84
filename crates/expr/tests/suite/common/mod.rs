//! Test helper: the result of a builder as a string.

use nxla_expr::verify::verify;
use nxla_expr::{ExprId, Graph, Result, TensorType};
use nxla_tensor::{AxisName, Names};

/// Returns the type of the result of `build` for inputs of these types, or its error message. Also
/// verifies the graph.
///
/// Inputs have the format of printed types: `f32[2][3]`, `s32[x: 2][3]`.
pub(crate) fn outcome(
    inputs: &[&str],
    build: impl FnOnce(&mut Graph, &[ExprId]) -> Result<ExprId>,
) -> String {
    let mut graph = Graph::new();
    let inputs: Vec<ExprId> = inputs
        .iter()
        .enumerate()
        .map(|(index, text)| graph.parameter(index, parse(text)))
        .collect();
    let result = build(&mut graph, &inputs);
    assert_eq!(verify(&graph), Ok(()));
    match result {
        Ok(id) => graph.ty(id).to_string(),
        Err(error) => error.to_string(),
    }
}

fn parse(text: &str) -> TensorType {
    let (dtype, axes) = text.split_once('[').unwrap_or((text, ""));
    let mut ty = TensorType::scalar(dtype.parse().unwrap());
    let mut names = Vec::new();
    for axis in axes.split('[').map(|axis| axis.trim_end_matches(']')) {
        if axis.is_empty() {
            continue;
        }
        let (name, size) = match axis.split_once(": ") {
            Some((name, size)) => (Some(AxisName::from(name)), size),
            None => (None, axis),
        };
        names.push(name);
        ty.shape.push(size.parse().unwrap());
    }
    let names = Names::new(names);
    ty.names = (!names.is_unnamed()).then_some(names);
    ty
}
