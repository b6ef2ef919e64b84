//! The entry of a signature: a function that is traced, compiled and ready to run.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use nxla_eval::Interrupt;
use nxla_expr::{Line, Program, TensorType};
use smallvec::SmallVec;

use super::call::Call;
use crate::analysis::Analysis;
use crate::auto::{Explanation, slow_seconds};
use crate::compiler::{Purpose, RunContext};
use crate::device::{Device, are_on_device, common_device};
use crate::donation::{Donated, Donations};
use crate::error::Result;
use crate::expr::RawExpr;
use crate::forks::no_fork;
use crate::options::Options;
use crate::profile::{self, Span, Work};
use crate::program::{ExecutableHandle, check_count, compile_for};
use crate::tensor::RawTensor;
use crate::trace::{Entered, Trace};
use crate::vectors::VectorAxes;

/// A function that is being traced, on the thread that began it.
pub struct Tracing {
    trace: Trace,
    /// The name of the function. The program gets the same name.
    name: Option<Arc<str>>,
    /// Left before the trace ends.
    entered: Option<Entered>,
    ended: bool,
    _span: Span,
}

impl fmt::Debug for Tracing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tracing").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Tracing {
    /// Begins a trace of a function, which may have a name, for a call. Returns the tracers of the
    /// leaves of the call.
    ///
    /// # Errors
    /// Returns an error for an unknown compiler.
    pub fn begin<S>(
        name: Option<&str>,
        call: &Call<S>,
        options: &Options,
    ) -> Result<(Self, Vec<RawExpr>)> {
        let shown = || format!("trace {}", name.unwrap_or("function")).into();
        let span = profile::span_with(Work::Trace, shown);
        let trace = Trace::new();
        let mut parameters = Vec::with_capacity(call.inputs().len());
        for (ty, vectors) in call.types().into_iter().zip(call.vectors()) {
            let id = trace.parameter(ty)?.id()?;
            parameters.push(RawExpr::with_vectors(trace.clone(), id, vectors));
        }
        // The devices of captured tensors are not known yet.
        let device = common_device("jit", call.inputs()).unwrap_or_default();
        let entered = trace.enter(options.target(device.as_ref())?.compiler.name());
        let (name, entered) = (name.map(Arc::from), Some(entered));
        Ok((Self { trace, name, entered, ended: false, _span: span }, parameters))
    }

    /// The trace.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// The function has been called: the trace is no longer the current one of the thread.
    pub fn leave(&mut self) {
        self.entered = None;
    }

    /// Ends the trace with these values as results, which `results` puts into their container.
    ///
    /// # Errors
    /// Returns the first error of the trace, or an error for a result of another trace.
    pub fn finish<R>(
        mut self,
        outputs: &[impl AsRef<RawExpr>],
        results: R,
    ) -> Result<TracedFunction<R>> {
        self.leave();
        self.ended = true;
        let vectors = ResultVectors::of(outputs);
        let program = self.trace.finish(outputs)?;
        let program = Arc::new(match self.name.take() {
            Some(name) => program.with_name(name),
            None => program,
        });
        let (captured, lines) = (self.trace.captured_tensors(), self.trace.captured_lines());
        Ok(TracedFunction { program, results, vectors, captured, lines })
    }
}

impl Drop for Tracing {
    fn drop(&mut self) {
        if !self.ended {
            self.trace.abandon();
        }
    }
}

/// The vectorized axes of results; empty if no result has any.
#[derive(Clone, Default, Debug)]
pub struct ResultVectors(Vec<VectorAxes>);

impl ResultVectors {
    /// The vectorized axes of traced values.
    pub fn of(outputs: &[impl AsRef<RawExpr>]) -> Self {
        outputs.iter().map(|output| output.as_ref().vectors().clone()).collect()
    }

    /// Returns `true` if no result has vectorized axes.
    pub fn are_none(&self) -> bool {
        self.0.is_empty()
    }

    /// The vectorized axes of one result.
    pub fn get(&self, result: usize) -> VectorAxes {
        self.0.get(result).cloned().unwrap_or_default()
    }

    /// Data with the axes of its result.
    pub fn put(&self, results: Vec<RawTensor>) -> Vec<RawTensor> {
        if self.0.is_empty() {
            return results;
        }
        let vectors = self.0.iter().cloned();
        results.into_iter().zip(vectors).map(|(data, own)| data.with_vectors(own)).collect()
    }
}

impl FromIterator<VectorAxes> for ResultVectors {
    fn from_iter<I: IntoIterator<Item = VectorAxes>>(all: I) -> Self {
        let all: Vec<VectorAxes> = all.into_iter().collect();
        let any = all.iter().any(|vectors| !vectors.is_empty());
        Self(if any { all } else { Vec::new() })
    }
}

/// A function, traced.
#[derive(Debug)]
pub struct TracedFunction<R> {
    /// The traced program.
    pub program: Arc<Program>,
    /// The container of the results, in the terms of the front end.
    pub results: R,
    /// The vectorized axes of the results.
    pub vectors: ResultVectors,
    /// Tensors that the function captures. They are the inputs after its arguments.
    pub captured: Vec<RawTensor>,
    /// The line of the first use of each of them.
    pub lines: Vec<Option<Line>>,
}

/// The compiled function of a signature.
pub struct Entry<R> {
    /// The name in errors and profiles.
    name: Arc<str>,
    traced: TracedFunction<R>,
    executable: Arc<ExecutableHandle>,
    purpose: Purpose,
    /// The device for which the entry was compiled.
    device: DeviceChoice,
    donated: Donated,
    /// The entry that was compiled for another device, because arguments of a run were there.
    elsewhere: Mutex<Option<Elsewhere>>,
}

impl<R> fmt::Debug for Entry<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry")
            .field("name", &self.name)
            .field("purpose", &self.purpose)
            .finish_non_exhaustive()
    }
}

/// The latest executable for another device.
type Elsewhere = (Option<Device>, Arc<ExecutableHandle>);

/// The reason for the device of an entry.
enum DeviceChoice {
    /// The options name the compiler or the device.
    Named,
    /// The arguments of the first call are on this device; `None` is the host.
    OfArguments(Option<Device>),
}

impl<R> Entry<R> {
    /// Compiles the trace for the device of the arguments, or for the device in the options.
    ///
    /// # Errors
    /// Returns an error for tensors on two devices, errors of the compiler, and an error if `interrupt`
    /// returns `true`.
    pub(crate) fn compile(
        name: Arc<str>,
        traced: TracedFunction<R>,
        arguments: &[RawTensor],
        purpose: Purpose,
        donations: Donations,
        options: &Options,
        interrupt: Option<&Interrupt<'_>>,
    ) -> Result<Self> {
        let device = if options.selects_target() {
            DeviceChoice::Named
        } else {
            DeviceChoice::OfArguments(common_device(&name, arguments)?)
        };
        let common = options.common_device(&name, arguments.iter().chain(&traced.captured))?;
        let target = options.target(common.as_ref())?;
        let program = &traced.program;
        let donated = Donated::new(program, donations);
        let marks = donated.marks();
        let executable = compile_for(purpose, program, options, &target, marks, interrupt)?;
        let elsewhere = Mutex::default();
        Ok(Entry { name, traced, executable, purpose, device, donated, elsewhere })
    }

    /// The compiled program.
    pub fn program(&self) -> &Arc<Program> {
        &self.traced.program
    }

    /// The container of the results, in the terms of the front end.
    pub fn results(&self) -> &R {
        &self.traced.results
    }

    /// The types of the arguments, vectorized axes in front.
    pub fn argument_types(&self) -> &[TensorType] {
        let inputs = self.traced.program.inputs();
        &inputs[..inputs.len() - self.traced.captured.len()]
    }

    /// The captured tensors, which are the last inputs of the program.
    pub fn captured_tensors(&self) -> &[RawTensor] {
        &self.traced.captured
    }

    /// The vectorized axes of each result, and the type of an entry.
    pub fn result_types(&self) -> Vec<(VectorAxes, TensorType)> {
        let types = self.traced.program.output_types().enumerate();
        let described = types.map(|(result, ty)| {
            let vectors = self.traced.vectors.get(result);
            let entry = vectors.entry_type(ty);
            (vectors, entry)
        });
        described.collect()
    }

    /// Bytes that the executable takes; 0 if it is not in memory.
    pub fn byte_size(&self) -> usize {
        self.executable.byte_size()
    }

    /// Returns the bytes that the entry holds: the executable, and the captured tensors.
    pub(super) fn held_bytes(&self) -> usize {
        let bytes = |tensor: &RawTensor| tensor.shape().byte_size(tensor.dtype());
        self.byte_size() + self.traced.captured.iter().map(bytes).sum::<usize>()
    }

    /// The compiler's figures for cost and memory of a run.
    ///
    /// # Errors
    /// Returns errors of the compiler.
    pub fn analysis(&self) -> Result<Analysis> {
        self.executable.analysis()
    }

    /// The name of the backend that runs the next call.
    pub fn backend(&self) -> String {
        self.executable.backend()
    }

    /// Returns the estimated seconds of a call if the options name no compiler, and the evaluator
    /// takes so long that the compiler `auto` would choose XLA from the first call.
    pub fn slow_by_default(&self) -> Option<f64> {
        match self.device {
            DeviceChoice::OfArguments(None) => slow_seconds(self.program()),
            DeviceChoice::OfArguments(Some(_)) | DeviceChoice::Named => None,
        }
    }

    /// Returns the backend of the next call with these arguments, the reason, and the estimated time,
    /// without a run.
    ///
    /// # Errors
    /// Returns the errors of [`Entry::run`].
    pub fn explain(
        &self,
        arguments: &[&RawTensor],
        options: &Options,
        interrupt: Option<&Interrupt<'_>>,
    ) -> Result<Explanation> {
        let device = common_device("explain", arguments.iter().map(|tensor| tensor.data()))?;
        let reason = match (&self.device, device) {
            (DeviceChoice::Named, _) => "the options name the compiler or the device".to_owned(),
            (DeviceChoice::OfArguments(_), None) => {
                "no compiler is named, and the arguments are on the host".to_owned()
            }
            (DeviceChoice::OfArguments(_), Some(device)) => {
                format!("no compiler is named, and the arguments are on {device}")
            }
        };
        let inputs = self.inputs(arguments);
        let executable = self.executable_for(arguments, &inputs, options, interrupt)?;
        Ok(executable.explain(reason, self.program()))
    }

    /// Returns `true` if a run may reuse the memory of arguments.
    pub fn donates(&self) -> bool {
        !self.donated.is_empty()
    }

    /// Returns `true` if the executable is in memory. Otherwise the next run compiles it again.
    pub fn is_loaded(&self) -> bool {
        self.executable.is_loaded()
    }

    /// Returns `true` if it was compiled for the types and the device of these tensors, which have
    /// no vectorized axes.
    pub(super) fn takes(&self, tensors: &[&RawTensor]) -> bool {
        let types = self.argument_types();
        types.len() == tensors.len()
            && tensors.iter().zip(types).all(|(tensor, ty)| tensor.is_of(ty))
            && self.runs_on_device_of(tensors)
    }

    pub(super) fn runs_on_device_of(&self, tensors: &[&RawTensor]) -> bool {
        match &self.device {
            DeviceChoice::Named => true,
            DeviceChoice::OfArguments(device) => {
                are_on_device(device.as_ref(), tensors.iter().copied())
            }
        }
    }

    /// The inputs of the program: the tensors of the arguments, then the captured tensors.
    pub fn inputs<'a>(&'a self, arguments: &[&'a RawTensor]) -> SmallVec<[&'a RawTensor; 16]> {
        let mut inputs = SmallVec::with_capacity(arguments.len() + self.traced.captured.len());
        inputs.extend(arguments.iter().map(|tensor| tensor.data()));
        inputs.extend(&self.traced.captured);
        inputs
    }

    /// Runs the program on the tensors of its arguments. Unless the options name a
    /// device, it runs on the device of the tensors, and compiles for that device if necessary.
    /// Errors about later uses of donated arguments name `caller`, or the function.
    ///
    /// # Errors
    /// Returns errors of the run, an error for arguments on two devices, and an error if
    /// `interrupt` returns `true`.
    pub fn run(
        &self,
        caller: Option<&str>,
        arguments: &[&RawTensor],
        options: &Options,
        interrupt: Option<&Interrupt<'_>>,
    ) -> Result<Vec<RawTensor>> {
        let span = profile::span_with(Work::Call, || format!("call {}", self.name).into());
        let context =
            RunContext { hooks: Some(&options.hooks), interrupt, ..RunContext::default() };
        let inputs = self.inputs(arguments);
        let executable = self.executable_for(arguments, &inputs, options, interrupt)?;
        let _span = span.detail("backend", || executable.backend());
        let results = if self.donated.is_empty() {
            executable.run(&inputs, &context)?
        } else {
            self.donated.check(&self.name, &inputs)?;
            executable.load(interrupt)?;
            let outcome = executable.run(&inputs, &context);
            let caller = caller.unwrap_or(&self.name);
            let donated = self.donated.donate_inputs(caller, &inputs, &outcome);
            let results = outcome?;
            donated?;
            results
        };
        check_count(&self.traced.program, &results)?;
        Ok(self.traced.vectors.put(results))
    }

    /// Returns the executable for the device of the arguments.
    fn executable_for(
        &self,
        arguments: &[&RawTensor],
        inputs: &[&RawTensor],
        options: &Options,
        interrupt: Option<&Interrupt<'_>>,
    ) -> Result<Arc<ExecutableHandle>> {
        if self.runs_on_device_of(arguments) {
            return Ok(self.executable.clone());
        }
        let device = common_device(&self.name, inputs.iter().copied())?;
        let lock = || self.elsewhere.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, executable)) = &*lock()
            && *known == device
        {
            return Ok(executable.clone());
        }
        let target = options.target(device.as_ref())?;
        let program = &self.traced.program;
        let (purpose, donated) = (self.purpose, self.donated.marks());
        let executable = compile_for(purpose, program, options, &target, donated, interrupt)?;
        let _no_fork = no_fork();
        *lock() = Some((device, executable.clone()));
        Ok(executable)
    }
}
