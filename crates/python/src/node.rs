//! The class of nodes, for split callbacks, passes and Python compilers.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use nxla_runtime::graph::{ExprId, Op, Program, operations};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use rustc_hash::FxHasher;

use crate::attributes;
use crate::dtype::PyDType;
use crate::notes;
use crate::program::{PyExpression, axis_names};

/// A node of an expression: an operation and its operands.
#[pyclass(name = "Node", module = "nxla", frozen)]
pub(crate) struct PyNode {
    pub(crate) program: Arc<Program>,
    pub(crate) id: ExprId,
    /// The scope of the program's parameters.
    pub(crate) context: &'static str,
}

impl PyNode {
    fn operation(&self) -> &Op {
        self.program.graph().op(self.id)
    }

    /// The name of the operation.
    pub(crate) fn name(&self) -> &'static str {
        self.operation().name()
    }

    fn other(&self, id: ExprId) -> PyNode {
        PyNode { program: self.program.clone(), id, context: self.context }
    }
}

#[pymethods]
impl PyNode {
    /// The name of the operation, such as ``"dot"``.
    #[getter]
    fn op(&self) -> &'static str {
        self.operation().name()
    }

    /// The index in the graph; operands have smaller indices.
    #[getter]
    fn id(&self) -> usize {
        self.id.index()
    }

    /// The size of each axis; empty for an operation with several results.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let ty = self.program.graph().ty(self.id).as_tensor();
        PyTuple::new(py, ty.map_or(&[][..], |ty| &ty.shape[..]))
    }

    /// The element type; None for an operation with several results.
    #[getter]
    fn dtype(&self) -> Option<PyDType> {
        self.program.graph().ty(self.id).as_tensor().map(|ty| PyDType(ty.dtype))
    }

    /// The names of the axes; None for an axis without a name.
    #[getter]
    fn names(&self) -> Vec<Option<String>> {
        self.program.graph().ty(self.id).as_tensor().map(axis_names).unwrap_or_default()
    }

    /// The number of results; ``elem`` nodes select one.
    #[getter]
    fn results(&self) -> usize {
        self.program.graph().ty(self.id).parts().len()
    }

    /// The note of an annotation; None for every other operation.
    #[getter]
    fn note(&self) -> Option<&str> {
        match self.operation() {
            Op::Metadata(metadata) => metadata.inspect.as_deref(),
            _ => None,
        }
    }

    /// The other notes of an annotation, by name; None for every other operation.
    #[getter]
    fn notes<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        match self.operation() {
            Op::Metadata(metadata) => notes::dict_of(py, &metadata.notes).map(Some),
            _ => Ok(None),
        }
    }

    /// The operands.
    #[getter]
    fn args(&self) -> Vec<PyNode> {
        self.program.graph().operands(self.id).iter().map(|&id| self.other(id)).collect()
    }

    /// The attributes of the operation: axes, sizes and others.
    #[getter]
    fn attributes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        attributes::of(py, self.operation())
    }

    /// The programs of regions, such as the body of a loop; their inputs are operands of the node.
    #[getter]
    fn regions(&self) -> Vec<PyExpression> {
        let regions = self.operation().regions().into_iter();
        regions.map(|program| PyExpression::of_region(program.clone(), self.name())).collect()
    }

    /// The scope whose parameters the node depends on: ``"root"`` for the function that was traced,
    /// or the operation that holds the expression, such as ``"while"``. None if it depends on none.
    #[getter]
    fn context(&self) -> Option<&'static str> {
        self.program.graph().context(self.id).map(|_| self.context)
    }

    /// The source line, as ``file.py:3``.
    #[getter]
    fn line(&self) -> Option<String> {
        self.program.graph().line(self.id).map(|line| line.to_string())
    }

    /// The scopes of `nx.named_scope` in which the node was built, as ``"encoder/layer_0"``; None outside of
    /// them.
    #[getter]
    fn scope(&self) -> Option<String> {
        self.program.graph().source(self.id).scope().map(|scope| scope.to_string())
    }

    /// The number of arithmetic operations; the operations of regions do not count.
    #[getter]
    fn flops(&self) -> u64 {
        operations(self.program.graph(), self.id)
    }

    /// True if reverse-mode differentiation built the node.
    #[getter]
    fn is_derivative(&self) -> bool {
        self.program.graph().is_derived(self.id)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<PyNode>().is_ok_and(|other| {
            let other = other.get();
            self.id == other.id && Arc::ptr_eq(&self.program, &other.program)
        })
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = FxHasher::default();
        (Arc::as_ptr(&self.program), self.id).hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        let ty = self.program.graph().ty(self.id);
        format!("<node {} {} {ty}>", self.id, self.op())
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyNode>()
}
