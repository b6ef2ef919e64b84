//! Clients and their devices.

use std::ptr::NonNull;
use std::sync::Arc;

use nxla_tensor::{Live, LiveMemory};

use crate::cuda;
use crate::error::Error;
use crate::event::Event;
use crate::faults;
use crate::ffi::HostCalls;
use crate::in_flight::{self, ForeignThread, InFlight, LongCall, ProgramInFlight};
use crate::malloc;
use crate::plugin::Plugin;
use crate::sys::*;
use crate::value::{self, NamedValue};

/// A connection to the devices of one plugin. Clones share it; the last one closes it, after
/// [waiting](Client::wait_until_idle) for the programs that run.
///
/// Buffers, executables and events keep their client alive.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    raw: NonNull<PJRT_Client>,
    plugin: Plugin,
    platform_name: String,
    platform_version: String,
    devices: Vec<PjrtDevice>,
    fingerprint: String,
    running: Arc<InFlight>,
}

// SAFETY: PJRT clients and devices may be used from any thread and from several at once; the other
// fields never change.
unsafe impl Send for Inner {}
// SAFETY: see `Send`.
unsafe impl Sync for Inner {}

/// A device that programs of this process can run on. It borrows its [`Client`].
#[derive(Debug)]
pub struct PjrtDevice {
    raw: NonNull<PJRT_Device>,
    index: usize,
    id: i32,
    hardware_id: Option<i32>,
    kind: String,
    debug_string: String,
    live: Live,
}

impl Client {
    /// Creates a client.
    ///
    /// The plugin defines the options; CPU plugins have `cpu_device_count`, the number of devices. Their
    /// default is larger than one, so for a plugin whose file name contains `cpu`, one device is requested
    /// unless `options` contains the number.
    ///
    /// # Errors
    /// Returns [`Error::Option`], [`Error::KnownFault`], [`Error::NoDevices`], or the plugin's
    /// error, for example about missing drivers. The plugin decides whether an unknown option is an
    /// error.
    ///
    /// ```
    /// # fn main() -> Result<(), nxla_pjrt::Error> {
    /// # if nxla_pjrt::discover(None).is_err() { return Ok(()) }
    /// use nxla_pjrt::{Client, Plugin, NamedValue, discover};
    ///
    /// let plugin = Plugin::load(discover(None)?)?;
    /// let client = Client::new(&plugin, &[("cpu_device_count", NamedValue::Int64(2))])?;
    /// assert_eq!(client.devices().len(), 2);
    /// # Ok(()) }
    /// ```
    pub fn new(plugin: &Plugin, options: &[(&str, NamedValue)]) -> Result<Client, Error> {
        let one = NamedValue::Int64(1);
        let mut raw_options: Vec<_> =
            options.iter().map(|(name, value)| value::to_raw(name, value)).collect();
        match options.iter().find(|(name, _)| *name == DEVICE_COUNT) {
            Some((_, value)) => check_device_count(value)?,
            None if names_cpu(plugin) => raw_options.push(value::to_raw(DEVICE_COUNT, &one)),
            None => {}
        }
        let mut args = PJRT_Client_Create_Args::new();
        args.create_options = raw_options.as_ptr();
        args.num_options = raw_options.len();
        let _call = LongCall::begin();
        // SAFETY: the options point into `options` and `one`, which outlive the call.
        unsafe { plugin.call(&mut args)? };
        let raw = non_null(&args, args.client, plugin)?;
        // From here on `Inner` owns the client, so that an error below destroys it.
        let mut inner = Inner {
            raw,
            plugin: *plugin,
            platform_name: String::new(),
            platform_version: String::new(),
            devices: Vec::new(),
            fingerprint: String::new(),
            running: Arc::default(),
        };
        inner.read_platform()?;
        faults::check(plugin, &inner.platform_name)?;
        if inner.platform_name == "cpu" {
            malloc::set_thresholds();
        }
        inner.read_devices()?;
        if inner.devices.is_empty() {
            return Err(Error::NoDevices { path: plugin.path().to_owned() });
        }
        inner.fingerprint = fingerprint(&inner);
        in_flight::register(&inner.running);
        Ok(Client { inner: Arc::new(inner) })
    }

    /// The plugin the client was created with.
    #[must_use]
    pub fn plugin(&self) -> Plugin {
        self.inner.plugin
    }

    /// The kind of platform, such as `cpu`, `cuda` or `tpu`.
    #[must_use]
    pub fn platform_name(&self) -> &str {
        &self.inner.platform_name
    }

    /// Returns true if devices use the memory of the host.
    #[must_use]
    pub fn computes_on_host(&self) -> bool {
        self.platform_name() == "cpu"
    }

    /// Returns true if compiled programs can call functions of the host, see
    /// [`HostHandler`](crate::HostHandler): on CPUs and on CUDA devices, if the plugin has the extension.
    #[must_use]
    pub fn calls_host(&self) -> bool {
        let platform = self.platform_name();
        self.plugin().host_calls().is_ok_and(|calls| calls.reach(platform))
    }

    /// Returns true if compiled programs can call factorizations of matrices by
    /// [`FACTORIZE_TARGET`](crate::FACTORIZE_TARGET): on CUDA devices, if cuSOLVER is installed. The first
    /// call loads the library.
    #[must_use]
    pub fn factorizes(&self) -> bool {
        let plugin = self.plugin();
        let version = match plugin.attribute("cuda_version") {
            Some(NamedValue::Int64(version)) => *version,
            _ => return false,
        };
        let has_handlers = plugin.host_calls().is_ok_and(HostCalls::on_cuda);
        has_handlers && self.platform_name() == "cuda" && cuda::is_installed(plugin.path(), version)
    }

    /// Details of the platform in the plugin's words, such as a driver version.
    #[must_use]
    pub fn platform_version(&self) -> &str {
        &self.inner.platform_version
    }

    /// The devices this process can use, in the plugin's order; at least one.
    #[must_use]
    pub fn devices(&self) -> &[PjrtDevice] {
        &self.inner.devices
    }

    /// Names the compiler behind this client: platform and versions. Executables serialized by a
    /// client can be loaded by clients with an equal fingerprint; key caches of them with it.
    #[must_use]
    pub fn fingerprint(&self) -> &str {
        &self.inner.fingerprint
    }

    /// Blocks until no program of this client runs.
    ///
    /// The last handle of a client waits like this when it is dropped. The end of the process waits too,
    /// for 0.3 seconds on Linux and for 30 seconds elsewhere.
    pub fn wait_until_idle(&self) {
        self.inner.running.wait_until(None);
    }

    /// Counts work of another thread as a running program until the result is dropped.
    pub(crate) fn begin(&self) -> ProgramInFlight {
        self.inner.running.begin()
    }

    /// Counts a program as running, and keeps its objects alive, until its event is ready.
    pub(crate) fn track<T: Send + Sync + 'static>(
        &self,
        event: &Event,
        used: Option<T>,
    ) -> Result<(), Error> {
        let kept = Arc::new((self.inner.running.begin(), used));
        let keep = kept.clone();
        event.on_ready(move |_| drop(keep)).inspect_err(|_| {
            // Without a callback the end of the execution is unknown, so its resources are leaked.
            std::mem::forget(kept);
        })
    }

    pub(crate) fn as_ptr(&self) -> *mut PJRT_Client {
        self.inner.raw.as_ptr()
    }

    /// Returns true if two handles refer to the same client. Objects of one client must not be
    /// passed to another.
    #[inline]
    pub(crate) fn is(&self, other: &Client) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// The index of a device, or the error that it is none of this client's.
    pub(crate) fn index_of(&self, device: &PjrtDevice) -> Result<usize, Error> {
        let own = self.inner.devices.get(device.index);
        if own.is_some_and(|own| std::ptr::eq(own, device)) {
            return Ok(device.index);
        }
        Err(Error::ForeignObject { what: format!("device {}", device.debug_string) })
    }

    /// Returns the index of the device of a plugin's pointer.
    pub(crate) fn index_of_raw(&self, raw: *mut PJRT_Device) -> Option<usize> {
        self.inner.devices.iter().position(|device| device.raw.as_ptr() == raw)
    }
}

impl PartialEq for Client {
    fn eq(&self, other: &Client) -> bool {
        self.is(other)
    }
}

impl Eq for Client {}

impl std::hash::Hash for Client {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        std::ptr::hash(Arc::as_ptr(&self.inner), state);
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let devices = self.devices().iter().map(PjrtDevice::debug_string);
        write!(f, "Client({}, ", self.platform_name())?;
        f.debug_list().entries(devices).finish()?;
        f.write_str(")")
    }
}

impl PjrtDevice {
    /// The position in [`Client::devices`].
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// The id, unique among the devices of all processes of a cluster.
    #[must_use]
    pub fn id(&self) -> i32 {
        self.id
    }

    /// The number of the device in the driver of its platform, such as the number of a CUDA device;
    /// `None` if the plugin does not define one.
    #[must_use]
    pub fn hardware_id(&self) -> Option<i32> {
        self.hardware_id
    }

    /// The model, such as `cpu` or the name of a graphics card.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// A description that identifies the device.
    #[must_use]
    pub fn debug_string(&self) -> &str {
        &self.debug_string
    }

    /// The buffers of this process in the memory of the device.
    #[must_use]
    pub fn live_memory(&self) -> LiveMemory {
        self.live.now()
    }

    pub(crate) fn live(&self) -> &Live {
        &self.live
    }

    pub(crate) fn as_ptr(&self) -> *mut PJRT_Device {
        self.raw.as_ptr()
    }
}

impl Inner {
    fn read_platform(&mut self) -> Result<(), Error> {
        let mut name = PJRT_Client_PlatformName_Args::new();
        name.client = self.raw.as_ptr();
        let mut version = PJRT_Client_PlatformVersion_Args::new();
        version.client = self.raw.as_ptr();
        // SAFETY: the client is alive, and the strings live as long as it.
        unsafe {
            self.plugin.call(&mut name)?;
            self.platform_name = value::text(name.platform_name, name.platform_name_size);
            self.plugin.call(&mut version)?;
            self.platform_version =
                value::text(version.platform_version, version.platform_version_size);
        }
        Ok(())
    }

    fn read_devices(&mut self) -> Result<(), Error> {
        let mut args = PJRT_Client_AddressableDevices_Args::new();
        args.client = self.raw.as_ptr();
        // SAFETY: the client is alive, and the array of its devices lives as long as it.
        let raw = unsafe {
            self.plugin.call(&mut args)?;
            value::slice(args.addressable_devices, args.num_addressable_devices)
        };
        for (index, &device) in raw.iter().enumerate() {
            let device = non_null(&args, device, &self.plugin)?;
            // SAFETY: the device belongs to the living client.
            self.devices.push(unsafe { read_device(&self.plugin, device, index)? });
        }
        Ok(())
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let end =
            ClientDestruction { raw: self.raw, plugin: self.plugin, running: self.running.clone() };
        if ForeignThread::is_current() {
            // A thread of the client cannot wait for itself.
            in_flight::close_elsewhere(move || end.destroy());
        } else {
            end.destroy();
        }
    }
}

/// The destruction of a client without handles.
struct ClientDestruction {
    raw: NonNull<PJRT_Client>,
    plugin: Plugin,
    running: Arc<InFlight>,
}

// SAFETY: PJRT clients may be destroyed on any thread but their own.
unsafe impl Send for ClientDestruction {}

impl ClientDestruction {
    fn destroy(self) {
        self.running.wait_until(None);
        let mut args = PJRT_Client_Destroy_Args::new();
        args.client = self.raw.as_ptr();
        // SAFETY: every object of the client holds a reference to it, so no object uses it any
        // more, and no program runs. An error cannot be reported from here.
        let _ = unsafe { self.plugin.call(&mut args) };
    }
}

/// Reads the constant properties of a device, so that later queries need no call.
///
/// # Safety
/// `raw` is a device of a living client of `plugin`.
unsafe fn read_device(
    plugin: &Plugin,
    raw: NonNull<PJRT_Device>,
    index: usize,
) -> Result<PjrtDevice, Error> {
    let mut description = PJRT_Device_GetDescription_Args::new();
    description.device = raw.as_ptr();
    let mut id = PJRT_DeviceDescription_Id_Args::new();
    let mut kind = PJRT_DeviceDescription_Kind_Args::new();
    let mut debug = PJRT_DeviceDescription_DebugString_Args::new();
    let mut hardware = PJRT_Device_LocalHardwareId_Args::new();
    hardware.device = raw.as_ptr();
    // SAFETY: the device is alive, and so is its description with the strings it owns.
    unsafe {
        plugin.call(&mut description)?;
        id.device_description = description.device_description;
        kind.device_description = description.device_description;
        debug.device_description = description.device_description;
        plugin.call(&mut id)?;
        plugin.call(&mut kind)?;
        plugin.call(&mut debug)?;
        Ok(PjrtDevice {
            raw,
            index,
            id: id.id,
            // The number is -1 where the platform does not define one.
            hardware_id: plugin
                .call(&mut hardware)
                .ok()
                .map(|()| hardware.local_hardware_id)
                .filter(|&id| id >= 0),
            kind: value::text(kind.device_kind, kind.device_kind_size),
            debug_string: value::text(debug.debug_string, debug.debug_string_size),
            live: Live::default(),
        })
    }
}

/// The option of CPU plugins for the number of devices.
const DEVICE_COUNT: &str = "cpu_device_count";

/// Plugins throw a C++ exception through the C function for a value of another type, which ends
/// the process, and make a client without devices for a count of none.
fn check_device_count(value: &NamedValue) -> Result<(), Error> {
    if matches!(value, NamedValue::Int64(1..)) {
        return Ok(());
    }
    let reason = "must be an integer of at least 1";
    Err(Error::Option { name: DEVICE_COUNT, reason, given: format!("{value:?}") })
}

/// Returns true if the name of a plugin's file contains `cpu`. Before there is a client, the
/// platform is unknown.
fn names_cpu(plugin: &Plugin) -> bool {
    plugin.path().file_name().is_some_and(|name| name.to_string_lossy().contains("cpu"))
}

/// Collects everything known that compiled code depends on.
///
/// Attributes are sorted, so that the text does not depend on the plugin's order.
fn fingerprint(client: &Inner) -> String {
    let (major, minor) = client.plugin.api_version();
    let mut parts: Vec<String> = client
        .plugin
        .attributes()
        .iter()
        .filter(|(name, _)| name.contains("version"))
        .map(|(name, value)| format!("{name}={value:?}"))
        .collect();
    parts.sort();
    parts.push(format!("api={major}.{minor}"));
    // Builds with the same version number differ, and plugins do not report their source revision,
    // so the length of the file identifies the build.
    let len = std::fs::metadata(client.plugin.path()).map_or(0, |file| file.len());
    parts.push(format!("file={len}"));
    parts.extend(client.devices.first().map(|device| format!("device={}", device.kind)));
    format!("{} {} [{}]", client.platform_name, client.platform_version, parts.join(", "))
}

/// A pointer that a successful call with `args` returned.
pub(crate) fn non_null<A: Args, T>(
    _args: &A,
    raw: *mut T,
    plugin: &Plugin,
) -> Result<NonNull<T>, Error> {
    // A plugin that returns success and a null pointer is broken; an error is better than a later
    // crash.
    NonNull::new(raw).ok_or_else(|| plugin.null_result_error(A::FUNCTION))
}
