//! Nested lists of numbers and arrays, and the tensors that they become.

use nxla_runtime::host::{
    DType, HostTensor, NumberError, Scalar, Shape, TensorError, promote_keep_pred,
};
use nxla_runtime::{Number, RawTensor};
use pyo3::prelude::*;

use crate::apply::{one, run_eagerly};
use crate::containers::check_depth;
use crate::errors::{OrRaise, argument_error, memory_error, number_error};
use crate::expr::PyExpr;
use crate::numbers::{self, checked_weak_scalar};
use crate::value::{FromPython, Value, describe, is_list, number_of};

/// The error for a list with items of unequal depths.
const UNEQUAL_DEPTHS: &str = "value: nested lists must have equal depths";

/// A tensor of nested lists of numbers.
pub(crate) fn from_nested_list(value: &Bound<'_, PyAny>, dtype: Option<DType>) -> PyResult<Value> {
    let read = Nested::of(value)?;
    let dtype = match dtype {
        Some(dtype) => {
            // Elements of arrays are converted as by `astype`.
            numbers::all_fit(read.scalars(), dtype)?;
            dtype
        }
        None => read.dtype()?,
    };
    read.tensor_of(value, dtype)
}

/// The elements of nested sequences in row-major order, and their shape.
#[derive(Default)]
pub(crate) struct Nested {
    /// The arrays, while only arrays of one dtype were read; their bytes are copied at the end.
    arrays: Vec<HostTensor>,
    /// The elements otherwise.
    numbers: Vec<Number>,
    /// The Python scalars among the elements, if arrays were read too.
    scalars: Vec<Number>,
    dims: Vec<usize>,
    /// The promoted dtype of the arrays.
    dtype: Option<DType>,
    /// True if a tensor has axis names or vectorized axes, or is on a device. Elements from there on
    /// were not read.
    needs_stack: bool,
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

    /// The Python scalars.
    pub(crate) fn scalars(&self) -> &[Number] {
        if self.has_arrays() { &self.scalars } else { &self.numbers }
    }

    /// True if the list contains tensors with axis names, with vectorized axes or on a device, whose
    /// elements are not read.
    pub(crate) fn needs_stack(&self) -> bool {
        self.needs_stack
    }

    /// True if the list contains arrays.
    pub(crate) fn has_arrays(&self) -> bool {
        self.dtype.is_some()
    }

    /// The promoted dtype of all elements.
    pub(crate) fn dtype(&self) -> PyResult<DType> {
        if self.dtype.is_some_and(DType::is_integer) {
            // Arrays of `u64` and of signed integers promote to `s64`, in which a large element of a
            // literal would wrap.
            numbers::need_u64(self.numbers.iter().copied())?;
        }
        common_dtype(self.scalars(), self.dtype)
    }

    /// A tensor of `lists`, from which the elements were read.
    pub(crate) fn tensor_of(&self, lists: &Bound<'_, PyAny>, dtype: DType) -> PyResult<Value> {
        if self.needs_stack { stack(lists, dtype) } else { self.tensor(dtype) }
    }

    /// A tensor of the scalars; each scalar is rounded once.
    pub(crate) fn tensor(&self, dtype: DType) -> PyResult<Value> {
        Shape::from(&self.dims[..])
            .check_limits()
            .map_err(|error| argument_error("tensor", format!("value: {error}")))?;
        let tensor = match self.arrays.first() {
            Some(first) => self.join(first.dtype()).or_raise()?.cast(dtype),
            None => from_numbers(&self.numbers, dtype, &self.dims).or_raise()?,
        };
        Ok(Value::Tensor(tensor.into()))
    }

    /// A tensor of all arrays, which have this dtype.
    fn join(&self, dtype: DType) -> Result<HostTensor, TensorError> {
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
            Some(_) if depth != self.dims.len() && !self.needs_stack => {
                Err(argument_error("tensor", UNEQUAL_DEPTHS))
            }
            Some(number) => {
                self.split_arrays()?;
                if self.has_arrays() {
                    push(&mut self.scalars, number)?;
                }
                push(&mut self.numbers, number)
            }
            None => match Value::try_of(value)? {
                Some(Value::Tensor(tensor)) => self.array(&tensor, depth),
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
            _ if self.needs_stack => {}
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
    fn array(&mut self, tensor: &RawTensor, depth: usize) -> PyResult<()> {
        let dtype = tensor.dtype();
        if !self.has_arrays() {
            self.scalars.clone_from(&self.numbers);
        }
        self.dtype = Some(self.dtype.map_or(dtype, |known| promote_keep_pred(known, dtype)));
        let RawTensor::Host(host) = tensor else {
            self.needs_stack = true;
            return Ok(());
        };
        self.needs_stack |= host.names().is_some();
        if self.needs_stack {
            return Ok(());
        }
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
        let is_alike = self.arrays.last().is_none_or(|last| last.dtype() == dtype);
        self.arrays.push(host.clone());
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
            (0..array.size())
                .try_for_each(|at| push(&mut self.numbers, number_from(array.get(at), dtype)))?;
        }
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

fn push(numbers: &mut Vec<Number>, number: Number) -> PyResult<()> {
    numbers.try_reserve(1).map_err(|_| {
        let bytes = 2 * numbers.capacity() * size_of::<Number>();
        memory_error(format!("tensor: cannot allocate {bytes} bytes for the numbers of a list"))
    })?;
    numbers.push(number);
    Ok(())
}

/// The promoted dtype of Python scalars and arrays, by the rules of operands of a call.
fn common_dtype(scalars: &[Number], arrays: Option<DType>) -> PyResult<DType> {
    let refused = |error: NumberError| number_error("tensor", error);
    if arrays.is_none_or(DType::is_pred) && numbers::need_u64(scalars.iter().copied())? {
        return Ok(DType::U64);
    }
    let is_float = |number: &Number| matches!(number, Number::Float(_) | Number::Complex(..));
    // Combined with a float, an integer of any size counts as a float.
    let beside = if scalars.iter().any(is_float) { Some(DType::F32) } else { None };
    let mut common = arrays;
    for &number in scalars {
        let dtype = match (checked_weak_scalar(number, arrays)?, arrays) {
            (Value::Number(Number::Int(_) | Number::LargeInt(_)), None) => {
                number.weak_scalar(beside).map_err(refused)?.1
            }
            (Value::Number(number), _) => number.weak_scalar(arrays).map_err(refused)?.1,
            (Value::Tensor(tensor), _) => tensor.dtype(),
            (Value::Expr(_), _) => unreachable!("a scalar is not traced"),
        };
        common = Some(common.map_or(dtype, |common| promote_keep_pred(common, dtype)));
    }
    Ok(common.unwrap_or(DType::F32))
}

/// Stacks lists with tensors that have axis names or vectorized axes or are on a device, as `nx.stack`
/// does.
fn stack(list: &Bound<'_, PyAny>, dtype: DType) -> PyResult<Value> {
    let part = |item: PyResult<Bound<'_, PyAny>>| {
        let item = item?;
        if is_list(&item) {
            return stack(&item, dtype);
        }
        match Value::of(&item, "tensor")? {
            Value::Number(number) => numbers::tensor_of(number, Some(dtype)).map(Value::Tensor),
            value => Ok(value),
        }
    };
    let parts = list.try_iter()?.map(part).collect::<PyResult<Vec<_>>>()?;
    let made = run_eagerly(list.py(), "tensor", &parts, &mut |graph, ids| {
        let ids = ids.iter().map(|&id| graph.as_type(id, dtype));
        let ids = ids.collect::<Result<Vec<_>, _>>()?;
        one(graph.stack(&ids, 0, None))
    })?;
    Value::of(made[0].bind(list.py()), "tensor")
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
