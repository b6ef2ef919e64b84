//! Expressions: the results of traces.

use std::sync::Arc;

use nxla_runtime::graph::ExprId;
use nxla_runtime::graph::print::{Blocks, ExprText, GraphPrintOptions, lines, lines_and_names};
use nxla_runtime::graph::{mermaid, svg};
use nxla_runtime::host::DType;
use nxla_runtime::{
    Program, RawExpr, RawTensor, ResultVectors, TensorType, VectorAxes, default_options,
    run_program,
};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use crate::containers::{Tree, flatten};
use crate::debug;
use crate::dtype::PyDType;
use crate::errors::{OrRaise, argument_error, format_error};
use crate::expected::{Expected, Pickled};
use crate::expr::PyExpr;
use crate::function::{Borrowings, Traced, wrap_results};
use crate::interrupt::interruptible;
use crate::node::PyNode;
use crate::notes::refuse_host_notes;
use crate::ops::args::{Count, Integer, list_position};
use crate::ops::declare::Converted;
use crate::options::options_from;
use crate::template::{LeafType, PyTemplate};
use crate::tensor::{PyTensor, bytes_object};

/// A traced function: a graph of operations with inputs and outputs.
///
/// ``str()`` prints it, and a notebook draws it.
#[pyclass(name = "Expression", module = "nxla", frozen)]
pub(crate) struct PyExpression {
    pub(crate) program: Arc<Program>,
    pub(crate) results: Arc<Results>,
    pub(crate) captured: Vec<nxla_runtime::RawTensor>,
    pub(crate) expected: Arc<Expected>,
    /// The scope of the parameters: `root`, or the op that holds the program as a region.
    pub(crate) context: &'static str,
}

/// The context of a program that is not a region.
pub(crate) const ROOT: &str = "root";

/// The Python container of the results of a program.
pub(crate) struct Results {
    pub(crate) tree: Tree,
    pub(crate) vectors: ResultVectors,
}

impl Results {
    /// Tensors, traced values, templates or other placeholders in place of the results. All except
    /// other placeholders receive the vectorized axes of the results.
    pub(crate) fn arrange(&self, py: Python<'_>, values: Vec<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        let mut arranged = values.into_iter().enumerate().map(|(position, value)| {
            let vectors = self.vectors.get(position);
            if vectors.is_empty() {
                return Ok(value);
            }
            if let Ok(tensor) = value.bind(py).cast::<PyTensor>() {
                let data = tensor.get().read().data().clone();
                return PyTensor::wrap(py, data.with_vectors(vectors));
            }
            if let Ok(template) = value.bind(py).cast::<PyTemplate>() {
                let ty = vectors.entry_type(&template.get().0.ty);
                return Ok(Py::new(py, PyTemplate(LeafType { ty, vectors }))?.into_any());
            }
            if let Ok(expr) = value.bind(py).cast::<PyExpr>() {
                return vectorize(py, position, &expr.get().0, vectors);
            }
            Ok(value)
        });
        self.tree.rebuild(py, &mut arranged)
    }

    /// The state of a pickle: the container with a template for each result.
    pub(crate) fn to_pickled(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let mut templates = (0..).map(|position| {
            let (ty, vectors) = (TensorType::scalar(DType::F32), self.vectors.get(position));
            Ok(Py::new(py, PyTemplate(LeafType { ty, vectors }))?.into_any())
        });
        self.tree.rebuild(py, &mut templates)
    }

    /// Rebuilds the containers from the state of a pickle.
    pub(crate) fn from_pickled(pickled: &Bound<'_, PyAny>) -> PyResult<Self> {
        let mut vectors = Vec::new();
        let tree = flatten(pickled, "result", &mut |item, _| {
            let template = item.cast::<PyTemplate>();
            vectors.extend(template.iter().map(|template| template.get().0.vectors.clone()));
            Ok(template.is_ok())
        })?;
        Ok(Self { tree, vectors: ResultVectors::from_iter(vectors) })
    }

    /// The results of a run in their container.
    pub(crate) fn wrap(&self, py: Python<'_>, results: Vec<RawTensor>) -> PyResult<Py<PyAny>> {
        wrap_results(py, &self.tree, self.vectors.put(results))
    }
}

/// A traced value in place of a result with vectorized axes, which are its leading axes unless they
/// are vectorized already.
fn vectorize(
    py: Python<'_>,
    position: usize,
    value: &RawExpr,
    vectors: VectorAxes,
) -> PyResult<Py<PyAny>> {
    if !value.vectors().is_empty() {
        return PyExpr::wrap(py, value.clone());
    }
    let ty = value.ty();
    if !ty.shape.starts_with(&vectors.sizes()) {
        let why = format!("result {position}: must have the leading axes of {vectors}; got {ty}");
        return Err(argument_error("arrange", why));
    }
    let id = value.id().or_raise()?;
    PyExpr::wrap(py, RawExpr::with_vectors(value.trace().clone(), id, vectors))
}

impl PyExpression {
    /// A finished trace, whose arguments are `expected`.
    pub(crate) fn new(traced: Traced, expected: Arc<Expected>) -> Self {
        let Traced { program, results: tree, vectors, captured, .. } = traced;
        let results = Arc::new(Results { tree, vectors });
        Self { program, results, captured, expected, context: ROOT }
    }

    /// A region of an op.
    pub(crate) fn of_region(program: Arc<Program>, op: &'static str) -> Self {
        Self { context: op, ..Self::of_program(program) }
    }

    fn node(&self, id: ExprId) -> PyNode {
        PyNode { program: self.program.clone(), id, context: self.context }
    }

    /// An expression whose result is a tuple of its outputs.
    pub(crate) fn of_program(program: Arc<Program>) -> Self {
        let leaves = program.outputs().iter().map(|_| Tree::Leaf).collect();
        let (tree, vectors) = (Tree::Tuple(leaves), ResultVectors::default());
        let results = Arc::new(Results { tree, vectors });
        let expected = Arc::new(Expected::of_program(&program));
        Self { program, results, captured: Vec::new(), expected, context: ROOT }
    }
}

/// The state of a pickled expression.
pub(crate) type Parts<'py> = (Bound<'py, PyBytes>, Py<PyAny>, Pickled, Vec<Py<PyAny>>);

/// The containers and large tensors of a pickle.
pub(crate) struct Unpickled {
    pub(crate) results: Arc<Results>,
    pub(crate) expected: Arc<Expected>,
    pub(crate) captured: Vec<RawTensor>,
}

impl Unpickled {
    pub(crate) fn new(
        py: Python<'_>,
        results: &Bound<'_, PyAny>,
        expected: Pickled,
        captured: &[PyRef<'_, PyTensor>],
    ) -> PyResult<Self> {
        Ok(Self {
            results: Arc::new(Results::from_pickled(results)?),
            expected: Arc::new(Expected::from_pickled(py, expected)?),
            captured: captured.iter().map(|tensor| tensor.tensor()).collect(),
        })
    }

    /// Returns an error if the containers do not have this many inputs and outputs.
    pub(crate) fn check(&self, inputs: usize, outputs: usize, of: &str) -> PyResult<()> {
        let is_same = self.expected.leaf_count() + self.captured.len() == inputs
            && self.results.tree.leaf_count() == outputs;
        let error = || format_error("pickle", format!("containers must match {of}"));
        is_same.then_some(()).ok_or_else(error)
    }
}

/// Dtype and shape of an input or an output, for Python.
pub(crate) fn type_to_python<'py>(
    py: Python<'py>,
    ty: &TensorType,
) -> PyResult<Bound<'py, PyTuple>> {
    let shape = PyTuple::new(py, ty.shape.iter())?;
    PyTuple::new(py, [shape.into_any(), Bound::new(py, PyDType(ty.dtype))?.into_any()])
}

/// The names of the axes of a type.
pub(crate) fn axis_names(ty: &TensorType) -> Vec<Option<String>> {
    match &ty.names {
        Some(names) => names.iter().map(|name| name.as_ref().map(ToString::to_string)).collect(),
        None => vec![None; ty.rank()],
    }
}

/// The header of a printed value with vectorized axes: the axes, and the type of an entry.
fn vectorized_header(vectors: &VectorAxes, entry: &TensorType) -> Option<String> {
    (!vectors.is_empty()).then(|| format!("{vectors}\n  {entry}"))
}

/// The printed form of a traced value.
pub(crate) fn text_of(expr: &RawExpr) -> String {
    let header = vectorized_header(expr.vectors(), &expr.ty());
    let text = expr.read(|graph, id| {
        let text = ExprText::new(graph, id);
        header.as_deref().map_or(text, |header| text.with_header(header)).to_string()
    });
    // Exceptions of the function and debuggers print values of finished traces.
    text.unwrap_or_else(|| expr.to_string())
}

#[pymethods]
impl PyExpression {
    /// Shape and dtype of each input.
    #[getter]
    fn inputs<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        self.program.inputs().iter().map(|ty| type_to_python(py, ty)).collect()
    }

    /// Shape and dtype of each output.
    #[getter]
    fn outputs<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        self.program.output_types().map(|ty| type_to_python(py, ty)).collect()
    }

    /// The structural digest as hexadecimal digits: equal for equal programs in every process.
    #[getter]
    fn digest(&self) -> String {
        self.program.digest().to_string()
    }

    /// The nodes, operands before the operations that use them.
    #[getter]
    fn nodes(&self) -> Vec<PyNode> {
        self.program.graph().ids().map(|id| self.node(id)).collect()
    }

    /// The nodes of the outputs.
    #[getter]
    fn output_nodes(&self) -> Vec<PyNode> {
        self.program.outputs().iter().map(|&id| self.node(id)).collect()
    }

    /// The name of the function that was traced; None if there is none, and after ``from_bytes``.
    #[getter]
    fn name(&self) -> Option<&str> {
        self.program.name()
    }

    /// Large captured tensors; they are the last inputs, which ``run`` supplies.
    #[getter]
    fn captured(&self, py: Python<'_>) -> PyResult<Vec<Py<PyAny>>> {
        self.captured.iter().map(|tensor| PyTensor::wrap(py, tensor.clone())).collect()
    }

    /// Return `results`, one for each output, in the container of the function's result.
    fn arrange(&self, py: Python<'_>, results: Converted<Vec<Py<PyAny>>>) -> PyResult<Py<PyAny>> {
        let results = results.or_name(py, "arrange", "results", "Sequence")?;
        let (expected, found) = (self.program.outputs().len(), results.len());
        if found != expected {
            let why = format!("results: must be {expected}; got {found}");
            return Err(argument_error("arrange", why));
        }
        self.results.arrange(py, results)
    }

    /// The number of outputs. ``len(expression.nodes)`` is the number of nodes.
    fn __len__(&self) -> usize {
        self.program.outputs().len()
    }

    /// Iterate over the nodes of the outputs: ``(result,) = expression``.
    fn __iter__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let nodes = slf.get().output_nodes().into_pyobject(slf.py())?;
        Ok(nodes.try_iter()?.into_any().unbind())
    }

    /// The node of an output.
    fn __getitem__(&self, py: Python<'_>, index: Converted<Integer>) -> PyResult<PyNode> {
        let Integer(index) = index.or_name(py, "expression", "index", "int")?;
        let outputs = self.program.outputs();
        let found = list_position(index, outputs.len()).map(|position| &outputs[position]);
        found.map(|&id| self.node(id)).ok_or_else(|| {
            PyIndexError::new_err(format!(
                "expression: index: must be below {}, the number of outputs; got {index}",
                outputs.len()
            ))
        })
    }

    /// Return the lines of all outputs with shared names, without a header.
    ///
    /// With a `limit`, only the last nodes are printed. `blocks` prints blocks by their
    /// ``"name"``, or the nodes of their ``"body"``.
    #[pyo3(
        signature = (limit=None, *, blocks=by_name()),
        text_signature = "($self, limit=None, *, blocks='name')"
    )]
    fn lines(
        &self,
        py: Python<'_>,
        limit: Option<Converted<Count>>,
        blocks: Converted<String>,
    ) -> PyResult<Vec<String>> {
        let options = print_options(py, "lines", limit, blocks)?;
        Ok(py.detach(|| lines(self.program.graph(), &self.roots(), &options)))
    }

    /// Return the printed form with at most `limit` nodes; `blocks` is as for `lines`.
    #[pyo3(
        signature = (limit=None, *, blocks=by_name()),
        text_signature = "($self, limit=None, *, blocks='name')"
    )]
    fn to_text(
        &self,
        py: Python<'_>,
        limit: Option<Converted<Count>>,
        blocks: Converted<String>,
    ) -> PyResult<String> {
        self.text(py, print_options(py, "to_text", limit, blocks)?)
    }

    fn __str__(&self, py: Python<'_>) -> PyResult<String> {
        self.text(py, GraphPrintOptions::default())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        self.text(py, GraphPrintOptions { limit: Some(REPR_LIMIT), ..GraphPrintOptions::default() })
    }

    /// Return a drawing as SVG.
    fn to_svg(&self, py: Python<'_>) -> String {
        py.detach(|| svg::to_svg(self.program.graph(), &self.roots()))
    }

    fn _repr_svg_(&self, py: Python<'_>) -> String {
        self.to_svg(py)
    }

    /// Return a drawing as a Mermaid flowchart.
    fn to_mermaid(&self, py: Python<'_>) -> String {
        py.detach(|| mermaid::to_mermaid(self.program.graph(), &self.roots()))
    }

    /// Run the expression; arguments as for the traced function, or one tensor for each input.
    ///
    /// A keyword that is not an argument of the function is an option, as for ``nx.jit``.
    #[pyo3(signature = (*args, **options))]
    fn run(
        &self,
        py: Python<'_>,
        args: &Bound<'_, PyTuple>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let (args, options) = self.expected.bind("run", args, options)?;
        // A misspelled name is reported as such, not as a missing argument.
        let options = options_from(options.as_ref())?.0.over(&default_options());
        let mut inputs = self.expected.leaves(py, "run", &args, Some(&self.program))?;
        inputs.extend(self.captured.iter().cloned());
        let inputs: Borrowings<'_> = inputs.iter().collect();
        let results = interruptible(py, |interrupt| {
            run_program("run", &self.program, &options, &inputs, Some(interrupt))
        })?;
        debug::check_program(py, "run", &self.program, &inputs, &results)?;
        self.results.wrap(py, results)
    }

    /// Return an expression whose results are all values that a compiler computes outside loops
    /// and branches; and the operation, type and line of each value.
    fn every_value(&self) -> PyResult<(Self, Vec<(&'static str, String, Option<String>)>)> {
        let (program, nodes) = nxla_runtime::debug::every_value(&self.program).or_raise()?;
        let graph = self.program.graph();
        let facts = nodes
            .into_iter()
            .map(|id| {
                let line = graph.line(id).map(|line| line.to_string());
                (graph.op(id).name(), graph.tensor_type(id).to_string(), line)
            })
            .collect();
        let expression = Self::of_program(Arc::new(program));
        let (captured, expected) = (self.captured.clone(), self.expected.clone());
        Ok((Self { captured, expected, ..expression }, facts))
    }

    /// Return the number of nodes of each operation.
    fn op_counts(&self) -> std::collections::BTreeMap<&'static str, usize> {
        let mut counts = std::collections::BTreeMap::new();
        for id in self.program.graph().ids() {
            *counts.entry(self.program.graph().op(id).name()).or_insert(0) += 1;
        }
        counts
    }

    /// Check every invariant of the graph; an error is a bug in nxla.
    fn verify(&self, py: Python<'_>) -> PyResult<()> {
        let checked = py.detach(|| nxla_runtime::graph::verify::verify_program(&self.program));
        checked.map_err(|violations| argument_error("verify", violations.to_string()))
    }

    /// Return the serialized expression without the tensors of ``captured``, which are the last
    /// inputs of the expression that ``from_bytes`` reads. A pickle contains them.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        refuse_host_notes("to_bytes", &self.program)?;
        let bytes = py.detach(|| nxla_runtime::graph::serialize::to_bytes(&self.program));
        bytes_object(py, &bytes)
    }

    /// Read an expression from its bytes; its result is a tuple of its outputs.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: Converted<Bound<'_, PyBytes>>) -> PyResult<Self> {
        Self::read(py, bytes.or_name(py, "from_bytes", "bytes", "bytes")?.as_bytes())
    }

    /// The state of a pickle: the bytes, the container of the results, the structure of the
    /// arguments, and large tensors.
    fn _parts<'py>(&self, py: Python<'py>) -> PyResult<Parts<'py>> {
        let captured = self.captured(py)?;
        Ok((
            self.to_bytes(py)?,
            self.results.to_pickled(py)?,
            self.expected.to_pickled(py)?,
            captured,
        ))
    }

    /// Rebuilds an expression from the state of a pickle.
    #[staticmethod]
    fn _from_parts(
        py: Python<'_>,
        bytes: &[u8],
        results: &Bound<'_, PyAny>,
        expected: Pickled,
        captured: Vec<PyRef<'_, PyTensor>>,
    ) -> PyResult<Self> {
        let program = Self::read(py, bytes)?.program;
        let containers = Unpickled::new(py, results, expected, &captured)?;
        containers.check(program.inputs().len(), program.outputs().len(), "the expression")?;
        let Unpickled { results, expected, captured } = containers;
        Ok(Self { program, results, captured, expected, context: ROOT })
    }

    /// True if the expression calls hooks.
    #[getter]
    fn has_hooks(&self) -> bool {
        !self.program.effects().is_empty()
    }
}

/// The default printing of composites.
fn by_name() -> Converted<String> {
    Converted::of("name".into())
}

/// Converts the arguments of a function that prints an expression.
fn print_options(
    py: Python<'_>,
    function: &str,
    limit: Option<Converted<Count>>,
    blocks: Converted<String>,
) -> PyResult<GraphPrintOptions> {
    let limit = limit.map(|limit| limit.value(py, function, "limit")).transpose()?;
    let blocks = match &*blocks.value(py, function, "blocks")? {
        "name" => Blocks::Name,
        "body" => Blocks::Body,
        other => {
            let why = format!("blocks: must be \"name\" or \"body\"; got {other:?}");
            return Err(argument_error(function, why));
        }
    };
    Ok(GraphPrintOptions { limit: limit.map(|Count(limit)| limit), blocks })
}

/// The number of nodes in a short printed form.
const REPR_LIMIT: usize = 200;

impl PyExpression {
    /// Reads an expression from its bytes.
    fn read(py: Python<'_>, bytes: &[u8]) -> PyResult<Self> {
        let program = py.detach(|| nxla_runtime::graph::serialize::from_bytes(bytes));
        match program {
            Ok(program) => Ok(Self::of_program(Arc::new(program))),
            Err(error) => Err(format_error("from_bytes", error.to_string())),
        }
    }

    /// The last lines of a listing or drawing: the outputs, and the nodes with effects.
    fn roots(&self) -> Vec<ExprId> {
        self.program.outputs().iter().chain(self.program.effects()).copied().collect()
    }

    /// One expression is printed as a block, as in Nx. Several expressions share a block: their
    /// types come first and their names last, both in the container of the results.
    fn text(&self, py: Python<'_>, options: GraphPrintOptions) -> PyResult<String> {
        let graph = self.program.graph();
        let header = |position: usize, id: ExprId| {
            let vectors = self.results.vectors.get(position);
            (vectors.entry_type(graph.tensor_type(id)), vectors)
        };
        if let ([output], true) = (self.program.outputs(), self.results.tree.is_leaf()) {
            let (entry, vectors) = header(0, *output);
            let header = vectorized_header(&vectors, &entry);
            let text = ExprText::new(graph, *output).with_options(options);
            let text = header.as_deref().map_or(text, |header| text.with_header(header));
            return Ok(py.detach(|| text.to_string()));
        }
        let (lines, names) = py.detach(|| lines_and_names(graph, self.program.outputs(), &options));
        let types = self.program.outputs().iter().enumerate().map(|(position, &id)| {
            let (entry, vectors) = header(position, id);
            if vectors.is_empty() { entry.to_string() } else { format!("{vectors} {entry}") }
        });
        let types = self.results.tree.text(py, types.collect())?;
        let names = self.results.tree.text(py, names)?;
        let body: String = lines.iter().map(|line| format!("  {line}\n")).collect();
        Ok(format!("#nxla.Expr<\n  {types}\n  \n{body}  \n  {names}\n>"))
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyExpression>()
}
