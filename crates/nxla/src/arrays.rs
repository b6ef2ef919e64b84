//! Tensors as arrays of `ndarray`.

use nxla_tensor::ndarray::{ArrayD, IxDyn};
use nxla_tensor::{ListElement, TensorError};

use crate::{Result, Tensor};

impl Tensor {
    /// Returns the elements as an array of [`ndarray`](crate::ndarray). Vectorized axes are its
    /// first axes.
    ///
    /// ```
    /// use nxla::Tensor;
    /// use nxla::ndarray::array;
    ///
    /// let x = Tensor::from(array![[1.0f32, 2.0], [3.0, 4.0]]);
    /// assert_eq!((&x * 2)?.to_ndarray::<f32>()?, array![[2.0, 4.0], [6.0, 8.0]].into_dyn());
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the error of a failed computation, and an error if `T` does not store the dtype.
    pub fn to_ndarray<T: ListElement>(&self) -> Result<ArrayD<T>> {
        let host = self.to_host()?;
        ArrayD::from_shape_vec(IxDyn(host.shape()), host.to_vec()?)
            .map_err(|_| TensorError::View { shape: host.shape().clone() }.into())
    }
}
