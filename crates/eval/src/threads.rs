//! The threads that share the work of large steps, and how such work is broken off.
//!
//! Surprising points:
//! * A process that was made by `fork` has none of the threads of its parent. So the threads are
//!   remembered with their process, and another one makes its own. Those of the parent stay listed,
//!   since nothing can be done with them any more: not even ending them.
//! * Where there can be no threads, for lack of memory or because the system grants no more, work is
//!   done by whoever asks for it.
//! * Waking a thread takes longer than most steps. So a large run goes [aboard]: a thread of the crew
//!   does it, to which handing parts to the others costs little, and these look out for more work for
//!   a while before they sleep. One run is aboard at a time. The others do their work themselves and
//!   hand over what is worth waking somebody, so that none of them waits for another one's end.

use std::cell::{Cell, RefCell};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use rayon::{ThreadPool, ThreadPoolBuilder, Yield};

use crate::error::EvalError;
use crate::run::{Interrupt, Wanted};

/// The threads of one process.
pub(crate) struct Crew {
    process: u32,
    pub(crate) threads: ThreadPool,
    /// Whether a run is aboard.
    taken: AtomicBool,
    /// How many threads look out for work.
    watching: AtomicUsize,
    /// Whether threads were called that have not come yet.
    called: AtomicBool,
    /// Those of a process that was forked off.
    next: OnceLock<Box<Crew>>,
}

static CREW: OnceLock<Box<Crew>> = OnceLock::new();

thread_local! {
    /// Whether this thread does the run that is aboard.
    static LEADS: Cell<bool> = const { Cell::new(false) };
}

/// How long a thread looks out for more work.
const WATCH: Duration = Duration::from_micros(100);

/// The threads of this process, unless there can be none.
pub(crate) fn crew() -> Option<&'static Crew> {
    let process = std::process::id();
    let mut place = &CREW;
    loop {
        match place.get() {
            Some(crew) if crew.process == process => return Some(crew),
            Some(crew) => place = &crew.next,
            None => {
                let named = ThreadPoolBuilder::new().thread_name(|index| format!("nxla {index}"));
                let crew = Crew {
                    process,
                    threads: named.stack_size(STACK).build().ok()?,
                    taken: AtomicBool::new(false),
                    watching: AtomicUsize::new(0),
                    called: AtomicBool::new(false),
                    next: OnceLock::new(),
                };
                // The threads are made first, so that a fork finds the place empty or filled. Of two
                // who make them at once, one ends its own again.
                let _ = place.set(Box::new(crew));
            }
        }
    }
}

/// Bytes of a thread's stack: what the first thread of a process has, since runs go as deep there.
const STACK: usize = 8 << 20;

/// Whether this thread does the run that is aboard.
#[inline]
pub(crate) fn leads() -> bool {
    LEADS.get()
}

impl Crew {
    /// Has the other threads look out for work, if this one leads and they do not yet.
    #[inline]
    pub(crate) fn rouse(&'static self) {
        if leads()
            && self.watching.load(Ordering::Relaxed) == 0
            && !self.called.swap(true, Ordering::Relaxed)
        {
            self.threads.spawn_broadcast(move |_| self.watch());
        }
    }

    /// Works on what comes until nothing has come for a while.
    fn watch(&self) {
        if leads() {
            return;
        }
        self.called.store(false, Ordering::Relaxed);
        self.watching.fetch_add(1, Ordering::Relaxed);
        let mut last = Instant::now();
        while last.elapsed() < WATCH {
            match rayon::yield_now() {
                Some(Yield::Executed) => last = Instant::now(),
                Some(Yield::Idle) => std::hint::spin_loop(),
                None => break,
            }
        }
        self.watching.fetch_sub(1, Ordering::Relaxed);
    }

    /// Leaves the place aboard to others when it is dropped; `None` where it is taken, or where
    /// there is nobody to hand work to.
    fn board(&self) -> Option<Aboard<'_>> {
        let alone = self.threads.current_num_threads() < 2;
        let is_in = self.threads.current_thread_index().is_some();
        if alone || is_in || self.taken.swap(true, Ordering::Acquire) {
            return None;
        }
        Some(Aboard(self))
    }
}

/// The place of the one run that is aboard.
struct Aboard<'a>(&'a Crew);

impl Drop for Aboard<'_> {
    fn drop(&mut self) {
        self.0.taken.store(false, Ordering::Release);
    }
}

/// Does a run on a thread of the crew, if none is done there, while this one asks whether it is still
/// wanted; otherwise just does it.
pub(crate) fn aboard<R: Send>(
    interrupt: Option<&Interrupt<'_>>,
    run: impl FnOnce(Wanted<'_>) -> Result<R, EvalError> + Send,
) -> Result<R, EvalError> {
    let Some((crew, _place)) = crew().and_then(|crew| Some((crew, crew.board()?))) else {
        return run(interrupt.map_or(Wanted::Always, Wanted::Asked));
    };
    let pulled = Arc::new(AtomicBool::new(false));
    let brake = Brake(Some(pulled.clone()));
    let (done, over) = mpsc::channel::<()>();
    let mut result = None;
    crew.threads.in_place_scope(|scope| {
        let result = &mut result;
        scope.spawn(move |_| {
            let _done = done;
            let _lead = Lead::new();
            *result = Some(brake.clone().over(|| run(Wanted::Told(&brake))));
        });
        ask_until(&over, interrupt, &pulled);
    });
    match result {
        Some(result) if !pulled.load(Ordering::Relaxed) => result,
        _ => Err(EvalError::Interrupted),
    }
}

/// Makes this thread lead until it is dropped, also by a panic.
struct Lead;

impl Lead {
    fn new() -> Self {
        LEADS.set(true);
        Lead
    }
}

impl Drop for Lead {
    fn drop(&mut self) {
        LEADS.set(false);
    }
}

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

    #[test]
    fn there_is_one_crew() {
        let (first, second) = (crew().unwrap(), crew().unwrap());
        assert!(std::ptr::eq(first, second));
    }
}
