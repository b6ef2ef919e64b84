//! What a plugin tells of an executable.

use nxla_pjrt::{self as pjrt, ErrorCode, Executable, MemoryStats, Value};

use crate::error::Result;

/// What a compiler tells of an executable; nothing where it does not know.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Analysis {
    /// Estimates by name, such as `flops` and `bytes accessed`.
    pub cost: Option<Vec<(String, f64)>>,
    /// The memory that a run takes.
    pub memory: Option<MemoryStats>,
}

impl Analysis {
    /// Asks the plugin.
    ///
    /// # Errors
    /// What the plugin says, unless that it has no answer.
    pub(super) fn of(executable: &Executable) -> Result<Self> {
        let cost = if_known(executable.cost_analysis())?.map(|properties| {
            let number = |(name, value): (String, Value)| match value {
                Value::Float(number) => Some((name, f64::from(number))),
                Value::Int64(number) => Some((name, number as f64)),
                Value::String(_) | Value::Int64List(_) | Value::Bool(_) => None,
            };
            properties.into_iter().filter_map(number).collect()
        });
        Ok(Self { cost, memory: if_known(executable.memory_stats())? })
    }
}

/// `None` for what a plugin does not do.
fn if_known<T>(told: Result<T, pjrt::Error>) -> Result<Option<T>> {
    match told {
        Ok(told) => Ok(Some(told)),
        Err(
            pjrt::Error::Unsupported { .. }
            | pjrt::Error::Plugin { code: ErrorCode::Unimplemented, .. },
        ) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
