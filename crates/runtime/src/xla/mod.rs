//! XLA as a compiler: programs become StableHLO modules, which a PJRT plugin compiles.
//!
//! The plugin is a shared library. The first use of XLA searches for it: in the setting `plugin`,
//! the environment variable `NXLA_PJRT_PLUGIN`, then the installed Python packages (see
//! [`discover`](nxla_pjrt::discover)). Each plugin and device count has one client, which is created
//! on first use and kept, because another client cannot use its results without a copy.
//!
//! ```no_run
//! use nxla::{Expr, Tensor, jit};
//!
//! let f = jit(|[x]: [Expr; 1]| x.sin()).compiler("xla");
//! let y = f.call([&Tensor::from(1.0f32)])?;
//! # Ok::<(), nxla::Error>(())
//! ```

mod analysis;
mod calls;
mod client;
mod disk;
mod executable;
mod foreign;
mod hooks;
#[cfg(feature = "import")]
mod import;
mod kernels;
mod processor;
mod registry;
mod settings;
mod spmd;
mod text;

use std::sync::Arc;

use nxla_expr::Graph;
use nxla_pjrt::{self as pjrt, CompileOptions, ErrorCode};
use nxla_stablehlo::{LowerOptions, LoweredModule, lower};
use nxla_tensor::TensorError;

use crate::compiler::{CompileRequest, Compiler, Executable};
use crate::device::Device;
use crate::error::{Error, ErrorClass, Result};
use crate::options::{DEVICE_SETTINGS, Setting, Settings};
use crate::profile::{self, Work};

use self::disk::DiskCache;
use self::executable::{ProgramInfo, XlaExecutable};
use self::settings::Kernels;

pub use crate::analysis::Analysis;
pub(crate) use calls::Room;
pub(crate) use client::{AbandonedProgram, load_default_client};
pub use client::{Target, client_options, target};
pub use disk::{
    CACHE_BYTES_VARIABLE, CACHE_VARIABLE, DiskEntry, DiskReport, check_disk_cache,
    clear_disk_cache, disk_entries, disk_report,
};
#[doc(hidden)]
pub use foreign::{
    copy_foreign, cuda_device, cuda_number, is_aligned_for, known_cuda_device, lend, view_foreign,
    wait_for_default_stream,
};
#[cfg(feature = "import")]
pub use import::Imported;
pub(crate) use nxla_stablehlo::LowerError;
pub(crate) use registry::{known_clients, ordinal, original};
pub use spmd::Divided;
pub(crate) use spmd::mesh_devices;
pub use text::{stablehlo_text, with_literals};

/// Compiles with XLA; named `"xla"`.
///
/// Settings:
///
/// * `plugin`: the path of a PJRT plugin.
/// * `device`: the index of the device, 0 by default.
/// * `cpu_device_count`: the number of devices of a CPU plugin.
/// * `preallocate`: `true` reserves most of the memory of GPUs in advance; the default is `false`.
/// * `precision`: `"default"`, `"high"` or `"highest"` for products on hardware with a choice.
/// * `kernels`: `true` computes some ops by custom calls. On the processor of the host, the evaluator
///   computes factorizations, triangular and linear solves, sorts, top-k, cumulative reductions and
///   Fourier transforms. On CUDA devices, cuSOLVER computes factorizations. This is the default if the
///   plugin supports such calls and, for CUDA, if cuSOLVER is installed. Without kernels, `lu`, `qr`,
///   `eigh`, `svd` and ops based on them are loops of simpler operations.
/// * `cache_dir`: the folder of executables for other processes; by default `NXLA_CACHE_DIR`.
/// * `cache_bytes`: the size limit of the folder; by default `NXLA_CACHE_BYTES`.
/// * Flags of XLA by their names, which start with `xla_`.
#[derive(Clone, Copy, Debug)]
pub struct Xla;

const NAME: &str = "xla";

/// The compiler.
pub(crate) fn compiler() -> Option<Arc<dyn Compiler>> {
    Some(Arc::new(Xla))
}

/// The kind of mistake that an error of a plugin reports.
pub(crate) fn class_of(error: &pjrt::Error) -> ErrorClass {
    match error {
        pjrt::Error::SerializedDamaged { .. } => ErrorClass::Format,
        pjrt::Error::Tensor(TensorError::OutOfMemory { .. })
        | pjrt::Error::Plugin { code: ErrorCode::RESOURCE_EXHAUSTED, .. }
        | pjrt::Error::Compile { code: ErrorCode::RESOURCE_EXHAUSTED, .. } => ErrorClass::Memory,
        _ => ErrorClass::Device,
    }
}

/// The class of an error of lowering.
pub(crate) fn class_of_lowering(error: &LowerError) -> ErrorClass {
    match error {
        LowerError::TooLarge { .. } => ErrorClass::Memory,
        _ => ErrorClass::Device,
    }
}

impl Compiler for Xla {
    fn name(&self) -> &str {
        NAME
    }

    fn compile(&self, request: &CompileRequest<'_>) -> Result<Arc<dyn Executable>> {
        settings::check(request.settings)?;
        let target = target_of(request.settings, request.device)?;
        Ok(Arc::new(compile_for_target(request, target)?))
    }

    fn check_device(&self, device: &Device) -> Result<()> {
        match device.client() {
            Some(_) => Ok(()),
            None => Err(Error::Options(
                "compiler: \"xla\" does not support the host; it runs on devices of a plugin"
                    .into(),
            )),
        }
    }

    fn resolves_hooks(&self) -> bool {
        true
    }

    fn compiles_elsewhere(&self) -> bool {
        true
    }

    fn check_settings(&self, settings: &Settings) -> Result<()> {
        settings::check_all(settings)
    }

    fn partitions(&self, settings: &Settings) -> Result<Vec<Settings>> {
        settings::check(settings)?;
        let target = target(settings)?;
        let on = |device: usize| {
            let device = i64::try_from(device).expect("a device number is small");
            let mut settings = settings.clone();
            settings.insert("device".into(), Setting::Int(device));
            settings
        };
        Ok((0..target.client.devices().len()).map(on).collect())
    }

    fn results_device(&self, settings: &Settings) -> Result<Device> {
        settings::check(settings)?;
        target(settings)?.device()
    }
}

/// Compiles a program for a device.
fn compile_for_target(request: &CompileRequest<'_>, target: Target) -> Result<XlaExecutable> {
    let module = lower_for_target(request, &target)?;
    let executable = compile_text(&target, &module.text, request.settings)?;
    Ok(XlaExecutable::new(target, executable, ProgramInfo::program(module, request)))
}

/// Lowers a program for a device.
fn lower_for_target(request: &CompileRequest<'_>, target: &Target) -> Result<LoweredModule> {
    let _span = profile::span(Work::Compile, "lower to StableHLO");
    let kernels = settings::kernels(request.settings, target)?;
    let is_library_call =
        |graph: &Graph, id| kernels::is_library_call(graph, id) && target.client.factorizes();
    let options = LowerOptions {
        active_hooks: &|hook| request.listens(hook),
        donated: request.donated,
        host_calls: target.client.calls_host(),
        custom_call: (kernels == Some(Kernels::Evaluator)).then_some(&kernels::is_custom_call),
        library_call: (kernels == Some(Kernels::CuSolver)).then_some(&is_library_call),
        materialize_by_calls: target.is_cpu(),
        scatters_in_order: target.is_cpu(),
        locations: true,
        precision: settings::precision(request.settings)?,
        partition: None,
    };
    Ok(lower(request.program, &options)?)
}

/// Compiles a StableHLO module, or loads its executable from the disk.
fn compile_text(
    target: &Target,
    text: &str,
    settings: &Settings,
) -> Result<pjrt::LoadedExecutable> {
    compile_with(target, text, &settings::compile_options(settings, target), settings)
}

/// Compiles a StableHLO module with these options, or loads its executable from the disk.
fn compile_with(
    target: &Target,
    text: &str,
    options: &CompileOptions,
    settings: &Settings,
) -> Result<pjrt::LoadedExecutable> {
    let compile = || {
        settings::check_flags(settings, target)?;
        let _span = profile::span(Work::Compile, "compile by XLA");
        Ok(target.client.compile(text, options)?)
    };
    match DiskCache::of(settings)? {
        Some(cache) => cache.get_or_compile(target, text, options, compile),
        None => compile(),
    }
}

/// Returns the device that programs with these settings run on; `None` if no plugin is installed.
///
/// # Errors
/// Returns an error for invalid settings, and errors of an installed plugin.
pub(crate) fn installed_device(
    settings: &Settings,
    device: Option<&Device>,
) -> Result<Option<Device>> {
    settings::check(settings)?;
    match target_of(settings, device) {
        Ok(target) => target.device().map(Some),
        Err(Error::Pjrt(pjrt::Error::NoPlugin { .. })) => Ok(None),
        // The variable of the environment is not an option of this program.
        Err(Error::Pjrt(pjrt::Error::NoPluginFor { .. })) if !settings.contains_key("plugin") => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Returns an error if the plugin of the device, or else of the settings, refuses a flag.
pub(crate) fn check_flags(settings: &Settings, device: Option<&Device>) -> Result<()> {
    settings::check_flags(settings, &target_of(settings, device)?)
}

/// The target of a program: the named device, or the device that settings describe.
fn target_of(settings: &Settings, device: Option<&Device>) -> Result<Target> {
    let Some((client, index)) = device.and_then(|it| Some((it.client()?, it.index()))) else {
        return target(settings);
    };
    match DEVICE_SETTINGS.iter().find(|name| settings.contains_key(**name)) {
        None => Ok(Target::of(client, index)),
        Some(name) => Err(Error::Options(format!(
            "option {name:?} of the compiler \"xla\": must not be set together with device"
        ))),
    }
}

#[cfg(test)]
mod tests;
