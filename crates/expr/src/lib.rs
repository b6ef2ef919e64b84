//! The expression graph of nxla: a hash-consed, typed DAG of tensor operations.
//!
//! A [`Graph`] belongs to one trace. Nodes are built by [`Graph::make`] and the methods of
//! [`build`], which check shapes and dtypes, simplify, and intern. A finished trace becomes a
//! [`Program`], which is what every other crate works on.
//!
//! # Invariants
//!
//! [`verify`](verify::verify) checks each of them:
//!
//! 1. Equal nodes have equal ids, but for those with effects, each of which is a node of its own.
//! 2. Operands have smaller ids than the node that uses them.
//! 3. The stored type equals what inference says.
//! 4. Nodes never change and are never removed.
//! 5. A region names only its own parameters: it is a closed [`Program`], and outer values are
//!    operands of the node that holds it.
//! 6. Every node is in simplified form: building it again gives the same id.
//! 7. Hooks, and nodes with hooks inside, are listed among the roots in the order of their ids.
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

pub use decompose::{decompose, direct_products};
pub use graph::*;
pub use make::{rewrite, serialize, verify};
pub use text::{mermaid, print, svg};
