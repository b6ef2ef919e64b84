//! Conversions between host tensors and arrays of [`ndarray`].

use ndarray::{Array, ArrayBase, ArrayD, ArrayViewD, ArrayViewMut, Data, Dimension, IxDyn};

use crate::element::Element;
use crate::error::TensorError;
use crate::host::HostTensor;
use crate::shape::Shape;
use crate::storage::Frozen;

/// The memory of an array in row-major order.
struct Elements<T>(ArrayD<T>);

impl<T: Element> AsRef<[u8]> for Elements<T> {
    fn as_ref(&self) -> &[u8] {
        self.0.as_slice().map_or(&[], bytemuck::cast_slice)
    }
}

impl HostTensor {
    /// Copies an `ndarray` of any layout and rank. Row-major elements are copied in one piece.
    ///
    /// ```
    /// use ndarray::array;
    /// use nxla_tensor::HostTensor;
    ///
    /// let matrix = array![[1_i32, 2], [3, 4]];
    /// let transposed = HostTensor::from_ndarray(&matrix.t());
    /// assert_eq!(transposed.to_vec::<i32>().unwrap(), [1, 3, 2, 4]);
    /// ```
    #[must_use]
    pub fn from_ndarray<T, S, D>(array: &ArrayBase<S, D>) -> HostTensor
    where
        T: Element,
        S: Data<Elem = T>,
        D: Dimension,
    {
        let mut tensor = HostTensor::scratch(T::DTYPE, Shape::from(array.shape()))
            .expect("an array in memory has a valid size");
        let elements: &mut [T] = bytemuck::cast_slice_mut(tensor.new_bytes());
        match array.as_slice() {
            Some(whole) => elements.copy_from_slice(whole),
            None => ArrayViewMut::from_shape(array.raw_dim(), elements)
                .expect("the tensor has the shape of the array")
                .assign(array),
        }
        tensor
    }

    /// Takes ownership of an `ndarray`. Row-major elements are not copied, unless their address has
    /// the wrong alignment for the dtype ([`DType::align`](crate::DType::align)).
    ///
    /// ```
    /// use ndarray::array;
    /// use nxla_tensor::HostTensor;
    ///
    /// let matrix = array![[1_i32, 2], [3, 4]];
    /// let memory = matrix.as_ptr().cast::<u8>();
    /// assert_eq!(HostTensor::from_array(matrix).bytes().as_ptr(), memory);
    /// ```
    #[must_use]
    pub fn from_array<T: Element, D: Dimension>(array: Array<T, D>) -> HostTensor {
        let is_aligned = array.as_ptr().addr().is_multiple_of(T::DTYPE.align());
        if !array.is_standard_layout() || array.is_empty() || !is_aligned {
            return HostTensor::from_ndarray(&array);
        }
        let shape = Shape::from(array.shape());
        HostTensor::from_frozen(T::DTYPE, shape, Frozen::promised_by(Elements(array.into_dyn())))
            .expect("an aligned array in memory has a valid size and layout")
    }

    /// Returns the elements as an `ndarray` view.
    ///
    /// # Errors
    /// Returns the errors of [`HostTensor::as_slice`], and [`TensorError::View`] for an empty
    /// tensor whose shape is too large for `ndarray`.
    pub fn view<T: Element>(&self) -> Result<ArrayViewD<'_, T>, TensorError> {
        ArrayViewD::from_shape(IxDyn(self.shape()), self.as_slice()?)
            .map_err(|_| TensorError::View { shape: self.shape().clone() })
    }
}
