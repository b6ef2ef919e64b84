//! Errors, with the messages of the plugin.

use std::fmt;
use std::path::PathBuf;

use nxla_tensor::TensorError;

use crate::plugin::MIN_MINOR;

/// An error of this crate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// [`discover`](crate::discover()) found nothing.
    #[error(
        "no PJRT plugin found; looked for {}; install one with `pip install \"nxla[xla]\"` or \
         `pip install fastatomstruct-xla-cpu`, or set NXLA_PJRT_PLUGIN to the path of a plugin",
        searched.join(", ")
    )]
    NoPlugin {
        /// Every path that was searched, in order.
        searched: Vec<String>,
    },
    /// [`discover`](crate::discover()) found nothing for a platform that was named.
    #[error(
        "no PJRT plugin found for {platform}; looked for {}; install one (`pip install \
         \"nxla[cuda13]\"`, or \"nxla[cuda12]\" for drivers before 580, is for CUDA), or set \
         NXLA_PJRT_PLUGIN to the path of a plugin",
        searched.join(", ")
    )]
    NoPluginFor {
        /// The name of the platform.
        platform: String,
        /// Every path that was searched, in order.
        searched: Vec<String>,
    },
    /// The file to load does not exist.
    #[error(
        "PJRT plugin {} does not exist; pass the path of a shared library, or install a plugin \
         with `pip install fastatomstruct-xla-cpu`",
        path.display()
    )]
    PluginMissing {
        /// The path as given.
        path: PathBuf,
    },
    /// The dynamic linker rejected the file.
    #[error(
        "{} cannot be loaded as a shared library: {reason}; a PJRT plugin is a shared library \
         built for this system",
        path.display()
    )]
    NotALibrary {
        /// The path as given.
        path: PathBuf,
        /// The dynamic linker's message.
        reason: String,
    },
    /// The file ended a process that loaded it.
    #[error(
        "loading the PJRT plugin {} ends the process (signal {signal}); the file may be damaged, \
         or built for another machine",
        path.display()
    )]
    EndsProcess {
        /// The plugin's path.
        path: PathBuf,
        /// The signal by which the process ended.
        signal: i32,
    },
    /// The process was forked off one that had a plugin, whose threads stayed there.
    #[error(
        "XLA cannot be used in a forked process, because its threads exist only in the parent; \
         start processes by \"spawn\" or \"forkserver\", or use the evaluator"
    )]
    Forked,
    /// The file is a shared library, but not a plugin.
    #[error(
        "{} is not a PJRT plugin: it has no usable GetPjrtApi function; for CPU, run `pip \
         install fastatomstruct-xla-cpu`",
        path.display()
    )]
    NotAPlugin {
        /// The path as given.
        path: PathBuf,
    },
    /// The plugin speaks another version of the API.
    #[error(
        "PJRT plugin {}: API version must be 0.{MIN_MINOR} or a later 0.x; got {major}.{minor}; \
         install a matching plugin",
        path.display()
    )]
    IncompatibleVersion {
        /// The path as given.
        path: PathBuf,
        /// The plugin's major version.
        major: i32,
        /// The plugin's minor version.
        minor: i32,
    },
    /// The plugin is known to compute wrong results or to damage memory.
    #[error(
        "the PJRT plugin {} (API {version}) is rejected: {fault}; {remedy}, or set {}=1 to use \
         it anyway",
        path.display(),
        crate::faults::FAULTS_VARIABLE
    )]
    KnownFault {
        /// The plugin's path.
        path: PathBuf,
        /// The plugin's API version.
        version: String,
        /// The fault.
        fault: &'static str,
        /// The plugin to install instead.
        remedy: &'static str,
    },
    /// An option that the plugin would crash on.
    #[error("option {name}: {reason}; got {given}")]
    Option {
        /// The name of the option.
        name: &'static str,
        /// The requirement.
        reason: &'static str,
        /// The value.
        given: String,
    },
    /// The plugin found no device it can use.
    #[error("the PJRT plugin {} found no device", path.display())]
    NoDevices {
        /// The plugin's path.
        path: PathBuf,
    },
    /// The plugin lacks a function.
    #[error("the PJRT plugin {} (API {version}) does not implement {function}", path.display())]
    Unsupported {
        /// The function of the C API.
        function: &'static str,
        /// The plugin's path.
        path: PathBuf,
        /// The plugin's API version.
        version: String,
    },
    /// A function of the plugin reported success and returned no object.
    #[error("the PJRT plugin {} (API {version}) returned a null pointer from {function}", path.display())]
    NullResult {
        /// The function of the C API.
        function: &'static str,
        /// The plugin's path.
        path: PathBuf,
        /// The plugin's API version.
        version: String,
    },
    /// A call into the plugin failed, or an asynchronous operation did.
    #[error("{message} ({code}, from {function})")]
    Plugin {
        /// The function of the C API that reported the error.
        function: &'static str,
        /// The kind of error.
        code: ErrorCode,
        /// The plugin's message.
        message: String,
    },
    /// The plugin rejected a program.
    #[error("compilation failed: {message} ({code})")]
    Compile {
        /// The kind of error.
        code: ErrorCode,
        /// The compiler's message.
        message: String,
    },
    /// The process could not hold the code of another program.
    #[error(
        "cannot load another compiled program: each needs memory maps, and the process has \
         {maps} of at most {limit}; delete unused compiled functions, or raise vm.max_map_count"
    )]
    MapsExhausted {
        /// The maps of the process.
        maps: usize,
        /// The most it may have.
        limit: usize,
    },
    /// A program was given the wrong number of arguments.
    #[error("{executable}: takes {expected} arguments; got {actual}")]
    ArgumentCount {
        /// The name of the executable.
        executable: String,
        /// The number of parameters of the program.
        expected: usize,
        /// The number of arguments given.
        actual: usize,
    },
    /// A program that runs on several devices was given arguments for another number of them.
    #[error("{executable}: runs on {expected} devices; got arguments for {actual}")]
    DeviceCount {
        /// The name of the executable.
        executable: String,
        /// The number of devices the program was compiled for.
        expected: usize,
        /// The number of argument lists given.
        actual: usize,
    },
    /// A device or buffer was used with a client it does not belong to.
    #[error("{what}: must belong to the client of the call")]
    ForeignObject {
        /// The object, such as `argument 3`.
        what: String,
    },
    /// Memory of another library cannot be used as a buffer.
    #[error("foreign memory: {why}")]
    ForeignMemory {
        /// The requirement and the value.
        why: String,
    },
    /// A call of the driver of a device failed.
    #[error("{why}")]
    Driver {
        /// The message of the driver.
        why: String,
    },
    /// The plugin returned an element type this crate has no name for.
    #[error("element type {code} of the plugin is not supported")]
    UnknownType {
        /// The number of the type in `PJRT_Buffer_Type` or `XLA_FFI_DataType`.
        code: i32,
    },
    /// A host tensor cannot be created.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// The memory of a buffer was freed or donated to a program.
    #[error("the tensor has been deallocated or donated to a program")]
    Released,
    /// The buffer was donated to a call.
    #[error(
        "the tensor was donated to {to}, which may have overwritten it; use the results of that \
         call, copy the tensor before, or do not donate it"
    )]
    Donated {
        /// The call.
        to: String,
    },
    /// Serialized bytes that were not written by this crate, or are cut short.
    #[error("the serialized executable is damaged: {reason}")]
    SerializedDamaged {
        /// The damage.
        reason: &'static str,
    },
    /// Serialized bytes of another compiler, whose results could be wrong.
    #[error(
        "the executable was serialized by {written_by:?}, which differs from {this:?}; \
             compile it again"
    )]
    SerializedElsewhere {
        /// The fingerprint of the client that wrote the bytes.
        written_by: String,
        /// The fingerprint of this client.
        this: String,
    },
}

impl Error {
    /// Returns whether the plugin does not implement the function.
    pub fn is_unimplemented(&self) -> bool {
        match self {
            Error::Unsupported { .. } => true,
            Error::Plugin { code, .. } => *code == ErrorCode::UNIMPLEMENTED,
            _ => false,
        }
    }
}

/// The kind of an error that a plugin reports: a status code of Abseil.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ErrorCode(pub i32);

impl ErrorCode {
    /// An argument is wrong in every state of the system.
    pub const INVALID_ARGUMENT: ErrorCode = ErrorCode(3);
    /// The memory of the device is full.
    pub const RESOURCE_EXHAUSTED: ErrorCode = ErrorCode(8);
    /// The plugin does not do this.
    pub const UNIMPLEMENTED: ErrorCode = ErrorCode(12);
    const INTERNAL: ErrorCode = ErrorCode(13);

    /// Returns the code for a message. XLA reports that memory is full as an internal error if it
    /// learns this from an argument that it computes at the same time.
    pub(crate) fn adjust_to(self, message: &str) -> ErrorCode {
        let is_full = self == Self::INTERNAL && message.contains("Out of memory allocating");
        if is_full { Self::RESOURCE_EXHAUSTED } else { self }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// The names of the codes from 1 on.
        const NAMES: [&str; 16] = [
            "cancelled",
            "unknown",
            "invalid argument",
            "deadline exceeded",
            "not found",
            "already exists",
            "permission denied",
            "resource exhausted",
            "failed precondition",
            "aborted",
            "out of range",
            "unimplemented",
            "internal",
            "unavailable",
            "data loss",
            "unauthenticated",
        ];
        let position = usize::try_from(self.0).ok().and_then(|code| code.checked_sub(1));
        match position.and_then(|position| NAMES.get(position)) {
            Some(name) => f.write_str(name),
            None => write!(f, "code {}", self.0),
        }
    }
}
