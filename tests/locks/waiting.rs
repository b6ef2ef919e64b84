//! Models of waits for an event that occurs once, and for the end of all work.

use std::task::{Context, Wake, Waker};

use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

use crate::count::Count;
use crate::model;
use crate::signal::Signal;

/// A task of an executor: whether it has been woken since it waited last.
pub(crate) struct Task {
    woken: Mutex<bool>,
    changed: Condvar,
}

impl Task {
    pub(crate) fn new() -> std::sync::Arc<Self> {
        std::sync::Arc::new(Self { woken: Mutex::new(false), changed: Condvar::new() })
    }

    pub(crate) fn wait(&self) {
        let mut woken = self.woken.lock().unwrap();
        while !*woken {
            woken = self.changed.wait(woken).unwrap();
        }
        *woken = false;
    }
}

impl Wake for Task {
    fn wake(self: std::sync::Arc<Self>) {
        *self.woken.lock().unwrap() = true;
        self.changed.notify_all();
    }
}

#[test]
fn last_polling_task_is_woken() {
    model(3, || {
        let signal = Arc::new(Signal::default());
        let notifier = thread::spawn({
            let signal = signal.clone();
            move || signal.set()
        });
        let (first, last) = (Task::new(), Task::new());
        let (wake_first, wake_last) = (Waker::from(first), Waker::from(last.clone()));
        let known = signal.poll(&Context::from_waker(&wake_first));
        if !signal.poll(&Context::from_waker(&wake_last)) {
            assert!(!known, "a notified signal stays notified");
            last.wait();
            assert!(signal.poll(&Context::from_waker(&wake_last)));
        }
        notifier.join().unwrap();
    });
}

#[test]
fn waits_end_with_the_last_unit_of_work() {
    model(3, || {
        let (count, finished) = (Arc::new(Count::default()), Arc::new(Mutex::new(0)));
        let others = [0, 1].map(|_| {
            count.begin();
            let (count, finished) = (count.clone(), finished.clone());
            thread::spawn(move || {
                *finished.lock().unwrap() += 1;
                count.end();
            })
        });
        count.wait_until(None);
        assert_eq!(*finished.lock().unwrap(), 2);
        for other in others {
            other.join().unwrap();
        }
        assert_eq!(count.get(), 0);
    });
}
