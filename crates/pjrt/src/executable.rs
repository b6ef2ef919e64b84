//! Compiled programs: compilation, serialization and properties.
//!
//! All facts that an execution needs are read once, here, so that an execution makes no other call
//! of the plugin.

use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};

use nxla_tensor::{DType, Shape};

use crate::client::{Client, non_null};
use crate::dtype;
use crate::error::Error;
use crate::host::HOST_CALL_TARGET;
use crate::in_flight::LongCall;
use crate::maps;
use crate::options::CompileOptions;
use crate::serialized::{self, ModuleFacts};
use crate::sys::*;
use crate::traffic;
use crate::value::{self, NamedValue};

/// A compiled program, loaded on the devices it runs on. Clones share it.
#[derive(Clone)]
pub struct LoadedExecutable {
    pub(crate) inner: Arc<Compiled>,
}

/// A program with its constant properties.
pub(crate) struct Compiled {
    // The fields are dropped in this order.
    program: Program,
    loaded: Loaded,
    pub(crate) client: Client,
    pub(crate) name: String,
    pub(crate) facts: ModuleFacts,
    pub(crate) outputs: Vec<(DType, Shape)>,
    /// Indices of the devices, in the order of argument lists.
    pub(crate) devices: Vec<usize>,
    /// The size of the serialized program in bytes, once it has been serialized.
    serialized: OnceLock<usize>,
}

// SAFETY: PJRT executables may be used and destroyed on any thread, and executed from several at
// once; the other fields never change.
unsafe impl Send for Compiled {}
// SAFETY: see `Send`.
unsafe impl Sync for Compiled {}

/// Memory a program needs to run, see [`LoadedExecutable::memory_stats`]. All in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryStats {
    /// Size of the arguments.
    pub arguments: i64,
    /// Size of the results.
    pub outputs: i64,
    /// The part of the arguments that is reused for results.
    pub aliased: i64,
    /// Intermediate values.
    pub temporaries: i64,
    /// Machine code.
    pub code: i64,
}

impl Client {
    /// Compiles a StableHLO module in MLIR's syntax, whose entry is `@main`.
    ///
    /// # Errors
    /// Returns [`Error::Compile`] with the compiler's message, [`Error::Option`], or
    /// [`Error::MapsExhausted`].
    ///
    /// ```
    /// # fn main() -> Result<(), nxla_pjrt::Error> {
    /// # if nxla_pjrt::discover(None).is_err() { return Ok(()) }
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
    pub fn compile(
        &self,
        stablehlo: &str,
        options: &CompileOptions,
    ) -> Result<LoadedExecutable, Error> {
        const FORMAT: &str = "mlir";
        maps::check()?;
        let mut program = PJRT_Program::new();
        // The field is `char*` because other functions write to it; compiling only reads.
        program.code = stablehlo.as_ptr().cast_mut();
        program.code_size = stablehlo.len();
        program.format = FORMAT.as_ptr();
        program.format_size = FORMAT.len();
        let options = options.to_proto()?;
        let mut args = PJRT_Client_Compile_Args::new();
        args.client = self.as_ptr();
        args.program = &raw const program;
        args.compile_options = options.as_ptr();
        args.compile_options_size = options.len();
        let _call = LongCall::begin();
        // SAFETY: the client is alive, and text, format and options outlive the call.
        unsafe { self.plugin().call(&mut args) }.map_err(as_compile_error)?;
        traffic::count_compiled();
        let loaded = non_null(&args, args.executable, &self.plugin())?;
        // SAFETY: this client has just created the executable, and this function owns it.
        unsafe { LoadedExecutable::new(loaded, self, facts_of(stablehlo)) }
    }

    /// Loads bytes that [`LoadedExecutable::serialize`] wrote.
    ///
    /// # Errors
    /// Returns [`Error::SerializedElsewhere`] for bytes of another compiler,
    /// [`Error::SerializedDamaged`], [`Error::MapsExhausted`], or an error of the plugin.
    pub fn deserialize(&self, bytes: &[u8]) -> Result<LoadedExecutable, Error> {
        let (facts, payload) = serialized::unwrap(self.fingerprint(), bytes)?;
        maps::check()?;
        let mut args = PJRT_Executable_DeserializeAndLoad_Args::new();
        args.client = self.as_ptr();
        args.serialized_executable = payload.as_ptr();
        args.serialized_executable_size = payload.len();
        let _call = LongCall::begin();
        // SAFETY: the client is alive and the bytes outlive the call.
        unsafe { self.plugin().call(&mut args)? };
        let loaded = non_null(&args, args.loaded_executable, &self.plugin())?;
        // SAFETY: this client has just loaded the executable, and this function owns it.
        let executable = unsafe { LoadedExecutable::new(loaded, self, facts)? };
        executable.inner.serialized.get_or_init(|| bytes.len());
        Ok(executable)
    }
}

impl LoadedExecutable {
    /// Takes ownership of a loaded executable and reads its constant properties.
    ///
    /// # Safety
    /// `loaded` is alive and belongs to `client`, and this handle alone destroys it.
    unsafe fn new(
        loaded: NonNull<PJRT_LoadedExecutable>,
        client: &Client,
        facts: ModuleFacts,
    ) -> Result<LoadedExecutable, Error> {
        let loaded = Loaded { raw: loaded, client: client.clone() };
        let mut args = PJRT_LoadedExecutable_GetExecutable_Args::new();
        args.loaded_executable = loaded.raw.as_ptr();
        // SAFETY: the loaded executable is alive. This function owns the executable.
        unsafe { client.plugin().call(&mut args)? };
        let program = non_null(&args, args.executable, &client.plugin())?;
        let mut inner = Compiled {
            program: Program { raw: program, client: client.clone() },
            loaded,
            client: client.clone(),
            name: String::new(),
            facts,
            outputs: Vec::new(),
            devices: Vec::new(),
            serialized: OnceLock::new(),
        };
        inner.read_name()?;
        inner.read_outputs()?;
        inner.read_devices()?;
        Ok(LoadedExecutable { inner: Arc::new(inner) })
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

    /// The number of arguments of the program, if its module declares it.
    #[must_use]
    pub fn num_args(&self) -> Option<usize> {
        self.inner.facts.num_args
    }

    /// Types and shapes of the results on one device.
    #[must_use]
    pub fn outputs(&self) -> &[(DType, Shape)] {
        &self.inner.outputs
    }

    /// The number of devices the program runs on together.
    #[must_use]
    pub fn num_devices(&self) -> usize {
        self.inner.devices.len()
    }

    /// The program as bytes that [`Client::deserialize`] of a client with an equal
    /// [fingerprint](Client::fingerprint) loads without compiling. They hold machine code for the
    /// present processor.
    ///
    /// # Errors
    /// Returns the error of the plugin. Some plugins cannot serialize some programs.
    pub fn serialize(&self) -> Result<Vec<u8>, Error> {
        let mut args = PJRT_Executable_Serialize_Args::new();
        args.executable = self.inner.program.raw.as_ptr();
        // SAFETY: the executable is alive. The bytes live until the deleter, which the plugin
        // returns with them, is called once.
        unsafe {
            self.inner.call(&mut args)?;
            let payload = value::slice(args.serialized_bytes, args.serialized_bytes_size);
            let fingerprint = self.inner.client.fingerprint();
            let bytes = serialized::wrap(fingerprint, self.inner.facts, payload);
            if let Some(delete) = args.serialized_executable_deleter {
                delete(args.serialized_executable);
            }
            self.inner.serialized.get_or_init(|| bytes.len());
            Ok(bytes)
        }
    }

    /// XLA's estimates, such as `flops` and `bytes accessed`.
    ///
    /// # Errors
    /// Returns the error of the plugin. Some plugins have no estimates.
    pub fn cost_analysis(&self) -> Result<Vec<(String, NamedValue)>, Error> {
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
    /// Returns the error of the plugin.
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

    /// The bytes of machine code by the plugin's statistics, else the length of the serialized
    /// executable; 0 if the plugin supports neither.
    pub fn code_bytes(&self) -> usize {
        let told = self.memory_stats().map_or(0, |stats| stats.code);
        if let Ok(told @ 1..) = usize::try_from(told) {
            return told;
        }
        // Serializing takes about as long as loading, so a known length is not computed again.
        let known = self.inner.serialized.get().copied();
        known.unwrap_or_else(|| self.serialize().map_or(0, |bytes| bytes.len()))
    }
}

impl Compiled {
    #[inline]
    pub(crate) fn as_ptr(&self) -> *mut PJRT_LoadedExecutable {
        self.loaded.raw.as_ptr()
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

    /// # Safety
    /// As for [`Plugin::call`](crate::Plugin).
    #[inline]
    pub(crate) unsafe fn call<A: Args>(&self, args: &mut A) -> Result<(), Error> {
        // SAFETY: the caller guarantees the requirements of `call`.
        unsafe { self.client.plugin().call(args) }
    }
}

impl std::fmt::Debug for LoadedExecutable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let inner = &self.inner;
        let outputs = inner.outputs.iter().map(|(dtype, shape)| format!("{dtype}{shape}"));
        f.debug_struct("LoadedExecutable")
            .field("name", &inner.name)
            .field("num_args", &inner.facts.num_args)
            .field("outputs", &outputs.collect::<Vec<_>>())
            .finish()
    }
}

/// Owns the loaded executable. Running executions hold their own references to its parts.
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

/// Owns the description of the program, which answers queries.
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

fn as_compile_error(error: Error) -> Error {
    match error {
        Error::Plugin { code, message, .. } => Error::Compile { code, message },
        other => other,
    }
}

fn facts_of(module: &str) -> ModuleFacts {
    let calls_host = module.contains(HOST_CALL_TARGET);
    ModuleFacts { num_args: count_parameters(module), calls_host }
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
    fn only_parameters_of_the_signature_are_counted() {
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
