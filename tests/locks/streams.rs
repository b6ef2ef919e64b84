//! Streams.

use std::task::{Context, Poll, Waker};

use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;

use crate::error::Error;
use crate::model;
use crate::queue::{Capacity, RawStream, StreamError, Wait};
use crate::waiting::Task;

const ONE: Capacity = Capacity::InFlight(1);

/// A wait without a deadline that checks for interrupts, which never occur.
const NO_DEADLINE: Wait<'_> = Wait { until: None, interrupt: Some(&|| false) };

fn send(stream: &RawStream, number: u32) -> Result<(), Error> {
    stream.send(vec![number], ONE, &NO_DEADLINE)
}

/// The thread of a stream: each result is ten times the chunk, the state their sum.
fn run_steps(stream: &RawStream) {
    let mut sum = 0;
    while let Some((index, chunk)) = stream.next_chunk() {
        if chunk[0] == 13 {
            return stream.end(Err(std::sync::Arc::new(Error::Usage("thirteen".into()))));
        }
        sum += chunk[0];
        stream.record_result(index, vec![10 * chunk[0]]);
    }
    stream.end(Ok(vec![sum]));
}

/// A stream with its thread, as another of the model.
fn start_stream() -> (Arc<RawStream>, thread::JoinHandle<()>) {
    let stream = Arc::new(RawStream::new(None, false));
    let worker_stream = stream.clone();
    (stream, thread::spawn(move || run_steps(&worker_stream)))
}

/// Receives until the stream has ended.
fn results(stream: &RawStream) -> Vec<Result<Vec<u32>, StreamError>> {
    std::iter::from_fn(|| stream.receive(true, &NO_DEADLINE).unwrap()).collect()
}

#[test]
fn sender_and_receiver_wait_for_each_other() {
    model(2, || {
        let (stream, thread) = start_stream();
        let sender = thread::spawn({
            let stream = stream.clone();
            move || {
                // The queue has room for one chunk.
                (1..=2).for_each(|number| send(&stream, number).unwrap());
                stream.close();
            }
        });
        let received: Vec<u32> =
            results(&stream).into_iter().map(|result| result.unwrap()[0]).collect();
        assert_eq!(received, [10, 20]);
        assert_eq!(stream.state(&Wait::default()).unwrap(), [3]);
        sender.join().unwrap();
        thread.join().unwrap();
    });
}

#[test]
fn receivers_share_results_without_duplicates() {
    model(2, || {
        let (stream, thread) = start_stream();
        let other = thread::spawn({
            let stream = stream.clone();
            move || results(&stream)
        });
        stream.send(vec![1], Capacity::Waiting(2), &Wait::default()).unwrap();
        stream.send(vec![2], Capacity::Waiting(2), &Wait::default()).unwrap();
        stream.close();
        let mut received: Vec<u32> = results(&stream)
            .into_iter()
            .chain(other.join().unwrap())
            .map(|result| result.unwrap()[0])
            .collect();
        received.sort_unstable();
        assert_eq!(received, [10, 20]);
        thread.join().unwrap();
    });
}

#[test]
fn failing_steps_are_reported_to_all_waiters() {
    model(2, || {
        let (stream, thread) = start_stream();
        let sender = thread::spawn({
            let stream = stream.clone();
            move || {
                // The second chunk waits for room in the queue, and may be rejected.
                send(&stream, 13).unwrap();
                send(&stream, 1).is_err()
            }
        });
        let first = stream.receive(true, &Wait::default()).unwrap();
        assert!(matches!(first, Some(Err(StreamError::Failed(_)))), "{first:?}");
        assert!(stream.state(&Wait::default()).is_err());
        assert!(sender.join().unwrap());
        assert!(results(&stream).is_empty());
        thread.join().unwrap();
    });
}

#[test]
fn cancelling_wakes_all_waiters() {
    for abandons in [false, true] {
        model(2, move || {
            let (stream, thread) = start_stream();
            let other = thread::spawn({
                let stream = stream.clone();
                move || {
                    let sent = send(&stream, 1).is_ok();
                    (sent, results(&stream))
                }
            });
            if abandons {
                stream.abandon()
            } else {
                stream.cancel()
            }
            let (sent, results) = other.join().unwrap();
            // The receiver got a result, an error or nothing, and the stream has ended.
            assert!(results.len() <= usize::from(sent), "{results:?}");
            assert!(abandons || results.len() == usize::from(sent), "{results:?}");
            assert!(matches!(
                stream.state(&Wait::default()),
                Err(Error::Stream(StreamError::Cancelled))
            ));
            thread.join().unwrap();
            assert!(stream.wait_for_end(&Wait::default()));
        });
    }
}

#[test]
fn deferred_receives_are_notified_once() {
    model(2, || {
        let (stream, thread) = start_stream();
        let notified = Arc::new(AtomicUsize::new(0));
        send(&stream, 1).unwrap();
        let canceller = thread::spawn({
            let stream = stream.clone();
            move || stream.cancel()
        });
        let count = notified.clone();
        let deferred = move |_| {
            count.fetch_add(1, Ordering::SeqCst);
        };
        stream.receive_deferred(Box::new(deferred)).unwrap();
        canceller.join().unwrap();
        thread.join().unwrap();
        assert_eq!(notified.load(Ordering::SeqCst), 1);
    });
}

#[test]
fn polling_tasks_are_woken_for_results() {
    model(2, || {
        let (stream, thread) = start_stream();
        let task = Task::new();
        let waker = Waker::from(task.clone());
        let sender = thread::spawn({
            let stream = stream.clone();
            move || {
                send(&stream, 1).unwrap();
                stream.close();
            }
        });
        let mut received = Vec::new();
        loop {
            match stream.poll(true, &mut Context::from_waker(&waker)) {
                Poll::Ready(None) => break,
                Poll::Ready(Some(result)) => received.push(result.unwrap()[0]),
                // The wait would not end if the stream did not wake the task.
                Poll::Pending => task.wait(),
            }
        }
        assert_eq!(received, [10]);
        sender.join().unwrap();
        thread.join().unwrap();
    });
}
