//! Tensors in host memory.
//!
//! A [`HostTensor`] is a dtype, a shape, optional axis names and shared row-major bytes. Cloning
//! and reshaping take constant time. Contents can be changed only through the sole handle, so a
//! clone never observes a change.
//!
//! Notable details:
//!
//! * `pred` and sub-byte integers take a byte per element. Constructors reject bytes outside of the
//!   type's range, and readers rely on this; writers through [`HostTensor::try_unique_mut`] and
//!   similar methods must write valid bytes.
//! * Bytes are in native byte order.
//! * The memory of large dropped tensors is reused.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::dtype::{DType, Kind};
use crate::element::{Element, ListElement};
use crate::error::TensorError;
use crate::match_dtype;
use crate::names::Names;
use crate::scalar::Scalar;
use crate::shape::Shape;
use crate::storage::{Frozen, Storage};

/// An immutable tensor in host memory with cheap clones.
///
/// ```
/// use nxla_tensor::{DType, HostTensor, Scalar};
///
/// let tensor = HostTensor::from_slice(&[1.5_f32, -2.5, 3.0, 4.0], [2, 2]).unwrap();
/// assert_eq!(tensor.get(1), Scalar::Float(-2.5));
/// let ints = tensor.cast(DType::S8).reshape([4]).unwrap();
/// assert_eq!(ints.as_slice::<i8>().unwrap(), [1, -2, 3, 4]);
/// ```
#[derive(Clone)]
pub struct HostTensor {
    dtype: DType,
    shape: Shape,
    names: Option<Names>,
    storage: Storage,
}

/// Constructors.
impl HostTensor {
    /// Creates a tensor of [`Element::DTYPE`], or of `pred` for `bool`, with a copy of the elements.
    ///
    /// # Errors
    /// Returns [`TensorError::ElementCount`] if the shape has another number of elements.
    pub fn from_slice<T: ListElement>(
        elements: &[T],
        shape: impl Into<Shape>,
    ) -> Result<HostTensor, TensorError> {
        T::to_tensor(elements, shape)
    }

    /// Creates a tensor from a vector as [`HostTensor::from_slice`] does.
    ///
    /// # Errors
    /// Returns the errors of [`HostTensor::from_slice`].
    pub fn from_vec<T: ListElement>(
        elements: Vec<T>,
        shape: impl Into<Shape>,
    ) -> Result<HostTensor, TensorError> {
        HostTensor::from_slice(&elements, shape)
    }

    /// Creates a tensor of any dtype that the Rust type stores, such as `pred` from `u8` zeros and
    /// ones.
    ///
    /// # Errors
    /// Returns [`TensorError::ElementType`] or [`TensorError::ElementCount`] if dtype or shape do
    /// not fit, and [`TensorError::InvalidElement`] for an element outside of the range of the
    /// dtype.
    pub fn from_slice_as<T: Element>(
        dtype: DType,
        elements: &[T],
        shape: impl Into<Shape>,
    ) -> Result<HostTensor, TensorError> {
        check_element_type::<T>(dtype)?;
        let shape = shape.into();
        check_count(&shape, elements.len())?;
        HostTensor::from_bytes(dtype, shape, bytemuck::cast_slice(elements))
    }

    /// Copies native-endian row-major bytes.
    ///
    /// # Errors
    /// Returns [`TensorError::ByteCount`], [`TensorError::TooLarge`], [`TensorError::OutOfMemory`],
    /// or [`TensorError::InvalidElement`].
    pub fn from_bytes(
        dtype: DType,
        shape: impl Into<Shape>,
        bytes: &[u8],
    ) -> Result<HostTensor, TensorError> {
        let shape = shape.into();
        check_bytes(dtype, &shape, bytes)?;
        HostTensor::over(dtype, shape, bytes.len(), Storage::copy_of(bytes))
    }

    /// Creates a tensor over immutable memory without a copy.
    ///
    /// # Errors
    /// Returns the errors of [`HostTensor::from_bytes`], and [`TensorError::Misaligned`].
    pub fn from_frozen(
        dtype: DType,
        shape: impl Into<Shape>,
        memory: Frozen,
    ) -> Result<HostTensor, TensorError> {
        let shape = shape.into();
        let bytes = memory.bytes();
        check_bytes(dtype, &shape, bytes)?;
        if bytes.is_empty() {
            // An empty tensor may have no memory, and thus no aligned memory.
            return HostTensor::zeros(dtype, shape);
        }
        if !bytes.as_ptr().addr().is_multiple_of(dtype.align()) {
            return Err(TensorError::Misaligned { dtype, align: dtype.align() });
        }
        Ok(HostTensor { dtype, shape, names: None, storage: Storage::Frozen(memory) })
    }

    /// Creates a tensor whose native-endian row-major bytes `write` writes to uninitialized
    /// contents.
    ///
    /// # Errors
    /// Returns the errors of [`HostTensor::scratch`] and of `write`, and
    /// [`TensorError::InvalidElement`].
    pub fn from_writer<E: From<TensorError>>(
        dtype: DType,
        shape: impl Into<Shape>,
        write: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<HostTensor, E> {
        let mut tensor = HostTensor::scratch(dtype, shape)?;
        write(tensor.new_bytes())?;
        check_range(dtype, tensor.bytes())?;
        Ok(tensor)
    }

    /// Creates a tensor of rank 0 with `value` converted by [`Scalar::cast`].
    #[must_use]
    pub fn scalar(value: Scalar, dtype: DType) -> HostTensor {
        HostTensor::full(value, dtype, Shape::scalar())
            .expect("a single element is never too large")
    }

    /// Creates a tensor whose elements are all `value` converted by [`Scalar::cast`].
    ///
    /// # Errors
    /// Returns [`TensorError::TooLarge`] or [`TensorError::OutOfMemory`].
    pub fn full(
        value: Scalar,
        dtype: DType,
        shape: impl Into<Shape>,
    ) -> Result<HostTensor, TensorError> {
        let value = value.cast(dtype);
        let mut tensor = HostTensor::scratch(dtype, shape)?;
        match_dtype!(dtype, T => {
            bytemuck::cast_slice_mut::<u8, T>(tensor.new_bytes()).fill(T::from_scalar(value));
        });
        Ok(tensor)
    }

    /// Creates a tensor of zeros, which can be written through [`HostTensor::try_unique_mut`].
    ///
    /// # Errors
    /// Returns [`TensorError::TooLarge`] or [`TensorError::OutOfMemory`].
    pub fn zeros(dtype: DType, shape: impl Into<Shape>) -> Result<HostTensor, TensorError> {
        let shape = shape.into();
        let bytes = byte_size(dtype, &shape)?;
        HostTensor::over(dtype, shape, bytes, Storage::zeroed(bytes))
    }

    /// Creates a tensor with unspecified contents, for callers that overwrite all bytes through
    /// [`HostTensor::try_unique_mut`].
    ///
    /// The bytes are initialized, so this is safe. They may be left over from a dropped tensor, and
    /// out of range for `pred` or sub-byte integers. In debug builds they have a fixed unusual
    /// value, so that tests detect bytes that were not overwritten. Not writing zeros saves as much
    /// time as a copy takes.
    ///
    /// # Errors
    /// Returns the errors of [`HostTensor::zeros`].
    pub fn scratch(dtype: DType, shape: impl Into<Shape>) -> Result<HostTensor, TensorError> {
        let shape = shape.into();
        let bytes = byte_size(dtype, &shape)?;
        HostTensor::over(dtype, shape, bytes, Storage::scratch(bytes))
    }

    /// Creates a tensor over storage, which is `None` if there was not enough memory.
    fn over(
        dtype: DType,
        shape: Shape,
        bytes: usize,
        storage: Option<Storage>,
    ) -> Result<HostTensor, TensorError> {
        match storage {
            Some(storage) => Ok(HostTensor { dtype, shape, names: None, storage }),
            None => Err(TensorError::OutOfMemory { dtype, shape, bytes }),
        }
    }

    /// Returns the bytes of a new tensor.
    pub(crate) fn new_bytes(&mut self) -> &mut [u8] {
        self.storage.unique_mut().expect("a new tensor has its memory for itself")
    }

    /// Creates a tensor whose row-major elements, initially zero, `fill` writes in place.
    ///
    /// Written elements must be in range for `pred` and sub-byte integers.
    ///
    /// # Errors
    /// Returns the errors of [`HostTensor::zeros`], or [`TensorError::ElementType`] if `T` does not
    /// store `dtype`.
    pub fn build<T: Element>(
        dtype: DType,
        shape: impl Into<Shape>,
        fill: impl FnOnce(&mut [T]),
    ) -> Result<HostTensor, TensorError> {
        check_element_type::<T>(dtype)?;
        let mut tensor = HostTensor::zeros(dtype, shape)?;
        fill(bytemuck::cast_slice_mut(tensor.new_bytes()));
        Ok(tensor)
    }
}

/// Properties and elements.
impl HostTensor {
    /// Returns the element type.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Returns the shape.
    #[must_use]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Returns the number of axes.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.shape.rank()
    }

    /// Returns the axis names, if any.
    #[must_use]
    pub fn names(&self) -> Option<&Names> {
        self.names.as_ref()
    }

    /// Returns the number of elements.
    #[must_use]
    pub fn size(&self) -> usize {
        self.shape.size()
    }

    /// Returns the size of the elements in bytes.
    #[must_use]
    pub fn byte_size(&self) -> usize {
        self.shape.byte_size(self.dtype)
    }

    /// Returns the elements as native-endian row-major bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.storage.bytes()
    }

    /// Returns shared ownership of the memory, for a device or another library. While it exists,
    /// this handle cannot write to the memory, or writes to a copy.
    #[must_use]
    pub fn share(&self) -> Frozen {
        self.storage.share()
    }

    /// Returns the elements in row-major order.
    ///
    /// # Errors
    /// Returns [`TensorError::ElementType`] if `T` does not store the dtype.
    pub fn as_slice<T: Element>(&self) -> Result<&[T], TensorError> {
        check_element_type::<T>(self.dtype)?;
        Ok(bytemuck::cast_slice(self.bytes()))
    }

    /// Copies the elements in row-major order. Elements of `pred` are read as `bool` or `u8`.
    ///
    /// # Errors
    /// Returns [`TensorError::ElementType`] if `T` does not store the dtype.
    pub fn to_vec<T: ListElement>(&self) -> Result<Vec<T>, TensorError> {
        T::from_tensor(self)
    }

    /// Returns the element of a tensor with exactly one element, of any rank.
    ///
    /// # Errors
    /// Returns [`TensorError::NotOneElement`] otherwise.
    pub fn item(&self) -> Result<Scalar, TensorError> {
        if self.size() == 1 {
            Ok(self.get(0))
        } else {
            Err(TensorError::NotOneElement { shape: self.shape.clone() })
        }
    }

    /// Returns the element at a row-major index.
    ///
    /// # Panics
    /// Panics if `index >= size`, as slices do.
    #[must_use]
    pub fn get(&self, index: usize) -> Scalar {
        match_dtype!(self.dtype, T => bytemuck::cast_slice::<u8, T>(self.bytes())[index].to_scalar())
    }

    /// Returns the common value of all elements if they are equal bit by bit, or `None` without
    /// elements.
    #[must_use]
    pub fn splat_value(&self) -> Option<Scalar> {
        match_dtype!(self.dtype, T => {
            let elements = bytemuck::cast_slice::<u8, T>(self.bytes());
            let value = elements.first()?.to_scalar();
            // A scalar may contain less information than the bits, for example for NaN.
            let same = T::from_scalar(value.cast(self.dtype));
            let same = bytemuck::bytes_of(&same);
            elements.iter().all(|element| bytemuck::bytes_of(element) == same).then_some(value)
        })
    }

    /// Returns whether dtype, shape and all bytes are equal. NaN equals itself, `-0.0` differs from
    /// `0.0`, and names are ignored.
    #[must_use]
    pub fn same_bits(&self, other: &HostTensor) -> bool {
        self.dtype == other.dtype && self.shape == other.shape && self.bytes() == other.bytes()
    }

    /// Hashes the properties that [`HostTensor::same_bits`] compares.
    pub fn hash_content<H: Hasher>(&self, state: &mut H) {
        self.dtype.hash(state);
        self.shape.hash(state);
        state.write(self.bytes());
    }

    /// Returns a hash of the properties that [`HostTensor::same_bits`] compares, stable within one
    /// build.
    #[must_use]
    pub fn content_hash(&self) -> u64 {
        let mut state = DefaultHasher::new();
        self.hash_content(&mut state);
        state.finish()
    }
}

/// Derived tensors, and writing.
impl HostTensor {
    /// Returns the same elements with another shape, without a copy. Names are dropped.
    ///
    /// # Errors
    /// Returns [`TensorError::Reshape`] if the number of elements differs, and a
    /// [`ShapeError`](crate::ShapeError) if the shape exceeds a limit.
    pub fn reshape(&self, shape: impl Into<Shape>) -> Result<HostTensor, TensorError> {
        let shape = shape.into();
        shape.check_limits()?;
        if shape.checked_size() != Some(self.size()) {
            return Err(TensorError::Reshape { from: self.shape.clone(), to: shape });
        }
        Ok(HostTensor { dtype: self.dtype, shape, names: None, storage: self.storage.clone() })
    }

    /// Replaces the axis names.
    ///
    /// # Errors
    /// Returns [`NamesError::Length`](crate::NamesError::Length) if their number differs from the rank.
    pub fn with_names(self, names: Option<Names>) -> Result<HostTensor, TensorError> {
        names.as_ref().map_or(Ok(()), |names| names.check_length(self.rank()))?;
        Ok(HostTensor { names, ..self })
    }

    /// Converts the elements by [`Scalar::cast`] and keeps names. Returns a clone for an equal
    /// dtype.
    #[must_use]
    pub fn cast(&self, dtype: DType) -> HostTensor {
        if dtype == self.dtype {
            return self.clone();
        }
        let mut result = HostTensor::scratch(dtype, self.shape.clone())
            .expect("a size check here can only repeat the one of an existing tensor");
        crate::cast::cast_bytes(self.dtype, self.bytes(), dtype, result.new_bytes());
        HostTensor { names: self.names.clone(), ..result }
    }

    /// Returns the bytes for writing in place, if this is the sole handle to memory that the tensor
    /// owns.
    ///
    /// Written elements must be in range for `pred` and sub-byte integers.
    pub fn try_unique_mut(&mut self) -> Option<&mut [u8]> {
        self.storage.unique_mut()
    }

    /// Returns the elements for writing, after copying them if another handle shares them.
    ///
    /// Written elements must be in range for `pred` and sub-byte integers.
    ///
    /// # Errors
    /// Returns [`TensorError::ElementType`] if `T` does not store the dtype, and
    /// [`TensorError::OutOfMemory`] if there is not enough memory for a copy.
    pub fn make_mut<T: Element>(&mut self) -> Result<&mut [T], TensorError> {
        check_element_type::<T>(self.dtype)?;
        if self.try_unique_mut().is_none() {
            self.storage = self.copied_storage()?;
        }
        Ok(bytemuck::cast_slice_mut(self.new_bytes()))
    }

    /// Returns a clone that shares no memory with other libraries: memory that the tensor does not
    /// own is copied.
    ///
    /// # Errors
    /// Returns [`TensorError::OutOfMemory`] if there is not enough memory for a copy.
    pub fn clone_owned(&self) -> Result<HostTensor, TensorError> {
        let mut clone = self.clone();
        if let Storage::Frozen(_) = self.storage {
            clone.storage = self.copied_storage()?;
        }
        Ok(clone)
    }

    fn copied_storage(&self) -> Result<Storage, TensorError> {
        let (bytes, copy) = (self.bytes().len(), Storage::copy_of(self.bytes()));
        HostTensor::over(self.dtype, self.shape.clone(), bytes, copy).map(|copy| copy.storage)
    }
}

impl fmt::Debug for HostTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn check_element_type<T: Element>(dtype: DType) -> Result<(), TensorError> {
    if T::stores(dtype) {
        Ok(())
    } else {
        Err(TensorError::ElementType { dtype, requested: std::any::type_name::<T>() })
    }
}

fn check_count(shape: &Shape, actual: usize) -> Result<(), TensorError> {
    shape.check_limits()?;
    if shape.checked_size() == Some(actual) {
        Ok(())
    } else {
        Err(TensorError::ElementCount { shape: shape.clone(), expected: shape.size(), actual })
    }
}

fn byte_size(dtype: DType, shape: &Shape) -> Result<usize, TensorError> {
    shape.check_limits()?;
    shape
        .checked_byte_size(dtype)
        // Allocations are limited to `isize::MAX` bytes, including the alignment.
        .filter(|bytes| isize::try_from(bytes.saturating_add(crate::block::ALIGNMENT)).is_ok())
        .ok_or_else(|| TensorError::TooLarge { dtype, shape: shape.clone() })
}

/// Checks the number of bytes, and their range for types that do not use all bits of a byte.
fn check_bytes(dtype: DType, shape: &Shape, bytes: &[u8]) -> Result<(), TensorError> {
    let expected = byte_size(dtype, shape)?;
    if bytes.len() != expected {
        let (shape, actual) = (shape.clone(), bytes.len());
        return Err(TensorError::ByteCount { dtype, shape, expected, actual });
    }
    check_range(dtype, bytes)
}

/// Checks the range of bytes for types that do not use all bits of a byte.
fn check_range(dtype: DType, bytes: &[u8]) -> Result<(), TensorError> {
    let invalid = match dtype.kind() {
        Kind::Pred => bytes.iter().position(|&byte| byte > 1),
        Kind::Unsigned if dtype.bits() < 8 => {
            bytes.iter().position(|&byte| byte >> dtype.bits() != 0)
        }
        Kind::Signed if dtype.bits() < 8 => {
            let limit = 1_i8 << (dtype.bits() - 1);
            bytes.iter().position(|&byte| !(-limit..limit).contains(&byte.cast_signed()))
        }
        Kind::Unsigned | Kind::Signed | Kind::Float | Kind::Complex => None,
    };
    match invalid {
        Some(index) => Err(TensorError::InvalidElement { dtype, index, byte: bytes[index] }),
        None => Ok(()),
    }
}
