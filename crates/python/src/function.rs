//! Jitted functions.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

use nxla_runtime::graph::Line;
use nxla_runtime::{
    Executable, Expr, Options, Program, Tensor, Trace, Vectors, default_options,
    has_default_options,
};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple, PyType};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use crate::apply::capture;
use crate::compiled::{Argument, PyCompiled};
use crate::containers::{Tree, flatten};
use crate::debug;
use crate::errors::{OrRaise, argument_error, exception};
use crate::expr::PyExpr;
use crate::interrupt::{compile_interruptible, run_interruptible};
use crate::options::{Conflict, fingerprint, graph_options, options_from};
use crate::program::PyExpression;
use crate::signature::{Leaves, Signature, is_leaf};
use crate::source;
use crate::tensor::PyTensor;
use crate::value::{FromPython, Value};

/// A function that runs compiled. Made by ``nx.jit``, ``nx.compile`` and ``nx.defn``.
#[pyclass(name = "Function", module = "nxla", frozen, dict, weakref)]
pub(crate) struct PyFunction {
    callable: Py<PyAny>,
    name: String,
    options: Options,
    conflict: Conflict,
    statics: Statics,
    donated: FxHashSet<usize>,
    /// Whether results must be finite.
    debug_nans: bool,
    /// Told of each program that is about to be compiled; may raise.
    observer: Option<Py<PyAny>>,
    entries: Mutex<Entries>,
    /// The fingerprint of the options, computed once.
    own_fingerprint: u64,
}

/// Which arguments are part of the structure rather than inputs.
#[derive(Default)]
struct Statics {
    positions: FxHashSet<usize>,
    names: FxHashSet<String>,
}

#[derive(Default)]
struct Entries {
    by_hash: FxHashMap<u64, SmallVec<[Arc<(Signature, Arc<Entry>)>; 1]>>,
    /// What the last call of plain tensors led to, and the fingerprint of its options.
    recent: Option<(u64, Arc<Entry>)>,
    hits: u64,
    misses: u64,
}

impl Entries {
    /// Lets go of what led to executables that the process has dropped to stay within its limit.
    fn drop_evicted(&mut self) {
        self.by_hash.retain(|_, keyed| {
            keyed.retain(|keyed| keyed.1.executable.is_loaded());
            !keyed.is_empty()
        });
    }

    /// Counts a call that led to an entry.
    fn count(&mut self, entry: &Entry) {
        match entry.executable.is_loaded() {
            true => self.hits += 1,
            // It is compiled again.
            false => self.misses += 1,
        }
    }
}

/// Whether templates may stand for tensors.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Data {
    Needed,
    Absent,
}

/// What a signature leads to.
pub(crate) struct Entry {
    name: String,
    pub(crate) executable: Arc<dyn Executable>,
    pub(crate) program: Arc<Program>,
    pub(crate) results: Results,
    /// Large tensors that the function mentions, passed after its arguments.
    pub(crate) captured: Vec<Tensor>,
    /// Whether results must be finite.
    debug_nans: bool,
}

/// What a program runs on: the tensors of its arguments, then those that it captured.
pub(crate) type Inputs<'a> = SmallVec<[&'a Tensor; 8]>;

impl Entry {
    /// Runs the program on the tensors of its arguments.
    pub(crate) fn run(
        &self,
        py: Python<'_>,
        arguments: &[&Tensor],
        options: &Options,
    ) -> PyResult<Py<PyAny>> {
        let all: Inputs<'_>;
        let inputs = if self.captured.is_empty() {
            arguments
        } else {
            all = arguments.iter().copied().chain(&self.captured).collect();
            &all
        };
        let results = run_interruptible(py, &*self.executable, inputs, options)?;
        if self.debug_nans || debug::is_on() {
            debug::check_results(py, &self.name, &self.program, inputs, &results)?;
        }
        self.results.wrap(py, results)
    }

    /// Whether the program was compiled for tensors of these types.
    fn takes(&self, tensors: &[Borrowed<'_, '_, PyTensor>]) -> bool {
        let expected = self.program.inputs();
        tensors.len() + self.captured.len() == expected.len()
            && tensors.iter().zip(expected).all(|(tensor, ty)| tensor.get().get().is_of(ty))
    }
}

/// A finished trace.
pub(crate) struct Traced {
    pub(crate) program: Arc<Program>,
    pub(crate) results: Results,
    pub(crate) captured: Vec<Tensor>,
    /// Where each of them is mentioned.
    lines: Vec<Option<Line>>,
}

impl Traced {
    /// What a trace that has ended gives.
    pub(crate) fn new(program: Arc<Program>, results: Results, trace: &Trace) -> Self {
        let (captured, lines) = (trace.captured(), trace.captured_lines());
        Self { program, results, captured, lines }
    }
}

/// The arguments of a call, without a copy of them.
#[derive(Clone, Copy)]
struct Call<'a, 'py> {
    args: &'a Bound<'py, PyTuple>,
    kwargs: Option<&'a Bound<'py, PyDict>>,
}

#[pymethods]
impl PyFunction {
    #[new]
    #[pyo3(signature = (callable, name, options=None, static_positions=vec![], static_names=vec![], donated=vec![], debug_nans=false, observer=None))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn new(
        callable: Py<PyAny>,
        name: String,
        options: Option<&Bound<'_, PyDict>>,
        static_positions: Vec<usize>,
        static_names: Vec<String>,
        donated: Vec<usize>,
        debug_nans: bool,
        observer: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let (options, conflict) = options_from(options)?;
        let statics = Statics {
            positions: static_positions.into_iter().collect(),
            names: static_names.into_iter().collect(),
        };
        let donated = donated.into_iter().collect();
        let (entries, own_fingerprint) = (Mutex::default(), fingerprint(&options));
        Ok(Self {
            callable,
            name,
            options,
            conflict,
            statics,
            donated,
            debug_nans,
            observer,
            entries,
            own_fingerprint,
        })
    }

    /// ``nx.Function[[nx.Tensor], nx.Tensor]`` is a type for annotations.
    #[classmethod]
    fn __class_getitem__<'py>(
        cls: &Bound<'py, PyType>,
        types: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        generic_alias(cls, types)
    }

    /// The function that is traced.
    #[getter]
    fn callable(&self, py: Python<'_>) -> Py<PyAny> {
        self.callable.clone_ref(py)
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let call = Call { args, kwargs };
        if Trace::is_entered() {
            match self.conflict {
                Conflict::Raise => return Err(self.conflict_error()),
                Conflict::Reuse => return self.callable.call(py, args, kwargs),
                Conflict::Force => {}
            }
        }
        let options = self.options_in_force();
        if let Some(tensors) = plain_tensors(call)
            && let Some(entry) = self.recent(&tensors, &options)
        {
            let inputs: Inputs<'_> = tensors.iter().map(|tensor| tensor.get().get()).collect();
            return entry.run(py, &inputs, &options);
        }
        let (entry, leaves) = self.entry(py, call, &options, Data::Needed)?;
        entry.run(py, &leaves.iter().collect::<Inputs<'_>>(), &options)
    }

    fn __get__<'py>(
        slf: &Bound<'py, Self>,
        instance: &Bound<'py, PyAny>,
        _owner: Option<&Bound<'py, PyType>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if instance.is_none() {
            return Ok(slf.clone().into_any());
        }
        slf.py().import("types")?.getattr("MethodType")?.call1((slf, instance))
    }

    fn __repr__(&self) -> String {
        format!("<nxla function {}>", self.name)
    }

    /// Traces and compiles for these arguments without running; templates stand for tensors.
    #[pyo3(signature = (*args, **kwargs))]
    fn warm_up<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<()> {
        let options = self.options_in_force();
        self.entry(py, Call { args, kwargs }, &options, Data::Absent).map(drop)
    }

    /// Traces for these arguments and gives the expression.
    #[pyo3(signature = (*args, **kwargs))]
    fn debug_expr<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<PyExpression> {
        let mut leaves = Leaves::new();
        let signature = self.sign(Call { args, kwargs }, &mut leaves)?;
        let traced = self.trace(py, Call { args, kwargs }, &signature, &leaves)?;
        Ok(PyExpression::new(traced))
    }

    /// Compiles for the types of these arguments only; templates stand for tensors.
    #[pyo3(signature = (*args))]
    fn compile<'py>(&self, py: Python<'py>, args: &Bound<'py, PyTuple>) -> PyResult<PyCompiled> {
        let options = self.options_in_force();
        let call = Call { args, kwargs: None };
        let (entry, _) = self.entry(py, call, &options, Data::Absent)?;
        let signature = self.sign(call, &mut Leaves::new())?;
        let arguments = args.iter().enumerate();
        let arguments = arguments
            .map(|(position, arg)| Argument::of(&arg, position))
            .collect::<PyResult<_>>()?;
        let options = options.into_owned();
        Ok(PyCompiled { name: self.name.clone(), entry, options, signature, arguments })
    }

    /// What the function has compiled: entries, hits, misses and the digests of its programs.
    fn cache_report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let entries = self.lock();
        let report = PyDict::new(py);
        let programs: Vec<&Arc<Entry>> =
            entries.by_hash.values().flatten().map(|keyed| &keyed.1).collect();
        let programs: Vec<&Arc<Entry>> =
            programs.into_iter().filter(|entry| entry.executable.is_loaded()).collect();
        report.set_item("entries", programs.len())?;
        report.set_item("hits", entries.hits)?;
        report.set_item("misses", entries.misses)?;
        report
            .set_item("bytes", programs.iter().map(|e| e.executable.byte_size()).sum::<usize>())?;
        let mut digests: Vec<String> =
            programs.iter().map(|entry| entry.program.digest().to_string()).collect();
        digests.sort();
        report.set_item("digests", digests)?;
        Ok(report)
    }

    /// Forgets what the function has compiled.
    fn clear_cache(&self) {
        let mut entries = self.lock();
        entries.by_hash.clear();
        entries.recent = None;
    }
}

impl PyFunction {
    fn lock(&self) -> std::sync::MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The function's options on top of the defaults, which most programs do not set.
    fn options_in_force(&self) -> Cow<'_, Options> {
        if has_default_options() {
            Cow::Owned(self.options.over(&default_options()))
        } else {
            Cow::Borrowed(&self.options)
        }
    }

    fn conflict_error(&self) -> PyErr {
        exception(nxla_runtime::Error::Usage(format!(
            "{}: a jitted function cannot be called while another function is traced; pass \
             on_conflict=\"reuse\" to nx.jit to inline it, or \"force\" to run it by itself",
            self.name
        )))
    }

    fn is_static(&self, position: usize) -> bool {
        self.statics.positions.contains(&position)
    }

    fn is_static_name(&self, name: &Bound<'_, PyAny>) -> PyResult<bool> {
        if self.statics.names.is_empty() {
            return Ok(false);
        }
        Ok(self.statics.names.contains(&*name.cast::<PyString>()?.to_cow()?))
    }

    /// The signature of a call, and its tensors.
    fn sign(&self, call: Call<'_, '_>, leaves: &mut Leaves) -> PyResult<Signature> {
        let mut signature = Signature::default();
        let path = |position: usize| move || format!("{}: argument {position}", self.name);
        for (position, arg) in call.args.iter().enumerate() {
            if self.is_static(position) {
                signature.constant(&arg, &path(position)())?;
            } else {
                signature.argument(&arg, leaves, &path(position))?;
            }
        }
        for (name, arg) in call.kwargs.into_iter().flatten() {
            signature.keyword(&name)?;
            let path = || format!("{}: argument {name}", self.name);
            if self.is_static_name(&name)? {
                signature.constant(&arg, &path())?;
            } else {
                signature.argument(&arg, leaves, &path)?;
            }
        }
        Ok(signature)
    }

    /// What the call before led to, if this one is like it. Nearly all calls of a loop are, and
    /// need no signature.
    fn recent(
        &self,
        tensors: &[Borrowed<'_, '_, PyTensor>],
        options: &Options,
    ) -> Option<Arc<Entry>> {
        let mut entries = self.lock();
        let (fingerprint, entry) = entries.recent.as_ref()?;
        if *fingerprint != self.fingerprint(options) || !entry.takes(tensors) {
            return None;
        }
        let entry = entry.clone();
        entries.count(&entry);
        Some(entry)
    }

    /// A number for everything about options that programs depend on.
    fn fingerprint(&self, options: &Options) -> u64 {
        match std::ptr::eq(options, &raw const self.options) {
            true => self.own_fingerprint ^ u64::from(graph_options().reassociate_floats),
            false => fingerprint(options) ^ u64::from(graph_options().reassociate_floats),
        }
    }

    /// What a call leads to, compiled if it has not been, and its tensors.
    fn entry(
        &self,
        py: Python<'_>,
        call: Call<'_, '_>,
        options: &Options,
        data: Data,
    ) -> PyResult<(Arc<Entry>, Leaves)> {
        let mut leaves = Leaves::new();
        let mut signature = self.sign(call, &mut leaves)?;
        if data == Data::Needed {
            signature.refuse_templates(&self.name)?;
        }
        let plain = signature.is_plain();
        let fingerprint = self.fingerprint(options);
        signature.word(fingerprint);
        let hash = signature.hash();
        if let Some(entry) = self.find(py, hash, &signature)? {
            if plain && data == Data::Needed {
                self.lock().recent = Some((fingerprint, entry.clone()));
            }
            return Ok((entry, leaves));
        }
        let traced = self.trace(py, call, &signature, &leaves)?;
        let Traced { program, results, captured, lines } = traced;
        let donated = self.donated_leaves(call, program.inputs().len())?;
        self.observe(py, call, &captured, lines)?;
        let executable = compile_interruptible(py, &program, options, &donated)?;
        let (name, debug_nans) = (self.name.clone(), self.debug_nans);
        let entry = Arc::new(Entry { name, executable, program, results, captured, debug_nans });
        let mut entries = self.lock();
        entries.misses += 1;
        entries.drop_evicted();
        let keyed = entries.by_hash.entry(hash).or_default();
        // Another thread may have made the same call for the first time as well.
        keyed.retain(|known| known.1.program.digest() != entry.program.digest());
        keyed.push(Arc::new((signature, entry.clone())));
        Ok((entry, leaves))
    }

    /// Tells the observer what is about to be compiled: the arguments, how often that happened
    /// before, and the large tensors that became inputs, each with its type, bytes and line.
    fn observe(
        &self,
        py: Python<'_>,
        call: Call<'_, '_>,
        captured: &[Tensor],
        lines: Vec<Option<Line>>,
    ) -> PyResult<()> {
        let Some(observer) = &self.observer else { return Ok(()) };
        let large: Vec<(String, usize, Option<String>)> = captured
            .iter()
            .zip(lines)
            .map(|(tensor, line)| {
                let bytes = tensor.shape().size() * tensor.dtype().size();
                (tensor.ty().to_string(), bytes, line.map(|line| line.to_string()))
            })
            .collect();
        let misses = self.lock().misses;
        observer.call1(py, (call.args, call.kwargs, misses, large)).map(drop)
    }

    fn find(
        &self,
        py: Python<'_>,
        hash: u64,
        signature: &Signature,
    ) -> PyResult<Option<Arc<Entry>>> {
        // Comparing static values may run Python code, which must not happen under the lock.
        let candidates = self.lock().by_hash.get(&hash).cloned().unwrap_or_default();
        for candidate in candidates {
            let (other, entry) = &*candidate;
            if other.matches(py, signature)? {
                self.lock().count(entry);
                return Ok(Some(entry.clone()));
            }
        }
        Ok(None)
    }

    /// For each input, whether its argument was marked as donated.
    fn donated_leaves(&self, call: Call<'_, '_>, inputs: usize) -> PyResult<Vec<bool>> {
        if self.donated.is_empty() {
            return Ok(Vec::new());
        }
        let mut marks = Vec::with_capacity(inputs);
        for (position, arg) in call.args.iter().enumerate() {
            if self.is_static(position) {
                continue;
            }
            let donated = self.donated.contains(&position);
            flatten(&arg, "", &mut |item, _| {
                let leaf = is_leaf(item)?;
                if leaf {
                    marks.push(donated);
                }
                Ok(leaf)
            })?;
        }
        marks.resize(inputs, false);
        Ok(marks)
    }

    /// Runs the function on traced values in place of the tensors.
    fn trace(
        &self,
        py: Python<'_>,
        call: Call<'_, '_>,
        signature: &Signature,
        leaves: &Leaves,
    ) -> PyResult<Traced> {
        let trace = Trace::with_options(crate::options::graph_options());
        let mut parameters = Vec::with_capacity(leaves.len());
        for (ty, own) in signature.types(leaves).into_iter().zip(signature.vectors(leaves.len())) {
            let id = trace.parameter(ty).or_raise()?.id();
            parameters.push(PyExpr::wrap(py, Expr::with_vectors(trace.clone(), id, own))?);
        }
        let mut parameters = parameters.into_iter().map(Ok);
        let outcome = self.call_traced(py, call, &trace, &mut parameters);
        match outcome {
            Ok(traced) => Ok(traced),
            Err(raised) => {
                trace.abandon();
                Err(raised)
            }
        }
    }

    fn call_traced(
        &self,
        py: Python<'_>,
        call: Call<'_, '_>,
        trace: &Trace,
        parameters: &mut dyn Iterator<Item = PyResult<Py<PyAny>>>,
    ) -> PyResult<Traced> {
        let mut replace = |arg: &Bound<'_, PyAny>| -> PyResult<Py<PyAny>> {
            let tree = flatten(arg, "", &mut |item, _| is_leaf(item))?;
            tree.rebuild(py, parameters)
        };
        let mut args = Vec::with_capacity(call.args.len());
        for (position, arg) in call.args.iter().enumerate() {
            args.push(match self.is_static(position) {
                true => arg.unbind(),
                false => replace(&arg)?,
            });
        }
        let kwargs = PyDict::new(py);
        for (name, arg) in call.kwargs.into_iter().flatten() {
            match self.is_static_name(&name)? {
                true => kwargs.set_item(name, arg)?,
                false => kwargs.set_item(name, replace(&arg)?)?,
            }
        }
        let result = {
            let _compiler = nxla_runtime::tracing_for(&self.options_in_force()).or_raise()?;
            let _entered = trace.enter();
            self.callable.bind(py).call(PyTuple::new(py, args)?, Some(&kwargs))?
        };
        let (outputs, tree) = outputs(trace, &result, &self.name)?;
        let results = Results::of(tree, &outputs);
        let program = Arc::new(py.detach(|| trace.finish(&outputs)).or_raise()?);
        Ok(Traced::new(program, results, trace))
    }
}

/// The leaves of a result as values of the trace, and its structure.
pub(crate) fn outputs(
    trace: &Trace,
    result: &Bound<'_, PyAny>,
    function: &str,
) -> PyResult<(Vec<Expr>, Tree)> {
    let mut outputs = Vec::new();
    let tree = flatten(result, "result", &mut |item, path| match output(trace, item)? {
        Some(expr) => {
            outputs.push(expr);
            Ok(true)
        }
        None if item.is_none() || item.is_instance_of::<PyString>() => Ok(false),
        None => {
            let kind = item.get_type().name()?;
            let why = format!(
                "{path} is a {kind}; a traced function returns tensors, numbers and containers of them"
            );
            Err(argument_error(function, why))
        }
    })?;
    Ok((outputs, tree))
}

/// The arguments of a call, if all are tensors and passed by position.
fn plain_tensors<'a, 'py>(
    call: Call<'a, 'py>,
) -> Option<SmallVec<[Borrowed<'a, 'py, PyTensor>; 8]>> {
    if call.kwargs.is_some_and(|kwargs| !kwargs.is_empty()) {
        return None;
    }
    let mut tensors = SmallVec::with_capacity(call.args.len());
    for arg in call.args.iter_borrowed() {
        tensors.push(arg.cast::<PyTensor>().ok()?);
    }
    Some(tensors)
}

/// A leaf of a result as a value of the trace.
pub(crate) fn output(trace: &Trace, item: &Bound<'_, PyAny>) -> PyResult<Option<Expr>> {
    if is_sequence(item) {
        return Ok(None);
    }
    Ok(match Value::try_of(item)? {
        Some(Value::Expr(expr)) => Some(expr),
        Some(Value::Tensor(tensor)) => Some(capture(item.py(), trace, &tensor)?),
        Some(Value::Number(number)) => {
            source::mark(item.py(), trace)?;
            let id = trace.build(|graph| graph.number(number)).or_raise()?;
            Some(Expr::new(trace.clone(), id))
        }
        None => None,
    })
}

/// Lists and tuples are containers here, not nested data.
fn is_sequence(item: &Bound<'_, PyAny>) -> bool {
    item.is_instance_of::<PyList>() || item.is_instance_of::<PyTuple>()
}

/// What the results of a program are for Python.
pub(crate) struct Results {
    pub(crate) tree: Tree,
    /// The vectorized axes of each result; empty if none has any.
    vectors: Vec<Vectors>,
}

impl Results {
    /// The container of these results.
    pub(crate) fn of(tree: Tree, outputs: &[Expr]) -> Self {
        let all = outputs.iter().map(|output| output.vectors().clone());
        let any = outputs.iter().any(|output| !output.vectors().is_empty());
        Self { tree, vectors: if any { all.collect() } else { Vec::new() } }
    }

    /// A container of results without vectorized axes.
    pub(crate) fn plain(tree: Tree) -> Self {
        Self { tree, vectors: Vec::new() }
    }

    /// The vectorized axes of a result.
    pub(crate) fn vectors(&self, position: usize) -> Vectors {
        self.vectors.get(position).cloned().unwrap_or_default()
    }

    /// Values in place of the results, tensors among them with the vectorized axes of those.
    pub(crate) fn arrange(&self, py: Python<'_>, values: Vec<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        let arranged = values.into_iter().enumerate().map(|(position, value)| {
            match (value.bind(py).cast::<PyTensor>(), self.vectors(position)) {
                (Ok(tensor), vectors) if !vectors.is_empty() => {
                    let data = tensor.get().get().data().clone();
                    PyTensor::wrap(py, data.with_vectors(vectors))
                }
                _ => Ok(value),
            }
        });
        self.tree.rebuild(py, &mut arranged.collect::<Vec<_>>().into_iter())
    }

    /// The results of a run in their container.
    pub(crate) fn wrap(&self, py: Python<'_>, results: Vec<Tensor>) -> PyResult<Py<PyAny>> {
        let vectors = self.vectors.iter().cloned().chain(std::iter::repeat(Vectors::NONE));
        let results = results.into_iter().zip(vectors);
        let mut tensors = results.map(|(data, own)| PyTensor::wrap(py, data.with_vectors(own)));
        if self.tree.is_leaf() {
            return tensors.next().expect("a program gives one tensor for each leaf");
        }
        self.tree.rebuild(py, &mut tensors)
    }
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
