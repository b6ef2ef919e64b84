//! Thresholds of the C library's allocator, set once for the process when it makes a client for a
//! CPU.
//!
//! XLA allocates temporaries and results in every run and frees them. By default glibc maps large
//! blocks afresh and returns freed memory to the system, so that every run pays a page fault for
//! each 4 KB. With these thresholds glibc serves blocks of up to 32 MiB from its heaps and keeps
//! freed memory there.
//!
//! The thresholds are not set if [`THRESHOLDS_VARIABLE`] is `0`, or if the environment contains one of
//! glibc's own settings.

use std::sync::Once;

/// The environment variable that leaves the allocator of the process alone if it is `0`.
pub const THRESHOLDS_VARIABLE: &str = "NXLA_MALLOC_THRESHOLDS";

/// The largest block that glibc serves from a heap, and the most that it accepts on 64-bit systems.
#[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
const MMAP_BYTES: i32 = 32 << 20;

/// The number of free bytes at the end of a heap above which glibc returns them to the system. It
/// equals the size of the pool of freed tensors.
#[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
const TRIM_BYTES: i32 = 256 << 20;

/// Environment variables with which a user configures glibc's allocator.
const USERS: [&str; 3] = ["GLIBC_TUNABLES", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"];

/// Sets the thresholds, unless environment variables set them or forbid it.
pub(crate) fn set_thresholds() {
    static FIRST: Once = Once::new();
    FIRST.call_once(|| {
        if is_wanted(|name| std::env::var(name).ok()) {
            set();
        }
    });
}

fn is_wanted(variable: impl Fn(&str) -> Option<String>) -> bool {
    variable(THRESHOLDS_VARIABLE).is_none_or(|value| value != "0")
        && USERS.iter().all(|name| variable(name).is_none())
}

/// Returns whether the allocator has accepted the thresholds.
#[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
fn set() -> bool {
    // SAFETY: `mallopt` may be called at any time and from any thread; it takes the allocator's
    // lock.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, MMAP_BYTES) == 1
            && libc::mallopt(libc::M_TRIM_THRESHOLD, TRIM_BYTES) == 1
    }
}

/// Other C libraries have no such thresholds.
#[cfg(not(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64")))]
fn set() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environment_variables_select_thresholds() {
        let wanted = |set: &[(&str, &str)]| {
            is_wanted(|name| {
                set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
            })
        };
        assert!(wanted(&[]) && wanted(&[(THRESHOLDS_VARIABLE, "1")]));
        assert!(!wanted(&[(THRESHOLDS_VARIABLE, "0")]));
        for name in USERS {
            assert!(!wanted(&[(name, "1")]), "{name}");
        }
    }

    #[test]
    #[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
    fn allocator_accepts_thresholds() {
        assert!(set());
    }
}
