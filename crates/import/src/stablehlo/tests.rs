//! Tests of the reader: accepted forms, errors with lines, limits.

use std::path::Path;

use super::*;

fn main_of(parameters: &str, result: &str, body: &str) -> String {
    format!("func.func @main({parameters}) -> {result} {{\n{body}\n}}")
}

/// Reads a module in textual form.
fn read(text: &str) -> Result<Module> {
    Module::from_bytes(text.as_bytes(), &ReadOptions::default())
}

fn error_of(text: &str) -> String {
    read(text).unwrap_err().to_string()
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
fn errors_of_special_functions_name_the_form_without_them() {
    let body = "%0 = chlo.zeta %x, %x : tensor<2xf32>, tensor<2xf32> -> tensor<2xf32>\n\
                return %0 : tensor<2xf32>";
    assert_eq!(
        error_of(&main_of("%x: tensor<2xf32>", "tensor<2xf32>", body)),
        "StableHLO: 1 unsupported operation\n  chlo.zeta (line 2): the operation has no counterpart in \
         expressions: jax.export writes it as simpler operations"
    );
}

/// A module with one custom call.
fn custom_call(target: &str, result: &str) -> String {
    main_of(
        "%x: tensor<2xf32>",
        "tensor<2xf32>",
        &format!(
            "%0 = stablehlo.custom_call @{target}(%x) : (tensor<2xf32>) -> {result}\n\
             return %x : tensor<2xf32>"
        ),
    )
}

#[test]
fn calls_of_python_functions_without_results_are_dropped() {
    for target in [
        "xla_ffi_python_cpu_callback",
        "xla_ffi_partitioned_python_cpu_callback",
        "xla_ffi_partitioned_python_gpu_callback",
        "xla_ffi_python_gpu_callback",
        "xla_python_cpu_callback",
        "xla_python_gpu_callback",
    ] {
        let module = read(&custom_call(target, "!stablehlo.token")).unwrap();
        assert_eq!(module.program().outputs().len(), 1);
        for result in ["tensor<2xf32>", "tensor<?xf32>"] {
            assert_eq!(
                error_of(&custom_call(target, result)),
                "StableHLO: 1 unsupported operation\n  stablehlo.custom_call (line 2): a call of a \
                 Python function: remove jax.pure_callback or io_callback; for Equinox set \
                 EQX_ON_ERROR=nan"
            );
        }
    }
}

/// Tokens order side effects. They are neither inputs nor outputs of the program.
#[test]
fn tokens_of_the_main_function_are_dropped() {
    let token = "!stablehlo.token";
    let body = |middle: &str| {
        main_of(
            &format!("%t: {token}, %x: tensor<f32> {{jax.arg_info = \"x\"}}"),
            &format!("({token}, tensor<f32> {{jax.result_info = \"y\"}})"),
            &format!("{middle}\nreturn %0, %x : {token}, tensor<f32>"),
        )
    };
    let call = format!(
        "%0 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%t, %x) : \
         ({token}, tensor<f32>) -> {token}"
    );
    let module = read(&body(&call)).unwrap();
    assert_eq!(module.input_names(), [Some("x".into())]);
    assert_eq!(module.output_names(), [Some("y".into())]);
    assert_eq!(module.program().inputs().len(), 1);
    let branches = format!(
        "%p = stablehlo.is_finite %x : (tensor<f32>) -> tensor<i1>\n\
         %0 = \"stablehlo.if\"(%p) ({{\n{}\nstablehlo.return %1 : {token}\n}}, {{\n\
         stablehlo.return %t : {token}\n}}) : (tensor<i1>) -> {token}",
        call.replace("%0", "%1")
    );
    let error = error_of(&body(&branches));
    assert!(error.ends_with("without tokens of ordered side effects"), "{error}");
}

#[test]
fn calls_of_libraries_of_accelerators_name_the_platform() {
    for target in [
        "cusolver_getrf_ffi",
        "hipsolver_geqrf_ffi",
        "cublas_getrf_batched_ffi",
        "cu_lu_pivots_to_permutation",
        "LuDecomposition",
        "Qr",
        "Eigh",
    ] {
        let expected = format!(
            "the custom call {target:?} is of a GPU or TPU: export the function for the platform cpu"
        );
        let error = error_of(&custom_call(target, "tensor<2xf32>"));
        assert!(error.ends_with(&expected), "{error}");
    }
}

#[test]
fn corrupt_text_is_an_error_with_a_line() {
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
            "StableHLO: line 2: the list must have 2 entries; got 1",
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
fn meshes_are_skipped() {
    let main = main_of("%x: tensor<2xf32>", "tensor<2xf32>", "return %x : tensor<2xf32>");
    for mesh in [
        "<[]>",
        "<[\"x\"=2, \"y\"=4], device_ids=[0, 1]>",
        "<[]> {stablehlo.mesh = {axes = []}}",
        "<[\"x\"=2]> {stablehlo.mesh = {axes = [{name = \"x\", size = 2 : i64}]}} loc(\"a\")",
    ] {
        read(&format!("module {{\nsdy.mesh @mesh = {mesh}\n{main}\n}}")).unwrap();
    }
    let error = error_of(&format!("module {{\nsdy.mesh @mesh = <[]> {{\n{main}"));
    assert!(error.contains("line 2: "), "{error}");
}

/// A module in which each line has one element that the table below damages.
const VALID: &str = "\
func.func @main(%x: tensor<2x3xf32>, %i: tensor<i32>) -> tensor<2xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %c = stablehlo.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
  %0 = stablehlo.add %x, %c : tensor<2x3xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %2 = stablehlo.compare GT, %1, %1, FLOAT : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2xi1>
  %3 = stablehlo.slice %1 [0:2, 0:2] : (tensor<3x2xf32>) -> tensor<2x2xf32>
  %4 = stablehlo.reduce(%3 init: %z) applies stablehlo.add across dimensions = [0] : (tensor<2x2xf32>, tensor<f32>) -> tensor<2xf32>
  %5 = \"stablehlo.case\"(%i) ({
    stablehlo.return %4 : tensor<2xf32>
  }, {
    %6 = stablehlo.negate %4 : tensor<2xf32>
    stablehlo.return %6 : tensor<2xf32>
  }) : (tensor<i32>) -> tensor<2xf32>
  return %5 : tensor<2xf32>
}";

/// Corrupted lines of [`VALID`]: the line, the element, and its replacement.
const CORRUPTIONS: [(usize, &str, &str); 24] = [
    (1, "-> tensor<2xf32>", "->"),
    (1, "@main", "main"),
    (1, "%x: tensor<2x3xf32>", "%x: tensor<2x3"),
    (1, "%x: tensor<2x3xf32>", "%x: tensor<99999999999999999999xf32>"),
    (2, "tensor<f32>", "vector<f32>"),
    (2, "dense<0.0>", "dense<zero>"),
    (2, "dense<0.0>", "dense<[0.0, 1.0]>"),
    (3, "[1.0, 2.0, 3.0]", "[1.0, 2.0]"),
    (3, "tensor<2x3xf32>", "tensor<3x2xf32>"),
    (4, "%c", "%d"),
    (4, "stablehlo.add", "stablehlo.plus"),
    (4, "%x, %c", "%x"),
    (5, "[1, 0]", "[1, 1]"),
    (5, "[1, 0]", "[1, 7]"),
    (6, "GT", "ABOVE"),
    (7, "0:2, 0:2", "0:9, 0:2"),
    (7, "0:2, 0:2", "0:2"),
    (8, "dimensions = [0]", "dimensions = [5]"),
    (8, "init: %z", "init: %x"),
    (10, "%4", "%6"),
    (12, "tensor<2xf32>", "tensor<3xf32>"),
    (12, "%4", "%4 %"),
    (13, "stablehlo.return", "stablehlo.sine"),
    (15, "tensor<2xf32>", "tensor<2xf32"),
];

#[test]
fn errors_name_the_corrupt_line() {
    read(VALID).unwrap();
    let mut wrong = Vec::new();
    for (line, from, to) in CORRUPTIONS {
        let mut lines: Vec<String> = VALID.lines().map(str::to_owned).collect();
        let corrupt = lines[line - 1].replacen(from, to, 1);
        assert_ne!(corrupt, lines[line - 1], "{from}");
        lines[line - 1] = corrupt;
        let error = error_of(&lines.join("\n"));
        let locations = [format!("line {line}: "), format!("(line {line}): ")];
        if !locations.iter().any(|location| error.contains(location)) {
            wrong.push(format!("line {line}, {to}: {error}"));
        }
    }
    assert_eq!(wrong.join("\n"), "");
}

#[test]
fn functions_inside_of_functions_must_not_have_results() {
    let x = "%x: tensor<f32>";
    let body = "\"func.func\"() ({\n\
         ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<f32>):\n\
         func.return\n\
         }) : () -> tensor<f32>\n\
         return %x : tensor<f32>";
    let error = error_of(&main_of(x, "tensor<f32>", body));
    assert_eq!(error, "StableHLO: line 2: func.func must not have results");
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
fn nested_tuples_do_not_allocate_memory() {
    let mut ty = "tensor<f32>".to_owned();
    let mut body = String::new();
    for level in 0..100 {
        let operand = if level == 0 { "%x".to_owned() } else { format!("%t{}", level - 1) };
        let pair = format!("tuple<{ty}, {ty}>");
        body += &format!("%t{level} = stablehlo.tuple {operand}, {operand} : {pair}\n");
        ty = if level < 3 { pair } else { "tuple<tensor<f32>>".into() };
    }
    let error =
        error_of(&main_of("%x: tensor<f32>", "tensor<f32>", &(body + "return %x : tensor<f32>")));
    assert!(error.contains("a tuple that contains a tuple"), "{error}");
}

#[test]
fn every_prefix_of_a_module_is_an_error() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/import/stablehlo/scan.mlir");
    let text = std::fs::read_to_string(path).unwrap();
    let end = text.trim_end().len();
    for length in (0..end).step_by(7) {
        assert!(read(&text[..length]).is_err(), "{length}");
    }
}

#[test]
fn huge_constants_do_not_allocate_memory() {
    let ty = "tensor<1000000x1000000xf32>";
    let body = format!("%0 = stablehlo.constant dense<1.0> : {ty}\nreturn %0 : {ty}");
    assert!(read(&main_of("", ty, &body)).is_ok());
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
    let digest = |text: &str| read(text).unwrap().program().digest();
    assert_eq!(digest(&short), digest(generic));
}

const WEIGHTS_ARE_INPUTS: ReadOptions = ReadOptions { weights: Weights::Inputs, platform: None };

#[test]
fn constants_become_inputs_on_request() {
    let text = main_of(
        "%x: tensor<2xf32>",
        "tensor<2xf32>",
        "%0 = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>\n\
         %1 = stablehlo.add %x, %0 : tensor<2xf32>\n\
         return %1 : tensor<2xf32>",
    );
    let module = Module::from_bytes(text.as_bytes(), &WEIGHTS_ARE_INPUTS).unwrap();
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
    let module = Module::from_bytes(text.as_bytes(), &WEIGHTS_ARE_INPUTS).unwrap();
    assert_eq!(module.weights()[0].to_vec::<f32>().unwrap(), [1.0, 2.0]);
}

#[test]
fn booleans_of_hexadecimal_text_have_a_byte_or_a_bit() {
    for (bytes, expected) in
        [("0x010001", [true, false, true]), ("0x05", [true, false, true]), ("0xFF", [true; 3])]
    {
        let ty = "tensor<3xi1>";
        let body = format!("%0 = stablehlo.constant dense<\"{bytes}\"> : {ty}\nreturn %0 : {ty}");
        let module = read(&main_of("", ty, &body)).unwrap();
        let results = nxla_reference::run(module.program(), &[]).unwrap();
        assert_eq!(results[0].to_vec::<bool>().unwrap(), expected, "{bytes}");
    }
}

/// The bits of a generator for the state with these words.
fn random_bits(algorithm: &str, state: &[u64], ty: &str) -> (Vec<u64>, Vec<u64>) {
    let count = state.len();
    let text = main_of(
        &format!("%x: tensor<{count}xui64>"),
        &format!("(tensor<{count}xui64>, tensor<{ty}>)"),
        &format!(
            "%s, %0 = stablehlo.rng_bit_generator %x, algorithm = {algorithm} : \
             (tensor<{count}xui64>) -> (tensor<{count}xui64>, tensor<{ty}>)\n\
             return %s, %0 : tensor<{count}xui64>, tensor<{ty}>"
        ),
    );
    let module = read(&text).unwrap();
    let state = HostTensor::from_vec(state.to_vec(), [count]).unwrap();
    let results = nxla_reference::run(module.program(), &[state]).unwrap();
    let words = |at: usize| -> Vec<u64> {
        let numbers = (0..results[at].size()).map(|index| results[at].get(index).as_i128());
        numbers.map(|number| number.unwrap() as u64).collect()
    };
    (words(0), words(1))
}

#[test]
fn hexadecimal_attributes_have_the_bits_of_their_dtype() {
    let digest = |epsilon: &str| {
        let types = "tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>";
        let body = format!(
            "%0 = \"stablehlo.batch_norm_inference\"(%x, %s, %s, %s, %s) \
             <{{epsilon = {epsilon}, feature_index = 1 : i64}}> : ({types}) -> tensor<2x3xf32>\n\
             return %0 : tensor<2x3xf32>"
        );
        let text = main_of("%x: tensor<2x3xf32>, %s: tensor<3xf32>", "tensor<2x3xf32>", &body);
        read(&text).unwrap().program().digest()
    };
    for bits in ["0x3C00 : f16", "0x3F80 : bf16", "0x3F800000 : f32", "0x3FF0000000000000 : f64"] {
        assert_eq!(digest(bits), digest("1.0 : f32"), "{bits}");
    }
}

#[test]
fn random_bits_match_xla() {
    // The words 1, 2, 3, 4 as JAX passes them; the expected bits are results of JAX.
    let state = [1 | 2 << 32, 3 | 4 << 32];
    let next = |count: u64| vec![state[0], state[1] + count];
    let wide =
        vec![9_662_219_624_799_024_108, 10_418_227_120_389_269_672, 6_433_701_140_276_733_507];
    assert_eq!(random_bits("THREE_FRY", &state, "3xui64"), (next(3), wide));
    let wide =
        vec![5_574_906_407_289_874_532, 3_272_025_663_544_478_142, 7_043_725_020_835_825_787];
    assert_eq!(random_bits("PHILOX", &state, "3xui64"), (next(2), wide));
    let narrow = vec![13292, 6542, 43176, 64094, 26179];
    assert_eq!(random_bits("THREE_FRY", &state, "5xui16"), (next(3), narrow));
    let narrow = vec![59492, 3031, 51646, 37377, 18555];
    assert_eq!(random_bits("DEFAULT", &state, "5xui16"), (next(2), narrow));
    // The test vectors of Random123 for keys and counters of zeros and of ones.
    let zeros = vec![0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8];
    assert_eq!(random_bits("PHILOX", &[0; 3], "4xui32"), (vec![0, 1, 0], zeros));
    let ones = vec![0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd];
    let (state, bits) = random_bits("PHILOX", &[u64::MAX; 3], "4xui32");
    assert_eq!((state, bits), (vec![u64::MAX, 0, 0], ones));
}

/// The exports of JAX that are stored in bytecode, by file name.
fn exports() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/import/stablehlo");
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_bytes = |path: &std::path::PathBuf| {
        path.extension().is_some_and(|kind| kind == "jax" || kind == "mlirbc")
    };
    let read = |path: std::path::PathBuf| {
        (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(path).unwrap())
    };
    paths.filter(is_bytes).map(read).collect()
}

fn error_of_bytes(bytes: &[u8]) -> String {
    Module::from_bytes(bytes, &ReadOptions::default()).unwrap_err().to_string()
}

#[test]
fn exports_have_argument_names_and_trees() {
    let (_, bytes) = exports().into_iter().find(|(name, _)| name == "scan.jax").unwrap();
    let module = Module::from_bytes(&bytes, &ReadOptions::default()).unwrap();
    assert_eq!(module.input_names(), [Some("xs".into()), Some("start".into())]);
    assert_eq!(module.output_names(), [Some("result[0]".into()), Some("result[1]".into())]);
    let arguments = ExportTree::Tuple(vec![ExportTree::Leaf, ExportTree::Leaf]);
    let expected = ExportSignature {
        inputs: ExportTree::Tuple(vec![arguments.clone(), ExportTree::Dict(Vec::new())]),
        outputs: arguments,
        kept: vec![0, 1],
    };
    assert_eq!(module.signature(), Some(&expected));
}

#[test]
fn nodes_have_source_lines_of_exported_functions() {
    let (_, bytes) = exports().into_iter().find(|(name, _)| name == "gpt.jax").unwrap();
    let module = Module::from_bytes(&bytes, &ReadOptions::default()).unwrap();
    let graph = module.program().graph();
    let reachable = graph.reachable(module.program().outputs());
    let lines: std::collections::BTreeSet<u32> = graph
        .ids()
        .filter(|&id| reachable.contains(id))
        .filter_map(|id| graph.source(id).line())
        .inspect(|line| assert_eq!(&*line.file, "export_jax.py"))
        .map(|line| line.line)
        .collect();
    assert!(lines.len() > 4, "{lines:?}");
}

#[test]
fn every_prefix_of_bytecode_is_an_error_with_a_byte() {
    for (name, bytes) in exports() {
        // The trees of an export lie after the module, so that only the module is needed whole.
        let module =
            if name.ends_with(".jax") { export::module(&bytes).unwrap().0 } else { &bytes };
        for length in (bytecode::MAGIC.len()..module.len()).step_by(5) {
            let error = error_of_bytes(&module[..length]);
            assert!(error.starts_with("StableHLO: byte "), "{name}: {length}: {error}");
        }
    }
}

/// Writes an integer below 2^14 in two bytes.
fn varint(value: usize) -> [u8; 2] {
    u16::try_from(value << 2 | 2).unwrap().to_le_bytes()
}

/// Writes a section.
fn section(kind: u8, content: &[u8]) -> Vec<u8> {
    [&[kind], &varint(content.len())[..], content].concat()
}

/// Writes bytecode of version 4 with builtin attributes and one operation `builtin.module`.
fn bytecode_of(attributes: &[Vec<u8>], types: &[Vec<u8>], operation: &[u8]) -> Vec<u8> {
    let strings: &[u8] = b"\x05\x0f\x11builtin\0module\0";
    let mut offsets = [varint(attributes.len()), varint(types.len())].concat();
    for entries in [attributes, types] {
        if !entries.is_empty() {
            offsets.push(1);
            offsets.extend(varint(entries.len()));
            offsets.extend(entries.iter().flat_map(|entry| varint(entry.len() << 1 | 1)));
        }
    }
    [
        &b"ML\xefR\x09test\0"[..],
        &section(0, strings),
        &section(1, b"\x03\x01\x03\x01\x03\x03"),
        &section(2, &[attributes.concat(), types.concat()].concat()),
        &section(3, &offsets),
        &section(4, operation),
    ]
    .concat()
}

#[test]
fn nested_shared_attributes_are_limited() {
    // Each list holds the list before it twice.
    let list = |at: usize| match at {
        0 => b"\x01\x01".to_vec(),
        _ => [&b"\x01\x05"[..], &varint(at - 1), &varint(at - 1)].concat(),
    };
    let lists: Vec<Vec<u8>> = (0..60).map(list).collect();
    // One operation with the attributes in the last entry.
    let operation = [&b"\x05\x01\x01\x01"[..], &varint(40)].concat();
    let error = error_of_bytes(&bytecode_of(&lists, &[], &operation));
    assert!(error.ends_with("the attributes are too large for the file"), "{error}");
    let itself = [b"\x01\x03\x01".to_vec()];
    let error = error_of_bytes(&bytecode_of(&itself, &[], b"\x05\x01\x01\x01\x01"));
    assert!(error.ends_with("attributes and types are nested too deep"), "{error}");
}

#[test]
fn counts_beyond_the_file_size_are_errors() {
    // An operation with 2^56 results, operands, or regions.
    let huge = b"\x80\xff\xff\xff\xff\xff\xff\xff";
    for parts in [2_u8, 4, 16] {
        let operation = [&b"\x05\x01"[..], &[parts], b"\x01", huge].concat();
        let error = error_of_bytes(&bytecode_of(&[], &[], &operation));
        assert!(error.contains("elements do not fit in"), "{parts}: {error}");
    }
    // A tensor with 2^62 elements: the type of a constant is as large as the file says.
    let operation = b"\x05\x01\x01\x01\x01".to_vec();
    let ty = [&b"\x1b\x03"[..], b"\0\0\0\0\0\0\0\0\x80", b"\x03"].concat();
    let constant = [&b"\x25\x01"[..], b"\x01"].concat();
    let error = error_of_bytes(&bytecode_of(&[constant], &[ty, b"\x0b".to_vec()], &operation));
    assert_eq!(
        error,
        "StableHLO: byte 43: f32[4611686018427387904] is larger than the address space"
    );
}

#[test]
fn invalid_bytes_are_rejected() {
    let export = [&8_u32.to_le_bytes()[..], &[0xff; 12]].concat();
    for bytes in [&b"\xff\xfe"[..], b"\xff", &[0xff; 64], &export] {
        let error = error_of_bytes(bytes);
        assert!(error.contains("textual form, bytecode, or an export of JAX"), "{error}");
    }
    let error = error_of_bytes(b"ML\xefR\x0f\0");
    assert_eq!(error, "StableHLO: byte 4: the version must be at most 6; got 7");
}

/// A function for two platforms, as JAX writes it. The second branch has an unsupported operation.
const PLATFORMS: &str = "func.func @main(%p: tensor<i32> {jax.global_constant = \"_platform_index\"}, \
    %x: tensor<2xf32> {jax.arg_info = \"x\"}) -> tensor<2xf32> {\n\
    %0 = \"stablehlo.case\"(%p) ({\n\
      %1 = stablehlo.sine %x : tensor<2xf32>\n\
      stablehlo.return %1 : tensor<2xf32>\n\
    }, {\n\
      %1 = stablehlo.custom_call @unknown(%x) : (tensor<2xf32>) -> tensor<2xf32>\n\
      stablehlo.return %1 : tensor<2xf32>\n\
    }) : (tensor<i32>) -> tensor<2xf32>\n\
    return %0 : tensor<2xf32>\n}";

#[test]
fn only_the_selected_platform_is_built() {
    let module = read(PLATFORMS).unwrap();
    assert_eq!(module.input_names(), [Some("x".into())]);
    assert_eq!(module.program().inputs().len(), 1);
    let printed = module.program().to_string();
    assert!(printed.contains("sin a") && !printed.contains("cond"), "{printed}");
    let options = ReadOptions { platform: Some("cuda".into()), ..ReadOptions::default() };
    let error = Module::from_bytes(PLATFORMS.as_bytes(), &options).unwrap_err();
    assert_eq!(
        error.to_string(),
        "StableHLO: platform: the file must name its platforms; got \"cuda\""
    );
}

/// An export for `cpu` and `cuda` of `lax.platform_dependent(x, cpu=jnp.sin, cuda=jnp.cos)`.
#[test]
fn exports_select_platforms_by_name() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/import/platforms.jax");
    let bytes = std::fs::read(path).unwrap();
    let printed = |platform: Option<&str>| {
        let platform = platform.map(str::to_owned);
        let options = ReadOptions { platform, ..ReadOptions::default() };
        let module = Module::from_bytes(&bytes, &options)?;
        assert!(module.signature().is_some());
        Ok::<_, ImportError>(module.program().to_string())
    };
    for (platform, function) in [(None, "sin"), (Some("cpu"), "sin"), (Some("cuda"), "cos")] {
        let text = printed(platform).unwrap();
        assert!(text.contains(function) && text.lines().count() == 2, "{text}");
    }
    let error = printed(Some("tpu")).unwrap_err().to_string();
    assert_eq!(error, "StableHLO: platform: must be one of cpu, cuda; got \"tpu\"");
}

#[test]
fn input_types_ignore_operations_and_attributes() {
    let types = |parameters: &str| {
        let text = format!(
            "module {{ func.func private @f() {{ any.op }} // @main(
             func.func public @main({parameters}) -> () {{ any.op }} }}"
        );
        input_types(&text).map(|types| types.iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    for (parameters, expected) in [
        ("", &[][..]),
        ("%arg0: tensor<f32>", &["f32"]),
        (
            "%a: tensor<2x0x3xbf16> {a = \")\"}, %b: tensor<4xcomplex<f64>>",
            &["bf16[2][0][3]", "c128[4]"],
        ),
        (
            "%a: tensor<2xi1> loc(\"x, (y\"), %b: tensor<1xui8> {s = #sdy.sharding<@m, [{}, {}]>}",
            &["pred[2]", "u8[1]"],
        ),
    ] {
        assert_eq!(types(parameters).unwrap(), expected, "{parameters}");
    }
    for (parameters, why) in [
        ("%a: tensor<?xf32>", "line 2: @main: input 0 must be a tensor with a static shape"),
        ("%a: tensor<2xfoo>", "got tensor<2xfoo>"),
        ("%a: !stablehlo.token", "got !stablehlo.token"),
        ("%a", "expected `:`"),
    ] {
        let error = types(parameters).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
    let error = input_types("module {\n}").unwrap_err().to_string();
    assert_eq!(error, "StableHLO: line 2: the module must have a function @main");
}
