//! The threads that share the work of large steps, and how such work is broken off.
//!
//! Without the feature `parallel` there is no crew, and work is done by whoever asks for it.

#[cfg(not(feature = "parallel"))]
mod alone;
#[cfg(feature = "parallel")]
mod crew;

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use crate::error::EvalError;
use crate::run::Interrupt;

#[cfg(not(feature = "parallel"))]
pub(crate) use alone::{Crew, aboard, crew, leads};
#[cfg(feature = "parallel")]
pub(crate) use crew::{Crew, aboard, crew, leads};

/// Waits for work to be over, and asks every now and then whether it is still wanted.
fn ask_until(over: &mpsc::Receiver<()>, interrupt: Option<&Interrupt<'_>>, pulled: &AtomicBool) {
    while over.recv_timeout(ASK_EVERY) == Err(mpsc::RecvTimeoutError::Timeout) {
        if !pulled.load(Ordering::Relaxed) && interrupt.is_some_and(|interrupt| interrupt()) {
            pulled.store(true, Ordering::Relaxed);
        }
    }
}

/// Tells work that nobody waits for its result any more.
#[derive(Clone, Default)]
pub(crate) struct Brake(Option<Arc<AtomicBool>>);

thread_local! {
    static BRAKE: RefCell<Brake> = const { RefCell::new(Brake(None)) };
}

impl Brake {
    /// That of the step that this thread is at.
    pub(crate) fn current() -> Brake {
        BRAKE.with_borrow(Brake::clone)
    }

    /// Whether the work is in vain. Whoever asks may leave results unwritten then.
    #[inline]
    pub(crate) fn is_pulled(&self) -> bool {
        self.0.as_ref().is_some_and(|pulled| pulled.load(Ordering::Relaxed))
    }

    /// Does work under this brake.
    fn over<R>(self, work: impl FnOnce() -> R) -> R {
        let before = BRAKE.replace(self);
        let result = work();
        BRAKE.set(before);
        result
    }
}

/// How long a wait goes on between looks for interrupts.
const ASK_EVERY: Duration = Duration::from_millis(50);

/// Does long work on a thread of its own, while this one asks whether it is still wanted.
///
/// Work that is not may leave its result unwritten, so that it is not looked at.
pub(crate) fn watched<R: Send>(
    interrupt: &Interrupt<'_>,
    work: impl FnOnce() -> R + Send,
) -> Result<R, EvalError> {
    let pulled = Arc::new(AtomicBool::new(false));
    let brake = Brake(Some(pulled.clone()));
    let (done, over) = mpsc::channel::<()>();
    // In a place of its own, so that it is still there where no thread can be had.
    let mut work = Some(work);
    let result = thread::scope(|scope| {
        let task = || {
            let _done = done;
            work.take().map(|work| brake.over(work))
        };
        let Ok(worker) = thread::Builder::new().name("nxla step".into()).spawn_scoped(scope, task)
        else {
            return None;
        };
        ask_until(&over, Some(interrupt), &pulled);
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    match (result, work) {
        _ if pulled.load(Ordering::Relaxed) => Err(EvalError::Interrupted),
        (Some(result), _) => Ok(result),
        (None, Some(work)) => Ok(work()),
        (None, None) => unreachable!("work that was taken gives a result"),
    }
}

/// Does work that cannot be told to stop: where the brake is pulled meanwhile, it is left behind,
/// goes on to its end for nobody, and `None` comes back at once. Without a brake it is just done.
pub(crate) fn left_behind<R: Send + 'static>(
    work: impl FnOnce() -> R + Send + 'static,
) -> Option<R> {
    let brake = Brake::current();
    if brake.0.is_none() {
        return Some(work());
    }
    let (give, given) = mpsc::channel();
    let task = move || drop(give.send(work()));
    thread::Builder::new().name("nxla step".into()).spawn(task).ok()?;
    loop {
        match given.recv_timeout(ASK_EVERY) {
            Ok(result) => return Some(result),
            Err(mpsc::RecvTimeoutError::Disconnected) => return None,
            Err(mpsc::RecvTimeoutError::Timeout) if brake.is_pulled() => return None,
            Err(mpsc::RecvTimeoutError::Timeout) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn work_is_broken_off_or_left_behind() {
        let asked = || true;
        let begun = Instant::now();
        let spin = || {
            let brake = Brake::current();
            while !brake.is_pulled() {
                thread::yield_now();
            }
        };
        assert_eq!(watched(&asked, spin), Err(EvalError::Interrupted));
        let sleep = || left_behind(|| thread::sleep(Duration::from_secs(20)));
        assert_eq!(watched(&asked, sleep), Err(EvalError::Interrupted));
        assert!(begun.elapsed() < Duration::from_secs(10));
        assert_eq!(watched(&|| false, || left_behind(|| 7)), Ok(Some(7)));
        assert_eq!(left_behind(|| 7), Some(7));
    }
}
