//! Dtypes, shapes, promotion and host tensors: the bottom layer of the workspace.
//!
//! | Module | Holds |
//! |---|---|
//! | dtype | [`DType`] and the conversions between element types |
//! | shape | [`Shape`], broadcasting, axis arithmetic |
//! | scalar | [`Scalar`], one element of any dtype |
//! | promote | result types of operations, and host numbers next to tensors |
//!
//! Everything is exported flat from the crate root.
#![forbid(unsafe_code)]

mod dtype;
mod float_text;
mod promote;
mod scalar;
mod shape;
mod small_float;

pub use dtype::{DType, DTypeParseError, Kind};
pub use promote::{Number, NumberError, promote, promote_keep_pred, weak_dtype};
pub use scalar::Scalar;
pub use shape::{Shape, ShapeError, broadcast_shapes, normalize_axes, normalize_axis};
