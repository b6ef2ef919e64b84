//! Executables that outlive the process: a folder with a file for each.
//!
//! A file is named after its key, the digest of all inputs of a compilation: the StableHLO module,
//! the options, the plugin with its versions, and the processor. A file is written under a
//! temporary name and then renamed, so that readers in other processes see all of it or nothing.
//! Machine code is passed to the plugin only if the folder and the file are private to the user and
//! a keyed digest shows that a process of that user wrote the file for this program.
//!
//! The folder never makes a call fail. If the folder is inaccessible, rejected or deleted, or contains
//! damaged files, the program is compiled without it, and the report contains the reason.

mod entry;
mod folder;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nxla_pjrt::{CompileOptions, LoadedExecutable};

pub use folder::{DiskEntry, check_disk_cache, clear_disk_cache, disk_entries};

use super::client::Target;
use super::{NAME, processor};
use crate::compiler::integer_setting;
use crate::error::{Error, Result};
use crate::options::{Setting, Settings};
use crate::profile::{self, Work};
use crate::sync::Shared;
use crate::thresholds::DISK_CACHE_BYTES;

/// The environment variable that names the folder.
pub const CACHE_VARIABLE: &str = "NXLA_CACHE_DIR";

/// The environment variable for the size limit of the folder in bytes.
pub const CACHE_BYTES_VARIABLE: &str = "NXLA_CACHE_BYTES";

/// A folder of executables.
pub(super) struct DiskCache {
    folder: PathBuf,
    limit: u64,
}

/// The digest of all inputs of a compilation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Key([u8; 32]);

/// Statistics of the folders of executables since the process began.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DiskReport {
    /// Executables that were found and loaded.
    pub hits: u64,
    /// Programs that were not there, and have been compiled.
    pub misses: u64,
    /// Executables that were written.
    pub stored: u64,
    /// Files that were damaged or could not be read or written.
    pub failed: u64,
    /// The error of the last failure.
    pub last_failure: Option<String>,
}

static HITS: AtomicU64 = AtomicU64::new(0);
static MISSES: AtomicU64 = AtomicU64::new(0);
static STORED: AtomicU64 = AtomicU64::new(0);
static FAILED: AtomicU64 = AtomicU64::new(0);
static LAST_FAILURE: Shared<Option<String>> = Shared::new(None);

/// Statistics of the folders of executables since the process began.
pub fn disk_report() -> DiskReport {
    DiskReport {
        hits: HITS.load(Ordering::Relaxed),
        misses: MISSES.load(Ordering::Relaxed),
        stored: STORED.load(Ordering::Relaxed),
        failed: FAILED.load(Ordering::Relaxed),
        last_failure: LAST_FAILURE.lock().clone(),
    }
}

/// Records an error of a folder; the call continues without the folder.
fn record_failure(path: &Path, why: &str) {
    FAILED.fetch_add(1, Ordering::Relaxed);
    let mut last = LAST_FAILURE.lock();
    *last = Some(format!("{}: {why}", path.display()));
}

impl DiskCache {
    /// Returns the cache in the folder of the setting `cache_dir` or of the environment variable;
    /// `None` if both are missing or the name is empty.
    ///
    /// # Errors
    /// Returns an error for settings of wrong types.
    pub(super) fn of(settings: &Settings) -> Result<Option<Self>> {
        let folder = match settings.get("cache_dir") {
            Some(Setting::Text(path)) => Some(PathBuf::from(path)),
            Some(other) => {
                let why = format!(
                    "option \"cache_dir\" of the compiler {NAME:?}: must be a path; got {other}"
                );
                return Err(Error::Options(why));
            }
            None => std::env::var_os(CACHE_VARIABLE).map(PathBuf::from),
        };
        let limit = match integer_setting(NAME, settings, "cache_bytes", 0)? {
            Some(bytes) => bytes as u64,
            None => limit_of_environment()?,
        };
        let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
        Ok(folder.map(|folder| Self { folder: expand_home(folder), limit }))
    }

    /// The executable of a program, read or compiled and then written.
    ///
    /// # Errors
    /// Returns errors of the compilation.
    pub(super) fn get_or_compile(
        &self,
        target: &Target,
        text: &str,
        options: &CompileOptions,
        compile: impl FnOnce() -> Result<LoadedExecutable>,
    ) -> Result<LoadedExecutable> {
        let key = Key::of(target, text, options);
        if let Some(executable) = self.load(&key, target) {
            HITS.fetch_add(1, Ordering::Relaxed);
            return Ok(executable);
        }
        MISSES.fetch_add(1, Ordering::Relaxed);
        let begun = Instant::now();
        let executable = compile()?;
        let took = begun.elapsed();
        match executable.serialize() {
            Ok(payload) => self.store(&key, &payload, took),
            Err(error) => record_failure(&self.folder, &format!("not serialized: {error}")),
        }
        Ok(executable)
    }

    fn load(&self, key: &Key, target: &Target) -> Option<LoadedExecutable> {
        let _span = profile::span(Work::Compile, "load from disk");
        let payload = match folder::read(&self.folder, key, self.limit) {
            Ok(found) => found?,
            Err(why) => {
                record_failure(&folder::path_of(&self.folder, key), &why);
                return None;
            }
        };
        match target.client.deserialize(&payload) {
            Ok(executable) => Some(executable),
            Err(error) => {
                record_failure(&folder::path_of(&self.folder, key), &error.to_string());
                None
            }
        }
    }

    fn store(&self, key: &Key, payload: &[u8], took: Duration) {
        let _span = profile::span(Work::Compile, "store on disk");
        match folder::write(&self.folder, key, payload, took, self.limit) {
            Ok(()) => drop(STORED.fetch_add(1, Ordering::Relaxed)),
            Err(why) => record_failure(&self.folder, &why),
        }
    }
}

/// Replaces a first component `~` by the home folder of the user. A shell does not expand a value in
/// quotes, in a unit file or in a program.
fn expand_home(path: PathBuf) -> PathBuf {
    match (path.strip_prefix("~"), std::env::home_dir()) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path,
    }
}

fn limit_of_environment() -> Result<u64> {
    let Some(given) = std::env::var_os(CACHE_BYTES_VARIABLE).filter(|given| !given.is_empty())
    else {
        return Ok(DISK_CACHE_BYTES);
    };
    let number = given.to_str().and_then(|text| text.parse().ok());
    number.ok_or_else(|| {
        Error::Options(format!("{CACHE_BYTES_VARIABLE}: must be a number of bytes; got {given:?}"))
    })
}

impl Key {
    /// Returns the key of a program for a device. The key does not depend on user lines in the module,
    /// which only errors use; it depends on all other inputs of the plugin.
    fn of(target: &Target, text: &str, options: &CompileOptions) -> Self {
        let mut hasher = blake3::Hasher::new();
        let mut part = |bytes: &[u8]| {
            hasher.update(&(bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        };
        part(&entry::VERSION.to_le_bytes());
        part(target.client.fingerprint().as_bytes());
        part(&target.client.devices().len().to_le_bytes());
        part(format!("{options:?}").as_bytes());
        part(processor::description().as_bytes());
        part(std::env::var_os("XLA_FLAGS").unwrap_or_default().as_encoded_bytes());
        for line in text.lines() {
            part(without_location(line).as_bytes());
        }
        Key(*hasher.finalize().as_bytes())
    }
}

/// A line of a module without ` loc("file":3:1)` at its end.
fn without_location(line: &str) -> &str {
    const BEGIN: &str = " loc(\"";
    let location = line.strip_suffix(":1)").and_then(|rest| {
        let number = rest.rfind(':')?;
        let (before, digits) = rest.split_at(number);
        let is_number = digits.len() > 1 && digits[1..].bytes().all(|byte| byte.is_ascii_digit());
        is_number.then_some(())?;
        let at = before.strip_suffix('"')?.rfind(BEGIN)?;
        // A quote in the name of a file is escaped, so a plain quote ends the location.
        let name = &before[at + BEGIN.len()..before.len() - 1];
        let mut bytes = name.bytes();
        while let Some(byte) = bytes.next() {
            match byte {
                b'\\' => drop(bytes.next()),
                b'"' => return None,
                _ => {}
            }
        }
        Some(at)
    });
    location.map_or(line, |at| &line[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_do_not_depend_on_source_lines() {
        for (line, kept) in [
            (r#"%1 = f %0 : t loc("a b.py":31:1)"#, "%1 = f %0 : t"),
            (r#"%1 = f %0 : t loc("a\"b.py":31:1)"#, "%1 = f %0 : t"),
            (r#"%1 = f {a = " loc("} : t"#, r#"%1 = f {a = " loc("} : t"#),
            (r#"%1 = f {a = " loc(", b = "":3:1)"#, r#"%1 = f {a = " loc(", b = "":3:1)"#),
            ("%1 = f %0 : t", "%1 = f %0 : t"),
            ("slice [0:1)", "slice [0:1)"),
        ] {
            assert_eq!(without_location(line), kept);
        }
    }

    #[test]
    fn settings_select_folder_and_size_limit() {
        let of = |settings: &[(&str, Setting)]| {
            let named = settings.iter().map(|(name, value)| ((*name).into(), value.clone()));
            DiskCache::of(&named.collect())
        };
        let cache = of(&[("cache_dir", "/x".into()), ("cache_bytes", 7.into())]);
        let cache = cache.unwrap().unwrap();
        assert_eq!((cache.folder.to_str(), cache.limit), (Some("/x"), 7));
        assert!(of(&[("cache_dir", "".into())]).unwrap().is_none());
        let home = std::env::home_dir().unwrap();
        for (given, folder) in [
            ("~", home.clone()),
            ("~/.cache/x", home.join(".cache/x")),
            ("~x/y", "~x/y".into()),
            ("/x/~", "/x/~".into()),
        ] {
            assert_eq!(of(&[("cache_dir", given.into())]).unwrap().unwrap().folder, folder);
        }
        for wrong in [("cache_dir", Setting::Int(1)), ("cache_bytes", Setting::Int(-1))] {
            assert!(matches!(of(&[wrong]), Err(Error::Options(_))));
        }
    }
}
