//! The tests of the evaluator, in one binary, since linking takes longer than running them.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod accuracy;
mod batch;
mod common;
mod complex;
mod convolutions;
mod edge_cases;
mod factorize;
mod faults;
mod fourier;
mod fusion;
mod integers;
mod kernels;
mod programs;
mod scheduling;
mod sorting;
mod views;
