//! Python functions that programs call: hooks and runtime calls.
//!
//! Programs are shared Rust objects that Python's garbage collector cannot traverse, and a program
//! may hold a bound method of the model that holds the program. The functions of hooks therefore
//! belong to the jitted function whose trace created them. The jitted function reports them to the
//! collector, and programs hold weak references. A function without such an owner belongs to its
//! first user.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};

use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;

/// A Python function that a program calls.
pub(crate) struct Callable {
    function: Weak<Py<PyAny>>,
    /// Keeps the function alive, unless an owner does.
    kept: Mutex<Option<Arc<Py<PyAny>>>>,
}

impl Callable {
    /// Wraps a function. The wrapper refers to the jitted function of the current trace if this
    /// function owns the wrapped one.
    pub(crate) fn new(function: &Bound<'_, PyAny>) -> Self {
        let strong = Arc::new(function.clone().unbind());
        let function = Arc::downgrade(&strong);
        let kept = FunctionCollector::take(strong);
        Self { function, kept: Mutex::new(kept) }
    }

    /// The function, or `None` if its owner is gone.
    pub(crate) fn get(&self) -> Option<Arc<Py<PyAny>>> {
        self.function.upgrade()
    }

    /// Moves the function to an owner, if it has none.
    pub(crate) fn give(&self, owned: &OwnedFunctions) {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).take();
        owned.extend(kept);
    }
}

/// Functions of programs that a Python object owns.
#[derive(Default)]
pub(crate) struct OwnedFunctions(Mutex<Vec<Arc<Py<PyAny>>>>);

impl OwnedFunctions {
    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Py<PyAny>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds functions, and drops functions that no program refers to.
    fn extend(&self, functions: impl IntoIterator<Item = Arc<Py<PyAny>>>) {
        let mut functions = functions.into_iter().peekable();
        if functions.peek().is_none() {
            return;
        }
        let mut owned = self.lock();
        let (used, unused) = owned.drain(..).partition(|own| Arc::weak_count(own) > 0);
        *owned = used;
        owned.extend(functions);
        drop(owned);
        // Dropping a function may run user code, which must not happen under the lock.
        drop::<Vec<_>>(unused);
    }

    /// Reports the functions to the garbage collector, one reference each. Reports nothing while
    /// another thread holds the lock.
    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        let owned = match self.0.try_lock() {
            Ok(owned) => owned,
            Err(TryLockError::Poisoned(owned)) => owned.into_inner(),
            Err(TryLockError::WouldBlock) => return Ok(()),
        };
        owned.iter().try_for_each(|function| visit.call(&**function))
    }
}

thread_local! {
    /// The traces of the thread: the functions that each trace has collected, or `None` for a trace
    /// whose program has no owner.
    static TRACES: RefCell<Vec<Option<Vec<Arc<Py<PyAny>>>>>> = const { RefCell::new(Vec::new()) };
}

/// A trace of the thread that collects functions.
pub(crate) struct FunctionCollector(());

impl FunctionCollector {
    /// Starts a trace. With `owned`, an owner takes the collected functions.
    pub(crate) fn begin(owned: bool) -> Self {
        TRACES.with_borrow_mut(|traces| traces.push(owned.then(Vec::new)));
        Self(())
    }

    /// Returns the collected functions.
    pub(crate) fn give(self, owned: &OwnedFunctions) {
        let functions = TRACES.with_borrow_mut(|traces| traces.last_mut().and_then(Option::take));
        owned.extend(functions.into_iter().flatten());
    }

    /// Adds a function to the current trace; returns the function if no trace collects functions.
    fn take(function: Arc<Py<PyAny>>) -> Option<Arc<Py<PyAny>>> {
        TRACES.with_borrow_mut(|traces| match traces.last_mut() {
            Some(Some(functions)) => {
                functions.push(function);
                None
            }
            Some(None) | None => Some(function),
        })
    }
}

impl Drop for FunctionCollector {
    fn drop(&mut self) {
        let functions = TRACES.with_borrow_mut(Vec::pop);
        drop(functions);
    }
}
