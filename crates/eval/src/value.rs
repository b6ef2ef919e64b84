//! Short ways to the memory of host tensors.
//!
//! Inference has checked every dtype and shape before a program runs, so that typed access to the
//! bytes cannot fail here.

use nxla_tensor::{DType, Element, HostTensor, Shape, match_dtype};

use crate::elementwise::convert;
use crate::error::Fault;

/// A new tensor of arbitrary bytes, for who writes all of them.
pub(crate) fn fresh(dtype: DType, shape: &Shape) -> Result<HostTensor, Fault> {
    HostTensor::scratch(dtype, shape.clone()).map_err(Fault::from)
}

/// The bytes of a tensor that nobody else holds.
pub(crate) fn bytes_mut(tensor: &mut HostTensor) -> &mut [u8] {
    tensor.try_unique_mut().expect("the tensor was made by this step or is the only handle")
}

/// The elements of a tensor that nobody else holds.
pub(crate) fn slice_mut<T: Element>(tensor: &mut HostTensor) -> &mut [T] {
    bytemuck::cast_slice_mut(bytes_mut(tensor))
}

/// The elements of a tensor.
pub(crate) fn slice<T: Element>(tensor: &HostTensor) -> &[T] {
    bytemuck::cast_slice(tensor.bytes())
}

/// A new tensor, of which `fill` writes every element: what it gets is arbitrary.
pub(crate) fn build<T: Element>(
    dtype: DType,
    shape: &Shape,
    fill: impl FnOnce(&mut [T]),
) -> Result<HostTensor, Fault> {
    let mut result = fresh(dtype, shape)?;
    fill(slice_mut(&mut result));
    Ok(result)
}

/// A new tensor, of which `fill` writes every byte: what it gets is arbitrary.
pub(crate) fn build_bytes(
    dtype: DType,
    shape: &Shape,
    fill: impl FnOnce(&mut [u8]),
) -> Result<HostTensor, Fault> {
    let mut result = fresh(dtype, shape)?;
    fill(bytes_mut(&mut result));
    Ok(result)
}

/// The same elements under another shape of the same size; the handle stays the only one if it
/// was.
pub(crate) fn reshaped(tensor: HostTensor, shape: &Shape) -> HostTensor {
    if tensor.shape() == shape && tensor.names().is_none() {
        return tensor;
    }
    tensor.reshape(shape.clone()).expect("inference has compared the sizes")
}

/// A tensor of a dtype that nobody else holds: this one if it has the dtype and there is no other
/// handle to it.
pub(crate) fn owned(mut tensor: HostTensor, dtype: DType) -> Result<HostTensor, Fault> {
    if tensor.dtype() != dtype {
        return convert(&tensor, dtype);
    }
    if tensor.try_unique_mut().is_some() {
        return Ok(tensor);
    }
    build_bytes(tensor.dtype(), tensor.shape(), |out| out.copy_from_slice(tensor.bytes()))
}

/// The integer in a tensor of one element, saturating at the ends of `i64`.
pub(crate) fn integer(tensor: &HostTensor) -> i64 {
    integer_of(tensor.dtype(), tensor.bytes())
}

/// The integer of a dtype that has these bytes, saturating at the ends of `i64`.
pub(crate) fn integer_of(dtype: DType, bytes: &[u8]) -> i64 {
    match dtype {
        DType::S32 => return bytemuck::pod_read_unaligned::<i32>(bytes).into(),
        DType::S64 => return bytemuck::pod_read_unaligned(bytes),
        // What is left is rare.
        _ => {}
    }
    let value = match_dtype!(dtype, T => bytemuck::pod_read_unaligned::<T>(bytes).to_scalar());
    let value = value.as_i128().expect("inference has asked for an integer");
    value.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
}
