//! Writes a [`Program`](nxla_expr::Program) as StableHLO text, the language that XLA plugins take.
//!
//! The crate does not depend on devices. It converts a graph to a module, and returns the properties
//! that a caller needs for a run: inputs, host functions, and inputs that the program may overwrite.
//!
//! Surprising properties:
//!
//! * **Implicit conversions become explicit.** Operands of a node may have other dtypes and shapes
//!   than the result; every rule converts and broadcasts its operands first. Within one block, the
//!   same value is converted once.
//! * **Constants are written where they are used**, already in the dtype and shape that the use
//!   needs, so a region never captures one from outside.
//! * **Some dtypes are computed in wider ones** and converted back; the module `widen` lists them.
//! * **Hooks form a chain.** Each takes a hook token and returns the next one, through loops and
//!   branches too, so that XLA can neither reorder them nor run two at once.
//! * **The module has the semantics of StableHLO.** By default XLA departs from them, so the caller
//!   must set XLA's options.
//!
//! ```
//! use nxla_expr::{Graph, Program, TensorType};
//! use nxla_stablehlo::{LowerOptions, lower};
//! use nxla_tensor::DType;
//!
//! let ty = TensorType::new(DType::F32, [3]);
//! let mut graph = Graph::new();
//! let x = graph.parameter(0, ty.clone());
//! let y = graph.exp(x)?;
//! let program = Program::new(&graph, vec![ty], &[y])?;
//!
//! let module = lower(&program, &LowerOptions::default())?;
//! assert_eq!(
//!     module.text,
//!     "\
//! module @nxla {
//!   func.func public @main(%0: tensor<3xf32>) -> tensor<3xf32> {
//!     %1 = stablehlo.exponential %0 : tensor<3xf32>
//!     return %1 : tensor<3xf32>
//!   }
//! }
//! "
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod builder;
mod cast;
mod complex;
mod context;
mod contract;
mod control;
mod create;
mod elementwise;
mod error;
mod factorize;
mod fold;
mod index;
mod kernel;
mod linalg;
mod literal;
mod materialize;
mod module;
mod movement;
mod options;
mod partition;
mod power;
mod reduce;
mod region;
mod types;
mod widen;
mod window;
mod writer;

pub use error::LowerError;
pub use kernel::kernel_program;
pub use module::{DonatedInput, HostCall, LoweredModule, lower};
pub use options::{CustomCall, KERNEL_ID, LowerOptions, Partition, Precision};
