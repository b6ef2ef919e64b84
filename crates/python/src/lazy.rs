//! Lazy tensors: a type now, and data only if a program needs it.

use nxla_runtime::host::{HostTensor, promote_keep_pred};
use nxla_runtime::{Inputs, Program, RawTensor, Value};
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::arrays::{self, Sharing};
use crate::dtype::PyDType;
use crate::errors::{OrRaise, argument_error, check_callable};
use crate::ops::declare::Converted;
use crate::shutdown;
use crate::template::{LeafType, PyTemplate};
use crate::tensor::PyTensor;
use crate::value::FromPython;

/// A tensor whose data a function produces when it is needed.
///
/// A compiled function calls `produce` only if the program uses the tensor. Functions of `nxla` call
/// it immediately. `produce` is called once for each use, and the object has no operators.
///
/// Parameters
/// ----------
/// template : Template
///     The dtype and the shape of the data.
/// produce : callable
///     Returns the tensor. It takes no arguments.
///
/// Examples
/// --------
/// >>> import nxla as nx
/// >>> weights = nx.Lazy(nx.template((2,)), lambda: nx.ones(2))
/// >>> unread = nx.Lazy(nx.template((1000, 1000)), lambda: 1 / 0)
/// >>> nx.jit(lambda w, u: w + 1)(weights, unread).tolist()
/// [2.0, 2.0]
#[pyclass(name = "Lazy", module = "nxla", frozen)]
pub(crate) struct PyLazy {
    template: Py<PyTemplate>,
    produce: Py<PyAny>,
}

impl Drop for PyLazy {
    fn drop(&mut self) {
        // Dropping this value drops the function, which may hold any Python object.
        shutdown::prepare();
    }
}

#[pymethods]
impl PyLazy {
    #[new]
    fn new(template: Converted<Py<PyTemplate>>, produce: &Bound<'_, PyAny>) -> PyResult<Self> {
        let template = template.or_name(produce.py(), "Lazy", "template", "Template")?;
        check_callable("Lazy: produce", produce)?;
        Ok(Self { template, produce: produce.clone().unbind() })
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.template)?;
        visit.call(&self.produce)
    }

    /// The dtype, the shape and the names of the data.
    #[getter]
    fn template(&self, py: Python<'_>) -> Py<PyTemplate> {
        self.template.clone_ref(py)
    }

    /// The element type.
    #[getter]
    fn dtype(&self) -> PyDType {
        PyDType(self.template.get().0.ty.dtype)
    }

    /// The size of each axis.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.template.get().0.ty.shape.iter())
    }

    /// The data as an array of NumPy.
    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let tensor = PyTensor::wrap(slf.py(), produce(slf.as_any())?)?;
        tensor.bind(slf.py()).call_method1("__array__", (dtype, copy))
    }

    fn __repr__(&self) -> String {
        format!("<lazy {}>", self.template.get().0.ty)
    }
}

/// The type of a value whose data is read only if a program needs it: a `Lazy`, or an object that
/// states its type and converts itself to an array of numpy.
pub(crate) fn type_of(value: &Bound<'_, PyAny>) -> PyResult<Option<LeafType>> {
    if let Ok(lazy) = value.cast::<PyLazy>() {
        return Ok(Some(lazy.get().template.get().0.clone()));
    }
    Ok(arrays::stated_type(value)?.map(LeafType::of))
}

/// The data of a lazy value.
pub(crate) fn produce(value: &Bound<'_, PyAny>) -> PyResult<RawTensor> {
    let tensor = match value.cast::<PyLazy>() {
        Ok(lazy) => made_by(lazy)?,
        Err(_) => match arrays::import(value, Sharing::ByValue)? {
            Some(tensor) => tensor,
            None => return Err(argument_error("lazy", "value: must be convertible to an array")),
        },
    };
    let Some(expected) = type_of(value)? else { return Ok(tensor) };
    let found = LeafType::of_tensor(&tensor);
    if expected.ty.accepts(&found.ty) && expected.vectors == found.vectors {
        return Ok(tensor);
    }
    let why = format!("data: must be {expected}, as the object states; got {found}");
    Err(argument_error("lazy", why))
}

fn made_by(lazy: &Bound<'_, PyLazy>) -> PyResult<RawTensor> {
    let made = lazy.get().produce.bind(lazy.py()).call0()?;
    if made.is_instance_of::<PyLazy>() {
        return Err(argument_error("lazy", "produce: must return a tensor; got a Lazy"));
    }
    match Value::of(&made, "lazy")? {
        Value::Tensor(tensor) => Ok(tensor),
        // A number is converted to the dtype of the template, unless the conversion would change
        // its value.
        Value::Number(number) => {
            let own = crate::apply::number_tensor(number, None).or_raise()?;
            let dtype = lazy.get().template.get().0.ty.dtype;
            if promote_keep_pred(own.dtype(), dtype) == dtype {
                Ok(RawTensor::scalar(own.item().or_raise()?.cast(dtype), dtype))
            } else {
                Ok(own)
            }
        }
        Value::Expr(_) => {
            Err(argument_error("lazy", "produce: must return a tensor; got a traced value"))
        }
    }
}

/// Lazy values among the inputs of a call, by position.
#[derive(Default)]
pub(crate) struct Lazies(Vec<(usize, Py<PyAny>)>);

impl Lazies {
    pub(crate) fn push(&mut self, position: usize, value: &Bound<'_, PyAny>) {
        self.0.push((position, value.clone().unbind()));
    }

    /// Supplies the inputs that a program uses, or all inputs without a program. Unused inputs are
    /// zeros, which nothing reads.
    pub(crate) fn supply(
        &self,
        py: Python<'_>,
        inputs: &mut Inputs,
        program: Option<&Program>,
    ) -> PyResult<()> {
        if self.0.is_empty() {
            return Ok(());
        }
        let is_used = program.map(Program::used_inputs);
        for (position, value) in &self.0 {
            let value = value.bind(py);
            inputs[*position] = match &is_used {
                Some(is_used) if !is_used[*position] => unread(value)?,
                _ => produce(value)?.data().clone(),
            };
        }
        Ok(())
    }
}

/// Zeros of the type of a lazy value.
fn unread(value: &Bound<'_, PyAny>) -> PyResult<RawTensor> {
    let leaf = type_of(value)?.expect("the value was lazy when the call began");
    let ty = leaf.vectors.full_type(&leaf.ty);
    let zeros = HostTensor::zeros(ty.dtype, ty.shape.clone());
    zeros.map(RawTensor::from).map_err(|error| argument_error("lazy", error.to_string()))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyLazy>()
}
