//! Checks of a plugin before its code runs in this process: the file must be complete, and a child
//! process must survive loading it.
//!
//! A truncated library ends a process that reads the missing part, and a library for another machine
//! may abort. Therefore the file is checked first, and then loaded once by a child process. Successful
//! plugins are recorded in `nxla/plugins` of the user's cache folder, by path, size and modification
//! time.

use std::fs;
use std::io::Write;
#[cfg(target_os = "linux")]
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use crate::error::Error;
use crate::private_folder::PrivateFolder;

/// Rejects a file that would end the process.
///
/// # Errors
/// Returns [`Error::NotALibrary`] for a truncated file, and [`Error::EndsProcess`] for a file that
/// ended the child process.
pub(crate) fn check(path: &Path, initialize: fn(&Path)) -> Result<(), Error> {
    let refused = |reason: String| Error::NotALibrary { path: path.to_owned(), reason };
    #[cfg(target_os = "linux")]
    elf::check(path).map_err(refused)?;
    let key = key_of(path).map_err(|error| refused(error.to_string()))?;
    let folder = list_folder();
    if folder.as_deref().is_some_and(|folder| is_listed(folder, &key)) {
        return Ok(());
    }
    #[cfg(target_os = "linux")]
    match child::outcome(path, initialize) {
        child::Outcome::Exits => {}
        child::Outcome::EndsBy(signal) => {
            return Err(Error::EndsProcess { path: path.to_owned(), signal });
        }
        // The child process could not be created, or timed out, so the result is unknown.
        child::Outcome::Unknown => return Ok(()),
    }
    #[cfg(not(target_os = "linux"))]
    let _ = initialize;
    if let Some(folder) = folder {
        // If the list cannot be written, the next process tests the plugin again.
        let _ = add_to_list(&folder, &key);
    }
    Ok(())
}

/// Returns the line of a plugin file in the list: its path, length and time of change.
fn key_of(path: &Path) -> std::io::Result<String> {
    let file = fs::metadata(path)?;
    let changed = file.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(format!("{:?} {} {}", path, file.len(), changed.as_nanos()))
}

/// The folder with the list of plugins that have been tried.
fn list_folder() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let cache = folder("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| folder("HOME").map(|home| Path::new(&home).join(".cache")))?;
    Some(cache.join("nxla"))
}

/// The name of the list.
const LIST: &str = "plugins";

/// The size in bytes above which the list begins anew.
const MAX_LIST_BYTES: u64 = 64 << 10;

/// Returns true if the list has a line for the plugin. A list that another user can change does not
/// count: its lines would let a damaged plugin into this process.
fn is_listed(folder: &Path, key: &str) -> bool {
    let Ok(Some(folder)) = PrivateFolder::open(folder) else { return false };
    // Several processes may each add a line to a list that is nearly full.
    let Ok(Some(bytes)) = folder.read(LIST, 2 * MAX_LIST_BYTES) else { return false };
    String::from_utf8_lossy(&bytes).lines().any(|line| line == key)
}

fn add_to_list(folder: &Path, key: &str) -> std::io::Result<()> {
    let mut file = PrivateFolder::create(folder)?.append_to(LIST)?;
    if file.metadata()?.len() > MAX_LIST_BYTES {
        file.set_len(0)?;
    }
    // One write, so that lines of several processes do not mix.
    file.write_all(format!("{key}\n").as_bytes())
}

/// Files of the format ELF.
#[cfg(target_os = "linux")]
mod elf {
    use super::*;

    const MAGIC: [u8; 4] = *b"\x7fELF";
    const HEADER: usize = 64;
    const SEGMENT: usize = 56;
    /// Class and byte order of the machines that this is built for.
    const CLASS: u8 = if cfg!(target_pointer_width = "64") { 2 } else { 1 };
    const ORDER: u8 = if cfg!(target_endian = "little") { 1 } else { 2 };

    /// Checks the headers of a file.
    pub(super) fn check(path: &Path) -> Result<(), String> {
        let said = |error: std::io::Error| error.to_string();
        let mut file = fs::File::open(path).map_err(said)?;
        let len = file.metadata().map_err(said)?.len();
        let mut header = [0; HEADER];
        if file.read_exact(&mut header).is_err() || header[..4] != MAGIC {
            return Err("it is not a shared library of this system".to_owned());
        }
        if header[4] != CLASS || header[5] != ORDER {
            return Err("it was built for another architecture".to_owned());
        }
        if CLASS != 2 {
            // The linker checks such files.
            return Ok(());
        }
        let word = |at: usize| u64::from_ne_bytes(array(&header[at..at + 8]));
        let half = |at: usize| u64::from(u16::from_ne_bytes(array(&header[at..at + 2])));
        let (first, sections) = (word(32), word(40));
        let (segment_size, segments) = (half(54), half(56));
        let (section_size, section_count) = (half(58), half(60));
        let cut =
            |needed: u64| Err(format!("it is truncated: it has {len} of at least {needed} bytes"));
        let end = sections.saturating_add(section_size * section_count);
        if end > len {
            return cut(end);
        }
        if segment_size != SEGMENT as u64 {
            return Err("its segment table is damaged".to_owned());
        }
        file.seek(SeekFrom::Start(first)).map_err(said)?;
        for _ in 0..segments {
            let mut segment = [0; SEGMENT];
            if file.read_exact(&mut segment).is_err() {
                return cut(first.saturating_add(segment_size * segments));
            }
            let word = |at: usize| u64::from_ne_bytes(array(&segment[at..at + 8]));
            let end = word(8).saturating_add(word(32));
            if end > len {
                return cut(end);
            }
        }
        Ok(())
    }

    fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
        bytes.try_into().expect("the slice has this length")
    }
}

/// A child that loads the plugin.
#[cfg(target_os = "linux")]
mod child {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::path::Path;
    use std::thread;
    use std::time::{Duration, Instant};

    /// The outcome of a trial.
    pub(super) enum Outcome {
        /// The process exits without a signal.
        Exits,
        /// The process ends by this signal.
        EndsBy(i32),
        Unknown,
    }

    /// The time limit for loading a plugin.
    const PROBE_TIMEOUT: Duration = Duration::from_secs(60);

    /// Loads the plugin in a child process, and returns the outcome.
    pub(super) fn outcome(path: &Path, initialize: fn(&Path)) -> Outcome {
        // SAFETY: the child has one thread, and only loads the library, which allocates memory: the
        // C library keeps its allocator and its linker usable in a child. The child exits without
        // running exit handlers. If another thread held a lock at the fork, the child may hang; the
        // parent then stops waiting for it.
        match unsafe { libc::fork() } {
            -1 => Outcome::Unknown,
            0 => {
                // SAFETY: the path ends with a zero. If it cannot be opened, `dup2` refuses the
                // result, and the child keeps its output.
                unsafe {
                    let nowhere = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
                    libc::dup2(nowhere, libc::STDOUT_FILENO);
                    libc::dup2(nowhere, libc::STDERR_FILENO);
                }
                let _ = catch_unwind(AssertUnwindSafe(|| initialize(path)));
                // SAFETY: the child ends at once, without exit handlers.
                unsafe { libc::_exit(0) }
            }
            child => wait(child),
        }
    }

    fn wait(child: libc::pid_t) -> Outcome {
        let begun = Instant::now();
        loop {
            let mut status = 0;
            // SAFETY: the status is written to a local variable.
            let ended = unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) };
            match ended {
                0 if begun.elapsed() < PROBE_TIMEOUT => thread::sleep(Duration::from_millis(2)),
                0 => {
                    // SAFETY: as above. The child has not been waited for, so its number is its
                    // own, and it ends soon.
                    unsafe {
                        libc::kill(child, libc::SIGKILL);
                        libc::waitpid(child, &raw mut status, 0);
                    }
                    return Outcome::Unknown;
                }
                // Another thread that waits for all children may have received the status.
                -1 => return Outcome::Unknown,
                _ if libc::WIFSIGNALED(status) => return Outcome::EndsBy(libc::WTERMSIG(status)),
                _ => return Outcome::Exits,
            }
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    fn test_executable() -> PathBuf {
        std::env::current_exe().unwrap()
    }

    #[test]
    fn truncated_libraries_are_detected() {
        assert_eq!(elf::check(&test_executable()), Ok(()));
        let whole = fs::read(test_executable()).unwrap();
        let path = std::env::temp_dir().join(format!("nxla-cut-{}", std::process::id()));
        for len in [0, 3, 63, 64, 100, whole.len() / 2, whole.len() - 1] {
            fs::write(&path, &whole[..len]).unwrap();
            assert!(elf::check(&path).is_err(), "{len}");
        }
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn crashes_of_the_child_are_detected() {
        let exits = child::outcome(&test_executable(), |_| ());
        assert!(matches!(exits, child::Outcome::Exits));
        let fails = child::outcome(&test_executable(), |_| std::panic::resume_unwind(Box::new(())));
        assert!(matches!(fails, child::Outcome::Exits));
        let aborts = child::outcome(&test_executable(), |_| std::process::abort());
        assert!(matches!(aborts, child::Outcome::EndsBy(6)));
    }
}
