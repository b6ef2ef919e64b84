//! Reverse-mode and forward-mode differentiation of expression graphs.
//!
//! [`gradients`] appends the derivative to the same graph. A gradient is therefore an ordinary
//! expression: users can print, compile, split or differentiate it again.
//!
//! ```
//! use nxla_tensor::DType;
//! use nxla_expr::{Graph, TensorType};
//!
//! let mut graph = Graph::new();
//! let x = graph.parameter(0, TensorType::new(DType::F64, [3]));
//! let y = graph.sin(x)?;
//! let gradient = nxla_grad::gradients(&mut graph, y, &[x])?[0];
//! assert_eq!(gradient, graph.cos(x)?);
//! # Ok::<(), nxla_grad::GradError>(())
//! ```
//!
//! # Algorithms
//!
//! Operands have smaller ids than their users, so each pass is one loop over the node ids.
//!
//! Reverse mode makes two passes. The first pass, in increasing order, marks the *active* nodes:
//! the nodes that depend on the inputs through differentiable operands (`active`). The second pass,
//! in decreasing order, reaches each node after all of its users, when its cotangent is complete,
//! and adds the contributions to the cotangents of the operands (`reverse`).
//!
//! Forward mode ([`jvp`]) makes one pass in increasing order. It copies a program into a graph and
//! computes the tangent of each value next to the value (`forward`). Forward mode works on programs
//! because it replaces a loop by a loop that carries values and tangents.
//!
//! The derivative rule of each op is an arm of an exhaustive match in `rules`, with one file per
//! family for each mode.
//!
//! # Conventions
//!
//! * A cotangent has the shape of its node and no axis names. Its dtype follows promotion; only the
//!   final results are cast to the dtype of a float or complex input. Integers are differentiated
//!   as real numbers and have float cotangents. The cotangent of a real node is real.
//! * The cotangent `c` of a complex value `z` is defined by `df = Re(c dz)`. A holomorphic `f` thus
//!   has its complex derivative without conjugation, and a real `f(a + ib)` has `df/da - i df/db`.
//!   The tangent is `dz`, so a cotangent `c` and a tangent `t` combine to `Re(c t)` in both modes.
//! * At a tie, the operands share the derivative: each operand of `max(x, x)` receives one half.
#![forbid(unsafe_code)]

mod active;
mod builder;
mod error;
mod forward;
mod needed;
mod programs;
mod region;
mod reverse;
mod rules;
mod transpose;

pub use error::GradError;
pub use forward::jvp;
pub use programs::{
    DiffCounts, PartialEval, is_elementwise, partial_eval, pullback, pushforward, restrict,
};
pub use region::strip_effects;
pub use reverse::{gradients, values_and_gradients, vjp};
