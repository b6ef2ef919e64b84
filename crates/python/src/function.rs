//! Jitted functions.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Instant;

use nxla_runtime::eval::Interrupt;
use nxla_runtime::graph::Line;
use nxla_runtime::{
    CallMode, Conflict, Donations, Explanation, FunctionReport, Inputs, LITERAL_LIMIT_BYTES,
    Options, Program, Purpose, RawExpr, RawTensor, Trace, Tracing, covers_leaf, unusable_donations,
};
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};
use smallvec::SmallVec;

use crate::apply::capture;
use crate::call::{Argument, Call, Key, Statics};
use crate::callable::{self, OwnedFunctions};
use crate::compiled::PyCompiled;
use crate::compilers::with_own_jit;
use crate::containers::{Tree, flatten};
use crate::debug;
use crate::dtype::PyDType;
use crate::errors::{OrRaise, argument_error, kind_of};
use crate::expected::{Expected, names_of};
use crate::expr::PyExpr;
use crate::hooks::give_to;
use crate::interrupt::interruptible;
use crate::method::PyBoundFunction;
use crate::options::options_from;
use crate::program::PyExpression;
use crate::shutdown;
use crate::signature::{Arguments, StaticValue, is_leaf, is_sequence, refuse_changing};
use crate::source::{self, current_line};
use crate::tensor::PyTensor;
use crate::tracebacks;
use crate::value::{FromPython, Value};

/// A compiled function. ``nx.jit``, ``nx.compile`` and ``nx.defn`` return it.
#[pyclass(name = "Function", module = "nxla", frozen, dict, weakref)]
pub(crate) struct PyFunction {
    /// Always `Some` after construction. The interpreter first creates the dict of a new object, and
    /// garbage collection during this step sees the object with zeroed memory, which is `None`.
    state: Option<Box<State>>,
}

pub(crate) struct State {
    callable: Py<PyAny>,
    core: nxla_runtime::JitFunction<StaticValue, Tree>,
    statics: Statics,
    donated: Vec<Donated>,
    /// `Some(true)` checks that results are finite; `None` leaves the choice to the thread.
    debug_nans: Option<bool>,
    /// True if each call traces the function, because its closure may have changed. Equal programs are
    /// still compiled once.
    traces_anew: bool,
    /// A callable that is called before each compilation and may raise.
    observer: Option<Py<PyAny>>,
    /// The functions of hooks and runtime calls of its programs.
    owned: OwnedFunctions,
}

impl Drop for State {
    fn drop(&mut self) {
        // The drop may run finalizers of Python objects, on any thread.
        shutdown::prepare();
    }
}

impl Deref for PyFunction {
    type Target = State;

    fn deref(&self) -> &State {
        self.state.as_deref().expect("a function that is called has been made")
    }
}

/// A donated argument, or a donated part of an argument: results may reuse its memory.
struct Donated {
    /// The position of the argument, unless it is keyword-only.
    position: Option<usize>,
    /// The name of the argument; empty if it has no name.
    name: String,
    /// The path of the part, such as `.mean[0]`; empty for the whole argument.
    path: String,
}

impl Donated {
    /// Returns whether the part belongs to an argument.
    fn is_in(&self, argument: &Key<'_>) -> bool {
        match argument {
            Key::Position(position) => self.position == Some(*position),
            Key::Name(name) => *name == *self.name,
        }
    }
}

/// The data of a call: required, or absent if templates replace tensors.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Data {
    Needed,
    Absent,
}

/// The cache entry of a signature, with results in Python containers.
pub(crate) type Entry = nxla_runtime::Entry<Tree>;

/// A finished trace.
pub(crate) type Traced = nxla_runtime::TracedFunction<Tree>;

/// Borrowed tensors of a call.
pub(crate) type Borrowings<'a> = SmallVec<[&'a RawTensor; 8]>;

/// Runs an entry on the tensors of its arguments.
pub(crate) fn run_entry(
    py: Python<'_>,
    name: &str,
    entry: &Entry,
    arguments: &[&RawTensor],
    options: &Options,
    check: Option<bool>,
) -> PyResult<Py<PyAny>> {
    // A later use of a donated argument raises an error that names this caller.
    let caller = entry.donates().then(|| match current_line(py) {
        Some(line) => format!("{name}, called at {line}"),
        None => name.to_owned(),
    });
    let run = |interrupt: &Interrupt<'_>| {
        entry.run(caller.as_deref(), arguments, options, Some(interrupt))
    };
    let results = interruptible(py, run)?;
    if check.unwrap_or_else(debug::is_on) {
        check_results(py, name, entry, arguments, &results)?;
    }
    wrap_results(py, entry.results(), results)
}

/// Raises if a result is not finite.
pub(crate) fn check_results(
    py: Python<'_>,
    name: &str,
    entry: &Entry,
    arguments: &[&RawTensor],
    results: &[RawTensor],
) -> PyResult<()> {
    debug::check_results(py, name, entry.program(), &entry.inputs(arguments), results)
}

/// Returns tensors in their container.
pub(crate) fn wrap_results(
    py: Python<'_>,
    tree: &Tree,
    results: Vec<RawTensor>,
) -> PyResult<Py<PyAny>> {
    tree.rebuild(py, &mut results.into_iter().map(|tensor| PyTensor::wrap(py, tensor)))
}

#[pymethods]
impl PyFunction {
    #[new]
    #[pyo3(signature = (callable, name, options=None, static_positions=vec![], static_names=vec![], donated=vec![], debug_nans=None, observer=None, traces_anew=false))]
    #[expect(clippy::too_many_arguments, reason = "they are keyword arguments in Python")]
    fn new(
        callable: Bound<'_, PyAny>,
        name: String,
        options: Option<&Bound<'_, PyDict>>,
        static_positions: Vec<usize>,
        static_names: Vec<String>,
        donated: Vec<(Option<usize>, String, String)>,
        debug_nans: Option<bool>,
        observer: Option<Py<PyAny>>,
        traces_anew: bool,
    ) -> PyResult<Self> {
        shutdown::prepare();
        let (options, conflict) = options_from(options)?;
        let statics = Statics::new(&callable, static_positions, static_names)?;
        let part = |(position, name, path)| Donated { position, name, path };
        let donated = donated.into_iter().map(part).collect();
        let owned = OwnedFunctions::default();
        give_to(&owned, options.hooks.values());
        let conflict = conflict.unwrap_or_else(|| Conflict::without_loss(&options));
        let core = nxla_runtime::JitFunction::new(name, options, conflict);
        let state = State {
            callable: callable.unbind(),
            core,
            statics,
            donated,
            debug_nans,
            traces_anew,
            observer,
            owned,
        };
        Ok(Self { state: Some(Box::new(state)) })
    }

    /// ``nx.Function[[nx.Tensor], nx.Tensor]`` is a type for annotations.
    #[classmethod]
    fn __class_getitem__<'py>(
        cls: &Bound<'py, PyType>,
        types: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        generic_alias(cls, types)
    }

    /// Visits the held objects for the garbage collector. `__clear__` is not needed: every cycle
    /// contains another mutable object, which can break the cycle.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let Some(state) = &self.state else { return Ok(()) };
        visit.call(&state.callable)?;
        visit.call(&state.observer)?;
        state.owned.traverse(&visit)?;
        let mut outcome = Ok(());
        state.core.visit_statics(|value| {
            if outcome.is_ok() {
                outcome = visit.call(value.object());
            }
        });
        outcome
    }

    /// The function that is traced.
    #[getter]
    fn callable(&self, py: Python<'_>) -> Py<PyAny> {
        self.callable.clone_ref(py)
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        Self::call_inner(slf, args, kwargs)
            .map_err(|error| tracebacks::without_package_frames(py, error))
    }

    fn __get__<'py>(
        slf: &Bound<'py, Self>,
        instance: &Bound<'py, PyAny>,
        _owner: Option<&Bound<'py, PyType>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if instance.is_none() {
            return Ok(slf.clone().into_any());
        }
        let method = PyBoundFunction::new(slf.clone().unbind(), instance.clone().unbind());
        Ok(Bound::new(slf.py(), method)?.into_any())
    }

    /// The name, and the backends of the next calls of its compiled programs.
    fn __repr__(&self) -> String {
        let mut backends = self.core.report().backends;
        backends.sort();
        backends.dedup();
        match &backends[..] {
            [] => format!("<nxla function {}>", self.core.name()),
            backends => {
                format!("<nxla function {} on {}>", self.core.name(), backends.join(" and "))
            }
        }
    }

    /// Trace and compile for these arguments without a run; tensors may be templates.
    #[pyo3(signature = (*args, **kwargs))]
    fn warm_up<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<()> {
        let options = self.core.options_in_force();
        let call = Call { args, kwargs };
        self.entry(py, call, &options, Data::Absent, Purpose::Jit).map(drop)
    }

    /// Trace the function for these arguments and return the expression.
    #[pyo3(signature = (*args, **kwargs))]
    fn debug_expr<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<PyExpression> {
        let call = Call { args, kwargs };
        let arguments = self.describe(call, Arguments::of_types().for_one_call())?;
        let _traced = callable::FunctionCollector::begin(false);
        let traced = self.trace(py, call, &arguments, &self.core.options_in_force())?;
        Ok(PyExpression::new(traced, Arc::new(self.expected_arguments(py, call)?)))
    }

    /// Trace the function for these arguments or templates, and return a ``Lowered`` object, which
    /// can be inspected, compiled and exported.
    #[pyo3(signature = (*args, **kwargs))]
    fn lower<'py>(
        slf: &Bound<'py, Self>,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let kwargs = kwargs.cloned().unwrap_or_else(|| PyDict::new(py));
        py.import("nxla.ahead")?.call_method1("lower", (slf, args, kwargs))
    }

    /// Returns for each leaf of these arguments whether it is donated.
    #[pyo3(signature = (*args, **kwargs))]
    fn _donated_leaves(
        &self,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Vec<bool>> {
        Ok(self.leaf_donations(Call { args, kwargs })?.marks)
    }

    /// Compile for the types of these arguments only; tensors may be templates.
    #[pyo3(signature = (*args))]
    fn compile<'py>(
        slf: &Bound<'py, Self>,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
    ) -> PyResult<PyCompiled> {
        let this = slf.get();
        let options = this.core.options_in_force();
        let call = Call { args, kwargs: None };
        let (entry, _) = this.entry(py, call, &options, Data::Absent, Purpose::Compile)?;
        let names = names_of(this.callable.bind(py), args.len())?;
        let expected = Expected::from_arguments(this.sign(call, Data::Absent)?, args, names)?;
        let (name, options) = (this.core.name().to_owned(), options.into_owned());
        let function = Some(slf.clone().unbind());
        Ok(PyCompiled { function, name, entry, options, expected, check: this.debug_nans })
    }

    /// Return the backend of the next call with these arguments, the reason, and the estimated
    /// time. The method compiles the function if necessary, and does not run it.
    #[pyo3(signature = (*args, **kwargs))]
    fn explain<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let options = self.core.options_in_force();
        let call = Call { args, kwargs };
        let (entry, inputs) = self.entry(py, call, &options, Data::Needed, Purpose::Jit)?;
        let inputs: Borrowings<'_> = inputs.iter().collect();
        let explain = |interrupt: &Interrupt<'_>| entry.explain(&inputs, &options, Some(interrupt));
        let explanation = interruptible(py, explain)?;
        let text = explanation.to_string();
        let Explanation { backend, reason, estimated, measured, .. } = explanation;
        let fields = (backend, reason, estimated, measured, text);
        py.import("nxla.debug")?.getattr("Explanation")?.call1(fields)
    }

    /// Return the number of compiled entries, hits and misses, and the digests of the programs
    /// with their backends.
    fn cache_report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let FunctionReport { entries, hits, misses, bytes, digests, backends } = self.core.report();
        let report = PyDict::new(py);
        report.set_item("entries", entries)?;
        report.set_item("hits", hits)?;
        report.set_item("misses", misses)?;
        report.set_item("bytes", bytes)?;
        report.set_item("digests", digests)?;
        report.set_item("backends", backends)?;
        Ok(report)
    }

    /// Delete the compiled programs of the function.
    fn clear_cache(&self) {
        self.core.clear();
    }
}

impl PyFunction {
    /// Calls the function; errors have full tracebacks.
    fn call_inner<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        shutdown::prepare();
        let (py, this, call) = (slf.py(), slf.get(), Call { args, kwargs });
        if this.core.call_mode().or_raise()? == CallMode::Inline {
            return this.callable.call(py, args, kwargs);
        }
        let options = this.core.options_in_force();
        let mut tensors = Inputs::new();
        if !this.traces_anew && call.plain_tensors(&mut tensors) {
            let inputs: Borrowings<'_> = tensors.iter().collect();
            if let Some(entry) = this.core.recent(&inputs, &options) {
                return this.run(py, &entry, &inputs, &options);
            }
        }
        // A compiler that the function itself names was queried when the function was created.
        if this.core.options().compiler.is_none()
            && let Some(function) = with_own_jit(slf, &options)?
        {
            return function.call(args, kwargs).map(Bound::unbind);
        }
        let (entry, inputs) = if this.traces_anew {
            this.new_entry(py, call, &options)?
        } else {
            this.entry(py, call, &options, Data::Needed, Purpose::Jit)?
        };
        this.run(py, &entry, &inputs.iter().collect::<Borrowings<'_>>(), &options)
    }

    fn run(
        &self,
        py: Python<'_>,
        entry: &Entry,
        inputs: &[&RawTensor],
        options: &Options,
    ) -> PyResult<Py<PyAny>> {
        run_entry(py, self.core.name(), entry, inputs, options, self.debug_nans)
    }

    /// Returns the signature and the tensors of a call.
    fn sign(&self, call: Call<'_, '_>, data: Data) -> PyResult<Arguments> {
        shutdown::prepare();
        let arguments = match data {
            Data::Needed if self.traces_anew => Arguments::default().for_one_call(),
            Data::Needed => Arguments::default(),
            Data::Absent => Arguments::of_types(),
        };
        self.describe(call, arguments)
    }

    /// Adds the arguments of a call.
    fn describe(&self, call: Call<'_, '_>, mut arguments: Arguments) -> PyResult<Arguments> {
        for argument in call.arguments(&self.statics) {
            let Argument { key, value, is_static } = argument?;
            if let Key::Name(name) = &key {
                arguments.keyword(name)?;
            }
            let path = || format!("{}: {key}", self.core.name());
            if is_static {
                arguments.static_argument(&value, &path())?
            } else {
                arguments.argument(&value, &path)?
            }
        }
        Ok(arguments)
    }

    /// Returns the requirements for further calls of the program that was traced for this call.
    fn expected_arguments(&self, py: Python<'_>, call: Call<'_, '_>) -> PyResult<Expected> {
        let names = names_of(self.callable.bind(py), call.args.len())?;
        Expected::from_trace(call.arguments(&self.statics).map(|argument| {
            let Argument { key, value, is_static } = argument?;
            let name = match key {
                Key::Position(position) => names[position].clone(),
                Key::Name(name) => (name.extract()?, true),
            };
            Ok((value, name, is_static))
        }))
    }

    /// Returns the entry of a call, which is compiled if necessary, and the tensors of the call.
    fn entry(
        &self,
        py: Python<'_>,
        call: Call<'_, '_>,
        options: &Options,
        data: Data,
        purpose: Purpose,
    ) -> PyResult<(Arc<Entry>, Inputs)> {
        let arguments = self.sign(call, data)?;
        if data == Data::Needed {
            arguments.call.refuse_templates(self.core.name()).or_raise()?;
        }
        if let Some(entry) = self.core.find(&arguments.call, purpose, options).or_raise()? {
            let inputs = arguments.into_inputs(py, Some(entry.program()))?;
            return Ok((entry, inputs));
        }
        let begun = Instant::now();
        let traced = self.trace_for_cache(py, call, &arguments, options)?;
        let donated = self.donated_leaves(py, call, &traced.program)?;
        self.observe(py, call, &traced)?;
        let (took, program) = (begun.elapsed(), traced.program.clone());
        let Arguments { call, lazies, .. } = arguments;
        let (entry, mut inputs) = interruptible(py, |interrupt| {
            self.core.compile(call, traced, purpose, donated, options, Some(interrupt))
        })?;
        if data == Data::Needed {
            lazies.supply(py, &mut inputs, Some(entry.program()))?;
        }
        if let Some(observer) = &self.observer {
            let all = begun.elapsed();
            let seconds = (took.as_secs_f64(), (all - took).as_secs_f64());
            let (backend, slow) = (entry.backend(), entry.slow_by_default());
            let size = program.graph().len();
            let about = (program.digest().to_string(), size, seconds, backend, slow);
            observer.call_method1(py, intern!(py, "compiled"), about)?;
        }
        Ok((entry, inputs))
    }

    /// Returns a newly traced entry of a call, and the tensors of the call.
    fn new_entry(
        &self,
        py: Python<'_>,
        call: Call<'_, '_>,
        options: &Options,
    ) -> PyResult<(Arc<Entry>, Inputs)> {
        let arguments = self.sign(call, Data::Needed)?;
        arguments.call.refuse_templates(self.core.name()).or_raise()?;
        let traced = self.trace_for_cache(py, call, &arguments, options)?;
        let Arguments { call, lazies, .. } = arguments;
        let (entry, mut inputs) = interruptible(py, |interrupt| {
            self.core.compile_alone(call, traced, options, Some(interrupt))
        })?;
        lazies.supply(py, &mut inputs, Some(entry.program()))?;
        Ok((entry, inputs))
    }

    /// Calls the observer before a compilation with the arguments, the number of earlier compilations,
    /// and the large captured tensors with their types, bytes and lines.
    fn observe(&self, py: Python<'_>, call: Call<'_, '_>, traced: &Traced) -> PyResult<()> {
        let Some(observer) = &self.observer else { return Ok(()) };
        let described = |(tensor, line): (&RawTensor, &Option<Line>)| {
            let bytes = tensor.shape().byte_size(tensor.dtype());
            (tensor.ty().to_string(), bytes, line.as_ref().map(ToString::to_string))
        };
        // Small tensors are inputs only because they are on a device; the observer ignores them.
        let is_large =
            |(_, bytes, _): &(String, usize, Option<String>)| *bytes > LITERAL_LIMIT_BYTES;
        let captured = traced.captured.iter().zip(&traced.lines).map(described);
        let large: Vec<_> = captured.filter(is_large).collect();
        observer.call1(py, (call.args, call.kwargs, self.core.misses(), large)).map(drop)
    }

    /// Returns the donated inputs, and reports donations without use to the observer.
    fn donated_leaves(
        &self,
        py: Python<'_>,
        call: Call<'_, '_>,
        program: &Program,
    ) -> PyResult<Donations> {
        if self.donated.is_empty() {
            return Ok(Donations::default());
        }
        let Donations { mut marks, names } = self.leaf_donations(call)?;
        marks.resize(program.inputs().len(), false);
        let unusable = unusable_donations(program, &marks);
        if let Some(observer) = &self.observer
            && !unusable.is_empty()
        {
            let named = |&input: &usize| {
                let ty = program.inputs()[input].to_string();
                (names.get(input).cloned().unwrap_or_default(), ty)
            };
            let unusable: Vec<_> = unusable.iter().map(named).collect();
            observer.call_method1(py, intern!(py, "unusable_donations"), (unusable,))?;
        }
        Ok(Donations { marks, names })
    }

    /// Returns for each leaf of a call whether it is donated, and its name.
    fn leaf_donations(&self, call: Call<'_, '_>) -> PyResult<Donations> {
        let mut donations = Donations::default();
        let mut found = vec![false; self.donated.len()];
        for argument in call.arguments(&self.statics) {
            let Argument { key, value, is_static } = argument?;
            if is_static {
                continue;
            }
            let own = (0..self.donated.len()).filter(|&which| self.donated[which].is_in(&key));
            let own: Vec<usize> = own.collect();
            flatten(&value, "", &mut |item, path| {
                let leaf = is_leaf(item)?;
                if leaf {
                    let path = path();
                    let mut is_donated = false;
                    for &which in
                        own.iter().filter(|&&which| covers_leaf(&self.donated[which].path, &path))
                    {
                        found[which] = true;
                        is_donated = true;
                    }
                    donations.marks.push(is_donated);
                    donations.names.push(format!("{key}{path}"));
                }
                Ok(leaf)
            })?;
        }
        for (donated, found) in self.donated.iter().zip(found) {
            if !found && !donated.path.is_empty() {
                let Donated { name, path, .. } = donated;
                let why = format!("donate_argnames: {name}{path} must be a tensor");
                return Err(argument_error(self.core.name(), why));
            }
        }
        Ok(donations)
    }

    /// Traces the function for an entry of the cache, so that this function owns the Python functions
    /// which the program calls.
    fn trace_for_cache(
        &self,
        py: Python<'_>,
        call: Call<'_, '_>,
        arguments: &Arguments,
        options: &Options,
    ) -> PyResult<Traced> {
        let functions = callable::FunctionCollector::begin(true);
        let traced = self.trace(py, call, arguments, options)?;
        functions.give(&self.owned);
        Ok(traced)
    }

    /// Calls the function with traced values instead of the tensors.
    fn trace(
        &self,
        py: Python<'_>,
        call: Call<'_, '_>,
        arguments: &Arguments,
        options: &Options,
    ) -> PyResult<Traced> {
        let (mut tracing, parameters) =
            Tracing::begin(Some(self.core.name()), &arguments.call, options).or_raise()?;
        let mut parameters = parameters.into_iter().map(|expr| PyExpr::wrap(py, expr));
        let (args, kwargs) = self.with_tracers(py, call, &mut parameters)?;
        let result = self.callable.bind(py).call(args, Some(&kwargs))?;
        tracing.leave();
        let (outputs, tree) = outputs(tracing.trace(), &result, self.core.name())?;
        py.detach(|| tracing.finish(&outputs, tree)).or_raise()
    }

    /// Returns the arguments of a call with tracers instead of the leaves.
    fn with_tracers<'py>(
        &self,
        py: Python<'py>,
        call: Call<'_, 'py>,
        tracers: &mut dyn Iterator<Item = PyResult<Py<PyAny>>>,
    ) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
        let (mut args, kwargs) = (Vec::with_capacity(call.args.len()), PyDict::new(py));
        for argument in call.arguments(&self.statics) {
            let Argument { key, value, is_static } = argument?;
            let value = if is_static {
                value.unbind()
            } else {
                flatten(&value, "", &mut |item, _| is_leaf(item))?.rebuild(py, tracers)?
            };
            match key {
                Key::Position(_) => args.push(value),
                Key::Name(name) => kwargs.set_item(name, value)?,
            }
        }
        Ok((PyTuple::new(py, args)?, kwargs))
    }
}

/// Returns the leaves of a result as values of the trace, and its structure.
pub(crate) fn outputs(
    trace: &Trace,
    result: &Bound<'_, PyAny>,
    function: &str,
) -> PyResult<(Vec<RawExpr>, Tree)> {
    let mut outputs = Vec::new();
    let tree = flatten(result, "result", &mut |item, path| match output(trace, item)? {
        Some(expr) => {
            outputs.push(expr);
            Ok(true)
        }
        None if item.is_none() || item.is_instance_of::<PyString>() => Ok(false),
        None if path() != "result" && is_constant_part(item)? => Ok(false),
        None => {
            let kind = kind_of(item)?;
            let why = format!(
                "{}: must be a tensor, a number or a container of them; got {kind}",
                path()
            );
            Err(argument_error(function, why))
        }
    })?;
    Ok((outputs, tree))
}

/// Returns whether a value in a container is part of the structure of a result: a function, an enum member or a dtype.
fn is_constant_part(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let is_enum_member = value.get_type().hasattr(intern!(value.py(), "__members__"))?;
    let is_function = value.is_callable() && refuse_changing(value, &|| String::new()).is_ok();
    Ok(is_enum_member || value.is_instance_of::<PyDType>() || is_function)
}

/// Returns a leaf of a result as a value of the trace.
pub(crate) fn output(trace: &Trace, item: &Bound<'_, PyAny>) -> PyResult<Option<RawExpr>> {
    // Lists and tuples are containers, not nested data.
    if is_sequence(item) {
        return Ok(None);
    }
    Ok(match Value::try_of(item)? {
        Some(Value::Expr(expr)) => Some(expr),
        Some(Value::Tensor(tensor)) => Some(capture(item.py(), trace, &tensor)?),
        Some(Value::Number(number)) => {
            source::mark(item.py(), trace)?;
            let id = trace.build(|graph| graph.number(number)).or_raise()?;
            Some(RawExpr::new(trace.clone(), id))
        }
        None => None,
    })
}

/// A class with types in brackets, for annotations that are evaluated.
pub(crate) fn generic_alias<'py>(
    class: &Bound<'py, PyType>,
    types: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    class.py().import("types")?.getattr("GenericAlias")?.call1((class, types))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyFunction>()
}
