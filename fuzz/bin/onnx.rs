//! Reads ONNX models from any bytes.
#![no_main]

#[path = "../../crates/import/tests/suite/common/readers.rs"]
mod readers;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    readers::onnx(bytes);
});
