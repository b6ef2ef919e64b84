//! Host tensors in files of NumPy (`.npy`, `.npz`) and in the format safetensors.
//!
//! Readers compare all sizes with the length of the data before they allocate memory, and run no
//! code from a file. The formats do not store axis names.
//!
//! ```
//! use nxla_files::{read_npy, write_npy};
//! use nxla_tensor::HostTensor;
//!
//! let x = HostTensor::from_slice(&[1.0f32, 2.0], [2])?;
//! assert!(read_npy(&write_npy(&x)?)?.same_bits(&x));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a panic is how a test fails"))]

mod npy;
mod npz;
mod safetensors;

use std::borrow::Cow;

use nxla_tensor::{DType, HostTensor, TensorError};

pub use npy::{read_npy, write_npy};
pub use npz::{read_npz, write_npz};
pub use safetensors::{SafeTensors, read_safetensors, write_safetensors};

/// An error of reading or writing a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The data are damaged, or of another format.
    #[error("{0}")]
    Damaged(String),
    /// The data are an archive of arrays, which [`read_npz`] reads, instead of one array.
    #[error("at byte 0, expected the start of a file of NumPy; got an archive")]
    Archive,
    /// The data are one array, which [`read_npy`] reads, instead of an archive.
    #[error("the archive is damaged: expected an archive; got one array")]
    Array,
    /// The format does not support a dtype or a name of the tensors to write.
    #[error("{0}")]
    Unsupported(String),
    /// The system has not enough memory for a tensor.
    #[error(transparent)]
    Memory(TensorError),
}

impl FileError {
    /// Adds the part of the file to the message.
    fn within(self, part: &str) -> FileError {
        match self {
            FileError::Damaged(_) | FileError::Archive | FileError::Array => {
                FileError::Damaged(format!("{part}: {self}"))
            }
            FileError::Unsupported(why) => FileError::Unsupported(format!("{part}: {why}")),
            FileError::Memory(error) => FileError::Memory(error),
        }
    }
}

/// The result of reading or writing a file.
pub type Result<T, E = FileError> = std::result::Result<T, E>;

/// Creates a tensor of the elements in a file. `part` begins the message of an error.
fn tensor_of(dtype: DType, shape: Vec<usize>, bytes: &[u8], part: &str) -> Result<HostTensor> {
    HostTensor::from_bytes(dtype, shape, bytes).map_err(|error| match error {
        TensorError::OutOfMemory { .. } => FileError::Memory(error),
        error => FileError::Damaged(format!("{part}{error}")),
    })
}

/// Converts elements of parts of `width` bytes between the byte order of this machine and another
/// byte order; a complex number has two parts.
fn in_order(bytes: &[u8], width: usize, is_little: bool) -> Cow<'_, [u8]> {
    if width <= 1 || is_little == cfg!(target_endian = "little") {
        return Cow::Borrowed(bytes);
    }
    let mut swapped = bytes.to_vec();
    swapped.chunks_exact_mut(width).for_each(<[u8]>::reverse);
    Cow::Owned(swapped)
}

/// Returns the number of bytes of a part of an element whose byte order matters.
fn part_width(dtype: DType) -> usize {
    if dtype.is_complex() { dtype.size() / 2 } else { dtype.size() }
}
