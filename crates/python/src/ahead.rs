//! Ahead-of-time compilation: StableHLO export and import, and the disk cache of executables.

use std::path::PathBuf;
use std::time::UNIX_EPOCH;

use nxla_runtime::host::HostTensor;
use nxla_runtime::xla::{
    Imported, clear_disk_cache, disk_entries, disk_report, stablehlo_text, with_literals,
};
use nxla_runtime::{Inputs, Options, default_options};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::debug;
use crate::errors::{OrRaise, argument_error};
use crate::expected::describe_positional;
use crate::function::Borrowings;
use crate::interrupt::{interruptible, read_interruptible};
use crate::options::options_from;
use crate::program::{PyExpression, type_to_python};
use crate::signature::Arguments;
use crate::tensor::PyTensor;

/// Return an expression as a StableHLO module, and the inputs that the module uses.
///
/// ``embed`` makes captured tensors constants of the module. ``portable`` writes a module without
/// custom calls of the process; otherwise the module is for the device of the options.
#[pyfunction]
#[pyo3(signature = (expression, donated, portable, embed, options=None))]
fn stablehlo(
    py: Python<'_>,
    expression: &PyExpression,
    mut donated: Vec<bool>,
    portable: bool,
    embed: bool,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<(String, Vec<usize>)> {
    let options = options_from(options)?.0.over(&default_options());
    let mut program = expression.program.clone();
    if embed && !expression.captured.is_empty() {
        let read = |tensor| read_interruptible(py, tensor);
        let literals =
            expression.captured.iter().map(read).collect::<PyResult<Vec<HostTensor>>>()?;
        program = py.detach(|| with_literals(&program, &literals)).or_raise()?;
    }
    if !donated.is_empty() {
        donated.resize(program.inputs().len(), false);
    }
    let module = py.detach(|| stablehlo_text(&program, &options, &donated, portable)).or_raise()?;
    Ok((module.text, module.used_inputs))
}

/// A StableHLO module that runs; the base of ``import_stablehlo``.
#[pyclass(name = "Module", module = "nxla._core", frozen)]
struct PyModuleText(Imported);

#[pymethods]
impl PyModuleText {
    #[new]
    fn new(text: &str) -> PyResult<Self> {
        Imported::new(text).or_raise().map(Self)
    }

    /// The module as a string.
    #[getter]
    fn text(&self) -> &str {
        self.0.text()
    }

    /// Shape and dtype of each input.
    #[getter]
    fn inputs<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        self.0.inputs().iter().map(|ty| type_to_python(py, ty)).collect()
    }

    /// Runs the module on one tensor for each input and returns one tensor for each output.
    #[pyo3(signature = (*args, **options))]
    fn run(
        &self,
        py: Python<'_>,
        args: &Bound<'_, PyTuple>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Vec<Py<PyAny>>> {
        let options = Self::options(py, options)?;
        let inputs = self.leaves(args)?;
        let inputs: Borrowings<'_> = inputs.iter().collect();
        let results =
            interruptible(py, |interrupt| self.0.run(&inputs, &options, Some(interrupt)))?;
        debug::check_tensors(py, "import_stablehlo", &results)?;
        results.into_iter().map(|tensor| PyTensor::wrap(py, tensor)).collect()
    }

    /// Compiles the module.
    #[pyo3(signature = (**options))]
    fn compile(&self, py: Python<'_>, options: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        let options = Self::options(py, options)?;
        interruptible(py, |interrupt| self.0.compile(&options, None, Some(interrupt))).map(drop)
    }
}

impl PyModuleText {
    /// The tensors of arguments in leaf order.
    fn leaves(&self, args: &Bound<'_, PyTuple>) -> PyResult<Inputs> {
        let function = "import_stablehlo";
        let arguments = describe_positional(Arguments::default(), function, args)?;
        let leaves = arguments.into_inputs(args.py(), None)?;
        let (found, expected) = (leaves.len(), self.0.inputs().len());
        if found != expected {
            let why = format!("arguments: must be {expected} tensors; got {found}");
            return Err(argument_error(function, why));
        }
        Ok(leaves)
    }

    /// The default options of XLA, which runs modules.
    fn options(py: Python<'_>, given: Option<&Bound<'_, PyDict>>) -> PyResult<Options> {
        crate::options::announce_plugin(py)?;
        let defaults = default_options();
        let (given, _) = options_from(given)?;
        // Default options of another compiler do not apply.
        let of_xla = defaults.compiler.as_ref().is_none_or(|compiler| compiler.name() == "xla");
        Ok(if of_xla {
            given.over(&Options { hooks: Default::default(), ..defaults })
        } else {
            given
        })
    }
}

/// Counts of the disk cache: ``hits``, ``misses``, ``stored``, ``failed``, and the reason of the
/// last failure.
#[pyfunction]
fn disk_cache_report(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let report = disk_report();
    let dict = PyDict::new(py);
    dict.set_item("hits", report.hits)?;
    dict.set_item("misses", report.misses)?;
    dict.set_item("stored", report.stored)?;
    dict.set_item("failed", report.failed)?;
    dict.set_item("last_failure", report.last_failure)?;
    Ok(dict)
}

/// Return the executables of a folder: key, size in bytes, time of the last use in seconds since
/// the epoch, compile time in milliseconds, and the reason if the executable is rejected.
#[pyfunction]
fn disk_cache_entries(folder: PathBuf) -> PyResult<Vec<CacheEntry>> {
    let entries = disk_entries(&folder)?.into_iter().map(|entry| {
        let used = entry.last_used.duration_since(UNIX_EPOCH).unwrap_or_default();
        (entry.key, entry.bytes, used.as_secs_f64(), entry.compile_time, entry.refused)
    });
    Ok(entries.collect())
}

type CacheEntry = (String, u64, f64, Option<u64>, Option<String>);

/// Raise ``PermissionError`` if another user owns or can change the folder or a parent of it.
#[pyfunction]
fn check_disk_cache(folder: PathBuf) -> PyResult<()> {
    Ok(nxla_runtime::xla::check_disk_cache(&folder)?)
}

/// Removes the executables of a folder and returns their number and their bytes.
#[pyfunction]
fn disk_cache_clear(folder: PathBuf) -> PyResult<(usize, u64)> {
    Ok(clear_disk_cache(&folder)?)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyModuleText>()?;
    module.add_function(wrap_pyfunction!(stablehlo, module)?)?;
    module.add_function(wrap_pyfunction!(disk_cache_report, module)?)?;
    module.add_function(wrap_pyfunction!(disk_cache_entries, module)?)?;
    module.add_function(wrap_pyfunction!(check_disk_cache, module)?)?;
    module.add_function(wrap_pyfunction!(disk_cache_clear, module)?)
}
