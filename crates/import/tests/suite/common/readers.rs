//! Readers of untrusted files: the result is a valid program or an error. The targets of `cargo fuzz`
//! call these functions too.
#![allow(unreachable_pub, reason = "a target has the file as its own module")]

use nxla_expr::verify::verify_program;
use nxla_import::stablehlo::Module;

/// Reads a StableHLO module.
pub fn stablehlo(bytes: &[u8]) {
    let Ok(module) = Module::from_text(&String::from_utf8_lossy(bytes)) else { return };
    verify_program(module.program()).expect("what is read holds together");
}
