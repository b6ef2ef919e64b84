//! The folder: reading and writing its files, and keeping it within its limit.
//!
//! Any number of processes may work on one folder. Nobody locks anything: files appear whole by
//! being renamed, they are never changed afterwards, and one that is gone is a program that is
//! compiled again.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use super::{Key, entry};

/// What the names of executables end with.
const EXECUTABLE: &str = ".nxlaexec";

/// What the names of files end with that are being written.
const UNFINISHED: &str = ".nxlatmp";

/// A file is being written for less than this; what is older was left by a process that ended.
const STALE: Duration = Duration::from_secs(3600);

/// How precisely it is known when a file was used last: noting it costs a write.
const PRECISION: Duration = Duration::from_secs(60);

/// After so many files that a process has written it looks at the whole folder.
const LOOK_EVERY: u64 = 16;

/// One executable of a folder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DiskEntry {
    /// The key, as hexadecimal digits.
    pub key: String,
    /// The bytes of the file.
    pub bytes: u64,
    /// When it was written or used last, to a minute.
    pub last_used: SystemTime,
    /// How long compiling took, in milliseconds; `None` for a file that is none of this version.
    pub compile_time: Option<u64>,
}

/// The file of a key.
pub(super) fn path_of(folder: &Path, key: &Key) -> PathBuf {
    folder.join(key.hex() + EXECUTABLE)
}

/// What is stored under a key; `None` if nothing is.
///
/// # Errors
/// Says why it cannot be used; if that is the file's fault, it is removed.
pub(super) fn read(folder: &Path, key: &Key) -> Result<Option<Vec<u8>>, String> {
    let path = path_of(folder, key);
    let mut file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    check_owner(folder)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    let payload = entry::decode(key, bytes).map_err(|why| {
        // It would be replaced in any case, but not if the folder is full.
        let _ = fs::remove_file(&path);
        why.to_owned()
    })?;
    note_use(&file);
    Ok(Some(payload))
}

/// Notes that a file has been used, if that is possible: otherwise it is evicted sooner.
fn note_use(file: &File) {
    let used = file.metadata().and_then(|data| data.modified());
    let is_recent = |used: SystemTime| used.elapsed().is_ok_and(|age| age < PRECISION);
    if !used.is_ok_and(is_recent) {
        let _ = file.set_modified(SystemTime::now());
    }
}

/// Stores something under a key, and removes what has not been used for longest if the folder has
/// more bytes than it may.
///
/// # Errors
/// Says why it could not be written.
pub(super) fn write(
    folder: &Path,
    key: &Key,
    payload: &[u8],
    took: Duration,
    limit: u64,
) -> Result<(), String> {
    let bytes = entry::encode(key, payload, took);
    if bytes.len() as u64 > limit {
        return Err(format!("{} bytes are more than the limit of {limit}", bytes.len()));
    }
    make(folder).map_err(|error| error.to_string())?;
    check_owner(folder)?;
    write_whole(folder, &path_of(folder, key), &bytes).map_err(|error| error.to_string())?;
    static WRITTEN: AtomicU64 = AtomicU64::new(0);
    let is_large = bytes.len() as u64 > limit / LOOK_EVERY;
    if WRITTEN.fetch_add(1, Ordering::Relaxed).is_multiple_of(LOOK_EVERY) || is_large {
        evict(folder, limit).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Makes the folder, for its owner alone.
fn make(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Refuses a folder into which anybody can put machine code that this process would run.
fn check_owner(folder: &Path) -> Result<(), String> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let mode = fs::metadata(folder).map_err(|error| error.to_string())?.mode();
        if mode & 0o002 != 0 {
            return Err("everybody can write to the folder, so that nothing in it is run; \
                        take that right away with chmod o-w"
                .into());
        }
    }
    #[cfg(not(unix))]
    let _ = folder;
    Ok(())
}

/// Writes a file beside its place and renames it.
fn write_whole(folder: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let unfinished = folder.join(format!("{}-{number}{UNFINISHED}", std::process::id()));
    let write = || {
        let mut file = File::create(&unfinished)?;
        file.write_all(bytes)?;
        drop(file);
        fs::rename(&unfinished, path)
    };
    write().inspect_err(|_| drop(fs::remove_file(&unfinished)))
}

/// Removes what has not been used for longest until a limit is kept with an eighth to spare, and
/// files that nobody writes any more.
fn evict(folder: &Path, limit: u64) -> io::Result<()> {
    let mut known = files(folder)?;
    let is_stale = |file: &Known| file.last_used.elapsed().is_ok_and(|age| age > STALE);
    for left in known.iter().filter(|file| file.is_unfinished && is_stale(file)) {
        let _ = fs::remove_file(&left.path);
    }
    known.retain(|file| !file.is_unfinished);
    let mut total: u64 = known.iter().map(|file| file.bytes).sum();
    if total <= limit {
        return Ok(());
    }
    known.sort_by_key(|file| file.last_used);
    for file in known {
        if total <= limit - limit / 8 {
            break;
        }
        // Another process may have been faster.
        let _ = fs::remove_file(&file.path);
        total -= file.bytes;
    }
    Ok(())
}

struct Known {
    path: PathBuf,
    name: String,
    is_unfinished: bool,
    bytes: u64,
    last_used: SystemTime,
}

/// The files of a folder that this cache has made. A folder that is not there has none.
fn files(folder: &Path) -> io::Result<Vec<Known>> {
    let listed = match fs::read_dir(folder) {
        Ok(listed) => listed,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut known = Vec::new();
    for file in listed {
        let file = file?;
        let Ok(name) = file.file_name().into_string() else { continue };
        let stem = name.strip_suffix(EXECUTABLE);
        let is_key = |stem: &str| stem.len() == 64 && stem.bytes().all(|b| b.is_ascii_hexdigit());
        let is_unfinished = name.ends_with(UNFINISHED);
        if !is_unfinished && !stem.is_some_and(is_key) {
            continue;
        }
        // It may be gone by now.
        let Ok(data) = file.metadata() else { continue };
        let last_used = data.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        known.push(Known { path: file.path(), name, is_unfinished, bytes: data.len(), last_used });
    }
    Ok(known)
}

/// The executables of a folder, the last used one first. A folder that is not there has none.
///
/// # Errors
/// A folder that cannot be read.
pub fn disk_entries(folder: &Path) -> io::Result<Vec<DiskEntry>> {
    let mut known = files(folder)?;
    known.retain(|file| !file.is_unfinished);
    known.sort_by(|one, other| (other.last_used, &one.name).cmp(&(one.last_used, &other.name)));
    let described = known.into_iter().map(|file| {
        let mut beginning = [0; entry::HEADER];
        let read = File::open(&file.path).and_then(|mut opened| opened.read_exact(&mut beginning));
        DiskEntry {
            key: file.name.trim_end_matches(EXECUTABLE).to_owned(),
            bytes: file.bytes,
            last_used: file.last_used,
            compile_time: read.ok().and_then(|()| entry::compile_time(&beginning)),
        }
    });
    Ok(described.collect())
}

/// Removes all executables of a folder, and nothing else in it; tells how many and their bytes.
///
/// # Errors
/// A folder that cannot be read, or a file that cannot be removed.
pub fn clear_disk_cache(folder: &Path) -> io::Result<(usize, u64)> {
    let (mut count, mut bytes) = (0, 0);
    for file in files(folder)? {
        match fs::remove_file(&file.path) {
            Ok(()) if file.is_unfinished => {}
            Ok(()) => {
                count += 1;
                bytes += file.bytes;
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok((count, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder of its own, removed at the end.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let folder = format!("nxla-disk-{name}-{}", std::process::id());
            Self(std::env::temp_dir().join(folder))
        }

        fn write(&self, number: u8, bytes: usize, limit: u64) -> Result<(), String> {
            write(&self.0, &Key([number; 32]), &vec![number; bytes], Duration::ZERO, limit)
        }

        fn read(&self, number: u8) -> Result<Option<Vec<u8>>, String> {
            read(&self.0, &Key([number; 32]))
        }

        fn age(&self, number: u8, seconds: u64) {
            let file = File::open(path_of(&self.0, &Key([number; 32]))).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(seconds)).unwrap();
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn what_was_written_is_found() {
        let scratch = Scratch::new("found");
        assert_eq!(scratch.read(1), Ok(None));
        scratch.write(1, 3, 1000).unwrap();
        assert_eq!(scratch.read(1), Ok(Some(vec![1; 3])));
        assert_eq!(scratch.read(2), Ok(None));
        let entries = disk_entries(&scratch.0).unwrap();
        assert_eq!((entries.len(), entries[0].compile_time), (1, Some(0)));
        fs::remove_dir_all(&scratch.0).unwrap();
        assert_eq!(scratch.read(1), Ok(None));
        scratch.write(1, 3, 1000).unwrap();
        assert_eq!(scratch.read(1), Ok(Some(vec![1; 3])));
    }

    #[test]
    fn damaged_files_are_removed_and_others_left_alone() {
        let scratch = Scratch::new("damaged");
        scratch.write(1, 3, 1000).unwrap();
        let path = path_of(&scratch.0, &Key([1; 32]));
        fs::write(&path, b"rubbish").unwrap();
        assert!(scratch.read(1).is_err());
        assert!(!path.exists());
        fs::write(scratch.0.join("notes.txt"), b"mine").unwrap();
        scratch.write(2, 3, 1000).unwrap();
        assert_eq!(clear_disk_cache(&scratch.0).unwrap().0, 1);
        assert!(scratch.0.join("notes.txt").exists());
    }

    #[test]
    fn what_was_used_longest_ago_goes_first() {
        let scratch = Scratch::new("evicted");
        let size = (entry::HEADER + 100) as u64;
        for number in 1..=4 {
            scratch.write(number, 100, 5 * size).unwrap();
            scratch.age(number, 1000 * u64::from(number));
        }
        // The oldest one is used, which makes it the youngest.
        scratch.read(4).unwrap().unwrap();
        scratch.write(5, 100, 3 * size).unwrap();
        let left: Vec<u8> = (1..=5).filter(|&n| scratch.read(n).unwrap().is_some()).collect();
        assert_eq!(left, [4, 5]);
        assert!(scratch.write(6, 1000, 3 * size).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_that_everybody_can_write_to_is_not_trusted() {
        use std::os::unix::fs::PermissionsExt;
        let scratch = Scratch::new("open");
        scratch.write(1, 3, 1000).unwrap();
        fs::set_permissions(&scratch.0, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(scratch.read(1).unwrap_err().contains("everybody"));
        assert!(scratch.write(2, 3, 1000).unwrap_err().contains("everybody"));
    }
}
