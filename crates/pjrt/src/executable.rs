//! Compiled programs and their execution.
//!
//! [`Executable::execute`] is the hot path of everything above this crate: it asks the plugin
//! nothing but to execute, takes no lock, and allocates only the buffers it returns. Types of the
//! results are read once, when the program is compiled.

use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

use nxla_tensor::{DType, Shape};

use crate::buffer::Buffer;
use crate::client::{Client, non_null};
use crate::dtype;
use crate::error::Error;
use crate::event::Event;
use crate::ffi::ExecutionContext;
use crate::options::{CompileOptions, ExecuteOptions};
use crate::scratch::with_scratch;
use crate::serialized;
use crate::sys::*;
use crate::value::{self, Value};

/// A compiled program, loaded on the devices it runs on. Clones share it.
#[derive(Clone)]
pub struct Executable {
    inner: Arc<Inner>,
}

struct Inner {
    // Dropped in this order.
    program: Program,
    loaded: Loaded,
    client: Client,
    name: String,
    /// Unknown for a module whose text has no plain `@main`; the plugin checks in any case.
    num_args: Option<usize>,
    outputs: Vec<(DType, Shape)>,
    /// Indices of the devices, in the order of argument lists. Empty for a portable program.
    devices: Vec<usize>,
}

// SAFETY: PJRT executables may be used and destroyed on any thread, and executed from several at
// once; the other fields never change.
unsafe impl Send for Inner {}
// SAFETY: see `Send`.
unsafe impl Sync for Inner {}

/// Memory a program needs to run, see [`Executable::memory_stats`]. All in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryStats {
    /// Size of the arguments.
    pub arguments: i64,
    /// Size of the results.
    pub outputs: i64,
    /// How much of the arguments is reused for results.
    pub aliased: i64,
    /// Intermediate values.
    pub temporaries: i64,
    /// Machine code.
    pub code: i64,
}

impl Client {
    /// Compiles a StableHLO module, given as text, whose entry is `@main`.
    ///
    /// # Errors
    /// [`Error::Compile`] with the compiler's message.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), nxla_pjrt::Error> {
    /// use nxla_pjrt::{Client, CompileOptions, Plugin, discover};
    ///
    /// let client = Client::new(&Plugin::load(discover(None)?)?, &[])?;
    /// let text = "func.func @main(%x: tensor<f32>) -> tensor<f32> {
    ///     %y = stablehlo.negate %x : tensor<f32>
    ///     return %y : tensor<f32>
    /// }";
    /// let program = client.compile(text, &CompileOptions::default())?;
    /// assert_eq!(program.num_args(), Some(1));
    /// # Ok(()) }
    /// ```
    pub fn compile(&self, stablehlo: &str, options: &CompileOptions) -> Result<Executable, Error> {
        const FORMAT: &str = "mlir";
        let mut program = PJRT_Program::new();
        // The field is `char*` because other functions write to it; compiling only reads.
        program.code = stablehlo.as_ptr().cast_mut();
        program.code_size = stablehlo.len();
        program.format = FORMAT.as_ptr();
        program.format_size = FORMAT.len();
        let options = options.to_proto();
        let mut args = PJRT_Client_Compile_Args::new();
        args.client = self.as_ptr();
        args.program = &raw const program;
        args.compile_options = options.as_ptr();
        args.compile_options_size = options.len();
        // SAFETY: the client is alive, and text, format and options outlive the call.
        unsafe { self.plugin().call(&mut args) }.map_err(as_compile_error)?;
        let function = PJRT_Client_Compile_Args::FUNCTION;
        let loaded = non_null(args.executable, function, &self.plugin())?;
        // SAFETY: the executable was just made with this client and is ours.
        unsafe { Executable::new(loaded, self, count_parameters(stablehlo)) }
    }

    /// Loads what [`Executable::serialize`] wrote.
    ///
    /// # Errors
    /// [`Error::SerializedElsewhere`] for bytes of another compiler, [`Error::SerializedDamaged`],
    /// or what the plugin reports.
    pub fn deserialize(&self, bytes: &[u8]) -> Result<Executable, Error> {
        let (num_args, payload) = serialized::unwrap(self.fingerprint(), bytes)?;
        let mut args = PJRT_Executable_DeserializeAndLoad_Args::new();
        args.client = self.as_ptr();
        args.serialized_executable = payload.as_ptr();
        args.serialized_executable_size = payload.len();
        // SAFETY: the client is alive and the bytes outlive the call.
        unsafe { self.plugin().call(&mut args)? };
        let function = PJRT_Executable_DeserializeAndLoad_Args::FUNCTION;
        let loaded = non_null(args.loaded_executable, function, &self.plugin())?;
        // SAFETY: the executable was just loaded with this client and is ours.
        unsafe { Executable::new(loaded, self, num_args) }
    }
}

impl Executable {
    /// Takes ownership of a loaded executable and reads what never changes about it.
    ///
    /// # Safety
    /// `loaded` is alive, belongs to `client`, and nobody else destroys it.
    unsafe fn new(
        loaded: NonNull<PJRT_LoadedExecutable>,
        client: &Client,
        num_args: Option<usize>,
    ) -> Result<Executable, Error> {
        let loaded = Loaded { raw: loaded, client: client.clone() };
        let mut args = PJRT_LoadedExecutable_GetExecutable_Args::new();
        args.loaded_executable = loaded.raw.as_ptr();
        // SAFETY: the loaded executable is alive. The executable is ours.
        unsafe { client.plugin().call(&mut args)? };
        let function = PJRT_LoadedExecutable_GetExecutable_Args::FUNCTION;
        let program = non_null(args.executable, function, &client.plugin())?;
        let mut inner = Inner {
            program: Program { raw: program, client: client.clone() },
            loaded,
            client: client.clone(),
            name: String::new(),
            num_args,
            outputs: Vec::new(),
            devices: Vec::new(),
        };
        inner.read_name()?;
        inner.read_outputs()?;
        inner.read_devices()?;
        Ok(Executable { inner: Arc::new(inner) })
    }

    /// The client the program belongs to.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.inner.client
    }

    /// The name of the module.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// How many arguments the program takes, as far as its text tells.
    #[must_use]
    pub fn num_args(&self) -> Option<usize> {
        self.inner.num_args
    }

    /// Types and shapes of the results on one device.
    #[must_use]
    pub fn outputs(&self) -> &[(DType, Shape)] {
        &self.inner.outputs
    }

    /// The number of devices the program runs on together.
    #[must_use]
    pub fn num_devices(&self) -> usize {
        self.inner.devices.len().max(1)
    }

    /// Starts the program on one device and returns its results, without waiting for them.
    ///
    /// Arguments that the program declares as donated (`tf.aliasing_output`,
    /// `jax.buffer_donor`) are deleted, unless [`ExecuteOptions::non_donatable`] lists them.
    ///
    /// # Errors
    /// [`Error::ArgumentCount`], [`Error::ForeignObject`], [`Error::DeviceCount`] for a program of
    /// several devices, or what the plugin reports, such as a deleted argument or one of the wrong
    /// size. Errors of the running program show when its results are read.
    #[inline]
    pub fn execute(
        &self,
        args: &[&Buffer],
        options: &ExecuteOptions<'_>,
    ) -> Result<Vec<Buffer>, Error> {
        let (outputs, _) = self.execute_on_one(args, options, false)?;
        Ok(outputs)
    }

    /// [`execute`](Executable::execute), with an event for the end of the execution: for programs
    /// that are run for their effects and may have no results.
    ///
    /// # Errors
    /// As for [`execute`](Executable::execute).
    pub fn execute_with_event(
        &self,
        args: &[&Buffer],
        options: &ExecuteOptions<'_>,
    ) -> Result<(Vec<Buffer>, Option<Event>), Error> {
        self.execute_on_one(args, options, true)
    }

    fn execute_on_one(
        &self,
        args: &[&Buffer],
        options: &ExecuteOptions<'_>,
        wants_event: bool,
    ) -> Result<(Vec<Buffer>, Option<Event>), Error> {
        let inner = &*self.inner;
        let device = match (options.device, &inner.devices[..]) {
            (Some(device), _) => inner.client.index_of(device)?,
            (None, [device]) => *device,
            (None, []) => 0,
            (None, devices) => {
                return Err(inner.device_count(devices.len(), 1));
            }
        };
        with_scratch(args.len(), null_mut(), |inputs| {
            inner.check_args(args, inputs)?;
            with_scratch(inner.outputs.len(), null_mut(), |outputs| {
                let mut event = null_mut();
                let context = ExecutionContext::create(&inner.client, options)?;
                let mut launch = Launch {
                    argument_lists: &[inputs.as_ptr()],
                    output_lists: &[outputs.as_mut_ptr()],
                    num_args: inputs.len(),
                    events: null_mut(),
                    device: null_mut(),
                    context: null_mut(),
                };
                if wants_event || context.is_some() {
                    launch.events = &raw mut event;
                }
                if options.device.is_some() || inner.devices.is_empty() {
                    launch.device = inner.client.devices()[device].as_ptr();
                }
                if let Some(context) = &context {
                    launch.context = context.as_ptr();
                }
                // SAFETY: the lists have the lengths the program expects, on one device.
                unsafe { inner.launch(&launch, options)? };
                // SAFETY: the event, if one was asked for, and the buffers are ours.
                unsafe {
                    let event = Event::from_raw(event, &inner.client);
                    keep_until_done(context, event.as_ref())?;
                    Ok((inner.take_outputs(outputs, device), event.filter(|_| wants_event)))
                }
            })
        })
    }

    /// Starts a program of several replicas or partitions: one list of arguments for each of its
    /// devices, and as many lists of results.
    ///
    /// # Errors
    /// As for [`execute`](Executable::execute); [`Error::DeviceCount`] if the number of lists is
    /// not the number of devices.
    pub fn execute_on_all(
        &self,
        args: &[&[&Buffer]],
        options: &ExecuteOptions<'_>,
    ) -> Result<Vec<Vec<Buffer>>, Error> {
        let inner = &*self.inner;
        if args.len() != inner.devices.len() {
            return Err(inner.device_count(inner.devices.len(), args.len()));
        }
        let num_args = args.first().map_or(0, |list| list.len());
        let mut inputs = Vec::with_capacity(args.len());
        for list in args {
            let mut raw = vec![null_mut(); num_args];
            if list.len() != num_args {
                return Err(inner.argument_count(num_args, list.len()));
            }
            inner.check_args(list, &mut raw)?;
            inputs.push(raw);
        }
        let mut outputs = vec![vec![null_mut(); inner.outputs.len()]; args.len()];
        let mut events = vec![null_mut(); args.len()];
        let context = ExecutionContext::create(&inner.client, options)?;
        let argument_lists: Vec<_> = inputs.iter().map(|list| list.as_ptr()).collect();
        let output_lists: Vec<_> = outputs.iter_mut().map(|list| list.as_mut_ptr()).collect();
        let launch = Launch {
            argument_lists: &argument_lists,
            output_lists: &output_lists,
            num_args,
            events: events.as_mut_ptr(),
            device: null_mut(),
            context: context.as_ref().map_or(null_mut(), ExecutionContext::as_ptr),
        };
        // SAFETY: there is one list of each kind per device, with the lengths the program expects.
        unsafe { inner.launch(&launch, options)? };
        let context = context.map(Arc::new);
        for event in events {
            // SAFETY: the events are ours.
            let event = unsafe { Event::from_raw(event, &inner.client) };
            keep_until_done(context.clone(), event.as_ref())?;
        }
        let devices = inner.devices.iter();
        // SAFETY: the buffers are ours.
        Ok(outputs
            .iter()
            .zip(devices)
            .map(|(raw, &device)| unsafe { inner.take_outputs(raw, device) })
            .collect())
    }

    /// The program as bytes that [`Client::deserialize`] of a client with an equal
    /// [fingerprint](Client::fingerprint) loads without compiling. They hold machine code for the
    /// processor at hand.
    ///
    /// # Errors
    /// What the plugin reports; not all plugins serialize all programs.
    pub fn serialize(&self) -> Result<Vec<u8>, Error> {
        let mut args = PJRT_Executable_Serialize_Args::new();
        args.executable = self.inner.program.raw.as_ptr();
        // SAFETY: the executable is alive. The bytes live until the deleter, which the plugin
        // gives with them, is called once.
        unsafe {
            self.inner.call(&mut args)?;
            let payload = value::slice(args.serialized_bytes, args.serialized_bytes_size);
            let fingerprint = self.inner.client.fingerprint();
            let bytes = serialized::wrap(fingerprint, self.inner.num_args, payload);
            if let Some(delete) = args.serialized_executable_deleter {
                delete(args.serialized_executable);
            }
            Ok(bytes)
        }
    }

    /// A text that is equal for equal programs compiled alike.
    ///
    /// # Errors
    /// What the plugin reports; not all plugins have fingerprints.
    pub fn fingerprint(&self) -> Result<String, Error> {
        let mut args = PJRT_Executable_Fingerprint_Args::new();
        args.executable = self.inner.program.raw.as_ptr();
        // SAFETY: the executable is alive, and the text lives as long as it.
        unsafe {
            self.inner.call(&mut args)?;
            Ok(value::text(args.executable_fingerprint, args.executable_fingerprint_size))
        }
    }

    /// XLA's estimates, such as `flops` and `bytes accessed`.
    ///
    /// # Errors
    /// What the plugin reports; not all plugins estimate.
    pub fn cost_analysis(&self) -> Result<Vec<(String, Value)>, Error> {
        let mut args = PJRT_Executable_GetCostAnalysis_Args::new();
        args.executable = self.inner.program.raw.as_ptr();
        // SAFETY: the executable is alive, and the properties live as long as it.
        unsafe {
            self.inner.call(&mut args)?;
            Ok(value::from_raw(args.properties, args.num_properties))
        }
    }

    /// The memory the program needs on one device.
    ///
    /// # Errors
    /// What the plugin reports.
    pub fn memory_stats(&self) -> Result<MemoryStats, Error> {
        let mut args = PJRT_Executable_GetCompiledMemoryStats_Args::new();
        args.executable = self.inner.program.raw.as_ptr();
        // SAFETY: the executable is alive.
        unsafe { self.inner.call(&mut args)? };
        Ok(MemoryStats {
            arguments: args.argument_size_in_bytes,
            outputs: args.output_size_in_bytes,
            aliased: args.alias_size_in_bytes,
            temporaries: args.temp_size_in_bytes,
            code: args.generated_code_size_in_bytes,
        })
    }
}

/// The pointers of one execution.
struct Launch<'a> {
    argument_lists: &'a [*const *mut PJRT_Buffer],
    output_lists: &'a [*mut *mut PJRT_Buffer],
    num_args: usize,
    /// Null, or room for one event per device.
    events: *mut *mut PJRT_Event,
    /// Null, or the only device.
    device: *mut PJRT_Device,
    context: *mut PJRT_ExecuteContext,
}

impl Inner {
    /// Checks number and origin of the arguments and collects their pointers.
    #[inline]
    fn check_args(&self, args: &[&Buffer], raw: &mut [*mut PJRT_Buffer]) -> Result<(), Error> {
        if let Some(expected) = self.num_args.filter(|&expected| expected != args.len()) {
            return Err(self.argument_count(expected, args.len()));
        }
        for (index, (to, arg)) in raw.iter_mut().zip(args).enumerate() {
            if !arg.client().is(&self.client) {
                return Err(Error::ForeignObject { what: format!("argument {index}") });
            }
            *to = arg.as_ptr();
        }
        Ok(())
    }

    /// Calls the plugin.
    ///
    /// # Safety
    /// There is one argument list of `num_args` living buffers and one output list with room for
    /// all results per device, and room for as many events, if any.
    #[inline]
    unsafe fn launch(
        &self,
        launch: &Launch<'_>,
        options: &ExecuteOptions<'_>,
    ) -> Result<(), Error> {
        let mut execute_options = PJRT_ExecuteOptions::new();
        execute_options.launch_id = options.launch_id;
        execute_options.non_donatable_input_indices = options.non_donatable.as_ptr();
        execute_options.num_non_donatable_input_indices = options.non_donatable.len();
        execute_options.context = launch.context;
        let mut args = PJRT_LoadedExecutable_Execute_Args::new();
        args.executable = self.loaded.raw.as_ptr();
        args.options = &raw mut execute_options;
        args.argument_lists = launch.argument_lists.as_ptr();
        args.num_devices = launch.argument_lists.len();
        args.num_args = launch.num_args;
        args.output_lists = launch.output_lists.as_ptr();
        args.device_complete_events = launch.events;
        args.execute_device = launch.device;
        // SAFETY: the executable is alive, the lists are as the caller vouches, and everything
        // that is pointed to outlives the call.
        unsafe { self.call(&mut args) }
    }

    /// Wraps the results of a successful execution.
    ///
    /// # Safety
    /// `raw` holds the results on `device`, and they are ours.
    #[inline]
    unsafe fn take_outputs(&self, raw: &[*mut PJRT_Buffer], device: usize) -> Vec<Buffer> {
        let wrap = |(&raw, (dtype, shape)): (&*mut PJRT_Buffer, &(DType, Shape))| {
            let raw = NonNull::new(raw).expect("a successful execution fills the output list");
            // SAFETY: the caller vouches for the buffer; its type was read from the program.
            unsafe { Buffer::new(raw, self.client.clone(), device, *dtype, shape.clone()) }
        };
        raw.iter().zip(&self.outputs).map(wrap).collect()
    }

    fn read_name(&mut self) -> Result<(), Error> {
        let mut args = PJRT_Executable_Name_Args::new();
        args.executable = self.program.raw.as_ptr();
        // SAFETY: the executable is alive, and the name lives as long as it.
        unsafe {
            self.call(&mut args)?;
            self.name = value::text(args.executable_name, args.executable_name_size);
        }
        Ok(())
    }

    fn read_outputs(&mut self) -> Result<(), Error> {
        let mut count = PJRT_Executable_NumOutputs_Args::new();
        count.executable = self.program.raw.as_ptr();
        let mut types = PJRT_Executable_OutputElementTypes_Args::new();
        types.executable = self.program.raw.as_ptr();
        let mut dims = PJRT_Executable_OutputDimensions_Args::new();
        dims.executable = self.program.raw.as_ptr();
        // SAFETY: the executable is alive, and the arrays live as long as it. There is one type
        // and one rank per output, and the dimensions of all outputs follow each other.
        unsafe {
            self.call(&mut count)?;
            self.call(&mut types)?;
            self.call(&mut dims)?;
            let types = value::slice(types.output_types.cast_const(), types.num_output_types);
            let ranks = value::slice(dims.dim_sizes, dims.num_outputs);
            let mut dims = value::slice(dims.dims, ranks.iter().sum()).iter();
            for (&code, &rank) in types.iter().zip(ranks).take(count.num_outputs) {
                let shape = dims.by_ref().take(rank).map(|&dim| dim as usize).collect();
                self.outputs.push((dtype::from_pjrt(code)?, shape));
            }
        }
        Ok(())
    }

    fn read_devices(&mut self) -> Result<(), Error> {
        let mut args = PJRT_LoadedExecutable_AddressableDevices_Args::new();
        args.executable = self.loaded.raw.as_ptr();
        // SAFETY: the executable is alive, and the array lives as long as it.
        let raw = unsafe {
            self.call(&mut args)?;
            value::slice(args.addressable_devices, args.num_addressable_devices)
        };
        self.devices = raw.iter().filter_map(|&device| self.client.index_of_raw(device)).collect();
        Ok(())
    }

    #[cold]
    fn argument_count(&self, expected: usize, actual: usize) -> Error {
        Error::ArgumentCount { executable: self.name.clone(), expected, actual }
    }

    #[cold]
    fn device_count(&self, expected: usize, actual: usize) -> Error {
        Error::DeviceCount { executable: self.name.clone(), expected, actual }
    }

    /// # Safety
    /// As for [`Plugin::call`](crate::Plugin).
    #[inline]
    unsafe fn call<A: Args>(&self, args: &mut A) -> Result<(), Error> {
        // SAFETY: passed on to the caller.
        unsafe { self.client.plugin().call(args) }
    }
}

impl std::fmt::Debug for Executable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let inner = &self.inner;
        let outputs = inner.outputs.iter().map(|(dtype, shape)| format!("{dtype}{shape}"));
        f.debug_struct("Executable")
            .field("name", &inner.name)
            .field("num_args", &inner.num_args)
            .field("outputs", &outputs.collect::<Vec<_>>())
            .finish()
    }
}

/// Owns what can be executed. Executions that still run hold what they need of it themselves.
struct Loaded {
    raw: NonNull<PJRT_LoadedExecutable>,
    client: Client,
}

impl Drop for Loaded {
    fn drop(&mut self) {
        let mut args = PJRT_LoadedExecutable_Destroy_Args::new();
        args.executable = self.raw.as_ptr();
        // SAFETY: the executable is alive, and this is its last use. An error cannot be reported
        // from here.
        let _ = unsafe { self.client.plugin().call(&mut args) };
    }
}

/// Owns what can be asked about the program.
struct Program {
    raw: NonNull<PJRT_Executable>,
    client: Client,
}

impl Drop for Program {
    fn drop(&mut self) {
        let mut args = PJRT_Executable_Destroy_Args::new();
        args.executable = self.raw.as_ptr();
        // SAFETY: the executable is alive, and this is its last use. An error cannot be reported
        // from here.
        let _ = unsafe { self.client.plugin().call(&mut args) };
    }
}

/// Keeps what an execution uses until it is over. No event means that it is over.
fn keep_until_done<T: Send + Sync + 'static>(
    context: Option<T>,
    event: Option<&Event>,
) -> Result<(), Error> {
    let (Some(context), Some(event)) = (context, event) else {
        return Ok(());
    };
    let context = Arc::new(context);
    let kept = context.clone();
    event.on_ready(move |_| drop(kept)).inspect_err(|_| {
        // Nobody will tell when the execution is over, so the context has to stay.
        std::mem::forget(context);
    })
}

fn as_compile_error(error: Error) -> Error {
    match error {
        Error::Plugin { code, message, .. } => Error::Compile { code, message },
        other => other,
    }
}

/// Counts the parameters of `@main`: each has one `%` in the signature, and attributes have none
/// outside of strings.
fn count_parameters(module: &str) -> Option<usize> {
    let (_, signature) = module.split_once("@main(")?;
    let (mut depth, mut count, mut in_string) = (1_u32, 0, false);
    let mut bytes = signature.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' if in_string => drop(bytes.next()),
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'(' => depth += 1,
            b')' => depth -= 1,
            b'%' => count += 1,
            _ => {}
        }
        if depth == 0 {
            return Some(count);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::count_parameters;

    #[test]
    fn parameters_are_counted_in_the_signature_only() {
        for (module, expected) in [
            ("func.func @main() -> tensor<f32>", Some(0)),
            ("func.func public @main(%arg0: tensor<f32>) { %0 = f(%arg0) }", Some(1)),
            ("@main(%a: tensor<2xf32> {x = \"%)\\\"%\", y = f(1)} loc(\"(\"), %b: i1)", Some(2)),
            ("func.func @other(%a: tensor<f32>)", None),
            ("@main(%a: tensor<f32>", None),
        ] {
            assert_eq!(count_parameters(module), expected, "{module}");
        }
    }
}
