//! Streams: a function applied to one chunk after another, with a state between them.
//!
//! A thread of the stream's own does the steps in order. The state stays where it is computed: on
//! XLA it never leaves the device. Sending does not wait for the computation, receiving does.
//!
//! What is surprising: a stream holds a bounded number of chunks in flight (sent, and their results
//! not received). Whoever has the whole [`Stream`] is told by an error that it is full, since
//! nobody else could make room. Once it is [`split`](Stream::split) between threads, the sender
//! waits for the receiver instead.

mod queue;

use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread;

use nxla_eval::Interrupt;
use nxla_expr::TensorType;

use self::queue::{Cancel, Close, Parts, Queue};
use crate::compile_program;
use crate::containers::{Arguments, Container, Function, Leaves, Lengths, Tree};
use crate::jit::{jit, template_of};
use crate::tensor::Tensor;
use crate::{Error, Result};
use crate::{Executable, RunContext, runtime};
use crate::{Options, default_options};

/// How many chunks a stream holds unless it is told otherwise.
const DEFAULT_CAPACITY: usize = 64;

/// Starts a stream under the default options: `function(chunk, state)` gives `(result, state)` for
/// each chunk.
///
/// `chunk` is the type of a chunk, `initial` the state before the first. The new state has the
/// structure, dtypes and shapes of the old one.
///
/// ```
/// use nxla::{DType, Expr, TensorType, stream};
///
/// let add = |x: Expr, total: Expr| (total.clone(), total + x);
/// let mut totals = stream(add, TensorType::scalar(DType::S32), 0)?;
/// for x in 1..=5 {
///     totals.send(x)?;
/// }
/// for expected in [0, 1, 3, 6, 10] {
///     assert_eq!(totals.recv()?.to_vec::<i32>()?, [expected]);
/// }
/// assert_eq!(totals.done()?.to_vec::<i32>()?, [15]);
/// # Ok::<(), nxla::Error>(())
/// ```
///
/// # Errors
/// Whatever is wrong with the function or its compilation; a new state of another type.
pub fn stream<F, X, S, Y>(
    function: F,
    chunk: impl Arguments<X, TensorType>,
    initial: impl Arguments<S, Tensor>,
) -> Result<Stream<X, S, Y>>
where
    F: Function<(X, S), Arguments = (X, S), Results = (Y, S)>,
    X: Container,
    S: Container,
    Y: Container,
{
    stream_with(function, chunk, initial, &Options::new())
}

/// Starts a [`stream`] under these options, on top of the defaults.
///
/// # Errors
/// As for [`stream`]; an unknown compiler or setting.
pub fn stream_with<F, X, S, Y>(
    function: F,
    chunk: impl Arguments<X, TensorType>,
    initial: impl Arguments<S, Tensor>,
    options: &Options,
) -> Result<Stream<X, S, Y>>
where
    F: Function<(X, S), Arguments = (X, S), Results = (Y, S)>,
    X: Container,
    S: Container,
    Y: Container,
{
    let options = options.over(&default_options());
    let (mut types, mut state) = (Leaves::default(), Leaves::default());
    chunk.append(&mut types);
    initial.append(&mut state);
    let chunk_types = types.items.to_vec();
    let chunk_lengths = types.lengths.clone();
    types.items.extend(state.items.iter().map(|tensor| tensor.ty()));
    types.lengths.extend(state.lengths.iter().copied());
    let lengths = types.lengths.clone();
    let traced = jit(function).traced(&template_of(&types), lengths, &options)?;
    let mut vectors = state.items.iter().map(|tensor| tensor.vectors().clone());
    let mut results = (0..traced.program.outputs().len()).map(|result| traced.vectors.get(result));
    if let Some(vectors) = vectors.by_ref().chain(&mut results).find(|own| !own.is_empty()) {
        let why = format!("a state or a result has the axes {vectors}; devectorize it");
        return Err(Error::Vectors { function: "stream".into(), why });
    }
    let runtime::Traced { program, captured, results: lengths, .. } = traced;
    let outputs: Vec<TensorType> = program.output_types().cloned().collect();
    let results = check(&outputs, &lengths, &state)?;
    let executable = compile_program(&program, &options, &[])?;
    let queue = Arc::new(Queue::default());
    let step = Step { executable, captured, options, results };
    step.start(queue.clone(), state.items.to_vec())?;
    let lengths_of_results = lengths[..lengths.len() - state.lengths.len()].into();
    Ok(Stream {
        cancel: Cancel(queue.clone()),
        shared: Shared {
            queue,
            capacity: DEFAULT_CAPACITY,
            chunk_types,
            chunk_lengths,
            lengths_of_results,
            lengths_of_state: state.lengths,
        },
        types: PhantomData,
    })
}

/// How many of the outputs are results, after a check that the others are a state as before.
fn check(outputs: &[TensorType], lengths: &Lengths, state: &Leaves<Tensor>) -> Result<usize> {
    let wrong = |why: String| Error::Arguments { function: "stream".into(), why };
    if !lengths.ends_with(&state.lengths) {
        let (found, expected) = (&lengths[..], &state.lengths[..]);
        let why =
            format!("the results have lists of lengths {found:?}, the old state {expected:?}");
        return Err(wrong(why));
    }
    let results = outputs.len() - state.items.len();
    for (new, old) in outputs[results..].iter().zip(&state.items) {
        if (new.dtype, &new.shape) != (old.dtype(), old.shape()) {
            return Err(wrong(format!("the new state is {new}, the old one {}", old.ty())));
        }
    }
    Ok(results)
}

/// What the thread of a stream computes.
struct Step {
    executable: Arc<dyn Executable>,
    captured: Vec<runtime::Tensor>,
    options: Options,
    results: usize,
}

impl Step {
    fn start(self, queue: Arc<Queue>, state: Parts) -> Result<()> {
        let work = move || {
            queue.work(state, |chunk, state| self.run(&queue, &chunk, &state));
        };
        let thread = thread::Builder::new().name("nxla stream".into()).spawn(work);
        thread.map(drop).map_err(|error| Error::User(Box::new(error)))
    }

    fn run(&self, queue: &Queue, chunk: &Parts, state: &Parts) -> Result<(Parts, Parts)> {
        let given = chunk.iter().chain(state).map(|tensor| &**tensor);
        let inputs: Vec<&runtime::Tensor> = given.chain(&self.captured).collect();
        let interrupt = || queue.is_cancelled();
        let (hooks, interrupt) = (Some(&self.options.hooks), Some::<&Interrupt<'_>>(&interrupt));
        let context = RunContext { hooks, interrupt, ..RunContext::default() };
        let results = self.executable.run(&inputs, &context)?;
        let mut results: Parts = results.into_iter().map(Tensor::from).collect();
        let state = results.split_off(self.results);
        Ok((results, state))
    }
}

/// What both halves of a stream know.
#[derive(Clone)]
struct Shared {
    queue: Arc<Queue>,
    capacity: usize,
    chunk_types: Vec<TensorType>,
    chunk_lengths: Lengths,
    lengths_of_results: Lengths,
    lengths_of_state: Lengths,
}

impl Shared {
    fn send<X>(&self, chunk: impl Arguments<X, Tensor>, waits: bool) -> Result<()> {
        let mut leaves = Leaves::default();
        chunk.append(&mut leaves);
        let fits = leaves.lengths == self.chunk_lengths
            && leaves.items.len() == self.chunk_types.len()
            && leaves.items.iter().zip(&self.chunk_types).all(|(tensor, ty)| tensor.is_of(ty));
        if !fits {
            let list = |types: Vec<String>| types.join(", ");
            let found = list(leaves.items.iter().map(|tensor| tensor.ty().to_string()).collect());
            let expected = list(self.chunk_types.iter().map(ToString::to_string).collect());
            let why = format!("a chunk is ({expected}), got ({found})");
            return Err(Error::Arguments { function: "stream".into(), why });
        }
        Ok(self.queue.send(leaves.items.to_vec(), self.capacity, waits)?)
    }

    fn receive<Y: Container>(&self, until_closed: bool) -> Option<Result<Y::Tensors>> {
        self.queue.receive(until_closed).map(|result| self.rebuilt::<Y>(result))
    }

    /// A result in its container.
    fn rebuilt<Y: Container>(&self, result: Result<Parts, Arc<Error>>) -> Result<Y::Tensors> {
        let parts = result.map_err(Error::Stream)?;
        Ok(Y::Tensors::rebuild(&mut Leaves::new(parts, self.results())))
    }

    fn results(&self) -> Lengths {
        self.lengths_of_results.clone()
    }

    fn done<S: Container>(&self) -> Result<S::Tensors> {
        match self.queue.outcome() {
            None => Err(Error::Usage("stream: it was cancelled".into())),
            Some(Err(error)) => Err(Error::Stream(error)),
            Some(Ok(state)) => {
                let mut leaves = Leaves::new(state, self.lengths_of_state.clone());
                Ok(S::Tensors::rebuild(&mut leaves))
            }
        }
    }
}

/// A running stream of chunks `X`, a state `S` and results `Y`; made by [`stream`]. Dropping it
/// cancels what is under way.
pub struct Stream<X, S, Y> {
    shared: Shared,
    cancel: Cancel,
    types: Types<X, S, Y>,
}

/// The containers of a stream, which it does not hold itself.
type Types<X, S, Y> = PhantomData<fn(X, S) -> Y>;

impl<X: Container, S: Container, Y: Container> Stream<X, S, Y> {
    /// Holds so many chunks in flight at most, instead of 64; at least one.
    #[must_use]
    pub fn capacity(mut self, chunks: usize) -> Self {
        self.shared.capacity = chunks.max(1);
        self
    }

    /// Hands over the next chunk, and returns at once.
    ///
    /// # Errors
    /// A chunk of another type; a stream that is full, done, or ended by an error.
    pub fn send(&mut self, chunk: impl Arguments<X, Tensor>) -> Result<()> {
        self.shared.send(chunk, false)
    }

    /// The next result, in the order of the chunks; waits for its computation to start, and as
    /// for every tensor, reading it waits for the end.
    ///
    /// # Errors
    /// No chunk is in flight; the error of a step, which ends the stream.
    pub fn recv(&mut self) -> Result<Y::Tensors> {
        let nothing = "stream: there is no chunk to receive a result for";
        let result = self.shared.receive::<Y>(false);
        result.unwrap_or_else(|| Err(Error::Usage(nothing.into())))
    }

    /// Ends the stream, and gives its state; again, if it is done already.
    ///
    /// # Errors
    /// Results that have not been received; the error of a step.
    pub fn done(&mut self) -> Result<S::Tensors> {
        if let Some(error) = self.shared.queue.failure() {
            return Err(Error::Stream(error));
        }
        let left = self.shared.queue.in_flight();
        if left > 0 {
            let why = format!("stream: {left} results have not been received");
            return Err(Error::Usage(why));
        }
        self.shared.queue.close();
        self.shared.done::<S>()
    }

    /// The results for chunks, as an iterator that takes the chunks as it needs them, and sends
    /// some ahead.
    ///
    /// ```
    /// use nxla::{DType, Expr, TensorType, stream};
    ///
    /// let add = |x: Expr, total: Expr| (total.clone(), total + x);
    /// let mut totals = stream(add, TensorType::scalar(DType::S32), 0)?;
    /// let mut sum = 0;
    /// for total in totals.over(1..=1000) {
    ///     sum = total?.to_vec::<i32>()?[0];
    /// }
    /// assert_eq!(sum, 499_500);
    /// assert_eq!(totals.done()?.to_vec::<i32>()?, [500_500]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    pub fn over<I>(&mut self, chunks: I) -> impl Iterator<Item = Result<Y::Tensors>>
    where
        I: IntoIterator,
        I::Item: Arguments<X, Tensor>,
    {
        let mut chunks = chunks.into_iter().fuse();
        let mut refused = None;
        std::iter::from_fn(move || {
            while refused.is_none() && self.shared.queue.in_flight() < self.shared.capacity {
                let Some(chunk) = chunks.next() else { break };
                refused = self.send(chunk).err();
            }
            // Results that are on their way come before the error of the chunk behind them.
            self.shared.receive::<Y>(false).or_else(|| refused.take().map(Err))
        })
    }

    /// Ends the stream after the step under way, as dropping it does; results are dropped.
    pub fn cancel(&mut self) {
        self.shared.queue.cancel();
    }

    /// Two halves for two threads. The sender waits while the stream is full.
    ///
    /// ```
    /// use nxla::{DType, Expr, TensorType, stream};
    ///
    /// let add = |x: Expr, total: Expr| (total.clone(), total + x);
    /// let totals = stream(add, TensorType::scalar(DType::S32), 0)?.capacity(2);
    /// let (sender, mut receiver) = totals.split();
    /// let producer = std::thread::spawn(move || (1..=100).try_for_each(|x| sender.send(x)));
    /// assert_eq!(receiver.by_ref().count(), 100);
    /// assert_eq!(receiver.done()?.to_vec::<i32>()?, [5050]);
    /// # producer.join().expect("it does not panic")?;
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[must_use]
    pub fn split(self) -> (Sender<X>, Receiver<S, Y>) {
        let Stream { shared, cancel, types: _ } = self;
        let close = Close(shared.queue.clone());
        let sender = Sender { shared: shared.clone(), _close: close, types: PhantomData };
        (sender, Receiver { shared, _cancel: cancel, types: PhantomData })
    }
}

/// The half of a stream that sends. Dropping it says that nothing more comes.
pub struct Sender<X> {
    shared: Shared,
    _close: Close,
    types: PhantomData<fn(X)>,
}

impl<X: Container> Sender<X> {
    /// Hands over the next chunk; waits while the stream is full.
    ///
    /// # Errors
    /// A chunk of another type; a stream that was ended by an error or by the receiver.
    pub fn send(&self, chunk: impl Arguments<X, Tensor>) -> Result<()> {
        self.shared.send(chunk, true)
    }

    /// Hands over the next chunk if the stream has room for it.
    ///
    /// # Errors
    /// As for [`Sender::send`]; a stream that is full.
    pub fn try_send(&self, chunk: impl Arguments<X, Tensor>) -> Result<()> {
        self.shared.send(chunk, false)
    }
}

/// The half of a stream that receives: an iterator over the results, which ends when the sender is
/// gone and everything has been received. Dropping it cancels what is under way.
///
/// It is an asynchronous stream as well ([`futures_core::Stream`]), of the same results: no thread
/// waits for the next one. As for every tensor, reading a result waits for its computation.
pub struct Receiver<S, Y> {
    shared: Shared,
    _cancel: Cancel,
    types: PhantomData<fn(S) -> Y>,
}

impl<S: Container, Y: Container> Receiver<S, Y> {
    /// The state after the last chunk, for which it waits; results that have not been received
    /// are dropped.
    ///
    /// # Errors
    /// The error of a step.
    pub fn done(mut self) -> Result<S::Tensors> {
        if let Some(Err(error)) = self.by_ref().find(Result::is_err) {
            return Err(error);
        }
        self.shared.done::<S>()
    }
}

impl<S: Container, Y: Container> Iterator for Receiver<S, Y> {
    type Item = Result<Y::Tensors>;

    fn next(&mut self) -> Option<Result<Y::Tensors>> {
        self.shared.receive::<Y>(true)
    }
}

impl<S: Container, Y: Container> futures_core::Stream for Receiver<S, Y> {
    type Item = Result<Y::Tensors>;

    fn poll_next(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let shared = &self.get_mut().shared;
        shared.queue.poll(task).map(|result| Some(shared.rebuilt::<Y>(result?)))
    }
}
