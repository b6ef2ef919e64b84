//! Construction of expressions node by node.
//!
//! A function without arguments is called in a new trace. It creates the inputs, and may add nodes
//! of other expressions or whole expressions to the trace.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nxla_runtime::graph::{ExprId, Graph, Mark, Op, Scope};
use nxla_runtime::host::{Scalar, Shape};
use nxla_runtime::vectors::control::Vectorized;
use nxla_runtime::vectors::per_entry;
use nxla_runtime::{
    Build, Call, Error, RawExpr, TensorType, Trace, Tracing, VectorAxes, called_once,
    default_options,
};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::apply::{Ids, capture};
use crate::containers::{PyTree, Tree};
use crate::dtype::DTypeArg;
use crate::errors::{OrRaise, argument_error, kind_of, number_error, trace_error};
use crate::expected::Expected;
use crate::expr::PyExpr;
use crate::function::{Traced, outputs};
use crate::node::PyNode;
use crate::numbers::all_fit;
use crate::ops::args::ShapeArg;
use crate::ops::control::{current_trace, ids, in_place_of, leaves_of, nodes_of, wrap_all};
use crate::program::PyExpression;
use crate::signature::StaticValue;
use crate::template::{LeafType, PyTemplate};
use crate::value::{FromPython, Value, number_of};

thread_local! {
    /// The ids of the traces of `build` on the thread, the innermost last, and the vectorized axes of
    /// the inputs of each.
    static BY_HAND: RefCell<Vec<(u64, Vec<VectorAxes>)>> = const { RefCell::new(Vec::new()) };
}

struct Building(());

impl Drop for Building {
    fn drop(&mut self) {
        BY_HAND.with_borrow_mut(Vec::pop);
    }
}

/// Calls a function without arguments in a new trace and returns the expression. The containers of
/// its arguments are the containers of ``like``, if given.
#[pyfunction]
#[pyo3(signature = (function, like=None))]
fn build_expression(
    py: Python<'_>,
    function: &Bound<'_, PyAny>,
    like: Option<&Bound<'_, PyExpression>>,
) -> PyResult<PyExpression> {
    let (mut tracing, _) =
        Tracing::begin(None, &Call::<StaticValue>::default(), &default_options()).or_raise()?;
    let (result, vectors) = {
        BY_HAND.with_borrow_mut(|traces| traces.push((tracing.trace().number(), Vec::new())));
        let _building = Building(());
        let result = function.call0()?;
        let inputs = BY_HAND.with_borrow(|traces| traces.last().map(|(_, inputs)| inputs.clone()));
        (result, inputs.unwrap_or_default())
    };
    tracing.leave();
    let (outputs, tree) = outputs(tracing.trace(), &result, "build")?;
    let traced: Traced = py.detach(|| tracing.finish(&outputs, tree)).or_raise()?;
    let expected = match like {
        Some(like) => like.get().expected.clone(),
        None => Arc::new(Expected::of_inputs(&traced.program, traced.captured.len(), &vectors)),
    };
    Ok(PyExpression::new(traced, expected))
}

fn wrap(py: Python<'_>, trace: &Trace, id: ExprId) -> PyResult<Py<PyAny>> {
    PyExpr::wrap(py, RawExpr::new(trace.clone(), id))
}

/// The scope of a loop that callers build by hand: its parameters and the values computed from
/// them.
#[pyclass(name = "Context", module = "nxla", frozen)]
pub(crate) struct PyContext {
    trace: Trace,
    mark: Mark,
    scope: Mutex<Scope>,
}

#[pymethods]
impl PyContext {
    fn __repr__(&self) -> &'static str {
        "<context while>"
    }
}

impl PyContext {
    fn lock(&self) -> MutexGuard<'_, Scope> {
        self.scope.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The parameter at a position: one that is there, or the next one.
    fn parameter(&self, position: Option<usize>, ty: TensorType) -> PyResult<ExprId> {
        let mut scope = self.lock();
        let count = scope.parameters.len();
        let position = position.unwrap_or(count);
        if position > count {
            let why = format!("pos: must be at most {count}, the next position; got {position}");
            return Err(argument_error("parameter", why));
        }
        if let Some(&known) = scope.parameters.get(position) {
            let found = self.trace.edit(|graph| graph.tensor_type(known).clone()).or_raise()?;
            if found == ty {
                return Ok(known);
            }
            let why = format!("pos: parameter {position} is {found} already; got {ty}");
            return Err(argument_error("parameter", why));
        }
        self.trace.edit(|graph| graph.grow_scope(&mut scope, ty)).or_raise()
    }
}

/// Opens the scope of a loop in the current trace.
#[pyfunction]
fn expr_context(py: Python<'_>) -> PyResult<PyContext> {
    let trace = current_trace(py, "context")?;
    let open = |graph: &mut Graph| (graph.mark(), graph.open_scope("while", &[]));
    let (mark, scope) = trace.edit(open).or_raise()?;
    Ok(PyContext { trace, mark, scope: Mutex::new(scope) })
}

/// Closes the loop of a context, whose condition and body have been computed from its parameters.
#[pyfunction]
fn expr_while(
    py: Python<'_>,
    initial: &Bound<'_, PyAny>,
    context: &Bound<'_, PyContext>,
    state: &Bound<'_, PyAny>,
    condition: &Bound<'_, PyAny>,
    body: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    let trace = current_trace(py, "while_")?;
    let context = context.get();
    if !context.trace.is(&trace) {
        let why = "context: must come from this trace; got the context of another one";
        return Err(argument_error("while_", why));
    }
    let part = |value: &Bound<'_, PyAny>, name: &str| -> PyResult<(Vec<ExprId>, Tree)> {
        let (values, tree) = leaves_of(&trace, "while_", value)?;
        if values.iter().any(|(_, vectors)| !vectors.is_empty()) {
            let why = format!("{name}: must not have vectorized axes; use nx.while_loop");
            return Err(argument_error("while_", why));
        }
        Ok((values.into_iter().map(|(id, _)| id).collect(), tree))
    };
    let (initial, tree) = part(initial, "initial")?;
    let (state, _) = part(state, "arg")?;
    let (condition, _) = part(condition, "condition")?;
    let (body, body_tree) = part(body, "body")?;
    let scope = context.lock().clone();
    if state != scope.parameters || state.len() != initial.len() {
        let why = format!(
            "arg: must be the parameters of the context in their order, one for each of {} tensors; \
             got {} parameters",
            initial.len(),
            scope.parameters.len()
        );
        return Err(argument_error("while_", why));
    }
    if !tree.same_structure(py, &body_tree)? {
        let (body, initial) = (PyTree::text(&body_tree, py)?, PyTree::text(&tree, py)?);
        let why = format!("body: must have the structure of initial, {initial}; got {body}");
        return Err(argument_error("while_", why));
    }
    let results = trace.build(|graph| {
        // Hooks that were added after the context was opened run once in each iteration.
        let body = graph.traced(context.mark, body);
        let condition = graph.traced(context.mark, condition);
        graph.while_loop(context.mark, &scope, &initial, condition, body)
    });
    let results = results.map_err(|error| error.in_function("while_")).or_raise()?;
    tree.rebuild(py, &mut results.into_iter().map(|id| wrap(py, &trace, id)))
}

/// An input of the expression that is built by hand, or a parameter of a context: the one at a
/// position, or the next.
#[pyfunction]
#[pyo3(signature = (template, position=None, context=None))]
fn expr_parameter(
    py: Python<'_>,
    template: &Bound<'_, PyTemplate>,
    position: Option<usize>,
    context: Option<&Bound<'_, PyContext>>,
) -> PyResult<Py<PyAny>> {
    let trace = current_trace(py, "parameter")?;
    let LeafType { ty, vectors } = &template.get().0;
    if let Some(context) = context {
        let context = context.get();
        if !context.trace.is(&trace) || !vectors.is_empty() {
            let why = "context: must come from this trace, for types without vectorized axes";
            return Err(argument_error("parameter", why));
        }
        return wrap(py, &trace, context.parameter(position, ty.clone())?);
    }
    let number = trace.number();
    let is_by_hand =
        BY_HAND.with_borrow(|traces| traces.last().is_some_and(|(last, _)| *last == number));
    if !is_by_hand {
        return Err(trace_error(
            "parameter: must be called in nx.expr.build; the inputs of other traced functions \
             are their arguments",
        ));
    }
    if !trace.captured_tensors().is_empty() {
        return Err(trace_error(
            "parameter: must be called before the first use of a large tensor, which becomes an \
             input",
        ));
    }
    let full = vectors.full_type(ty);
    let made = match position {
        Some(position) => trace.parameter_at(position, full),
        None => trace.parameter(full),
    };
    let id = made.and_then(|expr| expr.id()).or_raise()?;
    let index = trace.edit(|graph| match graph.op(id) {
        Op::Parameter(parameter) => parameter.index as usize,
        other => unreachable!("an input is a parameter, not {}", other.name()),
    });
    let index = index.or_raise()?;
    BY_HAND.with_borrow_mut(|traces| {
        let (_, inputs) = traces.last_mut().expect("the trace is built by hand");
        inputs.resize(inputs.len().max(index + 1), VectorAxes::NONE);
        inputs[index] = vectors.clone();
    });
    PyExpr::wrap(py, RawExpr::with_vectors(trace, id, vectors.clone()))
}

/// Adds a scalar that is repeated over a shape.
#[pyfunction]
#[pyo3(signature = (value, dtype=None, shape=None))]
fn expr_constant(
    value: &Bound<'_, PyAny>,
    dtype: Option<DTypeArg>,
    shape: Option<ShapeArg>,
) -> PyResult<Py<PyAny>> {
    let py = value.py();
    let trace = current_trace(py, "constant")?;
    let Some(number) = number_of(value)? else {
        let kind = kind_of(value)?;
        return Err(argument_error("constant", format!("value: must be a number; got {kind}")));
    };
    let refused = |error| number_error("constant", error);
    let scalar = number.to_scalar().map_err(refused)?;
    let dtype = match dtype {
        Some(dtype) => dtype.0,
        None => number.default_dtype().map_err(refused)?,
    };
    if let (Scalar::Float(value), true) = (scalar, dtype.is_integer())
        && value.fract() != 0.0
    {
        let why = format!("value: must be an integer for dtype {dtype}; got {value}");
        return Err(argument_error("constant", why));
    }
    all_fit(&[number], dtype)?;
    let shape = shape.map_or_else(Shape::scalar, |shape| shape.0);
    let ty = TensorType::new(dtype, shape);
    let id = trace.build(|graph| graph.constant(scalar.cast(dtype), ty)).or_raise()?;
    wrap(py, &trace, id)
}

/// A literal tensor, which is part of the program regardless of its size.
#[pyfunction]
fn expr_tensor(value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    let py = value.py();
    let trace = current_trace(py, "tensor")?;
    let tensor = match Value::of(value, "tensor")? {
        Value::Tensor(tensor) => py.detach(|| tensor.to_host()).or_raise()?,
        Value::Number(number) => {
            let tensor = crate::apply::number_tensor(number, None).or_raise()?;
            tensor.to_host().or_raise()?
        }
        Value::Expr(_) => {
            return Err(argument_error(
                "tensor",
                "value: must not be traced, because traced values have no data",
            ));
        }
    };
    let id = trace.build(|graph| graph.tensor(tensor)).or_raise()?;
    wrap(py, &trace, id)
}

/// A named composite: ``function`` maps a list of values to a list of values.
#[pyfunction]
fn expr_block(
    py: Python<'_>,
    name: &str,
    attributes: Vec<(String, String)>,
    values: Vec<Bound<'_, PyAny>>,
    function: &Bound<'_, PyAny>,
) -> PyResult<Vec<Py<PyAny>>> {
    let trace = current_trace(py, "block")?;
    let operands = operands(py, &trace, &values, "block")?;
    let open = trace.edit(|graph| graph.open_block(&ids(&operands))).or_raise()?;
    let parameters = in_place_of(open.parameters().to_vec(), operands);
    let parameters: Vec<Py<PyAny>> = wrap_all(py, &trace, parameters).collect::<PyResult<_>>()?;
    let attributes = attributes.into_iter().map(|(name, value)| (name.into(), value)).collect();
    let results = trace.drop_hooks_on_error(|| {
        let answer = function.call1((parameters,))?;
        let answer: Vec<Bound<'_, PyAny>> = answer.try_iter()?.collect::<PyResult<_>>()?;
        let results = self::operands(py, &trace, &answer, "block")?;
        let close = |graph: &mut Graph| graph.close_block(open, name, attributes, ids(&results));
        Ok::<_, PyErr>(in_place_of(trace.build(close).or_raise()?, results))
    })?;
    wrap_all(py, &trace, results).collect()
}

/// Adds a whole expression to the current trace, with values for its inputs. If no input has
/// vectorized axes, the expression is applied to each entry of vectorized values.
#[pyfunction]
fn expr_call(
    py: Python<'_>,
    expression: &Bound<'_, PyExpression>,
    values: Vec<Bound<'_, PyAny>>,
) -> PyResult<Py<PyAny>> {
    let trace = current_trace(py, "call")?;
    let expression = expression.get();
    let mut operands = operands(py, &trace, &values, "call")?;
    let expected: Vec<&LeafType> = expression.expected.leaf_types().collect();
    if operands.len() != expected.len() {
        let (own, found) = (expected.len(), operands.len());
        let why =
            format!("values: must be {own}, one for each input of the expression; got {found}");
        return Err(argument_error("call", why));
    }
    let is_batch = expected.iter().all(|expected| expected.vectors.is_empty());
    for (position, ((id, vectors), expected)) in operands.iter().zip(expected).enumerate() {
        let ty = trace.edit(|graph| vectors.entry_type(graph.tensor_type(*id))).or_raise()?;
        let fits = (ty.dtype, &ty.shape) == (expected.ty.dtype, &expected.ty.shape);
        if !fits || !is_batch && *vectors != expected.vectors {
            let found = LeafType { ty, vectors: vectors.clone() };
            let why = format!("value {position}: must be {expected}; got {found}");
            return Err(argument_error("call", why));
        }
    }
    for tensor in &expression.captured {
        operands.push((capture(py, &trace, tensor)?.id().or_raise()?, VectorAxes::NONE));
    }
    let inline = |graph: &mut Graph, ids: &[ExprId]| -> Result<Ids, Error> {
        Ok(expression.program.inline(graph, ids)?.into_iter().collect())
    };
    let results = trace.build(|graph| {
        if is_batch {
            build_each(graph, &operands, &mut called_once(inline))
        } else {
            Ok((inline(graph, &ids(&operands))?, VectorAxes::NONE))
        }
    });
    let (ids, batch) = results.or_raise()?;
    let mut results = Vec::with_capacity(ids.len());
    for (position, id) in ids.into_iter().enumerate() {
        let own = expression.results.vectors.get(position);
        if let Some(axis) = own.iter().find(|axis| batch.position(&axis.name).is_some()) {
            let why = format!(
                "values: must not have the vectorized axis {:?}, which result {position} adds",
                axis.name
            );
            return Err(argument_error("call", why));
        }
        results.push((id, VectorAxes::new(batch.iter().chain(own.iter()).cloned())));
    }
    let results = results.into_iter();
    expression.results.tree.rebuild(py, &mut wrap_all(py, &trace, results))
}

/// Creates the operation of a node with other operands in the current trace. The result is a tuple
/// if the operation has several results.
#[pyfunction]
fn put_args(
    py: Python<'_>,
    node: &Bound<'_, PyNode>,
    values: Vec<Bound<'_, PyAny>>,
) -> PyResult<Py<PyAny>> {
    let trace = current_trace(py, "put_args")?;
    let node = node.get();
    let graph = node.program.graph();
    let expected = graph.operands(node.id).len();
    if values.len() != expected {
        let why =
            format!("values: {} requires {expected} operands; got {}", node.name(), values.len());
        return Err(argument_error("put_args", why));
    }
    match graph.op(node.id) {
        Op::Parameter(_) => {
            Err(argument_error("put_args", "node: must have operands; got an input"))
        }
        Op::Elem(index) => values[0].get_item(index).map(Bound::unbind),
        op => {
            let operands = operands(py, &trace, &values, "put_args")?;
            let mut make = called_once(|graph: &mut Graph, ids: &[ExprId]| {
                let made = graph.make(op.clone(), ids)?;
                Ok(graph.parts(made)?.into_iter().collect())
            });
            let made = trace.build(|graph| build_each(graph, &operands, &mut make));
            let (ids, vectors) = made.or_raise()?;
            let parts = wrap_all(py, &trace, ids.into_iter().map(|id| (id, vectors.clone())));
            let parts = parts.collect::<PyResult<Vec<_>>>()?;
            match (graph.ty(node.id).as_tensor(), &parts[..]) {
                (Some(_), [only]) => Ok(only.clone_ref(py)),
                _ => PyTuple::new(py, parts)?.into_py_any(py),
            }
        }
    }
}

/// Calls `build` on operands, or on each entry of vectorized operands; returns the results with their
/// vectorized axes.
fn build_each(
    graph: &mut Graph,
    operands: &[Vectorized],
    build: &mut Build<'_>,
) -> Result<(Ids, VectorAxes), Error> {
    if operands.iter().all(|(_, vectors)| vectors.is_empty()) {
        Ok((build(graph, &ids(operands))?, VectorAxes::NONE))
    } else {
        per_entry(graph, operands, build)
    }
}

/// Values as nodes of the trace, with their vectorized axes.
fn operands(
    py: Python<'_>,
    trace: &Trace,
    values: &[Bound<'_, PyAny>],
    function: &str,
) -> PyResult<Vec<Vectorized>> {
    nodes_of(py, trace, function, values, |_, number| {
        trace.build(|graph| graph.number(number)).or_raise()
    })
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyContext>()?;
    module.add_function(wrap_pyfunction!(build_expression, module)?)?;
    module.add_function(wrap_pyfunction!(expr_context, module)?)?;
    module.add_function(wrap_pyfunction!(expr_while, module)?)?;
    module.add_function(wrap_pyfunction!(expr_parameter, module)?)?;
    module.add_function(wrap_pyfunction!(expr_constant, module)?)?;
    module.add_function(wrap_pyfunction!(expr_tensor, module)?)?;
    module.add_function(wrap_pyfunction!(expr_block, module)?)?;
    module.add_function(wrap_pyfunction!(expr_call, module)?)?;
    module.add_function(wrap_pyfunction!(put_args, module)?)
}
