//! Hooks of compiled programs: host functions that are called while a program runs.
//!
//! XLA calls the host on threads of its own, of which a CPU has about one per core, and other
//! programs wait for those threads. So the call that XLA makes only copies the values into a
//! queue. The thread that runs the program takes them out, in order, and calls the functions: they
//! may take their time and run programs on the same device.
//!
//! The call of a runtime call also waits for the results. The thread of XLA that waits is lost to
//! other programs for so long, and there may be no other: what its function runs goes to another
//! client, which has threads of its own ([`depth`]).
//!
//! The queue is bounded: a program that is far ahead of its hooks waits for them. It does not while
//! a hook runs a program itself, which may need the very thread that would wait.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nxla_eval::Interrupt;
use nxla_expr::Listener;
use nxla_pjrt::{self as pjrt, Buffer, Client, HostCall as Running, HostCallTable, HostView};
use nxla_stablehlo::HostCall;
use nxla_tensor::HostTensor;

use super::client;
use crate::background::{ASK_EVERY, interrupted};
use crate::compiler::RunContext;
use crate::error::{Error, Result};

/// How many calls may wait.
const MAX_CALLS: usize = 256;

/// How many bytes of values may wait, unless a single call has more.
const MAX_BYTES: usize = 64 << 20;

/// How long a program waits at most for room. Only a hook that waits for another thread, which
/// in turn waits for the device, ever lets it wait that long.
const PATIENCE: Duration = Duration::from_secs(1);

/// A program that runs elsewhere, and its calls to the host.
#[derive(Default)]
pub(super) struct Run {
    state: Mutex<State>,
    /// Something for the caller to do.
    arrived: Condvar,
    /// Room for another call.
    room: Condvar,
}

#[derive(Default)]
struct State {
    calls: VecDeque<Call>,
    bytes: usize,
    /// How many programs the hooks of this run are waiting for.
    nested: usize,
    /// Nobody wants the calls any more.
    stopped: bool,
    /// What starting the program gave.
    results: Option<Result<Vec<Buffer>, pjrt::Error>>,
    /// Whether no call can come any more, and how the program ended.
    over: Option<Result<(), pjrt::Error>>,
    /// The client that was left behind with the program.
    left_behind: Option<Client>,
}

/// One call of the host.
struct Call {
    /// Which of the program's host calls.
    place: usize,
    values: Vec<HostTensor>,
    bytes: usize,
    /// Where the thread of XLA waits for results, if it does.
    reply: Option<Arc<Reply>>,
}

/// What the function of a runtime call gives, for the thread of XLA that waits for it.
#[derive(Default)]
struct Reply {
    state: Mutex<ReplyState>,
    arrived: Condvar,
}

#[derive(Default)]
enum ReplyState {
    #[default]
    Awaited,
    Given(Vec<HostTensor>),
    /// There will be no results: the function has failed, or nobody calls it any more.
    Never,
}

impl Reply {
    /// Answers, unless there is an answer already.
    fn give(&self, answer: ReplyState) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*state, ReplyState::Awaited) {
            *state = answer;
        }
        self.arrived.notify_all();
    }

    /// Waits for the results.
    fn take(&self) -> Result<Vec<HostTensor>, String> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.arrived.wait_while(state, |state| matches!(state, ReplyState::Awaited));
        match std::mem::take(&mut *waited.unwrap_or_else(PoisonError::into_inner)) {
            ReplyState::Given(results) => Ok(results),
            ReplyState::Awaited | ReplyState::Never => Err("a host function has failed".into()),
        }
    }
}

/// A call that nobody gets to any more, or whose function panics, leaves nobody waiting.
impl Drop for Call {
    fn drop(&mut self) {
        if let Some(reply) = &self.reply {
            reply.give(ReplyState::Never);
        }
    }
}

impl Run {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The program was started, or was not.
    pub(super) fn started(&self, results: Result<Vec<Buffer>, pjrt::Error>) {
        let mut state = self.lock();
        if results.is_err() {
            state.over = Some(Ok(()));
        }
        state.results = Some(results);
        self.arrived.notify_all();
    }

    /// Leaves the client behind unless the program is over.
    pub(super) fn leave_behind(&self, client: &Client) {
        let mut state = self.lock();
        if state.over.is_none() && state.left_behind.is_none() {
            client::leave_behind(client);
            state.left_behind = Some(client.clone());
        }
    }

    /// The program has ended.
    pub(super) fn ended(&self, outcome: Result<(), pjrt::Error>) {
        let mut state = self.lock();
        state.over = Some(outcome);
        if let Some(client) = state.left_behind.take() {
            client::come_back(&client);
        }
        drop(state);
        self.arrived.notify_all();
    }

    /// Takes a call from a thread of XLA.
    fn push(&self, call: Call) -> Result<(), String> {
        let is_full = |state: &mut State| {
            let crowded = state.calls.len() >= MAX_CALLS || state.bytes + call.bytes > MAX_BYTES;
            crowded && !state.calls.is_empty() && state.nested == 0 && !state.stopped
        };
        let waited = self.room.wait_timeout_while(self.lock(), PATIENCE, is_full);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if state.stopped {
            // The program is ending; later hooks stay silent, as they would in program order.
            return Err("a hook before has failed".into());
        }
        state.bytes += call.bytes;
        state.calls.push_back(call);
        self.arrived.notify_all();
        Ok(())
    }

    /// The next call; `None` when the program is over.
    fn next(&self, interrupt: Option<&Interrupt<'_>>) -> Result<Option<Call>> {
        let mut state = self.lock();
        loop {
            if let Some(call) = state.calls.pop_front() {
                state.bytes -= call.bytes;
                self.room.notify_all();
                return Ok(Some(call));
            }
            if state.results.is_some() && state.over.is_some() {
                return Ok(None);
            }
            let Some(interrupt) = interrupt else {
                state = self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let waited = self.arrived.wait_timeout(state, ASK_EVERY);
            let (guard, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            state = guard;
            if timeout.timed_out() {
                // Asking may run the user's signal handlers: not under the lock.
                drop(state);
                if interrupt() {
                    return Err(interrupted());
                }
                state = self.lock();
            }
        }
    }

    fn stop(&self) {
        let mut state = self.lock();
        state.stopped = true;
        // Those who wait for results are told that there will be none.
        state.calls.clear();
        state.bytes = 0;
        drop(state);
        self.room.notify_all();
    }

    /// Calls the function of a hook or of a runtime call.
    fn answer(
        self: &Arc<Self>,
        call: Call,
        host: &HostCall,
        context: &RunContext<'_>,
    ) -> Result<()> {
        let fail = |error| Error::Hook { name: host.name.as_deref().map(Into::into), error };
        let listener = listener_of(host, context);
        let Some(reply) = &call.reply else {
            let Some(listener) = listener else { return Ok(()) };
            return serving(self, false, || listener.call(&call.values)).map_err(fail);
        };
        let results = match listener {
            Some(listener) => {
                let compute = || listener.compute(&call.values, &host.results);
                serving(self, true, compute).map_err(fail)
            }
            None => Err(fail(nxla_eval::Fault::NoFunction.to_string().into())),
        };
        results.map(|results| reply.give(ReplyState::Given(results)))
    }

    /// Calls the functions of hooks until the program is over, and gives its results.
    pub(super) fn serve(
        self: &Arc<Self>,
        calls: &[HostCall],
        context: &RunContext<'_>,
    ) -> Result<Vec<Buffer>> {
        let _leaving = Leaving(self);
        let mut failure = None;
        loop {
            let call = match self.next(context.interrupt) {
                Ok(Some(call)) => call,
                Ok(None) => break,
                Err(error) => return Err(error),
            };
            if failure.is_some() {
                continue;
            }
            let host = &calls[call.place];
            if let Err(error) = self.answer(call, host, context) {
                self.stop();
                failure = Some(error);
            }
        }
        if let Some(failure) = failure {
            return Err(failure);
        }
        let mut state = self.lock();
        let (results, over) = (state.results.take(), state.over.take());
        let results = results.expect("a run that is over has been started")?;
        over.expect("a run that is over has ended")?;
        Ok(results)
    }
}

/// Tells the program that nobody calls its hooks any more, also when one has panicked.
struct Leaving<'a>(&'a Run);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Who is shown the values of a call, if anybody.
fn listener_of<'a>(call: &'a HostCall, context: &RunContext<'a>) -> Option<Listener<'a>> {
    let installed = call.name.as_ref().zip(context.hooks).and_then(|(name, hooks)| hooks.get(name));
    let own = call.slot.and_then(|slot| context.own_hooks.get(slot as usize));
    Listener::of(installed, own.or(call.default.as_ref()))
}

/// The host functions of one run by the ids of their calls. All of them put the call into its
/// queue.
pub(super) fn host_table(calls: &[HostCall], run: &Arc<Run>) -> HostCallTable {
    let table = HostCallTable::new();
    for (place, call) in calls.iter().enumerate() {
        let run = run.clone();
        table.insert(call.id, Arc::new(move |call: &mut Running<'_>| take(place, call, &run)));
    }
    table
}

/// The arguments of a call before the values that are shown: the order.
const LEADING_ARGUMENTS: usize = 1;

fn take(place: usize, call: &mut Running<'_>, run: &Run) -> Result<(), String> {
    let order = call.args.first().map(HostView::to_tensor);
    if let (Some(order), Some(result)) = (order, call.results.first_mut()) {
        result.write(&order)?;
    }
    let values: Vec<HostTensor> =
        call.args.iter().skip(LEADING_ARGUMENTS).map(HostView::to_tensor).collect();
    let bytes = values.iter().map(|value| value.bytes().len()).sum();
    let given = call.results.get_mut(1..).unwrap_or_default();
    let reply = (!given.is_empty()).then(Arc::<Reply>::default);
    run.push(Call { place, values, bytes, reply: reply.clone() })?;
    if let Some(reply) = reply {
        for (result, tensor) in given.iter_mut().zip(reply.take()?) {
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

/// In how many runtime calls this thread is: each holds a thread of a client.
pub(super) fn depth() -> usize {
    SERVING.with_borrow(|stack| stack.iter().filter(|(_, awaited)| *awaited).count())
}

/// Calls a function as a hook of a run, or as a runtime call, which is awaited.
fn serving<T>(run: &Arc<Run>, awaited: bool, call: impl FnOnce() -> T) -> T {
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

/// A program that a hook runs. The programs whose hooks it belongs to wait for nothing meanwhile.
pub(super) struct Nested(Vec<Arc<Run>>);

/// To be held while a program runs; `None` outside of hooks.
pub(super) fn nested() -> Option<Nested> {
    let outer: Vec<Arc<Run>> =
        SERVING.with_borrow(|stack| stack.iter().map(|(run, _)| run.clone()).collect());
    if outer.is_empty() {
        return None;
    }
    for run in &outer {
        run.lock().nested += 1;
        run.room.notify_all();
    }
    Some(Nested(outer))
}

impl Drop for Nested {
    fn drop(&mut self) {
        for run in &self.0 {
            run.lock().nested -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call() -> Call {
        Call { place: 0, values: Vec::new(), bytes: 0, reply: None }
    }

    #[test]
    fn a_program_waits_for_room_unless_a_hook_runs_a_program() {
        let run = Arc::new(Run::default());
        for _ in 0..MAX_CALLS {
            run.push(call()).unwrap();
        }
        let ahead = std::thread::spawn({
            let run = run.clone();
            move || (0..3).try_for_each(|_| run.push(call()))
        });
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(run.lock().calls.len(), MAX_CALLS);
        run.next(None).unwrap().unwrap();
        let nested = serving(&run, false, nested);
        ahead.join().unwrap().unwrap();
        assert_eq!(run.lock().calls.len(), MAX_CALLS + 2);
        drop(nested);
        run.stop();
        assert!(run.push(call()).is_err());
    }
}
