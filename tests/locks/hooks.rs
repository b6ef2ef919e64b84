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
fn calls_arrive_in_order_before_the_end() {
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
fn start_and_end_come_from_different_threads() {
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
fn programs_continue_after_their_server_stops() {
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
fn full_queues_do_not_block_during_nested_runs() {
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
fn kept_values_are_dropped_at_the_end() {
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
            run.keep_until_end(|| Kept::new(&count));
            run.keep_until_end(|| Kept::new(&count));
            program.join().unwrap();
            assert_eq!(count.load(Ordering::SeqCst), 0);
        });
    }
}

/// A call whose thread waits for a reply.
struct CallWithReply(Arc<Reply<u32>>);

impl Drop for CallWithReply {
    fn drop(&mut self) {
        self.0.set_reply(None);
    }
}

#[test]
fn dropped_calls_still_receive_a_reply() {
    model(3, || {
        let run: Arc<Calls<CallWithReply, u32, String, Kept>> =
            Arc::new(Calls::new(Room { calls: 1, bytes: 10 }));
        let program = thread::spawn({
            let run = run.clone();
            move || {
                let answers: Vec<Option<u32>> = (0..2)
                    .map(|_| {
                        let reply = Arc::new(Reply::new());
                        run.push(CallWithReply(reply.clone()), 4).ok().and_then(|()| reply.take())
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
