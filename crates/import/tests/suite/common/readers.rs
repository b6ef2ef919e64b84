//! Readers of untrusted files: the result is a valid program or an error. The targets of `cargo fuzz`
//! call these functions too.
#![allow(dead_code, unreachable_pub, reason = "each target uses one")]

use nxla_expr::TensorType;
use nxla_expr::verify::verify_program;
use nxla_import::onnx::{Dim, Model, NoExternal};
use nxla_import::stablehlo::{Module, ReadOptions, Weights};

/// Reads a StableHLO module in textual form, and in the form of the bytes.
pub fn stablehlo(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let weights_are_inputs = ReadOptions { weights: Weights::Inputs, ..ReadOptions::default() };
    let modules = [
        Module::from_bytes(text.as_bytes(), &ReadOptions::default()),
        Module::from_bytes(bytes, &ReadOptions::default()),
        Module::from_bytes(bytes, &weights_are_inputs),
    ];
    for module in modules.into_iter().flatten() {
        verify_program(module.program()).expect("a program that is read is valid");
    }
}

/// Reads an ONNX model and traces it for inputs of its declared types; an axis of any size has two
/// elements. Returns whether the trace succeeds.
pub fn onnx(bytes: &[u8]) -> bool {
    let Ok(model) = Model::read(bytes, &mut NoExternal) else { return false };
    let weights: Vec<TensorType> = model
        .weights()
        .iter()
        .map(|(_, value)| TensorType::new(value.dtype(), value.shape().clone()))
        .collect();
    let inputs: Option<Vec<TensorType>> = model
        .inputs()
        .iter()
        .map(|input| {
            let size = |dim: &Dim| match dim {
                Dim::Size(size) => *size,
                Dim::Named(_) | Dim::Any => 2,
            };
            let shape: Vec<usize> = input.shape.iter().flatten().map(size).collect();
            Some(TensorType::new(input.dtype?, shape))
        })
        .collect();
    let evaluate = |_: &nxla_expr::Program| Err(String::from("constants are not evaluated"));
    let Some(inputs) = inputs else { return false };
    let Ok(program) = model.program(&weights, &inputs, &evaluate) else { return false };
    verify_program(&program).expect("a traced model is a valid program");
    true
}
