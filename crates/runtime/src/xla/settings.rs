//! The settings of XLA.

use nxla_pjrt::{self as pjrt, CompileOptions, NamedValue};
use nxla_stablehlo::Precision;

use super::client::{Target, check_device_settings};
use super::{NAME, kernels};
use crate::compiler::check_settings;
use crate::error::{Error, Result};
use crate::options::{KERNELS, Setting, Settings};

const SETTINGS: &[&str] = &[
    "plugin",
    "device",
    "cpu_device_count",
    "preallocate",
    "precision",
    KERNELS,
    "cache_dir",
    "cache_bytes",
    "xla_… (its own flags)",
];

/// The flags of XLA with which its compilers follow StableHLO.
fn default_flags(target: &Target) -> impl Iterator<Item = (&'static str, NamedValue)> {
    // Narrow floats would keep excess precision between fused operations, and a conversion to a
    // narrower float and back would be left out.
    let general = [("xla_allow_excess_precision", NamedValue::Bool(false))];
    general.into_iter().chain(target.is_cpu().then(cpu_flags).into_iter().flatten())
}

fn cpu_flags() -> [(&'static str, NamedValue); 2] {
    [
        // A fast maximum ignores NaN in its right operand.
        ("xla_cpu_enable_fast_min_max", NamedValue::Bool(false)),
        // The list of fusions by the library YNN is empty: the pass that looks for such fusions ends
        // the process for some products of reshaped matrices.
        ("xla_cpu_experimental_ynn_fusion_type", NamedValue::String(String::new())),
    ]
}

/// The prefix of XLA's flags, which are passed to the plugin unchanged and checked by the plugin.
const FLAG: &str = "xla_";

/// Rejects unknown settings.
pub(super) fn check(settings: &Settings) -> Result<()> {
    let mut own = settings.clone();
    own.retain(|name, _| !name.starts_with(FLAG));
    check_settings(NAME, &own, SETTINGS)
}

/// Checks settings and their values, without loading a plugin.
pub(super) fn check_all(settings: &Settings) -> Result<()> {
    check(settings)?;
    precision(settings)?;
    wants_kernels(settings)?;
    check_device_settings(settings)
}

/// A program without an operation, which the plugin compiles to check flags.
const EMPTY: &str = "module @flags { func.func public @main() { return } }";

/// Returns an error if the plugin refuses a flag. The plugin checks flags only when it compiles.
pub(super) fn check_flags(settings: &Settings, target: &Target) -> Result<()> {
    if !settings.keys().any(|name| name.starts_with(FLAG)) {
        return Ok(());
    }
    match target.client.compile(EMPTY, &compile_options(settings, target)) {
        Ok(_) => Ok(()),
        Err(pjrt::Error::Compile { message, .. }) => Err(Error::Options(format!(
            "options of the compiler \"xla\": XLA refuses a flag: {message}"
        ))),
        Err(error) => Err(error.into()),
    }
}

/// The options with which a device compiles a module.
pub(super) fn compile_options(settings: &Settings, target: &Target) -> CompileOptions {
    let overrides = flags(settings, target);
    CompileOptions { overrides, ..CompileOptions::on(target.description()) }
}

/// XLA's flags for programs on a device: the flags of [`default_flags`], then the caller's flags, which
/// override them.
pub(super) fn flags(settings: &Settings, target: &Target) -> Vec<(String, NamedValue)> {
    let given = settings.iter().filter(|(name, _)| name.starts_with(FLAG));
    let given = given.map(|(name, setting)| {
        let value = match setting {
            Setting::Bool(value) => NamedValue::Bool(*value),
            Setting::Int(value) => NamedValue::Int64(*value),
            Setting::Text(value) => NamedValue::String(value.clone()),
        };
        (name.clone(), value)
    });
    let defaults = default_flags(target).filter(|(name, _)| !settings.contains_key(*name));
    defaults.map(|(name, value)| (name.to_owned(), value)).chain(given).collect()
}

/// The library that computes custom calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kernels {
    /// The evaluator, in programs for a CPU.
    Evaluator,
    /// cuSOLVER where it is installed, in programs for a CUDA device: factorizations.
    CuSolver,
}

/// Returns the library for the custom calls of programs for a device, and makes its functions callable;
/// `None` for programs without such calls.
pub(super) fn kernels(settings: &Settings, target: &Target) -> Result<Option<Kernels>> {
    let wanted = wants_kernels(settings)?;
    if wanted == Some(false) {
        return Ok(None);
    }
    let possible = if target.is_cpu() && target.client.calls_host() {
        kernels::install();
        Some(Kernels::Evaluator)
    } else {
        // By default, the library is loaded for the first program with a factorization.
        (wanted.is_none() || target.client.factorizes()).then_some(Kernels::CuSolver)
    };
    if wanted == Some(true) && possible.is_none() {
        let platform = target.client.platform_name();
        let why = format!(
            "option \"kernels\" of the compiler \"xla\": must not be true on the platform {platform:?}, \
             whose programs cannot call kernels or whose cuSOLVER is not installed"
        );
        return Err(Error::Options(why));
    }
    Ok(possible)
}

/// The setting of kernels, if it is set.
fn wants_kernels(settings: &Settings) -> Result<Option<bool>> {
    boolean(settings, KERNELS)
}

pub(super) fn precision(settings: &Settings) -> Result<Precision> {
    match settings.get("precision") {
        None => Ok(Precision::Default),
        Some(Setting::Text(name)) if name == "default" => Ok(Precision::Default),
        Some(Setting::Text(name)) if name == "high" => Ok(Precision::High),
        Some(Setting::Text(name)) if name == "highest" => Ok(Precision::Highest),
        Some(other) => Err(Error::Options(format!(
            "option \"precision\" of the compiler \"xla\": must be \"default\", \"high\" or \
             \"highest\"; got {other}"
        ))),
    }
}

/// Reads a setting that must be a boolean.
pub(super) fn boolean(settings: &Settings, name: &str) -> Result<Option<bool>> {
    match settings.get(name) {
        None => Ok(None),
        Some(Setting::Bool(value)) => Ok(Some(*value)),
        Some(other) => Err(Error::Options(format!(
            "option {name:?} of the compiler {NAME:?}: must be a bool; got {other}"
        ))),
    }
}
