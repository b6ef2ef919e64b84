//! Streams: a function that is applied to one chunk after another, with a state between them.
//!
//! The runtime runs the steps on a thread of the stream; this module handles containers. The state
//! remains on its device. Sending does not wait for the computation, receiving does.
//!
//! A stream holds a bounded number of chunks in flight (sent chunks whose results were not
//! received). If the stream is full, the owner of the whole [`Stream`] receives an error, since no
//! other thread could receive results. After [`split`](Stream::split), the sender waits for the
//! receiver instead.

use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use nxla_expr::TensorType;
use nxla_runtime::{self as runtime, Capacity, Outcome, Purpose, Step, StreamError, Wait};

use crate::containers::{
    Arguments, Container, Function, Leaves, Structure, Tree, container_of_tensors, difference,
    leaves_of_arguments,
};
use crate::expr::Expr;
use crate::jit::{call_of_types, jit};
use crate::tensor::Tensor;
use crate::{Error, Options, Result, default_options};

/// The default number of chunks in flight.
const DEFAULT_CAPACITY: usize = 64;

/// Starts a stream with the default options: `function(chunk, state)` returns `(result, state)` for
/// each chunk.
///
/// `chunk` is the type of a chunk, `initial` the state before the first chunk. The new state must
/// have the structure, dtypes and shapes of the old state.
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
/// Returns the errors of the function and of its compilation, and an error for a new state of
/// another type.
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

/// Starts a [`stream`] with these options, which override the defaults.
///
/// ```
/// use nxla::stream::stream_with;
/// use nxla::{DType, Expr, Options, TensorType};
///
/// let add = |x: Expr, total: Expr| (total.clone(), total + x);
/// let options = Options::new().compiler("evaluator");
/// let mut totals = stream_with(add, TensorType::scalar(DType::S32), 0, &options)?;
/// totals.send(5)?;
/// assert_eq!(totals.recv()?.item::<i32>()?, 0);
/// assert_eq!(totals.done()?.item::<i32>()?, 5);
/// # Ok::<(), nxla::Error>(())
/// ```
///
/// # Errors
/// Returns the errors of [`stream`], and an error for an unknown compiler or setting.
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
    let (types, mut state) = (leaves_of_arguments(chunk), leaves_of_arguments(initial));
    let structure = types.structure.clone().then(&state.structure);
    let initial: Vec<runtime::RawTensor> =
        state.items.iter().map(|tensor| runtime::RawTensor::clone(tensor)).collect();
    let call = call_of_types(&types.items, initial.clone(), &structure);
    let (entry, _) = jit(function).entry(call, Purpose::Stream, &structure, &options)?;
    let structure = entry.results().clone();
    let Some(structure_of_results) = structure.before(&state.structure) else {
        let types = entry.program().output_types().cloned();
        let (_, found): (Y, S) = Leaves::new(types, structure).container()?;
        let expected = S::Tensors::rebuild(&mut state);
        let difference = difference::<Tensor, Expr>(&expected, &found, ("", "state"));
        let why =
            format!("function: must return the structure of the initial state; got {difference}");
        return Err(Error::Arguments { function: "stream".into(), why });
    };
    let stream = Step { entry, options, constants: Vec::new(), inspect: None }.start(initial)?;
    Ok(Stream {
        abandon: CancelOnDrop(stream.clone()),
        shared: Shared {
            stream,
            capacity: DEFAULT_CAPACITY,
            chunk_types: types,
            structure_of_results,
            structure_of_state: state.structure,
        },
        types: PhantomData,
    })
}

/// The data that both halves of a stream share.
#[derive(Clone)]
struct Shared {
    stream: Arc<runtime::RawStream>,
    capacity: usize,
    chunk_types: Leaves<TensorType>,
    structure_of_results: Structure,
    structure_of_state: Structure,
}

impl Shared {
    fn send<X: Container>(&self, chunk: impl Arguments<X, Tensor>, waits: bool) -> Result<()> {
        let leaves = leaves_of_arguments(chunk);
        self.chunk_types.check::<X>(&leaves, "stream", "chunk")?;
        let chunk = leaves.items.into_iter().map(Tensor::into_inner).collect();
        let wait = if waits { Wait::default() } else { Wait::never() };
        self.stream.send(chunk, Capacity::InFlight(self.capacity), &wait)
    }

    fn receive<Y: Container>(&self, until_closed: bool) -> Option<Result<Y::Tensors>> {
        let received = self.stream.receive(until_closed, &Wait::default());
        let rebuilt = |outcome: Option<Outcome>| outcome.map(|outcome| self.rebuilt::<Y>(outcome));
        received.map(rebuilt).unwrap_or_else(|error| Some(Err(error)))
    }

    /// Returns a result in its container. The error of a step is reported once, for any number of
    /// sent chunks.
    fn rebuilt<Y: Container>(&self, outcome: Outcome) -> Result<Y::Tensors> {
        match outcome {
            Ok(parts) => Ok(container_of_tensors(parts, &self.structure_of_results)),
            Err(error) => {
                self.stream.forget_results();
                Err(error.into())
            }
        }
    }
}

/// Cancels the stream when dropped.
struct CancelOnDrop(Arc<runtime::RawStream>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

/// Closes the sending side when dropped.
struct CloseOnDrop(Arc<runtime::RawStream>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// A running stream of chunks `X`, a state `S` and results `Y`; created by [`stream`]. Dropping it
/// cancels the current step.
///
/// ```
/// use nxla::{DType, Expr, TensorType, stream};
///
/// let add = |x: Expr, total: Expr| (total.clone(), total + x);
/// let mut totals = stream(add, TensorType::scalar(DType::S32), 0)?;
/// totals.send(5)?;
/// assert_eq!(totals.recv()?.item::<i32>()?, 0);
/// assert_eq!(totals.done()?.item::<i32>()?, 5);
/// # Ok::<(), nxla::Error>(())
/// ```
pub struct Stream<X, S, Y> {
    shared: Shared,
    abandon: CancelOnDrop,
    types: Types<X, S, Y>,
}

impl<X, S, Y> fmt::Debug for Stream<X, S, Y> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").finish_non_exhaustive()
    }
}

/// The container types of a stream, which the stream does not hold.
type Types<X, S, Y> = PhantomData<fn(X, S) -> Y>;

impl<X: Container, S: Container, Y: Container> Stream<X, S, Y> {
    /// Sets the maximum number of chunks in flight, 64 by default; at least one.
    ///
    /// ```
    /// use nxla::{DType, Expr, TensorType, stream};
    ///
    /// let add = |x: Expr, total: Expr| (total.clone(), total + x);
    /// let mut totals = stream(add, TensorType::scalar(DType::S32), 0)?.capacity(1);
    /// totals.send(5)?;
    /// assert!(totals.send(6).is_err());
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[must_use]
    pub fn capacity(mut self, chunks: usize) -> Self {
        self.shared.capacity = chunks.max(1);
        self
    }

    /// Sends the next chunk, and returns immediately.
    ///
    /// ```
    /// use nxla::{DType, Expr, TensorType, stream};
    ///
    /// let add = |x: Expr, total: Expr| (total.clone(), total + x);
    /// let mut totals = stream(add, TensorType::scalar(DType::S32), 0)?;
    /// totals.send(5)?;
    /// assert!(totals.send(0.5f32).is_err());
    /// assert_eq!(totals.recv()?.item::<i32>()?, 0);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error for a chunk of another type, and if the stream is full, done, or ended by
    /// an error.
    pub fn send(&mut self, chunk: impl Arguments<X, Tensor>) -> Result<()> {
        self.shared.send(chunk, false)
    }

    /// Receives the next result, in the order of the chunks. Waits until its computation starts;
    /// reading the result waits for its end.
    ///
    /// ```
    /// use nxla::{DType, Expr, TensorType, stream};
    ///
    /// let add = |x: Expr, total: Expr| (total.clone(), total + x);
    /// let mut totals = stream(add, TensorType::scalar(DType::S32), 0)?;
    /// assert!(totals.recv().is_err());
    /// totals.send(5)?;
    /// assert_eq!(totals.recv()?.item::<i32>()?, 0);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if no chunk is in flight, and the error of a step, which ends the stream.
    pub fn recv(&mut self) -> Result<Y::Tensors> {
        self.shared.receive::<Y>(false).unwrap_or_else(|| Err(StreamError::Nothing.into()))
    }

    /// Ends the stream and returns its state; can be called repeatedly.
    ///
    /// ```
    /// use nxla::{DType, Expr, TensorType, stream};
    ///
    /// let add = |x: Expr, total: Expr| (total.clone(), total + x);
    /// let mut totals = stream(add, TensorType::scalar(DType::S32), 0)?;
    /// totals.send(5)?;
    /// assert!(totals.done().is_err());
    /// totals.recv()?;
    /// assert_eq!(totals.done()?.item::<i32>()?, 5);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if results were not received, and the error of a step.
    pub fn done(&mut self) -> Result<S::Tensors> {
        let state = self.shared.stream.finish(&Wait::default())?;
        Ok(container_of_tensors(state, &self.shared.structure_of_state))
    }

    /// Returns an iterator over the results for chunks. It takes chunks on demand, and sends some
    /// of them ahead. Results of earlier chunks that were not received come first.
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
            while refused.is_none() && self.shared.stream.in_flight() < self.shared.capacity {
                let Some(chunk) = chunks.next() else { break };
                refused = self.send(chunk).err();
            }
            // Results in flight precede the error of the next chunk.
            self.shared.receive::<Y>(false).or_else(|| refused.take().map(Err))
        })
    }

    /// Cancels the stream after the current step, as dropping it does; results are dropped.
    ///
    /// ```
    /// use nxla::{DType, Expr, TensorType, stream};
    ///
    /// let add = |x: Expr, total: Expr| (total.clone(), total + x);
    /// let mut totals = stream(add, TensorType::scalar(DType::S32), 0)?;
    /// totals.send(5)?;
    /// totals.cancel();
    /// assert!(totals.send(6).is_err());
    /// # Ok::<(), nxla::Error>(())
    /// ```
    pub fn cancel(&mut self) {
        self.shared.stream.abandon();
    }

    /// Splits the stream into two halves for two threads. The sender waits while the stream is
    /// full.
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
        let Stream { shared, abandon, types: _ } = self;
        let close = Arc::new(CloseOnDrop(shared.stream.clone()));
        let sender = Sender { shared: shared.clone(), _close: close, types: PhantomData };
        (sender, Receiver { shared, _abandon: abandon, types: PhantomData })
    }
}

/// The sending half of a stream, which several threads can use by clones. Dropping the last clone ends
/// the input.
///
/// ```
/// use nxla::{DType, Expr, TensorType, stream};
///
/// let add = |x: Expr, total: Expr| (total.clone(), total + x);
/// let totals = stream(add, TensorType::scalar(DType::S32), 0)?;
/// let (sender, receiver) = totals.split();
/// sender.send(5)?;
/// sender.try_send(6)?;
/// drop(sender);
/// assert_eq!(receiver.done()?.item::<i32>()?, 11);
/// # Ok::<(), nxla::Error>(())
/// ```
pub struct Sender<X> {
    shared: Shared,
    _close: Arc<CloseOnDrop>,
    types: PhantomData<fn(X)>,
}

impl<X> Clone for Sender<X> {
    fn clone(&self) -> Self {
        let Self { shared, _close: close, types } = self;
        Self { shared: shared.clone(), _close: close.clone(), types: *types }
    }
}

impl<X> fmt::Debug for Sender<X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").finish_non_exhaustive()
    }
}

impl<X: Container> Sender<X> {
    /// Sends the next chunk; waits while the stream is full.
    ///
    /// ```
    /// use nxla::{DType, Expr, TensorType, stream};
    ///
    /// let add = |x: Expr, total: Expr| (total.clone(), total + x);
    /// let (sender, mut receiver) = stream(add, TensorType::scalar(DType::S32), 1)?.split();
    /// sender.send(5)?;
    /// assert_eq!(receiver.next().expect("a chunk was sent")?.item::<i32>()?, 1);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error for a chunk of another type, and if an error or the receiver ended the
    /// stream.
    pub fn send(&self, chunk: impl Arguments<X, Tensor>) -> Result<()> {
        self.shared.send(chunk, true)
    }

    /// Sends the next chunk if the stream is not full.
    ///
    /// ```
    /// use nxla::{DType, Expr, TensorType, stream};
    ///
    /// let add = |x: Expr, total: Expr| (total.clone(), total + x);
    /// let totals = stream(add, TensorType::scalar(DType::S32), 0)?.capacity(1);
    /// let (sender, _receiver) = totals.split();
    /// sender.try_send(5)?;
    /// assert!(sender.try_send(6).is_err());
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`Sender::send`], and an error if the stream is full.
    pub fn try_send(&self, chunk: impl Arguments<X, Tensor>) -> Result<()> {
        self.shared.send(chunk, false)
    }
}

/// The receiving half of a stream: an iterator over the results, which ends after the sender was
/// dropped and all results were received. Dropping it cancels the current step.
///
/// ```
/// use nxla::{DType, Expr, TensorType, stream};
///
/// let add = |x: Expr, total: Expr| (total.clone(), total + x);
/// let totals = stream(add, TensorType::scalar(DType::S32), 0)?;
/// let (sender, receiver) = totals.split();
/// sender.send(5)?;
/// sender.send(6)?;
/// drop(sender);
/// let last = receiver.last().expect("there are results")?;
/// assert_eq!(last.item::<i32>()?, 5);
/// # Ok::<(), nxla::Error>(())
/// ```
pub struct Receiver<S, Y> {
    shared: Shared,
    _abandon: CancelOnDrop,
    types: PhantomData<fn(S) -> Y>,
}

impl<S, Y> fmt::Debug for Receiver<S, Y> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").finish_non_exhaustive()
    }
}

impl<S: Container, Y: Container> Receiver<S, Y> {
    /// Waits for the last chunk and returns the state; results that were not received are dropped.
    ///
    /// ```
    /// use nxla::{DType, Expr, TensorType, stream};
    ///
    /// let add = |x: Expr, total: Expr| (total.clone(), total + x);
    /// let (sender, receiver) = stream(add, TensorType::scalar(DType::S32), 1)?.split();
    /// sender.send(5)?;
    /// drop(sender);
    /// assert_eq!(receiver.done()?.item::<i32>()?, 6);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the error of a step.
    pub fn done(mut self) -> Result<S::Tensors> {
        if let Some(Err(error)) = self.by_ref().find(Result::is_err) {
            return Err(error);
        }
        let state = self.shared.stream.state(&Wait::default())?;
        Ok(container_of_tensors(state, &self.shared.structure_of_state))
    }

    /// Converts the receiver for asynchronous code.
    ///
    /// ```
    /// use nxla::{DType, Expr, TensorType, stream};
    ///
    /// let add = |x: Expr, total: Expr| (total.clone(), total + x);
    /// let totals = stream(add, TensorType::scalar(DType::S32), 0)?;
    /// let (sender, receiver) = totals.split();
    /// sender.send(5)?;
    /// drop(sender);
    /// assert_eq!(receiver.into_async().done()?.item::<i32>()?, 5);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    pub fn into_async(self) -> AsyncReceiver<S, Y> {
        AsyncReceiver(self)
    }
}

impl<S: Container, Y: Container> Iterator for Receiver<S, Y> {
    type Item = Result<Y::Tensors>;

    fn next(&mut self) -> Option<Result<Y::Tensors>> {
        self.shared.receive::<Y>(true)
    }
}

/// The receiving half of a stream in asynchronous code: a [`futures_core::Stream`] of the results,
/// created by [`Receiver::into_async`]. No thread waits for the next result. Reading a result waits
/// for its computation; [awaiting](crate::ready()) it does not block.
///
/// ```
/// use nxla::{DType, Expr, TensorType, stream};
///
/// let add = |x: Expr, total: Expr| (total.clone(), total + x);
/// let totals = stream(add, TensorType::scalar(DType::S32), 0)?;
/// let (sender, receiver) = totals.split();
/// sender.send(5)?;
/// drop(sender);
/// let receiver = receiver.into_async();
/// assert_eq!(receiver.done()?.item::<i32>()?, 5);
/// # Ok::<(), nxla::Error>(())
/// ```
pub struct AsyncReceiver<S, Y>(Receiver<S, Y>);

impl<S, Y> fmt::Debug for AsyncReceiver<S, Y> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncReceiver").finish_non_exhaustive()
    }
}

impl<S: Container, Y: Container> AsyncReceiver<S, Y> {
    /// Returns the state after the last chunk; see [`Receiver::done`]. It waits unless the stream
    /// has ended.
    ///
    /// ```
    /// use nxla::{DType, Expr, TensorType, stream};
    ///
    /// let add = |x: Expr, total: Expr| (total.clone(), total + x);
    /// let (sender, receiver) = stream(add, TensorType::scalar(DType::S32), 1)?.split();
    /// let receiver = receiver.into_async();
    /// sender.send(5)?;
    /// drop(sender);
    /// assert_eq!(receiver.done()?.item::<i32>()?, 6);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the error of a step.
    pub fn done(self) -> Result<S::Tensors> {
        self.0.done()
    }
}

impl<S: Container, Y: Container> futures_core::Stream for AsyncReceiver<S, Y> {
    type Item = Result<Y::Tensors>;

    fn poll_next(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let shared = &self.get_mut().0.shared;
        shared.stream.poll(true, task).map(|outcome| Some(shared.rebuilt::<Y>(outcome?)))
    }
}
