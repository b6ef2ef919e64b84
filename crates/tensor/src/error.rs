//! The error type of host tensors.

use crate::dtype::DType;
use crate::names::NamesError;
use crate::shape::{Shape, ShapeError};

/// What can be wrong when building or reading a host tensor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TensorError {
    /// A wrong number of bytes for the type and shape.
    #[error("{dtype}{shape} takes {expected} bytes, got {actual}")]
    ByteCount {
        /// The dtype asked for.
        dtype: DType,
        /// The shape asked for.
        shape: Shape,
        /// Bytes such a tensor takes.
        expected: usize,
        /// Bytes given.
        actual: usize,
    },
    /// A wrong number of elements for the shape.
    #[error("shape {shape:?} takes {expected} elements, got {actual}")]
    ElementCount {
        /// The shape asked for.
        shape: Shape,
        /// Elements such a tensor has.
        expected: usize,
        /// Elements given.
        actual: usize,
    },
    /// A size in bytes beyond what memory can address.
    #[error("{dtype}{shape} is larger than the address space")]
    TooLarge {
        /// The dtype asked for.
        dtype: DType,
        /// The shape asked for.
        shape: Shape,
    },
    /// A tensor that there is no memory for.
    #[error("{dtype}{shape} takes {bytes} bytes, more memory than there is")]
    OutOfMemory {
        /// The dtype asked for.
        dtype: DType,
        /// The shape asked for.
        shape: Shape,
        /// Its size in bytes.
        bytes: usize,
    },
    /// Foreign memory whose address does not fit the element type.
    #[error("memory of a {dtype} tensor has to be aligned to {align} bytes")]
    Misaligned {
        /// The dtype asked for.
        dtype: DType,
        /// The alignment its elements need.
        align: usize,
    },
    /// A stored byte outside the range of `pred` or a sub-byte integer.
    #[error("byte {byte:#04x} at index {index} is not an element of type {dtype}")]
    InvalidElement {
        /// The dtype asked for.
        dtype: DType,
        /// Position of the byte.
        index: usize,
        /// The byte.
        byte: u8,
    },
    /// Typed access with a Rust type that does not store the dtype.
    #[error("elements of type {dtype} are not stored as {requested}")]
    ElementType {
        /// The dtype of the tensor.
        dtype: DType,
        /// The Rust type asked for.
        requested: &'static str,
    },
    /// A reshape that changes the number of elements.
    #[error("cannot reshape {from:?} ({} elements) to {to:?} ({} elements)", from.size(), to.size())]
    Reshape {
        /// The current shape.
        from: Shape,
        /// The shape asked for.
        to: Shape,
    },
    /// A single value asked of a tensor that has another number of elements.
    #[error("a single value needs exactly one element, got shape {shape:?}")]
    NotOneElement {
        /// The shape of the tensor.
        shape: Shape,
    },
    /// Dimensions `ndarray` cannot represent: their product, zeros left out, is too large.
    #[error("shape {shape:?} cannot be viewed as an ndarray")]
    View {
        /// The shape of the tensor.
        shape: Shape,
    },
    /// A picture of a scalar, or of complex numbers.
    #[error("a heatmap needs real numbers and at least one axis, got {dtype}{shape}")]
    NoPicture {
        /// The dtype of the tensor.
        dtype: DType,
        /// The shape of the tensor.
        shape: Shape,
    },
    /// A problem with the shape.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// A problem with the axis names.
    #[error(transparent)]
    Names(#[from] NamesError),
}
