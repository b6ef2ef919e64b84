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
struct Made {
    at_work: Arc<AtomicUsize>,
    times: Arc<AtomicUsize>,
}

impl Made {
    fn new() -> Self {
        Self { at_work: Arc::new(AtomicUsize::new(0)), times: Arc::new(AtomicUsize::new(0)) }
    }

    fn times(&self) -> usize {
        self.times.load(Ordering::SeqCst)
    }

    fn begin(&self) {
        let others = self.at_work.fetch_add(1, Ordering::SeqCst);
        assert_eq!(others, 0, "two make the same at once");
        self.times.fetch_add(1, Ordering::SeqCst);
    }

    fn end(&self) {
        self.at_work.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Requests a value; the thread that must create it succeeds or fails.
fn ask(cache: &Cache, key: u8, made: &Made, fails: bool) -> Option<u32> {
    match Store::claim(cache.clone(), &key, Some(&|| false)).unwrap() {
        Claim::Found(found) => Some(found.value),
        Claim::Make(duty) => {
            made.begin();
            thread::yield_now();
            made.end();
            (!fails).then(|| duty.finish(u32::from(key), 10).value)
        }
    }
}

#[test]
fn a_value_is_made_once_and_all_get_it() {
    model(3, || {
        let (cache, made) = (Arc::new(Store::new(1000)), Made::new());
        let others = [0, 1].map(|_| {
            let (cache, made) = (cache.clone(), made.clone());
            thread::spawn(move || ask(&cache, 7, &made, false))
        });
        assert_eq!(ask(&cache, 7, &made, false), Some(7));
        for other in others {
            assert_eq!(other.join().unwrap(), Some(7));
        }
        assert_eq!(made.times(), 1);
        let report = CacheReport { entries: 1, bytes: 10, hits: 2, misses: 1, evictions: 0 };
        assert_eq!(cache.report(), report);
    });
}

#[test]
fn who_waits_for_one_that_fails_takes_over_and_what_it_makes_is_held() {
    model(2, || {
        let (cache, made) = (Arc::new(Store::new(1000)), Made::new());
        let others = [true, false].map(|fails| {
            let (cache, made) = (cache.clone(), made.clone());
            thread::spawn(move || ask(&cache, 7, &made, fails))
        });
        assert_eq!(ask(&cache, 7, &made, false), Some(7));
        let [failing, other] = others.map(|other| other.join().unwrap());
        assert_eq!(other, Some(7));
        // A created value is not created again.
        assert_eq!(made.times(), 1 + usize::from(failing.is_none()));
        let report = cache.report();
        assert_eq!((report.entries, report.bytes), (1, 10));
        assert_eq!(ask(&cache, 7, &made, true), Some(7));
    });
}

#[test]
fn who_is_interrupted_leaves_and_others_do_not_notice() {
    model(2, || {
        let (cache, made) = (Arc::new(Store::new(1000)), Made::new());
        let others = [true, false].map(|leaves| {
            let (cache, made) = (cache.clone(), made.clone());
            thread::spawn(move || {
                if !leaves {
                    return ask(&cache, 7, &made, false);
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
        assert_eq!(ask(&cache, 7, &made, false), Some(7));
        let [leaving, other] = others.map(|other| other.join().unwrap());
        assert_eq!((leaving.unwrap_or(7), other), (7, Some(7)));
        assert!(made.times() <= 1);
        assert_eq!((cache.report().entries, cache.report().bytes), (1, 10));
    });
}

#[test]
fn a_panic_leaves_the_place_to_others() {
    model(2, || {
        let (cache, made) = (Arc::new(Store::new(1000)), Made::new());
        let other = {
            let (cache, made) = (cache.clone(), made.clone());
            thread::spawn(move || ask(&cache, 7, &made, false))
        };
        let claimed = catch_unwind(AssertUnwindSafe(|| {
            match Store::claim(cache.clone(), &7, None).unwrap() {
                Claim::Found(_) => {}
                // Unwinds like a panic, but without printing a message for each interleaving.
                Claim::Make(_duty) => std::panic::resume_unwind(Box::new(())),
            }
        }));
        assert_eq!(other.join().unwrap(), Some(7));
        assert!(claimed.is_ok() || made.times() == 1);
        assert_eq!((cache.report().entries, cache.report().bytes), (1, 10));
    });
}

#[test]
fn bytes_are_those_of_what_is_held_whatever_is_forgotten_meanwhile() {
    for fails in [false, true] {
        model(2, move || {
            let (cache, made) = (Arc::new(Store::new(1000)), Made::new());
            let others = [fails, false].map(|fails| {
                // Two threads may create a value at the same time after the cache was cleared.
                let cache = cache.clone();
                thread::spawn(move || ask(&cache, 7, &Made::new(), fails))
            });
            cache.clear();
            ask(&cache, 8, &made, false);
            for other in others {
                other.join().unwrap();
            }
            let report = cache.report();
            assert_eq!(report.bytes, 10 * report.entries);
            assert!(report.entries <= 2);
            // The cache is consistent: no thread waits for a thread that has ended.
            assert_eq!(ask(&cache, 7, &made, false), Some(7));
            assert_eq!(cache.report().bytes, 20);
        });
    }
}

#[test]
fn what_is_being_made_is_not_dropped() {
    model(2, || {
        // The limit allows one value of ten bytes.
        let cache: Cache = Arc::new(Store::new(15));
        let Claim::Make(duty) = Store::claim(cache.clone(), &2, None).unwrap() else {
            panic!("nobody has made it");
        };
        let others = thread::spawn({
            let cache = cache.clone();
            move || [1, 3].map(|key| ask(&cache, key, &Made::new(), false))
        });
        let waiting = thread::spawn({
            let cache = cache.clone();
            move || match Store::claim(cache, &2, None).unwrap() {
                Claim::Found(found) => found.value,
                Claim::Make(_) => panic!("it is made twice"),
            }
        });
        // The other two values exceed the limit before this thread ends, and this value is older.
        assert_eq!(others.join().unwrap(), [Some(1), Some(3)]);
        assert_eq!(duty.finish(2, 10).value, 2);
        assert_eq!(waiting.join().unwrap(), 2);
        // Values used since the claim of this one stay until the next value is made.
        assert!([10, 20].contains(&cache.report().bytes));
        assert_eq!(ask(&cache, 4, &Made::new(), false), Some(4));
        assert_eq!(cache.report().bytes, 10);
    });
}

#[test]
fn what_is_too_much_is_dropped_and_what_is_being_made_is_not() {
    model(2, || {
        // The limit allows one value of ten bytes.
        let (cache, made) = (Arc::new(Store::new(15)), Made::new());
        ask(&cache, 1, &made, false);
        let others = [2, 3].map(|key| {
            let cache = cache.clone();
            thread::spawn(move || {
                assert_eq!(ask(&cache, key, &Made::new(), false), Some(u32::from(key)));
            })
        });
        cache.set_limit(14);
        for other in others {
            other.join().unwrap();
        }
        // Two values that were made at the same time stay until the next value is made.
        assert!([10, 20].contains(&cache.report().bytes));
        assert_eq!(ask(&cache, 4, &made, false), Some(4));
        let report = cache.report();
        assert_eq!((report.entries, report.bytes, report.evictions), (1, 10, 3));
    });
}

#[test]
fn what_is_being_made_is_forgotten_and_the_rest_stays() {
    model(1, || {
        let (cache, made) = (Arc::new(Store::new(1000)), Made::new());
        assert_eq!(ask(&cache, 1, &made, false), Some(1));
        let Claim::Make(lost) = Store::claim(cache.clone(), &2, None).unwrap() else {
            panic!("nobody has made it")
        };
        cache.forget_makers();
        // The request does not wait for another thread.
        assert_eq!(ask(&cache, 2, &made, false), Some(2));
        assert_eq!(ask(&cache, 1, &made, false), Some(1));
        assert_eq!(made.times(), 2);
        lost.finish(9, 100);
        let report = CacheReport { entries: 2, bytes: 20, hits: 1, misses: 3, evictions: 0 };
        assert_eq!(cache.report(), report);
    });
}
