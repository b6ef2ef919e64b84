//! Tests of the reader: accepted forms, errors with lines, limits.

use std::path::Path;

use super::*;

/// The exports of JAX, by name.
fn golden() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/import/stablehlo");
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let modules = paths.filter(|path| path.extension().is_some_and(|kind| kind == "mlir"));
    let mut modules: Vec<_> = modules
        .map(|path| {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            (name, std::fs::read_to_string(path).unwrap())
        })
        .collect();
    modules.sort();
    modules
}

fn main_of(parameters: &str, result: &str, body: &str) -> String {
    format!("func.func @main({parameters}) -> {result} {{\n{body}\n}}")
}

fn error_of(text: &str) -> String {
    Module::from_text(text).unwrap_err().to_string()
}

#[test]
fn exports_of_jax_are_imported() {
    let modules = golden();
    assert!(modules.len() >= 50);
    let failed: Vec<String> = modules
        .iter()
        .filter_map(|(name, text)| Some(format!("{name}: {}", Module::from_text(text).err()?)))
        .collect();
    assert_eq!(failed.join("\n"), "");
}

#[test]
fn all_unsupported_operations_are_listed_with_their_lines() {
    let text = main_of(
        "%x: tensor<2xf32>, %n: tensor<i32>",
        "tensor<2xf32>",
        "%0 = stablehlo.foo %x : tensor<2xf32>\n\
         %1 = stablehlo.add %0, %x : tensor<2xf32>\n\
         %2 = stablehlo.custom_call @bar(%1) : (tensor<2xf32>) -> tensor<2xf32>\n\
         %3 = \"stablehlo.dynamic_iota\"(%n) <{iota_dimension = 0 : i64}> : (tensor<i32>) -> tensor<?xf32>\n\
         %4 = stablehlo.custom_call @bar(%x) : (tensor<2xf32>) -> tensor<2xf32>\n\
         return %2 : tensor<2xf32>",
    );
    assert_eq!(
        error_of(&text),
        "StableHLO: 3 unsupported operations\n  \
         stablehlo.foo (line 2): the operation has no counterpart in expressions\n  \
         stablehlo.dynamic_iota (line 5): the operation has no counterpart in expressions\n  \
         stablehlo.custom_call (line 6): the custom call \"bar\" is not known"
    );
}

#[test]
fn damaged_text_is_an_error_with_a_line() {
    let x = "%x: tensor<2xf32>";
    for (text, expected) in [
        (String::new(), "StableHLO: line 1: the module must have a function"),
        ("module {".into(), "StableHLO: line 1: expected `}`; got the end of the text"),
        (
            main_of(x, "tensor<2xf32>", "return %y : tensor<2xf32>"),
            "StableHLO: line 2: the value %y is not defined",
        ),
        (
            main_of(
                x,
                "tensor<3xf32>",
                "%0 = stablehlo.sine %x : tensor<3xf32>\nreturn %0 : tensor<3xf32>",
            ),
            "StableHLO: line 2: stablehlo.sine: the result has type f32[2]; got f32[3]",
        ),
        (
            main_of(
                "",
                "tensor<2xf32>",
                "%0 = stablehlo.constant dense<[1.0]> : tensor<2xf32>\nreturn %0 : tensor<2xf32>",
            ),
            "StableHLO: line 2: the list must have 2 entries",
        ),
        (
            main_of(
                "",
                "tensor<i8>",
                "%0 = stablehlo.constant dense<300> : tensor<i8>\nreturn %0 : tensor<i8>",
            ),
            "StableHLO: line 2: expected an element of s8; got 300",
        ),
        (
            main_of(
                x,
                "tensor<2xf32>",
                "%0 = func.call @f(%x) : (tensor<2xf32>) -> tensor<2xf32>\nreturn %0 : tensor<2xf32>",
            ),
            "StableHLO: line 2: func.call: the function @f does not exist",
        ),
    ] {
        assert_eq!(error_of(&text), expected);
    }
}

#[test]
fn recursion_and_expansion_are_limited() {
    let call = "%0 = func.call @main(%x) : (tensor<f32>) -> tensor<f32>\nreturn %0 : tensor<f32>";
    let error = error_of(&main_of("%x: tensor<f32>", "tensor<f32>", call));
    assert!(error.contains("calls and regions are nested too deep"), "{error}");
    let mut text =
        String::from("func.func @f0(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }\n");
    for level in 1..40 {
        let name = if level == 39 { "main".to_owned() } else { format!("f{level}") };
        let callee = level - 1;
        text += &format!(
            "func.func @{name}(%x: tensor<f32>) -> tensor<f32> {{\n\
             %0 = func.call @f{callee}(%x) : (tensor<f32>) -> tensor<f32>\n\
             %1 = func.call @f{callee}(%0) : (tensor<f32>) -> tensor<f32>\n\
             return %1 : tensor<f32> }}\n"
        );
    }
    let error = error_of(&text);
    assert!(error.contains("operations after inlining"), "{error}");
    for (open, close) in [("[", "]"), ("{a = ", "}"), ("<", ">")] {
        let deep = open.repeat(10_000) + &close.repeat(10_000);
        let body = format!("%0 = stablehlo.sine %x, a = {deep} : tensor<f32>");
        error_of(&main_of("%x: tensor<f32>", "tensor<f32>", &body));
    }
    error_of(&format!("func.func @main(%x: {})", "tuple<".repeat(10_000)));
}

#[test]
fn every_prefix_of_a_module_is_an_error() {
    let (_, text) = golden().into_iter().find(|(name, _)| name == "scan").unwrap();
    let end = text.trim_end().len();
    for length in (0..end).step_by(7) {
        assert!(Module::from_text(&text[..length]).is_err(), "{length}");
    }
}

#[test]
fn a_huge_constant_takes_no_memory() {
    let ty = "tensor<1000000x1000000xf32>";
    let body = format!("%0 = stablehlo.constant dense<1.0> : {ty}\nreturn %0 : {ty}");
    assert!(Module::from_text(&main_of("", ty, &body)).is_ok());
    let body = format!("%0 = stablehlo.constant dense<\"0x00\"> : {ty}\nreturn %0 : {ty}");
    error_of(&main_of("", ty, &body));
}

#[test]
fn the_generic_form_equals_the_short_form() {
    let short = main_of(
        "%x: tensor<2xf32>, %y: tensor<2xf32>",
        "tensor<2xi1>",
        "%0 = stablehlo.add %x, %y : tensor<2xf32>\n\
         %1 = stablehlo.compare LT, %0, %y, FLOAT : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>\n\
         return %1 : tensor<2xi1>",
    );
    let generic = "\"builtin.module\"() ({\n\
        \"func.func\"() <{function_type = (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>, sym_name = \"main\"}> ({\n\
        ^bb0(%a: tensor<2xf32>, %b: tensor<2xf32>):\n\
        %0 = \"stablehlo.add\"(%a, %b) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>\n\
        %1 = \"stablehlo.compare\"(%0, %b) <{compare_type = #stablehlo<comparison_type FLOAT>, \
        comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>\n\
        \"func.return\"(%1) : (tensor<2xi1>) -> ()\n\
        }) : () -> ()\n}) : () -> ()";
    let digest = |text: &str| Module::from_text(text).unwrap().program().digest();
    assert_eq!(digest(&short), digest(generic));
}

#[test]
fn constants_become_inputs_on_request() {
    let text = main_of(
        "%x: tensor<2xf32>",
        "tensor<2xf32>",
        "%0 = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>\n\
         %1 = stablehlo.add %x, %0 : tensor<2xf32>\n\
         return %1 : tensor<2xf32>",
    );
    let module = Module::from_text_with(&text, Weights::Inputs).unwrap();
    assert_eq!(module.program().inputs().len(), 2);
    assert_eq!(module.weights()[0].to_vec::<f32>().unwrap(), [1.0, 2.0]);
}

#[test]
fn resources_hold_constants() {
    let text = main_of(
        "",
        "tensor<2xf32>",
        "%0 = stablehlo.constant dense_resource<w> : tensor<2xf32>\nreturn %0 : tensor<2xf32>",
    ) + "\n{-#\n dialect_resources: { builtin: { w: \"0x040000000000803F00000040\" } }\n#-}";
    let module = Module::from_text_with(&text, Weights::Inputs).unwrap();
    assert_eq!(module.weights()[0].to_vec::<f32>().unwrap(), [1.0, 2.0]);
}
