//! The items that most programs need: `use nxla::prelude::*;`.
//!
//! ```
//! use nxla::prelude::*;
//!
//! let slope = jit(grad(|x: Expr| x.pow(3))).call(2.0f32)?;
//! assert_eq!(slope.item::<f32>()?, 12.0);
//! # Ok::<(), nxla::Error>(())
//! ```

pub use crate::{Container, DType, Expr, Operand, Tensor, TensorType, Tree};
pub use crate::{grad, jit, stream, value_and_grad, vmap};
