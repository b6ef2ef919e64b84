//! Plugins: shared libraries that export `GetPjrtApi`.
//!
//! A plugin is loaded once per process and never unloaded: it starts threads and registers global
//! state, and no plugin supports `dlclose`. [`Plugin`] is therefore a plain copyable reference.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use libloading::Library;

use crate::error::{Error, ErrorCode};
use crate::ffi::HostCalls;
use crate::in_flight::{LongCall, stop_at_exit};
use crate::sys::*;
use crate::value::{self, NamedValue};
use crate::{forked, probe};

/// The oldest API this crate can drive: 0.57 moved the functions of the table to the offsets where
/// they have been since.
pub(crate) const MIN_MINOR: i32 = 57;

/// A loaded and initialized plugin.
#[derive(Clone, Copy)]
pub struct Plugin {
    inner: &'static Inner,
}

struct Inner {
    table: Table,
    attributes: Vec<(String, NamedValue)>,
    /// The functions for host calls, or the reason why the plugin has none.
    host_calls: Result<HostCalls, Error>,
}

/// The functions of a plugin.
struct Table {
    /// The path after links are resolved, so that each file is one plugin.
    path: PathBuf,
    api: PJRT_Api,
}

// SAFETY: no field changes after construction, and PJRT requires that the functions of a plugin can
// be called from any thread.
unsafe impl Send for Inner {}
// SAFETY: see `Send`.
unsafe impl Sync for Inner {}

/// All plugins of the process. The lock is held while loading, so that
/// `PJRT_Plugin_Initialize` runs once per plugin.
static LOADED: Mutex<Vec<Plugin>> = Mutex::new(Vec::new());

impl Plugin {
    /// Loads the plugin at `path`, or returns it if this process has loaded it before.
    ///
    /// An unknown plugin is first loaded by a child process, to detect plugins that end the process;
    /// successful plugins are recorded.
    ///
    /// XLA logs to standard error while it starts; unless `TF_CPP_MIN_LOG_LEVEL` is set, the first
    /// call sets it to `3` (fatal errors only).
    ///
    /// # Errors
    /// Returns [`Error::PluginMissing`], [`Error::NotALibrary`], [`Error::EndsProcess`],
    /// [`Error::NotAPlugin`], [`Error::IncompatibleVersion`], or the error of the plugin's
    /// initialization.
    pub fn load(path: impl AsRef<Path>) -> Result<Plugin, Error> {
        let given = path.as_ref();
        let missing = |_| Error::PluginMissing { path: given.to_owned() };
        let path = given.canonicalize().map_err(missing)?;
        // Before a fork, a thread of the parent may have been loading the plugin.
        forked::check_not_forked()?;
        let mut loaded = LOADED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(plugin) = loaded.iter().find(|plugin| plugin.inner.table.path == path) {
            return Ok(*plugin);
        }
        if loaded.is_empty() {
            quiet_the_log();
            forked::watch();
        }
        let _call = LongCall::begin();
        probe::check(&path, |path| drop(Plugin::open(path.to_owned())))?;
        let plugin = Plugin::open(path)?;
        loaded.push(plugin);
        Ok(plugin)
    }

    fn open(path: PathBuf) -> Result<Plugin, Error> {
        // SAFETY: loading runs the library's initializers. The caller decides to run the code of
        // this file, as for any program that the caller starts.
        let library = unsafe { Library::new(&path) }
            .map_err(|error| Error::NotALibrary { path: path.clone(), reason: reason(&error) })?;
        let not_a_plugin = || Error::NotAPlugin { path: path.clone() };
        // SAFETY: a library that exports `GetPjrtApi` declares it with this signature.
        let table = unsafe {
            let get_api = library
                .get::<unsafe extern "C" fn() -> *const PJRT_Api>(b"GetPjrtApi\0")
                .map_err(|_| not_a_plugin())?;
            get_api()
        };
        if table.is_null() {
            return Err(not_a_plugin());
        }
        // SAFETY: the version has the same offset in the tables of all versions. It is read first,
        // so that a table with another layout is not interpreted.
        let (major, minor) = unsafe {
            let version = &raw const (*table).pjrt_api_version;
            ((*version).major_version, (*version).minor_version)
        };
        if major != 0 || minor < MIN_MINOR {
            return Err(Error::IncompatibleVersion { path, major, minor });
        }
        // The library stays loaded, even if its initialization fails.
        std::mem::forget(library);
        // SAFETY: the table has a version with the layout declared here.
        let table = Table { path, api: unsafe { PJRT_Api::copy_from(table) } };
        // SAFETY: the function has no arguments except its own struct, and this is the first call.
        unsafe { table.call(&mut PJRT_Plugin_Initialize_Args::new())? };
        let attributes = table.read_attributes()?;
        let is_for_cuda = attributes.iter().any(|(name, _)| name == "cuda_version");
        let host_calls = table.install_host_calls(is_for_cuda);
        Ok(Plugin { inner: Box::leak(Box::new(Inner { table, attributes, host_calls })) })
    }

    /// The plugin's file.
    #[must_use]
    pub fn path(&self) -> &'static Path {
        &self.inner.table.path
    }

    /// Major and minor version of the plugin's API.
    #[must_use]
    pub fn api_version(&self) -> (i32, i32) {
        let version = &self.inner.table.api.pjrt_api_version;
        (version.major_version, version.minor_version)
    }

    /// The plugin's attributes; usually `xla_version`, `stablehlo_current_version` and
    /// `stablehlo_minimum_version`.
    #[must_use]
    pub fn attributes(&self) -> &'static [(String, NamedValue)] {
        &self.inner.attributes
    }

    /// Returns an attribute of [`attributes`](Plugin::attributes).
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<&'static NamedValue> {
        self.inner.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    pub(crate) fn host_calls(&self) -> Result<&'static HostCalls, Error> {
        self.inner.host_calls.as_ref().map_err(Clone::clone)
    }

    /// Calls the function of the type of `args`.
    ///
    /// # Safety
    /// The pointers in `args` meet the requirements of the function: they refer to live objects of
    /// this plugin and to memory that is valid for the time that the header states.
    #[inline]
    pub(crate) unsafe fn call<A: Args>(self, args: &mut A) -> Result<(), Error> {
        // SAFETY: the caller guarantees the requirements in `# Safety` above.
        unsafe { self.inner.table.call(args) }
    }

    /// The error for a function of the table or of an extension that is not there.
    pub(crate) fn unsupported_error(self, function: &'static str) -> Error {
        self.inner.table.unsupported_error(function)
    }

    /// The error for a function that reported success and returned a null pointer.
    #[cold]
    pub(crate) fn null_result_error(self, function: &'static str) -> Error {
        let table = &self.inner.table;
        Error::NullResult { function, path: table.path.clone(), version: table.version() }
    }

    /// Takes ownership of an error that a callback was given.
    ///
    /// # Safety
    /// `error` is a live error of this plugin, or null for success.
    pub(crate) unsafe fn check(
        self,
        function: &'static str,
        error: *mut PJRT_Error,
    ) -> Result<(), Error> {
        // SAFETY: the caller guarantees the requirements in `# Safety` above.
        unsafe { self.inner.table.check(function, error) }
    }
}

impl Table {
    /// See [`Plugin::call`].
    ///
    /// # Safety
    /// The requirements of [`Plugin::call`].
    #[inline]
    unsafe fn call<A: Args>(&self, args: &mut A) -> Result<(), Error> {
        let Some(function) = A::slot(&self.api) else {
            return Err(self.unsupported_error(A::FUNCTION));
        };
        forked::check_not_forked()?;
        stop_at_exit();
        // SAFETY: the slot accepts these arguments, and the caller guarantees their contents. The
        // error, if any, is passed only to `check`.
        unsafe { self.check(A::FUNCTION, function(args)) }
    }

    /// See [`Plugin::check`].
    ///
    /// # Safety
    /// The requirements of [`Plugin::check`].
    #[inline]
    unsafe fn check(&self, function: &'static str, error: *mut PJRT_Error) -> Result<(), Error> {
        if error.is_null() {
            return Ok(());
        }
        // SAFETY: the caller guarantees the requirements in `# Safety` above.
        Err(unsafe { self.take_error(function, error) })
    }

    /// Reads and destroys an error.
    ///
    /// # Safety
    /// `error` is a live error of this plugin, which is not used afterwards.
    #[cold]
    unsafe fn take_error(&self, function: &'static str, error: *mut PJRT_Error) -> Error {
        let mut code = PJRT_Error_GetCode_Args::new();
        code.error = error;
        let mut message = PJRT_Error_Message_Args::new();
        message.error = error;
        let mut destroy = PJRT_Error_Destroy_Args::new();
        destroy.error = error;
        // SAFETY: `error` is alive until the last call. The message is
        // valid until the error is destroyed, and is copied before that. `PJRT_Error_GetCode` fails
        // only for a null error, so the error that it returns is not read.
        unsafe {
            if let Some(get_code) = self.api.PJRT_Error_GetCode {
                get_code(&mut code);
            }
            if let Some(get_message) = self.api.PJRT_Error_Message {
                get_message(&mut message);
            }
            let message = value::text(message.message, message.message_size);
            if let Some(destroy_error) = self.api.PJRT_Error_Destroy {
                destroy_error(&mut destroy);
            }
            Error::Plugin { function, code: ErrorCode(code.code).adjust_to(&message), message }
        }
    }

    #[cold]
    fn unsupported_error(&self, function: &'static str) -> Error {
        Error::Unsupported { function, path: self.path.clone(), version: self.version() }
    }

    /// The version of the API for messages.
    fn version(&self) -> String {
        let version = &self.api.pjrt_api_version;
        format!("{}.{}", version.major_version, version.minor_version)
    }

    fn read_attributes(&self) -> Result<Vec<(String, NamedValue)>, Error> {
        let mut args = PJRT_Plugin_Attributes_Args::new();
        // SAFETY: the struct has only outputs; the memory that they point to lives as long as the
        // process.
        unsafe {
            self.call(&mut args)?;
            Ok(value::from_raw(args.attributes, args.num_attributes))
        }
    }

    /// Installs the handlers of host calls, if the plugin has the FFI extension.
    fn install_host_calls(&self, is_for_cuda: bool) -> Result<HostCalls, Error> {
        let mut link = self.api.extension_start;
        while !link.is_null() {
            // SAFETY: the links of the chain live as long as the plugin, and each starts with the
            // base struct. The FFI table is longer than the base; its `struct_size` tells whether
            // it contains all functions. The functions return errors of the plugin.
            unsafe {
                let is_whole = (*link).struct_size >= size_of::<PJRT_FFI_Extension>();
                if (*link).kind == PJRT_EXTENSION_TYPE_FFI && is_whole {
                    let table = &*link.cast::<PJRT_FFI_Extension>();
                    let check = |function, error| self.check(function, error);
                    return HostCalls::install(table, is_for_cuda, check);
                }
                link = (*link).next;
            }
        }
        Err(self.unsupported_error("FFI extension"))
    }
}

impl fmt::Debug for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor) = self.api_version();
        write!(f, "Plugin({}, API {major}.{minor})", self.inner.table.path.display())
    }
}

impl PartialEq for Plugin {
    fn eq(&self, other: &Plugin) -> bool {
        std::ptr::eq(self.inner, other.inner)
    }
}

impl Eq for Plugin {}

/// The dynamic linker's message, which is the source of libloading's error.
pub(crate) fn reason(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

/// Keeps XLA's start messages off standard error, unless the user has chosen a level.
fn quiet_the_log() {
    const LEVEL: &str = "TF_CPP_MIN_LOG_LEVEL";
    if std::env::var_os(LEVEL).is_some() {
        return;
    }
    // SAFETY: this runs at most once, before the first plugin is loaded and under the lock of
    // `LOADED`. Rust code reads the environment under a lock of the standard library. The remaining
    // risk is C code on another thread that reads the environment at the same time; other libraries
    // that set variables at import have the same risk. XLA has no other way to set its log level.
    unsafe { std::env::set_var(LEVEL, "3") };
}

#[cfg(test)]
mod tests {
    use std::ptr::{NonNull, null_mut};

    use super::*;
    use crate::client::non_null;

    #[test]
    fn missing_functions_and_null_results_have_different_errors() {
        let table = Table { path: "/plugin.so".into(), api: PJRT_Api::new() };
        let missing = table.unsupported_error("PJRT_Client_Create");
        let inner = Inner { table, attributes: Vec::new(), host_calls: Err(missing.clone()) };
        let plugin = Plugin { inner: Box::leak(Box::new(inner)) };
        let text = "the PJRT plugin /plugin.so (API 0.0) does not implement PJRT_Client_Create";
        assert_eq!(missing.to_string(), text);
        let args = PJRT_Client_Create_Args::new();
        let null: Result<NonNull<PJRT_Client>, Error> = non_null(&args, null_mut(), &plugin);
        let text = "the PJRT plugin /plugin.so (API 0.0) returned a null pointer from \
            PJRT_Client_Create";
        assert_eq!(null.unwrap_err().to_string(), text);
    }
}
