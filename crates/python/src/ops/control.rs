//! Conditionals, loops, hooks and annotations inside a trace.
//!
//! Outside a trace the Python package runs them as plain Python: it knows the values.

use nxla::graph::{ExprId, Metadata};
use nxla::{Error, Expr, Trace};
use pyo3::prelude::*;

use super::functions;
use crate::apply::{apply, one};
use crate::containers::{PyTree, Tree, flatten};
use crate::errors::{OrRaise, argument_error, trace_error};
use crate::expr::PyExpr;
use crate::function::output;
use crate::hooks::{Arrange, PyHook};
use crate::source;
use crate::value::Value;

/// The current trace, and operands as its nodes; numbers are weak next to the first operand.
pub(super) fn in_trace(
    py: Python<'_>,
    function: &str,
    operands: &[&Bound<'_, PyAny>],
) -> PyResult<(Trace, Vec<ExprId>)> {
    let Some(trace) = Trace::current() else {
        return Err(trace_error(format!("{function} is used outside a traced function")));
    };
    source::mark(py, &trace)?;
    let mut ids: Vec<ExprId> = Vec::new();
    for operand in operands {
        let id = match Value::of(operand, function)? {
            Value::Expr(expr) => trace.id(&expr).or_raise()?,
            Value::Tensor(tensor) => trace.capture(&tensor).or_raise()?.id(),
            Value::Number(number) => trace
                .build(|graph| match ids.first() {
                    Some(&first) => graph.weak_number(number, first),
                    None => graph.number(number),
                })
                .or_raise()?,
        };
        ids.push(id);
    }
    Ok((trace, ids))
}

/// A result of a user's function as nodes of the trace, and its structure.
fn leaves_of(
    trace: &Trace,
    function: &str,
    result: &Bound<'_, PyAny>,
) -> PyResult<(Vec<ExprId>, Tree)> {
    let mut ids = Vec::new();
    let tree = flatten(result, "result", &mut |item, path| match output(trace, item)? {
        Some(expr) => {
            ids.push(trace.id(&expr).or_raise()?);
            Ok(true)
        }
        None if item.is_none() => Ok(false),
        None => {
            let kind = item.get_type().name()?;
            Err(argument_error(function, format!("{path} is a {kind}, not a tensor")))
        }
    })?;
    Ok((ids, tree))
}

fn wrap_all(py: Python<'_>, trace: &Trace, ids: Vec<ExprId>) -> Vec<PyResult<Py<PyAny>>> {
    ids.into_iter().map(|id| PyExpr::wrap(py, Expr::new(trace.clone(), id))).collect()
}

/// The first branch whose predicate holds: `clauses` are pairs of a traced predicate and a
/// function without arguments.
#[pyfunction]
fn cond(
    py: Python<'_>,
    clauses: Vec<(Bound<'_, PyAny>, Bound<'_, PyAny>)>,
    otherwise: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    let predicates: Vec<&Bound<'_, PyAny>> =
        clauses.iter().map(|(predicate, _)| predicate).collect();
    let (trace, predicates) = in_trace(py, "cond", &predicates)?;
    let mark = trace.build(|graph| Ok::<_, Error>(graph.mark())).or_raise()?;
    let mut traced = Vec::new();
    let mut trees = Vec::new();
    for ((_, body), &predicate) in clauses.iter().zip(&predicates) {
        // A branch that can never be taken is not even traced.
        let known = trace.build(|graph| Ok::<_, Error>(graph.known_truth(predicate))).or_raise()?;
        if known == Some(false) {
            continue;
        }
        let branch = trace_branch(&trace, body, &mut trees)?;
        let predicate = trace
            .build(|graph| Ok::<_, Error>(graph.traced(graph.mark(), vec![predicate])))
            .or_raise()?;
        if known == Some(true) {
            return finish_cond(py, &trace, mark, traced, branch, &trees);
        }
        traced.push((predicate, branch));
    }
    let otherwise = trace_branch(&trace, otherwise, &mut trees)?;
    finish_cond(py, &trace, mark, traced, otherwise, &trees)
}

fn trace_branch(
    trace: &Trace,
    body: &Bound<'_, PyAny>,
    trees: &mut Vec<Tree>,
) -> PyResult<nxla::graph::Traced> {
    let start = trace.build(|graph| Ok::<_, Error>(graph.mark())).or_raise()?;
    let result = body.call0()?;
    let (ids, tree) = leaves_of(trace, "cond", &result)?;
    trees.push(tree);
    trace.build(|graph| Ok::<_, Error>(graph.traced(start, ids))).or_raise()
}

fn finish_cond(
    py: Python<'_>,
    trace: &Trace,
    mark: nxla::graph::Mark,
    clauses: Vec<(nxla::graph::Traced, nxla::graph::Traced)>,
    otherwise: nxla::graph::Traced,
    trees: &[Tree],
) -> PyResult<Py<PyAny>> {
    let last = trees.last().expect("there is a last branch");
    for (number, tree) in trees.iter().enumerate() {
        if !tree.same_structure(py, last)? {
            let why = format!("branch {number} gives another structure than the last branch");
            return Err(argument_error("cond", why));
        }
    }
    source::mark(py, trace)?;
    let ids = trace.build(|graph| graph.cond(mark, clauses, otherwise)).or_raise()?;
    last.rebuild(py, &mut wrap_all(py, trace, ids).into_iter())
}

/// Repeats `body(state)` while `condition(state)` holds.
#[pyfunction]
fn while_loop(
    py: Python<'_>,
    condition: &Bound<'_, PyAny>,
    body: &Bound<'_, PyAny>,
    initial: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    let (trace, _) = in_trace(py, "while_loop", &[])?;
    let (initial, tree) = leaves_of(&trace, "while_loop", initial)?;
    let (mark, scope) = trace
        .build(|graph| {
            let types: Vec<_> = initial.iter().map(|&id| graph.tensor_type(id).clone()).collect();
            Ok::<_, Error>((graph.mark(), graph.open_scope(&types)))
        })
        .or_raise()?;
    let state = || -> PyResult<Py<PyAny>> {
        tree.rebuild(py, &mut wrap_all(py, &trace, scope.parameters.clone()).into_iter())
    };
    let start = trace.build(|graph| Ok::<_, Error>(graph.mark())).or_raise()?;
    let (holds, _) = leaves_of(&trace, "while_loop", &condition.call1((state()?,))?)?;
    let condition = trace.build(|graph| Ok::<_, Error>(graph.traced(start, holds))).or_raise()?;
    let start = trace.build(|graph| Ok::<_, Error>(graph.mark())).or_raise()?;
    let (next, next_tree) = leaves_of(&trace, "while_loop", &body.call1((state()?,))?)?;
    if !next_tree.same_structure(py, &tree)? {
        let why = "the body gives another structure than the initial state";
        return Err(argument_error("while_loop", why));
    }
    let body = trace.build(|graph| Ok::<_, Error>(graph.traced(start, next))).or_raise()?;
    source::mark(py, &trace)?;
    let ids = trace
        .build(|graph| graph.while_loop(mark, &scope, &initial, condition, body))
        .or_raise()?;
    tree.rebuild(py, &mut wrap_all(py, &trace, ids).into_iter())
}

/// Puts the values of a hook into the container that the user gave it.
struct InContainer(Py<PyTree>);

impl Arrange for InContainer {
    fn arrange(&self, py: Python<'_>, values: Vec<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        self.0.get().0.rebuild(py, &mut values.into_iter().map(Ok))
    }
}

/// Shows a value to a host function whenever it is computed; gives the value back.
#[pyfunction]
#[pyo3(signature = (value, name=None, function=None))]
fn hook(
    py: Python<'_>,
    value: &Bound<'_, PyAny>,
    name: Option<&str>,
    function: Option<&Bound<'_, PyAny>>,
) -> PyResult<Py<PyAny>> {
    let (trace, _) = in_trace(py, "hook", &[])?;
    let (ids, tree) = leaves_of(&trace, "hook", value)?;
    let tree = Py::new(py, PyTree(tree))?;
    let default = match function {
        Some(function) if !function.is_none() => {
            let arrange = Box::new(InContainer(tree.clone_ref(py)));
            Some(PyHook::arranged(function, Some(arrange))?)
        }
        _ => None,
    };
    let ids = trace.build(|graph| graph.hook(&ids, name, default)).or_raise()?;
    tree.get().0.rebuild(py, &mut wrap_all(py, &trace, ids).into_iter())
}

/// `x`, through which no gradient flows.
#[pyfunction]
fn stop_grad(x: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    let operand = Value::of(x, "stop_grad")?;
    apply(x.py(), &[operand], |graph, ids| one(graph.stop_grad(ids[0])))
}

/// A container of values with a note that expression text shows and splits can look for. Its
/// values are one node, so that a cut there has all of them on one side.
#[pyfunction]
fn annotate(py: Python<'_>, value: &Bound<'_, PyAny>, note: &str) -> PyResult<Py<PyAny>> {
    let (trace, _) = in_trace(py, "annotate", &[])?;
    let (ids, tree) = leaves_of(&trace, "annotate", value)?;
    let ids = trace
        .build(|graph| {
            let metadata = Metadata { inspect: Some(note.into()), ..Metadata::default() };
            let node = graph.metadata(&ids, metadata)?;
            graph.parts(node)
        })
        .or_raise()?;
    tree.rebuild(py, &mut wrap_all(py, &trace, ids).into_iter())
}

/// `value` with a derivative of the user's: `rule` gets the cotangents of the leaves of the value
/// as a list and gives those of the inputs.
#[pyfunction]
fn custom_grad(
    py: Python<'_>,
    value: &Bound<'_, PyAny>,
    inputs: &Bound<'_, PyAny>,
    rule: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    let (trace, _) = in_trace(py, "custom_grad", &[])?;
    let (outputs, tree) = leaves_of(&trace, "custom_grad", value)?;
    let (inputs, _) = leaves_of(&trace, "custom_grad", inputs)?;
    let gradient =
        trace.build(|graph| Ok::<_, Error>(graph.open_custom_grad(&outputs))).or_raise()?;
    let cotangents = wrap_all(py, &trace, gradient.cotangents().to_vec());
    let cotangents = cotangents.into_iter().collect::<PyResult<Vec<_>>>()?;
    let (answer, _) = leaves_of(&trace, "custom_grad", &rule.call1((cotangents,))?)?;
    let ids = trace
        .build(|graph| graph.close_custom_grad(gradient, &outputs, &inputs, answer))
        .or_raise()?;
    tree.rebuild(py, &mut wrap_all(py, &trace, ids).into_iter())
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    functions!(module: cond, while_loop, hook, stop_grad, annotate, custom_grad);
    Ok(())
}
