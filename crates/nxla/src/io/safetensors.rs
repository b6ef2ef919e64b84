//! The format safetensors.

use std::borrow::Cow;
use std::collections::BTreeMap;

use nxla_tensor::{DType, HostTensor};
use safetensors::tensor::View;
use safetensors::{Dtype, SafeTensors};

use super::{damaged, in_order, mistake, part_width, tensors_by_name};
use crate::containers::Tree;
use crate::{Result, Tensor};

/// The name under which the format stores strings.
const METADATA: &str = "__metadata__";

/// Returns the tensors of a container as bytes of the format safetensors, with strings as metadata.
///
/// ```
/// use std::collections::BTreeMap;
///
/// use nxla::{Tensor, io};
///
/// let metadata = BTreeMap::from([("format".to_owned(), "pt".to_owned())]);
/// let data = io::to_safetensors(&(Tensor::from([1.0f32, 2.0]), Tensor::from(3)), &metadata)?;
/// assert_eq!(io::from_safetensors(&data)?["1"].item::<i32>()?, 3);
/// # Ok::<(), nxla::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the format does not support a dtype, or reserves a name. Returns the error of a
/// failed computation.
pub fn to_safetensors<C: Tree<Tensor>>(
    container: &C,
    metadata: &BTreeMap<String, String>,
) -> Result<Vec<u8>> {
    const FUNCTION: &str = "to_safetensors";
    let tensors = tensors_by_name(FUNCTION, container)?;
    let mut entries = Vec::new();
    for (name, x) in &tensors {
        if name == METADATA {
            let why = format!("container: the name {METADATA:?} is reserved by the format");
            return Err(mistake(FUNCTION, why));
        }
        let Some(dtype) = their_dtype(x.dtype()) else {
            let why = format!("{name:?}: dtype must exist in the format; got {}", x.dtype());
            return Err(mistake(FUNCTION, why));
        };
        entries.push((name.as_str(), Entry { dtype, tensor: x }));
    }
    let metadata = metadata.iter().map(|(name, text)| (name.clone(), text.clone())).collect();
    safetensors::serialize(entries, Some(metadata))
        .map_err(|error| mistake(FUNCTION, error.to_string()))
}

/// Reads tensors by name from bytes of the format safetensors.
///
/// ```
/// use std::collections::BTreeMap;
///
/// use nxla::{Tensor, io};
///
/// let data = io::to_safetensors(&[Tensor::from([1.0f32, 2.0])], &BTreeMap::new())?;
/// assert_eq!(io::from_safetensors(&data)?["0"].to_vec::<f32>()?, [1.0, 2.0]);
/// assert!(io::from_safetensors(&data[..data.len() - 1]).is_err());
/// # Ok::<(), nxla::Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Format`](crate::Error::Format) for damaged data, and for a dtype that nxla does not
/// have.
pub fn from_safetensors(data: &[u8]) -> Result<BTreeMap<String, Tensor>> {
    const FUNCTION: &str = "from_safetensors";
    let tensors =
        SafeTensors::deserialize(data).map_err(|error| damaged(FUNCTION, error.to_string()))?;
    let mut found = BTreeMap::new();
    for (name, view) in tensors.iter() {
        let Some(dtype) = our_dtype(view.dtype()) else {
            let why = format!("{name:?}: dtype must exist in nxla; got {}", view.dtype());
            return Err(damaged(FUNCTION, why));
        };
        let bytes = in_order(view.data(), part_width(dtype), true);
        let tensor = HostTensor::from_bytes(dtype, view.shape().to_vec(), &bytes)
            .map_err(|error| damaged(FUNCTION, format!("{name:?}: {error}")))?;
        found.insert(name.to_owned(), Tensor::from(tensor));
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
