//! Compilers written in Python.

use std::any::Any;
use std::sync::Arc;

use nxla_runtime::{
    CompileRequest, Compiler, CompilerChoice, Device, Evaluator, Executable, Options, Program,
    RawTensor, Result, RunContext, Settings, default_options, register_compiler,
    with_default_options,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::device::{PyDevice, device_from};
use crate::errors::{OrRaise, argument_error, kind_of, option_error, user_error};
use crate::function::PyFunction;
use crate::options::{add_settings, options_from, to_dict, unchecked_options};
use crate::program::PyExpression;
use crate::shutdown;
use crate::tensor::PyTensor;

/// A compiler whose methods are Python's.
pub(crate) struct PyCompiler {
    name: String,
    object: Py<PyAny>,
}

impl PyCompiler {
    /// The compiler of a Python object.
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<Arc<dyn Compiler>> {
        let named = object.getattr_opt("name")?.and_then(|name| name.extract::<String>().ok());
        let Some(name) = named else {
            return Err(option_error(format!(
                "compiler: must be a name, or an object with a name and a method compile; got {}",
                object.repr()?
            )));
        };
        let module = object.py().import("nxla.compiler")?;
        module.call_method1("require_instance", (object,))?;
        if !module.call_method1("is_complete", (object,))?.is_truthy()? {
            return Err(option_error(format!(
                "compiler: {name:?} must implement compile, __compile__ or __jit__; got {}",
                object.get_type().repr()?
            )));
        }
        Ok(Arc::new(PyCompiler { name, object: object.clone().unbind() }))
    }

    /// The result of an optional method of the class.
    fn ask<'py>(
        &self,
        py: Python<'py>,
        method: &str,
        settings: &Settings,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let module = py.import("nxla.compiler")?;
        let method = module.call_method1("callback", (&self.object, method))?;
        if method.is_none() {
            return Ok(None);
        }
        method.call1((settings_dict(py, settings)?,)).map(Some)
    }
}

/// The Python object of a compiler; None for a compiler written in Rust.
fn object_behind(py: Python<'_>, compiler: &dyn Compiler) -> Option<Py<PyAny>> {
    let compiler = (compiler as &dyn Any).downcast_ref::<PyCompiler>()?;
    Some(compiler.object.clone_ref(py))
}

/// The Python object in options; None for a name.
pub(crate) fn object_of(py: Python<'_>, choice: &CompilerChoice) -> Option<Py<PyAny>> {
    match choice {
        CompilerChoice::Named(_) => None,
        CompilerChoice::Instance(compiler) => object_behind(py, &**compiler),
    }
}

/// The function to call instead, if the default compiler overrides jit and the function does not
/// name a compiler.
pub(crate) fn with_own_jit<'py>(
    function: &Bound<'py, PyFunction>,
    options: &Options,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some(choice) = &options.compiler else { return Ok(None) };
    let py = function.py();
    let compiler = choice.resolve().or_raise()?;
    let Some(compiler) = object_behind(py, &*compiler) else { return Ok(None) };
    let answer = py.import("nxla.compiler")?.getattr("jitted_by_compiler")?.call1((
        function,
        compiler,
        to_dict(py, options)?,
    ))?;
    Ok((!answer.is_none()).then_some(answer))
}

impl Compiler for PyCompiler {
    fn name(&self) -> &str {
        &self.name
    }

    /// The hash of the object, so that equal objects are the same compiler.
    fn identity(&self) -> usize {
        self.object.as_ptr() as usize
    }

    fn compile(&self, request: &CompileRequest<'_>) -> Result<Arc<dyn Executable>> {
        shutdown::attach(|py| {
            let expression = PyExpression::of_program(request.program.clone());
            let options = settings_dict(py, request.settings)?;
            if let Some(device) = request.device {
                options.set_item("device", Py::new(py, PyDevice(device.clone()))?)?;
            }
            let module = py.import("nxla.compiler")?;
            let run =
                module.call_method1("compile_expression", (&self.object, expression, options))?;
            if !run.is_callable() {
                return Err(argument_error(&self.name, "compile: must return a function"));
            }
            let executable = PyExecutable {
                run: run.unbind(),
                name: self.name.clone(),
                program: request.program.clone(),
            };
            Ok(Arc::new(executable) as Arc<dyn Executable>)
        })
        .map_err(user_error)
    }

    fn partitions(&self, settings: &Settings) -> Result<Vec<Settings>> {
        shutdown::attach(|py| {
            let Some(answer) = self.ask(py, "partitions_options", settings)? else {
                return Ok(vec![settings.clone()]);
            };
            let items = answer.try_iter()?;
            items.map(|item| settings_from(item?.cast::<PyDict>()?)).collect::<PyResult<Vec<_>>>()
        })
        .map_err(user_error)
    }

    fn results_device(&self, settings: &Settings) -> Result<Device> {
        shutdown::attach(|py| {
            let answer = self.ask(py, "to_backend", settings)?;
            answer.map_or(Ok(Device::HOST), |device| device_from(&device))
        })
        .map_err(user_error)
    }
}

struct PyExecutable {
    run: Py<PyAny>,
    name: String,
    program: Arc<Program>,
}

/// Python does not report the size of objects; this is the size of a closure over a few tables.
const ASSUMED_BYTES: usize = 64 << 10;

impl Executable for PyExecutable {
    fn run(&self, inputs: &[&RawTensor], context: &RunContext<'_>) -> Result<Vec<RawTensor>> {
        let _options = with_default_options(&options_within(context));
        shutdown::attach(|py| {
            let inputs: Vec<Py<PyAny>> = inputs
                .iter()
                .map(|tensor| PyTensor::wrap(py, (*tensor).clone()))
                .collect::<PyResult<_>>()?;
            let results = self.run.bind(py).call1((inputs,))?;
            let mut tensors = Vec::new();
            let Ok(items) = results.try_iter() else {
                let kind = kind_of(&results)?;
                let why = format!("compile: function must return a list of tensors; got {kind}");
                return Err(argument_error(&self.name, why));
            };
            for result in items {
                let result = result?;
                let tensor = result.cast::<PyTensor>().map_err(|_| {
                    argument_error(&self.name, "compile: function must return tensors")
                })?;
                tensors.push(tensor.get().tensor());
            }
            self.check(&tensors)?;
            Ok(tensors)
        })
        .map_err(user_error)
    }

    fn byte_size(&self) -> usize {
        ASSUMED_BYTES
    }
}

/// The default options while a Python compiler's function runs. They contain the caller's hooks, so
/// that programs inside call the same listeners. The compiler itself is not the default, since it
/// would compile its own calls.
fn options_within(context: &RunContext<'_>) -> Options {
    let hooks = context.hooks.cloned().unwrap_or_default();
    Options { hooks, ..Options::new().compiler(Evaluator.name()) }
}

impl PyExecutable {
    /// Wrong results would cause errors far from the compiler, so they are checked here.
    fn check(&self, results: &[RawTensor]) -> PyResult<()> {
        let same = results.len() == self.program.outputs().len()
            && results
                .iter()
                .zip(self.program.output_types())
                .all(|(tensor, ty)| tensor.dtype() == ty.dtype && tensor.shape() == &ty.shape);
        if same {
            return Ok(());
        }
        let show = |types: Vec<String>| types.join(", ");
        let expected = show(self.program.output_types().map(ToString::to_string).collect());
        let found = show(results.iter().map(|tensor| tensor.ty().to_string()).collect());
        let why = format!("compile: function must return ({expected}); got ({found})");
        Err(argument_error(&self.name, why))
    }
}

fn settings_dict<'py>(py: Python<'py>, settings: &Settings) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    add_settings(&dict, settings)?;
    Ok(dict)
}

fn settings_from(dict: &Bound<'_, PyDict>) -> PyResult<Settings> {
    Ok(unchecked_options(Some(dict))?.0.settings)
}

/// Registers a compiler under its ``name``.
#[pyfunction(name = "register_compiler")]
fn register_python_compiler(compiler: &Bound<'_, PyAny>) -> PyResult<String> {
    let compiler = PyCompiler::of(compiler)?;
    let name = compiler.name().to_owned();
    register_compiler(compiler).or_raise()?;
    Ok(name)
}

/// Options for each device on which a compiler can run programs independently.
#[pyfunction]
#[pyo3(signature = (options=None))]
fn partitions_options<'py>(
    py: Python<'py>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let options = options_from(options)?.0.over(&default_options());
    let compiler = options.target(None).or_raise()?.compiler;
    let partitions = options.partitions().or_raise()?;
    let dicts = partitions.iter().map(|options| {
        let dict = settings_dict(py, &options.settings)?;
        match options.compiler.as_ref().and_then(|choice| object_of(py, choice)) {
            Some(object) => dict.set_item("compiler", object)?,
            None => dict.set_item("compiler", compiler.name())?,
        }
        Ok(dict)
    });
    dicts.collect()
}

/// The name of the compiler of the current trace; None outside a trace.
#[pyfunction]
fn current_compiler() -> Option<String> {
    nxla_runtime::current_compiler().map(|name| name.to_string())
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(partitions_options, module)?)?;
    module.add_function(wrap_pyfunction!(register_python_compiler, module)?)?;
    module.add_function(wrap_pyfunction!(current_compiler, module)?)
}
