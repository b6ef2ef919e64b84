//! Without a crew, work is done by whoever asks for it.

use crate::error::EvalError;
use crate::run::{Interrupt, Wanted};

/// The threads of one process: there are none.
pub(crate) enum Crew {}

/// None.
pub(crate) fn crew() -> Option<&'static Crew> {
    None
}

/// Whether others look out for work that this thread hands over.
#[inline]
pub(crate) fn leads() -> bool {
    false
}

/// Does a run.
pub(crate) fn aboard<R: Send>(
    interrupt: Option<&Interrupt<'_>>,
    run: impl FnOnce(Wanted<'_>) -> Result<R, EvalError> + Send,
) -> Result<R, EvalError> {
    run(interrupt.map_or(Wanted::Always, Wanted::Asked))
}

impl Crew {
    pub(crate) fn count(&self) -> usize {
        match *self {}
    }

    pub(crate) fn rouse(&self) {
        match *self {}
    }

    pub(crate) fn within<R: Send>(&self, _work: impl FnOnce() -> R + Send) -> R {
        match *self {}
    }

    pub(crate) fn each_with<I: Send, W>(
        &self,
        _items: Vec<I>,
        _keep: fn() -> W,
        _task: impl Fn(&mut W, I) + Send + Sync,
    ) {
        match *self {}
    }

    pub(crate) fn pieces<T: Send>(
        &self,
        _out: &mut [T],
        _size: usize,
        _fill: &(dyn Fn((usize, &mut [T])) + Sync),
    ) {
        match *self {}
    }

    pub(crate) fn collect<R: Send>(
        &self,
        _count: usize,
        _task: &(dyn Fn(usize) -> R + Sync),
    ) -> Vec<R> {
        match *self {}
    }
}
