//! Which compilers the tests run on.

/// The evaluator, and XLA where a plugin is named by `NXLA_PJRT_PLUGIN`.
pub(crate) fn compilers() -> &'static [&'static str] {
    match std::env::var_os("NXLA_PJRT_PLUGIN") {
        Some(_) => &["evaluator", "xla"],
        None => &["evaluator"],
    }
}
