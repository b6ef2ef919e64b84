//! Devices of tensors (the host, or a device of a client), and the rule for the device of a function.
//!
//! A function without a compiler in its options runs on the device of its operands, and its results
//! stay on the device. Operands on the host are moved to the device of the others. Operands on two
//! devices are an error, because an implicit move would hide its cost.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::pjrt;
use crate::tensor::RawTensor;
use crate::xla::{self, ordinal, original};

/// The host, or one device of a client.
///
/// Its name is unique in the process: `host`, `cpu:0`, `cuda:1`. The devices of a second client of a
/// platform have names such as `cpu.1:0`.
///
/// ```
/// use nxla::{Device, devices};
///
/// for device in devices()? {
///     println!("{device} is of the platform {}", device.platform());
/// }
/// assert_eq!(Device::HOST.to_string(), "host");
/// # Ok::<(), nxla::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Device(DeviceKind);

#[derive(Clone, PartialEq, Eq, Hash)]
enum DeviceKind {
    Host,
    Client { client: pjrt::Client, index: usize },
}

impl Device {
    /// The memory of the host.
    pub const HOST: Device = Device(DeviceKind::Host);

    /// Returns a device of a client. A substitute client has the devices of the original client.
    ///
    /// # Errors
    /// Returns an error if the client has no device with this index.
    pub fn of(client: &pjrt::Client, index: usize) -> Result<Self> {
        let devices = client.devices().len();
        if index >= devices {
            return Err(Error::Options(format!(
                "device: index: must be below {devices}, the number of devices of the platform {:?}; got {index}",
                client.platform_name()
            )));
        }
        Ok(Device(DeviceKind::Client { client: original(client), index }))
    }

    /// The device of a buffer.
    pub(crate) fn of_buffer(buffer: &pjrt::Buffer) -> Self {
        let (client, index) = (original(buffer.client()), buffer.device().index());
        Device(DeviceKind::Client { client, index })
    }

    /// Returns `true` for the host.
    ///
    /// ```
    /// use nxla::Device;
    ///
    /// assert!(Device::HOST.is_host());
    /// ```
    pub fn is_host(&self) -> bool {
        matches!(self.0, DeviceKind::Host)
    }

    /// Returns the kind of hardware: `host`, `cpu`, `cuda`.
    ///
    /// ```
    /// use nxla::Device;
    ///
    /// assert_eq!(Device::HOST.platform(), "host");
    /// ```
    pub fn platform(&self) -> &str {
        match &self.0 {
            DeviceKind::Host => "host",
            DeviceKind::Client { client, .. } => client.platform_name(),
        }
    }

    /// Returns `true` if the device is the host's processor, with or without a plugin.
    pub(crate) fn is_cpu(&self) -> bool {
        is_cpu_platform(self.platform())
    }

    /// Returns the index among the devices of its client; 0 for the host.
    ///
    /// ```
    /// use nxla::Device;
    ///
    /// assert_eq!(Device::HOST.index(), 0);
    /// ```
    pub fn index(&self) -> usize {
        match self.0 {
            DeviceKind::Host => 0,
            DeviceKind::Client { index, .. } => index,
        }
    }

    /// Returns the name of the client, which is unique in the process: `host`, `cpu`, `cpu.1`.
    ///
    /// ```
    /// use nxla::Device;
    ///
    /// assert_eq!(Device::HOST.client_name(), "host");
    /// ```
    pub fn client_name(&self) -> String {
        match &self.0 {
            DeviceKind::Host => "host".into(),
            DeviceKind::Client { client, .. } => match ordinal(client) {
                0 => client.platform_name().into(),
                number => format!("{}.{number}", client.platform_name()),
            },
        }
    }

    /// Returns the device with a name. If the name is unknown, the XLA plugin is loaded and its default
    /// client is created first.
    ///
    /// ```
    /// use nxla::Device;
    ///
    /// assert_eq!(Device::from_name("host")?, Device::HOST);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error for an unknown name, or if the plugin cannot be loaded.
    pub fn from_name(name: &str) -> Result<Self> {
        let find = |devices: Vec<Device>| devices.into_iter().find(|it| it.to_string() == name);
        if let Some(device) = find(known_devices()) {
            return Ok(device);
        }
        let all = devices()?;
        let names: Vec<String> = all.iter().map(ToString::to_string).collect();
        find(all).ok_or_else(|| {
            let names = names.join(", ");
            Error::Options(format!("device: name: must be one of {names}; got {name:?}"))
        })
    }

    /// Returns statistics of the memory; `None` if the plugin does not count, and for the host.
    ///
    /// ```
    /// use nxla::Device;
    ///
    /// assert!(Device::HOST.memory()?.is_none());
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns errors of the plugin.
    pub fn memory(&self) -> Result<Option<pjrt::DeviceMemory>> {
        match &self.0 {
            DeviceKind::Host => Ok(None),
            DeviceKind::Client { client, index } => {
                Ok(client.memory_of(&client.devices()[*index])?)
            }
        }
    }

    /// Returns the client, or `None` for the host.
    pub fn client(&self) -> Option<&pjrt::Client> {
        match &self.0 {
            DeviceKind::Host => None,
            DeviceKind::Client { client, .. } => Some(client),
        }
    }

    /// Returns the plugin's description of the device, or `None` for the host.
    pub fn description(&self) -> Option<&pjrt::PjrtDevice> {
        match &self.0 {
            DeviceKind::Host => None,
            DeviceKind::Client { client, index } => Some(&client.devices()[*index]),
        }
    }

    /// Returns `true` if a buffer is in its memory.
    #[inline]
    pub(crate) fn holds(&self, buffer: &pjrt::Buffer) -> bool {
        match &self.0 {
            DeviceKind::Host => false,
            DeviceKind::Client { client, index } => {
                buffer.device().index() == *index
                    && (buffer.client() == client || original(buffer.client()) == *client)
            }
        }
    }
}

impl FromStr for Device {
    type Err = Error;

    /// Returns the device with a name; see [`Device::from_name`].
    fn from_str(name: &str) -> Result<Self> {
        Self::from_name(name)
    }
}

impl fmt::Display for Device {
    /// The name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            DeviceKind::Host => f.write_str("host"),
            DeviceKind::Client { index, .. } => write!(f, "{}:{index}", self.client_name()),
        }
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({self})")
    }
}

/// The host, the devices of XLA's default client, and the devices of every other client. Without a
/// plugin, or without the feature `xla`, the host is the only device.
///
/// ```
/// use nxla::{Device, devices};
///
/// assert_eq!(devices()?[0], Device::HOST);
/// # Ok::<(), nxla::Error>(())
/// ```
///
/// # Errors
/// Returns an error for an installed plugin that cannot be loaded or finds no device.
pub fn devices() -> Result<Vec<Device>> {
    xla::load_default_client()?;
    Ok(known_devices())
}

/// Returns the devices known so far: the host and the devices of every client.
///
/// ```
/// use nxla::{Device, known_devices};
///
/// assert!(known_devices().contains(&Device::HOST));
/// ```
pub fn known_devices() -> Vec<Device> {
    let clients = xla::known_clients();
    let of_clients = clients.iter().flat_map(|client| {
        (0..client.devices().len())
            .map(|index| Device(DeviceKind::Client { client: client.clone(), index }))
    });
    std::iter::once(Device::HOST).chain(of_clients).collect()
}

/// Returns the device of operands; `None` if all operands are on the host.
///
/// # Errors
/// Returns an error for operands on two devices.
pub(crate) fn common_device<'a>(
    function: &str,
    operands: impl IntoIterator<Item = &'a RawTensor>,
) -> Result<Option<Device>> {
    let mut found: Option<&pjrt::Buffer> = None;
    for operand in operands {
        let Some(buffer) = operand.buffer() else { continue };
        match found {
            None => found = Some(buffer),
            Some(first) if is_beside(first, buffer) => {}
            Some(first) => {
                let (first, second) = (Device::of_buffer(first), Device::of_buffer(buffer));
                return Err(two_devices(function, &first, &second));
            }
        }
    }
    Ok(found.map(Device::of_buffer))
}

/// Returns `true` if a platform computes on the host's processor.
pub(crate) fn is_cpu_platform(name: &str) -> bool {
    name.eq_ignore_ascii_case("cpu") || name.eq_ignore_ascii_case("host")
}

fn two_devices(function: &str, first: &Device, second: &Device) -> Error {
    let why = format!(
        "operands: must be on one device; got {first} and {second}; move one operand, or pass \
         the compiler"
    );
    Error::Arguments { function: function.into(), why }
}

/// Returns the common device of operands on `left` and operands on `right`; see [`common_device`].
///
/// # Errors
/// Returns an error for operands on two devices.
pub(crate) fn join_devices(
    function: &str,
    left: Option<&Device>,
    right: Option<Device>,
) -> Result<Option<Device>> {
    match (left, right) {
        (Some(left), Some(right)) if *left != right => Err(two_devices(function, left, &right)),
        (Some(left), _) => Ok(Some(left.clone())),
        (None, right) => Ok(right),
    }
}

#[inline]
fn is_beside(left: &pjrt::Buffer, right: &pjrt::Buffer) -> bool {
    left.device().index() == right.device().index()
        && (left.client() == right.client() || original(left.client()) == original(right.client()))
}

/// Returns `true` if operands are on the device that [`common_device`] has returned for earlier operands.
#[inline]
pub(crate) fn are_on_device<'a>(
    device: Option<&Device>,
    operands: impl IntoIterator<Item = &'a RawTensor>,
) -> bool {
    let mut any = false;
    for operand in operands {
        let Some(buffer) = operand.buffer() else { continue };
        if !device.is_some_and(|device| device.holds(buffer)) {
            return false;
        }
        any = true;
    }
    any == device.is_some()
}
