//! The indices of true elements, as one tensor for each axis.

use std::iter::repeat_n;

use nxla_runtime::host::{Element, TensorError};
use nxla_runtime::{HostTensor, RawTensor};
use pyo3::prelude::*;

use crate::device::to_device;
use crate::errors::OrRaise;
use crate::interrupt::read_interruptible;
use crate::tensor::PyTensor;

/// The indices of true elements along each axis, in row-major order, on the device of ``x``.
#[pyfunction]
fn true_indices(py: Python<'_>, x: &Bound<'_, PyTensor>) -> PyResult<Vec<Py<PyAny>>> {
    let mask = x.get().tensor();
    let device = mask.device();
    let on_device = |axis: RawTensor| {
        let axis = PyTensor::wrap(py, axis)?;
        to_device(axis.bind(py).cast()?, &device, None)
    };
    indices(py, &mask)?.into_iter().map(on_device).collect()
}

/// Returns whether a boolean scalar is true.
pub(super) fn is_true(py: Python<'_>, truth: &RawTensor) -> PyResult<bool> {
    Ok(!on_host(py, truth)?.get(0).is_zero())
}

fn on_host(py: Python<'_>, mask: &RawTensor) -> PyResult<HostTensor> {
    match mask.data() {
        RawTensor::Host(host) => Ok(host.clone()),
        device => read_interruptible(py, device),
    }
}

/// The result of [`true_indices`]; a scalar has no axes.
pub(super) fn indices(py: Python<'_>, mask: &RawTensor) -> PyResult<Vec<RawTensor>> {
    let host = on_host(py, mask)?;
    let sizes = host.shape().to_vec();
    let found = py.detach(|| {
        let held = host.as_slice::<u8>()?;
        let is_small = sizes.iter().all(|&size| i32::try_from(size).is_ok());
        if is_small {
            of_type(held, &sizes, |at| at as i32)
        } else {
            of_type(held, &sizes, |at| at as i64)
        }
    });
    found.or_raise()
}

/// The indices as integers of one type, which holds them all.
fn of_type<I: Element>(
    held: &[u8],
    sizes: &[usize],
    index: impl Fn(usize) -> I + Copy,
) -> Result<Vec<RawTensor>, TensorError> {
    let Some((&width, outer)) = sizes.split_last() else { return Ok(Vec::new()) };
    let count = held.iter().map(|&truth| usize::from(truth != 0)).sum();
    let mut columns = vec![I::default(); count];
    let mut others: Vec<Vec<I>> = outer.iter().map(|_| Vec::with_capacity(count)).collect();
    let mut at = vec![0; outer.len()];
    let mut done = 0;
    for row in held.chunks_exact(width.max(1)) {
        let found = write_true_indices(row, index, &mut columns[done..]);
        done += found;
        for (indices, &at) in others.iter_mut().zip(&at) {
            indices.extend(repeat_n(index(at), found));
        }
        advance(&mut at, outer);
    }
    others.push(columns);
    others.into_iter().map(|indices| RawTensor::new(indices, [count])).collect()
}

/// Writes the indices of true elements of a row, as far as there is room, and returns their number.
/// Every index is written, and the next one overwrites the index of a false element, because an
/// unpredictable branch takes longer.
fn write_true_indices<I>(row: &[u8], index: impl Fn(usize) -> I, out: &mut [I]) -> usize {
    let mut found = 0;
    for (at, &truth) in row.iter().enumerate() {
        let Some(out) = out.get_mut(found) else { break };
        *out = index(at);
        found += usize::from(truth != 0);
    }
    found
}

/// Advances to the next row.
fn advance(at: &mut [usize], sizes: &[usize]) {
    for (at, &size) in at.iter_mut().zip(sizes).rev() {
        *at += 1;
        if *at < size {
            return;
        }
        *at = 0;
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(true_indices, module)?)
}
