//! `auto`: a compiler that chooses between the evaluator and XLA.
//!
//! This module has all of the policy: [`policy`] decides by the limits in [`crate::thresholds`], and
//! [`AutoExecutable`] runs each call on the chosen backend. The cost model of stages
//! ([`nxla_split::estimate_of`]) estimates programs.

mod executable;
mod explain;
mod policy;

use std::any::Any;
use std::sync::Arc;

pub(crate) use executable::AutoExecutable;
pub use explain::Explanation;
pub(crate) use explain::Timing;
#[cfg(feature = "xla")]
pub(crate) use policy::has_loops;
pub(crate) use policy::{estimate, slow_seconds, xla_settings};

use crate::compiler::{
    CompileRequest, Compiler, Executable, Purpose, check_settings, compiler_named,
};
use crate::device::Device;
use crate::error::Result;
use crate::options::{AUTO_SETTINGS, Options, Settings};

use self::executable::results_device;
use self::policy::Limits;

/// Chooses between the evaluator and XLA for each program and call; named `"auto"`.
///
/// On a CPU, XLA runs the programs whose time is mostly the overhead of nodes in loops: the first two
/// calls run on the evaluator while XLA compiles, or none if they are slow. All calls of other
/// programs run on the evaluator. On other devices XLA runs all calls, and without an XLA plugin the
/// evaluator does. The choice depends on the program and the number of the call, never on a clock.
/// Results of both backends are on XLA's device.
///
/// Settings: the settings of [`Xla`](crate::xla::Xla), `compile_above` (the estimate in
/// microseconds up to which a program runs on the evaluator; 500 by default, 0 for no program) and
/// `compile_after` (the number of calls that run on the evaluator for each signature; XLA compiles
/// during the last one). With one of them, XLA runs the later calls of all other programs.
#[derive(Clone, Copy, Debug)]
pub struct Auto;

const NAME: &str = "auto";

/// Returns `true` if a compiler is [`Auto`].
pub(crate) fn is_auto(compiler: &dyn Compiler) -> bool {
    let compiler: &dyn Any = compiler;
    compiler.is::<Auto>()
}

impl Compiler for Auto {
    fn name(&self) -> &str {
        NAME
    }

    fn compile(&self, request: &CompileRequest<'_>) -> Result<Arc<dyn Executable>> {
        let listening = Options::with_hook_names(request.listeners);
        let options = Options { settings: request.settings.clone(), ..listening };
        let CompileRequest { program, device, donated, .. } = *request;
        let purpose = Purpose::Compile;
        Ok(Arc::new(AutoExecutable::new(purpose, program, &options, device, donated, None)?))
    }

    fn check_device(&self, _: &Device) -> Result<()> {
        Ok(())
    }

    fn resolves_hooks(&self) -> bool {
        true
    }

    fn compiles_elsewhere(&self) -> bool {
        true
    }

    fn check_settings(&self, settings: &Settings) -> Result<()> {
        Limits::of(settings)?;
        match compiler_named("xla") {
            Ok(xla) => xla.check_settings(&xla_settings(settings)),
            Err(_) => check_settings(NAME, settings, &AUTO_SETTINGS),
        }
    }

    fn partitions(&self, settings: &Settings) -> Result<Vec<Settings>> {
        let own = settings.iter().filter(|(name, _)| AUTO_SETTINGS.contains(&name.as_str()));
        let own: Settings = own.map(|(name, value)| (name.clone(), value.clone())).collect();
        let others = xla_settings(settings);
        let Some(_) = results_device(&others, None)? else { return Ok(vec![settings.clone()]) };
        let mut partitions = compiler_named("xla")?.partitions(&others)?;
        partitions.iter_mut().for_each(|settings| settings.extend(own.clone()));
        Ok(partitions)
    }

    fn results_device(&self, settings: &Settings) -> Result<Device> {
        Ok(results_device(&xla_settings(settings), None)?.unwrap_or(Device::HOST))
    }
}
