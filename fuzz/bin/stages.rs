//! Reads graphs of stages from any bytes.
#![no_main]

#[path = "../../crates/split/tests/suite/common/readers.rs"]
mod readers;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| readers::stages(bytes));
