//! The expression graph of nxla: a hash-consed, typed DAG of tensor operations.
//!
//! A [`Graph`] belongs to one trace. [`Graph::make`] and the methods of [`build`] create nodes:
//! they check shapes and dtypes, simplify, and intern. A finished trace becomes a [`Program`], the
//! input of all other crates.
//!
//! # Invariants
//!
//! [`verify`](verify::verify) checks each of them:
//!
//! 1. Equal nodes have equal ids, except nodes with effects, which are never merged.
//! 2. Operands have smaller ids than the node that uses them.
//! 3. The stored type equals the inferred type.
//! 4. Nodes never change and are never removed.
//! 5. A region refers only to its own parameters: it is a closed [`Program`], and outer values are
//!    operands of the node that contains it.
//! 6. Every node is simplified: building it again returns the same id.
//! 7. Hooks, and nodes that contain hooks, are listed among the roots in the order of their ids.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a panic is how a test fails"))]

pub mod batch;
pub mod build;
mod decompose;
mod graph;
mod infer;
mod make;
mod simplify;
mod text;

pub use decompose::{decompose, merge_gathers, merge_transposes};
pub use graph::*;
pub use make::{rewrite, serialize, verify};
pub use text::{mermaid, print, svg};
