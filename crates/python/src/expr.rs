//! The class of traced values, and the operator methods of tensors.

use nxla_runtime::RawExpr;
use nxla_runtime::graph::{BinaryOp, ExprId, Graph, Op, TensorType};
use pyo3::basic::CompareOp;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::apply::apply_op;
use crate::device::PyDevice;
use crate::dtype::PyDType;
use crate::errors::{OrRaise, trace_error};
use crate::numbers::role;
use crate::operands::Operands;
use crate::ops::indexing;
use crate::source::at_current_line;
use crate::value::is_list;

/// A tensor inside a traced function: it has a dtype and a shape, but no data yet.
#[pyclass(name = "Expr", module = "nxla", frozen)]
pub(crate) struct PyExpr(pub(crate) RawExpr);

impl PyExpr {
    /// The properties of the node; a value of a finished trace has none.
    fn in_graph<T>(&self, read: impl FnOnce(&Graph, ExprId) -> T) -> PyResult<T> {
        self.0.try_read(read).or_raise()
    }

    fn ty(&self) -> PyResult<TensorType> {
        self.0.try_ty().or_raise()
    }

    pub(crate) fn wrap(py: Python<'_>, expr: RawExpr) -> PyResult<Py<PyAny>> {
        Ok(Py::new(py, PyExpr(expr))?.into_any())
    }
}

/// Applies a binary op to two operands; an unknown type returns `NotImplemented`.
pub(crate) fn binary(
    left: &Bound<'_, PyAny>,
    right: &Bound<'_, PyAny>,
    op: BinaryOp,
) -> PyResult<Py<PyAny>> {
    let py = left.py();
    let role = role(op.class());
    let mut operands = Operands::default();
    for operand in [left, right] {
        let read = match operands.try_push(operand, role) {
            Err(_) if op == BinaryOp::Multiply && lists_traced(operand) => Err(no_repeats(py)),
            read => read,
        };
        if !read? {
            return Ok(py.NotImplemented());
        }
    }
    apply_op(py, &operands.values()?, &Op::Binary(op))
}

/// Returns whether an operand is a list that contains a traced value.
fn lists_traced(operand: &Bound<'_, PyAny>) -> bool {
    let is_traced =
        |item: PyResult<Bound<'_, PyAny>>| item.is_ok_and(|item| item.is_instance_of::<PyExpr>());
    is_list(operand) && operand.try_iter().is_ok_and(|mut items| items.any(is_traced))
}

/// The error for repeating or multiplying a list of traced values.
fn no_repeats(py: Python<'_>) -> PyErr {
    let line = at_current_line(py);
    trace_error(format!(
        "a traced value cannot be the repeat count of a list, because it is known only when the \
         function runs; make it a static argument (static_argnames=), or multiply nx.stack(list) \
         by it{line}"
    ))
}

/// The op of a comparison operator.
pub(crate) fn comparison(op: CompareOp) -> BinaryOp {
    match op {
        CompareOp::Lt => BinaryOp::Less,
        CompareOp::Le => BinaryOp::LessEqual,
        CompareOp::Eq => BinaryOp::Equal,
        CompareOp::Ne => BinaryOp::NotEqual,
        CompareOp::Gt => BinaryOp::Greater,
        CompareOp::Ge => BinaryOp::GreaterEqual,
    }
}

/// Generates the operator methods that traced values and tensors share.
macro_rules! operator_methods {
    ($class:ident { $($extra:tt)* }) => {
        $crate::expr::operator_methods! {
            @ $class { $($extra)* }
            __add__ __radd__ Add;
            __sub__ __rsub__ Subtract;
            __mul__ __rmul__ Multiply;
            __truediv__ __rtruediv__ Divide;
            __and__ __rand__ BitwiseAnd;
            __or__ __ror__ BitwiseOr;
            __xor__ __rxor__ BitwiseXor;
            __lshift__ __rlshift__ LeftShift;
            __rshift__ __rrshift__ RightShift;
        }
    };
    (@ $class:ident { $($extra:tt)* } $($method:ident $reflected:ident $op:ident;)*) => {
        #[pymethods]
        impl $class {
            $(
                fn $method(
                    slf: &Bound<'_, Self>,
                    other: &Bound<'_, PyAny>,
                ) -> PyResult<Py<PyAny>> {
                    $crate::expr::binary(slf, other, nxla_runtime::graph::BinaryOp::$op)
                }
                fn $reflected(
                    slf: &Bound<'_, Self>,
                    other: &Bound<'_, PyAny>,
                ) -> PyResult<Py<PyAny>> {
                    $crate::expr::binary(other, slf, nxla_runtime::graph::BinaryOp::$op)
                }
            )*
            fn __floordiv__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
                $crate::ops::elementwise::floor_divide_operator(slf, other)
            }
            fn __rfloordiv__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
                $crate::ops::elementwise::floor_divide_operator(other, slf)
            }
            fn __mod__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
                $crate::ops::elementwise::remainder_operator(slf, other)
            }
            fn __rmod__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
                $crate::ops::elementwise::remainder_operator(other, slf)
            }
            fn __pow__(
                slf: &Bound<'_, Self>,
                other: &Bound<'_, PyAny>,
                modulo: Option<&Bound<'_, PyAny>>,
            ) -> PyResult<Py<PyAny>> {
                $crate::expr::refuse_modulo(modulo)?;
                $crate::expr::binary(slf, other, nxla_runtime::graph::BinaryOp::Pow)
            }
            fn __rpow__(
                slf: &Bound<'_, Self>,
                other: &Bound<'_, PyAny>,
                modulo: Option<&Bound<'_, PyAny>>,
            ) -> PyResult<Py<PyAny>> {
                $crate::expr::refuse_modulo(modulo)?;
                $crate::expr::binary(other, slf, nxla_runtime::graph::BinaryOp::Pow)
            }
            fn __matmul__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
                $crate::ops::contract::matmul_operator(slf, other)
            }
            fn __rmatmul__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
                $crate::ops::contract::matmul_operator(other, slf)
            }
            fn __richcmp__(
                slf: &Bound<'_, Self>,
                other: &Bound<'_, PyAny>,
                op: pyo3::basic::CompareOp,
            ) -> PyResult<Py<PyAny>> {
                $crate::expr::binary(slf, other, $crate::expr::comparison(op))
            }
            fn __neg__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
                $crate::ops::elementwise::unary(slf, nxla_runtime::graph::UnaryOp::Negate)
            }
            fn __pos__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
                $crate::ops::elementwise::same(slf)
            }
            fn __abs__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
                $crate::ops::elementwise::unary(slf, nxla_runtime::graph::UnaryOp::Abs)
            }
            fn __invert__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
                $crate::ops::elementwise::unary(slf, nxla_runtime::graph::UnaryOp::BitwiseNot)
            }
            fn __getitem__(
                slf: &Bound<'_, Self>,
                key: &Bound<'_, PyAny>,
            ) -> PyResult<Py<PyAny>> {
                $crate::ops::indexing::get_item(slf, key)
            }
            fn __delitem__(_slf: &Bound<'_, Self>, _key: &Bound<'_, PyAny>) -> PyResult<()> {
                Err($crate::ops::indexing::no_deletion())
            }
            /// NumPy's operators delegate to this class: ``numpy_array + x`` calls its operator
            /// instead of looping over elements. NumPy functions convert their arguments.
            #[classattr]
            fn __array_priority__() -> i32 {
                1000
            }
            $($extra)*
        }
    };
}
pub(crate) use operator_methods;

pub(crate) fn refuse_modulo(modulo: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    match modulo {
        Some(modulo) if !modulo.is_none() => {
            Err(crate::errors::argument_error("pow", "modulus: not supported"))
        }
        _ => Ok(()),
    }
}

operator_methods!(PyExpr {
    /// Raises an error that names an alternative.
    fn __setitem__(
        slf: &Bound<'_, Self>,
        _key: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        Err(indexing::no_assignment(slf.py()))
    }

    /// The element type.
    #[getter]
    fn dtype(&self) -> PyResult<PyDType> {
        Ok(PyDType(self.ty()?.dtype))
    }

    /// The size of each axis.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.ty()?.shape.iter())
    }

    /// The number of axes.
    #[getter]
    fn ndim(&self) -> PyResult<usize> {
        Ok(self.ty()?.shape.rank())
    }

    /// The number of elements.
    #[getter]
    fn size(&self) -> PyResult<usize> {
        Ok(self.ty()?.shape.size())
    }

    /// The names of the axes; None for an axis without a name.
    #[getter]
    fn names(&self) -> PyResult<Vec<Option<String>>> {
        Ok(crate::program::axis_names(&self.ty()?))
    }

    /// The vectorized axes as pairs of a name and a size; `shape` and all functions describe one
    /// entry.
    #[getter]
    fn vectorized_axes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        crate::ops::vectors::vectors_to_python(py, self.0.vectors())
    }

    /// The tensor with reversed axes.
    #[getter(T)]
    fn transposed(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        crate::ops::movement::reversed_axes(slf)
    }

    /// None, because the device is unknown until the program runs.
    #[getter]
    fn device(&self) -> Option<PyDevice> {
        None
    }

    /// Return the value itself; the device must be None, the device of a traced value. `copy` has
    /// no effect, because a traced value has no memory.
    #[pyo3(signature = (device, /, *, stream=None, copy=None))]
    fn to_device<'py>(
        slf: &Bound<'py, Self>,
        device: Option<&Bound<'py, PyAny>>,
        stream: Option<&Bound<'py, PyAny>>,
        #[expect(unused_variables, reason = "a parameter of the standard without a meaning here")]
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, Self>> {
        match (device, stream) {
            (None, None) => Ok(slf.clone()),
            _ => Err(trace_error(
                "to_device: x: must not be traced, because a traced value is on the device of \
                 its program; move the arguments or the results instead",
            )),
        }
    }

    /// The name of the operation, as in printed expressions.
    #[getter]
    fn op(&self) -> Option<&'static str> {
        self.0.read(|graph, id| graph.op(id).name())
    }

    /// The operands of the operation.
    #[getter]
    fn args(&self, py: Python<'_>) -> PyResult<Vec<Py<PyAny>>> {
        let operands = self.in_graph(|graph, id| graph.operands(id).to_vec())?;
        let operands = operands.into_iter();
        operands.map(|id| PyExpr::wrap(py, RawExpr::new(self.0.trace().clone(), id))).collect()
    }

    /// The attributes of the operation: axes, sizes, the index of a parameter.
    #[getter]
    fn attributes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let op = self.in_graph(|graph, id| graph.op(id).clone())?;
        crate::attributes::of(py, &op)
    }

    /// The position in the graph, which is the same for equal values; operands have smaller ones.
    #[getter]
    fn id(&self) -> PyResult<usize> {
        self.in_graph(|_, id| id.index())
    }

    /// The scope whose parameters the value depends on: ``"root"`` for the function, or the operation
    /// whose body is being traced, such as ``"while"``. None for what depends on no argument.
    #[getter]
    fn context(&self) -> PyResult<Option<&'static str>> {
        self.in_graph(Graph::context)
    }

    /// The source line, as ``file.py:3``.
    #[getter]
    fn line(&self) -> PyResult<Option<String>> {
        self.in_graph(|graph, id| graph.line(id).map(|line| line.to_string()))
    }

    fn __repr__(&self) -> String {
        crate::program::text_of(&self.0)
    }

    fn __len__(&self) -> PyResult<usize> {
        match self.ty()?.shape.first() {
            Some(&length) => Ok(length),
            None => Err(crate::errors::argument_error("len", "x: must have at least one axis; got a scalar")),
        }
    }

    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        indexing::iterate(slf)
    }

    fn __hash__(slf: &Bound<'_, Self>) -> isize {
        slf.as_ptr() as isize >> 4
    }

    fn __bool__(slf: &Bound<'_, Self>) -> PyResult<bool> {
        Err(no_value(slf, "boolean value", "nx.cond, nx.while_loop, nx.where, nx.logical_and, nx.logical_or or nx.logical_not"))
    }

    fn __int__(slf: &Bound<'_, Self>) -> PyResult<i64> {
        Err(no_value(slf, "integer value", "a static argument (static_argnames=) for a size, or nx.astype(x, nx.int32)"))
    }

    fn __index__(slf: &Bound<'_, Self>) -> PyResult<i64> {
        Err(no_value(slf, "integer value", "a static argument (static_argnames=), or x[i] with a traced i"))
    }

    fn __float__(slf: &Bound<'_, Self>) -> PyResult<f64> {
        Err(no_value(slf, "float value", "functions of nx, such as nx.exp for math.exp, or nx.astype(x, nx.float32)"))
    }

    /// Raise an error that names an alternative, because a traced value has no data.
    fn item(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        Err(no_value(slf, "number", "nx.hook or nx.print_value to inspect it when the function runs"))
    }

    /// Raise an error that names an alternative, because a traced value has no data.
    fn tolist(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        Err(no_value(slf, "list of numbers", "nx.hook or nx.print_value to inspect it when the function runs"))
    }

    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__(slf: &Bound<'_, Self>, dtype: Option<&Bound<'_, PyAny>>, copy: Option<bool>) -> PyResult<Py<PyAny>> {
        let _ = (dtype, copy);
        Err(no_value(slf, "numpy array", "the function of the same name in nx"))
    }
});

/// The error for reading the data of a traced value.
fn no_value(x: &Bound<'_, PyExpr>, what: &str, instead: &str) -> PyErr {
    if let Err(finished) = x.get().ty() {
        return finished;
    }
    let line = at_current_line(x.py());
    trace_error(format!(
        "a traced value has no {what}, because it is known only when the function runs; use \
         {instead} instead{line}"
    ))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyExpr>()
}
