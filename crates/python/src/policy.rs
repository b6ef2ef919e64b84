//! Split policies, and the results of simulations.

use nxla_runtime::split::{Cluster, Policy, Speed, StageGraph, Timeline};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use crate::errors::argument_error;
use crate::ops::args::Count;
use crate::ops::declare::Converted;

/// A rule that splits a program into stages.
///
/// It is an argument of ``nx.graph.split`` and a value of the option ``stages`` of ``nx.jit``.
///
/// Examples
/// --------
/// >>> import nxla as nx
/// >>> expression = nx.debug_expr(lambda x: nx.exp(nx.sin(x)))(1.0)
/// >>> [stage.expr.op_counts() for stage in nx.graph.split(expression, nx.graph.Policy.every_ops(1))]
/// [{'parameter': 1, 'sin': 1}, {'exp': 1, 'parameter': 1}]
#[pyclass(name = "Policy", module = "nxla.graph", frozen, eq, hash)]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct PyPolicy(pub(crate) Policy);

#[pymethods]
impl PyPolicy {
    /// Return a policy of stages with ``count`` operations; the last stage may have fewer.
    #[staticmethod]
    fn every_ops(py: Python<'_>, count: Converted<Count>) -> PyResult<Self> {
        positive(py, "every_ops", "count", count).map(|count| Self(Policy::EveryOps(count)))
    }

    /// Return a policy of stages with at most ``count`` operations, cut where few bytes cross.
    #[staticmethod]
    fn at_most_ops(py: Python<'_>, count: Converted<Count>) -> PyResult<Self> {
        positive(py, "at_most_ops", "count", count).map(|count| Self(Policy::AtMostOps(count)))
    }

    /// Return a policy of ``count`` stages with about the same estimated time, cut where few bytes
    /// cross.
    #[staticmethod]
    fn balanced(py: Python<'_>, count: Converted<Count>) -> PyResult<Self> {
        positive(py, "balanced", "count", count).map(|count| Self(Policy::Balanced(count)))
    }

    /// Return a policy of stages that need at most this memory in bytes, with inputs and outputs.
    #[staticmethod]
    fn memory(py: Python<'_>, bytes: Converted<Count>) -> PyResult<Self> {
        positive(py, "memory", "bytes", bytes).map(|bytes| Self(Policy::Memory(bytes as u64)))
    }

    /// Return a policy that ends a stage at each value with one of these marks, or at every mark if
    /// the names are omitted.
    #[staticmethod]
    #[pyo3(signature = (*names))]
    fn marks(names: &Bound<'_, PyTuple>) -> PyResult<Self> {
        let name = |name: Bound<'_, PyAny>| {
            name.extract::<Converted<String>>()?.value(name.py(), "marks", "names")
        };
        Ok(Self(Policy::Marks(names.iter().map(name).collect::<PyResult<_>>()?)))
    }

    /// Return a policy of one stage for each repeated part of the program, the layers of a model.
    /// Equal layers are compiled once.
    #[staticmethod]
    fn layers() -> Self {
        Self(Policy::Layers)
    }

    /// Return a policy of the forward pass, the backward pass and the update of a training step.
    #[staticmethod]
    fn training() -> Self {
        Self(Policy::Training)
    }

    /// Return a policy of one stage for a program that compiles quickly, and of layers, or stages
    /// of a few hundred operations, for a larger one.
    #[staticmethod]
    fn auto() -> Self {
        Self(Policy::Auto)
    }

    fn __repr__(&self) -> String {
        format!("Policy.{}", self.0)
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let py = slf.py();
        let (name, arguments) = match &slf.get().0 {
            Policy::EveryOps(count) => ("every_ops", PyTuple::new(py, [count])?),
            Policy::AtMostOps(count) => ("at_most_ops", PyTuple::new(py, [count])?),
            Policy::Balanced(count) => ("balanced", PyTuple::new(py, [count])?),
            Policy::Memory(bytes) => ("memory", PyTuple::new(py, [bytes])?),
            Policy::Marks(names) => ("marks", PyTuple::new(py, names)?),
            Policy::Layers => ("layers", PyTuple::empty(py)),
            Policy::Training => ("training", PyTuple::empty(py)),
            Policy::Auto => ("auto", PyTuple::empty(py)),
        };
        Ok((slf.get_type().getattr(name)?, arguments))
    }
}

/// The number of a policy.
fn positive(
    py: Python<'_>,
    function: &str,
    argument: &str,
    number: Converted<Count>,
) -> PyResult<usize> {
    match number.value(py, function, argument)?.0 {
        0 => Err(argument_error(function, format!("{argument}: must be positive; got 0"))),
        number => Ok(number),
    }
}

/// A policy, passed as an object or by the name of a policy without numbers. Errors start with
/// `subject`, the function or the option.
pub(crate) fn policy_from(subject: &str, value: &Bound<'_, PyAny>) -> PyResult<Policy> {
    if let Ok(policy) = value.cast::<PyPolicy>() {
        return Ok(policy.get().0.clone());
    }
    let name = value.cast::<PyString>().ok().map(|name| name.to_string());
    match name.as_deref() {
        Some("layers") => Ok(Policy::Layers),
        Some("training") => Ok(Policy::Training),
        Some("marks") => Ok(Policy::Marks(Vec::new())),
        Some("auto") => Ok(Policy::Auto),
        _ => Err(argument_error(
            subject,
            format!(
                "must be a Policy, \"layers\", \"training\", \"marks\" or \"auto\"; got {}",
                value.repr()?
            ),
        )),
    }
}

/// The schedule of a simulation. ``str()`` draws it as a chart.
#[pyclass(name = "Timeline", module = "nxla.graph", frozen)]
pub(crate) struct PyTimeline(Timeline);

#[pymethods]
impl PyTimeline {
    /// The end of the last stage, in seconds.
    #[getter]
    fn makespan(&self) -> f64 {
        self.0.makespan
    }

    /// For each stage: the stage, its worker, its start and end in seconds, and the bytes that it
    /// receives from other workers.
    #[getter]
    fn runs(&self) -> Vec<(usize, usize, f64, f64, u64)> {
        let runs = self.0.runs.iter();
        runs.map(|run| (run.stage.index(), run.worker, run.start, run.end, run.received)).collect()
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("<{} stages in {:.3e} s>", self.0.runs.len(), self.0.makespan)
    }
}

/// Simulates the stages on equal workers. Without ``seconds``, times are estimated.
pub(crate) fn simulate(
    graph: &StageGraph,
    workers: usize,
    (bandwidth, latency): (f64, f64),
    seconds: Option<Vec<f64>>,
) -> PyResult<PyTimeline> {
    let refuse = |why: String| Err(argument_error("simulate", why));
    if workers == 0 {
        return refuse("workers: must be at least 1; got 0".into());
    }
    // The negated form also rejects NaN.
    if !(bandwidth > 0.0 && latency >= 0.0) {
        let why = format!(
            "bandwidth, latency: bandwidth must be positive and latency must not be negative; \
             got {bandwidth} and {latency}"
        );
        return refuse(why);
    }
    let seconds = seconds.unwrap_or_else(|| graph.seconds(&Speed::default()));
    let expected = graph.stages().len();
    if seconds.len() != expected {
        return refuse(format!(
            "seconds: must be {expected}, one for each stage; got {}",
            seconds.len()
        ));
    }
    if let Some(wrong) = seconds.iter().find(|time| !(time.is_finite() && **time >= 0.0)) {
        return refuse(format!("seconds: must be finite and not negative; got {wrong}"));
    }
    Ok(PyTimeline(graph.simulate(&Cluster { workers, bandwidth, latency }, &seconds)))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyPolicy>()?;
    module.add_class::<PyTimeline>()
}
