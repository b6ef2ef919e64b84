//! Compares modules in `tests/import/stablehlo`, which JAX exported, with the results of JAX.
//! `tests/import/export_jax.py` writes them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::common::{Damage, readers};

use nxla_expr::{ExprId, Graph, Program};
use nxla_import::ImportError;
use nxla_import::stablehlo::{Module, ReadOptions};
use nxla_tensor::{DType, HostTensor};

/// The tensors of a file in the format of safetensors.
fn tensors(path: &Path) -> BTreeMap<String, HostTensor> {
    let read = nxla_files::read_safetensors(&std::fs::read(path).unwrap()).unwrap();
    assert!(read.unsupported.is_empty(), "{}: {:?}", path.display(), read.unsupported);
    read.tensors.into_iter().collect()
}

/// Returns the first difference between a result and the result of JAX.
fn difference(found: &HostTensor, expected: &HostTensor) -> Option<String> {
    if (found.dtype(), found.shape()) != (expected.dtype(), expected.shape()) {
        return Some(format!("type {}{}", found.dtype(), found.shape()));
    }
    let values = |tensor: &HostTensor| -> Vec<f64> {
        (0..tensor.size()).map(|index| tensor.get(index).as_f64()).collect()
    };
    let (found, expected) = (values(found), values(expected));
    let scale = expected.iter().filter(|x| x.is_finite()).fold(1.0, |max: f64, x| max.max(x.abs()));
    found.iter().zip(&expected).enumerate().find_map(|(index, (x, y))| {
        let equal = x == y || x.is_nan() && y.is_nan() || (x - y).abs() <= 1e-4 * scale;
        (!equal).then(|| format!("element {index} is {x}, and {y} in JAX"))
    })
}

/// Returns the program of the gradients of all float inputs. It differentiates the sum of all float
/// results, weighted with cosines.
fn gradients(program: &Program) -> Result<(Program, Vec<usize>), String> {
    let mut graph = Graph::new();
    let inputs = program.inputs().to_vec();
    let parameters: Vec<ExprId> =
        inputs.iter().enumerate().map(|(at, ty)| graph.parameter(at, ty.clone())).collect();
    let floats: Vec<usize> =
        (0..inputs.len()).filter(|&at| inputs[at].dtype == DType::F32).collect();
    let built = program.inline(&mut graph, &parameters).and_then(|results| {
        let mut total = graph.scalar_constant(nxla_tensor::Scalar::Float(0.0), DType::F32)?;
        for result in results {
            if !graph.dtype(result).is_float() {
                continue;
            }
            let shape = graph.shape(result).clone();
            let weights = graph.iota(shape, None, DType::F32)?;
            let weights = graph.cos(weights)?;
            let result = graph.as_type(result, DType::F32)?;
            let product = graph.multiply(result, weights)?;
            let sum = graph.sum(product, None, false)?;
            total = graph.add(total, sum)?;
        }
        Ok(total)
    });
    let total = built.map_err(|error| error.to_string())?;
    let variables: Vec<ExprId> = floats.iter().map(|&at| parameters[at]).collect();
    let found =
        nxla_grad::gradients(&mut graph, total, &variables).map_err(|error| error.to_string())?;
    let program = Program::new(&graph, inputs, &found).map_err(|error| error.to_string())?;
    Ok((program, floats))
}

/// The inputs of a file.
fn inputs(data: &BTreeMap<String, HostTensor>) -> Vec<HostTensor> {
    (0..).map_while(|at| data.get(&format!("in{at}")).cloned()).collect()
}

/// The differences between the results of a program and the results in a file.
fn result_differences(
    program: &Program,
    data: &BTreeMap<String, HostTensor>,
    select: impl Fn(&[HostTensor]) -> Vec<HostTensor>,
) -> Vec<String> {
    let results = match nxla_reference::run(program, &select(&inputs(data))) {
        Ok(results) => results,
        Err(error) => return vec![error.to_string()],
    };
    let differences = results.iter().enumerate().filter_map(|(at, result)| {
        Some(format!("result {at}: {}", difference(result, &data[&format!("out{at}")])?))
    });
    differences.collect()
}

/// Reads a module in textual form.
fn read(text: &str) -> Result<Module, ImportError> {
    Module::from_bytes(text.as_bytes(), &ReadOptions::default())
}

fn check(path: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(path).unwrap();
    let module = read(&text).map_err(|error| error.to_string())?;
    let data = tensors(&path.with_extension("safetensors"));
    let mut differences = result_differences(module.program(), &data, <[HostTensor]>::to_vec);
    if data.keys().any(|name| name.starts_with("grad")) {
        let (program, floats) = gradients(module.program())?;
        let found = nxla_reference::run(&program, &inputs(&data));
        let found = found.map_err(|error| error.to_string())?;
        for (at, result) in floats.into_iter().zip(&found) {
            let found = difference(result, &data[&format!("grad{at}")]);
            differences.extend(found.map(|found| format!("gradient {at}: {found}")));
        }
    }
    if differences.is_empty() { Ok(()) } else { Err(differences.join("; ")) }
}

/// The files of the folder with one of these extensions.
fn files(kinds: &[&str]) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/import/stablehlo");
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_kind = |path: &PathBuf| kinds.iter().any(|kind| path.extension().unwrap() == *kind);
    let mut files: Vec<PathBuf> = paths.filter(is_kind).collect();
    files.sort();
    files
}

/// The modules in textual form.
pub(crate) fn modules() -> Vec<PathBuf> {
    let modules = files(&["mlir"]);
    assert!(modules.len() >= 50);
    modules
}

#[test]
fn jax_exports_match_results_and_gradients_of_jax() {
    let modules = modules();
    let failed = modules.iter().filter_map(|path| {
        let error = check(path).err()?;
        Some(format!("{}: {error}", path.file_stem().unwrap().display()))
    });
    let failed: Vec<String> = failed.collect();
    assert_eq!(failed.join("\n"), "");
}

/// The modules with operations that JAX lowers when it writes bytecode: functions of complex numbers, and
/// functions of CHLO without a name in portable artifacts.
const LOWERED: [&str; 4] = ["complex_numbers", "random_numbers", "special", "trigonometry"];

/// A module in bytecode is the program of the module in textual form, or has the same results.
#[test]
fn bytecode_equals_text() {
    let exports = files(&["jax", "mlirbc"]);
    assert!(exports.len() >= 12);
    let mut failed = Vec::new();
    for path in exports {
        let text = std::fs::read_to_string(path.with_extension("mlir")).unwrap();
        let is_lowered = LOWERED.iter().any(|name| path.file_stem().unwrap() == *name);
        let text = read(&text).unwrap();
        let mut check = |difference: &str| failed.push(format!("{}: {difference}", path.display()));
        match Module::from_bytes(&std::fs::read(&path).unwrap(), &ReadOptions::default()) {
            Ok(module) => {
                if module.program().digest() != text.program().digest() && !is_lowered {
                    check("another digest");
                }
                let data = tensors(&path.with_extension("safetensors"));
                let select = <[HostTensor]>::to_vec;
                result_differences(module.program(), &data, select).iter().for_each(|at| check(at));
            }
            Err(error) => check(&error.to_string()),
        }
    }
    assert_eq!(failed.join("\n"), "");
}

/// Replaces parts of a module by other parts of it. The reader must return a program or an error.
#[test]
fn corrupt_modules_are_read_or_rejected() {
    let mut damage = Damage::new();
    for path in files(&["mlir", "jax", "mlirbc"]) {
        let bytes = std::fs::read(&path).unwrap();
        let is_text = path.extension().unwrap() == "mlir";
        for _ in 0..if is_text { 40 } else { 400 } {
            readers::stablehlo(&damage.copy(&bytes));
        }
    }
}

/// Exports whose programs change in a round trip, and the reason.
const COMPOSED: &[(&str, &str)] = &[
    ("cholesky", "the writer adds the checks of XLA's factorization"),
    ("complex_logsumexps", "the writer composes functions of complex numbers"),
    ("complex_numbers", "the writer composes functions of complex numbers"),
    ("counting", "the writer calls functions for blocks"),
    ("deficient_lu", "the writer composes factorizations"),
    ("determinants", "the writer composes factorizations"),
    ("empty_selection", "the writer creates an empty tensor without the operand"),
    ("factorizations", "the writer composes factorizations"),
    ("fourier", "the writer composes transforms of real numbers"),
    ("function_reduction", "the writer applies the function to halves of the rows"),
    ("gpt", "the writer merges transposes into products"),
    ("least_squares", "the writer composes factorizations"),
    ("logsumexps", "the reader prefers scalars to constant tensors as operands"),
    ("max_pool_gradient", "the writer reduces the positions of extrema"),
    ("orthogonal_products", "the writer composes factorizations"),
    ("pair_reduction", "the reader prefers scalars to constant tensors as operands"),
    ("random_bits", "the writer converts the operand of a sum, and the reader its result"),
    ("random_choices", "the writer calls functions for blocks"),
    ("random_numbers", "the counters of loops are s64"),
    ("rectangular_lu", "the writer composes factorizations"),
    ("scans_of_sums", "the writer calls functions for blocks"),
    ("sorting", "the writer calls functions for blocks"),
    ("sorting_by_keys", "the writer calls functions for blocks"),
    ("special", "the writer rounds constants to their dtype"),
    ("systems", "the writer composes factorizations"),
    ("tridiagonal_systems", "the writer composes factorizations"),
];

/// Lowers programs to modules and reads the modules. The results are the same, and programs outside
/// [`COMPOSED`] keep their digest.
#[test]
fn lowered_modules_round_trip() {
    let (mut failed, mut changed) = (Vec::new(), Vec::new());
    for path in modules() {
        let name = path.file_stem().unwrap().display().to_string();
        let module = read(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let options = nxla_stablehlo::LowerOptions::default();
        let lowered = nxla_stablehlo::lower(module.program(), &options).unwrap();
        let reread = match read(&lowered.text) {
            Ok(reread) => reread,
            Err(error) => {
                failed.push(format!("{name}: {error}"));
                continue;
            }
        };
        if reread.program().digest() != module.program().digest() {
            changed.push(name.clone());
        }
        let used = |inputs: &[HostTensor]| -> Vec<HostTensor> {
            lowered.used_inputs.iter().map(|&at| inputs[at].clone()).collect()
        };
        let found = result_differences(
            reread.program(),
            &tensors(&path.with_extension("safetensors")),
            used,
        );
        failed.extend(found.into_iter().map(|found| format!("{name}: {found}")));
    }
    assert_eq!(failed.join("\n"), "");
    let expected: Vec<&str> = COMPOSED.iter().map(|&(name, _)| name).collect();
    assert_eq!(changed, expected);
}
