//! Applying an operation to operands: in their trace, or eagerly.
//!
//! Every function of the module is one call of [`apply`] with its public name and a builder. If an
//! operand is traced, or the current thread is tracing, the builder adds nodes to the trace.
//! Otherwise the operation runs eagerly, see [`EagerOp`]. An error of any operation that the builder
//! adds names the function.

use nxla_runtime::graph::{ExprId, Graph, Op};
use nxla_runtime::host::DType;
use nxla_runtime::{
    Build, CapturedOperands, EagerOp, Error, RawExpr, RawTensor, Trace, VectorAxes, build_entries,
    called_once, trace_of,
};
use pyo3::prelude::*;
use smallvec::SmallVec;

use crate::debug;
use crate::errors::OrRaise;
use crate::expr::PyExpr;
use crate::interrupt::interruptible;
use crate::names::{op_name, public_name};
use crate::source;
use crate::tensor::PyTensor;
use crate::value::Value;

pub(crate) use nxla_runtime::{Ids, number_tensor};

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

/// Applies `build` to operands and returns its single result.
pub(crate) fn apply(
    py: Python<'_>,
    function: &str,
    operands: &[Value],
    build: impl FnOnce(&mut Graph, &[ExprId]) -> Built,
) -> PyResult<Py<PyAny>> {
    let mut results = apply_all(py, function, operands, &mut called_once(build))?;
    Ok(results.pop().expect("the builder returns one result"))
}

/// Applies one op of the table to operands.
pub(crate) fn apply_op(py: Python<'_>, operands: &[Value], op: &Op) -> PyResult<Py<PyAny>> {
    let mut results = match trace_of(operands).or_raise()?.or_else(Trace::current) {
        Some(trace) => {
            let mut build = |graph: &mut Graph, ids: &[ExprId]| one(graph.make(op.clone(), ids));
            // The error names the op.
            build_in_trace(py, &trace, operands, &mut build, std::convert::identity)
        }
        None => {
            let operation = EagerOp::of(op, operands, source::here).or_raise()?;
            run(py, || public_name(op.name()), &operation)
        }
    }?;
    Ok(results.pop().expect("an op returns one result"))
}

/// Applies `build` to operands and returns all its results.
pub(crate) fn apply_all(
    py: Python<'_>,
    function: &str,
    operands: &[Value],
    build: &mut Build<'_>,
) -> PyResult<SmallVec<[Py<PyAny>; 2]>> {
    match trace_of(operands).or_raise()?.or_else(Trace::current) {
        Some(trace) => build_in_trace(py, &trace, operands, build, |error| {
            error.in_function(op_name(function))
        }),
        None => run_eagerly(py, function, operands, build),
    }
}

/// Applies `build` to operands and returns all its results as a list.
pub(crate) fn apply_parts(
    py: Python<'_>,
    function: &str,
    operands: &[Value],
    build: impl FnOnce(&mut Graph, &[ExprId]) -> Built,
) -> PyResult<Vec<Py<PyAny>>> {
    apply_all(py, function, operands, &mut called_once(build)).map(SmallVec::into_vec)
}

/// A tensor as a value of the trace. Reading it from a device releases the interpreter lock.
pub(crate) fn capture(py: Python<'_>, trace: &Trace, tensor: &RawTensor) -> PyResult<RawExpr> {
    py.detach(|| trace.capture(tensor)).or_raise()
}

fn build_in_trace(
    py: Python<'_>,
    trace: &Trace,
    operands: &[Value],
    build: &mut Build<'_>,
    name_error: impl Fn(Error) -> Error,
) -> PyResult<SmallVec<[Py<PyAny>; 2]>> {
    let place = source::place(py)?;
    let has_data = operands.iter().any(|operand| matches!(operand, Value::Tensor(_)));
    let mut captured = CapturedOperands::default();
    if has_data {
        source::mark(py, trace)?;
        // The tensor may be read from a device.
        captured = py.detach(|| CapturedOperands::of(trace, operands)).or_raise()?;
    }
    let mut vectors = VectorAxes::NONE;
    let ids = trace
        .build(|graph| {
            source::enter(graph, trace, place.as_ref());
            let nodes = captured.nodes(graph, trace, operands)?;
            build_entries(graph, Some(trace), (operands, &nodes), build, &mut vectors)
                .map_err(&name_error)
        })
        .or_raise()?;
    let expr = |id| RawExpr::with_vectors(trace.clone(), id, vectors.clone());
    ids.into_iter().map(|id| PyExpr::wrap(py, expr(id))).collect()
}

/// Applies `build` to data as a separate program, also during a trace.
pub(crate) fn run_eagerly(
    py: Python<'_>,
    function: &str,
    operands: &[Value],
    build: &mut Build<'_>,
) -> PyResult<SmallVec<[Py<PyAny>; 2]>> {
    let operation = EagerOp::new(operands, source::here, build)
        .map_err(|error| error.in_function(op_name(function)));
    run(py, || function, &operation.or_raise()?)
}

/// The data in another dtype, on its device.
pub(crate) fn in_dtype(py: Python<'_>, data: &RawTensor, dtype: DType) -> PyResult<Py<PyAny>> {
    let operands = [Value::Tensor(data.clone())];
    let made =
        run_eagerly(py, "astype", &operands, &mut |graph, ids| one(graph.as_type(ids[0], dtype)))?;
    Ok(made.into_iter().next().expect("the builder returns one result"))
}

/// Runs an operation; `function` returns the name for errors.
fn run<'n>(
    py: Python<'_>,
    function: impl Fn() -> &'n str + Sync,
    operation: &EagerOp,
) -> PyResult<SmallVec<[Py<PyAny>; 2]>> {
    let results = interruptible(py, |interrupt| {
        operation
            .run(&function, Some(interrupt))
            .map_err(|error| error.at_line(source::line_at_present))
    })?;
    if debug::is_on() {
        let (program, inputs) = (operation.program(), operation.inputs());
        debug::check_results(py, function(), program, &inputs, &results)?;
    }
    results.into_iter().map(|tensor| PyTensor::wrap(py, tensor)).collect()
}
