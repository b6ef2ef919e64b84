//! Which tensors live, and the lines that made them.
//!
//! Nothing is noted until somebody wants to know, and making a tensor costs one look at a flag. What
//! is noted holds no tensor: it has weak references, and forgets those that lead nowhere.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyWeakrefMethods, PyWeakrefReference};

use crate::errors::OrRaise;
use crate::source::{line_of, place};
use crate::tensor::PyTensor;

/// Whether anybody tracks tensors.
static ON: AtomicBool = AtomicBool::new(false);

/// What those note who track tensors at present.
static NOTES: Mutex<Vec<Arc<Mutex<Notes>>>> = Mutex::new(Vec::new());

/// A tensor, and the code and instruction that made it.
struct Made {
    tensor: Py<PyWeakrefReference>,
    place: Option<(Py<PyAny>, i64)>,
}

impl Made {
    fn clone_ref(&self, py: Python<'_>) -> Self {
        let place = self.place.as_ref().map(|(code, at)| (code.clone_ref(py), *at));
        Self { tensor: self.tensor.clone_ref(py), place }
    }
}

#[derive(Default)]
struct Notes {
    made: Vec<Made>,
    /// At how many of them those are forgotten that are gone.
    next_look: usize,
}

/// The fewest for which it is worth to look which of them are gone.
const FEW: usize = 1024;

impl Notes {
    /// Notes one more. What is gone is looked for whenever twice as many are there as were left the
    /// last time, so that each takes a constant time.
    fn add(&mut self, py: Python<'_>, made: Made) {
        if self.made.len() >= self.next_look.max(FEW) {
            self.made.retain(|made| made.tensor.bind(py).upgrade().is_some());
            self.next_look = 2 * self.made.len();
        }
        self.made.push(made);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether tensors that are made are to be noted.
#[inline]
pub(crate) fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Notes a tensor that has just been made.
#[cold]
pub(crate) fn note(tensor: &Bound<'_, PyTensor>) -> PyResult<()> {
    let py = tensor.py();
    let place = place(py)?.map(|(code, instruction)| (code.unbind(), instruction));
    let made = Made { tensor: PyWeakrefReference::new(tensor)?.unbind(), place };
    // Python may run other threads whenever it is called, which must not find the list locked.
    let trackers = lock(&NOTES).clone();
    for notes in trackers {
        lock(&notes).add(py, made.clone_ref(py));
    }
    Ok(())
}

/// Tells of tensors that were made while it was on: which of them live.
#[pyclass(name = "TensorTracker", module = "nxla._core", frozen)]
struct Tracker(Arc<Mutex<Notes>>);

/// A tensor that lives: the line that made it, its type, its device, and its bytes.
type Live = (Option<String>, String, String, usize);

#[pymethods]
impl Tracker {
    /// Begins to note tensors, in all threads.
    #[new]
    fn new() -> Self {
        let notes = Arc::default();
        let mut trackers = lock(&NOTES);
        trackers.push(Arc::clone(&notes));
        ON.store(true, Ordering::Relaxed);
        Self(notes)
    }

    /// Notes no more tensors.
    fn stop(&self) {
        let mut trackers = lock(&NOTES);
        trackers.retain(|notes| !Arc::ptr_eq(notes, &self.0));
        ON.store(!trackers.is_empty(), Ordering::Relaxed);
    }

    /// The tensors that live and have their data, in the order in which they were made.
    fn live(&self, py: Python<'_>) -> PyResult<Vec<Live>> {
        let made: Vec<Made> = lock(&self.0).made.iter().map(|made| made.clone_ref(py)).collect();
        let mut live = Vec::new();
        for Made { tensor, place } in made {
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
