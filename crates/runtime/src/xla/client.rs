//! Clients: one for each plugin and device count, created on first use.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use nxla_pjrt::{self as pjrt, Client, NamedValue, Plugin, discover};

use super::registry::{ordinal, original, substitute};
use super::{NAME, settings};
use crate::compiler::integer_setting;
use crate::device::{Device, is_cpu_platform};
use crate::error::{Error, Result};
use crate::options::{Setting, Settings};
use crate::sync::Shared;

/// The client and the device that a program is compiled for.
#[derive(Clone, Debug)]
pub struct Target {
    /// The client of a plugin.
    pub client: Client,
    /// The index of the device in the client.
    pub device: usize,
    /// The number of substitutions since the original client; see [`Target::on_client`].
    number: usize,
}

impl Target {
    /// A device that is known already.
    pub(super) fn of(client: &Client, device: usize) -> Self {
        Self { client: client.clone(), device, number: 0 }
    }

    /// The device in the plugin's terms.
    pub fn description(&self) -> &pjrt::PjrtDevice {
        &self.client.devices()[self.device]
    }

    /// The device.
    ///
    /// # Errors
    /// Returns the error of [`Device::of`], which accepts the devices of all targets.
    pub fn device(&self) -> Result<Device> {
        Device::of(&self.client, self.device)
    }

    /// The distance to the client that a program starts on: `waiting` clients have threads that
    /// wait for the program, and clients with abandoned programs are skipped.
    pub(super) fn distance(&self, waiting: usize) -> usize {
        if BUSY_CLIENT_COUNT.load(Ordering::Acquire) == 0 {
            return waiting;
        }
        let is_usable = |distance: &usize| {
            let made = match distance {
                0 => Some(self.client.clone()),
                _ => clients().get(&self.key(*distance)).cloned(),
            };
            !made.is_some_and(|client| BUSY_CLIENTS.lock().contains_key(&client))
        };
        (0..).filter(is_usable).nth(waiting).expect("the range of numbers is infinite")
    }

    fn key(&self, distance: usize) -> Key {
        Key {
            plugin: self.client.plugin().path().to_owned(),
            devices: self.is_cpu().then(|| self.client.devices().len()),
            preallocate: false,
            number: self.number + distance,
        }
    }

    /// Returns the same device of the client at this distance, which shares no threads with this
    /// client; the distance 0 is this client.
    ///
    /// # Errors
    /// Returns an error for a plugin that cannot create another client.
    pub(super) fn on_client(&self, distance: usize) -> Result<Target> {
        let client = client(self.key(distance))?;
        substitute(&client, &original(&self.client));
        Ok(Target { client, number: self.number + distance, ..self.clone() })
    }

    /// Returns `true` if the device is the host's processor.
    pub fn is_cpu(&self) -> bool {
        is_cpu_platform(self.client.platform_name())
    }
}

/// Clients with the number of their abandoned programs.
static BUSY_CLIENTS: LazyLock<Shared<HashMap<Client, usize>>> = LazyLock::new(Shared::default);

/// The number of clients with abandoned programs. Every run reads it, and it is nearly always zero.
static BUSY_CLIENT_COUNT: AtomicUsize = AtomicUsize::new(0);

/// A program whose caller was interrupted. PJRT cannot stop it, and it may occupy every thread of its client. Until
/// this value is dropped, other programs start on another client.
pub(crate) struct AbandonedProgram(Client);

impl AbandonedProgram {
    pub(crate) fn new(client: &Client) -> Self {
        let mut all = BUSY_CLIENTS.lock();
        *all.entry(client.clone()).or_default() += 1;
        BUSY_CLIENT_COUNT.store(all.len(), Ordering::Release);
        Self(client.clone())
    }
}

impl Drop for AbandonedProgram {
    fn drop(&mut self) {
        let mut all = BUSY_CLIENTS.lock();
        if let Some(programs) = all.get_mut(&self.0) {
            *programs -= 1;
            if *programs == 0 {
                all.remove(&self.0);
            }
        }
        BUSY_CLIENT_COUNT.store(all.len(), Ordering::Release);
    }
}

/// The key of a client.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Key {
    /// The file of the plugin.
    plugin: PathBuf,
    /// The number of devices in the settings.
    devices: Option<usize>,
    /// True if the client reserves the memory of a GPU at its creation.
    preallocate: bool,
    /// 0, except for programs that run while another program waits for them; see [`Target::on_client`].
    number: usize,
}

impl Key {
    /// Returns `true` if a GPU plugin has such a file name.
    fn is_for_gpus(&self) -> bool {
        let file = self.plugin.file_name().unwrap_or_default().to_string_lossy();
        ["cuda", "rocm", "gpu"].iter().any(|name| file.contains(name))
    }

    /// Returns the options of the plugin for the client. Before the client exists, only the file name of
    /// the plugin shows its hardware; plugins for the CPU reject the options of plugins for GPUs.
    fn options(&self) -> Vec<(&'static str, NamedValue)> {
        let count = self.devices.map(|count| i64::try_from(count).unwrap_or(i64::MAX));
        let mut options: Vec<(&str, NamedValue)> =
            count.into_iter().map(|count| ("cpu_device_count", NamedValue::Int64(count))).collect();
        if self.is_for_gpus() {
            options.push(("preallocate", NamedValue::Bool(self.preallocate)));
        }
        options
    }
}

/// Returns the options with which a client of a plugin is created by default.
#[must_use]
pub fn client_options(plugin: &Path) -> Vec<(&'static str, NamedValue)> {
    Key { plugin: plugin.to_owned(), devices: None, preallocate: false, number: 0 }.options()
}

/// Returns the target of settings; loads the plugin and creates its client if necessary.
///
/// # Errors
/// Returns an error for a missing or invalid plugin or a device that does not exist.
pub fn target(settings: &Settings) -> Result<Target> {
    let count = integer_setting(NAME, settings, "cpu_device_count", 1)?;
    let device = integer_setting(NAME, settings, "device", 0)?.unwrap_or(0);
    let preallocate = preallocates(settings)?;
    let key = Key { plugin: plugin_path(settings)?, devices: count, preallocate, number: 0 };
    if preallocate && !key.is_for_gpus() {
        return Err(Error::Options(format!(
            "option \"preallocate\" of the compiler \"xla\": requires a plugin for GPUs; got {}",
            key.plugin.display()
        )));
    }
    let client = client(key)?;
    // Returns an error if the device does not exist.
    Device::of(&client, device)?;
    Ok(Target { client, device, number: 0 })
}

/// Creates the default client if a plugin is installed.
///
/// # Errors
/// Returns an error for an installed plugin that cannot be loaded or finds no device.
pub(crate) fn load_default_client() -> Result<()> {
    match target(&Settings::new()) {
        Ok(_)
        | Err(Error::Pjrt(pjrt::Error::NoPlugin { .. } | pjrt::Error::NoPluginFor { .. })) => {
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// Checks the settings that select the device of programs, without loading a plugin.
pub(super) fn check_device_settings(settings: &Settings) -> Result<()> {
    integer_setting(NAME, settings, "cpu_device_count", 1)?;
    integer_setting(NAME, settings, "device", 0)?;
    preallocates(settings)?;
    explicit_path(settings).map(drop)
}

/// Returns `true` if settings reserve the memory of a GPU in advance. By default it is allocated on
/// demand, so that other processes get a share.
fn preallocates(settings: &Settings) -> Result<bool> {
    Ok(settings::boolean(settings, "preallocate")?.unwrap_or(false))
}

/// The path of the plugin that settings name, or the name of its platform.
fn explicit_path(settings: &Settings) -> Result<Option<&Path>> {
    match settings.get("plugin") {
        None => Ok(None),
        Some(Setting::Text(path)) => Ok(Some(Path::new(path))),
        Some(other) => {
            let why = format!(
                "option \"plugin\" of the compiler \"xla\": must be a path or a platform; got {other}"
            );
            Err(Error::Options(why))
        }
    }
}

fn plugin_path(settings: &Settings) -> Result<PathBuf> {
    let explicit = explicit_path(settings)?.map(Path::to_owned);
    // A plugin is looked up once: the answer depends on the environment and the file system only.
    static FOUND: LazyLock<Shared<HashMap<Option<PathBuf>, PathBuf>>> =
        LazyLock::new(Shared::default);
    if let Some(path) = FOUND.lock().get(&explicit) {
        return Ok(path.clone());
    }
    let found = discover(explicit.as_deref())?;
    FOUND.lock().insert(explicit, found.clone());
    Ok(found)
}

/// Returns the existing clients.
fn clients() -> MutexGuard<'static, HashMap<Key, Client>> {
    static CLIENTS: LazyLock<Mutex<HashMap<Key, Client>>> = LazyLock::new(Mutex::default);
    CLIENTS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn client(key: Key) -> Result<Client> {
    // Before a fork, a thread of the parent may have been creating the client.
    pjrt::check_not_forked()?;
    // The lock is held while the client is created, so that two threads do not create two clients.
    let mut clients = clients();
    if let Some(client) = clients.get(&key) {
        return Ok(client.clone());
    }
    let plugin = Plugin::load(&key.plugin)?;
    let client = Client::new(&plugin, &key.options())?;
    if key.number == 0 {
        ordinal(&client);
    }
    clients.insert(key, client.clone());
    Ok(client)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpu_memory_is_not_preallocated_by_default() {
        let key = |file: &str, devices, preallocate| {
            Key { plugin: file.into(), devices, preallocate, number: 0 }.options()
        };
        let cuda = "/cuda/xla_cuda_plugin.so";
        assert_eq!(key(cuda, None, false), [("preallocate", NamedValue::Bool(false))]);
        assert_eq!(key(cuda, None, true), [("preallocate", NamedValue::Bool(true))]);
        let cpu = "/cuda/pjrt_c_api_cpu_plugin.so";
        assert_eq!(key(cpu, Some(2), true), [("cpu_device_count", NamedValue::Int64(2))]);
        assert!(key(cpu, None, false).is_empty());
        let mut settings = Settings::new();
        assert!(!preallocates(&settings).expect("no setting"));
        settings.insert("preallocate".into(), Setting::Int(1));
        assert!(preallocates(&settings).is_err());
    }
}
