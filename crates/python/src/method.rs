//! Jitted functions as methods: a function, and the instance that is its first argument.

use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};

use crate::function::{PyFunction, generic_alias};

// A compiled function as a method of an instance, which is its first argument. Every method with the
// arguments of a call passes the instance too. Other attributes are attributes of the function, also
// `__doc__`, which a docstring of the class would hide.
#[pyclass(name = "BoundFunction", module = "nxla._core", frozen, weakref)]
pub(crate) struct PyBoundFunction {
    function: Py<PyFunction>,
    instance: Py<PyAny>,
}

impl PyBoundFunction {
    pub(crate) fn new(function: Py<PyFunction>, instance: Py<PyAny>) -> Self {
        Self { function, instance }
    }

    /// Calls a method of the function with the instance before the other arguments.
    fn call_method<'py>(
        &self,
        name: &str,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = args.py();
        let args = self.with_instance(args)?;
        self.function.bind(py).call_method(name, args, kwargs)
    }

    fn with_instance<'py>(&self, args: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyTuple>> {
        let py = args.py();
        let first = std::iter::once(self.instance.bind(py).clone());
        PyTuple::new(py, first.chain(args).collect::<Vec<_>>())
    }
}

#[pymethods]
impl PyBoundFunction {
    /// ``nxla._core.BoundFunction[[nx.Tensor], nx.Tensor]`` is a type for annotations.
    #[classmethod]
    fn __class_getitem__<'py>(
        cls: &Bound<'py, PyType>,
        types: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        generic_alias(cls, types)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.function)?;
        visit.call(&self.instance)
    }

    /// The compiled function.
    #[getter]
    fn __func__(&self, py: Python<'_>) -> Py<PyFunction> {
        self.function.clone_ref(py)
    }

    /// The instance.
    #[getter]
    fn __self__(&self, py: Python<'_>) -> Py<PyAny> {
        self.instance.clone_ref(py)
    }

    /// The original function as a method, whose signature lacks the instance.
    #[getter]
    fn __wrapped__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let function = self.function.bind(py).getattr("callable")?;
        py.import("types")?.getattr("MethodType")?.call1((function, &self.instance))
    }

    /// The docstring of the function.
    #[getter]
    fn __doc__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.function.bind(py).getattr("__doc__")
    }

    fn __getattr__<'py>(&self, name: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyAny>> {
        self.function.bind(name.py()).getattr(name)
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.function.bind(args.py()).call(self.with_instance(args)?, kwargs)
    }

    /// Trace and compile for these arguments without a run; tensors may be templates.
    #[pyo3(signature = (*args, **kwargs))]
    fn warm_up<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.call_method("warm_up", args, kwargs)
    }

    /// Trace the function for these arguments and return the expression.
    #[pyo3(signature = (*args, **kwargs))]
    fn debug_expr<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.call_method("debug_expr", args, kwargs)
    }

    /// Trace the function for these arguments or templates, and return a ``Lowered`` object, which
    /// can be inspected, compiled and exported.
    #[pyo3(signature = (*args, **kwargs))]
    fn lower<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.call_method("lower", args, kwargs)
    }

    /// Compile for the types of these arguments only; tensors may be templates.
    #[pyo3(signature = (*args))]
    fn compile<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        // Calls of the result omit the instance.
        let none = PyDict::new(slf.py());
        let transform = slf.py().import("nxla.transform")?;
        transform.call_method1("compile_for", (slf, args.to_list(), &none, &none))
    }

    /// Return the backend of the next call with these arguments, the reason, and the estimated
    /// time. The method compiles the function if necessary, and does not run it.
    #[pyo3(signature = (*args, **kwargs))]
    fn explain<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.call_method("explain", args, kwargs)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<PyBoundFunction>().is_ok_and(|other| {
            let other = other.get();
            self.function.is(&other.function) && self.instance.is(&other.instance)
        })
    }

    fn __hash__(&self) -> isize {
        // Aligned addresses differ in their high bits.
        let [function, instance] = [self.function.as_ptr(), self.instance.as_ptr()];
        (function.addr() ^ instance.addr().rotate_right(4)).cast_signed()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let (function, instance) = (self.function.bind(py).repr()?, self.instance.bind(py).repr()?);
        Ok(format!("<method of {instance}: {function}>"))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Attribute<'py>)> {
        let name = self.function.bind(py).getattr("__name__")?;
        let getattr = py.import("builtins")?.getattr("getattr")?;
        Ok((getattr, (self.instance.bind(py).clone(), name)))
    }
}

/// An object and the name of its attribute.
type Attribute<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>);

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyBoundFunction>()
}
