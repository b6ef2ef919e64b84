//! Tracking of live tensors and of the lines that created them.
//!
//! Tracking is off by default, and creating a tensor then costs one read of a flag. The tracker
//! holds weak references and removes dead ones.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyWeakrefMethods, PyWeakrefReference};

use crate::errors::OrRaise;
use crate::source::{line_of, place};
use crate::tensor::PyTensor;

/// True while tensors are tracked.
static ON: AtomicBool = AtomicBool::new(false);

/// The records of the active trackers.
static TRACKERS: Mutex<Vec<Arc<Mutex<Records>>>> = Mutex::new(Vec::new());

/// A tensor, with the code object and instruction that created it.
struct Record {
    tensor: Py<PyWeakrefReference>,
    place: Option<(Py<PyAny>, i64)>,
}

impl Record {
    fn clone_ref(&self, py: Python<'_>) -> Self {
        let place = self.place.as_ref().map(|(code, at)| (code.clone_ref(py), *at));
        Self { tensor: self.tensor.clone_ref(py), place }
    }
}

#[derive(Default)]
struct Records {
    list: Vec<Record>,
    /// The number of records at which dead ones are removed.
    next_cleanup: usize,
}

/// The minimum number of records for which a removal pays off.
const MIN_CLEANUP: usize = 1024;

impl Records {
    /// Adds a record. Dead records are removed whenever the number has doubled since the last
    /// removal, so the amortized cost is constant.
    fn add(&mut self, py: Python<'_>, record: Record) {
        if self.list.len() >= self.next_cleanup.max(MIN_CLEANUP) {
            self.list.retain(|record| record.tensor.bind(py).upgrade().is_some());
            self.next_cleanup = 2 * self.list.len();
        }
        self.list.push(record);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns whether new tensors are tracked.
#[inline]
pub(crate) fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Tracks a new tensor.
#[cold]
pub(crate) fn track(tensor: &Bound<'_, PyTensor>) -> PyResult<()> {
    let py = tensor.py();
    let place = place(py)?.map(|(code, instruction)| (code.unbind(), instruction));
    let record = Record { tensor: PyWeakrefReference::new(tensor)?.unbind(), place };
    // Calls into Python may switch threads, so the list must not be locked.
    let trackers = lock(&TRACKERS).clone();
    for records in trackers {
        lock(&records).add(py, record.clone_ref(py));
    }
    Ok(())
}

/// Records of the tensors that were created while the tracker was active.
#[pyclass(name = "TensorTracker", module = "nxla._core", frozen)]
struct Tracker(Arc<Mutex<Records>>);

/// A live tensor: its source line, type, device, and bytes.
type Live = (Option<String>, String, String, usize);

#[pymethods]
impl Tracker {
    /// Starts tracking in all threads.
    #[new]
    fn new() -> Self {
        let records = Arc::default();
        let mut trackers = lock(&TRACKERS);
        trackers.push(Arc::clone(&records));
        ON.store(true, Ordering::Relaxed);
        Self(records)
    }

    /// Stops tracking.
    fn stop(&self) {
        let mut trackers = lock(&TRACKERS);
        trackers.retain(|records| !Arc::ptr_eq(records, &self.0));
        ON.store(!trackers.is_empty(), Ordering::Relaxed);
    }

    /// The live tensors with data, in order of creation.
    fn live(&self, py: Python<'_>) -> PyResult<Vec<Live>> {
        let list: Vec<Record> =
            lock(&self.0).list.iter().map(|record| record.clone_ref(py)).collect();
        let mut live = Vec::new();
        for Record { tensor, place } in list {
            let Some(tensor) = tensor.bind(py).upgrade_as::<PyTensor>()? else { continue };
            let (tensor, bytes) = (tensor.get().tensor(), tensor.get().nbytes());
            if tensor.is_released().or_raise()? {
                continue;
            }
            let line = match &place {
                Some((code, instruction)) => line_of(code.bind(py), *instruction)?,
                None => None,
            };
            let line = line.map(|line| line.to_string());
            live.push((line, tensor.ty().to_string(), tensor.device().to_string(), bytes));
        }
        Ok(live)
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Tracker>()
}
