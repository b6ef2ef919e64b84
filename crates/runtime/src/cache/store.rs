//! The store of a cache: values, values in construction, and eviction.
//!
//! A key has a slot. The first caller that claims the key has the duty to fill the slot; later
//! callers wait for it, and callers of other keys proceed. A caller that fails removes the slot.
//! The waiting callers then claim the key again, and one of them fills the slot.

use std::hash::Hash;
use std::ops::Deref;
use std::sync::PoisonError;

use rustc_hash::FxHashMap;

use crate::background::{ASK_EVERY, Interrupt, interruption};
use crate::error::Result;
use crate::sync::{Arc, AtomicU64, Condvar, Mutex, MutexGuard, Ordering, Shared, SharedGuard};

/// The slot of one value.
struct Slot<V> {
    state: Mutex<State<V>>,
    changed: Condvar,
}

enum State<V> {
    /// The slot is new: the first caller makes the value.
    Empty,
    /// A caller is making the value.
    Claimed,
    Ready(V),
    /// The caller with the duty failed and removed the slot.
    Gone,
}

/// The state of a slot for a caller that claims it.
enum SlotClaim<V> {
    Ready(V),
    /// The caller must create the value.
    Make,
    Gone,
}

impl<V: Clone> Slot<V> {
    fn new() -> Self {
        Self { state: Mutex::new(State::Empty), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State<V>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Claims the value; waits if another caller is making it.
    fn claim(&self, interrupt: Option<&Interrupt<'_>>) -> Result<SlotClaim<V>> {
        let mut state = self.lock();
        loop {
            match &*state {
                State::Ready(value) => return Ok(SlotClaim::Ready(value.clone())),
                State::Gone => return Ok(SlotClaim::Gone),
                State::Empty => {
                    *state = State::Claimed;
                    return Ok(SlotClaim::Make);
                }
                State::Claimed => {}
            }
            let Some(interrupt) = interrupt else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let waited = self.changed.wait_timeout(state, ASK_EVERY);
            drop(waited.unwrap_or_else(PoisonError::into_inner));
            // `interrupt` may run the user's signal handlers, so the lock must not be held.
            if interrupt() {
                return Err(interruption());
            }
            state = self.lock();
        }
    }

    fn settle(&self, state: State<V>) {
        *self.lock() = state;
        self.changed.notify_all();
    }
}

/// A least-recently-used store of values with a limit in bytes.
pub(crate) struct Store<K, V> {
    entries: Shared<Entries<K, V>>,
    clock: AtomicU64,
    limit: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
    evictions: AtomicU64,
}

/// The entries of the store and the sum of their bytes.
struct Entries<K, V> {
    by_key: FxHashMap<K, Entry<V>>,
    bytes: usize,
}

impl<K: Eq + Hash, V> Entries<K, V> {
    fn new() -> Self {
        Self { by_key: FxHashMap::default(), bytes: 0 }
    }

    fn remove(&mut self, key: &K) -> Option<Entry<V>> {
        let entry = self.by_key.remove(key)?;
        self.bytes -= entry.bytes;
        Some(entry)
    }

    /// The entry of a key, if it still has this slot.
    fn own(&mut self, key: &K, slot: &Arc<Slot<V>>) -> Option<&mut Entry<V>> {
        self.by_key.get_mut(key).filter(|entry| Arc::ptr_eq(&entry.slot, slot))
    }
}

struct Entry<V> {
    slot: Arc<Slot<V>>,
    /// 0 while the value is being created.
    bytes: usize,
    last_used: Used,
}

/// The time of a value's last use, by the clock of the store. A user of the value sets it without
/// the lock of the store.
pub(crate) type Used = Arc<AtomicU64>;

/// A value from the store.
pub(crate) struct Found<V> {
    pub(crate) value: V,
    pub(crate) used: Used,
}

/// The result of a claim.
pub(crate) enum Claim<K: Clone + Eq + Hash, V: Clone, S: Deref<Target = Store<K, V>>> {
    Found(Found<V>),
    Make(Duty<K, V, S>),
}

/// The duty to fill a slot. Dropping it, also by a panic, removes the slot.
pub(crate) struct Duty<K: Clone + Eq + Hash, V: Clone, S: Deref<Target = Store<K, V>>> {
    store: S,
    key: K,
    slot: Arc<Slot<V>>,
    used: Used,
    /// The time of the claim.
    since: u64,
    settled: bool,
}

impl<K: Clone + Eq + Hash, V: Clone, S: Deref<Target = Store<K, V>>> Duty<K, V, S> {
    /// Fills the slot with a value of `bytes` bytes and wakes the callers that wait for it.
    pub(crate) fn finish(mut self, value: V, bytes: usize) -> Found<V> {
        self.settled = true;
        self.slot.settle(State::Ready(value.clone()));
        self.store.account(&self.key, &self.slot, bytes, self.since);
        Found { value, used: self.used.clone() }
    }
}

impl<K: Clone + Eq + Hash, V: Clone, S: Deref<Target = Store<K, V>>> Drop for Duty<K, V, S> {
    fn drop(&mut self) {
        if self.settled {
            return;
        }
        let mut entries = self.store.lock_entries();
        if entries.own(&self.key, &self.slot).is_some() {
            entries.remove(&self.key);
        }
        drop(entries);
        // Settle the slot last, because a caller that finds it gone claims the key again.
        self.slot.settle(State::Gone);
    }
}

/// Statistics of a cache.
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

impl<K: Clone + Eq + Hash, V: Clone> Store<K, V> {
    pub(crate) fn new(limit: u64) -> Self {
        Self {
            entries: Shared::new(Entries::new()),
            clock: AtomicU64::new(0),
            limit: AtomicU64::new(limit),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            evictions: AtomicU64::new(0),
        }
    }

    fn lock_entries(&self) -> SharedGuard<'_, Entries<K, V>> {
        self.entries.lock()
    }

    /// Returns the value of a key, after a wait if another caller is making it, or the duty to make
    /// it.
    ///
    /// # Errors
    /// Returns an error if the caller was interrupted.
    pub(crate) fn claim<S: Deref<Target = Self>>(
        this: S,
        key: &K,
        interrupt: Option<&Interrupt<'_>>,
    ) -> Result<Claim<K, V, S>> {
        let now = this.clock.fetch_add(1, Ordering::Relaxed) + 1;
        loop {
            let (slot, used) = this.slot(key, now);
            // Only callers of this key wait here.
            match slot.claim(interrupt)? {
                SlotClaim::Ready(value) => {
                    this.hits.fetch_add(1, Ordering::Relaxed);
                    return Ok(Claim::Found(Found { value, used }));
                }
                SlotClaim::Make => {
                    this.misses.fetch_add(1, Ordering::Relaxed);
                    let key = key.clone();
                    let duty = Duty { store: this, key, slot, used, since: now, settled: false };
                    return Ok(Claim::Make(duty));
                }
                SlotClaim::Gone => {}
            }
        }
    }

    fn slot(&self, key: &K, now: u64) -> (Arc<Slot<V>>, Used) {
        let mut entries = self.lock_entries();
        let entry = entries.by_key.entry(key.clone()).or_insert_with(|| Entry {
            slot: Arc::new(Slot::new()),
            bytes: 0,
            last_used: Arc::new(AtomicU64::new(now)),
        });
        entry.last_used.store(now, Ordering::Relaxed);
        (entry.slot.clone(), entry.last_used.clone())
    }

    /// Notes that a value is used now.
    pub(crate) fn touch(&self, used: &Used) {
        used.store(self.clock.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Records the size of a new value, and evicts the oldest values if the cache exceeds its
    /// limit. Values that were used since the new one was claimed stay: it may consist of them, and
    /// a large value and its parts would evict each other at each use.
    fn account(&self, key: &K, slot: &Arc<Slot<V>>, bytes: usize, since: u64) {
        let mut entries = self.lock_entries();
        // The entry may have been removed while the value was made.
        let Some(entry) = entries.own(key, slot) else { return };
        // A value of no size must be evictable too.
        entry.bytes = bytes.max(1);
        entries.bytes += bytes.max(1);
        let dropped = self.evict(&mut entries, since);
        drop(entries);
        // Dropping a value may take long, so the lock must not be held.
        drop(dropped);
    }

    /// Removes the least recently used values that were used before `since`, if the store exceeds
    /// its limit. It frees an additional eighth of the limit, so that the next scan of all values
    /// comes later.
    fn evict(&self, entries: &mut Entries<K, V>, since: u64) -> Vec<Entry<V>> {
        let limit = usize::try_from(self.limit()).unwrap_or(usize::MAX);
        let mut dropped = Vec::new();
        if entries.bytes <= limit {
            return dropped;
        }
        let ready = entries.by_key.iter().filter(|(_, entry)| entry.bytes > 0);
        let mut by_age: Vec<(u64, K)> = ready
            .map(|(key, entry)| (entry.last_used.load(Ordering::Relaxed), key.clone()))
            .filter(|(used, _)| *used < since)
            .collect();
        by_age.sort_unstable_by_key(|(used, _)| *used);
        for (_, key) in by_age {
            if entries.bytes <= limit - limit / 8 {
                break;
            }
            dropped.extend(entries.remove(&key));
            self.evictions.fetch_add(1, Ordering::Relaxed);
        }
        dropped
    }

    /// Returns the limit in bytes.
    pub(crate) fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    /// Sets the limit in bytes and evicts values beyond it. The newest value stays until the next one.
    pub(crate) fn set_limit(&self, bytes: u64) {
        self.limit.store(bytes, Ordering::Relaxed);
        let mut entries = self.lock_entries();
        let dropped = self.evict(&mut entries, u64::MAX);
        drop(entries);
        drop(dropped);
    }

    /// Removes all slots without a value. After a fork, the threads that would fill them do not
    /// exist.
    pub(crate) fn forget_makers(&self) {
        let mut entries = self.lock_entries();
        let is_ready = |entry: &Entry<V>| {
            let state = entry.slot.state.try_lock();
            state.is_ok_and(|state| matches!(*state, State::Ready(_)))
        };
        let others = entries.by_key.iter().filter(|(_, entry)| !is_ready(entry));
        let others: Vec<K> = others.map(|(key, _)| key.clone()).collect();
        for key in &others {
            entries.remove(key);
        }
    }

    /// Forgets every value.
    pub(crate) fn clear(&self) {
        let dropped = std::mem::replace(&mut *self.lock_entries(), Entries::new());
        drop(dropped);
    }

    pub(crate) fn report(&self) -> CacheReport {
        let entries = self.lock_entries();
        CacheReport {
            entries: entries.by_key.len(),
            bytes: entries.bytes,
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
            evictions: self.evictions.load(Ordering::Relaxed),
        }
    }
}
