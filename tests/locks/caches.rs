//! The cache of executables.

use std::panic::{AssertUnwindSafe, catch_unwind};

use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;

use crate::model;
use crate::store::{CacheReport, Claim, Store};

type Cache = Arc<Store<u8, u32>>;

/// Counts creations of values: the total, and the number of concurrent ones.
#[derive(Clone)]
struct Creations {
    concurrent: Arc<AtomicUsize>,
    total: Arc<AtomicUsize>,
}

impl Creations {
    fn new() -> Self {
        Self { concurrent: Arc::new(AtomicUsize::new(0)), total: Arc::new(AtomicUsize::new(0)) }
    }

    fn total_count(&self) -> usize {
        self.total.load(Ordering::SeqCst)
    }

    fn start_creation(&self) {
        let others = self.concurrent.fetch_add(1, Ordering::SeqCst);
        assert_eq!(others, 0, "two threads create one value at the same time");
        self.total.fetch_add(1, Ordering::SeqCst);
    }

    fn finish_creation(&self) {
        self.concurrent.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Requests a value; the thread that must create it succeeds or fails.
fn request(cache: &Cache, key: u8, creations: &Creations, fails: bool) -> Option<u32> {
    match Store::claim(cache.clone(), &key, Some(&|| false)).unwrap() {
        Claim::Found(found) => Some(found.value),
        Claim::Make(duty) => {
            creations.start_creation();
            thread::yield_now();
            creations.finish_creation();
            (!fails).then(|| duty.finish(u32::from(key), 10).value)
        }
    }
}

#[test]
fn values_are_created_once_and_shared() {
    model(3, || {
        let (cache, creations) = (Arc::new(Store::new(1000)), Creations::new());
        let others = [0, 1].map(|_| {
            let (cache, creations) = (cache.clone(), creations.clone());
            thread::spawn(move || request(&cache, 7, &creations, false))
        });
        assert_eq!(request(&cache, 7, &creations, false), Some(7));
        for other in others {
            assert_eq!(other.join().unwrap(), Some(7));
        }
        assert_eq!(creations.total_count(), 1);
        let report = CacheReport { entries: 1, bytes: 10, hits: 2, misses: 1, evictions: 0 };
        assert_eq!(cache.report(), report);
    });
}

#[test]
fn waiters_retry_after_a_failure() {
    model(2, || {
        let (cache, creations) = (Arc::new(Store::new(1000)), Creations::new());
        let others = [true, false].map(|fails| {
            let (cache, creations) = (cache.clone(), creations.clone());
            thread::spawn(move || request(&cache, 7, &creations, fails))
        });
        assert_eq!(request(&cache, 7, &creations, false), Some(7));
        let [failing, other] = others.map(|other| other.join().unwrap());
        assert_eq!(other, Some(7));
        // A created value is not created again.
        assert_eq!(creations.total_count(), 1 + usize::from(failing.is_none()));
        let report = cache.report();
        assert_eq!((report.entries, report.bytes), (1, 10));
        assert_eq!(request(&cache, 7, &creations, true), Some(7));
    });
}

#[test]
fn interrupted_waiters_do_not_affect_others() {
    model(2, || {
        let (cache, creations) = (Arc::new(Store::new(1000)), Creations::new());
        let others = [true, false].map(|leaves| {
            let (cache, creations) = (cache.clone(), creations.clone());
            thread::spawn(move || {
                if !leaves {
                    return request(&cache, 7, &creations, false);
                }
                match Store::claim(cache, &7, Some(&|| true)) {
                    Ok(Claim::Found(found)) => Some(found.value),
                    Ok(Claim::Make(duty)) => Some(duty.finish(7, 10).value),
                    Err(error) => {
                        assert_eq!(error.to_string(), "interrupted");
                        None
                    }
                }
            })
        });
        assert_eq!(request(&cache, 7, &creations, false), Some(7));
        let [leaving, other] = others.map(|other| other.join().unwrap());
        assert_eq!((leaving.unwrap_or(7), other), (7, Some(7)));
        assert!(creations.total_count() <= 1);
        assert_eq!((cache.report().entries, cache.report().bytes), (1, 10));
    });
}

#[test]
fn waiters_retry_after_a_panic() {
    model(2, || {
        let (cache, creations) = (Arc::new(Store::new(1000)), Creations::new());
        let other = {
            let (cache, creations) = (cache.clone(), creations.clone());
            thread::spawn(move || request(&cache, 7, &creations, false))
        };
        let claimed = catch_unwind(AssertUnwindSafe(|| {
            match Store::claim(cache.clone(), &7, None).unwrap() {
                Claim::Found(_) => {}
                // Unwinds like a panic, but without printing a message for each interleaving.
                Claim::Make(_duty) => std::panic::resume_unwind(Box::new(())),
            }
        }));
        assert_eq!(other.join().unwrap(), Some(7));
        assert!(claimed.is_ok() || creations.total_count() == 1);
        assert_eq!((cache.report().entries, cache.report().bytes), (1, 10));
    });
}

#[test]
fn reported_bytes_match_entries_after_clear() {
    for fails in [false, true] {
        model(2, move || {
            let (cache, creations) = (Arc::new(Store::new(1000)), Creations::new());
            let others = [fails, false].map(|fails| {
                // Two threads may create a value at the same time after the cache was cleared.
                let cache = cache.clone();
                thread::spawn(move || request(&cache, 7, &Creations::new(), fails))
            });
            cache.clear();
            request(&cache, 8, &creations, false);
            for other in others {
                other.join().unwrap();
            }
            let report = cache.report();
            assert_eq!(report.bytes, 10 * report.entries);
            assert!(report.entries <= 2);
            // The cache is consistent: no thread waits for a thread that has ended.
            assert_eq!(request(&cache, 7, &creations, false), Some(7));
            assert_eq!(cache.report().bytes, 20);
        });
    }
}

#[test]
fn pending_values_are_not_evicted() {
    model(2, || {
        // The limit allows one value of ten bytes.
        let cache: Cache = Arc::new(Store::new(15));
        let Claim::Make(duty) = Store::claim(cache.clone(), &2, None).unwrap() else {
            panic!("the value has not been created");
        };
        let others = thread::spawn({
            let cache = cache.clone();
            move || [1, 3].map(|key| request(&cache, key, &Creations::new(), false))
        });
        let waiting = thread::spawn({
            let cache = cache.clone();
            move || match Store::claim(cache, &2, None).unwrap() {
                Claim::Found(found) => found.value,
                Claim::Make(_) => panic!("the value was created twice"),
            }
        });
        // The other two values exceed the limit before this thread ends, and this value is older.
        assert_eq!(others.join().unwrap(), [Some(1), Some(3)]);
        assert_eq!(duty.finish(2, 10).value, 2);
        assert_eq!(waiting.join().unwrap(), 2);
        // Values used since the claim of this one stay until the next value is made.
        assert!([10, 20].contains(&cache.report().bytes));
        assert_eq!(request(&cache, 4, &Creations::new(), false), Some(4));
        assert_eq!(cache.report().bytes, 10);
    });
}

#[test]
fn lower_limits_evict_only_finished_values() {
    model(2, || {
        // The limit allows one value of ten bytes.
        let (cache, creations) = (Arc::new(Store::new(15)), Creations::new());
        request(&cache, 1, &creations, false);
        let others = [2, 3].map(|key| {
            let cache = cache.clone();
            thread::spawn(move || {
                assert_eq!(request(&cache, key, &Creations::new(), false), Some(u32::from(key)));
            })
        });
        cache.set_limit(14);
        for other in others {
            other.join().unwrap();
        }
        // Two values that were made at the same time stay until the next value is made.
        assert!([10, 20].contains(&cache.report().bytes));
        assert_eq!(request(&cache, 4, &creations, false), Some(4));
        let report = cache.report();
        assert_eq!((report.entries, report.bytes, report.evictions), (1, 10, 3));
    });
}

#[test]
fn forget_makers_keeps_finished_values() {
    model(1, || {
        let (cache, creations) = (Arc::new(Store::new(1000)), Creations::new());
        assert_eq!(request(&cache, 1, &creations, false), Some(1));
        let Claim::Make(lost) = Store::claim(cache.clone(), &2, None).unwrap() else {
            panic!("the value has not been created")
        };
        cache.forget_makers();
        // The request does not wait for another thread.
        assert_eq!(request(&cache, 2, &creations, false), Some(2));
        assert_eq!(request(&cache, 1, &creations, false), Some(1));
        assert_eq!(creations.total_count(), 2);
        lost.finish(9, 100);
        let report = CacheReport { entries: 2, bytes: 20, hits: 1, misses: 3, evictions: 0 };
        assert_eq!(cache.report(), report);
    });
}
