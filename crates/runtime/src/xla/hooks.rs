//! Hooks of compiled programs: host functions that are called while a program runs.
//!
//! XLA calls the host on its threads, about one per core on a CPU, and other programs wait for these
//! threads. Therefore a call from XLA only copies the values into a queue. The thread that runs the
//! program pops them in order and calls the functions, which may be slow and may run programs on the
//! same device.
//!
//! The call of a runtime call also waits for the results. Meanwhile other programs cannot use the
//! waiting thread of XLA, and it may be the only one: programs of the function run on another
//! client with separate threads ([`depth`]).
//!
//! The queue is bounded: a program that is far ahead of its hooks waits for them. It does not while
//! a hook runs a program itself, which may need the very thread that would wait.

use std::cell::RefCell;
use std::sync::Arc;

use nxla_expr::Listener;
use nxla_pjrt::{self as pjrt, Buffer, Client, HostCallFrame, HostCallTable, HostView};
use nxla_stablehlo::HostCall;
use nxla_tensor::{HostTensor, Names};

use super::calls::{Calls, Reply};
use super::client::AbandonedProgram;
use crate::compiler::RunContext;
use crate::error::{Error, Result};
use crate::thresholds::PENDING_CALLS;

/// A program that runs elsewhere, and its calls to the host.
pub(super) struct Run(Calls<Call, Vec<Buffer>, pjrt::Error, AbandonedProgram>);

/// A call of a host function.
struct Call {
    /// The index of the host call in the program.
    index: usize,
    values: Vec<HostTensor>,
    /// The reply that the thread of XLA waits for, if it waits.
    reply: Option<Arc<Reply<Vec<HostTensor>>>>,
}

/// A call that is dropped unanswered, also by a panic of its function, wakes the waiting thread.
impl Drop for Call {
    fn drop(&mut self) {
        if let Some(reply) = &self.reply {
            reply.set_reply(None);
        }
    }
}

impl Run {
    pub(super) fn new() -> Self {
        Self(Calls::new(PENDING_CALLS))
    }

    /// Records the result of the start of the program.
    pub(super) fn record_start(&self, results: Result<Vec<Buffer>, pjrt::Error>) {
        self.0.record_start(results);
    }

    /// Records the end of the program.
    pub(super) fn record_end(&self, outcome: Result<(), pjrt::Error>) {
        self.0.record_end(outcome);
    }

    /// Counts the program as abandoned by its caller, unless it is over.
    pub(super) fn abandon(&self, client: &Client) {
        self.0.keep_until_end(|| AbandonedProgram::new(client));
    }

    /// Calls the function of a hook or of a runtime call.
    fn answer(
        self: &Arc<Self>,
        call: Call,
        host: &HostCall,
        context: &RunContext<'_>,
    ) -> Result<()> {
        let fail = |error| match &call.reply {
            Some(_) => Error::RuntimeCall { line: None, error },
            None => Error::Hook { name: host.hook.name.as_deref().map(Into::into), error },
        };
        let listener = listener_of(host, context);
        let Some(reply) = &call.reply else {
            let Some(listener) = listener else { return Ok(()) };
            return run_as_hook(self, false, || listener.call(&call.values)).map_err(fail);
        };
        let results = match listener {
            Some(listener) => {
                let results = host.hook.results.as_deref().unwrap_or_default();
                let compute = || listener.compute(&call.values, results);
                run_as_hook(self, true, compute).map_err(fail)
            }
            None => {
                let name = host.hook.name.as_deref().map(Into::into);
                Err(fail(nxla_eval::Fault::NoFunction { name }.to_string().into()))
            }
        };
        results.map(|results| reply.set_reply(Some(results)))
    }

    /// Calls the functions of hooks until the program is over, and returns its results.
    pub(super) fn serve(
        self: &Arc<Self>,
        calls: &[HostCall],
        context: &RunContext<'_>,
    ) -> Result<Vec<Buffer>> {
        let _leaving = Leaving(self);
        let mut failure = None;
        while let Some(call) = self.0.next(context.interrupt)? {
            if failure.is_some() {
                continue;
            }
            let host = &calls[call.index];
            if let Err(error) = self.answer(call, host, context) {
                self.0.stop();
                failure = Some(error);
            }
        }
        if let Some(failure) = failure {
            return Err(failure);
        }
        let (results, over) = self.0.outcome().expect("a finished run has one outcome");
        let results = results?;
        over?;
        Ok(results)
    }
}

/// Stops the calls of the program when dropped, also by the panic of a hook.
struct Leaving<'a>(&'a Run);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.0.stop();
    }
}

/// The listener of a call, if it has one.
fn listener_of<'a>(call: &'a HostCall, context: &RunContext<'a>) -> Option<Listener<'a>> {
    let named = call.hook.listener_name().zip(context.hooks);
    call.hook.listener(named.and_then(|(name, hooks)| hooks.get(name)), context.own_hooks)
}

/// The host functions of one run by the ids of their calls. All of them put the call into its
/// queue.
pub(super) fn host_table(calls: &[HostCall], run: &Arc<Run>) -> HostCallTable {
    let table = HostCallTable::new();
    for (index, call) in calls.iter().enumerate() {
        let run = run.clone();
        // XLA knows no names.
        let names: Vec<_> = call.arguments.iter().map(|ty| ty.names.clone()).collect();
        table.insert(
            call.id,
            Arc::new(move |frame: &mut HostCallFrame<'_>| receive_call(index, frame, &names, &run)),
        );
    }
    table
}

/// The number of arguments before the values of a hook: the hook token.
const LEADING_ARGUMENTS: usize = 1;

/// Puts a call into the queue of its run; `names` are the axis names of its values.
fn receive_call(
    index: usize,
    call: &mut HostCallFrame<'_>,
    names: &[Option<Names>],
    run: &Run,
) -> Result<(), String> {
    let token = call.args.first().map(HostView::to_tensor);
    if let (Some(token), Some(result)) = (token, call.results.first_mut()) {
        result.write(&token)?;
    }
    let values = call.args.iter().skip(LEADING_ARGUMENTS).zip(names);
    let values: Vec<HostTensor> = values
        .map(|(value, names)| value.to_tensor().with_names(names.clone()))
        .collect::<Result<_, _>>()
        .map_err(|error| error.to_string())?;
    let bytes = values.iter().map(|value| value.bytes().len()).sum();
    let buffers = call.results.get_mut(1..).unwrap_or_default();
    let reply = (!buffers.is_empty()).then(|| Arc::new(Reply::new()));
    run.0.push(Call { index, values, reply: reply.clone() }, bytes)?;
    if let Some(reply) = reply {
        let results = reply.take().ok_or("a host function has failed")?;
        for (result, tensor) in buffers.iter_mut().zip(results) {
            result.write(&tensor)?;
        }
    }
    Ok(())
}

thread_local! {
    /// The runs whose hooks this thread is in, the innermost last, and for each whether a thread of
    /// XLA waits for it.
    static SERVING: RefCell<Vec<(Arc<Run>, bool)>> = const { RefCell::new(Vec::new()) };
}

/// Returns the number of nested runtime calls on this thread. Each of them occupies a thread of a
/// client.
pub(super) fn depth() -> usize {
    SERVING.with_borrow(|stack| stack.iter().filter(|(_, awaited)| *awaited).count())
}

/// Calls a function as a hook of a run, or as a runtime call, which is awaited.
fn run_as_hook<T>(run: &Arc<Run>, awaited: bool, call: impl FnOnce() -> T) -> T {
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            SERVING.with_borrow_mut(Vec::pop);
        }
    }
    SERVING.with_borrow_mut(|stack| stack.push((run.clone(), awaited)));
    let _leave = Leave;
    call()
}

/// A program that a hook runs. Meanwhile the outer programs do not wait for other calls.
pub(super) struct Nested(Vec<Arc<Run>>);

/// Returns a guard to hold while a program runs inside of a hook; `None` outside of hooks.
pub(super) fn enter_nested() -> Option<Nested> {
    let outer: Vec<Arc<Run>> =
        SERVING.with_borrow(|stack| stack.iter().map(|(run, _)| run.clone()).collect());
    if outer.is_empty() {
        return None;
    }
    for run in &outer {
        run.0.begin_nested();
    }
    Some(Nested(outer))
}

impl Drop for Nested {
    fn drop(&mut self) {
        for run in &self.0 {
            run.0.end_nested();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn call() -> Call {
        Call { index: 0, values: Vec::new(), reply: None }
    }

    #[test]
    fn programs_wait_for_room_except_during_nested_runs() {
        let run = Arc::new(Run::new());
        for _ in 0..PENDING_CALLS.calls {
            run.0.push(call(), 0).unwrap();
        }
        let ahead = std::thread::spawn({
            let run = run.clone();
            move || (0..3).try_for_each(|_| run.0.push(call(), 0))
        });
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(run.0.pending_calls(), PENDING_CALLS.calls);
        run.0.next(None).unwrap().unwrap();
        let nested = run_as_hook(&run, false, enter_nested);
        ahead.join().unwrap().unwrap();
        assert_eq!(run.0.pending_calls(), PENDING_CALLS.calls + 2);
        drop(nested);
        run.0.stop();
        assert!(run.0.push(call(), 0).is_err());
    }
}
