//! Plugins that must not be used: builds that are known to compute wrong results or to damage
//! memory.
//!
//! A build is identified by the version of its API, the version of StableHLO that it was built
//! with, and the platform of its client. A new entry needs a program that shows the fault, in the
//! checks of `tests/heap.rs` or of the parity suite.

use crate::error::Error;
use crate::plugin::Plugin;
use crate::value::NamedValue;

/// The environment variable that, set to `1`, lets plugins with known faults be used.
pub const FAULTS_VARIABLE: &str = "NXLA_PJRT_ALLOW_FAULTS";

/// A build with a fault.
#[derive(Debug)]
struct Fault {
    /// Major and minor version of its API.
    api: (i32, i32),
    /// The version of StableHLO that it was built with.
    stablehlo: [i64; 3],
    /// The platform of its client.
    platform: &'static str,
    /// The fault.
    fault: &'static str,
    /// The plugin to use instead.
    remedy: &'static str,
}

const FAULTS: &[Fault] = &[Fault {
    api: (0, 81),
    stablehlo: [1, 13, 3],
    platform: "cpu",
    fault: "this build, which the package xla-cpu-pjrt 0.0.1 contains, writes outside of its buffers \
            when it pads or concatenates tensors of eight bytes an element along the first axis, \
            which causes wrong results or ends the process",
    remedy: "install another one with `pip install fastatomstruct-xla-cpu` (Linux on x86-64), or \
             name one by NXLA_PJRT_PLUGIN",
}];

/// Rejects a plugin with a known fault, unless the user has allowed it.
pub(crate) fn check(plugin: &Plugin, platform: &str) -> Result<(), Error> {
    let stablehlo = match plugin.attribute("stablehlo_current_version") {
        Some(NamedValue::Int64List(version)) => &version[..],
        _ => &[],
    };
    let allowed = std::env::var_os(FAULTS_VARIABLE).is_some_and(|value| value == "1");
    match find(plugin.api_version(), stablehlo, platform) {
        Some(Fault { api: (major, minor), fault, remedy, .. }) if !allowed => {
            let version = format!("{major}.{minor}");
            Err(Error::KnownFault { path: plugin.path().to_owned(), version, fault, remedy })
        }
        Some(_) | None => Ok(()),
    }
}

fn find(api: (i32, i32), stablehlo: &[i64], platform: &str) -> Option<&'static Fault> {
    FAULTS.iter().find(|fault| {
        fault.api == api && fault.stablehlo == stablehlo && fault.platform == platform
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faulty_builds_match_version_and_platform() {
        assert!(find((0, 81), &[1, 13, 3], "cpu").is_some());
        assert!(find((0, 81), &[1, 13, 3], "cuda").is_none());
        assert!(find((0, 81), &[1, 13, 4], "cpu").is_none());
        assert!(find((0, 81), &[], "cpu").is_none());
        assert!(find((0, 106), &[1, 16, 1], "cpu").is_none());
    }
}
