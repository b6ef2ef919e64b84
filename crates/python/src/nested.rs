//! Nested lists of numbers and arrays, and the tensors that they become.

use nxla_runtime::host::{
    DType, HostTensor, NumberError, Scalar, Shape, TensorError, promote_keep_pred,
};
use nxla_runtime::{Number, RawTensor};
use pyo3::prelude::*;

use crate::containers::check_depth;
use crate::errors::{OrRaise, argument_error, memory_error};
use crate::expr::PyExpr;
use crate::interrupt::read_interruptible;
use crate::numbers;
use crate::value::{FromPython, Value, describe, is_list, number_of};

/// The error for a list with items of unequal depths.
const UNEQUAL_DEPTHS: &str = "value: nested lists must have equal depths";

/// A tensor of nested lists of numbers.
pub(crate) fn from_nested_list(value: &Bound<'_, PyAny>, dtype: Option<DType>) -> PyResult<Value> {
    let read = Nested::of(value)?;
    let dtype = match dtype {
        Some(dtype) => {
            // Elements of arrays are converted as by `astype`.
            if !read.has_arrays() {
                numbers::all_fit(&read.numbers, dtype)?;
            }
            dtype
        }
        None => read.dtype()?,
    };
    read.tensor(dtype)
}

/// The elements of nested sequences in row-major order, and their shape.
#[derive(Default)]
pub(crate) struct Nested {
    /// The arrays, while only arrays of one dtype were read; their bytes are copied at the end.
    arrays: Vec<HostTensor>,
    /// The elements otherwise.
    numbers: Vec<Number>,
    dims: Vec<usize>,
    /// The promoted dtype of the arrays among them. Scalars do not contribute if arrays are
    /// present.
    dtype: Option<DType>,
}

impl Nested {
    /// Reads nested lists.
    pub(crate) fn of(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        let mut read = Self::default();
        read.read(value, 0)?;
        Ok(read)
    }

    /// Converts arrays to numbers too.
    pub(crate) fn into_numbers(mut self) -> PyResult<Self> {
        self.split_arrays()?;
        Ok(self)
    }

    /// The numbers in row-major order, unless all elements are in arrays of one dtype.
    pub(crate) fn numbers(&self) -> &[Number] {
        &self.numbers
    }

    /// True if the list contains arrays.
    pub(crate) fn has_arrays(&self) -> bool {
        self.dtype.is_some()
    }

    /// The dtype of all scalars.
    pub(crate) fn dtype(&self) -> PyResult<DType> {
        common_dtype(&self.numbers, self.dtype)
    }

    /// A tensor of the scalars; each scalar is rounded once.
    pub(crate) fn tensor(&self, dtype: DType) -> PyResult<Value> {
        let tensor = match self.arrays.first() {
            Some(first) => self.stack(first.dtype()).or_raise()?.cast(dtype),
            None => from_numbers(&self.numbers, dtype, &self.dims).or_raise()?,
        };
        Ok(Value::Tensor(tensor.into()))
    }

    /// A tensor of all arrays, which have this dtype.
    fn stack(&self, dtype: DType) -> Result<HostTensor, TensorError> {
        HostTensor::from_writer(dtype, Shape::from(&self.dims[..]), |mut out| {
            for array in &self.arrays {
                let (to, rest) = out.split_at_mut(array.bytes().len());
                to.copy_from_slice(array.bytes());
                out = rest;
            }
            Ok(())
        })
    }

    fn read(&mut self, value: &Bound<'_, PyAny>, depth: usize) -> PyResult<()> {
        if is_list(value) {
            check_depth(depth + 1, &|| "tensor".into())?;
            self.axis(depth, value.len()?)?;
            for item in value.try_iter()? {
                self.read(&item?, depth + 1)?;
            }
            return Ok(());
        }
        match number_of(value)? {
            Some(_) if depth != self.dims.len() => Err(argument_error("tensor", UNEQUAL_DEPTHS)),
            Some(number) => {
                self.split_arrays()?;
                self.push(number)
            }
            None => match Value::try_of(value)? {
                Some(Value::Tensor(tensor)) => self.array(value.py(), &tensor, depth),
                _ => {
                    let kind = if value.is_instance_of::<PyExpr>() {
                        "a traced value".into()
                    } else {
                        describe(value)?
                    };
                    let why = format!(
                        "value: lists must contain numbers; got {kind}; use nx.stack for tensors"
                    );
                    Err(argument_error("tensor", why))
                }
            },
        }
    }

    /// Starts a list, or an axis of an array, at a depth.
    fn axis(&mut self, depth: usize, length: usize) -> PyResult<()> {
        match self.dims.get(depth) {
            None if self.is_empty() && !self.has_empty_rows() => self.dims.push(length),
            Some(&expected) if expected == length => {}
            Some(&expected) => {
                let why = format!(
                    "value: lists must not be ragged; got rows of length {expected} and {length} on \
                     axis {depth}"
                );
                return Err(argument_error("tensor", why));
            }
            None => {
                return Err(argument_error("tensor", UNEQUAL_DEPTHS));
            }
        }
        Ok(())
    }

    /// True if an empty row was read, whose inner axes are unknown.
    fn has_empty_rows(&self) -> bool {
        self.dims.last() == Some(&0)
    }

    /// Reads an array inside a list.
    fn array(&mut self, py: Python<'_>, tensor: &RawTensor, depth: usize) -> PyResult<()> {
        let host = match tensor.data() {
            RawTensor::Host(host) => host.clone(),
            device => read_interruptible(py, device)?,
        };
        check_depth(depth + host.rank(), &|| "tensor".into())?;
        if self.dims.len() == depth && self.is_empty() && !self.has_empty_rows() {
            self.dims.extend(host.shape());
        }
        for (axis, &length) in host.shape().iter().enumerate() {
            self.axis(depth + axis, length)?;
        }
        if depth + host.rank() != self.dims.len() {
            return Err(argument_error(
                "tensor",
                "value: arrays must have equal ranks; got an array with too few axes",
            ));
        }
        let dtype = host.dtype();
        self.dtype = Some(self.dtype.map_or(dtype, |known| promote_keep_pred(known, dtype)));
        let is_alike = self.arrays.last().is_none_or(|last| last.dtype() == dtype);
        self.arrays.push(host);
        if is_alike && self.numbers.is_empty() { Ok(()) } else { self.split_arrays() }
    }

    /// True if no element was read.
    fn is_empty(&self) -> bool {
        self.numbers.is_empty() && self.arrays.iter().all(|array| array.size() == 0)
    }

    /// Converts the arrays to numbers, before another kind of element.
    fn split_arrays(&mut self) -> PyResult<()> {
        for array in std::mem::take(&mut self.arrays) {
            let dtype = array.dtype();
            (0..array.size()).try_for_each(|at| self.push(number_from(array.get(at), dtype)))?;
        }
        Ok(())
    }

    fn push(&mut self, number: Number) -> PyResult<()> {
        self.numbers.try_reserve(1).map_err(|_| {
            let bytes = 2 * self.numbers.capacity() * size_of::<Number>();
            memory_error(format!("tensor: cannot allocate {bytes} bytes for the numbers of a list"))
        })?;
        self.numbers.push(number);
        Ok(())
    }
}

fn number_from(scalar: Scalar, dtype: DType) -> Number {
    match scalar {
        Scalar::UInt(value) if dtype.is_pred() => Number::Bool(value != 0),
        Scalar::Int(value) => Number::Int(value.into()),
        Scalar::UInt(value) => Number::Int(value.into()),
        Scalar::Float(value) => Number::Float(value),
        Scalar::Complex(re, im) => Number::Complex(re, im),
    }
}

/// The dtype of all scalars: the promotion of their own dtypes, or of the arrays.
fn common_dtype(numbers: &[Number], arrays: Option<DType>) -> PyResult<DType> {
    let refused = |error: NumberError| argument_error("tensor", error.to_string());
    if numbers::need_u64(numbers.iter().copied())? && arrays.is_none_or(DType::is_integer) {
        return Ok(DType::U64);
    }
    let is_float = |number: &Number| matches!(number, Number::Float(_) | Number::Complex(..));
    // Combined with a float, an integer of any size counts as a float.
    let is_integral = arrays.is_none_or(|dtype| !dtype.is_float() && !dtype.is_complex());
    let other = if is_integral && numbers.iter().any(is_float) { Some(DType::F32) } else { arrays };
    let mut common = arrays;
    for &number in numbers {
        let (_, dtype) = match (number, arrays) {
            (_, Some(_)) | (Number::Int(_) | Number::LargeInt(_), None) => {
                number.weak_scalar(other).map_err(refused)?
            }
            (_, None) => number.weak_scalar(None).map_err(refused)?,
        };
        common = Some(common.map_or(dtype, |common| promote_keep_pred(common, dtype)));
    }
    Ok(common.unwrap_or(DType::F32))
}

fn from_numbers(
    numbers: &[Number],
    dtype: DType,
    dims: &[usize],
) -> Result<HostTensor, TensorError> {
    let mut tensor = HostTensor::zeros(dtype, Shape::from(dims))?;
    nxla_runtime::host::match_dtype!(dtype, T => {
        let elements = tensor.make_mut::<T>()?;
        for (element, number) in elements.iter_mut().zip(numbers) {
            *element = <T as nxla_runtime::host::Element>::from_scalar(number.cast(dtype));
        }
    });
    Ok(tensor)
}
