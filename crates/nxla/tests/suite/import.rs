//! Imported models as functions of expressions.

use nxla::import::onnx;
use nxla::{ErrorClass, Expr, Tensor, grad, jit};

/// A model of `y = x * w` with `w = [2, 3]`.
const MODEL: &[u8] = b"\x08\x08:H\n\x0e\n\x01x\n\x01w\x12\x01y\"\x03Mul\x12\x01g*\x11\
    \x08\x02\x10\x01B\x01wJ\x08\x00\x00\x00@\x00\x00@@Z\x0f\n\x01x\x12\n\n\x08\x08\x01\
    \x12\x04\n\x02\x08\x02b\x0f\n\x01y\x12\n\n\x08\x08\x01\x12\x04\n\x02\x08\x02B\x04\n\
    \x00\x10\x11";

#[test]
fn onnx_models_are_functions_of_weights_and_inputs() {
    let path = std::env::temp_dir().join(format!("nxla-import-{}.onnx", std::process::id()));
    std::fs::write(&path, MODEL).unwrap();
    let model = onnx::load(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let weights = onnx::weights(&model);
    let x = Tensor::from([5.0f32, 7.0]);
    let captured = weights.clone();
    let constant = {
        let model = model.clone();
        jit(move |x: Expr| onnx::apply(&model, &captured, &[x]))
    };
    assert_eq!(constant.call(&x).unwrap()[0].to_vec::<f32>().unwrap(), [10.0, 21.0]);
    let slopes = jit(move |weights: Vec<Expr>, x: Expr| {
        let loss =
            |weights: Vec<Expr>| onnx::apply(&model, &weights, std::slice::from_ref(&x))[0].sum();
        grad(loss)(weights)
    });
    let slopes = slopes.call((&weights, &x)).unwrap();
    assert_eq!(slopes[0].to_vec::<f32>().unwrap(), [5.0, 7.0]);
}

#[test]
fn onnx_errors_reach_the_caller() {
    let error = onnx::read(b"not a model").unwrap_err();
    assert_eq!(error.class(), ErrorClass::Format, "{error}");
    let model = onnx::read(MODEL).unwrap();
    let weights = onnx::weights(&model);
    let f = jit(move |x: Expr| onnx::apply(&model, &weights, &[x]).remove(0) + 1);
    let error = f.call(Tensor::from([1.0f32])).unwrap_err().to_string();
    assert!(error.contains("input must be f32[2]; got f32[1]"), "{error}");
}
