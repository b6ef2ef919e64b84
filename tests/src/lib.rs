//! The Rust examples of the project's documents, which run as the documentation tests of this
//! package. The Python ones run with pytest.
#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub mod readme {}

#[cfg(doctest)]
#[doc = include_str!("../../docs/guide/rust.md")]
pub mod guide {}
