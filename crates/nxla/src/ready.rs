//! Waiting for results in asynchronous code.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use nxla_runtime::Signal;

use crate::containers::{Tree, leaves_of};
use crate::tensor::Tensor;
use crate::{Error, Result};

/// Returns a future of the tensors of a container after their computation. The results of a call
/// may still be under computation; the future waits without blocking a thread, in any executor. A
/// single tensor can be awaited directly.
///
/// ```
/// use nxla::{Expr, Tensor, jit, ready};
///
/// # fn block_on<F: Future>(future: F) -> F::Output {
/// #     let mut future = std::pin::pin!(future);
/// #     let mut task = std::task::Context::from_waker(std::task::Waker::noop());
/// #     loop {
/// #         if let std::task::Poll::Ready(output) = future.as_mut().poll(&mut task) {
/// #             return output;
/// #         }
/// #     }
/// # }
/// let both = jit(|x: Expr| (x.sin(), x.cos()));
/// let cosine = block_on(async {
///     let (sine, cosine) = ready(both.call(0.0f32)?).await?;
///     assert_eq!(sine.await?.item::<f32>()?, 0.0);
///     cosine.item::<f32>()
/// })?;
/// assert_eq!(cosine, 1.0);
/// # Ok::<(), nxla::Error>(())
/// ```
pub fn ready<T: Tree<Tensor>>(container: T) -> Ready<T> {
    let pending = leaves_of(&container).items.into_vec();
    Ready { container: Some(container), pending, signal: None }
}

/// The future of [`ready`], and of a tensor. Its result is an error if the computation failed.
///
/// ```
/// use std::pin::pin;
/// use std::task::{Context, Poll, Waker};
/// use nxla::{Tensor, ready};
///
/// let mut future = pin!(ready(vec![Tensor::from(1)]));
/// let Poll::Ready(list) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) else {
///     unreachable!("data on the host is there")
/// };
/// assert_eq!(list?[0].item::<i32>()?, 1);
/// # Ok::<(), nxla::Error>(())
/// ```
#[must_use = "a future does nothing unless it is awaited"]
pub struct Ready<T> {
    container: Option<T>,
    /// The tensors that may still be under computation; the future waits for the last one.
    pending: Vec<Tensor>,
    /// The notification for the last tensor, after it was requested.
    signal: Option<Arc<Signal>>,
}

impl<T> fmt::Debug for Ready<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ready").finish_non_exhaustive()
    }
}

/// The future has no pinned fields.
impl<T> Unpin for Ready<T> {}

impl<T> Ready<T> {
    /// Waits for one tensor after another.
    fn poll_pending(&mut self, task: &Context<'_>) -> Poll<Result<()>> {
        while let Some(tensor) = self.pending.last() {
            if self.signal.is_none() && !tensor.is_ready()? {
                let signal = Arc::<Signal>::default();
                self.signal = Some(signal.clone());
                tensor.on_ready(move || signal.set())?;
            }
            if self.signal.as_ref().is_some_and(|signal| !signal.poll(task)) {
                return Poll::Pending;
            }
            // The tensor is available, so this returns immediately; it reports an error of the
            // computation.
            tensor.wait()?;
            self.signal = None;
            self.pending.pop();
        }
        Poll::Ready(Ok(()))
    }
}

impl<T> Future for Ready<T> {
    type Output = Result<T>;

    fn poll(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Result<T>> {
        let ready = self.get_mut();
        match ready.poll_pending(task) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Ready(Ok(())) => Poll::Ready(ready.container.take().ok_or_else(|| {
                Error::Usage("a future must not be polled after it returned its result".into())
            })),
        }
    }
}

impl IntoFuture for Tensor {
    type Output = Result<Tensor>;
    type IntoFuture = Ready<Tensor>;

    fn into_future(self) -> Ready<Tensor> {
        ready(self)
    }
}

impl IntoFuture for &Tensor {
    type Output = Result<Tensor>;
    type IntoFuture = Ready<Tensor>;

    fn into_future(self) -> Ready<Tensor> {
        ready(self.clone())
    }
}
