//! Streams, on every available compiler.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use crate::common::{compilers, numbers};
use nxla::stream::stream_with;
use nxla::{DType, Error, Expr, Options, Stream, Tensor, TensorType, hook, jit, stream};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

fn scalar() -> TensorType {
    TensorType::scalar(DType::S32)
}

fn totals(options: &Options) -> Stream<Expr, Expr, Expr> {
    stream_with(|x: Expr, total: Expr| (total.clone(), total + x), scalar(), 0, options).unwrap()
}

#[test]
fn streams_return_results_in_order() {
    for compiler in compilers() {
        let mut totals = totals(&Options::new().compiler(*compiler));
        (1..=5).for_each(|x| totals.send(x).unwrap());
        let error = totals.done().unwrap_err();
        assert_eq!(error.to_string(), "stream: 5 results have not been received");
        let received: Vec<f64> = (0..5).map(|_| numbers(&totals.recv().unwrap())[0]).collect();
        assert_eq!(received, [0.0, 1.0, 3.0, 6.0, 10.0], "{compiler}");
        let error = totals.recv().unwrap_err();
        assert_eq!(error.to_string(), "stream: all results have been received");
        let state = totals.done().unwrap();
        assert_eq!(numbers(&state), [15.0]);
        // The state remains on its device.
        assert_eq!(!state.device().is_host(), *compiler == "xla");
        assert_eq!(numbers(&totals.done().unwrap()), [15.0]);
        let error = totals.send(1).unwrap_err();
        assert_eq!(error.to_string(), "stream: must not be used after done");
    }
}

#[test]
fn chunks_may_have_additional_axis_names() {
    let step = |x: Expr, total: Expr| (x.sum(), total + x.sum());
    let ty = TensorType::new(DType::S32, [2]);
    for compiler in compilers() {
        let mut sums = stream_with(step, &ty, 0, &Options::new().compiler(*compiler)).unwrap();
        sums.send(Tensor::from([1, 2]).with_names(["item"]).unwrap()).unwrap();
        assert_eq!(numbers(&sums.recv().unwrap()), [3.0], "{compiler}");
        let error = sums.send(Tensor::from([1, 2, 3])).unwrap_err().to_string();
        assert_eq!(error, "stream: chunk: must be s32[2]; got s32[3]");
    }
}

#[test]
fn containers_and_large_captured_tensors() {
    let table = Tensor::iota([8192], None, DType::F32).unwrap();
    let step = |(index, scale): (Expr, Expr), state: Vec<Expr>| {
        let element = Expr::of(&table).at_axis(&index, 0) * scale;
        let state: Vec<Expr> = state.into_iter().map(|x| x + &element).collect();
        ([element, state[0].clone()], state)
    };
    let chunk = (scalar(), TensorType::new(DType::F32, [2]));
    for compiler in compilers() {
        let zeros = Tensor::zeros([2], DType::F32).unwrap();
        let options = Options::new().compiler(*compiler);
        let mut stream = stream_with(step, &chunk, vec![&zeros, &zeros], &options).unwrap();
        let scale = Tensor::from(vec![1.0f32, 2.0]);
        let chunks = [10, 20, 30].map(|index| (index, scale.clone()));
        let last = stream.over(chunks).last().unwrap().unwrap();
        assert_eq!(numbers(&last[0]), [30.0, 60.0]);
        assert_eq!(numbers(&last[1]), [60.0, 120.0]);
        assert_eq!(stream.done().unwrap().len(), 2);
    }
}

#[test]
fn full_streams_are_errors_or_block_senders() {
    let mut alone = totals(&Options::new()).capacity(2);
    alone.send(1).unwrap();
    alone.send(2).unwrap();
    let error = alone.send(3).unwrap_err().to_string();
    assert!(error.contains("the buffer is full with 2 results"), "{error}");
    alone.recv().unwrap();
    alone.send(3).unwrap();

    let (sender, mut receiver) = totals(&Options::new()).capacity(1).split();
    sender.send(1).unwrap();
    assert!(sender.try_send(2).is_err());
    let sends = thread::spawn(move || (2..=200).map(|x| sender.send(x)).all(|sent| sent.is_ok()));
    thread::sleep(Duration::from_millis(20));
    let received: Vec<f64> = receiver.by_ref().map(|y| numbers(&y.unwrap())[0]).collect();
    assert!(sends.join().unwrap());
    assert_eq!(received.len(), 200);
    assert_eq!(numbers(&receiver.done().unwrap()), [20_100.0]);
}

#[test]
fn invalid_steps_are_errors_before_they_run() {
    let grows = stream(|x: Expr, total: Expr| (x.clone(), total + x * 0.5), scalar(), 0);
    let error = grows.err().unwrap();
    assert_eq!(
        error.to_string(),
        "stream: function: must return a state like the old one, s32; got f32"
    );
    let lists = stream(
        |x: Expr, mut list: Vec<Expr>| {
            list.push(x.clone());
            (x, list)
        },
        scalar(),
        vec![0],
    );
    let expected = "stream: function: must return the structure of the initial state; got state[1] \
                    instead of nothing";
    assert_eq!(lists.err().unwrap().to_string(), expected);
    let error = totals(&Options::new()).send(1.0f32).unwrap_err();
    assert_eq!(error.to_string(), "stream: chunk: must be s32; got f32");
}

#[test]
fn failing_steps_end_the_stream() {
    for compiler in compilers() {
        let step = |x: Expr, total: Expr| {
            let x = hook(x, |x: Tensor| match numbers(&x)[0] {
                3.0 => Err("three is too much".to_owned()),
                _ => Ok(()),
            });
            (x.clone(), total + x)
        };
        let options = Options::new().compiler(*compiler);
        let mut stream = stream_with(step, scalar(), 0, &options).unwrap();
        let results: Vec<Result<Tensor, Error>> = stream.over(1..=10).collect();
        assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 2, "{compiler}");
        let error = results[2].as_ref().unwrap_err().to_string();
        assert!(error.contains("three is too much"), "{error}");
        assert!(stream.done().unwrap_err().to_string().contains("three"));
        assert!(stream.send(1).is_err());
    }
}

#[test]
fn dropping_one_half_ends_the_other() {
    let (sender, receiver) = totals(&Options::new()).capacity(1).split();
    sender.send(1).unwrap();
    let blocked_sender = thread::spawn(move || sender.send(2).and_then(|()| sender.send(3)));
    thread::sleep(Duration::from_millis(10));
    drop(receiver);
    assert!(blocked_sender.join().unwrap().is_err());

    let (sender, mut receiver) = totals(&Options::new()).split();
    sender.send(7).unwrap();
    drop(sender);
    assert_eq!(receiver.by_ref().count(), 1);
    assert_eq!(numbers(&receiver.done().unwrap()), [7.0]);

    let mut cancelled = totals(&Options::new());
    cancelled.send(1).unwrap();
    cancelled.cancel();
    assert!(cancelled.recv().is_err());
    assert!(cancelled.send(2).is_err());
}

/// Wakes a thread that waits for a task.
struct Unpark(thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Returns the next result of an asynchronous stream, and the number of pending polls.
fn next<S: futures_core::Stream + Unpin>(stream: &mut S) -> (Option<S::Item>, usize) {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    for pending in 0.. {
        match Pin::new(&mut *stream).poll_next(&mut Context::from_waker(&waker)) {
            Poll::Ready(item) => return (item, pending),
            Poll::Pending => thread::park_timeout(Duration::from_secs(20)),
        }
    }
    unreachable!("the future is ready at some time")
}

#[test]
fn results_can_be_awaited() {
    for compiler in compilers() {
        let (sender, receiver) = totals(&Options::new().compiler(*compiler)).split();
        let mut receiver = receiver.into_async();
        let sends = thread::spawn(move || {
            for x in 1..=3 {
                thread::sleep(Duration::from_millis(30));
                sender.send(x).unwrap();
            }
        });
        let mut pending_polls = 0;
        for expected in [0.0, 1.0, 3.0] {
            let (result, pending) = next(&mut receiver);
            assert_eq!(numbers(&result.unwrap().unwrap()), [expected], "{compiler}");
            pending_polls += pending;
        }
        assert!(pending_polls > 0, "the first poll is pending");
        assert!(next(&mut receiver).0.is_none());
        sends.join().unwrap();
        assert_eq!(numbers(&receiver.done().unwrap()), [6.0]);
    }
}

#[test]
fn awaited_streams_report_failing_steps() {
    let step = |x: Expr, total: Expr| {
        let x = hook(x, |x: Tensor| match numbers(&x)[0] {
            2.0 => Err("two is too much".to_owned()),
            _ => Ok(()),
        });
        (x.clone(), total + x)
    };
    let (sender, receiver) = stream(step, scalar(), 0).unwrap().split();
    let mut receiver = receiver.into_async();
    sender.send(1).unwrap();
    sender.send(2).unwrap();
    assert!(next(&mut receiver).0.unwrap().is_ok());
    let error = next(&mut receiver).0.unwrap().unwrap_err().to_string();
    assert!(error.contains("two is too much"), "{error}");
    assert!(next(&mut receiver).0.is_none());
}

#[test]
fn streams_run_on_the_device_of_their_operands() {
    if !compilers().contains(&"xla") {
        return;
    }
    let one = jit(|x: Expr| x).compiler("xla").call(1).unwrap();
    let step = |x: Expr, total: Expr| (total.clone(), total + x);

    let mut by_state = stream(step, scalar(), &one).unwrap();
    by_state.send(1).unwrap();
    assert!(by_state.recv().unwrap().buffer().is_some());

    let mut by_chunk = stream(step, scalar(), 0).unwrap();
    let results: Vec<Tensor> = [Tensor::from(1), one, Tensor::from(3)]
        .map(|x| {
            by_chunk.send(x).unwrap();
            by_chunk.recv().unwrap()
        })
        .into();
    let on_device: Vec<bool> = results.iter().map(|result| result.buffer().is_some()).collect();
    assert_eq!(on_device, [false, true, true]);
    assert_eq!(numbers(&by_chunk.done().unwrap()), [5.0]);
}

/// An operation on a stream.
#[derive(Clone, Copy, Debug)]
enum Action {
    Send(i32),
    Receive,
    Done,
    Cancel,
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let action = prop_oneof![
        8 => (-9..9).prop_map(Action::Send),
        7 => Just(Action::Receive),
        1 => Just(Action::Done),
        1 => Just(Action::Cancel),
    ];
    prop::collection::vec(action, 1..40)
}

/// The model of a stream of running totals: the waiting results, and how the stream ended.
#[derive(Default)]
struct Model {
    waiting: VecDeque<f64>,
    total: f64,
    done: bool,
    cancelled: bool,
}

impl Model {
    fn send(&mut self, x: i32, capacity: usize) -> Result<(), &'static str> {
        match () {
            () if self.cancelled => Err("the stream was cancelled"),
            () if self.done => Err("must not be used after done"),
            () if self.waiting.len() >= capacity => Err("the buffer is full"),
            () => {
                self.waiting.push_back(self.total);
                self.total += f64::from(x);
                Ok(())
            }
        }
    }

    fn receive(&mut self) -> Result<f64, &'static str> {
        self.waiting.pop_front().ok_or("all results have been received")
    }

    fn finish(&mut self) -> Result<f64, &'static str> {
        match self.waiting.len() {
            _ if self.cancelled => Err("the stream was cancelled"),
            0 => {
                self.done = true;
                Ok(self.total)
            }
            _ => Err("have not been received"),
        }
    }

    /// Drops waiting results; a stream that is done remains done.
    fn cancel(&mut self) {
        self.waiting.clear();
        self.cancelled |= !self.done;
    }
}

/// Compares a result with the expected result or error.
fn check_result<T: PartialEq + std::fmt::Debug>(
    found: nxla::Result<T>,
    expected: Result<T, &'static str>,
) -> Result<(), TestCaseError> {
    match (found, expected) {
        (Ok(found), Ok(expected)) => prop_assert_eq!(found, expected),
        (Err(error), Err(why)) => prop_assert!(error.to_string().contains(why), "{error}: {why}"),
        (found, expected) => prop_assert!(false, "{found:?} and {expected:?}"),
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn streams_behave_like_a_queue(actions in actions(), capacity in 1..4_usize) {
        for compiler in compilers() {
            let mut stream = totals(&Options::new().compiler(*compiler)).capacity(capacity);
            let mut model = Model::default();
            for action in &actions {
                match *action {
                    Action::Send(x) => check_result(stream.send(x), model.send(x, capacity))?,
                    Action::Receive => {
                        let found = stream.recv().map(|total| numbers(&total)[0]);
                        check_result(found, model.receive())?;
                    }
                    Action::Done => {
                        let found = stream.done().map(|total| numbers(&total)[0]);
                        check_result(found, model.finish())?;
                    }
                    Action::Cancel => {
                        stream.cancel();
                        model.cancel();
                    }
                }
            }
        }
    }
}

#[test]
fn clones_of_a_sender_end_the_input_together() {
    let add = |x: Expr, total: Expr| (total.clone(), total + x);
    let totals = stream(add, TensorType::scalar(DType::S32), 0).unwrap();
    let (sender, receiver) = totals.split();
    let clone = sender.clone();
    let other = thread::spawn(move || clone.send(5).unwrap());
    other.join().unwrap();
    sender.send(6).unwrap();
    drop(sender);
    assert_eq!(receiver.done().unwrap().item::<i32>().unwrap(), 11);
}
