//! Tests of the readers on files.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod common;
mod mutations;
mod onnx;
mod operations;
mod operators;
mod stablehlo;
