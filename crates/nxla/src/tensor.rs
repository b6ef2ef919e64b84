//! Tensors on the host or on a device.

use std::fmt;
use std::ops::Deref;

use nxla_runtime::{self as runtime, Device, Operand, Result, VectorAxes, View};
use nxla_tensor::{DType, ListElement, Names, Scalar, Shape, TensorError};

use crate::Error;
use crate::numbers::{IntoNames, Item};

/// A tensor on the host or in the memory of a device.
///
/// Clones share the data. A device tensor may still be under computation: its dtype and shape are
/// available immediately, and reading it waits.
///
/// [`dtype`](runtime::RawTensor::dtype), [`shape`](runtime::RawTensor::shape),
/// [`names`](runtime::RawTensor::names), [`device`](runtime::RawTensor::device) and other properties
/// are methods of [`RawTensor`](runtime::RawTensor), to which a tensor dereferences.
/// [`to_vec`](Tensor::to_vec) and [`item`](Tensor::item) read the elements.
///
/// ```
/// use nxla::{DType, Tensor};
///
/// let x = Tensor::from(vec![1.0f32, 2.0]);
/// assert_eq!((x.dtype(), &x.shape()[..]), (DType::F32, &[2usize][..]));
/// ```
#[derive(Clone)]
pub struct Tensor(runtime::RawTensor);

impl<T: Into<runtime::RawTensor>> From<T> for Tensor {
    fn from(data: T) -> Self {
        Self(data.into())
    }
}

impl Deref for Tensor {
    type Target = runtime::RawTensor;

    fn deref(&self) -> &runtime::RawTensor {
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
    /// Creates a tensor of a shape from its elements in row-major order.
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
    /// Returns an error if the number of elements differs from the size of the shape.
    pub fn new<T: ListElement>(elements: Vec<T>, shape: impl Into<Shape>) -> Result<Self> {
        let tensor = runtime::RawTensor::new(elements, shape);
        tensor.map(Self).map_err(|error| in_method("Tensor::new", error.into()))
    }

    /// Creates a scalar of a dtype. The value is cast, as by [`Scalar::cast`]: integers wrap around,
    /// integer dtypes truncate floats and saturate, and NaN becomes 0. [`Tensor::full`] refuses
    /// numbers that do not fit.
    ///
    /// ```
    /// use nxla::{DType, Scalar, Tensor};
    ///
    /// let x = Tensor::scalar(Scalar::Float(0.5), DType::F16);
    /// assert_eq!((x.dtype(), x.item::<f32>()?), (DType::F16, 0.5));
    /// # Ok::<(), nxla::Error>(())
    /// ```
    pub fn scalar(value: Scalar, dtype: DType) -> Self {
        Self(runtime::RawTensor::scalar(value, dtype))
    }

    /// Replaces the axis names, or removes them for `()`.
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
    /// Returns an error if the number of names differs from the number of axes, and for equal names.
    pub fn with_names(self, names: impl IntoNames) -> Result<Self> {
        let names = names.into_names();
        let unique = names.as_ref().map_or(Ok(()), Names::check_unique);
        let named = unique.map_err(TensorError::from).and_then(|()| self.0.with_names(names));
        named.map(Self).map_err(|error| in_method("with_names", error.into()))
    }

    /// Returns the elements in row-major order. Vectorized axes are the first axes.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([[1, 2], [3, 4]]);
    /// assert_eq!(x.to_vec::<i32>()?, [1, 2, 3, 4]);
    /// assert_eq!(x.greater(2)?.to_vec::<bool>()?, [false, false, true, true]);
    /// let error = x.to_vec::<f32>().unwrap_err().to_string();
    /// assert_eq!(error, "to_vec: elements: must be read as the Rust type of s32; got f32");
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the error of a failed computation, and an error if `T` does not store the dtype.
    pub fn to_vec<T: ListElement>(&self) -> Result<Vec<T>> {
        self.0.to_vec().map_err(|error| in_method("to_vec", error))
    }

    /// Returns the only element as a Rust scalar.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let mean = Tensor::from([1.0f32, 2.0, 4.5]).mean()?;
    /// assert_eq!((mean.item::<f32>()?, mean.item::<f64>()?), (2.5, 2.5));
    /// let error = mean.item::<i32>().unwrap_err();
    /// assert_eq!(error.to_string(), "item: value: must fit i32; got 2.5");
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the error of a failed computation. Returns an error for a tensor that has more or
    /// fewer elements or has vectorized axes, and for a value that `T` cannot represent: a fraction
    /// as an integer, or a complex number as a real number. Floats are rounded.
    pub fn item<T: Item>(&self) -> Result<T> {
        let scalar = self.0.item().map_err(|error| in_method("item", error))?;
        T::of(scalar).ok_or_else(|| {
            let why = format!("value: must fit {}; got {scalar}", std::any::type_name::<T>());
            Error::Arguments { function: "item".into(), why }
        })
    }

    /// Makes the leading axes, which must have these sizes, vectorized. Vectorized axes have no
    /// other names.
    ///
    /// ```
    /// use nxla::{Tensor, VectorAxis, VectorAxes};
    ///
    /// let rows = VectorAxes::new([VectorAxis { name: "row".into(), size: 2 }]);
    /// let x = Tensor::from([[1, 2], [3, 4]]).with_vectors(rows)?;
    /// assert_eq!(x.sum()?.devectorize(false)?.to_vec::<i32>()?, [3, 7]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if the sizes differ, and for a tensor that has vectorized axes.
    pub fn with_vectors(self, vectors: VectorAxes) -> Result<Self> {
        let ty = self.ty();
        if !self.vectors().is_empty() || !ty.shape.starts_with(&vectors.sizes()) {
            let why = format!(
                "vectors: must be the leading axes of {}{ty}; got {vectors}",
                self.vectors()
            );
            return Err(Error::Vectors { function: "with_vectors".into(), why });
        }
        Ok(Self(self.0.with_vectors(vectors)))
    }

    /// Copies the tensor to a device; see [`nxla_runtime::RawTensor::copy_to`].
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
    /// Returns the error of the plugin, and an error for a freed tensor.
    pub fn copy_to(&self, device: &Device) -> Result<Tensor> {
        self.0.copy_to(device).map(Self)
    }

    /// Returns the tensor itself if it is on the device, and otherwise a copy on the device.
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
    /// Returns the errors of [`Tensor::copy_to`].
    pub fn on(&self, device: &Device) -> Result<Tensor> {
        self.0.on(device).map(Self)
    }

    /// Moves the tensor to a device: if it is on another device, it is copied and then freed, even
    /// if the copy failed.
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
    /// Returns the errors of [`Tensor::copy_to`].
    pub fn transfer_to(self, device: &Device) -> Result<Tensor> {
        self.0.transfer_to(device).map(Self)
    }

    /// Returns the data of the tensor, as compilers and executors receive it.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// assert_eq!(Tensor::from([1, 2]).into_inner().to_vec::<i32>()?, [1, 2]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    pub fn into_inner(self) -> runtime::RawTensor {
        self.0
    }
}

/// Names the method in an error of host data. Errors of allocations keep their class.
fn in_method(function: &str, error: Error) -> Error {
    match error {
        Error::Tensor(error)
            if !matches!(error, TensorError::OutOfMemory { .. } | TensorError::TooLarge { .. }) =>
        {
            Error::Arguments { function: function.into(), why: error.to_string() }
        }
        error => error,
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for Tensor {
    /// Writes the type, the device if it is not the host, and the values, after waiting for them. A
    /// scalar takes one line.
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
