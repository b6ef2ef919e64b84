//! The names of the functions of Nx in this crate.
//!
#![doc = include_str!("names.md")]
