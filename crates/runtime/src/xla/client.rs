//! Clients: one for each plugin and device count, made on first use.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use nxla_pjrt::{self as pjrt, Client, Plugin, Value, discover};

use super::NAME;
use crate::compiler::integer_setting;
use crate::device::{self, Device};
use crate::error::{Error, Result};
use crate::options::{Setting, Settings};

/// Where programs are compiled for.
#[derive(Clone, Debug)]
pub struct Target {
    /// The client of a plugin.
    pub client: Client,
    /// Which of its devices.
    pub device: usize,
    /// How many clients stand between this one and the one that programs start on; see
    /// [`Target::beside`].
    number: usize,
}

impl Target {
    /// A device that is known already.
    pub(super) fn of(client: &Client, device: usize) -> Self {
        Self { client: client.clone(), device, number: 0 }
    }

    /// The device in the plugin's terms.
    pub fn description(&self) -> &pjrt::Device {
        &self.client.devices()[self.device]
    }

    /// The device.
    ///
    /// # Errors
    /// None for a target that this module gives.
    pub fn device(&self) -> Result<Device> {
        Device::of(&self.client, self.device)
    }

    /// The same device of another client, which shares no threads with this one; 0 is this one.
    ///
    /// # Errors
    /// A plugin that makes no further client.
    pub(super) fn beside(&self, number: usize) -> Result<Target> {
        let key = Key {
            plugin: self.client.plugin().path().to_owned(),
            devices: Some(self.client.devices().len()),
            number: self.number + number,
        };
        Ok(Target { client: client(key)?, number: self.number + number, ..self.clone() })
    }

    /// Whether the device is the host's own processor.
    pub fn is_cpu(&self) -> bool {
        let platform = self.client.platform_name();
        platform.eq_ignore_ascii_case("cpu") || platform.eq_ignore_ascii_case("host")
    }
}

/// What tells clients apart.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Key {
    /// The file of the plugin.
    plugin: PathBuf,
    /// How many devices were asked for.
    devices: Option<usize>,
    /// 0 but for programs that run while another one waits for them, see [`Target::beside`].
    number: usize,
}

/// The target that settings ask for; the plugin is loaded and its client made if need be.
///
/// # Errors
/// No plugin, or a file that is none; a device that does not exist.
pub fn target(settings: &Settings) -> Result<Target> {
    let count = integer_setting(NAME, settings, "cpu_device_count", 1)?;
    let device = integer_setting(NAME, settings, "device", 0)?.unwrap_or(0);
    let key = Key { plugin: plugin_path(settings)?, devices: count, number: 0 };
    let client = client(key)?;
    // This says so if there is no such device.
    Device::of(&client, device)?;
    Ok(Target { client, device, number: 0 })
}

fn plugin_path(settings: &Settings) -> Result<PathBuf> {
    let explicit = match settings.get("plugin") {
        None => None,
        Some(Setting::Text(path)) => Some(Path::new(path)),
        Some(other) => {
            let why =
                format!("option \"plugin\" of the compiler \"xla\" must be a path, got {other}");
            return Err(Error::Options(why));
        }
    };
    if explicit.is_some() {
        return Ok(discover(explicit)?);
    }
    // Without an explicit path the answer is looked up once: it depends on the environment and
    // the file system only.
    static FOUND: Mutex<Option<PathBuf>> = Mutex::new(None);
    let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    match &*found {
        Some(path) => Ok(path.clone()),
        None => Ok(found.insert(discover(None)?).clone()),
    }
}

fn client(key: Key) -> Result<Client> {
    static CLIENTS: OnceLock<Mutex<HashMap<Key, Client>>> = OnceLock::new();
    let clients = CLIENTS.get_or_init(Mutex::default);
    // Held while the client is made, so that two threads do not make two.
    let mut clients = clients.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(client) = clients.get(&key) {
        return Ok(client.clone());
    }
    let plugin = Plugin::load(&key.plugin)?;
    let count = key.devices.map(|count| Value::Int64(i64::try_from(count).unwrap_or(i64::MAX)));
    let options: Vec<(&str, Value)> =
        count.into_iter().map(|count| ("cpu_device_count", count)).collect();
    let client = Client::new(&plugin, &options)?;
    if key.number == 0 {
        device::meet(&client);
    }
    clients.insert(key, client.clone());
    Ok(client)
}
