//! The calls of hooks.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;

use crate::calls::{Calls, Reply, Room};
use crate::model;

type Run = Arc<Calls<u32, u32, String, Kept>>;

/// A counted value that is kept until a thread waits for the program.
struct Kept(Arc<AtomicUsize>);

impl Kept {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count.clone())
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn run() -> Run {
    Arc::new(Calls::new(Room { calls: 1, bytes: 10 }))
}

/// Takes calls until the program is over.
fn serve(run: &Run) -> Vec<u32> {
    std::iter::from_fn(|| run.next(Some(&|| false)).unwrap()).collect()
}

#[test]
fn calls_come_in_order_and_the_end_after_them() {
    model(3, || {
        let run = run();
        let program = thread::spawn({
            let run = run.clone();
            move || {
                // The queue holds one call, so the program waits for the receiver.
                (1..=3).for_each(|call| run.push(call, 4).unwrap());
                run.record_start(Ok(9));
                run.record_end(Ok(()));
            }
        });
        assert_eq!(serve(&run), [1, 2, 3]);
        assert_eq!(run.outcome(), Some((Ok(9), Ok(()))));
        assert_eq!(run.outcome(), None);
        program.join().unwrap();
    });
}

#[test]
fn the_start_and_the_end_are_told_by_different_threads() {
    model(3, || {
        let run = run();
        let caller = thread::spawn({
            let run = run.clone();
            move || run.record_start(Ok(9))
        });
        let plugin = thread::spawn({
            let run = run.clone();
            move || {
                run.push(1, 4).unwrap();
                run.record_end(Err("it fails".into()));
            }
        });
        assert_eq!(serve(&run), [1]);
        assert_eq!(run.outcome(), Some((Ok(9), Err("it fails".into()))));
        caller.join().unwrap();
        plugin.join().unwrap();
    });
}

#[test]
fn a_program_that_nobody_serves_any_more_goes_on() {
    model(3, || {
        let run = run();
        let program = thread::spawn({
            let run = run.clone();
            move || {
                let pushed: Vec<bool> = (1..=3).map(|call| run.push(call, 4).is_ok()).collect();
                // After one rejected call, all later calls are rejected.
                assert!(pushed.is_sorted_by(|before, after| before >= after));
                run.record_start(Ok(9));
                run.record_end(Ok(()));
            }
        });
        assert_eq!(run.next(None).unwrap(), Some(1));
        run.stop();
        assert_eq!(serve(&run), []);
        program.join().unwrap();
    });
}

#[test]
fn nobody_waits_for_room_while_a_hook_runs_a_program() {
    model(3, || {
        let run = run();
        let program = thread::spawn({
            let run = run.clone();
            move || (1..=3).for_each(|call| run.push(call, 4).unwrap())
        });
        assert_eq!(run.next(None).unwrap(), Some(1));
        // The hook waits for the thread that pushes.
        run.begin_nested();
        program.join().unwrap();
        run.end_nested();
        run.record_start(Ok(9));
        run.record_end(Ok(()));
        assert_eq!(serve(&run), [2, 3]);
    });
}

#[test]
fn what_is_kept_for_a_program_is_let_go_when_it_is_over() {
    for fails in [false, true] {
        model(3, move || {
            let (run, count) = (run(), Arc::new(AtomicUsize::new(0)));
            let program = thread::spawn({
                let run = run.clone();
                move || {
                    if fails {
                        run.record_start(Err("there is no such device".into()));
                    } else {
                        run.record_start(Ok(9));
                        run.record_end(Ok(()));
                    }
                }
            });
            // Twice, as after two interrupted runs.
            run.leave_behind(|| Kept::new(&count));
            run.leave_behind(|| Kept::new(&count));
            program.join().unwrap();
            assert_eq!(count.load(Ordering::SeqCst), 0);
        });
    }
}

/// A call whose thread waits for a reply.
struct Asking(Arc<Reply<u32>>);

impl Drop for Asking {
    fn drop(&mut self) {
        self.0.set_reply(None);
    }
}

#[test]
fn who_asks_is_answered_whatever_becomes_of_the_call() {
    model(3, || {
        let run: Arc<Calls<Asking, u32, String, Kept>> =
            Arc::new(Calls::new(Room { calls: 1, bytes: 10 }));
        let program = thread::spawn({
            let run = run.clone();
            move || {
                let answers: Vec<Option<u32>> = (0..2)
                    .map(|_| {
                        let reply = Arc::new(Reply::new());
                        run.push(Asking(reply.clone()), 4).ok().and_then(|()| reply.take())
                    })
                    .collect();
                run.record_start(Ok(9));
                run.record_end(Ok(()));
                answers
            }
        });
        let first = run.next(None).unwrap().unwrap();
        first.0.set_reply(Some(5));
        drop(first);
        // The second call is dropped from the queue, or comes too late.
        run.stop();
        while run.next(None).unwrap().is_some() {}
        assert_eq!(program.join().unwrap(), [Some(5), None]);
    });
}
