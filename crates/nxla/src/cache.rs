//! Executables by the digest of their program.
//!
//! The digest does not depend on which function object was traced, so two equal functions, or one
//! that is defined anew in every turn of a loop, share an executable. Concurrent callers of the
//! same program wait for the first instead of compiling it again; others are not held up.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, mpsc};

use nxla_eval::Interrupt;
use nxla_expr::Digest;

use crate::background::{self, ASK_EVERY, interrupted};
use crate::compiler::Executable;
use crate::error::{Error, Result};
use crate::options::Settings;

/// What makes an executable reusable.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct CacheKey {
    /// The program.
    pub digest: Digest,
    /// The compiler's name.
    pub compiler: Arc<str>,
    /// The compiler's settings.
    pub settings: Settings,
    /// Which hooks are called, see [`Detached::pattern`](nxla_expr::Detached::pattern).
    pub hooks: Vec<u32>,
    /// The addresses of the functions of hooks, for compilers whose executables hold them. They
    /// keep them alive, so that an address means the same for as long as it is a key.
    pub functions: Vec<usize>,
    /// Donated inputs.
    pub donated: Vec<bool>,
}

/// What the cache holds and did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CacheReport {
    /// Executables held.
    pub entries: usize,
    /// Their estimated bytes.
    pub bytes: usize,
    /// Requests served from the cache.
    pub hits: u64,
    /// Requests that compiled.
    pub misses: u64,
    /// Executables dropped to stay within the limit.
    pub evictions: u64,
}

/// The place of one executable.
#[derive(Default)]
struct Slot {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
enum State {
    /// Nobody compiles it: it is new, or has failed.
    #[default]
    Empty,
    Compiling,
    Ready(Arc<dyn Executable>),
}

/// Keeps executables up to a number of bytes, dropping those unused for longest.
pub struct ExecutableCache {
    entries: Mutex<HashMap<CacheKey, Entry>>,
    clock: AtomicU64,
    limit: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
    evictions: AtomicU64,
}

struct Entry {
    slot: Arc<Slot>,
    bytes: usize,
    last_used: u64,
}

/// Enough for thousands of ordinary programs; see [`ExecutableCache::set_limit`].
const DEFAULT_LIMIT_BYTES: u64 = 512 << 20;

/// The cache of the process.
pub fn executables() -> &'static ExecutableCache {
    static CACHE: OnceLock<ExecutableCache> = OnceLock::new();
    CACHE.get_or_init(|| ExecutableCache {
        entries: Mutex::default(),
        clock: AtomicU64::new(0),
        limit: AtomicU64::new(DEFAULT_LIMIT_BYTES),
        hits: AtomicU64::new(0),
        misses: AtomicU64::new(0),
        evictions: AtomicU64::new(0),
    })
}

impl Slot {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The executable, waited for if somebody is compiling it. `None` leaves it to the caller.
    fn claim(&self, interrupt: Option<&Interrupt<'_>>) -> Result<Option<Arc<dyn Executable>>> {
        let mut state = self.lock();
        loop {
            match &*state {
                State::Ready(executable) => return Ok(Some(executable.clone())),
                State::Empty => {
                    *state = State::Compiling;
                    return Ok(None);
                }
                State::Compiling => {}
            }
            let Some(interrupt) = interrupt else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let waited = self.changed.wait_timeout(state, ASK_EVERY);
            drop(waited.unwrap_or_else(PoisonError::into_inner));
            // Asking may run the user's signal handlers: not under the lock.
            if interrupt() {
                return Err(interrupted());
            }
            state = self.lock();
        }
    }

    fn settle(&self, state: State) {
        *self.lock() = state;
        self.changed.notify_all();
    }
}

/// The duty to fill a slot. If the compiler panics, the slot is free again.
struct Task {
    cache: &'static ExecutableCache,
    key: CacheKey,
    slot: Arc<Slot>,
    settled: bool,
}

impl Task {
    fn finish(mut self, compiled: Result<Arc<dyn Executable>>) -> Result<Arc<dyn Executable>> {
        let executable = compiled?;
        self.settled = true;
        self.slot.settle(State::Ready(executable.clone()));
        self.cache.account(&self.key, executable.byte_size());
        Ok(executable)
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        if self.settled {
            return;
        }
        let mut entries = self.cache.entries();
        if entries.get(&self.key).is_some_and(|entry| Arc::ptr_eq(&entry.slot, &self.slot)) {
            entries.remove(&self.key);
        }
        drop(entries);
        self.slot.settle(State::Empty);
    }
}

impl ExecutableCache {
    fn entries(&self) -> MutexGuard<'_, HashMap<CacheKey, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The executable of a key, compiled if it is not there. A failure is not remembered.
    ///
    /// With `interrupt`, compiling happens on another thread, and both who compiles and who waits
    /// for it ask now and then; if the answer is `true` they leave, and the compiler goes on.
    ///
    /// # Errors
    /// What `compile` raises; the caller was interrupted.
    pub fn get_or_compile(
        &'static self,
        key: &CacheKey,
        compile: impl FnOnce() -> Result<Arc<dyn Executable>> + Send + 'static,
        interrupt: Option<&Interrupt<'_>>,
    ) -> Result<Arc<dyn Executable>> {
        let now = self.clock.fetch_add(1, Ordering::Relaxed);
        let slot = {
            let mut entries = self.entries();
            let entry = entries.entry(key.clone()).or_insert_with(|| Entry {
                slot: Arc::default(),
                bytes: 0,
                last_used: now,
            });
            entry.last_used = now;
            entry.slot.clone()
        };
        // Only callers of this very program wait here.
        if let Some(executable) = slot.claim(interrupt)? {
            self.hits.fetch_add(1, Ordering::Relaxed);
            return Ok(executable);
        }
        self.misses.fetch_add(1, Ordering::Relaxed);
        let task = Task { cache: self, key: key.clone(), slot, settled: false };
        let Some(interrupt) = interrupt else { return task.finish(compile()) };
        let (give, given) = mpsc::channel();
        background::start("nxla compile", move || {
            // A caller that has left does not take it.
            let _ = give.send(task.finish(compile()));
        })?;
        let panicked = || Error::Internal("the compiler panicked".into());
        background::wait(&given, interrupt)?.unwrap_or_else(|| Err(panicked()))
    }

    /// Notes the size of a new executable and drops the oldest ones if there are too many bytes.
    fn account(&self, key: &CacheKey, bytes: usize) {
        let mut entries = self.entries();
        if let Some(entry) = entries.get_mut(key) {
            entry.bytes = bytes;
        }
        let limit = usize::try_from(self.limit.load(Ordering::Relaxed)).unwrap_or(usize::MAX);
        let mut total: usize = entries.values().map(|entry| entry.bytes).sum();
        while total > limit {
            let oldest = entries
                .iter()
                .filter(|(other, entry)| *other != key && entry.bytes > 0)
                .min_by_key(|(_, entry)| entry.last_used)
                .map(|(other, entry)| (other.clone(), entry.bytes));
            let Some((oldest, freed)) = oldest else { break };
            entries.remove(&oldest);
            total -= freed;
            self.evictions.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The programs that there are executables of, for whatever compilers and settings.
    pub fn digests(&self) -> HashSet<Digest> {
        self.entries().keys().map(|key| key.digest).collect()
    }

    /// Sets how many bytes of executables are kept. The newest one always is.
    pub fn set_limit(&self, bytes: u64) {
        self.limit.store(bytes, Ordering::Relaxed);
    }

    /// Forgets every executable. Those in use live on until they are dropped.
    pub fn clear(&self) {
        self.entries().clear();
    }

    /// What the cache holds and did.
    pub fn report(&self) -> CacheReport {
        let entries = self.entries();
        CacheReport {
            entries: entries.len(),
            bytes: entries.values().map(|entry| entry.bytes).sum(),
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
            evictions: self.evictions.load(Ordering::Relaxed),
        }
    }
}
