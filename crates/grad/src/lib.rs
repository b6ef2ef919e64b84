//! Differentiation of expression graphs, in reverse and in forward mode.
//!
//! [`gradients`] appends the derivative to the graph it differentiates, so that a gradient is an
//! expression like any other: it can be printed, compiled, split, or differentiated again.
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
//! # How it works
//!
//! Operands have smaller ids than the nodes that use them, so two loops over ids do all the work.
//! The first, upwards, marks what depends on the inputs through differentiable operands
//! (`active`). The second, downwards, meets every node after all of its users, when its
//! cotangent is complete, and hands the contributions to the operands (`sweep`). The rule of each
//! op is an arm of an exhaustive match in `rules`, one file per family.
//!
//! Forward mode, [`jvp`], walks upwards once, over a program that it puts into a graph: each value
//! brings its tangent along (`push`). Its rules sit beside those of reverse mode. A loop becomes one
//! that carries values and tangents, which is why programs are pushed, and not nodes where they are.
//!
//! # Conventions
//!
//! * A cotangent has the shape of its node and no axis names. Its dtype follows promotion; only
//!   results are cast back to the dtype of a float or complex input. Integers are differentiated
//!   as if they were real numbers, and get float cotangents. A cotangent of a real node is real.
//! * For complex numbers the cotangent `c` of `z` says `df = Re(c dz)`: a holomorphic `f` gets its
//!   complex derivative, without conjugation, and `f(a + ib)` real gets `df/da - i df/db`. A tangent
//!   is `dz` itself, so a cotangent `c` and a tangent `t` meet as `Re(c t)` in both directions.
//! * Where a function has a kink, ties share: both operands of `max(x, x)` get one half.
#![forbid(unsafe_code)]

mod active;
mod demand;
mod emit;
mod error;
mod maps;
mod push;
mod region;
mod rules;
mod sweep;
mod transpose;

pub use error::GradError;
pub use maps::{
    Halves, Sides, halve, is_elementwise, pullback, pushforward, restrict, without_hooks,
};
pub use push::jvp;
pub use sweep::{gradients, values_and_gradients, vjp};
