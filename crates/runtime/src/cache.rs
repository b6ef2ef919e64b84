//! Executables by the digest of their program.
//!
//! The digest does not depend on which function object was traced, so two equal functions, or one
//! that is defined anew in every turn of a loop, share an executable. Concurrent callers of the
//! same program wait for the first instead of compiling it again; others are not held up.
//!
//! The cache alone keeps executables alive: those who run one hold it weakly, so that one that is
//! dropped is gone, and find or compile it again when they need it.

use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, mpsc};

use nxla_eval::Interrupt;
use nxla_expr::Digest;
use nxla_split::Policy;

use crate::background::{self, ASK_EVERY, interrupted};
use crate::compiler::{Compiler, Executable};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::options::Settings;

/// What makes an executable reusable.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct CacheKey {
    /// The program.
    pub digest: Digest,
    /// The compiler, which lives as long as the key.
    pub compiler: CompilerKey,
    /// The compiler's settings.
    pub settings: Settings,
    /// Where it runs, unless the settings say so.
    pub device: Option<Device>,
    /// Which hooks are called, see [`Detached::pattern`](nxla_expr::Detached::pattern).
    pub hooks: Vec<u32>,
    /// The addresses of the functions of hooks, for compilers whose executables hold them. They
    /// keep them alive, so that an address means the same for as long as it is a key.
    pub functions: Vec<usize>,
    /// Donated inputs.
    pub donated: Vec<bool>,
    /// How it is cut into stages, if it is.
    pub stages: Option<Policy>,
}

/// A compiler as part of a key: equal to itself alone, whatever its name is.
#[derive(Clone)]
pub struct CompilerKey(pub Arc<dyn Compiler>);

impl PartialEq for CompilerKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.identity() == other.0.identity()
    }
}

impl Eq for CompilerKey {}

impl Hash for CompilerKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.identity().hash(state);
    }
}

impl fmt::Debug for CompilerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name())
    }
}

/// What the cache holds and did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CacheReport {
    /// Executables held.
    pub entries: usize,
    /// Their bytes.
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
    held: Mutex<Held>,
    clock: AtomicU64,
    limit: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
    evictions: AtomicU64,
}

/// What the cache holds, and how many bytes that comes to.
#[derive(Default)]
struct Held {
    entries: HashMap<CacheKey, Entry>,
    bytes: usize,
}

impl Held {
    fn remove(&mut self, key: &CacheKey) -> Option<Entry> {
        let entry = self.entries.remove(key)?;
        self.bytes -= entry.bytes;
        Some(entry)
    }
}

struct Entry {
    slot: Arc<Slot>,
    bytes: usize,
    last_used: Used,
}

/// When an executable was used last, by the clock of the cache. Whoever runs it notes that without
/// asking the cache.
pub(crate) type Used = Arc<AtomicU64>;

/// An executable that somebody asked for.
pub(crate) struct Found {
    pub(crate) executable: Arc<dyn Executable>,
    pub(crate) used: Used,
}

/// Enough for thousands of ordinary programs; see [`ExecutableCache::set_limit`].
const DEFAULT_LIMIT_BYTES: u64 = 512 << 20;

/// The cache of the process.
pub fn executables() -> &'static ExecutableCache {
    static CACHE: OnceLock<ExecutableCache> = OnceLock::new();
    CACHE.get_or_init(|| ExecutableCache {
        held: Mutex::default(),
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
        let mut held = self.cache.held();
        let own = held.entries.get(&self.key);
        if own.is_some_and(|entry| Arc::ptr_eq(&entry.slot, &self.slot)) {
            held.remove(&self.key);
        }
        drop(held);
        self.slot.settle(State::Empty);
    }
}

impl ExecutableCache {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
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
        self.find(key, compile, interrupt).map(|found| found.executable)
    }

    /// As [`ExecutableCache::get_or_compile`], with what tells the cache of later uses.
    pub(crate) fn find(
        &'static self,
        key: &CacheKey,
        compile: impl FnOnce() -> Result<Arc<dyn Executable>> + Send + 'static,
        interrupt: Option<&Interrupt<'_>>,
    ) -> Result<Found> {
        let now = self.clock.fetch_add(1, Ordering::Relaxed);
        let (slot, used) = {
            let mut held = self.held();
            let entry = held.entries.entry(key.clone()).or_insert_with(|| Entry {
                slot: Arc::default(),
                bytes: 0,
                last_used: Arc::default(),
            });
            entry.last_used.store(now, Ordering::Relaxed);
            (entry.slot.clone(), entry.last_used.clone())
        };
        let executable = self.fill(key, slot, compile, interrupt)?;
        Ok(Found { executable, used })
    }

    /// Notes that an executable is used now.
    pub(crate) fn touch(&self, used: &Used) {
        used.store(self.clock.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    fn fill(
        &'static self,
        key: &CacheKey,
        slot: Arc<Slot>,
        compile: impl FnOnce() -> Result<Arc<dyn Executable>> + Send + 'static,
        interrupt: Option<&Interrupt<'_>>,
    ) -> Result<Arc<dyn Executable>> {
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
        let mut held = self.held();
        let before =
            held.entries.get_mut(key).map(|entry| std::mem::replace(&mut entry.bytes, bytes));
        if let Some(before) = before {
            held.bytes = held.bytes + bytes - before;
        }
        let dropped = self.evict(&mut held, Some(key));
        drop(held);
        // Dropping an executable may take a plugin some time: not under the lock.
        drop(dropped);
    }

    /// Takes out what has not been used for longest if there is more than the limit allows: an
    /// eighth more than it must, so that looking at all of them is worth it for many that come.
    fn evict(&self, held: &mut Held, newest: Option<&CacheKey>) -> Vec<Entry> {
        let limit = usize::try_from(self.limit.load(Ordering::Relaxed)).unwrap_or(usize::MAX);
        let mut dropped = Vec::new();
        if held.bytes <= limit {
            return dropped;
        }
        let others =
            held.entries.iter().filter(|(key, entry)| Some(*key) != newest && entry.bytes > 0);
        let mut by_age: Vec<(u64, CacheKey)> = others
            .map(|(key, entry)| (entry.last_used.load(Ordering::Relaxed), key.clone()))
            .collect();
        by_age.sort_unstable_by_key(|(used, _)| *used);
        for (_, key) in by_age {
            if held.bytes <= limit - limit / 8 {
                break;
            }
            dropped.extend(held.remove(&key));
            self.evictions.fetch_add(1, Ordering::Relaxed);
        }
        dropped
    }

    /// Sets how many bytes of executables are kept; what is beyond is dropped at once. The one that
    /// is compiled last always stays until the next.
    pub fn set_limit(&self, bytes: u64) {
        self.limit.store(bytes, Ordering::Relaxed);
        let mut held = self.held();
        let dropped = self.evict(&mut held, None);
        drop(held);
        drop(dropped);
    }

    /// Forgets every executable. Functions that have used one compile it again when they are
    /// called; runs under way go on.
    pub fn clear(&self) {
        let dropped = std::mem::take(&mut *self.held());
        drop(dropped);
    }

    /// What the cache holds and did.
    pub fn report(&self) -> CacheReport {
        let held = self.held();
        CacheReport {
            entries: held.entries.len(),
            bytes: held.bytes,
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
            evictions: self.evictions.load(Ordering::Relaxed),
        }
    }
}
