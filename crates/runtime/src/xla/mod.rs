//! XLA as a compiler: programs become StableHLO text, which a PJRT plugin compiles.
//!
//! The plugin is a shared library that is looked for when XLA is first asked for, and only then:
//! the setting `plugin`, the environment variable `NXLA_PJRT_PLUGIN`, then the Python packages at
//! hand (see [`discover`](nxla_pjrt::discover)). Each plugin and device count has one client,
//! made on first use and kept, because results of one client cannot be used by another without a
//! copy.
//!
//! ```no_run
//! use nxla::{Expr, Tensor, jit};
//!
//! let f = jit(|[x]: [Expr; 1]| x.sin()).compiler("xla");
//! let y = f.call([&Tensor::from(1.0f32)])?;
//! # Ok::<(), nxla::Error>(())
//! ```

mod client;
mod executable;
mod hooks;
mod kernels;

use std::sync::Arc;

use nxla_pjrt::{CompileOptions, Value};
use nxla_stablehlo::{LowerOptions, Precision, STRICT_OPTIONS, lower};

use crate::compiler::{Backend, CompileRequest, Compiler, Executable, check_settings};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::options::{Setting, Settings};

pub use client::{Target, target};
pub(crate) use client::{come_back, leave_behind};

/// Compiles with XLA; named `"xla"`.
///
/// Settings: `plugin` (path of a PJRT plugin), `device` (its number, 0 by default),
/// `cpu_device_count` (how many devices a CPU plugin makes), `precision` of products on hardware
/// that can trade it (`"default"`, `"high"`, `"highest"`), `kernels` (whether the evaluator computes
/// what XLA's code for processors does slowly: factorisations, triangular matrices, large sorts and
/// scans; by default where the device is the host's processor and the plugin can call the host).
/// Without kernels `lu`, `qr`, `eigh` and `svd`, and what is made of them, are loops of simpler
/// operations.
#[derive(Clone, Copy, Debug)]
pub struct Xla;

const NAME: &str = "xla";
const SETTINGS: &[&str] = &["plugin", "device", "cpu_device_count", "precision", "kernels"];

/// Those of the settings that say where programs run, in place of a [`Device`].
pub(crate) const PLACING: [&str; 3] = ["plugin", "device", "cpu_device_count"];

impl Compiler for Xla {
    fn name(&self) -> &str {
        NAME
    }

    fn compile(&self, request: &CompileRequest<'_>) -> Result<Arc<dyn Executable>> {
        check_settings(NAME, request.settings, SETTINGS)?;
        let precision = precision(request.settings)?;
        let target = target_of(request.settings, request.device)?;
        let module = lower(
            request.program,
            &LowerOptions {
                active_hooks: &|hook| request.listens(hook),
                donated: request.donated,
                host_calls: target.client.plugin().supports_ffi(),
                kernels: kernels(request.settings, &target)?,
                locations: true,
                precision,
            },
        )?;
        let mut options = CompileOptions::on(target.description());
        if target.is_cpu() {
            let strict = STRICT_OPTIONS.iter();
            options.overrides =
                strict.map(|&(name, value)| (name.to_owned(), Value::Bool(value))).collect();
        }
        let compiled = target.client.compile(&module.text, &options)?;
        Ok(Arc::new(executable::Compiled::new(target, compiled, module, request)))
    }

    fn check_device(&self, device: &Device) -> Result<()> {
        match device.client() {
            Some(_) => Ok(()),
            None => Err(Error::Options("the compiler \"xla\" does not run on the host".into())),
        }
    }

    fn resolves_hooks(&self) -> bool {
        true
    }

    fn compiles_elsewhere(&self) -> bool {
        true
    }

    fn partitions(&self, settings: &Settings) -> Result<Vec<Settings>> {
        check_settings(NAME, settings, SETTINGS)?;
        let target = target(settings)?;
        let on = |device: usize| {
            let device = i64::try_from(device).expect("a device number is small");
            let mut settings = settings.clone();
            settings.insert("device".into(), Setting::Int(device));
            settings
        };
        Ok((0..target.client.devices().len()).map(on).collect())
    }

    fn device(&self, settings: &Settings) -> Result<Device> {
        check_settings(NAME, settings, SETTINGS)?;
        target(settings)?.device()
    }

    fn backend(&self, settings: &Settings) -> Result<Backend> {
        let device = self.device(settings)?;
        Ok(Backend { platform: device.platform().to_owned(), device: device.index() })
    }
}

/// Where a program is to run: on a device that was named as such, or that settings describe.
fn target_of(settings: &Settings, device: Option<&Device>) -> Result<Target> {
    let Some((client, index)) = device.and_then(|it| Some((it.client()?, it.index()))) else {
        return target(settings);
    };
    match PLACING.iter().find(|name| settings.contains_key(**name)) {
        None => Ok(Target::of(client, index)),
        Some(name) => Err(Error::Options(format!(
            "the option {name:?} of the compiler \"xla\" says where to run, and so does the device \
             that is given; leave one of them out"
        ))),
    }
}

/// Whether programs for a device call kernels; makes them callable.
fn kernels(settings: &Settings, target: &Target) -> Result<bool> {
    let possible = target.is_cpu() && target.client.plugin().supports_ffi();
    let wanted = match settings.get("kernels") {
        None => possible,
        Some(Setting::Bool(wanted)) => *wanted,
        Some(other) => {
            let why =
                format!("option \"kernels\" of the compiler \"xla\" is true or false, not {other}");
            return Err(Error::Options(why));
        }
    };
    if wanted && !possible {
        let platform = target.client.platform_name();
        let why = format!("programs for the platform {platform:?} cannot call kernels");
        return Err(Error::Options(why));
    }
    if wanted {
        kernels::install();
    }
    Ok(wanted)
}

fn precision(settings: &Settings) -> Result<Precision> {
    match settings.get("precision") {
        None => Ok(Precision::Default),
        Some(Setting::Text(name)) if name == "default" => Ok(Precision::Default),
        Some(Setting::Text(name)) if name == "high" => Ok(Precision::High),
        Some(Setting::Text(name)) if name == "highest" => Ok(Precision::Highest),
        Some(other) => Err(Error::Options(format!(
            "option \"precision\" of the compiler \"xla\" must be \"default\", \"high\" or \
             \"highest\", got {other}"
        ))),
    }
}
