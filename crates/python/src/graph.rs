//! Splitting expressions into stages, and running them.

use std::sync::Arc;

use nxla_runtime::graph::{ExprId, Program};
use nxla_runtime::split::{Decision, Stage, StageGraph, ValueSource, try_split_with};
use nxla_runtime::{Error, RawTensor, StageRunner, default_options, describe_lines, run_program};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use crate::debug;
use crate::errors::{OrRaise, argument_error, exception, user_error};
use crate::expected::{Expected, Pickled};
use crate::function::Borrowings;
use crate::interrupt::interruptible;
use crate::node::PyNode;
use crate::notes::refuse_host_notes;
use crate::ops::args::{Count, Integer, list_position};
use crate::ops::declare::Converted;
use crate::options::{options_from, to_dict};
use crate::policy::{PyTimeline, policy_from, simulate};
use crate::program::{Parts, PyExpression, ROOT, Results, Unpickled};
use crate::tensor::{PyTensor, bytes_object};

/// One stage of a split expression.
#[pyclass(name = "Stage", module = "nxla", frozen)]
struct PyStage {
    stage: Stage,
    /// The graph of the stage; `None` for a stage that was read from bytes.
    graph: Option<Py<PyStageGraph>>,
}

impl PyStage {
    fn of(stage: &Stage, graph: &Bound<'_, PyStageGraph>) -> Self {
        Self { stage: stage.clone(), graph: Some(graph.clone().unbind()) }
    }

    /// Returns the outputs of the function of `graph`, if they are exactly the outputs of this stage.
    fn outputs_of_all(&self, graph: &StageGraph) -> Option<Vec<ExprId>> {
        let own = self.stage.program.outputs();
        let position =
            |source: &ValueSource| (source.stage == Some(self.stage.id)).then_some(source.index);
        let positions: Vec<usize> = graph.outputs().iter().map(position).collect::<Option<_>>()?;
        let is_used = |index| positions.contains(&index);
        (0..own.len()).all(is_used).then(|| positions.iter().map(|&at| own[at]).collect())
    }
}

#[pymethods]
impl PyStage {
    /// The index; stages are listed in execution order.
    #[getter]
    fn id(&self) -> usize {
        self.stage.id.index()
    }

    /// The name: the mark at which it ends, or the pass of a training step.
    #[getter]
    fn name(&self) -> Option<String> {
        self.stage.name.as_deref().map(str::to_owned)
    }

    /// The expression of the stage. Its result is a tuple of the outputs, or the container of the
    /// whole function if the stage computes all outputs of the function.
    #[getter]
    fn expr(&self) -> PyResult<PyExpression> {
        let program = &self.stage.program;
        let Some((graph, outputs)) = self.graph.as_ref().and_then(|graph| {
            let graph = graph.get();
            Some((graph, self.outputs_of_all(&graph.graph)?))
        }) else {
            return Ok(PyExpression::of_program(program.clone()));
        };
        // The function may return an output of the stage twice, or in another order.
        let whole = if outputs == program.outputs() {
            program.clone()
        } else {
            let inputs = program.inputs().to_vec();
            Arc::new(Program::new(program.graph(), inputs, &outputs).or_raise()?)
        };
        let mut expression = PyExpression::of_program(whole);
        expression.results = graph.results.clone();
        Ok(expression)
    }

    /// The source of each argument: ``(None, k)`` is input ``k`` of the whole program, ``(s, k)``
    /// is output ``k`` of stage ``s``.
    #[getter]
    fn arguments(&self) -> Vec<(Option<usize>, usize)> {
        let sources = self.stage.arguments.iter();
        sources.map(|source| (source.stage.map(|stage| stage.index()), source.index)).collect()
    }

    /// The stages that must have run before.
    #[getter]
    fn dependencies(&self) -> Vec<usize> {
        self.stage.dependencies().iter().map(|stage| stage.index()).collect()
    }

    /// The digest of its program.
    #[getter]
    fn digest(&self) -> String {
        self.stage.digest().to_string()
    }

    /// The source lines of the stage at the end of its name in an error, as in ``, from model.py:3``.
    #[getter]
    fn _from_lines(&self) -> String {
        describe_lines(&self.stage.program)
    }

    /// Return the serialized stage; see ``from_bytes``.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        refuse_host_notes("to_bytes", &self.stage.program)?;
        bytes_object(py, &self.stage.to_bytes())
    }

    /// Read a stage from its bytes.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: Converted<Bound<'_, PyBytes>>) -> PyResult<Self> {
        let bytes = bytes.or_name(py, "from_bytes", "bytes", "bytes")?;
        Ok(Self { stage: Stage::from_bytes(bytes.as_bytes()).or_raise()?, graph: None })
    }

    /// Run the stage alone with one tensor for each argument, and return a list.
    #[pyo3(signature = (*args, **options))]
    fn run(
        &self,
        py: Python<'_>,
        args: &Bound<'_, PyTuple>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Vec<Py<PyAny>>> {
        let program = &self.stage.program;
        // A misspelled name is reported as such, not as a missing argument.
        let options = options_from(options)?.0.over(&default_options());
        let inputs = Expected::of_program(program).leaves(py, "stage", args, Some(program))?;
        let inputs: Borrowings<'_> = inputs.iter().collect();
        let results = interruptible(py, |interrupt| {
            run_program("stage", program, &options, &inputs, Some(interrupt))
        })?;
        debug::check_program(py, "stage", program, &inputs, &results)?;
        results.into_iter().map(|tensor| PyTensor::wrap(py, tensor)).collect()
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        refuse_functions(&slf.get().stage)?;
        let bytes = slf.get().to_bytes(slf.py())?;
        Ok((slf.get_type().getattr("from_bytes")?, (bytes,)))
    }

    fn __repr__(&self) -> String {
        let stage = &self.stage;
        let name = stage.name.as_deref().map(|name| format!(" ({name})")).unwrap_or_default();
        format!(
            "<stage {}{name} of {} nodes, {} arguments, {} outputs>",
            stage.id.index(),
            stage.program.graph().len(),
            stage.arguments.len(),
            stage.program.outputs().len()
        )
    }
}

/// A split expression: stages that pass values to each other.
#[pyclass(name = "StageGraph", module = "nxla", frozen, weakref)]
struct PyStageGraph {
    graph: StageGraph,
    results: Arc<Results>,
    captured: Vec<RawTensor>,
    expected: Arc<Expected>,
}

#[pymethods]
impl PyStageGraph {
    /// The stages, in execution order.
    #[getter]
    fn stages(slf: &Bound<'_, Self>) -> Vec<PyStage> {
        slf.get().graph.stages().iter().map(|stage| PyStage::of(stage, slf)).collect()
    }

    /// The graph of a list of stages, which must be all stages of one graph, in any order.
    #[staticmethod]
    fn _of_stages(py: Python<'_>, stages: Vec<Bound<'_, PyStage>>) -> PyResult<Py<Self>> {
        let refused = |why: String| Err(argument_error("run: stages", why));
        let mut found: Option<&Py<Self>> = None;
        let mut ids = Vec::new();
        for (position, stage) in stages.iter().map(Bound::get).enumerate() {
            let Some(graph) = &stage.graph else {
                return refused(format!(
                    "must be stages of one graph; item {position} was read from bytes, which do \
                     not contain its graph (pickle the StageGraph instead)"
                ));
            };
            if found.is_some_and(|found| !found.is(graph)) {
                return refused(format!(
                    "must be stages of one graph; item {position} belongs to another graph"
                ));
            }
            found = Some(graph);
            ids.push(stage.stage.id.index());
        }
        let Some(graph) = found else {
            return refused("must have at least one stage; got an empty list".into());
        };
        let count = graph.get().graph.stages().len();
        if let Some(missing) = (0..count).find(|id| !ids.contains(id)) {
            return refused(format!(
                "must be all {count} stages of the graph; stage {missing} is missing"
            ));
        }
        if ids.len() > count {
            return refused(format!("must be all {count} stages once; got {} items", ids.len()));
        }
        Ok(graph.clone_ref(py))
    }

    /// Groups of stages that can run at the same time.
    #[getter]
    fn levels(&self) -> Vec<Vec<usize>> {
        let levels = self.graph.levels().into_iter();
        levels.map(|level| level.iter().map(|stage| stage.index()).collect()).collect()
    }

    /// The source of each result, as in ``Stage.arguments``.
    #[getter]
    fn outputs(&self) -> Vec<(Option<usize>, usize)> {
        let sources = self.graph.outputs().iter();
        sources.map(|source| (source.stage.map(|stage| stage.index()), source.index)).collect()
    }

    fn __len__(&self) -> usize {
        self.graph.stages().len()
    }

    /// The stage at an index; negative indices count from the end.
    fn __getitem__(slf: &Bound<'_, Self>, index: Converted<Integer>) -> PyResult<PyStage> {
        let Integer(index) = index.or_name(slf.py(), "stages", "index", "int")?;
        let stages = slf.get().graph.stages();
        let count = stages.len();
        match list_position(index, count) {
            Some(position) => Ok(PyStage::of(&stages[position], slf)),
            None => Err(PyIndexError::new_err(format!(
                "stages: index: must be below {count}, the number of stages; got {index}"
            ))),
        }
    }

    /// Run all stages in this process; arguments as for the traced function, or one tensor for
    /// each input.
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
        let (options, _) = options_from(options.as_ref())?;
        let inputs = self.inputs("run", &args)?;
        let stages = StageRunner::new(self.graph.clone(), &options);
        // The checks compute the results again; without them, inputs are freed after their last use.
        let kept = debug::is_on().then(|| inputs.clone());
        let results =
            interruptible(py, |interrupt| stages.run_leaves(inputs, None, Some(interrupt)))?;
        self.wrap(py, kept, results)
    }

    /// The arguments by position, and the keywords that are options.
    fn _bind<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        options: &Bound<'py, PyDict>,
    ) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
        let (args, rest) = self.expected.bind("run", args, Some(options))?;
        Ok((args, rest.unwrap_or_else(|| PyDict::new(options.py()))))
    }

    /// The rank of each stage in the best order for several workers.
    fn _ranks(&self) -> Vec<usize> {
        self.graph.ranks().to_vec()
    }

    /// The tensors of arguments; the tensors of ``_captured`` follow as further inputs.
    fn _leaves(&self, py: Python<'_>, args: &Bound<'_, PyTuple>) -> PyResult<Vec<Py<PyAny>>> {
        let leaves = self.expected.leaves(py, "run", args, None)?;
        leaves.into_iter().map(|tensor| PyTensor::wrap(py, tensor)).collect()
    }

    /// The large captured tensors.
    fn _captured(&self, py: Python<'_>) -> PyResult<Vec<Py<PyAny>>> {
        self.captured.iter().map(|tensor| PyTensor::wrap(py, tensor.clone())).collect()
    }

    /// The results of a run, from the tensors of all outputs. With the tensors of all inputs, an
    /// error of `nx.debug_nans` names the operation.
    #[pyo3(signature = (results, inputs=None))]
    fn _wrap(
        &self,
        py: Python<'_>,
        results: Vec<PyRef<'_, PyTensor>>,
        inputs: Option<Vec<PyRef<'_, PyTensor>>>,
    ) -> PyResult<Py<PyAny>> {
        let tensors = |list: Vec<PyRef<'_, PyTensor>>| -> Vec<RawTensor> {
            list.iter().map(|tensor| tensor.tensor()).collect()
        };
        self.wrap(py, inputs.map(tensors), tensors(results))
    }

    /// The options of a run, and for each stage whether it calls host functions under them; such a
    /// stage runs in the process.
    #[pyo3(signature = (options=None))]
    fn _in_force<'py>(
        &self,
        py: Python<'py>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<(Bound<'py, PyDict>, Vec<bool>)> {
        let stages = StageRunner::new(self.graph.clone(), &options_from(options)?.0);
        Ok((to_dict(py, stages.options())?, stages.calls_functions()))
    }

    /// Return a table of the stages.
    ///
    /// Returns
    /// -------
    /// str
    ///     The operations, floating-point operations, inputs and outputs with their bytes, and peak
    ///     memory of each stage, and the stages with the program of an earlier stage; then the
    ///     estimated time, and the speedup with several workers.
    fn explain(&self) -> String {
        self.graph.explain()
    }

    /// Return the run time of each stage.
    ///
    /// Stages run one after another on the device of the arguments.
    ///
    /// Parameters
    /// ----------
    /// *args
    ///     The arguments, as for ``run``.
    /// repeat : int
    ///     The number of runs.
    /// **options
    ///     Keyword arguments of the traced function and options, as for ``run``.
    ///
    /// Returns
    /// -------
    /// list of float
    ///     The shortest time of each stage in seconds.
    #[pyo3(
        signature = (*args, repeat=Converted::of(Count(3)), **options),
        text_signature = "($self, *args, repeat=3, **options)"
    )]
    fn measure(
        &self,
        py: Python<'_>,
        args: &Bound<'_, PyTuple>,
        repeat: Converted<Count>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Vec<f64>> {
        let Count(repeat) = repeat.value(py, "measure", "repeat")?;
        let (args, options) = self.expected.bind("measure", args, options)?;
        let (options, _) = options_from(options.as_ref())?;
        let inputs = self.inputs("measure", &args)?;
        let stages = StageRunner::new(self.graph.clone(), &options);
        let seconds =
            interruptible(py, |interrupt| stages.measure(&inputs, repeat, Some(interrupt)))?;
        Ok(seconds.into_iter().map(|time| time.as_secs_f64()).collect())
    }

    /// Simulate the stages on equal workers that run one stage at a time.
    ///
    /// Parameters
    /// ----------
    /// workers : int
    ///     The number of workers.
    /// bandwidth : float
    ///     The bytes per second that move between two workers. Inputs are available everywhere.
    /// latency : float
    ///     The seconds before a value moves.
    /// seconds : sequence of float, optional
    ///     The time of each stage, as ``measure`` returns it; by default times are estimated.
    ///
    /// Returns
    /// -------
    /// Timeline
    ///     The schedule.
    ///
    /// Raises
    /// ------
    /// ArgumentError
    ///     If `workers` or `bandwidth` is not positive, `latency` is negative, or `seconds` does
    ///     not have a valid entry for each stage.
    #[pyo3(
        signature = (
            workers, *, bandwidth=Converted::of(1e9), latency=Converted::of(1e-4), seconds=None
        ),
        text_signature = "($self, workers, *, bandwidth=1e9, latency=1e-4, seconds=None)"
    )]
    fn simulate(
        &self,
        py: Python<'_>,
        workers: Converted<Count>,
        bandwidth: Converted<f64>,
        latency: Converted<f64>,
        seconds: Option<Converted<Vec<f64>>>,
    ) -> PyResult<PyTimeline> {
        let name = "simulate";
        let Count(workers) = workers.value(py, name, "workers")?;
        let moves = (bandwidth.value(py, name, "bandwidth")?, latency.value(py, name, "latency")?);
        let seconds = seconds.map(|seconds| seconds.value(py, name, "seconds")).transpose()?;
        simulate(&self.graph, workers, moves, seconds)
    }

    /// The state of a pickle: the bytes, the container of the results, the structure of the
    /// arguments, and large tensors.
    fn _parts<'py>(&self, py: Python<'py>) -> PyResult<Parts<'py>> {
        self.graph.stages().iter().try_for_each(refuse_functions)?;
        for stage in self.graph.stages() {
            refuse_host_notes("pickle", &stage.program)?;
        }
        let bytes = bytes_object(py, &self.graph.to_bytes())?;
        Ok((
            bytes,
            self.results.to_pickled(py)?,
            self.expected.to_pickled(py)?,
            self._captured(py)?,
        ))
    }

    /// Rebuilds a graph of stages from the state of a pickle.
    #[staticmethod]
    fn _from_parts(
        py: Python<'_>,
        bytes: &[u8],
        results: &Bound<'_, PyAny>,
        expected: Pickled,
        captured: Vec<PyRef<'_, PyTensor>>,
    ) -> PyResult<Self> {
        let graph = StageGraph::from_bytes(bytes).or_raise()?;
        let containers = Unpickled::new(py, results, expected, &captured)?;
        containers.check(graph.inputs().len(), graph.outputs().len(), "the stages")?;
        let Unpickled { results, expected, captured } = containers;
        Ok(Self { graph, results, captured, expected })
    }

    /// Return a drawing of the stages as SVG.
    fn to_svg(&self) -> String {
        self.graph.to_svg()
    }

    fn _repr_svg_(&self) -> String {
        self.graph.to_svg()
    }

    fn __repr__(&self) -> String {
        format!("<{} stages>", self.graph.stages().len())
    }
}

impl PyStageGraph {
    /// The stages of an expression.
    fn of(graph: StageGraph, expression: &PyExpression) -> Self {
        let PyExpression { results, captured, expected, .. } = expression;
        Self {
            graph,
            results: results.clone(),
            captured: captured.clone(),
            expected: expected.clone(),
        }
    }

    /// The results of a run in their container, checked if the thread checks results.
    fn wrap(
        &self,
        py: Python<'_>,
        inputs: Option<Vec<RawTensor>>,
        results: Vec<RawTensor>,
    ) -> PyResult<Py<PyAny>> {
        match inputs {
            Some(inputs) => debug::check_stages(py, "run", &self.graph, &inputs, &results)?,
            None => debug::check_tensors(py, "run", &results)?,
        }
        self.results.wrap(py, results)
    }

    /// The tensors of all inputs.
    fn inputs(&self, function: &str, args: &Bound<'_, PyTuple>) -> PyResult<Vec<RawTensor>> {
        let mut inputs = self.expected.leaves(args.py(), function, args, None)?.into_vec();
        inputs.extend(self.captured.iter().cloned());
        Ok(inputs)
    }
}

/// Rejects serialization of host functions.
fn refuse_functions(stage: &Stage) -> PyResult<()> {
    if stage.program.detach_hooks(&|_| false).functions.is_empty() {
        return Ok(());
    }
    let why = format!(
        "{}: must not contain hooks or runtime calls with functions, which cannot leave the \
         process; run it here by graph.run, or omit the functions by to_bytes",
        stage.id
    );
    Err(argument_error("pickle", why))
}

/// Reads the decision of a split callback.
fn decision(answer: &Bound<'_, PyAny>) -> PyResult<Decision> {
    let text: Option<String> =
        if answer.is_none() { Some("none".into()) } else { answer.extract().ok() };
    match text.as_deref() {
        Some("before") => Ok(Decision::Before),
        Some("after") => Ok(Decision::After),
        Some("both") => Ok(Decision::Both),
        Some("none") => Ok(Decision::None),
        _ => Err(argument_error(
            "split",
            format!(
                "decide: must return \"before\", \"after\", \"both\" or \"none\"; got {}",
                answer.repr()?
            ),
        )),
    }
}

/// Splits an expression by a policy, or by the name of one.
#[pyfunction]
fn split_by(
    py: Python<'_>,
    expression: &Bound<'_, PyExpression>,
    policy: &Bound<'_, PyAny>,
) -> PyResult<PyStageGraph> {
    let (expression, policy) = (expression.get(), policy_from("split: decide", policy)?);
    let graph = py.detach(|| policy.split(&expression.program)).or_raise()?;
    Ok(PyStageGraph::of(graph, expression))
}

/// Splits an expression by ``decide(node)``. With ``state``, ``decide(node, state)`` returns
/// ``(decision, state)``, and the final state is returned too.
#[pyfunction]
#[pyo3(signature = (expression, decide, state=None))]
fn split(
    expression: &Bound<'_, PyExpression>,
    decide: &Bound<'_, PyAny>,
    state: Option<Bound<'_, PyAny>>,
) -> PyResult<(PyStageGraph, Option<Py<PyAny>>)> {
    let expression = expression.get();
    let program = &expression.program;
    let ask = |id: ExprId, state: Option<Py<PyAny>>| -> PyResult<(Decision, Option<Py<PyAny>>)> {
        let node = PyNode { program: program.clone(), id, context: ROOT };
        match state {
            None => Ok((decision(&decide.call1((node,))?)?, None)),
            Some(state) => {
                let answer = decide.call1((node, state))?;
                let pair: (Bound<'_, PyAny>, Bound<'_, PyAny>) =
                    answer.extract().map_err(|_| {
                        argument_error(
                            "split",
                            "decide: must return (decision, state) if a state is passed",
                        )
                    })?;
                Ok((decision(&pair.0)?, Some(pair.1.unbind())))
            }
        }
    };
    let split = try_split_with(program, state.map(Bound::unbind), |node, state| {
        ask(node.id, state).map_err(user_error)
    });
    let (graph, state) = split.map_err(|error: Error| exception(error))?;
    Ok((PyStageGraph::of(graph, expression), state))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyStage>()?;
    module.add_class::<PyStageGraph>()?;
    module.add_function(wrap_pyfunction!(split_by, module)?)?;
    module.add_function(wrap_pyfunction!(split, module)?)
}
