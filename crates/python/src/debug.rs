//! Checks for values that are not finite, and counters.

use std::cell::Cell;
use std::sync::Arc;

use nxla_runtime::debug::{Distance, check_finite, distance, first_nan, first_not_finite};
use nxla_runtime::{HostTensor, Program, RawTensor};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::errors::{OrRaise, argument_error};
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
    for (number, result) in results.iter().enumerate() {
        if !result.dtype().is_float() && !result.dtype().is_complex() {
            continue;
        }
        let result = read_interruptible(py, result)?;
        if first_not_finite(&result).is_none() {
            continue;
        }
        let is_gone = inputs.iter().any(|input| input.is_released().unwrap_or(true));
        if !is_gone {
            py.detach(|| check_finite(program, inputs)).or_raise()?;
        }
        let Some((index, value)) = first_nan(&result) else { continue };
        // The evaluator found only finite results, so the inputs contain the NaN.
        let which = |input: &&RawTensor| input.to_host().is_ok_and(|x| first_nan(&x).is_some());
        let why = match py.detach(|| inputs.iter().position(which)) {
            Some(input) => format!("argument leaf {input} contains NaN"),
            None if is_gone => {
                "the operation is unknown, because the call donated its arguments".into()
            }
            None => "the evaluator computes finite values".into(),
        };
        let why = format!("result leaf {number} has {value} at {index:?}; {why}");
        return Err(crate::errors::exception(nxla_runtime::Error::Usage(format!("{name}: {why}"))));
    }
    Ok(())
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
    let data: Vec<RawTensor> = results.iter().map(|result| result.data().clone()).collect();
    check_results(py, name, program, &inputs, &data)
}

/// Raises if the thread checks results and a result contains NaN. The operation is unknown: the
/// results come from several programs, or from a program that another tool wrote.
pub(crate) fn check_tensors<'a>(
    py: Python<'_>,
    name: &str,
    results: impl IntoIterator<Item = &'a RawTensor>,
) -> PyResult<()> {
    if !is_on() {
        return Ok(());
    }
    for (number, result) in results.into_iter().enumerate() {
        if !result.dtype().is_float() && !result.dtype().is_complex() {
            continue;
        }
        let Some((index, value)) = first_nan(&read_interruptible(py, result.data())?) else {
            continue;
        };
        let why =
            format!("result leaf {number} has {value} at {index:?}; the operation is unknown");
        return Err(crate::errors::exception(nxla_runtime::Error::Usage(format!("{name}: {why}"))));
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
fn cache_report(py: Python<'_>) -> PyResult<Bound<'_, pyo3::types::PyDict>> {
    let report = nxla_runtime::executables().report();
    let dict = pyo3::types::PyDict::new(py);
    dict.set_item("entries", report.entries)?;
    dict.set_item("hits", report.hits)?;
    dict.set_item("misses", report.misses)?;
    dict.set_item("evictions", report.evictions)?;
    dict.set_item("bytes", report.bytes)?;
    Ok(dict)
}

/// Bytes that went from the host to devices, and from devices to the host.
#[pyfunction]
fn transfer_report(py: Python<'_>) -> PyResult<Bound<'_, pyo3::types::PyDict>> {
    let traffic = nxla_runtime::pjrt::Traffic::so_far();
    let dict = pyo3::types::PyDict::new(py);
    dict.set_item("sent", traffic.sent)?;
    dict.set_item("read", traffic.read)?;
    Ok(dict)
}

/// The number of programs that plugins have compiled, and of runs that they have started; tests use
/// it to check that XLA runs.
#[pyfunction]
fn _plugin_report(py: Python<'_>) -> PyResult<Bound<'_, pyo3::types::PyDict>> {
    let activity = nxla_runtime::pjrt::Activity::so_far();
    let dict = pyo3::types::PyDict::new(py);
    dict.set_item("compiled", activity.compiled)?;
    dict.set_item("started", activity.started)?;
    Ok(dict)
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
