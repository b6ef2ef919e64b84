//! Conversion of keyword arguments of Python to options of the runtime.

use nxla_runtime::{
    CallMode, CompilerChoice, Conflict, Device, Options, Progress, Setting, Settings,
    compiler_names, default_options, global_default_options, set_default_options,
    set_global_default_options,
};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt, PyString};

use crate::compilers::{PyCompiler, object_of};
use crate::device::{PyDevice, device_from};
use crate::errors::{OrRaise, argument_error, check_callable, option_error};
use crate::hooks::PyHook;
use crate::policy::{PyPolicy, policy_from};
use crate::shutdown;

/// Reads options and checks the settings of the compiler, which the options name or which is the
/// current default.
pub(crate) fn options_from(
    given: Option<&Bound<'_, PyDict>>,
) -> PyResult<(Options, Option<Conflict>)> {
    let (options, conflict) = unchecked_options(given)?;
    if !options.settings.is_empty() {
        options.check(&default_options()).or_raise()?;
    }
    Ok((options, conflict))
}

/// Reads options: ``compiler``, ``device``, ``hooks``, ``stages``, ``progress``, ``on_conflict``, and
/// settings of the compiler.
pub(crate) fn unchecked_options(
    given: Option<&Bound<'_, PyDict>>,
) -> PyResult<(Options, Option<Conflict>)> {
    let (mut options, mut conflict, mut client) = (Options::new(), None, None);
    let Some(given) = given else { return Ok((options, conflict)) };
    for (name, value) in given {
        let name: String = name.extract()?;
        if ["in_shardings", "out_shardings"].contains(&&*name) {
            return Err(option_error(format!(
                "{name}: must be an option of nx.jit; other functions compile for one device"
            )));
        }
        if value.is_none() {
            continue;
        }
        match name.as_str() {
            "compiler" => {
                let compiler = compiler_from(&value)?;
                compiler.resolve().or_raise()?;
                options = options.compiler(compiler);
            }
            "hooks" => add_hooks(&mut options, &value)?,
            // An integer is a setting of a compiler: the index of a device.
            "device" if !value.is_instance_of::<PyInt>() => {
                options = options.device(device_from(&value)?);
            }
            "stages" => options = options.stages(policy_from("stages", &value)?),
            "progress" => {
                if value.extract::<bool>().map_err(|_| not_a_switch(&value))? {
                    options.progress = Some(bar());
                }
            }
            "client" => client = Some(value),
            "on_conflict" => conflict = Some(conflict_from(&value)?),
            _ => {
                options.settings.insert(name.clone(), setting(&name, &value)?);
            }
        }
    }
    if let Some(client) = client {
        options = with_client(options, &client)?;
    }
    // A compiler written in Python may have a setting of the same name.
    if !matches!(options.compiler, Some(CompilerChoice::Instance(_)))
        && let Some(Setting::Text(plugin)) = options.settings.get_mut("plugin")
    {
        let py = given.py();
        *plugin = py.import("nxla.plugins")?.call_method1("resolve", (&*plugin,))?.extract()?;
    }
    let named = options.settings.contains_key("plugin");
    if !named && options.compiler.as_ref().is_some_and(CompilerChoice::may_use_xla) {
        announce_plugin(given.py())?;
    }
    Ok((options, conflict))
}

/// Adds functions by the names of hooks.
fn add_hooks(options: &mut Options, value: &Bound<'_, PyAny>) -> PyResult<()> {
    let Ok(hooks) = value.cast::<PyDict>() else {
        return Err(argument_error("hooks", "must be a dict of names and functions"));
    };
    for (hook, function) in hooks {
        let Ok(name) = hook.extract::<String>() else {
            let why = format!("names must be strings; got {}", hook.repr()?);
            return Err(argument_error("hooks", why));
        };
        check_callable(&format!("hooks[{name:?}]"), &function)?;
        options.hooks.insert(name.into(), PyHook::of(&function));
    }
    Ok(())
}

/// Adds a client by name. The setting `device` is the index of a device of the client; 0 by default.
/// A compiler written in Python reads both settings itself.
fn with_client(mut options: Options, client: &Bound<'_, PyAny>) -> PyResult<Options> {
    if matches!(options.compiler, Some(CompilerChoice::Instance(_))) {
        return Ok(options.set("client", setting("client", client)?));
    }
    let refused = |why: String| option_error(format!("client: {why}"));
    let Ok(name) = client.extract::<String>() else {
        return Err(refused(format!("must be the name of a client; got {}", client.repr()?)));
    };
    if let Some(device) = &options.device {
        return if device.client_name() == name {
            Ok(options)
        } else {
            Err(refused(format!("must be the client of {device}; got {name:?}")))
        };
    }
    let number = match options.settings.remove("device") {
        None => 0,
        Some(Setting::Int(number)) => number,
        Some(other @ (Setting::Bool(_) | Setting::Text(_))) => {
            return Err(option_error(format!("device: must be an integer; got {other}")));
        }
    };
    let device = match (name.as_str(), number) {
        ("host", 0) => name.clone(),
        _ => format!("{name}:{number}"),
    };
    let error = match device_from(PyString::new(client.py(), &device).as_any()) {
        Ok(device) => return Ok(options.device(device)),
        Err(error) => error,
    };
    // Without the list of devices, the error says why a plugin cannot be loaded.
    let Ok(devices) = nxla_runtime::devices() else { return Err(error) };
    let mut clients: Vec<String> = devices.iter().map(Device::client_name).collect();
    clients.dedup();
    if clients.contains(&name) {
        return Err(error);
    }
    Err(refused(format!("must be one of {}; got {name:?}", clients.join(", "))))
}

/// Announces the plugin of XLA in the installed Python packages to the runtime, which uses the plugin
/// if the options do not name another one.
pub(crate) fn announce_plugin(py: Python<'_>) -> PyResult<()> {
    py.import("nxla.plugins")?.call_method0("announce").map(drop)
}

/// Returns a compiler by its name or from an object.
fn compiler_from(value: &Bound<'_, PyAny>) -> PyResult<CompilerChoice> {
    if let Ok(name) = value.cast::<PyString>() {
        return Ok(CompilerChoice::from(name.to_cow()?.into_owned()));
    }
    Ok(CompilerChoice::Instance(PyCompiler::of(value)?))
}

fn conflict_from(value: &Bound<'_, PyAny>) -> PyResult<Conflict> {
    match value.extract::<String>().as_deref() {
        Ok("raise") => Ok(Conflict::Raise),
        Ok("force") => Ok(Conflict::Force),
        Ok("reuse") => Ok(Conflict::Reuse),
        _ => Err(option_error(format!(
            "on_conflict: must be \"raise\", \"force\" or \"reuse\"; got {}",
            value.repr()?
        ))),
    }
}

/// Returns whether a call of the function `name` in a trace is inlined instead of run separately.
#[pyfunction]
fn inlines_call(name: &str, on_conflict: &Bound<'_, PyAny>) -> PyResult<bool> {
    let mode = conflict_from(on_conflict)?.call_mode(name).or_raise()?;
    Ok(mode == CallMode::Inline)
}

/// Calls a function without arguments, in which traces inline the functions with their own options. The
/// caller does not run the inlined parts.
#[pyfunction]
fn inlining_all<'py>(function: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    nxla_runtime::inlining_all(|| function.call0())
}

fn not_a_switch(value: &Bound<'_, PyAny>) -> PyErr {
    option_error(format!("progress: must be True or False; got {value:?}"))
}

/// Returns a callback that shows progress bars of `nxla._progress`.
fn bar() -> Progress {
    Progress::new(|what, steps| {
        let made = shutdown::inside(|py| {
            let bar = py.import("nxla._progress")?.getattr("Bar")?;
            bar.call1((what, steps)).map(Bound::unbind)
        });
        Box::new(move || {
            // The compilation continues if the bar cannot be shown.
            if let Ok(bar) = &made {
                let _ = shutdown::inside(|py| bar.call0(py).map(drop));
            }
        })
    })
}

fn setting(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Setting> {
    if let Ok(switch) = value.cast::<PyBool>() {
        return Ok(Setting::Bool(switch.is_true()));
    }
    if value.is_instance_of::<PyInt>() {
        return Ok(Setting::Int(value.extract()?));
    }
    match value.call_method0("__fspath__").or_else(|_| Ok::<_, PyErr>(value.clone()))?.extract() {
        Ok(text) => Ok(Setting::Text(text)),
        Err(_) => Err(option_error(format!(
            "option {name:?}: must be a bool, an int or a string; got {}",
            value.repr()?
        ))),
    }
}

/// Sets whether traces of this thread may reorder float arithmetic, and returns the old value.
#[pyfunction]
fn set_reassociate_floats(allow: bool) -> bool {
    nxla_runtime::set_reassociate_floats(allow)
}

/// Returns options as a dict with ``compiler``, ``device`` and settings.
pub(crate) fn to_dict<'py>(py: Python<'py>, options: &Options) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    if let Some(compiler) = &options.compiler {
        match object_of(py, compiler) {
            Some(object) => dict.set_item("compiler", object)?,
            None => dict.set_item("compiler", compiler.name())?,
        }
    }
    if let Some(device) = &options.device {
        dict.set_item("device", Py::new(py, PyDevice(device.clone()))?)?;
    }
    if let Some(policy) = &options.stages {
        dict.set_item("stages", Py::new(py, PyPolicy(policy.clone()))?)?;
    }
    if options.progress.is_some() {
        dict.set_item("progress", true)?;
    }
    add_settings(&dict, &options.settings)?;
    if !options.hooks.is_empty() {
        let hooks = PyDict::new(py);
        for (name, hook) in &options.hooks {
            hooks.set_item(&**name, crate::hooks::callable_of(py, &**hook))?;
        }
        dict.set_item("hooks", hooks)?;
    }
    Ok(dict)
}

/// Adds settings to a dict by their names.
pub(crate) fn add_settings(dict: &Bound<'_, PyDict>, settings: &Settings) -> PyResult<()> {
    for (name, setting) in settings {
        match setting {
            Setting::Bool(value) => dict.set_item(name, value)?,
            Setting::Int(value) => dict.set_item(name, value)?,
            Setting::Text(value) => dict.set_item(name, value)?,
        }
    }
    Ok(())
}

/// Returns the current options of this thread.
#[pyfunction]
fn get_default_options(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    to_dict(py, &default_options())
}

/// Returns whether this thread has its own options instead of the options of the process.
#[pyfunction]
fn has_own_options() -> bool {
    nxla_runtime::has_own_options()
}

/// Sets the options of this thread and returns its old options. For None, the thread uses the options
/// of the process.
#[pyfunction]
#[pyo3(signature = (options))]
fn replace_default_options<'py>(
    py: Python<'py>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyDict>> {
    let new = options.map(by_themselves).transpose()?;
    let before = default_options();
    set_default_options(new);
    to_dict(py, &before)
}

/// Returns the options of the process.
#[pyfunction]
fn get_global_default_options(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    to_dict(py, &global_default_options())
}

/// Sets the options of the process, and returns the old options.
#[pyfunction]
fn replace_global_default_options<'py>(
    py: Python<'py>,
    options: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyDict>> {
    let new = by_themselves(options)?;
    to_dict(py, &set_global_default_options(new))
}

/// Adds changes to options by the rules of [`Options::over`]. An option in `changes` replaces the old
/// one, so None removes an option.
#[pyfunction]
fn merge_options<'py>(
    py: Python<'py>,
    options: &Bound<'py, PyDict>,
    changes: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyDict>> {
    let below = options.copy()?;
    for (name, value) in changes {
        // The old compiler decides whether the other options stay.
        let is_compared = name.eq("compiler")? && !value.is_none();
        if !is_compared && below.contains(&name)? {
            below.del_item(&name)?;
        }
    }
    let (below, _) = unchecked_options(Some(&below))?;
    let (changes, _) = unchecked_options(Some(changes))?;
    let mut merged = changes.over(&below);
    if !merged.selects_target() {
        // Without their compiler, which the changes removed, the old settings have no meaning.
        merged.settings = changes.settings;
    }
    to_dict(py, &merged)
}

/// Reads options that replace the current ones completely.
fn by_themselves(options: &Bound<'_, PyDict>) -> PyResult<Options> {
    let (new, _) = unchecked_options(Some(options))?;
    new.check_defaults().or_raise()?;
    Ok(new)
}

/// Returns the names of all compilers.
#[pyfunction]
fn compilers() -> Vec<String> {
    compiler_names()
}

/// Return the device that holds the results of functions that run with these options.
#[pyfunction]
#[pyo3(signature = (options=None))]
fn to_backend(options: Option<&Bound<'_, PyDict>>) -> PyResult<PyDevice> {
    options_from(options)?.0.results_device().or_raise().map(PyDevice)
}

/// Returns pooled memory to the system, and returns the number of bytes.
#[pyfunction]
fn release_held_memory() -> usize {
    nxla_runtime::host::release_held_memory()
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(set_reassociate_floats, module)?)?;
    module.add_function(wrap_pyfunction!(get_default_options, module)?)?;
    module.add_function(wrap_pyfunction!(has_own_options, module)?)?;
    module.add_function(wrap_pyfunction!(replace_default_options, module)?)?;
    module.add_function(wrap_pyfunction!(get_global_default_options, module)?)?;
    module.add_function(wrap_pyfunction!(replace_global_default_options, module)?)?;
    module.add_function(wrap_pyfunction!(merge_options, module)?)?;
    module.add_function(wrap_pyfunction!(inlines_call, module)?)?;
    module.add_function(wrap_pyfunction!(inlining_all, module)?)?;
    module.add_function(wrap_pyfunction!(compilers, module)?)?;
    module.add_function(wrap_pyfunction!(release_held_memory, module)?)?;
    module.add_function(wrap_pyfunction!(to_backend, module)?)
}
