//! Errors of host tensors.

use crate::dtype::DType;
use crate::names::NamesError;
use crate::shape::{Shape, ShapeError};

/// Implements `Debug` of an error by its message, which a `main` that returns the error prints.
///
/// ```
/// struct Missing;
///
/// impl std::fmt::Display for Missing {
///     fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
///         f.write_str("the file is missing")
///     }
/// }
///
/// nxla_tensor::debug_as_message!(Missing);
/// assert_eq!(format!("{Missing:?}"), "the file is missing");
/// ```
#[doc(hidden)]
#[macro_export]
macro_rules! debug_as_message {
    ($error:ty) => {
        impl ::std::fmt::Debug for $error {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                ::std::fmt::Display::fmt(self, f)
            }
        }
    };
}

/// An error of building or reading a host tensor.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TensorError {
    /// The number of bytes does not fit the type and shape.
    #[error("bytes: expected {expected} for {dtype}{shape}; got {actual}")]
    ByteCount {
        /// The requested dtype.
        dtype: DType,
        /// The requested shape.
        shape: Shape,
        /// The size of such a tensor in bytes.
        expected: usize,
        /// The number of bytes.
        actual: usize,
    },
    /// The number of elements does not fit the shape.
    #[error("elements: expected {expected} for shape {shape:?}; got {actual}")]
    ElementCount {
        /// The requested shape.
        shape: Shape,
        /// The number of elements of such a tensor.
        expected: usize,
        /// The number of elements.
        actual: usize,
    },
    /// The size in bytes exceeds the address space.
    #[error("{dtype}{shape} is larger than the address space")]
    TooLarge {
        /// The requested dtype.
        dtype: DType,
        /// The requested shape.
        shape: Shape,
    },
    /// There is not enough memory for the tensor.
    #[error("cannot allocate {bytes} bytes for {dtype}{shape}")]
    OutOfMemory {
        /// The requested dtype.
        dtype: DType,
        /// The requested shape.
        shape: Shape,
        /// The size in bytes.
        bytes: usize,
    },
    /// The address of foreign memory is not aligned for the element type.
    #[error("memory: must be aligned to {align} bytes for dtype {dtype}")]
    Misaligned {
        /// The requested dtype.
        dtype: DType,
        /// The required alignment.
        align: usize,
    },
    /// A byte is outside of the range of `pred` or a sub-byte integer.
    #[error("bytes: must be elements of dtype {dtype}; got {byte:#04x} at index {index}")]
    InvalidElement {
        /// The requested dtype.
        dtype: DType,
        /// The position of the byte.
        index: usize,
        /// The byte.
        byte: u8,
    },
    /// The requested Rust type does not store the dtype.
    #[error("elements: must be read as the Rust type of {dtype}; got {requested}")]
    ElementType {
        /// The dtype of the tensor.
        dtype: DType,
        /// The requested Rust type.
        requested: &'static str,
    },
    /// A reshape would change the number of elements.
    #[error("cannot reshape {from:?} ({} elements) to {to:?} ({} elements)", from.size(), to.size())]
    Reshape {
        /// The current shape.
        from: Shape,
        /// The requested shape.
        to: Shape,
    },
    /// A single value was requested from a tensor with another number of elements.
    #[error("expected exactly one element; got shape {shape:?}")]
    NotOneElement {
        /// The shape of the tensor.
        shape: Shape,
    },
    /// `ndarray` cannot represent the shape: the product of the nonzero sizes is too large.
    #[error("shape {shape:?} cannot be viewed as an ndarray")]
    View {
        /// The shape of the tensor.
        shape: Shape,
    },
    /// A heatmap of a scalar or of complex numbers was requested.
    #[error("heatmap: expected real numbers and at least one axis; got {dtype}{shape}")]
    NoPicture {
        /// The dtype of the tensor.
        dtype: DType,
        /// The shape of the tensor.
        shape: Shape,
    },
    /// An invalid shape.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// Invalid axis names.
    #[error(transparent)]
    Names(#[from] NamesError),
}

crate::debug_as_message!(TensorError);
