//! The threads that share the work of large steps.
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

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::time::{Duration, Instant};

use rayon::{ThreadPool, ThreadPoolBuilder, Yield};

use super::{Brake, ask_until};
use crate::error::EvalError;
use crate::run::{Interrupt, Wanted};

/// The threads of one process.
pub(crate) struct Crew {
    process: u32,
    threads: ThreadPool,
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

/// How long a thread looks out for more work, or for others to get through with it.
const WATCH: Duration = Duration::from_micros(100);

/// How long a thread waits for others to begin, when all there was to do is done.
const PATIENCE: Duration = Duration::from_micros(10);

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
    /// How many threads there are.
    pub(crate) fn count(&self) -> usize {
        self.threads.current_num_threads()
    }

    /// Does something where functions of rayon find these threads. Who is one of them is among them
    /// already.
    pub(crate) fn within<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        self.threads.install(work)
    }

    /// Hands the items out, one task for each, which gets what its thread keeps for tasks.
    pub(crate) fn each_with<I: Send, W>(
        &self,
        items: Vec<I>,
        keep: fn() -> W,
        task: impl Fn(&mut W, I) + Send + Sync,
    ) {
        self.share(items.into_iter(), keep, &task);
    }

    /// Hands out pieces of `size` elements, with the number of each.
    pub(crate) fn pieces<T: Send>(
        &self,
        out: &mut [T],
        size: usize,
        fill: &(dyn Fn((usize, &mut [T])) + Sync),
    ) {
        self.share(out.chunks_mut(size).enumerate(), || (), &|(), piece| fill(piece));
    }

    /// The results of `count` tasks, in order.
    pub(crate) fn collect<R: Send>(
        &self,
        count: usize,
        task: &(dyn Fn(usize) -> R + Sync),
    ) -> Vec<R> {
        let mut results: Vec<Option<R>> = (0..count).map(|_| None).collect();
        let places = results.iter_mut().enumerate();
        self.share(places, || (), &|(), (index, place)| *place = Some(task(index)));
        results.into_iter().map(|result| result.expect("each task was done")).collect()
    }

    /// Does a task for each item: this thread from the first on, and as many others as there is work for
    /// from the last on, so that each meets the same items the next time, which are in its cache. It
    /// begins without waiting for them, since they may sleep.
    fn share<I: Send, W>(
        &self,
        items: impl ExactSizeIterator<Item = I> + DoubleEndedIterator + Send,
        keep: fn() -> W,
        task: &(dyn Fn(&mut W, I) + Sync),
    ) {
        let others = (self.count() - 1).min(items.len().saturating_sub(1));
        let items = Mutex::new(items);
        let items = || items.lock().expect("taking an item does not panic");
        let work = |next: &dyn Fn() -> Option<I>| {
            let mut kept = keep();
            while let Some(item) = next() {
                task(&mut kept, item);
            }
        };
        let (mine, theirs) = (|| work(&|| items().next()), || work(&|| items().next_back()));
        if self.threads.current_thread_index().is_some() {
            return together(others, &mine, &theirs);
        }
        let (begun, through) = (AtomicUsize::new(0), AtomicUsize::new(0));
        self.threads.in_place_scope(|scope| {
            for _ in 0..others {
                scope.spawn(|_| {
                    begun.fetch_add(1, Ordering::Relaxed);
                    theirs();
                    through.fetch_add(1, Ordering::Relaxed);
                });
            }
            mine();
            // Being woken takes longer than what the others still have to do, mostly. Those that have not
            // begun find nothing to do any more: where other programs keep them from it, they get the
            // processor of this thread when it sleeps.
            let since = Instant::now();
            loop {
                let ends = through.load(Ordering::Relaxed);
                let is_busy = ends < begun.load(Ordering::Relaxed);
                let most = if is_busy { WATCH } else { PATIENCE };
                if ends == others || since.elapsed() >= most {
                    break;
                }
                std::hint::spin_loop();
            }
        });
    }

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
        let alone = self.count() < 2;
        let is_in = self.threads.current_thread_index().is_some();
        if alone || is_in || self.taken.swap(true, Ordering::Acquire) {
            return None;
        }
        Some(Aboard(self))
    }
}

/// On a thread of the crew: it does its part, and so many others do theirs, if they come in time.
fn together(others: usize, mine: &(dyn Fn() + Sync), theirs: &(dyn Fn() + Sync)) {
    match others.checked_sub(1) {
        Some(others) => {
            rayon::join(|| together(others, mine, theirs), theirs);
        }
        None => mine(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_crew() {
        let (first, second) = (crew().unwrap(), crew().unwrap());
        assert!(std::ptr::eq(first, second));
    }
}
