//! Python functions that programs call: those of hooks and of runtime calls.
//!
//! Programs are shared, and are no objects of Python, so its garbage collector cannot see that a
//! program holds a bound method of the very model that holds the program. Therefore the functions
//! that come up while a jitted function is traced belong to that function, which shows them to the
//! collector; programs only point at them. All others belong to whoever points at them first.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};

use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;

/// A function of Python that a program calls.
pub(crate) struct Callable {
    function: Weak<Py<PyAny>>,
    /// Keeps the function, unless an owner does.
    kept: Mutex<Option<Arc<Py<PyAny>>>>,
}

impl Callable {
    /// Points at a function, which belongs to the jitted function that is being traced, if any.
    pub(crate) fn new(function: &Bound<'_, PyAny>) -> Self {
        let strong = Arc::new(function.clone().unbind());
        let function = Arc::downgrade(&strong);
        let kept = Traced::take(strong);
        Self { function, kept: Mutex::new(kept) }
    }

    /// The function; `None` if its owner is gone.
    pub(crate) fn get(&self) -> Option<Arc<Py<PyAny>>> {
        self.function.upgrade()
    }

    /// Hands the function over to an owner, if it has none.
    pub(crate) fn give(&self, owned: &Owned) {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).take();
        owned.extend(kept);
    }
}

/// Functions of programs that belong to an object of Python.
#[derive(Default)]
pub(crate) struct Owned(Mutex<Vec<Arc<Py<PyAny>>>>);

impl Owned {
    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Py<PyAny>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes functions over, and lets go of those that no program points at any more.
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
        // What the end of a function runs may be the user's code: not under the lock.
        drop::<Vec<_>>(unused);
    }

    /// Shows the functions to the garbage collector. Each is one reference, which only this object
    /// accounts for. Nothing is shown while another thread is at work on them.
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
    /// The traces under way on this thread: the functions that have come up in each, or `None` in
    /// one whose program belongs to nobody.
    static TRACES: RefCell<Vec<Option<Vec<Arc<Py<PyAny>>>>>> = const { RefCell::new(Vec::new()) };
}

/// A trace under way on this thread, which collects the functions that come up.
pub(crate) struct Traced(());

impl Traced {
    /// Begins a trace. With `owned`, the functions that come up are for an owner to take.
    pub(crate) fn begin(owned: bool) -> Self {
        TRACES.with_borrow_mut(|traces| traces.push(owned.then(Vec::new)));
        Self(())
    }

    /// Hands over what has come up.
    pub(crate) fn give(self, owned: &Owned) {
        let functions = TRACES.with_borrow_mut(|traces| traces.last_mut().and_then(Option::take));
        owned.extend(functions.into_iter().flatten());
    }

    /// Leaves a function to the trace under way; gives it back if there is none to take it.
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

impl Drop for Traced {
    fn drop(&mut self) {
        let functions = TRACES.with_borrow_mut(Vec::pop);
        drop(functions);
    }
}
