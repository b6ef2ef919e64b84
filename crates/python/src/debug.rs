//! Checks for values that are not finite, and counters.

use std::cell::Cell;
use std::sync::Arc;

use nxla_runtime::debug::{
    Distance, check_finite, check_stages_finite, distance, first_nan, first_not_finite,
};
use nxla_runtime::split::StageGraph;
use nxla_runtime::{HostTensor, Program, RawTensor};
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict, PyTuple};

use crate::errors::{OrRaise, argument_error, usage_error};
use crate::interrupt::read_interruptible;
use crate::tensor::PyTensor;

thread_local! {
    static HERE: Cell<bool> = const { Cell::new(false) };
}

/// Returns whether results are checked on the thread.
pub(crate) fn is_on() -> bool {
    HERE.get()
}

/// Raises if a result contains NaN, or infinities from finite operands, and names the operation
/// that produced them. An infinite constant, as in a mask, is not an error.
pub(crate) fn check_results(
    py: Python<'_>,
    name: &str,
    program: &Arc<Program>,
    inputs: &[&RawTensor],
    results: &[RawTensor],
) -> PyResult<()> {
    check_results_by(py, name, inputs, results, &|| check_finite(program, inputs))
}

/// Like [`check_results`]; `check` runs the computation of the results on the evaluator, and returns
/// an error for an operation with a result that is not finite.
fn check_results_by(
    py: Python<'_>,
    name: &str,
    inputs: &[&RawTensor],
    results: &[RawTensor],
    check: &(dyn Fn() -> nxla_runtime::Result<Vec<HostTensor>> + Sync),
) -> PyResult<()> {
    for (number, result) in results.iter().enumerate() {
        let Some(result) = read_inexact(py, result)? else { continue };
        if first_not_finite(&result).is_none() {
            continue;
        }
        let is_gone = inputs.iter().any(|input| input.is_released().unwrap_or(true));
        let evaluated = if is_gone { Vec::new() } else { py.detach(check).or_raise()? };
        let Some((index, value)) = first_nan(&result) else { continue };
        // The evaluator attributes the NaN to no operation on finite operands.
        let which = |input: &&RawTensor| input.to_host().is_ok_and(|x| first_nan(&x).is_some());
        let why = match py.detach(|| inputs.iter().position(which)) {
            Some(input) => format!("argument leaf {input} contains NaN"),
            None if is_gone => {
                "the operation is unknown, because the call donated its arguments".into()
            }
            None if evaluated.iter().any(|result| first_nan(result).is_some()) => {
                "an operation computes it from infinite operands".into()
            }
            None => "the evaluator computes other values".into(),
        };
        return Err(usage_error(format!(
            "{name}: result leaf {number} has {value} at {index:?}; {why}"
        )));
    }
    Ok(())
}

/// The data of a result whose dtype has NaN; `None` for other dtypes.
fn read_inexact(py: Python<'_>, result: &RawTensor) -> PyResult<Option<HostTensor>> {
    let dtype = result.dtype();
    (dtype.is_float() || dtype.is_complex())
        .then(|| read_interruptible(py, result.data()))
        .transpose()
}

/// Checks the results of a program if the thread checks results; see [`check_results`].
pub(crate) fn check_program(
    py: Python<'_>,
    name: &str,
    program: &Arc<Program>,
    inputs: &[&RawTensor],
    results: &[RawTensor],
) -> PyResult<()> {
    if !is_on() {
        return Ok(());
    }
    let inputs: Vec<&RawTensor> = inputs.iter().map(|input| input.data()).collect();
    check_results(py, name, program, &inputs, results)
}

/// Checks the results of stages if the thread checks results; see [`check_results`].
pub(crate) fn check_stages(
    py: Python<'_>,
    name: &str,
    graph: &StageGraph,
    inputs: &[RawTensor],
    results: &[RawTensor],
) -> PyResult<()> {
    if !is_on() {
        return Ok(());
    }
    let inputs: Vec<&RawTensor> = inputs.iter().map(RawTensor::data).collect();
    let check = || check_stages_finite(graph, &inputs);
    check_results_by(py, name, &inputs, results, &check)
}

/// Raises if the thread checks results and a result contains NaN. The operation is unknown: the
/// results come from several devices, from a program that another tool wrote, or from stages whose
/// inputs are gone.
pub(crate) fn check_tensors<'a>(
    py: Python<'_>,
    name: &str,
    results: impl IntoIterator<Item = &'a RawTensor>,
) -> PyResult<()> {
    if !is_on() {
        return Ok(());
    }
    for (number, result) in results.into_iter().enumerate() {
        let nan = read_inexact(py, result)?.and_then(|result| first_nan(&result));
        let Some((index, value)) = nan else { continue };
        return Err(usage_error(format!(
            "{name}: result leaf {number} has {value} at {index:?}; the operation is unknown"
        )));
    }
    Ok(())
}

/// Sets whether the thread checks results; returns the previous setting.
#[pyfunction]
fn set_debug_nans(check: bool) -> bool {
    HERE.replace(check)
}

/// The distance of two tensors: units in the last place, the index, the largest difference, and the
/// number of different elements.
#[pyfunction]
fn compare_values(
    py: Python<'_>,
    left: &Bound<'_, PyTensor>,
    right: &Bound<'_, PyTensor>,
) -> PyResult<(u64, Py<PyTuple>, f64, usize)> {
    let (left, right) = (left.get().host(py)?, right.get().host(py)?);
    let shape = left.shape().clone();
    let found = py.detach(|| distance(&left, &right));
    let Some(Distance { ulps, position, absolute, differing }) = found else {
        let ty = |tensor: &HostTensor| format!("{}{}", tensor.dtype(), tensor.shape());
        let why = format!("tensors: must have equal types; got {} and {}", ty(&left), ty(&right));
        return Err(argument_error("compare_values", why));
    };
    Ok((ulps, PyTuple::new(py, shape.index_at(position))?.unbind(), absolute, differing))
}

/// Entries, bytes, hits, misses and evictions of the executable cache.
#[pyfunction]
fn cache_report(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let report = nxla_runtime::executables().report();
    let counts = [
        ("entries", report.entries as u64),
        ("hits", report.hits),
        ("misses", report.misses),
        ("evictions", report.evictions),
        ("bytes", report.bytes as u64),
    ];
    counts.into_py_dict(py)
}

/// Bytes that went from the host to devices, and from devices to the host.
#[pyfunction]
fn transfer_report(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let traffic = nxla_runtime::pjrt::Traffic::so_far();
    [("sent", traffic.sent), ("read", traffic.read)].into_py_dict(py)
}

/// The number of programs that plugins have compiled, and of runs that they have started; tests use
/// it to check that XLA runs.
#[pyfunction]
fn _plugin_report(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let activity = nxla_runtime::pjrt::Activity::so_far();
    [("compiled", activity.compiled), ("started", activity.started)].into_py_dict(py)
}

/// Sets the size limit of the executable cache in bytes.
#[pyfunction]
fn set_cache_limit(bytes: u64) {
    nxla_runtime::executables().set_limit(bytes);
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(set_debug_nans, module)?)?;
    module.add_function(wrap_pyfunction!(compare_values, module)?)?;
    module.add_function(wrap_pyfunction!(cache_report, module)?)?;
    module.add_function(wrap_pyfunction!(_plugin_report, module)?)?;
    module.add_function(wrap_pyfunction!(set_cache_limit, module)?)?;
    module.add_function(wrap_pyfunction!(transfer_report, module)?)
}
