//! The memory of the machine, as the limit of a single allocation.
//!
//! A system may promise more memory than it has (`vm.overcommit_memory=1` on Linux) and then end the
//! process that uses it. An allocation that cannot be used is refused here instead.

use std::sync::OnceLock;

/// Bytes up to which an allocation is left to the system.
const UNCHECKED: usize = 1 << 32;

/// Returns false if the machine has less memory than this number of bytes.
///
/// ```
/// assert!(nxla_tensor::fits_in_memory(1 << 20));
/// ```
#[must_use]
pub fn fits_in_memory(bytes: usize) -> bool {
    static TOTAL: OnceLock<Option<usize>> = OnceLock::new();
    bytes <= UNCHECKED || TOTAL.get_or_init(total).is_none_or(|total| bytes <= total)
}

/// The bytes of memory and swap space; `None` on systems that do not list them in a file.
fn total() -> Option<usize> {
    total_of(&std::fs::read_to_string("/proc/meminfo").ok()?)
}

fn total_of(text: &str) -> Option<usize> {
    let kibibytes = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().strip_suffix("kB")?.trim().parse::<usize>().ok()
    };
    let swap = kibibytes("SwapTotal:").unwrap_or_default();
    kibibytes("MemTotal:")?.checked_add(swap)?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_and_swap_space_are_added() {
        let text = "MemTotal:       1000 kB\nMemFree:  5 kB\nSwapTotal:  24 kB\n";
        assert_eq!(total_of(text), Some(1024 * 1024));
        assert_eq!(total_of("MemTotal:  1 kB\n"), Some(1024));
        assert_eq!(total_of("SwapTotal: 1 kB\n"), None);
        assert_eq!(total_of(""), None);
    }

    #[test]
    fn huge_sizes_do_not_fit_in_memory() {
        assert!(fits_in_memory(UNCHECKED));
        if cfg!(target_os = "linux") {
            assert!(!fits_in_memory(usize::MAX / 2));
        }
    }
}
