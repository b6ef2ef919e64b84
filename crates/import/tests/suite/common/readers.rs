//! Readers of untrusted files: the result is a valid program or an error. The targets of `cargo fuzz`
//! call these functions too.
#![allow(unreachable_pub, reason = "a target has the file as its own module")]

use nxla_expr::verify::verify_program;
use nxla_import::stablehlo::{Module, Weights};

/// Reads a StableHLO module in textual form, and in the form of the bytes.
pub fn stablehlo(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let modules = [
        Module::from_text(&text),
        Module::from_bytes(bytes, Weights::Constants),
        Module::from_bytes(bytes, Weights::Inputs),
    ];
    for module in modules.into_iter().flatten() {
        verify_program(module.program()).expect("what is read holds together");
    }
}
