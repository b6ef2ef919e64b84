//! Printing and drawing of expressions. This module reads graphs and creates no nodes.

pub mod mermaid;
mod picture;
pub mod print;
pub mod svg;
