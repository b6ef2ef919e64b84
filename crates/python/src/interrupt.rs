//! Interruptible waits for compilers, programs and results on devices.
//!
//! Python runs signal handlers only on its main thread, and only when that thread checks for
//! signals. Waits therefore release the interpreter lock and check for signals regularly.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use nxla_runtime::host::HostTensor;
use nxla_runtime::{Error, RawTensor};
use pyo3::prelude::*;

use crate::errors::{OrRaise, exception};
use crate::shutdown;

/// The interval between signal checks.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(50);

/// Runs a function without blocking other Python threads. The function receives a check and must
/// stop if it returns `true`; the exception of the signal handler is raised then.
pub(crate) fn interruptible<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&(dyn Fn() -> bool + Sync)) -> Result<T, Error> + Send,
) -> PyResult<T> {
    shutdown::prepare();
    let signals = Signals::default();
    let outcome = py.detach(|| {
        shutdown::gate();
        let outcome = work(&|| signals.check_signals());
        shutdown::gate();
        outcome
    });
    outcome.map_err(|error| signals.take().unwrap_or_else(|| exception(error)))
}

/// Waits until a tensor is computed.
pub(crate) fn wait_interruptible(py: Python<'_>, tensor: &RawTensor) -> PyResult<()> {
    // Releasing the interpreter lock takes longer.
    if tensor.is_readable() {
        return tensor.wait().or_raise();
    }
    interruptible(py, |interrupt| tensor.wait_watched(interrupt))
}

/// The data of a tensor on the host.
pub(crate) fn read_interruptible(py: Python<'_>, tensor: &RawTensor) -> PyResult<HostTensor> {
    match tensor {
        RawTensor::Host(tensor) => Ok(tensor.clone()),
        there if there.is_readable() => there.to_host().or_raise(),
        device => {
            wait_interruptible(py, device)?;
            py.detach(|| {
                let read = device.to_host();
                shutdown::gate();
                read
            })
            .or_raise()
        }
    }
}

/// Checks for signals from time to time.
struct Signals {
    calls: AtomicU32,
    /// The number of calls between clock reads. It adapts to the frequency of calls, because
    /// reading the clock costs as much as a small operation.
    stride: AtomicU32,
    last: Mutex<Option<Instant>>,
    raised: Mutex<Option<PyErr>>,
}

impl Default for Signals {
    fn default() -> Self {
        Self {
            calls: AtomicU32::new(0),
            stride: AtomicU32::new(1),
            last: Mutex::default(),
            raised: Mutex::default(),
        }
    }
}

const MAX_STRIDE: u32 = 32;

impl Signals {
    fn check_signals(&self) -> bool {
        let stride = self.stride.load(Ordering::Relaxed);
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        // No time has passed before the first check.
        if call == 0 || !call.is_multiple_of(stride) {
            return false;
        }
        {
            let now = Instant::now();
            let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            let is_due = last.is_some_and(|last| now - last >= SIGNAL_INTERVAL);
            if !is_due {
                last.get_or_insert(now);
                self.stride.store((2 * stride).min(MAX_STRIDE), Ordering::Relaxed);
                return false;
            }
            *last = Some(now);
            self.stride.store((stride / 2).max(1), Ordering::Relaxed);
        }
        match shutdown::inside(|py| py.check_signals()) {
            Ok(()) => false,
            Err(raised) => {
                *self.raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(raised);
                true
            }
        }
    }

    fn take(&self) -> Option<PyErr> {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
