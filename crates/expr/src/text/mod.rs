//! Expressions as text and as pictures. What is here reads graphs and makes none.

pub mod mermaid;
mod picture;
pub mod print;
pub mod svg;
