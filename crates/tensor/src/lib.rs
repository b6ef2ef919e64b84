//! Dtypes, shapes, promotion and host tensors: the bottom layer of the workspace.
//!
//! | Module | Contents |
//! |---|---|
//! | dtype | [`DType`] and conversions between element types |
//! | shape | [`Shape`], broadcasting, axis arithmetic |
//! | scalar | [`Scalar`], one element of any dtype |
//! | promote | result types of operations, and weak scalars |
//! | names | [`Names`] of axes and the notation of tensor types |
//! | element | [`Element`], the Rust types of dtypes, and [`match_dtype!`] |
//! | host | [`HostTensor`] |
//! | arrays | conversions from and to arrays of `ndarray`, with the feature of this name |
//! | heatmap | [`Heatmap`], drawings of tensors as text |
//! | limits | [`FloatLimits`] |
//! | storage, pool, block | the memory of tensors: [`Frozen`], [`held_memory`] |
//! | print | printed tensors |
//! | wire | `serde` for tensors and names |
//!
//! All items are exported from the crate root.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a panic is how a test fails"))]

#[cfg(feature = "ndarray")]
mod arrays;
mod block;
mod cast;
mod dtype;
mod element;
mod error;
mod float_text;
mod heatmap;
mod host;
mod limits;
mod live;
mod names;
mod physical;
mod pool;
mod print;
mod promote;
mod scalar;
mod shape;
mod small_float;
mod storage;
mod wire;

pub use dtype::{DType, DTypeParseError, Kind};
pub use element::{Element, ListElement};
pub use error::TensorError;
pub use heatmap::Heatmap;
pub use host::HostTensor;
pub use limits::FloatLimits;
pub use live::{Live, LiveMemory};
pub use names::{AxisName, Names, NamesError, merge_names, type_text};
pub use physical::fits_in_memory;
pub use pool::{held_memory, release_held_memory};
pub use print::{PrintOptions, element_text, tensor_text};
pub use promote::{Number, NumberError, promote, promote_keep_pred, weak_dtype};
pub use scalar::Scalar;
pub use shape::{
    MAX_AXIS, MAX_RANK, Shape, ShapeError, broadcast_shapes, inverse_permutation, normalize_axes,
    normalize_axis, to_i64,
};
pub use storage::{Frozen, host_memory};

/// The Rust types of narrow floats and complex numbers, so that users need no other crate.
pub use float8::{F8E4M3, F8E5M2};
pub use half::{bf16, f16};
#[cfg(feature = "ndarray")]
pub use ndarray;
pub use num_complex::Complex;
