//! The tests of the evaluator, in one binary, since linking takes longer than running them.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod accuracy;
mod batch;
mod common;
mod complex;
mod convolutions;
mod edges;
mod factorize;
mod faults;
mod fourier;
mod integers;
mod joined;
mod kernels;
mod programs;
mod sorting;
mod together;
mod views;
