//! The executable of XLA, which moves inputs to the device and leaves results on the device.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nxla_eval::EvalError;
use nxla_expr::{Program, TensorType};
use nxla_pjrt::{self as pjrt, Buffer, ExecuteOptions};
use nxla_stablehlo::{HostCall, LoweredModule};
use nxla_tensor::Names;
use smallvec::SmallVec;

use super::analysis::analysis;
use super::client::Target;
use super::hooks::{Run, depth, enter_nested, host_table};
use crate::analysis::Analysis;
use crate::auto::{estimate, has_loops};
use crate::background;
use crate::compiler::{CompileRequest, Executable, RunContext};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::out_of_memory::LargestValues;
use crate::profile::{self, Span, Work};
use crate::tensor::{DeviceTensor, RawTensor};
use crate::thresholds::WATCHED_SECONDS;

pub(super) struct XlaExecutable {
    primary: Arc<ClientExecutable>,
    /// The executables of substitute clients, by the number of the substitution, see [`Target::on_client`].
    /// A run uses a substitute if a thread of the first client waits for the run, or if an interrupted
    /// program occupies the first client.
    substitutes: Mutex<BTreeMap<usize, Arc<ClientExecutable>>>,
    /// Locked while a substitute is loaded, which may take long.
    loading: Mutex<()>,
    info: ProgramInfo,
    byte_size: usize,
}

/// The description of a compiled program.
pub(super) struct ProgramInfo {
    /// The name of runs in profiles.
    label: String,
    inputs: Vec<TensorType>,
    used_inputs: Vec<usize>,
    host_calls: Vec<HostCall>,
    /// True if the program has loops that may take long.
    has_long_loops: bool,
    /// The axis names of each output, because the device does not store them.
    names: Vec<Option<Names>>,
    /// The largest values, for errors about memory; `None` for an imported module.
    values: Option<Arc<LargestValues>>,
}

impl ProgramInfo {
    /// A program.
    pub(super) fn program(module: LoweredModule, request: &CompileRequest<'_>) -> Self {
        let program = request.program;
        Self {
            label: program.digest().to_string()[..8].to_owned(),
            inputs: program.inputs().to_vec(),
            used_inputs: module.used_inputs,
            host_calls: module.host_calls,
            has_long_loops: has_loops(program, |_| true) && !is_short(program),
            names: program.output_types().map(|ty| ty.names.clone()).collect(),
            values: Some(Arc::new(LargestValues::of(program))),
        }
    }

    /// Describes an imported module, which uses all of its inputs and has `outputs` outputs.
    #[cfg(feature = "import")]
    pub(super) fn imported_module(
        inputs: &[TensorType],
        outputs: usize,
        has_long_loops: bool,
    ) -> Self {
        let inputs = inputs.to_vec();
        let (label, used_inputs) = ("imported".to_owned(), (0..inputs.len()).collect());
        let names = vec![None; outputs];
        let (host_calls, values) = (Vec::new(), None);
        Self { label, inputs, used_inputs, host_calls, has_long_loops, names, values }
    }

    /// The positions of inputs among the inputs that the program uses.
    fn positions(&self, inputs: &[usize]) -> SmallVec<[i64; 4]> {
        let position = |input| self.used_inputs.iter().position(|used| used == input);
        inputs.iter().filter_map(position).map(|position| position as i64).collect()
    }
}

/// An executable on a client.
struct ClientExecutable {
    target: Target,
    executable: pjrt::LoadedExecutable,
}

impl ClientExecutable {
    /// Loads the same executable on another client.
    fn load_on_client(&self, distance: usize) -> Result<Self> {
        let target = self.target.on_client(distance)?;
        let executable = target.client.deserialize(&self.executable.serialize()?)?;
        Ok(Self { target, executable })
    }

    /// Returns the buffer of an input that is already on the device of the program.
    fn resident<'a>(&self, tensor: &'a RawTensor) -> Option<&'a Buffer> {
        let is_here = |buffer: &&Buffer| {
            *buffer.client() == self.target.client && buffer.device().index() == self.target.device
        };
        tensor.buffer().filter(is_here)
    }

    fn upload(&self, tensor: &RawTensor) -> Result<Buffer> {
        tensor.copy_in(&self.target.client, self.target.device)
    }
}

/// The memory of a loaded executable, measured with programs of 1 to 300 operations on XLA's CPU: at
/// least `LEAST_BYTES`, and a multiple of the machine code with an error of at most a fifth.
/// `docs/performance.md` contains the measurements.
const LEAST_BYTES: usize = 112 << 10;
const BYTES_PER_CODE_BYTE: usize = 12;

impl XlaExecutable {
    pub(super) fn new(
        target: Target,
        executable: pjrt::LoadedExecutable,
        info: ProgramInfo,
    ) -> Self {
        let byte_size = LEAST_BYTES + BYTES_PER_CODE_BYTE * executable.code_bytes();
        let primary = Arc::new(ClientExecutable { target, executable });
        let (substitutes, loading) = (Mutex::default(), Mutex::default());
        Self { primary, substitutes, loading, info, byte_size }
    }

    /// Checks that the inputs have the types of the program.
    fn check(&self, inputs: &[&RawTensor]) -> Result<()> {
        let expected = &self.info.inputs;
        let fits = inputs.len() == expected.len()
            && inputs
                .iter()
                .zip(expected)
                .map(|(tensor, ty)| (tensor.data(), ty))
                .all(|(tensor, ty)| tensor.dtype() == ty.dtype && *tensor.shape() == ty.shape);
        if fits {
            return Ok(());
        }
        let list = |types: Vec<String>| types.join(", ");
        let found = list(inputs.iter().map(|tensor| tensor.ty().to_string()).collect());
        let expected = list(expected.iter().map(ToString::to_string).collect());
        let why = format!("arguments: must be ({expected}); got ({found})");
        Err(Error::Arguments { function: "compiled program".into(), why })
    }

    /// Returns the executable for a run on this thread. It belongs to another client with free threads
    /// if a thread of the first client waits for the run, or an interrupted program occupies the client.
    ///
    /// # Errors
    /// Returns an error for a plugin that cannot create a second client or load executables for it.
    fn executable_for_thread(&self) -> Result<Arc<ClientExecutable>> {
        let distance = self.primary.target.distance(depth());
        if distance == 0 {
            return Ok(self.primary.clone());
        }
        let known = || self.lock_substitutes().get(&distance).cloned();
        if let Some(executable) = known() {
            return Ok(executable);
        }
        let _loading = self.loading.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(executable) = known() {
            return Ok(executable);
        }
        let executable = Arc::new(self.primary.load_on_client(distance).map_err(|error| {
            Error::Usage(format!(
                "the device has no memory for a second program while it runs another one (a \
                 runtime call that runs this program, or an interrupted program): {error}"
            ))
        })?);
        self.lock_substitutes().insert(distance, executable.clone());
        Ok(executable)
    }

    fn lock_substitutes(&self) -> MutexGuard<'_, BTreeMap<usize, Arc<ClientExecutable>>> {
        self.substitutes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Names the operation in an error about memory.
    fn explain(&self, error: Error) -> Error {
        match (error, &self.info.values) {
            (Error::Pjrt(error), Some(values)) => values.explain(error),
            (error, _) => error,
        }
    }

    fn execute(
        &self,
        current: &ClientExecutable,
        buffers: &[&Buffer],
        context: &RunContext<'_>,
    ) -> Result<Vec<Buffer>> {
        let ProgramInfo { host_calls, has_long_loops, .. } = &self.info;
        let plain = host_calls.is_empty() && !(*has_long_loops && context.interrupt.is_some());
        if plain {
            let kept = self.info.positions(context.kept);
            let options = ExecuteOptions { non_donatable: &kept, ..ExecuteOptions::default() };
            return Ok(current.executable.execute(buffers, &options)?);
        }
        self.execute_elsewhere(current, buffers, context)
    }

    /// Executes on another thread. XLA may run the whole program on the thread that starts it, but the
    /// current thread must call hooks and check for interrupts.
    ///
    /// The method waits until a program with hooks has ended, so that it can return an error of a hook.
    fn execute_elsewhere(
        &self,
        current: &ClientExecutable,
        buffers: &[&Buffer],
        context: &RunContext<'_>,
    ) -> Result<Vec<Buffer>> {
        let _nested = enter_nested();
        let run = Arc::new(Run::new());
        let calls = &self.info.host_calls;
        let table = (!calls.is_empty()).then(|| Arc::new(host_table(calls, &run)));
        let executable = current.executable.clone();
        let buffers: Vec<Buffer> = buffers.iter().map(|&buffer| buffer.clone()).collect();
        let report = run.clone();
        let kept = self.info.positions(context.kept);
        background::start("nxla run", move || {
            let buffers: SmallVec<[&Buffer; 16]> = buffers.iter().collect();
            let options = ExecuteOptions { non_donatable: &kept, ..ExecuteOptions::default() };
            let Some(table) = &table else {
                let results = executable.execute(&buffers, &options);
                report.record_end(Ok(()));
                return report.record_start(results);
            };
            let options = ExecuteOptions { host_calls: Some(table), ..options };
            let started = executable.execute_with_event(&buffers, &options);
            report.record_start(started.and_then(|(results, done)| {
                let report = report.clone();
                done.on_ready(move |outcome| report.record_end(outcome))?;
                Ok(results)
            }));
        })?;
        let outcome = run.serve(calls, context);
        if matches!(outcome, Err(Error::Eval(EvalError::Interrupted))) {
            run.abandon(&current.target.client);
        }
        outcome
    }
}

/// Returns `true` if a program is too short for a thread, whose start takes some 30 microseconds.
fn is_short(program: &Program) -> bool {
    estimate(program).seconds().is_some_and(|seconds| seconds <= WATCHED_SECONDS)
}

impl Executable for XlaExecutable {
    fn run(&self, inputs: &[&RawTensor], context: &RunContext<'_>) -> Result<Vec<RawTensor>> {
        self.check(inputs)?;
        let current = self.executable_for_thread()?;
        let name = || format!("run {} on xla", self.info.label).into();
        let span = profile::span_with(Work::Run, name);
        let used_inputs = &self.info.used_inputs;
        let mut uploaded: SmallVec<[Buffer; 8]> = SmallVec::new();
        for &input in used_inputs {
            if current.resident(inputs[input]).is_none() {
                uploaded.push(current.upload(inputs[input])?);
            }
        }
        let mut fresh = uploaded.iter();
        let mut buffers: SmallVec<[&Buffer; 16]> = SmallVec::with_capacity(used_inputs.len());
        for &input in used_inputs {
            let buffer = current.resident(inputs[input]).or_else(|| fresh.next());
            buffers.push(buffer.expect("missing buffers have been uploaded"));
        }
        let results =
            self.execute(&current, &buffers, context).map_err(|error| self.explain(error))?;
        if profile::is_profiled() {
            show_on_device(&span, &results)?;
        }
        // `collect` into a `Result` does not reserve the vector's memory, because its iterator has no lower
        // size bound.
        let mut tensors = Vec::with_capacity(results.len());
        for (buffer, names) in results.into_iter().zip(&self.info.names) {
            let tensor = match &self.info.values {
                Some(values) => DeviceTensor::new(buffer).computed_by(values.clone()),
                None => DeviceTensor::new(buffer),
            };
            tensors.push(RawTensor::Device(match names {
                None => tensor,
                names => tensor.with_names(names.clone())?,
            }));
        }
        Ok(tensors)
    }

    fn byte_size(&self) -> usize {
        self.byte_size * (1 + self.lock_substitutes().len())
    }

    fn analysis(&self) -> Result<Analysis> {
        analysis(&self.primary.executable)
    }
}

/// Shows in the profile for how long a device is at work on results.
fn show_on_device(span: &Span, results: &[Buffer]) -> Result<()> {
    let Some(first) = results.first() else { return Ok(()) };
    if let Some(end) = span.on_device(&Device::of_buffer(first).to_string()) {
        first.on_ready(move |_| end())?;
    }
    Ok(())
}
