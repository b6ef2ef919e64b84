//! The format safetensors.

use std::borrow::Cow;

use nxla_tensor::{DType, HostTensor};
use safetensors::Dtype;
use safetensors::tensor::View;

use crate::{FileError, Result, in_order, part_width, tensor_of};

/// The name under which the format stores strings.
const METADATA: &str = "__metadata__";

/// The tensors of a file in the format safetensors.
///
/// ```
/// use nxla_files::{read_safetensors, write_safetensors};
/// use nxla_tensor::HostTensor;
///
/// let x = HostTensor::from_slice(&[1.0f32, 2.0], [2])?;
/// let read = read_safetensors(&write_safetensors(&[("x".to_owned(), x)], [])?)?;
/// assert_eq!((read.tensors.len(), read.unsupported.len()), (1, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct SafeTensors {
    /// The tensors by name, in the order of the data.
    pub tensors: Vec<(String, HostTensor)>,
    /// The names and dtypes of tensors that were left out, because nxla does not have the dtype.
    pub unsupported: Vec<(String, String)>,
}

/// Returns tensors by name as bytes of the format safetensors, with strings as metadata.
///
/// ```
/// use nxla_files::{read_safetensors, write_safetensors};
/// use nxla_tensor::HostTensor;
///
/// let tensors = [("w".to_owned(), HostTensor::from_slice(&[1.0f32, 2.0], [2])?)];
/// let data = write_safetensors(&tensors, [("format".to_owned(), "pt".to_owned())])?;
/// assert_eq!(read_safetensors(&data)?.tensors[0].0, "w");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Returns [`FileError::Unsupported`] if the format does not support a dtype, or reserves a name.
pub fn write_safetensors(
    tensors: &[(String, HostTensor)],
    metadata: impl IntoIterator<Item = (String, String)>,
) -> Result<Vec<u8>> {
    let mut entries = Vec::new();
    for (name, x) in tensors {
        if name == METADATA {
            let why = format!("container: the name {METADATA:?} is reserved by the format");
            return Err(FileError::Unsupported(why));
        }
        let Some(dtype) = their_dtype(x.dtype()) else {
            let why = format!("{name:?}: dtype must exist in the format; got {}", x.dtype());
            return Err(FileError::Unsupported(why));
        };
        entries.push((name.as_str(), Entry { dtype, tensor: x }));
    }
    let mut metadata = metadata.into_iter().peekable();
    let metadata = metadata.peek().is_some().then(|| metadata.collect());
    safetensors::serialize(entries, metadata)
        .map_err(|error| FileError::Unsupported(error.to_string()))
}

/// Reads tensors by name from bytes of the format safetensors.
///
/// ```
/// use nxla_files::{read_safetensors, write_safetensors};
/// use nxla_tensor::HostTensor;
///
/// let tensors = [("w".to_owned(), HostTensor::from_slice(&[1.0f32, 2.0], [2])?)];
/// let data = write_safetensors(&tensors, [])?;
/// assert_eq!(read_safetensors(&data)?.tensors[0].1.to_vec::<f32>()?, [1.0, 2.0]);
/// assert!(read_safetensors(&data[..data.len() - 1]).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Returns [`FileError::Damaged`] for damaged data and for a dtype that the format does not have.
pub fn read_safetensors(data: &[u8]) -> Result<SafeTensors> {
    let read = safetensors::SafeTensors::deserialize(data)
        .map_err(|error| FileError::Damaged(error.to_string()))?;
    // The crate returns the entries in random order; the offsets in the file order them.
    let mut entries: Vec<_> = read.iter().collect();
    entries.sort_by_key(|(name, view)| (view.data().as_ptr(), *name));
    let mut found = SafeTensors::default();
    for (name, view) in entries {
        let Some(dtype) = our_dtype(view.dtype()) else {
            found.unsupported.push((name.to_owned(), view.dtype().to_string()));
            continue;
        };
        let bytes = in_order(view.data(), part_width(dtype), true);
        let x = tensor_of(dtype, view.shape().to_vec(), &bytes, &format!("{name:?}: "))?;
        found.tensors.push((name.to_owned(), x));
    }
    Ok(found)
}

/// A tensor to write.
struct Entry<'a> {
    dtype: Dtype,
    tensor: &'a HostTensor,
}

impl View for Entry<'_> {
    fn dtype(&self) -> Dtype {
        self.dtype
    }

    fn shape(&self) -> &[usize] {
        self.tensor.shape()
    }

    fn data(&self) -> Cow<'_, [u8]> {
        in_order(self.tensor.bytes(), part_width(self.tensor.dtype()), true)
    }

    fn data_len(&self) -> usize {
        self.tensor.byte_size()
    }
}

/// Returns the dtype of the format, or `None` if it has no such dtype.
fn their_dtype(dtype: DType) -> Option<Dtype> {
    match dtype {
        DType::Pred => Some(Dtype::BOOL),
        DType::U8 => Some(Dtype::U8),
        DType::U16 => Some(Dtype::U16),
        DType::U32 => Some(Dtype::U32),
        DType::U64 => Some(Dtype::U64),
        DType::S8 => Some(Dtype::I8),
        DType::S16 => Some(Dtype::I16),
        DType::S32 => Some(Dtype::I32),
        DType::S64 => Some(Dtype::I64),
        DType::F8E5M2 => Some(Dtype::F8_E5M2),
        DType::F8E4M3FN => Some(Dtype::F8_E4M3),
        DType::BF16 => Some(Dtype::BF16),
        DType::F16 => Some(Dtype::F16),
        DType::F32 => Some(Dtype::F32),
        DType::F64 => Some(Dtype::F64),
        DType::C64 => Some(Dtype::C64),
        DType::U2 | DType::U4 | DType::S2 | DType::S4 | DType::C128 => None,
    }
}

/// Returns the dtype of nxla, or `None` if it has no such dtype.
fn our_dtype(dtype: Dtype) -> Option<DType> {
    DType::ALL.into_iter().find(|&ours| their_dtype(ours) == Some(dtype))
}
