//! Functions compiled for fixed argument types.

use crate::common::{compilers, numbers};
use nxla::host::{AxisName, Names};
use nxla::{DType, Expr, Tensor, TensorType, jit};

fn pair_type() -> TensorType {
    TensorType::new(DType::F32, [2])
}

#[test]
fn compiled_functions_run_and_capture() {
    let large = Tensor::from(vec![1.0f32; 1 << 15]);
    for compiler in compilers() {
        let function = jit(|x: Expr| x + Expr::of(&large).sum()).compiler(compiler);
        let compiled = function.compile(pair_type()).unwrap();
        assert!(compiled.program().to_string().contains("add"));
        let result = compiled.call(Tensor::from(vec![1.0f32, 2.0])).unwrap();
        assert_eq!(numbers(&result), [32769.0, 32770.0]);
    }
}

#[test]
fn type_errors_list_all_differences() {
    let function = jit(|(x, rest): (Expr, Vec<Expr>), y: Expr| x + &rest[1] + y);
    let compiled =
        function.compile(((pair_type(), vec![pair_type(), pair_type()]), pair_type())).unwrap();
    let good = Tensor::from(vec![1.0f32, 2.0]);
    let result = compiled.call(((&good, vec![&good, &good]), &good)).unwrap();
    assert_eq!(numbers(&result), [3.0, 6.0]);
    let bad = Tensor::from(vec![1, 2, 3]);
    let error = compiled.call(((&good, vec![&good, &bad]), 1.0f32)).unwrap_err().to_string();
    assert_eq!(
        error,
        "call: argument.0.1[1]: must be f32[2]; got s32[3]; \
         argument.1: must be f32[2]; got f32"
    );
    let error = compiled.call(((&good, vec![&good]), &good)).unwrap_err().to_string();
    let expected = "call: argument: must have the structure that was compiled; got argument.1 \
                    instead of argument.0.1[1]";
    assert_eq!(error, expected);
}

#[test]
fn clones_run_the_same_program() {
    let compiled = jit(|x: Expr| x * 2).compile(pair_type()).unwrap();
    let clone = compiled.clone();
    assert_eq!(clone.program().digest(), compiled.program().digest());
    assert_eq!(numbers(&clone.call(Tensor::from(vec![1.0f32, 2.0])).unwrap()), [2.0, 4.0]);
}

#[test]
fn missing_axis_names_match_any_name() {
    let named = |name: &str| Names::new([Some(AxisName::from(name))]);
    let ty = TensorType { names: Some(named("x")), ..pair_type() };
    let compiled = jit(|x: Expr| x * 2).compile(ty).unwrap();
    let x = Tensor::from(vec![1.0f32, 2.0]);
    assert_eq!(numbers(&compiled.call(&x).unwrap()), [2.0, 4.0]);
    assert!(compiled.call(x.with_names(Some(named("y"))).unwrap()).is_err());
}

#[test]
fn calls_in_traces_are_rejected() {
    let compiled = jit(|x: Expr| x * 2).compile(pair_type()).unwrap();
    let x = Tensor::from(vec![1.0f32, 2.0]);
    let outer = jit(move |y: Expr| compiled.call(&x).map(|x| y + Expr::of(&x)));
    let error = outer.call(1.0f32).unwrap_err().to_string();
    assert!(error.contains("must not be called in a trace"), "{error}");
}
