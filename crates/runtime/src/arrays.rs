//! Arrays of `ndarray` as tensors.

use nxla_tensor::ndarray::{Array, ArrayBase, Data, Dimension};
use nxla_tensor::{Element, HostTensor};

use crate::tensor::RawTensor;

/// Converts an owned array, without a copy if its elements are in row-major order.
impl<T: Element, D: Dimension> From<Array<T, D>> for RawTensor {
    fn from(array: Array<T, D>) -> Self {
        RawTensor::Host(HostTensor::from_array(array))
    }
}

/// Copies an array or a view, in one block if the elements are in row-major order.
impl<T: Element, S: Data<Elem = T>, D: Dimension> From<&ArrayBase<S, D>> for RawTensor {
    fn from(array: &ArrayBase<S, D>) -> Self {
        RawTensor::Host(HostTensor::from_ndarray(array))
    }
}
