//! Hooks of compiled programs: host functions that XLA calls while it runs.

use std::sync::{Arc, Mutex, PoisonError};

use nxla_expr::HostFn;
use nxla_pjrt::{HostCall as Running, HostCallTable, HostView};
use nxla_stablehlo::HostCall;
use nxla_tensor::HostTensor;

use crate::compiler::RunContext;

/// What the hooks of one run have done so far.
#[derive(Default)]
pub(super) struct HookRun {
    failure: Mutex<Option<String>>,
}

impl HookRun {
    /// The error of the first hook that failed.
    pub(super) fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn fail(&self, why: &str) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert_with(|| why.to_owned());
    }

    fn has_failed(&self) -> bool {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }
}

/// The host functions of one run by the ids of their calls: that which the caller installed under
/// the hook's name, else the hook's own.
pub(super) fn host_table(
    calls: &[HostCall],
    context: &RunContext<'_>,
    run: &Arc<HookRun>,
) -> HostCallTable {
    let table = HostCallTable::new();
    for call in calls {
        let installed =
            call.name.as_ref().zip(context.hooks).and_then(|(name, hooks)| hooks.get(name));
        let Some(function) = installed.or(call.default.as_ref()).cloned() else { continue };
        let run = run.clone();
        let host = move |call: &mut Running<'_>| show(&*function, call, &run);
        table.insert(call.id, Arc::new(host));
    }
    table
}

/// The arguments of a call before the values that are shown: the order.
const LEADING_ARGUMENTS: usize = 1;

fn show(function: &dyn HostFn, call: &mut Running<'_>, run: &HookRun) -> Result<(), String> {
    for result in &mut call.results {
        let order = call.args.first().map(HostView::to_tensor);
        if let Some(order) = order {
            result.write(&order)?;
        }
    }
    if run.has_failed() {
        // The program is ending; later hooks stay silent, as they would in program order.
        return Err("a hook before has failed".into());
    }
    let values: Vec<HostTensor> =
        call.args.iter().skip(LEADING_ARGUMENTS).map(HostView::to_tensor).collect();
    function.call(&values).inspect_err(|why| run.fail(why))
}
