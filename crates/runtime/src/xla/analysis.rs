//! A plugin's figures for an executable.

use nxla_pjrt::{self as pjrt, LoadedExecutable, NamedValue};

use crate::analysis::Analysis;
use crate::error::Result;

/// Reads the plugin's figures for an executable.
///
/// # Errors
/// Returns errors of the plugin other than `Unimplemented`.
pub(super) fn analysis(executable: &LoadedExecutable) -> Result<Analysis> {
    let cost = if_known(executable.cost_analysis())?.map(|properties| {
        let number = |(name, value): (String, NamedValue)| match value {
            NamedValue::Float(number) => Some((name, f64::from(number))),
            NamedValue::Int64(number) => Some((name, number as f64)),
            NamedValue::String(_) | NamedValue::Int64List(_) | NamedValue::Bool(_) => None,
        };
        properties.into_iter().filter_map(number).collect()
    });
    Ok(Analysis { cost, memory: if_known(executable.memory_stats())? })
}

/// Returns `None` if the plugin does not implement a function.
fn if_known<T>(result: Result<T, pjrt::Error>) -> Result<Option<T>> {
    match result {
        Ok(known) => Ok(Some(known)),
        Err(error) if error.is_unimplemented() => Ok(None),
        Err(error) => Err(error.into()),
    }
}
