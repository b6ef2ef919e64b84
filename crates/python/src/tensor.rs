//! The tensor class: data on the host or on a device.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use nxla_runtime::host::{DType, HostTensor, PrintOptions, Scalar, TensorError};
use nxla_runtime::vectors::NewVector;
use nxla_runtime::{DeviceText, RawTensor, VectorAxes};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyComplex, PyList, PyString, PyTuple};

use crate::apply::in_dtype;
use crate::arrays::{self, Sharing};
use crate::containers::check_depth;
use crate::device::{self, PyDevice, device_from};
use crate::dlpack;
use crate::dtype::{DTypeArg, PyDType};
use crate::errors::{OrRaise, argument_error, exception, format_error, memory_error};
use crate::exchange;
use crate::expr::operator_methods;
use crate::interrupt::{read_interruptible, wait_interruptible};
use crate::lazy::{self, PyLazy};
use crate::live;
use crate::nested::from_nested_list;
use crate::numbers;
use crate::ops::args::NamesArg;
use crate::ops::declare::Converted;
use crate::ops::indexing;
use crate::value::{Value, describe, is_list, number_of};

/// An array of numbers, in host memory or on a device.
///
/// A tensor on a device may still be under computation; reading waits for it. The data of a tensor
/// never changes: assigning to elements replaces the data of the variable, and other variables keep
/// the old data.
#[pyclass(name = "Tensor", module = "nxla", frozen, weakref)]
pub(crate) struct PyTensor {
    data: Mutex<RawTensor>,
    /// The number of assignments to elements. It changes only while `data` is locked.
    assignments: AtomicU64,
}

impl PyTensor {
    pub(crate) fn wrap(py: Python<'_>, tensor: RawTensor) -> PyResult<Py<PyAny>> {
        let made =
            Bound::new(py, PyTensor { data: Mutex::new(tensor), assignments: AtomicU64::new(0) })?;
        if live::is_on() {
            live::track(&made)?;
        }
        Ok(made.into_any().unbind())
    }

    /// The current data.
    pub(crate) fn tensor(&self) -> RawTensor {
        self.read().clone()
    }

    /// The tensor, for inspecting its type. Code that waits for data or calls Python must use
    /// [`PyTensor::tensor`], or others could not assign meanwhile.
    pub(crate) fn read(&self) -> MutexGuard<'_, RawTensor> {
        self.data.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the data by `update` of the data, which may wait and call Python. If another thread
    /// replaces the data meanwhile, the update is computed again, so that no assignment is lost.
    pub(crate) fn replace(
        &self,
        mut update: impl FnMut(RawTensor) -> PyResult<RawTensor>,
    ) -> PyResult<()> {
        loop {
            let (data, seen) = {
                let data = self.read();
                (data.clone(), self.assignments.load(Ordering::Relaxed))
            };
            let updated = update(data)?;
            let mut data = self.read();
            if self.assignments.load(Ordering::Relaxed) == seen {
                self.assignments.store(seen + 1, Ordering::Relaxed);
                // Drop the old data after the lock is released, since dropping may take long.
                let _former = std::mem::replace(&mut *data, updated);
                drop(data);
                return Ok(());
            }
        }
    }

    /// The data of all entries on the host; waits without blocking other Python threads.
    pub(crate) fn host(&self, py: Python<'_>) -> PyResult<HostTensor> {
        host_of(py, &self.tensor())
    }

    /// The only element.
    fn item_scalar(&self, py: Python<'_>, function: &str) -> PyResult<Scalar> {
        only_element(py, &self.tensor(), function)
    }

    /// Return the only element as a Python number; several elements are an error.
    fn item_number(&self, py: Python<'_>, function: &str) -> PyResult<Py<PyAny>> {
        let tensor = self.tensor();
        python_number(py, only_element(py, &tensor, function)?, tensor.dtype())
    }
}

fn only_element(py: Python<'_>, tensor: &RawTensor, function: &str) -> PyResult<Scalar> {
    let (vectors, shape) = (tensor.vectors(), tensor.shape());
    match host_of(py, tensor)?.item() {
        Ok(item) if vectors.is_empty() => Ok(item),
        _ => Err(argument_error(
            function,
            format!(
                "x: must have exactly one element; got shape {vectors}{shape}; select an element, or \
                 reduce the tensor, as in nx.all(x)"
            ),
        )),
    }
}

fn host_of(py: Python<'_>, tensor: &RawTensor) -> PyResult<HostTensor> {
    match tensor.data() {
        RawTensor::Host(tensor) => Ok(tensor.clone()),
        device => read_interruptible(py, device),
    }
}

/// A Python number of an element.
pub(crate) fn python_number(py: Python<'_>, scalar: Scalar, dtype: DType) -> PyResult<Py<PyAny>> {
    match scalar {
        Scalar::UInt(value) if dtype.is_pred() => (value != 0).into_py_any(py),
        Scalar::Int(value) => value.into_py_any(py),
        Scalar::UInt(value) => value.into_py_any(py),
        Scalar::Float(value) => value.into_py_any(py),
        Scalar::Complex(re, im) => Ok(PyComplex::from_doubles(py, re, im).into_any().unbind()),
    }
}

/// The pickled form of a tensor: a function and its arguments.
type Pickled =
    (Py<PyAny>, (Py<PyAny>, PyDType, Vec<usize>, Option<Vec<Option<String>>>, Vec<String>));

operator_methods!(PyTensor {
    fn __setitem__(
        slf: &Bound<'_, Self>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        indexing::set_tensor_item(slf, key, value)
    }

    /// The element type.
    #[getter]
    fn dtype(&self) -> PyDType {
        PyDType(self.read().dtype())
    }

    /// The size of each axis.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.tensor().shape().iter())
    }

    /// The number of axes.
    #[getter]
    fn ndim(&self) -> usize {
        self.read().shape().rank()
    }

    /// The number of elements.
    #[getter]
    fn size(&self) -> usize {
        self.read().shape().size()
    }

    /// The bytes of the data in memory.
    #[getter]
    pub(crate) fn nbytes(&self) -> usize {
        let tensor = self.read();
        tensor.data().shape().byte_size(tensor.dtype())
    }

    /// The names of the axes; None for an axis without a name.
    #[getter]
    fn names(&self) -> Vec<Option<String>> {
        crate::program::axis_names(&self.tensor().ty())
    }

    /// The vectorized axes as pairs of a name and a size; `shape` and all functions describe one
    /// entry.
    #[getter]
    fn vectorized_axes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        crate::ops::vectors::vectors_to_python(py, self.tensor().vectors())
    }

    /// The tensor with reversed axes.
    #[getter(T)]
    fn transposed(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        crate::ops::movement::reversed_axes(slf)
    }

    /// The device of the data.
    #[getter]
    fn device(&self) -> PyDevice {
        PyDevice(self.tensor().device())
    }

    /// Return the tensor if it is on the device, else a copy there. ``copy=True`` always copies,
    /// and ``copy=False`` forbids a copy. `stream` is part of the standard, and must be None.
    #[pyo3(signature = (device, /, *, stream=None, copy=None))]
    fn to_device(
        slf: &Bound<'_, Self>,
        device: &Bound<'_, PyAny>,
        stream: Option<&Bound<'_, PyAny>>,
        copy: Option<Converted<bool>>,
    ) -> PyResult<Py<PyAny>> {
        if stream.is_some() {
            return Err(argument_error("to_device", "stream: must be None"));
        }
        let copy = copy.map(|copy| copy.value(slf.py(), "to_device", "copy")).transpose()?;
        device::to_device(slf, &device_from(device)?, copy)
    }

    /// Return the tensor on the device; the original is freed, even if the copy fails.
    #[pyo3(signature = (device, /))]
    fn transfer_to(slf: &Bound<'_, Self>, device: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        device::transfer(slf, &device_from(device)?)
    }

    /// The first elements in row-major order as bytes; only these elements are read from a device.
    #[pyo3(signature = (limit=None))]
    fn _first_bytes<'py>(
        &self,
        py: Python<'py>,
        limit: Option<usize>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let tensor = self.tensor();
        wait_interruptible(py, &tensor)?;
        let limit = limit.unwrap_or(usize::MAX);
        let first = py.detach(|| tensor.first(limit)).or_raise()?;
        bytes_object(py, first.bytes())
    }

    /// Return whether device memory has been freed or donated.
    fn is_released(&self) -> PyResult<bool> {
        self.tensor().is_released().or_raise()
    }

    /// Return whether reading would not wait.
    fn is_ready(&self) -> PyResult<bool> {
        self.tensor().is_ready().or_raise()
    }

    /// Wait until the data is computed, and return the tensor.
    fn block_until_ready<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        let tensor = slf.get().tensor();
        wait_interruptible(slf.py(), &tensor)?;
        Ok(slf.clone())
    }

    /// Free device memory immediately, and return whether memory was freed. Host memory is freed
    /// with the last reference.
    fn deallocate(&self) -> PyResult<bool> {
        self.tensor().deallocate().or_raise()
    }

    /// Return a copy in host memory, or the tensor if it is on the host.
    fn to_host(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let tensor = slf.get().tensor();
        let host = RawTensor::from(host_of(slf.py(), &tensor)?);
        PyTensor::wrap(slf.py(), host.with_vectors(tensor.vectors().clone()))
    }

    /// Return the only element as a Python number; several elements are an error.
    fn item(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.item_number(py, "item")
    }

    /// Return the elements as nested lists; a number for a scalar.
    fn tolist(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let host = self.host(py)?;
        check_depth(host.rank(), &|| "tolist".into())?;
        check_room(host.size())?;
        lists(py, &host, host.shape(), &mut 0)
    }

    /// Return a NumPy array: a read-only view of a host tensor, or a copy of a device tensor.
    fn numpy(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        crate::numpy::to_numpy(py, self.host(py)?)
    }

    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__(
        &self,
        py: Python<'_>,
        dtype: Option<&Bound<'_, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Py<PyAny>> {
        let array = crate::numpy::to_numpy(py, self.host(py)?)?;
        let array = array.bind(py);
        let wanted = match dtype {
            Some(dtype) if !dtype.is_none() => Some(dtype),
            _ => None,
        };
        if copy == Some(false) {
            let is_shared = match wanted {
                Some(dtype) => array.getattr("dtype")?.eq(dtype)?,
                None => true,
            };
            if is_shared && self.read().buffer().is_none() {
                return Ok(array.clone().unbind());
            }
            let why = "copy: must not be False for another dtype or for data on a device; use \
                       numpy.asarray, which copies if necessary";
            return Err(argument_error("array", why));
        }
        Ok(match (wanted, copy) {
            (Some(dtype), _) => array.call_method1("astype", (dtype,))?.unbind(),
            (None, Some(true)) => array.call_method0("copy")?.unbind(),
            (None, _) => array.clone().unbind(),
        })
    }

    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__(
        &self,
        py: Python<'_>,
        stream: Option<&Bound<'_, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Py<PyAny>> {
        // The data is ready on every stream.
        let _ = stream;
        let request = exchange::Request { max_version, device: dl_device, copy };
        exchange::export(py, &self.tensor(), &request)
    }

    fn __dlpack_device__(&self) -> (i32, i32) {
        exchange::device_of(&self.read())
    }

    /// The type and the first elements. Only printed elements are read from a device, and nothing
    /// is read from a released tensor.
    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let (py, tensor) = (slf.py(), &slf.get().tensor());
        let released = tensor.is_released().or_raise()?;
        if !released {
            wait_interruptible(py, tensor)?;
        }
        let (options, shown) = *PRINTING.lock().unwrap_or_else(PoisonError::into_inner);
        let device = if shown { DeviceText::Buffer } else { DeviceText::Omitted };
        Ok(py.detach(|| tensor.text(&options, device)))
    }

    /// A tensor with one element is formatted as a number, as in ``f"{loss:.3f}"``.
    fn __format__<'py>(
        slf: &Bound<'py, Self>,
        format: &Bound<'py, PyString>,
    ) -> PyResult<Bound<'py, PyString>> {
        if format.is_empty()? {
            return slf.str();
        }
        slf.get()
            .item_number(slf.py(), "number to format")?
            .bind(slf.py())
            .call_method1("__format__", (format,))?
            .cast_into()
            .map_err(Into::into)
    }

    fn __len__(&self) -> PyResult<usize> {
        match self.tensor().shape().first() {
            Some(&length) => Ok(length),
            None => Err(PyTypeError::new_err("a scalar tensor has no length")),
        }
    }

    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        indexing::iterate(slf)
    }

    fn __hash__(slf: &Bound<'_, Self>) -> isize {
        slf.as_ptr() as isize >> 4
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(!self.item_scalar(py, "bool")?.is_zero())
    }

    fn __int__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let number = self.item_number(py, "integer value")?;
        Ok(py.get_type::<pyo3::types::PyInt>().call1((number,))?.unbind())
    }

    fn __index__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let dtype = self.read().dtype();
        if !dtype.is_integer() {
            return Err(PyTypeError::new_err(format!("index: dtype must be an integer dtype; got {dtype}")));
        }
        self.item_number(py, "index")
    }

    fn __float__(&self, py: Python<'_>) -> PyResult<f64> {
        if self.read().dtype().is_complex() {
            return Err(PyTypeError::new_err("float: dtype must be real; got a complex tensor"));
        }
        Ok(self.item_scalar(py, "float value")?.as_f64())
    }

    /// A heatmap as a string, with shades if `cells` is given.
    fn _heatmap(&self, py: Python<'_>, title: &str, cell: Option<&str>) -> PyResult<String> {
        let heatmap = self.host(py)?.heatmap().or_raise()?.title(title);
        Ok(match cell {
            None => heatmap.to_string(),
            Some(cell) => heatmap.shades(cell).to_string(),
        })
    }

    fn __complex__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyComplex>> {
        let (re, im) = self.item_scalar(py, "complex value")?.parts();
        Ok(PyComplex::from_doubles(py, re, im))
    }

    fn __reduce__(slf: &Bound<'_, Self>) -> PyResult<Pickled> {
        Self::__reduce_ex__(slf, 0)
    }

    /// From protocol 5 on, pickles refer to the memory of large tensors without a copy.
    fn __reduce_ex__(slf: &Bound<'_, Self>, protocol: u32) -> PyResult<Pickled> {
        let py = slf.py();
        let host = slf.get().host(py)?;
        let rebuild = py.import("nxla._core")?.getattr("tensor_from_bytes")?.unbind();
        let (dtype, shape) = (PyDType(host.dtype()), host.shape().to_vec());
        let tensor = slf.get().tensor();
        let data = tensor.data().ty();
        let names = data.names.is_some().then(|| crate::program::axis_names(&data));
        let vectors = tensor.vectors().iter().map(|axis| axis.name.to_string()).collect();
        let bytes = if protocol >= 5 && host.bytes().len() >= arrays::COPY_BELOW {
            let exported = Bound::new(py, dlpack::Exported { host })?;
            py.import("pickle")?.call_method1("PickleBuffer", (exported,))?
        } else {
            bytes_object(py, host.bytes())?.into_any()
        };
        Ok((rebuild, (bytes.unbind(), dtype, shape, names, vectors)))
    }

    /// The host memory of the tensor in bytes, including its data, for memory accounting.
    fn __sizeof__(&self) -> usize {
        let data = if self.read().buffer().is_none() { self.nbytes() } else { 0 };
        size_of::<PyTensor>() + data
    }

    /// Returns whether two tensors share data.
    fn _is_same_data(&self, other: &Bound<'_, Self>) -> bool {
        let (own, other) = (self.tensor(), other.get().tensor());
        match (own.data(), other.data()) {
            (RawTensor::Host(left), RawTensor::Host(right)) => {
                let same = (left.dtype(), left.shape()) == (right.dtype(), right.shape());
                same && std::ptr::eq(left.bytes(), right.bytes())
            }
            (RawTensor::Device(left), RawTensor::Device(right)) => {
                left.buffer().is(right.buffer())
            }
            _ => false,
        }
    }
});

/// The print options of the process, and whether the device is printed.
static PRINTING: Mutex<(PrintOptions, bool)> = Mutex::new((PrintOptions::DEFAULT, true));

/// Sets the print options: precision, threshold, edgeitems, linewidth, device. Returns the previous
/// options.
#[pyfunction]
pub(crate) fn set_printing(options: Printing) -> Printing {
    let (precision, threshold, edge_items, line_width, device) = options;
    let options = PrintOptions { precision, threshold, edge_items, line_width };
    let mut current = PRINTING.lock().unwrap_or_else(PoisonError::into_inner);
    let (before, shown) = std::mem::replace(&mut *current, (options, device));
    let PrintOptions { precision, threshold, edge_items, line_width } = before;
    (precision, threshold, edge_items, line_width, shown)
}

/// The print options as Python passes them.
type Printing = (Option<usize>, usize, usize, usize, bool);

/// The elements of a list, with a checked allocation.
const LONG_LIST: usize = 1 << 12;

/// A bytes object, with an error if the allocation fails.
pub(crate) fn bytes_object<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    let made = PyBytes::new_with(py, bytes.len(), |out| {
        out.copy_from_slice(bytes);
        Ok(())
    });
    made.map_err(|_| memory_error(format!("cannot allocate {} bytes", bytes.len())))
}

/// The memory of a Python number, including its list slot and allocator overhead, in bytes.
const NUMBER_BYTES: usize = 40;
const ARENA_BYTES: usize = 1 << 20;

/// Checks that memory for a long list of numbers is available, because a failed allocation inside
/// Python ends the process.
fn check_room(numbers: usize) -> PyResult<()> {
    if numbers < LONG_LIST {
        return Ok(());
    }
    let bytes = numbers.saturating_mul(NUMBER_BYTES).saturating_add(2 * ARENA_BYTES);
    let room = std::hint::black_box(Vec::<u8>::new()).try_reserve_exact(bytes);
    room.map_err(|_| memory_error(format!("tolist: cannot allocate {bytes} bytes")))
}

fn lists(
    py: Python<'_>,
    host: &HostTensor,
    dims: &[usize],
    next: &mut usize,
) -> PyResult<Py<PyAny>> {
    match dims {
        [] => {
            let number = python_number(py, host.get(*next), host.dtype())?;
            *next += 1;
            Ok(number)
        }
        [length, rest @ ..] => {
            if *length < LONG_LIST {
                let items = (0..*length).map(|_| lists(py, host, rest, next));
                return Ok(PyList::new(py, items.collect::<PyResult<Vec<_>>>()?)?.into());
            }
            // Allocates the whole list first, by the only call that can fail with an error.
            let none = PyList::new(py, [py.None()])?;
            let list = none.as_sequence().repeat(*length).map_err(|_| {
                let bytes = length.saturating_mul(size_of::<usize>());
                memory_error(format!("tolist: cannot allocate {bytes} bytes"))
            })?;
            for index in 0..*length {
                list.set_item(index, lists(py, host, rest, next)?)?;
            }
            Ok(list.into_any().unbind())
        }
    }
}

/// A tensor from a number, nested lists, a buffer, a DLPack exporter or another tensor.
///
/// By default immutable memory is shared, and other memory is copied. ``copy=True`` always copies.
/// ``copy=False`` never copies, and the caller promises not to write to the memory. A tensor is
/// returned unchanged, or converted to another dtype on its device.
///
/// Raises ``OverflowError`` for integers that an integer dtype cannot represent. Arrays and tensors
/// are converted as by `astype`.
#[pyfunction]
#[pyo3(signature = (value, dtype=None, copy=None))]
fn tensor(
    value: &Bound<'_, PyAny>,
    dtype: Option<DTypeArg>,
    copy: Option<bool>,
) -> PyResult<Py<PyAny>> {
    let py = value.py();
    if value.is_instance_of::<PyLazy>() {
        return tensor(PyTensor::wrap(py, lazy::produce(value)?)?.bind(py), dtype, copy);
    }
    let (dtype, sharing) = (dtype.map(|dtype| dtype.0), Sharing::of(copy));
    if let Some(number) = number_of(value)? {
        arrays::refuse(sharing)?;
        return PyTensor::wrap(py, numbers::tensor_of(number, dtype)?);
    }
    if is_list(value) {
        arrays::refuse(sharing)?;
        let Value::Tensor(tensor) = from_nested_list(value, dtype)? else {
            unreachable!("lists are data")
        };
        return PyTensor::wrap(py, tensor);
    }
    let mut vectors = VectorAxes::NONE;
    let host = if let Ok(tensor) = value.cast::<PyTensor>() {
        let data = &tensor.get().tensor();
        match dtype.filter(|&dtype| dtype != data.dtype()) {
            // A new handle, because assigning to elements must not affect the argument.
            None => return PyTensor::wrap(py, data.clone()),
            Some(dtype) if data.buffer().is_some() => {
                arrays::refuse(sharing)?;
                return in_dtype(py, data, dtype);
            }
            Some(_) => {}
        }
        vectors = data.vectors().clone();
        tensor.get().host(py)?
    } else if let Some(array) = arrays::import(value, sharing)? {
        match (array, dtype) {
            (RawTensor::Host(host), _) => host,
            (array, Some(dtype)) if dtype != array.dtype() => {
                arrays::refuse(sharing)?;
                return in_dtype(py, &array, dtype);
            }
            (array, _) => return PyTensor::wrap(py, array),
        }
    } else {
        let why = format!("value: must be a number, a list or an array; got {}", describe(value)?);
        return Err(argument_error("tensor", why));
    };
    let host = match dtype {
        Some(dtype) if dtype != host.dtype() => {
            arrays::refuse(sharing)?;
            py.detach(|| host.cast(dtype))
        }
        _ => host,
    };
    PyTensor::wrap(py, RawTensor::from(host).with_vectors(vectors))
}

/// Returns a tensor from a buffer of its bytes in row-major order and native byte order; the first
/// axes are vectorized under these names. Read-only memory is shared. Other memory is copied unless
/// ``owned`` is true, which promises that the memory does not change.
#[pyfunction]
#[pyo3(signature = (bytes, dtype, shape, names=None, vectorized=None, owned=false))]
fn tensor_from_bytes(
    bytes: &Bound<'_, PyAny>,
    dtype: DTypeArg,
    shape: &Bound<'_, PyAny>,
    names: Option<&Bound<'_, PyAny>>,
    vectorized: Option<&Bound<'_, PyAny>>,
    owned: bool,
) -> PyResult<Py<PyAny>> {
    // The arguments come from bytes, as in a pickle, so an invalid value means damaged bytes.
    let wrong = |argument: &str, error: PyErr| {
        format_error("tensor_from_bytes", format!("{argument}: {error}"))
    };
    let shape: Vec<usize> = shape.extract().map_err(|error| wrong("shape", error))?;
    // The names of a computed tensor can repeat.
    let names = names.map(|names| names.extract().map(NamesArg)).transpose();
    let names: Option<NamesArg> = names.map_err(|error| wrong("names", error))?;
    let vectorized: Vec<String> = match vectorized {
        Some(axes) => axes.extract().map_err(|error| wrong("vectorized", error))?,
        None => Vec::new(),
    };
    let damaged = |error: TensorError| match error {
        TensorError::OutOfMemory { .. } => exception(error.into()),
        // The public functions call the bytes `data`.
        error => {
            format_error("tensor_from_bytes", error.to_string().replacen("bytes: ", "data: ", 1))
        }
    };
    let host = arrays::from_raw(bytes, dtype.0, shape.into(), owned, damaged)?;
    let host = host.with_names(names.and_then(|names| names.names())).map_err(damaged)?;
    let axes: Vec<NewVector> = vectorized.iter().map(|name| name.as_str().into()).collect();
    let tensor = RawTensor::from(host).vectorize(&axes);
    PyTensor::wrap(
        bytes.py(),
        tensor.map_err(|error| format_error("tensor_from_bytes", error.to_string()))?,
    )
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyTensor>()?;
    module.add_function(wrap_pyfunction!(tensor, module)?)?;
    module.add_function(wrap_pyfunction!(set_printing, module)?)?;
    module.add_function(wrap_pyfunction!(tensor_from_bytes, module)?)
}
