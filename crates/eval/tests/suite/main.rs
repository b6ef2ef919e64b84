//! The tests of the evaluator, in one binary, since linking takes longer than running them.

mod batch;
mod common;
mod edges;
mod factorize;
mod into;
mod joined;
mod kernels;
mod programs;
mod together;
