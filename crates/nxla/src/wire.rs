//! Serialization of tensors and programs with [`serde`], with the feature of that name.
//!
//! [`DType`](crate::DType), [`Shape`](crate::Shape), [`TensorType`](crate::TensorType) and
//! [`HostTensor`] always implement `serde`, since programs are serialized with it. A [`Tensor`] is
//! first read from its device, and is deserialized on the host. Structs of tensors can therefore
//! derive `serde` next to [`Container`](macro@crate::Container):
//!
//! ```
//! use std::sync::Arc;
//!
//! use nxla::{Container, Program, Tensor, TensorType, DType, Expr, jit};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Container, Serialize, Deserialize)]
//! struct Line<T> {
//!     slope: T,
//!     offset: T,
//! }
//!
//! #[derive(Serialize, Deserialize)]
//! struct Saved {
//!     line: Line<Tensor>,
//!     #[serde(with = "nxla::wire")]
//!     program: Arc<Program>,
//! }
//!
//! let line = Line { slope: Tensor::from(2.0f32), offset: Tensor::from([1.0f32, 2.0]) };
//! let f = jit(|x: Expr| x * 2 + 1);
//! let (program, _) = f.trace(&TensorType::scalar(DType::F32))?;
//! let text = serde_json::to_string(&Saved { line, program })?;
//! let saved: Saved = serde_json::from_str(&text)?;
//! assert_eq!(saved.line.offset.to_vec::<f32>()?, [1.0, 2.0]);
//! assert_eq!(saved.program.inputs(), [TensorType::scalar(DType::F32)]);
//! assert!(serde_json::from_str::<Saved>(&text.replace("120", "121")).is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::borrow::Borrow;

use nxla_expr::Program;
use nxla_expr::serialize::{from_bytes, to_bytes};
use nxla_tensor::HostTensor;
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::tensor::Tensor;

impl Serialize for Tensor {
    /// Waits for the data.
    ///
    /// # Errors
    /// Returns the error of a failed computation, and an error for vectorized axes.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if !self.vectors().is_empty() {
            return Err(S::Error::custom("serialize: x: must not have vectorized axes"));
        }
        self.to_host().map_err(S::Error::custom)?.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Tensor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        HostTensor::deserialize(deserializer).map(Tensor::from)
    }
}

/// Serializes a program as the list of bytes that [`to_bytes`] returns.
///
/// ```
/// use std::sync::Arc;
///
/// use nxla::{DType, Expr, Program, TensorType, jit};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct Saved(#[serde(with = "nxla::wire")] Arc<Program>);
///
/// let (program, _) = jit(|x: Expr| x + 1).trace(&TensorType::scalar(DType::F32))?;
/// let text = serde_json::to_string(&Saved(program))?;
/// assert!(text.starts_with('['));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Returns the errors of the format.
pub fn serialize<P: Borrow<Program>, S: Serializer>(
    program: &P,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    to_bytes(program.borrow()).serialize(serializer)
}

/// Deserializes a [`Program`], or an `Arc` of one, from the bytes of [`to_bytes`].
///
/// ```
/// use std::sync::Arc;
///
/// use nxla::{DType, Expr, Program, TensorType, jit};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct Saved(#[serde(with = "nxla::wire")] Arc<Program>);
///
/// let (program, _) = jit(|x: Expr| x + 1).trace(&TensorType::scalar(DType::F32))?;
/// let text = serde_json::to_string(&Saved(program))?;
/// let Saved(program) = serde_json::from_str(&text)?;
/// assert_eq!(program.inputs(), [TensorType::scalar(DType::F32)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Returns the errors of the format, and an error for bytes that are not a program or are damaged.
pub fn deserialize<'de, P: From<Program>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<P, D::Error> {
    let bytes = Vec::<u8>::deserialize(deserializer)?;
    from_bytes(&bytes).map(P::from).map_err(D::Error::custom)
}
