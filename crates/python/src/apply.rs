//! Applying an operation to operands: in the trace they belong to, or at once.
//!
//! Every function of the module is one call of [`apply`] with a builder. If an operand is traced,
//! or a trace is under way on this thread, the builder adds nodes to it. Otherwise the operation
//! is a little program of its own, whose operands (numbers too) are inputs: it is compiled once
//! for its types, whatever the values, and found by its digest afterwards.

use std::sync::Arc;

use nxla::eval::Interrupt;
use nxla::graph::{ExprId, Graph};
use nxla::host::weak_dtype;
use nxla::vectors::per_entry;
use nxla::{
    Error, Expr, Number, Options, Program, RunContext, Tensor, Trace, Vectors,
    compile_program_watched, default_options,
};
use pyo3::prelude::*;
use smallvec::SmallVec;

use crate::debug;
use crate::errors::{OrRaise, trace_error};
use crate::expr::PyExpr;
use crate::interrupt::interruptible;
use crate::source;
use crate::tensor::PyTensor;
use crate::value::Value;

pub(crate) use nxla::Ids;

/// The result of a builder.
pub(crate) type Built = Result<Ids, Error>;

/// One result.
pub(crate) fn one<E>(id: Result<ExprId, E>) -> Built
where
    Error: From<E>,
{
    Ok(SmallVec::from_slice(&[id?]))
}

/// Several results.
pub(crate) fn many<E>(ids: Result<impl IntoIterator<Item = ExprId>, E>) -> Built
where
    Error: From<E>,
{
    Ok(ids?.into_iter().collect())
}

/// Applies `build` to operands and gives its single result.
pub(crate) fn apply(
    py: Python<'_>,
    operands: &[Value],
    build: impl FnOnce(&mut Graph, &[ExprId]) -> Built,
) -> PyResult<Py<PyAny>> {
    let mut results = apply_all(py, operands, build)?;
    Ok(results.pop().expect("the builder gives one result"))
}

/// Applies `build` to operands and gives all its results.
pub(crate) fn apply_all(
    py: Python<'_>,
    operands: &[Value],
    build: impl FnOnce(&mut Graph, &[ExprId]) -> Built,
) -> PyResult<SmallVec<[Py<PyAny>; 2]>> {
    match trace_of(operands)? {
        Some(trace) => traced(py, &trace, operands, build),
        None => at_once(py, operands, build),
    }
}

/// Applies `build` to operands and gives all its results as a list.
pub(crate) fn apply_parts(
    py: Python<'_>,
    operands: &[Value],
    build: impl FnOnce(&mut Graph, &[ExprId]) -> Built,
) -> PyResult<Vec<Py<PyAny>>> {
    apply_all(py, operands, build).map(SmallVec::into_vec)
}

/// The trace to build in: that of the operands, else the one under way on this thread.
fn trace_of(operands: &[Value]) -> PyResult<Option<Trace>> {
    let mut found: Option<&Trace> = None;
    for operand in operands {
        let Value::Expr(expr) = operand else { continue };
        match found {
            None => found = Some(expr.trace()),
            Some(trace) if trace.is(expr.trace()) => {}
            Some(_) => {
                return Err(trace_error(
                    "values of two traces are combined; pass one of them as an argument of the \
                     traced function instead",
                ));
            }
        }
    }
    Ok(found.cloned().or_else(Trace::current))
}

fn traced(
    py: Python<'_>,
    trace: &Trace,
    operands: &[Value],
    build: impl FnOnce(&mut Graph, &[ExprId]) -> Built,
) -> PyResult<SmallVec<[Py<PyAny>; 2]>> {
    source::mark(py, trace)?;
    let mentioned = mentioned(py, trace, operands)?;
    let mut vectors = Vectors::NONE;
    let build = |graph: &mut Graph, ids: &[ExprId]| {
        build_entries(graph, operands, ids, build, &mut vectors)
    };
    let ids = trace.build(|graph| build_nodes(graph, operands, &mentioned, build)).or_raise()?;
    let expr = |id| Expr::with_vectors(trace.clone(), id, vectors.clone());
    ids.into_iter().map(|id| PyExpr::wrap(py, expr(id))).collect()
}

/// Builds for one entry what is meant for all, if an operand is vectorized.
fn build_entries(
    graph: &mut Graph,
    operands: &[Value],
    ids: &[ExprId],
    build: impl FnOnce(&mut Graph, &[ExprId]) -> Built,
    vectors: &mut Vectors,
) -> Built {
    if operands.iter().all(|operand| operand.vectors().is_empty()) {
        return build(graph, ids);
    }
    let operands = operands.iter().map(|operand| operand.vectors().clone());
    let operands: SmallVec<[(ExprId, Vectors); 4]> = ids.iter().copied().zip(operands).collect();
    let (ids, found) = per_entry(graph, &operands, build)?;
    *vectors = found;
    Ok(ids)
}

/// The nodes of the tensors among the operands: literals, or hidden inputs if they are large.
fn mentioned(py: Python<'_>, trace: &Trace, operands: &[Value]) -> PyResult<Ids> {
    let tensors = operands.iter().filter_map(|operand| match operand {
        Value::Tensor(tensor) => Some(tensor),
        Value::Expr(_) | Value::Number(_) => None,
    });
    tensors.map(|tensor| Ok(py.detach(|| trace.capture(tensor)).or_raise()?.id())).collect()
}

fn build_nodes(
    graph: &mut Graph,
    operands: &[Value],
    mentioned: &[ExprId],
    build: impl FnOnce(&mut Graph, &[ExprId]) -> Built,
) -> Built {
    let mut mentioned = mentioned.iter().copied();
    let mut ids: SmallVec<[Option<ExprId>; 4]> = SmallVec::new();
    for operand in operands {
        ids.push(match operand {
            Value::Expr(expr) => Some(expr.id()),
            Value::Tensor(_) => Some(mentioned.next().expect("one node for each tensor")),
            Value::Number(_) => None,
        });
    }
    // A number takes its dtype from the last tensor, which for `select` is the other branch and
    // for everything else the only tensor there is.
    let next_to = ids.iter().rev().find_map(|id| *id);
    let mut resolved = Ids::new();
    for (operand, id) in operands.iter().zip(ids) {
        resolved.push(match (operand, id) {
            (_, Some(id)) => id,
            (Value::Number(number), None) => match next_to {
                Some(other) => graph.weak_number(*number, other)?,
                None => graph.number(*number)?,
            },
            (Value::Expr(_) | Value::Tensor(_), None) => unreachable!("resolved above"),
        });
    }
    build(graph, &resolved)
}

fn at_once(
    py: Python<'_>,
    operands: &[Value],
    build: impl FnOnce(&mut Graph, &[ExprId]) -> Built,
) -> PyResult<SmallVec<[Py<PyAny>; 2]>> {
    let inputs = concrete(operands).or_raise()?;
    let trace = Trace::new();
    let parameters: Vec<Expr> = inputs
        .iter()
        .map(|tensor| trace.parameter(tensor.data().ty()))
        .collect::<Result<_, _>>()
        .or_raise()?;
    let ids: Ids = parameters.iter().map(Expr::id).collect();
    source::mark(py, &trace)?;
    let mut vectors = Vectors::NONE;
    let outputs = trace
        .build(|graph| build_entries(graph, operands, &ids, build, &mut vectors))
        .or_raise()?;
    let outputs: Vec<Expr> = outputs.into_iter().map(|id| Expr::new(trace.clone(), id)).collect();
    let program = Arc::new(trace.finish(&outputs).or_raise()?);
    let results = interruptible(py, |interrupt| run_at_once(&program, &inputs, interrupt))?;
    if debug::is_on() {
        let inputs: SmallVec<[&Tensor; 4]> = inputs.iter().map(Tensor::data).collect();
        debug::check_results(py, "operation", &program, &inputs, &results)?;
    }
    let results = results.into_iter().map(|data| data.with_vectors(vectors.clone()));
    results.map(|tensor| PyTensor::wrap(py, tensor)).collect()
}

fn run_at_once(
    program: &Arc<Program>,
    inputs: &[Tensor],
    interrupt: &Interrupt<'_>,
) -> Result<Vec<Tensor>, Error> {
    let on_device = inputs.iter().any(|tensor| tensor.device().is_some());
    let mut options = default_options();
    if on_device && options.compiler.as_deref().is_none_or(|name| name == "evaluator") {
        // Data on a device is computed on where it is.
        options = Options::new().compiler("xla");
    }
    let executable = compile_program_watched(program, &options, &[], Some(interrupt))?;
    let inputs: SmallVec<[&Tensor; 4]> = inputs.iter().map(Tensor::data).collect();
    let (hooks, interrupt) = (Some(&options.hooks), Some(interrupt));
    executable.run(&inputs, &RunContext { hooks, interrupt, ..RunContext::default() })
}

/// The operands as tensors, numbers with the dtype that they take next to the others.
fn concrete(operands: &[Value]) -> Result<SmallVec<[Tensor; 2]>, Error> {
    let next_to = operands.iter().rev().find_map(|operand| match operand {
        Value::Tensor(tensor) => Some(tensor.dtype()),
        Value::Expr(_) | Value::Number(_) => None,
    });
    operands
        .iter()
        .map(|operand| match operand {
            Value::Tensor(tensor) => Ok(tensor.clone()),
            Value::Number(number) => number_tensor(*number, next_to),
            Value::Expr(_) => unreachable!("an expression has a trace"),
        })
        .collect()
}

/// A number as a tensor next to a dtype, or on its own.
pub(crate) fn number_tensor(number: Number, next_to: Option<nxla::DType>) -> Result<Tensor, Error> {
    let refused = |error: nxla::host::NumberError| Error::Arguments {
        function: "number".into(),
        why: error.to_string(),
    };
    let dtype = match next_to {
        Some(other) => weak_dtype(number, other).map_err(refused)?,
        None => number.default_dtype().map_err(refused)?,
    };
    Ok(Tensor::scalar(number.to_scalar().map_err(refused)?, dtype))
}
