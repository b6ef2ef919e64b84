//! The features of the host processor on which machine code depends.

use std::sync::OnceLock;

/// A string that is equal for processors with interchangeable machine code: the model, its
/// instruction sets, and the number of cores, among which XLA divides large loops when it compiles
/// them.
pub(super) fn description() -> &'static str {
    static DESCRIPTION: OnceLock<String> = OnceLock::new();
    DESCRIPTION.get_or_init(|| {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let arch = std::env::consts::ARCH;
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        format!("{arch}, {threads} threads\n{}", first_processor(&cpuinfo))
    })
}

/// The constant part of the system's description of its first processor.
fn first_processor(cpuinfo: &str) -> String {
    const LASTING: [&str; 9] = [
        "vendor_id",
        "cpu family",
        "model",
        "model name",
        "flags",
        "Features",
        "CPU implementer",
        "CPU part",
        "CPU variant",
    ];
    let lines = cpuinfo.lines().take_while(|line| !line.is_empty());
    let lasting = lines.filter(|line| {
        line.split_once(':').is_some_and(|(name, _)| LASTING.contains(&name.trim()))
    });
    lasting.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn description_omits_the_clock_rate() {
        let cpuinfo =
            "processor\t: 0\nmodel name\t: X\ncpu MHz\t\t: 2100.1\nflags\t\t: avx\n\nflags : b";
        assert_eq!(first_processor(cpuinfo), "model name\t: X\nflags\t\t: avx");
    }

    #[test]
    fn description_is_constant() {
        assert_eq!(description(), description());
        assert!(description().starts_with(std::env::consts::ARCH));
    }
}
