//! Tensors in host memory.
//!
//! A [`HostTensor`] is a dtype, a shape, optional axis names and shared row-major bytes. Cloning
//! and reshaping are O(1). Contents change only through a handle that is the sole owner, so a
//! clone never sees a change.
//!
//! Surprising points:
//! * `pred` and sub-byte integers take a byte per element. Constructors reject bytes out of the
//!   type's range, so readers may rely on it; writers through [`HostTensor::try_unique_mut`] and
//!   the like have to keep it so.
//! * Bytes are in the byte order of the machine.
//! * Memory is reused: that of a freed tensor is the next one's, unless it is small.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use ndarray::{Array, ArrayBase, ArrayD, ArrayViewD, ArrayViewMut, Data, Dimension, IxDyn};

use crate::dtype::{DType, Kind};
use crate::element::Element;
use crate::error::TensorError;
use crate::match_dtype;
use crate::names::{Names, NamesError};
use crate::scalar::Scalar;
use crate::shape::Shape;
use crate::storage::{Frozen, Storage};

/// An immutable, cheaply cloned tensor in host memory.
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

/// The memory of an array in row-major order.
struct Elements<T>(ArrayD<T>);

impl<T: Element> AsRef<[u8]> for Elements<T> {
    fn as_ref(&self) -> &[u8] {
        self.0.as_slice().map_or(&[], bytemuck::cast_slice)
    }
}

/// Construction.
impl HostTensor {
    /// A tensor of [`Element::DTYPE`] with a copy of the elements.
    ///
    /// # Errors
    /// [`TensorError::ElementCount`] where the shape has another number of elements.
    pub fn from_slice<T: Element>(
        elements: &[T],
        shape: impl Into<Shape>,
    ) -> Result<HostTensor, TensorError> {
        HostTensor::from_slice_as(T::DTYPE, elements, shape)
    }

    /// [`HostTensor::from_slice`] for a vector.
    ///
    /// # Errors
    /// As [`HostTensor::from_slice`].
    pub fn from_vec<T: Element>(
        elements: Vec<T>,
        shape: impl Into<Shape>,
    ) -> Result<HostTensor, TensorError> {
        HostTensor::from_slice(&elements, shape)
    }

    /// A tensor of any dtype the Rust type stores, such as `pred` from `u8` zeros and ones.
    ///
    /// # Errors
    /// [`TensorError::ElementType`], [`TensorError::ElementCount`], or
    /// [`TensorError::InvalidElement`] for an element outside the range of the dtype.
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

    /// A `pred` tensor.
    ///
    /// # Errors
    /// [`TensorError::ElementCount`].
    pub fn from_bools(
        elements: &[bool],
        shape: impl Into<Shape>,
    ) -> Result<HostTensor, TensorError> {
        HostTensor::from_slice_as(DType::Pred, bytemuck::cast_slice::<bool, u8>(elements), shape)
    }

    /// A copy of native-endian row-major bytes.
    ///
    /// # Errors
    /// [`TensorError::ByteCount`], [`TensorError::TooLarge`], [`TensorError::OutOfMemory`], or
    /// [`TensorError::InvalidElement`].
    pub fn from_bytes(
        dtype: DType,
        shape: impl Into<Shape>,
        bytes: &[u8],
    ) -> Result<HostTensor, TensorError> {
        let shape = shape.into();
        check_bytes(dtype, &shape, bytes)?;
        HostTensor::over(dtype, shape, bytes.len(), Storage::copy_of(bytes))
    }

    /// A tensor over memory that nobody writes to, without a copy.
    ///
    /// # Errors
    /// As [`HostTensor::from_bytes`], and [`TensorError::Misaligned`].
    pub fn from_frozen(
        dtype: DType,
        shape: impl Into<Shape>,
        memory: Frozen,
    ) -> Result<HostTensor, TensorError> {
        let shape = shape.into();
        let bytes = memory.bytes();
        check_bytes(dtype, &shape, bytes)?;
        if bytes.is_empty() {
            // There may be no memory at all, and so none that is aligned.
            return HostTensor::zeros(dtype, shape);
        }
        if !bytes.as_ptr().addr().is_multiple_of(dtype.align()) {
            return Err(TensorError::Misaligned { dtype, align: dtype.align() });
        }
        Ok(HostTensor { dtype, shape, names: None, storage: Storage::Frozen(memory) })
    }

    /// A tensor whose native-endian row-major bytes `write` puts into memory that holds arbitrary
    /// ones.
    ///
    /// # Errors
    /// As [`HostTensor::scratch`], what `write` returns, and [`TensorError::InvalidElement`].
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

    /// A copy of an `ndarray` of any layout and dimensionality. One whose elements lie in row-major
    /// order is copied in one piece.
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

    /// An `ndarray` that is given away: one whose elements lie in row-major order is not copied, unless
    /// they begin where elements of their dtype may not ([`DType::align`]).
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
            .expect("an array in memory has a valid size, and elements where they may be")
    }

    /// A tensor of rank 0 holding `value` converted by [`Scalar::cast`].
    #[must_use]
    pub fn scalar(value: Scalar, dtype: DType) -> HostTensor {
        HostTensor::full(value, dtype, Shape::scalar())
            .expect("a single element is never too large")
    }

    /// A tensor whose elements all are `value` converted by [`Scalar::cast`].
    ///
    /// # Errors
    /// [`TensorError::TooLarge`], [`TensorError::OutOfMemory`].
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

    /// A tensor of zeros, whose buffer [`HostTensor::try_unique_mut`] then gives for writing.
    ///
    /// # Errors
    /// [`TensorError::TooLarge`], [`TensorError::OutOfMemory`].
    pub fn zeros(dtype: DType, shape: impl Into<Shape>) -> Result<HostTensor, TensorError> {
        let shape = shape.into();
        let bytes = byte_size(dtype, &shape)?;
        HostTensor::over(dtype, shape, bytes, Storage::zeroed(bytes))
    }

    /// A tensor of arbitrary bytes, for who overwrites all of them through
    /// [`HostTensor::try_unique_mut`].
    ///
    /// The bytes are initialized, so that nothing unsafe can come of them; they may be those of a
    /// freed tensor, and out of range where `dtype` is `pred` or a sub-byte integer. In debug builds
    /// they are of one odd value, so that tests see what was forgotten. This spares the writing of
    /// zeros, which takes as long as a copy.
    ///
    /// # Errors
    /// As [`HostTensor::zeros`].
    pub fn scratch(dtype: DType, shape: impl Into<Shape>) -> Result<HostTensor, TensorError> {
        let shape = shape.into();
        let bytes = byte_size(dtype, &shape)?;
        HostTensor::over(dtype, shape, bytes, Storage::scratch(bytes))
    }

    /// A tensor over storage, for which there may have been no memory.
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

    /// The bytes of a tensor that was just made.
    fn new_bytes(&mut self) -> &mut [u8] {
        self.storage.unique_mut().expect("a new tensor has its memory for itself")
    }

    /// A tensor written in place: `fill` gets the zeroed, row-major elements.
    ///
    /// What it writes has to be in range where `dtype` is `pred` or a sub-byte integer.
    ///
    /// # Errors
    /// As [`HostTensor::zeros`], or [`TensorError::ElementType`] where `T` does not store `dtype`.
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

/// Properties and reading.
impl HostTensor {
    /// The element type.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The dimensions.
    #[must_use]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Number of dimensions.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.shape.rank()
    }

    /// The axis names, if any were given.
    #[must_use]
    pub fn names(&self) -> Option<&Names> {
        self.names.as_ref()
    }

    /// Number of elements.
    #[must_use]
    pub fn size(&self) -> usize {
        self.shape.size()
    }

    /// Bytes the elements take.
    #[must_use]
    pub fn byte_size(&self) -> usize {
        self.size() * self.dtype.size()
    }

    /// The elements as native-endian row-major bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.storage.bytes()
    }

    /// The memory, to be held by others: a device that reads it later, another library. While they
    /// do, writing through this handle is refused or works on a copy.
    #[must_use]
    pub fn share(&self) -> Frozen {
        self.storage.share()
    }

    /// The elements in row-major order.
    ///
    /// # Errors
    /// [`TensorError::ElementType`] where `T` does not store the dtype.
    pub fn as_slice<T: Element>(&self) -> Result<&[T], TensorError> {
        check_element_type::<T>(self.dtype)?;
        Ok(bytemuck::cast_slice(self.bytes()))
    }

    /// A copy of the elements in row-major order.
    ///
    /// # Errors
    /// As [`HostTensor::as_slice`].
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>, TensorError> {
        self.as_slice().map(<[T]>::to_vec)
    }

    /// The elements as an `ndarray` view.
    ///
    /// # Errors
    /// As [`HostTensor::as_slice`], and [`TensorError::View`] for an empty tensor with dimensions
    /// too large for `ndarray`.
    pub fn view<T: Element>(&self) -> Result<ArrayViewD<'_, T>, TensorError> {
        ArrayViewD::from_shape(IxDyn(&self.shape), self.as_slice()?)
            .map_err(|_| TensorError::View { shape: self.shape.clone() })
    }

    /// The only element of a tensor that has exactly one, of any rank.
    ///
    /// # Errors
    /// [`TensorError::NotOneElement`].
    pub fn item(&self) -> Result<Scalar, TensorError> {
        if self.size() == 1 {
            Ok(self.get(0))
        } else {
            Err(TensorError::NotOneElement { shape: self.shape.clone() })
        }
    }

    /// The element at a row-major index.
    ///
    /// # Panics
    /// Panics if `index >= size`, as slices do.
    #[must_use]
    pub fn get(&self, index: usize) -> Scalar {
        match_dtype!(self.dtype, T => bytemuck::cast_slice::<u8, T>(self.bytes())[index].to_scalar())
    }

    /// The number that all elements are, bit for bit, if they are one number. None without elements.
    #[must_use]
    pub fn repeated(&self) -> Option<Scalar> {
        match_dtype!(self.dtype, T => {
            let elements = bytemuck::cast_slice::<u8, T>(self.bytes());
            let value = elements.first()?.to_scalar();
            // A number may say less than its bits, as for NaN.
            let same = T::from_scalar(value.cast(self.dtype));
            let same = bytemuck::bytes_of(&same);
            elements.iter().all(|element| bytemuck::bytes_of(element) == same).then_some(value)
        })
    }

    /// Whether dtype, shape and all bytes are equal. NaN equals itself here, `-0.0` differs from
    /// `0.0`, and names do not matter.
    #[must_use]
    pub fn same_bits(&self, other: &HostTensor) -> bool {
        self.dtype == other.dtype && self.shape == other.shape && self.bytes() == other.bytes()
    }

    /// Feeds what [`HostTensor::same_bits`] compares to a hasher.
    pub fn hash_content<H: Hasher>(&self, state: &mut H) {
        self.dtype.hash(state);
        self.shape.hash(state);
        state.write(self.bytes());
    }

    /// A hash of what [`HostTensor::same_bits`] compares, stable within one build of the program.
    #[must_use]
    pub fn content_hash(&self) -> u64 {
        let mut state = DefaultHasher::new();
        self.hash_content(&mut state);
        state.finish()
    }
}

/// Tensors made from this one, and writing.
impl HostTensor {
    /// The same elements in another shape, without a copy. Names are dropped.
    ///
    /// # Errors
    /// Returns [`TensorError::Reshape`] if the number of elements differs, and
    /// [`ShapeError::Rank`](crate::ShapeError::Rank) if there are too many axes.
    pub fn reshape(&self, shape: impl Into<Shape>) -> Result<HostTensor, TensorError> {
        let shape = shape.into();
        shape.check_rank()?;
        if shape.checked_size() != Some(self.size()) {
            return Err(TensorError::Reshape { from: self.shape.clone(), to: shape });
        }
        Ok(HostTensor { dtype: self.dtype, shape, names: None, storage: self.storage.clone() })
    }

    /// The same tensor with other axis names, or with none.
    ///
    /// # Errors
    /// [`NamesError::Length`] where their number is not the rank.
    pub fn with_names(self, names: Option<Names>) -> Result<HostTensor, TensorError> {
        if let Some(names) = names.as_ref().filter(|names| names.len() != self.rank()) {
            return Err(NamesError::Length { names: names.clone(), rank: self.rank() }.into());
        }
        Ok(HostTensor { names, ..self })
    }

    /// The elements converted by [`Scalar::cast`], names kept. Costs nothing for the same dtype.
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

    /// The bytes for writing in place, if this is the only handle to memory the tensor owns.
    ///
    /// What is written has to be in range where the dtype is `pred` or a sub-byte integer.
    pub fn try_unique_mut(&mut self) -> Option<&mut [u8]> {
        self.storage.unique_mut()
    }

    /// The elements for writing, copied first where another handle shares them.
    ///
    /// What is written has to be in range where the dtype is `pred` or a sub-byte integer.
    ///
    /// # Errors
    /// [`TensorError::ElementType`] where `T` does not store the dtype, and
    /// [`TensorError::OutOfMemory`] where there is no memory for a copy.
    pub fn make_mut<T: Element>(&mut self) -> Result<&mut [T], TensorError> {
        check_element_type::<T>(self.dtype)?;
        if self.try_unique_mut().is_none() {
            let (bytes, shape) = (self.bytes().len(), self.shape.clone());
            let copy = Storage::copy_of(self.bytes());
            self.storage = HostTensor::over(self.dtype, shape, bytes, copy)?.storage;
        }
        Ok(bytemuck::cast_slice_mut(self.new_bytes()))
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
    shape.check_rank()?;
    if shape.checked_size() == Some(actual) {
        Ok(())
    } else {
        Err(TensorError::ElementCount { shape: shape.clone(), expected: shape.size(), actual })
    }
}

fn byte_size(dtype: DType, shape: &Shape) -> Result<usize, TensorError> {
    shape.check_rank()?;
    shape
        .checked_size()
        .and_then(|size| size.checked_mul(dtype.size()))
        // Allocations are limited to `isize::MAX` bytes, rounding up to the alignment included.
        .filter(|bytes| isize::try_from(bytes.saturating_add(crate::block::ALIGNMENT)).is_ok())
        .ok_or_else(|| TensorError::TooLarge { dtype, shape: shape.clone() })
}

/// Checks the number of bytes, and their range for types that do not use all of a byte.
fn check_bytes(dtype: DType, shape: &Shape, bytes: &[u8]) -> Result<(), TensorError> {
    let expected = byte_size(dtype, shape)?;
    if bytes.len() != expected {
        let (shape, actual) = (shape.clone(), bytes.len());
        return Err(TensorError::ByteCount { dtype, shape, expected, actual });
    }
    check_range(dtype, bytes)
}

/// Checks the range of bytes of types that do not use all of a byte.
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
