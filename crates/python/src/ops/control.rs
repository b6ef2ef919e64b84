//! Conditionals, hooks and annotations inside a trace; loops are in a module beside.
//!
//! Outside a trace the Python package runs them as plain Python: it knows the values.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::Arc;

use nxla_runtime::graph::{
    ExprId, Graph, Keep, MAX_NESTING, Mark, Metadata, Region, RuleFor, Traced,
};
use nxla_runtime::host::Number;
use nxla_runtime::vectors::active_entries::ActiveEntries;
use nxla_runtime::vectors::control::{Branch, Clauses, CustomRule, Vectorized, conditional};
use nxla_runtime::{DType, RawExpr, Trace, VectorAxes, common_dtype};
use pyo3::call::PyCallArgs;
use pyo3::prelude::*;

use super::add_functions;
use crate::apply::{apply, capture, one};
use crate::containers::{PyTree, Tree, flatten};
use crate::errors::{OrRaise, argument_error, kind_of, trace_error};
use crate::expr::PyExpr;
use crate::function::output;
use crate::hooks::{Arrange, PyCompute, PyHook};
use crate::notes::notes_of;
use crate::numbers::checked_weak_scalar;
use crate::operands::elements;
use crate::source;
use crate::template::PyTemplate;
use crate::tensor::PyTensor;
use crate::value::{FromPython, Value, number_of};

/// The current trace, in which `function` builds.
pub(crate) fn current_trace(py: Python<'_>, function: &str) -> PyResult<Trace> {
    let Some(trace) = Trace::current() else {
        return Err(trace_error(format!("{function}: must be called in a traced function")));
    };
    source::mark(py, &trace)?;
    Ok(trace)
}

/// The current trace, and operands as its nodes; scalars take the dtype of the first operand.
pub(super) fn in_trace<'a, 'py: 'a>(
    py: Python<'py>,
    function: &str,
    operands: impl IntoIterator<Item = &'a Bound<'py, PyAny>>,
) -> PyResult<(Trace, Vec<Vectorized>)> {
    let trace = current_trace(py, function)?;
    let values = nodes_of(py, &trace, function, operands, |values, number| {
        let first = values.first().map(|(first, _)| *first);
        let dtype = first.map(|first| trace.edit(|graph| graph.dtype(first)));
        let dtype = dtype.transpose().or_raise()?;
        match checked_weak_scalar(number, dtype)? {
            Value::Number(number) => trace.build(|graph| graph.weak_constant(number, dtype)),
            // The scalar does not take the dtype of the first operand.
            Value::Tensor(_) | Value::Expr(_) => trace.build(|graph| graph.number(number)),
        }
        .or_raise()
    })?;
    Ok((trace, values))
}

/// Operands as nodes of the trace, with their vectorized axes. `add_number` adds a scalar, whose
/// dtype may depend on the operands before it.
pub(crate) fn nodes_of<'a, 'py: 'a>(
    py: Python<'py>,
    trace: &Trace,
    function: &str,
    operands: impl IntoIterator<Item = &'a Bound<'py, PyAny>>,
    add_number: impl Fn(&[Vectorized], Number) -> PyResult<ExprId>,
) -> PyResult<Vec<Vectorized>> {
    let mut values: Vec<Vectorized> = Vec::new();
    for operand in operands {
        values.push(match Value::of(operand, function)? {
            Value::Expr(expr) => id_and_vectors(&trace.safe(&expr).or_raise()?)?,
            Value::Tensor(tensor) => {
                let value = id_and_vectors(&capture(py, trace, &tensor)?)?;
                trace.build(|graph| trace.mask_entries(graph, value, true)).or_raise()?
            }
            Value::Number(number) => (add_number(&values, number)?, VectorAxes::NONE),
        });
    }
    Ok(values)
}

fn id_and_vectors(expr: &RawExpr) -> PyResult<Vectorized> {
    Ok((expr.id().or_raise()?, expr.vectors().clone()))
}

pub(crate) fn ids(values: &[Vectorized]) -> Vec<ExprId> {
    values.iter().map(|(id, _)| *id).collect()
}

/// A result of a user's function as values of the trace and Python scalars, and its structure. The
/// dtypes of the scalars depend on the values with which the caller combines them.
fn values_of(
    trace: &Trace,
    function: &str,
    result: &Bound<'_, PyAny>,
) -> PyResult<(Vec<Value>, Tree)> {
    let mut values = Vec::new();
    let tree = flatten(result, "result", &mut |item, path| {
        if let Some(number) = number_of(item)? {
            values.push(Value::Number(number));
            return Ok(true);
        }
        match output(trace, item)? {
            Some(expr) => {
                values.push(Value::Expr(trace.safe(&expr).or_raise()?));
                Ok(true)
            }
            None if item.is_none() => Ok(false),
            None => {
                let kind = kind_of(item)?;
                Err(argument_error(function, format!("{}: must be a tensor; got {kind}", path())))
            }
        }
    })?;
    Ok((values, tree))
}

/// A value as a node of the trace. A Python scalar takes the dtype `common` if its kind allows.
fn node_of(
    py: Python<'_>,
    trace: &Trace,
    value: &Value,
    common: Option<DType>,
) -> PyResult<Vectorized> {
    match value {
        Value::Expr(expr) => id_and_vectors(expr),
        Value::Tensor(tensor) => id_and_vectors(&capture(py, trace, tensor)?),
        Value::Number(number) => {
            source::mark(py, trace)?;
            let id = trace.build(|graph| graph.weak_constant(*number, common)).or_raise()?;
            Ok((id, VectorAxes::NONE))
        }
    }
}

/// A result of a user's function as nodes of the trace, and its structure. Python scalars have their
/// default dtypes.
pub(crate) fn leaves_of(
    trace: &Trace,
    function: &str,
    result: &Bound<'_, PyAny>,
) -> PyResult<(Vec<Vectorized>, Tree)> {
    leaves_like(trace, function, result, &[])
}

/// Does the same as [`leaves_of`], but a Python scalar takes the dtype of the node at its position in
/// `like` if its kind allows.
pub(super) fn leaves_like(
    trace: &Trace,
    function: &str,
    result: &Bound<'_, PyAny>,
    like: &[Vectorized],
) -> PyResult<(Vec<Vectorized>, Tree)> {
    let (values, tree) = values_of(trace, function, result)?;
    let node = |(position, value)| {
        let like = like.get(position).map(|(id, _)| trace.edit(|graph| graph.dtype(*id)));
        node_of(result.py(), trace, value, like.transpose().or_raise()?)
    };
    Ok((values.iter().enumerate().map(node).collect::<PyResult<_>>()?, tree))
}

/// Nodes of the trace as traced values.
pub(crate) fn wrap_all(
    py: Python<'_>,
    trace: &Trace,
    values: impl IntoIterator<Item = Vectorized>,
) -> impl Iterator<Item = PyResult<Py<PyAny>>> {
    let expr = |(id, vectors)| RawExpr::with_vectors(trace.clone(), id, vectors);
    values.into_iter().map(move |value| PyExpr::wrap(py, expr(value)))
}

/// Replaced nodes, with the vectorized axes of the originals.
pub(crate) fn in_place_of(nodes: Vec<ExprId>, values: Vec<Vectorized>) -> Vec<Vectorized> {
    nodes.into_iter().zip(values).map(|(id, (_, vectors))| (id, vectors)).collect()
}

/// The first branch whose predicate is true: `clauses` are pairs of a traced predicate and a
/// function without arguments. If they are `deferred`, the predicates are such functions too, and
/// their operations become part of the conditional. Errors name `function`, the public function.
#[pyfunction]
#[pyo3(signature = (clauses, otherwise, function="cond", deferred=false))]
fn cond(
    py: Python<'_>,
    clauses: Vec<(Bound<'_, PyAny>, Bound<'_, PyAny>)>,
    otherwise: &Bound<'_, PyAny>,
    function: &str,
    deferred: bool,
) -> PyResult<Py<PyAny>> {
    let operands: Vec<&Bound<'_, PyAny>> = if deferred {
        Vec::new()
    } else {
        clauses.iter().map(|(predicate, _)| predicate).collect()
    };
    let (trace, operands) = in_trace(py, function, operands)?;
    let mark = trace.edit(|graph| graph.mark()).or_raise()?;
    let mut operands = operands.into_iter();
    let (mut traced_predicates, mut traced) = (Vec::new(), Vec::new());
    let (mut trees, mut entries) = (Vec::new(), Clauses::default());
    let mut last = (clauses.len(), otherwise);
    for (number, (predicate, body)) in clauses.iter().enumerate() {
        // Nodes after the mark are copied to the regions that use them. A predicate before the mark
        // is an operand of the conditional, which every region receives.
        let predicate = match operands.next() {
            Some(predicate) => predicate,
            None => in_trace(py, function, [&predicate.call0()?])?.1.remove(0),
        };
        // A branch that is never selected is not traced.
        match trace.edit(|graph| graph.known_truth(predicate.0)).or_raise()? {
            Some(false) => continue,
            Some(true) => {
                last = (number, body);
                break;
            }
            None => {}
        }
        let active = trace.build(|graph| entries.next(graph, &predicate));
        let active = active.map_err(|error| error.in_function(function)).or_raise()?;
        let (branch, tree) = trace_branch(&trace, function, active, body)?;
        traced_predicates.push(predicate);
        traced.push(branch);
        trees.push((number, tree));
    }
    let (number, body) = last;
    let active = trace.edit(|graph| entries.last(graph)).or_raise()?;
    let (branch, tree) = trace_branch(&trace, function, active, body)?;
    traced.push(branch);
    trees.push((number, tree));
    finish_cond(py, function, &trace, mark, traced_predicates, traced, &trees)
}

/// Calls the function of a branch or a loop, which can contain further ones.
///
/// The graph rejects deep nesting only when the regions are closed, from the inside out. The
/// recursion would overflow the stack before that, so the depth is counted here.
pub(super) fn call_region<'py>(
    function: &str,
    body: &Bound<'py, PyAny>,
    args: impl PyCallArgs<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    thread_local! {
        static DEPTH: Cell<usize> = const { Cell::new(0) };
    }
    if DEPTH.get() >= MAX_NESTING {
        let why = format!("branches and loops must be nested at most {MAX_NESTING} deep");
        return Err(argument_error(function, why));
    }
    DEPTH.set(DEPTH.get() + 1);
    let result = body.call1(args);
    DEPTH.set(DEPTH.get() - 1);
    result
}

/// The structure that all branches return; the index of a branch is for errors.
fn same_structures<'a>(
    py: Python<'_>,
    function: &str,
    branches: &'a [(usize, Tree)],
) -> PyResult<&'a Tree> {
    let (first, expected) = &branches[0];
    for (number, tree) in branches {
        if !tree.same_structure(py, expected)? {
            let (found, expected) = (PyTree::text(tree, py)?, PyTree::text(expected, py)?);
            let line = source::at_current_line(py);
            let why = format!(
                "branch {number}: must return {expected}, like branch {first}; got {found}{line}"
            );
            return Err(argument_error(function, why));
        }
    }
    Ok(&branches.last().expect("there is a last branch").1)
}

/// A traced branch without its results, and the results.
type OpenBranch = (Traced, Vec<Value>);

/// Traces a branch for the entries that select it.
fn trace_branch(
    trace: &Trace,
    function: &str,
    active: Option<ActiveEntries>,
    body: &Bound<'_, PyAny>,
) -> PyResult<(OpenBranch, Tree)> {
    let start = trace.edit(|graph| graph.mark()).or_raise()?;
    let (values, tree) = trace.drop_hooks_on_error(|| {
        let entered = trace.enter_entries(active);
        let result = call_region(function, body, ())?;
        drop(entered);
        values_of(trace, function, &result)
    })?;
    let traced = trace.edit(|graph| graph.traced(start, Vec::new())).or_raise()?;
    Ok(((traced, values), tree))
}

/// Adds the results to branches that return the same structure. The results at one position are
/// combined like the operands of one call, which decides the dtypes of Python scalars.
fn close_branches(
    py: Python<'_>,
    trace: &Trace,
    branches: Vec<OpenBranch>,
) -> PyResult<Vec<Branch>> {
    let count = branches.first().map_or(0, |(_, values)| values.len());
    let mut results = vec![Vec::with_capacity(count); branches.len()];
    for position in 0..count {
        let column = branches.iter().map(|(_, values)| values[position].clone());
        let column = elements(column)?;
        let common = common_dtype(&column);
        for (results, value) in results.iter_mut().zip(&column) {
            results.push(node_of(py, trace, value, common)?);
        }
    }
    let close = |((traced, _), results): (OpenBranch, Vec<Vectorized>)| {
        let (ids, vectors) = results.into_iter().unzip();
        (traced.with_outputs(ids), vectors)
    };
    Ok(branches.into_iter().zip(results).map(close).collect())
}

/// Ends a conditional. The last of the branches has no predicate.
fn finish_cond(
    py: Python<'_>,
    function: &str,
    trace: &Trace,
    mark: Mark,
    predicates: Vec<Vectorized>,
    branches: Vec<OpenBranch>,
    trees: &[(usize, Tree)],
) -> PyResult<Py<PyAny>> {
    let last = same_structures(py, function, trees)?;
    source::mark(py, trace)?;
    let mut branches = close_branches(py, trace, branches)?;
    let otherwise = branches.pop().expect("there is a last branch");
    let clauses = predicates.into_iter().zip(branches).collect();
    let values = trace.build(|graph| conditional(graph, mark, clauses, otherwise));
    // Excluded branches are not passed on, but the user's numbering includes them.
    let number = |region| match region {
        Region::Branch(branch) => Region::Branch(trees[branch].0),
        Region::Body => Region::Body,
    };
    let place = |region, result| (number(region), last.leaf_path(py, result).ok().flatten());
    let values = values
        .map_err(|error| error.in_function(function).locate(function, &[("", "result")], place))
        .or_raise()?;
    last.rebuild(py, &mut wrap_all(py, trace, values))
}

/// Rebuilds the container of a hook's values.
struct InContainer {
    tree: Py<PyTree>,
    /// The vectorized axes of each value.
    vectors: Vec<VectorAxes>,
}

impl Arrange for InContainer {
    fn arrange(&self, py: Python<'_>, values: Vec<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        let mut values = values.into_iter().zip(&self.vectors).map(|(value, vectors)| match value
            .bind(py)
            .cast::<PyTensor>()
        {
            Ok(tensor) if !vectors.is_empty() => {
                let data = tensor.get().tensor();
                PyTensor::wrap(py, data.with_vectors(vectors.clone()))
            }
            _ => Ok(value),
        });
        self.tree.get().0.rebuild(py, &mut values)
    }
}

/// Calls a host function with a value whenever the value is computed; returns the value.
#[pyfunction]
#[pyo3(signature = (value, name=None, function=None))]
fn hook(
    py: Python<'_>,
    value: &Bound<'_, PyAny>,
    name: Option<&str>,
    function: Option<&Bound<'_, PyAny>>,
) -> PyResult<Py<PyAny>> {
    let trace = current_trace(py, "hook")?;
    let (values, tree) = leaves_of(&trace, "hook", value)?;
    let tree = Py::new(py, PyTree(tree))?;
    let vectors = values.iter().map(|(_, vectors)| vectors.clone()).collect();
    let arrange = Box::new(InContainer { tree: tree.clone_ref(py), vectors });
    let own = PyHook::in_container(function, arrange)?;
    let shown = trace.build(|graph| graph.hook(&ids(&values), name, Some(own))).or_raise()?;
    let values = in_place_of(shown, values);
    tree.get().0.rebuild(py, &mut wrap_all(py, &trace, values))
}

/// Calls a host function with values whenever they are computed, and returns its results. The
/// function maps a list of tensors to a list of tensors with the types of the templates. Errors of
/// programs without the function contain the name.
#[pyfunction]
#[pyo3(signature = (function, values, templates, name=None))]
fn runtime_call(
    py: Python<'_>,
    function: &Bound<'_, PyAny>,
    values: Vec<Bound<'_, PyAny>>,
    templates: Vec<PyRef<'_, PyTemplate>>,
    name: Option<&str>,
) -> PyResult<Vec<Py<PyAny>>> {
    let (trace, values) = in_trace(py, "runtime_call", &values)?;
    if values.iter().any(|(_, vectors)| !vectors.is_empty()) {
        let why = "arguments: must not have vectorized axes; devectorize them first";
        return Err(argument_error("runtime_call", why));
    }
    let types = templates.iter().map(|template| template.0.ty.clone()).collect();
    let function = PyCompute::of(function);
    let name = name.map(Arc::from);
    let made = |graph: &mut Graph| graph.named_runtime_call(name, &ids(&values), types, function);
    let results = trace.build(made).or_raise()?;
    let results = results.into_iter().map(|id| (id, VectorAxes::NONE));
    wrap_all(py, &trace, results).collect()
}

/// `x`, without a gradient.
#[pyfunction]
fn stop_grad(x: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    let operand = Value::of(x, "stop_grad")?;
    apply(x.py(), "stop_grad", &[operand], |graph, ids| one(graph.stop_grad(ids[0])))
}

/// A container of values with a note that is printed and that split callbacks can read. The values
/// are one node, so a cut has all of them on one side.
#[pyfunction]
fn annotate(py: Python<'_>, value: &Bound<'_, PyAny>, note: &str) -> PyResult<Py<PyAny>> {
    let metadata = Metadata { inspect: Some(note.into()), ..Metadata::default() };
    add_metadata(py, "annotate", value, metadata)
}

/// A container of values with notes: ``inspect`` is printed, and ``stop_grad`` removes the
/// gradient.
#[pyfunction]
#[pyo3(signature = (value, notes=None, inspect=None, stop_grad=false))]
fn expr_metadata(
    py: Python<'_>,
    value: &Bound<'_, PyAny>,
    notes: Option<&Bound<'_, PyAny>>,
    inspect: Option<&str>,
    stop_grad: bool,
) -> PyResult<Py<PyAny>> {
    let notes = notes.map(notes_of).transpose()?.unwrap_or_default();
    let inspect = inspect.map(Into::into);
    let metadata = Metadata { inspect, stop_grad, notes, ..Metadata::default() };
    add_metadata(py, "metadata", value, metadata)
}

fn add_metadata(
    py: Python<'_>,
    function: &'static str,
    value: &Bound<'_, PyAny>,
    metadata: Metadata,
) -> PyResult<Py<PyAny>> {
    let trace = current_trace(py, function)?;
    let (values, tree) = leaves_of(&trace, function, value)?;
    let parts = trace
        .build(|graph| {
            let node = graph.metadata(&ids(&values), metadata)?;
            graph.parts(node)
        })
        .or_raise()?;
    let values = in_place_of(parts, values);
    tree.rebuild(py, &mut wrap_all(py, &trace, values))
}

/// The results of a function in a block whose derivative stores only the values of the policy
/// `keep`, or the values with the notes `names`. The function maps a list to a list.
#[pyfunction]
fn checkpoint(
    py: Python<'_>,
    values: &Bound<'_, PyAny>,
    function: &Bound<'_, PyAny>,
    keep: &str,
    names: Vec<String>,
) -> PyResult<Py<PyAny>> {
    let keep = match keep {
        "nothing" => Keep::Nothing,
        "products" => Keep::Products,
        "everything" => Keep::Everything,
        "named" => Keep::Named(names.into_iter().map(Into::into).collect()),
        other => {
            let why = format!(
                "policy: must be 'nothing', 'products', 'everything' or a list of notes; got \
                 {other:?}"
            );
            return Err(argument_error("checkpoint", why));
        }
    };
    let trace = current_trace(py, "checkpoint")?;
    let (values, tree) = leaves_of(&trace, "checkpoint", values)?;
    let open = trace.edit(|graph| graph.open_block(&ids(&values))).or_raise()?;
    let parameters = in_place_of(open.parameters().to_vec(), values);
    let arguments = tree.rebuild(py, &mut wrap_all(py, &trace, parameters))?;
    let (parts, results, tree) = trace.drop_hooks_on_error(|| {
        let answer = call_region("checkpoint", function, (arguments,))?;
        let (results, tree) = leaves_of(&trace, "checkpoint", &answer)?;
        source::mark(py, &trace)?;
        let close = |graph: &mut Graph| graph.close_checkpoint(open, keep, ids(&results));
        Ok::<_, PyErr>((trace.build(close).or_raise()?, results, tree))
    })?;
    let results = in_place_of(parts, results);
    tree.rebuild(py, &mut wrap_all(py, &trace, results))
}

/// `value` with a custom derivative: `rule` maps the list of cotangents of the value's leaves to
/// the list of cotangents of the inputs.
#[pyfunction]
fn custom_grad(
    py: Python<'_>,
    value: &Bound<'_, PyAny>,
    inputs: &Bound<'_, PyAny>,
    rule: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    custom_rule(py, RuleFor::Cotangents, value, inputs, rule)
}

/// `value` with a custom derivative: `rule` maps the list of tangents of the inputs' leaves to the
/// list of tangents of the value.
#[pyfunction]
fn custom_jvp(
    py: Python<'_>,
    value: &Bound<'_, PyAny>,
    inputs: &Bound<'_, PyAny>,
    rule: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    custom_rule(py, RuleFor::Tangents, value, inputs, rule)
}

fn custom_rule(
    py: Python<'_>,
    kind: RuleFor,
    value: &Bound<'_, PyAny>,
    inputs: &Bound<'_, PyAny>,
    rule: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    let function = kind.function_name();
    let trace = current_trace(py, function)?;
    let (mut outputs, tree) = leaves_of(&trace, function, value)?;
    let (inputs, _) = leaves_of(&trace, function, inputs)?;
    let values = loop {
        let open = |graph: &mut Graph| CustomRule::open(graph, kind, outputs, inputs.clone());
        let open = trace.build(open).or_raise()?;
        let changes = wrap_all(py, &trace, open.changes()).collect::<PyResult<Vec<_>>>()?;
        let like = match kind {
            RuleFor::Cotangents => &inputs,
            RuleFor::Tangents => open.outputs(),
        };
        let (results, _) = leaves_like(&trace, function, &rule.call1((changes,))?, like)?;
        match trace.build(|graph| open.close(graph, &results)).or_raise()? {
            ControlFlow::Break(values) => break values,
            ControlFlow::Continue(wide) => outputs = wide,
        }
    };
    tree.rebuild(py, &mut wrap_all(py, &trace, values))
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    add_functions!(module: cond, hook, runtime_call, stop_grad, annotate, expr_metadata,
        checkpoint, custom_grad, custom_jvp);
    Ok(())
}
