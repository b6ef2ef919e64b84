//! The steps of a stream, and the thread that does them.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use nxla_eval::Interrupt;
use smallvec::SmallVec;

use super::{Parts, RawStream, Wait};
use crate::background;
use crate::error::{Error, Result};
use crate::function::Entry;
use crate::options::Options;
use crate::sync::Shared;
use crate::tensor::RawTensor;

/// Checks the results of a step before they are used: called with the entry, its arguments, its
/// results.
pub type Inspect<R> = dyn Fn(&Entry<R>, &[&RawTensor], &[RawTensor]) -> Result<()> + Send;

/// The step of a stream. Its arguments are the leaves of a chunk, the leaves of the state, and the
/// constants; its results are the leaves of a result and of the next state.
pub struct Step<R> {
    /// The compiled function.
    pub entry: Arc<Entry<R>>,
    /// The current options.
    pub options: Options,
    /// The last arguments, the same in every step.
    pub constants: Parts,
    /// A check that can fail a step for its results.
    pub inspect: Option<Box<Inspect<R>>>,
}

impl<R> fmt::Debug for Step<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Step").field("options", &self.options).finish_non_exhaustive()
    }
}

/// The streams whose threads run, to end them with the process.
static RUNNING: Shared<Vec<Weak<RawStream>>> = Shared::new(Vec::new());

fn running_streams() -> Vec<Arc<RawStream>> {
    RUNNING.lock().iter().filter_map(Weak::upgrade).collect()
}

/// Abandons every stream of the process.
pub fn abandon_streams() {
    running_streams().iter().for_each(|stream| stream.abandon());
}

/// Ends every stream in a forked process, which does not have the threads of streams.
pub(crate) fn orphan_streams() {
    let all = std::mem::take(&mut *RUNNING.lock());
    all.iter().filter_map(Weak::upgrade).for_each(|stream| stream.orphan());
}

/// Waits up to a time limit for the end of all cancelled streams, and returns whether all have ended.
pub fn wait_until_streams_end(time: Duration) -> bool {
    let wait = Wait::at_most(Some(time), None);
    running_streams().iter().all(|stream| stream.wait_for_end(&wait))
}

impl<R: Send + Sync + 'static> Step<R> {
    /// Starts a stream with this state.
    ///
    /// # Errors
    /// Returns the error of a failed start of a thread, and an error for a step whose last results
    /// do not have the types of the state or a state and constants on two devices, unless the
    /// options select a device.
    pub fn start(self, state: Parts) -> Result<Arc<RawStream>> {
        let results = self.check(&state)?;
        let follows_operands = !self.options.selects_target();
        let constants = self.constants.iter().chain(self.entry.captured_tensors());
        let device = self.options.common_device("stream", state.iter().chain(constants))?;
        let stream = Arc::new(RawStream::new(device, follows_operands));
        let mut running = RUNNING.lock();
        running.retain(|stream| stream.strong_count() > 0);
        running.push(Arc::downgrade(&stream));
        drop(running);
        let own = stream.clone();
        background::start("nxla stream", move || self.work(&own, results, state))?;
        Ok(stream)
    }

    /// Checks that the last outputs are a state of the same types. Returns the number of results.
    fn check(&self, state: &[RawTensor]) -> Result<usize> {
        let wrong = |why: String| Err(Error::Arguments { function: "stream".into(), why });
        let outputs = self.entry.result_types();
        let Some(results) = outputs.len().checked_sub(state.len()) else {
            let (found, expected) = (outputs.len(), state.len());
            return wrong(format!(
                "function: must return a state of {expected} tensors; got {found}"
            ));
        };
        for ((vectors, new), old) in outputs[results..].iter().zip(state) {
            let same =
                (new.dtype, &new.shape, vectors) == (old.dtype(), old.shape(), old.vectors());
            if !same {
                let (new, old) =
                    (format!("{vectors}{new}"), format!("{}{}", old.vectors(), old.ty()));
                return wrong(format!(
                    "function: must return a state like the old one, {old}; got {new}"
                ));
            }
        }
        Ok(results)
    }

    /// Does step after step; the thread of the stream.
    fn work(self, stream: &RawStream, results: usize, mut state: Parts) {
        let _ending = Ending(stream);
        let mut before = Parts::new();
        while let Some((number, chunk)) = stream.next_chunk() {
            match self.run_caught(stream, &chunk, &state) {
                Ok(mut outputs) => {
                    // Wait for the previous step, so that a device computes at most one step ahead.
                    if let Err(error) = wait_for_step(&before) {
                        return stream.end(Err(Arc::new(error)));
                    }
                    state = outputs.split_off(results);
                    before.clone_from(&state);
                    before.extend(outputs.first().cloned());
                    stream.record_result(number, outputs);
                }
                Err(error) => return stream.end(Err(Arc::new(error))),
            }
        }
        stream.end(Ok(state));
    }

    /// Runs a step. This thread has no caller to pass a panic to (of a hook, for example), so a
    /// panic becomes the error of the step.
    fn run_caught(
        &self,
        stream: &RawStream,
        chunk: &[RawTensor],
        state: &[RawTensor],
    ) -> Result<Parts> {
        catch_unwind(AssertUnwindSafe(|| self.run(stream, chunk, state))).unwrap_or_else(
            |payload| {
                let why = format!("a step of the stream panicked: {}", message_of(&*payload));
                Err(Error::User(why.into()))
            },
        )
    }

    fn run(&self, stream: &RawStream, chunk: &[RawTensor], state: &[RawTensor]) -> Result<Parts> {
        let arguments = chunk.iter().chain(state).chain(&self.constants);
        let arguments: SmallVec<[&RawTensor; 8]> = arguments.collect();
        let interrupt: &Interrupt<'_> = &|| stream.is_abandoned();
        let results = self.entry.run(None, &arguments, &self.options, Some(interrupt))?;
        if let Some(inspect) = &self.inspect {
            inspect(&self.entry, &arguments, &results)?;
        }
        Ok(results)
    }
}

/// Waits for a step, whose outputs become ready together. The next step takes the state if it is donated, and a
/// reader can release a result.
fn wait_for_step(outputs: &[RawTensor]) -> Result<()> {
    for output in outputs {
        match output.wait() {
            Err(_) if output.is_released()? => {}
            waited => return waited,
        }
    }
    Ok(())
}

/// The message of a panic.
fn message_of(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("the panic has no message")
}

/// Ends the stream when its thread panics, so that waiting threads wake.
struct Ending<'s>(&'s RawStream);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            let why = "a step of a stream panicked".to_owned();
            self.0.end(Err(Arc::new(Error::Internal(why))));
        }
    }
}
