//! What can be set of XLA.

use nxla_pjrt::Value;
use nxla_stablehlo::{Precision, STRICT_OPTIONS};

use super::client::{Target, check_place};
use super::{NAME, kernels};
use crate::compiler::check_settings;
use crate::error::{Error, Result};
use crate::options::{COMPILE_ABOVE, COMPILE_AFTER, Setting, Settings};

const SETTINGS: &[&str] = &[
    "plugin",
    "device",
    "cpu_device_count",
    "preallocate",
    "precision",
    "kernels",
    "cache_dir",
    "cache_bytes",
    COMPILE_AFTER,
    COMPILE_ABOVE,
    "xla_… (its own flags)",
];

/// What the names of XLA's own flags begin with. They are passed on as they are; which of them there
/// are, and what they take, the plugin knows.
const FLAG: &str = "xla_";

/// The setting that leaves out the pass of XLA which ends the process over a loop whose counter is
/// neither `s32` nor `s64`. Programs that are lowered here have no such loop; texts from elsewhere may.
/// All that they lose on a CPU is what XLA notes about numbers of trips.
const WITHOUT_FATAL_PASS: (&str, &str) =
    ("xla_disable_hlo_passes", "while-loop-trip-count-annotator");

/// The settings for a text from elsewhere on a device; what the caller says of XLA's passes stays.
pub(super) fn of_foreign_text(settings: &Settings, target: &Target) -> Settings {
    let mut settings = settings.clone();
    if target.is_cpu() {
        let (name, pass) = WITHOUT_FATAL_PASS;
        settings.entry(name.into()).or_insert_with(|| Setting::Text(pass.into()));
    }
    settings
}

/// Refuses settings that there are not.
pub(super) fn check(settings: &Settings) -> Result<()> {
    match settings.keys().any(|name| name.starts_with(FLAG)) {
        false => check_settings(NAME, settings, SETTINGS),
        true => {
            let mut own = settings.clone();
            own.retain(|name, _| !name.starts_with(FLAG));
            check_settings(NAME, &own, SETTINGS)
        }
    }
}

/// Looks at settings and what they are, without loading a plugin.
pub(super) fn check_all(settings: &Settings) -> Result<()> {
    check(settings)?;
    precision(settings)?;
    wants_kernels(settings)?;
    compile_after(settings)?;
    integer(settings, COMPILE_ABOVE, 0)?;
    check_place(settings)
}

/// XLA's flags for programs on a device: those that make it keep to what StableHLO means, and on top
/// of them those of the caller.
pub(super) fn flags(settings: &Settings, target: &Target) -> Vec<(String, Value)> {
    let given = settings.iter().filter(|(name, _)| name.starts_with(FLAG));
    let given = given.map(|(name, setting)| {
        let value = match setting {
            Setting::Bool(value) => Value::Bool(*value),
            Setting::Int(value) => Value::Int64(*value),
            Setting::Text(value) => Value::String(value.clone()),
        };
        (name.clone(), value)
    });
    let strict = STRICT_OPTIONS.iter().filter(|_| target.is_cpu());
    let strict = strict.filter(|(name, _)| !settings.contains_key(*name));
    strict.map(|&(name, value)| (name.to_owned(), Value::Bool(value))).chain(given).collect()
}

/// Whether programs for a device call kernels; makes them callable.
pub(super) fn kernels(settings: &Settings, target: &Target) -> Result<bool> {
    let possible = target.is_cpu() && target.client.calls_host();
    let wanted = wants_kernels(settings)?.unwrap_or(possible);
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

/// Whether settings ask for kernels, if they say so.
fn wants_kernels(settings: &Settings) -> Result<Option<bool>> {
    match settings.get("kernels") {
        None => Ok(None),
        Some(Setting::Bool(wanted)) => Ok(Some(*wanted)),
        Some(other) => {
            let why =
                format!("option \"kernels\" of the compiler \"xla\" is true or false, not {other}");
            Err(Error::Options(why))
        }
    }
}

/// How many calls of a jitted function are the evaluator's.
pub(super) fn compile_after(settings: &Settings) -> Result<u64> {
    Ok(integer(settings, COMPILE_AFTER, 0)?.map_or(0, |calls| calls as u64))
}

/// The environment variable for what `compile_above` is where no setting says it.
pub(super) const COMPILE_ABOVE_VARIABLE: &str = "NXLA_COMPILE_ABOVE";

/// Microseconds that programs of a CPU take at most that are not compiled, if nobody says otherwise. Up to
/// here XLA's programs take as long or longer but for a few; what they have in common is said in
/// `docs/performance.md`.
const COMPILE_ABOVE_DEFAULT: u32 = 500;

/// Seconds of work that programs for a device take at least if they are compiled; 0 compiles all.
pub(super) fn compile_above(settings: &Settings, target: &Target) -> Result<f64> {
    let on_host = target.is_cpu();
    if let Some(given) = integer(settings, COMPILE_ABOVE, 0)? {
        if given > 0 && !on_host {
            let platform = target.client.platform_name();
            let why = format!(
                "the evaluator does not compute in the memory of the platform {platform:?}, so that all \
                 programs for it are compiled: leave out the option {COMPILE_ABOVE:?}"
            );
            return Err(Error::Options(why));
        }
        return Ok(seconds(given));
    }
    let has_flags = settings.keys().any(|name| name.starts_with(FLAG));
    if !on_host || has_flags || wants_kernels(settings)? == Some(false) {
        return Ok(0.0);
    }
    Ok(seconds(microseconds_of_environment()?.unwrap_or(COMPILE_ABOVE_DEFAULT as usize)))
}

#[expect(clippy::cast_precision_loss, reason = "an estimate is compared with it")]
fn seconds(microseconds: usize) -> f64 {
    microseconds as f64 * 1e-6
}

fn microseconds_of_environment() -> Result<Option<usize>> {
    let Some(text) = std::env::var_os(COMPILE_ABOVE_VARIABLE) else { return Ok(None) };
    let number = text.to_str().and_then(|text| text.parse().ok());
    number.map(Some).ok_or_else(|| {
        let text = text.to_string_lossy();
        Error::Options(format!(
            "{COMPILE_ABOVE_VARIABLE} is a number of microseconds, not {text:?}"
        ))
    })
}

pub(super) fn precision(settings: &Settings) -> Result<Precision> {
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

/// A setting that must be a whole number of at least `least`.
pub(super) fn integer(settings: &Settings, name: &str, least: i64) -> Result<Option<usize>> {
    match settings.get(name) {
        None => Ok(None),
        Some(Setting::Int(value)) if *value >= least => Ok(usize::try_from(*value).ok()),
        Some(other) => Err(Error::Options(format!(
            "option {name:?} of the compiler {NAME:?} must be a whole number of at least \
             {least}, got {other}"
        ))),
    }
}
