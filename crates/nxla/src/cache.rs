//! Executables by the digest of their program.
//!
//! The digest does not depend on which function object was traced, so two equal functions, or one
//! that is defined anew in every turn of a loop, share an executable. Concurrent callers of the
//! same program wait for the first instead of compiling it again; others are not held up.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use nxla_expr::Digest;

use crate::compiler::Executable;
use crate::error::Result;
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
    /// Named hooks with a function.
    pub listeners: Vec<Arc<str>>,
    /// Which functions the program's hooks bring along. They are no part of the digest, but an
    /// executable calls them.
    pub own_hooks: Vec<usize>,
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

type Slot = Arc<Mutex<Option<Arc<dyn Executable>>>>;

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
    slot: Slot,
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

impl ExecutableCache {
    fn entries(&self) -> MutexGuard<'_, HashMap<CacheKey, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The executable of a key, compiled if it is not there. A failure is not remembered.
    ///
    /// # Errors
    /// What `compile` raises.
    pub fn get_or_compile(
        &self,
        key: &CacheKey,
        compile: impl FnOnce() -> Result<Arc<dyn Executable>>,
    ) -> Result<Arc<dyn Executable>> {
        let now = self.clock.fetch_add(1, Ordering::Relaxed);
        let slot = {
            let mut entries = self.entries();
            let entry = entries.entry(key.clone()).or_insert_with(|| Entry {
                slot: Slot::default(),
                bytes: 0,
                last_used: now,
            });
            entry.last_used = now;
            entry.slot.clone()
        };
        // Only callers of this very program wait here.
        let mut held = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(executable) = &*held {
            self.hits.fetch_add(1, Ordering::Relaxed);
            return Ok(executable.clone());
        }
        self.misses.fetch_add(1, Ordering::Relaxed);
        let compiled = compile();
        match &compiled {
            Ok(executable) => {
                *held = Some(executable.clone());
                drop(held);
                self.account(key, executable.byte_size());
            }
            Err(_) => {
                drop(held);
                self.entries().remove(key);
            }
        }
        compiled
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
