//! Typed access to the memory of host tensors.
//!
//! Inference has checked every dtype and shape before a program runs, so typed access cannot fail here.

use nxla_tensor::{DType, Element, HostTensor, Shape, match_dtype};
use smallvec::{SmallVec, smallvec};

use super::Fault;

/// The results of a step or of a program.
pub(crate) type Results = SmallVec<[HostTensor; 2]>;

/// A single result.
pub(crate) fn one(result: HostTensor) -> Results {
    smallvec![result]
}

/// Allocates a tensor of arbitrary contents.
pub(crate) fn fresh(dtype: DType, shape: &Shape) -> Result<HostTensor, Fault> {
    HostTensor::scratch(dtype, shape.clone()).map_err(Fault::from)
}

/// The bytes of a tensor to which no other handle exists.
pub(crate) fn bytes_mut(tensor: &mut HostTensor) -> &mut [u8] {
    tensor.try_unique_mut().expect("the tensor was made by this step or is the only handle")
}

/// The elements of a tensor to which no other handle exists.
pub(crate) fn slice_mut<T: Element>(tensor: &mut HostTensor) -> &mut [T] {
    bytemuck::cast_slice_mut(bytes_mut(tensor))
}

/// The elements of a tensor.
pub(crate) fn slice<T: Element>(tensor: &HostTensor) -> &[T] {
    bytemuck::cast_slice(tensor.bytes())
}

/// Allocates a tensor; `fill` writes every element.
pub(crate) fn build<T: Element>(
    dtype: DType,
    shape: &Shape,
    fill: impl FnOnce(&mut [T]),
) -> Result<HostTensor, Fault> {
    let mut result = fresh(dtype, shape)?;
    fill(slice_mut(&mut result));
    Ok(result)
}

/// Allocates a tensor; `fill` writes every byte.
pub(crate) fn build_bytes(
    dtype: DType,
    shape: &Shape,
    fill: impl FnOnce(&mut [u8]),
) -> Result<HostTensor, Fault> {
    build(dtype, shape, fill)
}

/// The same elements under another shape of the same size. A unique handle stays unique.
pub(crate) fn reshape(tensor: HostTensor, shape: &Shape) -> HostTensor {
    if tensor.shape() == shape && tensor.names().is_none() {
        return tensor;
    }
    tensor.reshape(shape.clone()).expect("inference has compared the sizes")
}

/// The integer in a tensor of one element, saturated to the range of `i64`.
pub(crate) fn integer(tensor: &HostTensor) -> i64 {
    integer_of(tensor.dtype(), tensor.bytes())
}

/// The integer of a dtype with these bytes, saturated to the range of `i64`.
pub(crate) fn integer_of(dtype: DType, bytes: &[u8]) -> i64 {
    match dtype {
        DType::S32 => return bytemuck::pod_read_unaligned::<i32>(bytes).into(),
        DType::S64 => return bytemuck::pod_read_unaligned(bytes),
        // Other dtypes are rare.
        _ => {}
    }
    let value = match_dtype!(dtype, T => bytemuck::pod_read_unaligned::<T>(bytes).to_scalar());
    let value = value.as_i128().expect("inference has required an integer");
    value.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
}
