//! Data, on the host or on a device, with functions on it.

use std::fmt;
use std::ops::Deref;

use nxla_runtime::{self as runtime, Device, Operand, Result, Vectors, View};
use nxla_tensor::ndarray::ArrayD;
use nxla_tensor::{DType, Element, Scalar, Shape, TensorError};

use crate::Error;
use crate::numbers::{IntoNames, Item};

/// A tensor of numbers, on the host or in the memory of a device.
///
/// Clones share the data. A device tensor may still be in the making: asking for its dtype and
/// shape is free, reading it waits.
///
/// ```
/// use nxla::{DType, Tensor};
///
/// let x = Tensor::from(vec![1.0f32, 2.0]);
/// assert_eq!((x.dtype(), &x.shape()[..]), (DType::F32, &[2usize][..]));
/// ```
#[derive(Clone)]
pub struct Tensor(runtime::Tensor);

impl<T: Into<runtime::Tensor>> From<T> for Tensor {
    fn from(data: T) -> Self {
        Self(data.into())
    }
}

impl Deref for Tensor {
    type Target = runtime::Tensor;

    fn deref(&self) -> &runtime::Tensor {
        &self.0
    }
}

impl Operand for Tensor {
    #[inline]
    fn view(&self) -> View<'_> {
        View::Tensor(&self.0)
    }
}

impl Tensor {
    /// A tensor of a shape from its elements in row-major order.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::new(vec![1, 2, 3, 4], [2, 2])?;
    /// assert_eq!(x.shape()[..], [2, 2]);
    /// assert!(Tensor::new(vec![1, 2, 3], [2, 2]).is_err());
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// A number of elements that is not the size of the shape.
    pub fn new<T: Element>(elements: Vec<T>, shape: impl Into<Shape>) -> Result<Self, TensorError> {
        runtime::Tensor::new(elements, shape).map(Self)
    }

    /// One number of a dtype.
    ///
    /// ```
    /// use nxla::{DType, Scalar, Tensor};
    ///
    /// let x = Tensor::scalar(Scalar::Float(0.5), DType::F16);
    /// assert_eq!((x.dtype(), x.item::<f32>()?), (DType::F16, 0.5));
    /// # Ok::<(), nxla::Error>(())
    /// ```
    pub fn scalar(value: Scalar, dtype: DType) -> Self {
        Self(runtime::Tensor::scalar(value, dtype))
    }

    /// The same data with other names for the axes, or with none for `()`.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([[1, 2], [3, 4]]).with_names(["row", "column"])?;
    /// assert_eq!(x.sum_over("row")?.to_vec::<i32>()?, [4, 6]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Another number of names than the tensor has axes.
    pub fn with_names(self, names: impl IntoNames) -> Result<Self, TensorError> {
        self.0.with_names(names.into_names()).map(Self)
    }

    /// The only element, as a number of Rust.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let mean = Tensor::from([1.0f32, 2.0, 4.5]).mean()?;
    /// assert_eq!((mean.item::<f32>()?, mean.item::<f64>()?), (2.5, 2.5));
    /// assert_eq!(mean.item::<i32>().unwrap_err().to_string(), "item: 2.5 is no i32");
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// What the computation ran into; a tensor of another size than 1, or with vectorized axes; a
    /// number that `T` has not: a fraction for an integer, one that is complex for a real number.
    /// Floats are rounded.
    pub fn item<T: Item>(&self) -> Result<T> {
        let scalar = self.0.item()?;
        T::of(scalar).ok_or_else(|| {
            let why = format!("{scalar} is no {}", std::any::type_name::<T>());
            Error::Arguments { function: "item".into(), why }
        })
    }

    /// The elements as an array of [`ndarray`](crate::ndarray).
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
    /// What the computation ran into; a dtype that `T` does not hold.
    pub fn to_ndarray<T: Element>(&self) -> Result<ArrayD<T>> {
        Ok(self.0.to_host()?.view()?.to_owned())
    }

    /// The data with its first axes, which must be as many and of these sizes, vectorized.
    /// Vectorized axes have no names besides their own.
    ///
    /// ```
    /// use nxla::{Tensor, VectorAxis, Vectors};
    ///
    /// let rows = Vectors::new([VectorAxis { name: "row".into(), size: 2 }]);
    /// let x = Tensor::from([[1, 2], [3, 4]]).with_vectors(rows);
    /// assert_eq!(x.sum()?.devectorize(false)?.to_vec::<i32>()?, [3, 7]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Panics
    /// If the sizes differ: this puts together what has been taken apart.
    #[must_use]
    pub fn with_vectors(self, vectors: Vectors) -> Self {
        Self(self.0.with_vectors(vectors))
    }

    /// A copy on a device; see [`nxla_runtime::Tensor::copy_to`].
    ///
    /// ```
    /// use nxla::{Device, Tensor};
    ///
    /// let x = Tensor::from([1, 2]).copy_to(&Device::HOST)?;
    /// assert_eq!(x.device(), Device::HOST);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// What the plugin says of the transfer; a tensor that was freed.
    pub fn copy_to(&self, device: &Device) -> Result<Tensor> {
        self.0.copy_to(device).map(Self)
    }

    /// The tensor itself if it lives on the device, else a copy there.
    ///
    /// ```
    /// use nxla::{Device, Tensor};
    ///
    /// let x = Tensor::from([1, 2]);
    /// assert!(x.on(&Device::HOST)?.is(&x));
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Tensor::copy_to`].
    pub fn on(&self, device: &Device) -> Result<Tensor> {
        self.0.on(device).map(Self)
    }

    /// Moves to a device: nothing happens if the tensor is there, else it is copied, and then
    /// freed even if the copy failed.
    ///
    /// ```
    /// use nxla::{Device, Tensor};
    ///
    /// let x = Tensor::from([1, 2]).transfer_to(&Device::HOST)?;
    /// assert_eq!(x.to_vec::<i32>()?, [1, 2]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Tensor::copy_to`].
    pub fn transfer_to(self, device: &Device) -> Result<Tensor> {
        self.0.transfer_to(device).map(Self)
    }

    /// What the runtime knows of it.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// assert_eq!(Tensor::from([1, 2]).into_inner().to_vec::<i32>()?, [1, 2]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    pub fn into_inner(self) -> runtime::Tensor {
        self.0
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for Tensor {
    /// The type, the device if it is not the host, and the values, waiting for them. A scalar takes one
    /// line.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// assert_eq!(Tensor::from(1.5f32).to_string(), "#nxla.Tensor<f32 1.5>");
    /// ```
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.to_string();
        let is_scalar = self.shape().rank() == 0 && self.vectors().is_empty();
        let lines = is_scalar.then(|| text.strip_prefix("#nxla.Tensor<\n")?.strip_suffix("\n>"));
        match lines.flatten() {
            Some(lines) => {
                let words: Vec<&str> = lines.lines().map(str::trim).collect();
                write!(f, "#nxla.Tensor<{}>", words.join(" "))
            }
            None => f.write_str(&text),
        }
    }
}
