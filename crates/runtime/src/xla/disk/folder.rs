//! The folder: reading and writing its files, and keeping it within its limit.
//!
//! Several processes may use one folder without locks: a rename makes a complete file visible, files
//! never change afterwards, and a program with a missing file is compiled again. The folder and its
//! files must be private (`nxla_pjrt::PrivateFolder`), because their machine code runs in this process.

use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use nxla_pjrt::{PrivateFolder, read_bounded};

use super::entry::Secret;
use super::{Key, entry};

/// The suffix of executables.
const EXECUTABLE: &str = ".nxlaexec";

/// The suffix of files that are being written.
const UNFINISHED: &str = ".nxlatmp";

/// The file with the secret that keys the digests of the folder.
const SECRET: &str = "secret";

/// A file is being written for less than this; an older one was left by a process that ended.
const STALE: Duration = Duration::from_secs(3600);

/// An executable in a folder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DiskEntry {
    /// The key, as hexadecimal digits.
    pub key: String,
    /// The size of the file in bytes.
    pub bytes: u64,
    /// When the file was written or used last.
    pub last_used: SystemTime,
    /// The time of compilation in milliseconds; `None` for a file of another version.
    pub compile_time: Option<u64>,
    /// Why the file is never run; `None` for one that may be.
    pub refused: Option<String>,
}

/// Checks whether executables of a folder may be run. A folder that does not exist may be used: it
/// will be created with access for its owner alone.
///
/// # Errors
/// Returns `PermissionDenied` if another user owns or can change the folder or a step of its path.
pub fn check_disk_cache(folder: &Path) -> io::Result<()> {
    PrivateFolder::open(folder).map(drop)
}

/// Returns the path of a key's file.
pub(super) fn path_of(folder: &Path, key: &Key) -> PathBuf {
    folder.join(name_of(key))
}

fn name_of(key: &Key) -> String {
    format!("{}{EXECUTABLE}", blake3::Hash::from_bytes(key.0))
}

/// Reads the payload of a key, or returns `None` if the file is missing.
///
/// # Errors
/// Returns the reason why the file cannot be used. A damaged file is removed.
pub(super) fn read(folder: &Path, key: &Key, limit: u64) -> Result<Option<Vec<u8>>, String> {
    let said = |error: io::Error| error.to_string();
    let Some(folder) = PrivateFolder::open(folder).map_err(said)? else { return Ok(None) };
    let file = match folder.open_file(&name_of(key)) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let bytes = read_bounded(&file, limit).map_err(said)?;
    let secret = read_secret(&folder).map_err(said)?.ok_or("the folder has no secret")?;
    let payload = entry::decode(&secret, key, bytes).map_err(|why| {
        // Remove the file first, because a full folder does not allow replacing it.
        let _ = fs::remove_file(path_of(folder.path(), key));
        why.to_owned()
    })?;
    // A file whose use cannot be recorded is evicted sooner.
    let _ = file.set_modified(SystemTime::now());
    Ok(Some(payload))
}

/// Stores a payload under a key, and removes the least recently used files if the folder is larger
/// than its limit.
///
/// # Errors
/// Returns the reason why the payload could not be written.
pub(super) fn write(
    folder: &Path,
    key: &Key,
    payload: &[u8],
    took: Duration,
    limit: u64,
) -> Result<(), String> {
    let said = |error: io::Error| error.to_string();
    let size = (entry::HEADER + payload.len()) as u64;
    if size > limit {
        return Err(format!("{size} bytes are more than the limit of {limit}"));
    }
    let folder = PrivateFolder::create(folder).map_err(said)?;
    let secret = read_or_create_secret(&folder).map_err(said)?;
    let bytes = entry::encode(&secret, key, payload, took);
    write_whole(&folder, &name_of(key), &bytes).map_err(said)?;
    evict(folder.path(), limit).map_err(said)
}

fn read_secret(folder: &PrivateFolder) -> io::Result<Option<Secret>> {
    let bytes = folder.read(SECRET, size_of::<Secret>() as u64)?;
    // A file of another length is damaged, and is replaced.
    Ok(bytes.and_then(|bytes| bytes.try_into().ok()))
}

/// Returns the secret of a folder, and creates a missing secret.
fn read_or_create_secret(folder: &PrivateFolder) -> io::Result<Secret> {
    if let Some(secret) = read_secret(folder)? {
        return Ok(secret);
    }
    let mut secret = Secret::default();
    getrandom::fill(&mut secret).map_err(io::Error::other)?;
    let path = folder.path().join(SECRET);
    // The existing file is damaged.
    let _ = fs::remove_file(&path);
    // Of several processes that create a secret at the same time, the first wins: a link, unlike a
    // rename, never replaces a file.
    write_then(folder, &secret, |written| match fs::hard_link(written, &path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        _ => fs::remove_file(written),
    })?;
    read_secret(folder)?.ok_or_else(|| io::Error::other("the secret of the folder was removed"))
}

/// Writes a file under a temporary name and renames it.
fn write_whole(folder: &PrivateFolder, name: &str, bytes: &[u8]) -> io::Result<()> {
    write_then(folder, bytes, |written| fs::rename(written, folder.path().join(name)))
}

/// Writes a file under a temporary name and calls `finish` with its path. The file is removed after
/// an error.
fn write_then(
    folder: &PrivateFolder,
    bytes: &[u8],
    finish: impl FnOnce(&Path) -> io::Result<()>,
) -> io::Result<()> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("{}-{number}{UNFINISHED}", std::process::id());
    let path = folder.path().join(&name);
    let write = || {
        // A process with the same id may have ended while it wrote this file.
        let _ = fs::remove_file(&path);
        folder.create_file(&name)?.write_all(bytes)?;
        finish(&path)
    };
    write().inspect_err(|_| drop(fs::remove_file(&path)))
}

/// Removes the least recently used files until an eighth of the limit is free, and temporary files of
/// processes that have ended.
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

/// Returns the files of this cache in a folder; empty if the folder does not exist.
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
        // The file may have been removed since.
        let Ok(data) = file.metadata() else { continue };
        let last_used = data.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        known.push(Known { path: file.path(), name, is_unfinished, bytes: data.len(), last_used });
    }
    Ok(known)
}

/// Returns the executables of a folder, the most recently used one first; empty if the folder does not
/// exist.
///
/// # Errors
/// Returns the error of the system if the folder cannot be read, and `PermissionDenied` if another
/// user can change it.
pub fn disk_entries(folder: &Path) -> io::Result<Vec<DiskEntry>> {
    let Some(folder) = PrivateFolder::open(folder)? else { return Ok(Vec::new()) };
    let mut known = files(folder.path())?;
    known.retain(|file| !file.is_unfinished);
    known.sort_by(|one, other| (other.last_used, &one.name).cmp(&(one.last_used, &other.name)));
    Ok(known.into_iter().map(|file| describe(&folder, file)).collect())
}

fn describe(folder: &PrivateFolder, file: Known) -> DiskEntry {
    let mut beginning = [0; entry::HEADER];
    let opened = folder.open_file(&file.name);
    let refused = opened.as_ref().err().map(ToString::to_string);
    let read = opened.and_then(|mut opened| opened.read_exact(&mut beginning));
    DiskEntry {
        key: file.name.trim_end_matches(EXECUTABLE).to_owned(),
        bytes: file.bytes,
        last_used: file.last_used,
        compile_time: read.ok().and_then(|()| entry::compile_time(&beginning)),
        refused,
    }
}

/// Removes all executables of a folder and its secret. Other files stay. Returns the number of
/// executables and their bytes.
///
/// # Errors
/// Returns the error of the system if the folder cannot be read or a file cannot be removed.
pub fn clear_disk_cache(folder: &Path) -> io::Result<(usize, u64)> {
    let (mut count, mut bytes) = (0, 0);
    for file in files(folder)? {
        if remove_if_present(&file.path)? && !file.is_unfinished {
            count += 1;
            bytes += file.bytes;
        }
    }
    // Without executables the secret has no use; the next write creates another secret.
    remove_if_present(&folder.join(SECRET))?;
    Ok((count, bytes))
}

/// Removes a file and returns whether there was one: another process may have removed it first.
fn remove_if_present(path: &Path) -> io::Result<bool> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    /// A temporary folder, removed at the end.
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
            read(&self.0, &Key([number; 32]), 10_000)
        }

        fn set_age(&self, number: u8, seconds: u64) {
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
    fn written_entries_are_found() {
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
    fn corrupt_entries_are_removed_but_not_other_files() {
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
    fn least_recently_used_entries_are_evicted() {
        let scratch = Scratch::new("evicted");
        let size = (entry::HEADER + 100) as u64;
        for number in 1..=4 {
            scratch.write(number, 100, 5 * size).unwrap();
            scratch.set_age(number, 1000 * u64::from(number));
        }
        // The oldest one is used, which makes it the youngest.
        scratch.read(4).unwrap().unwrap();
        scratch.write(5, 100, 3 * size).unwrap();
        let remaining: Vec<u8> = (1..=5).filter(|&n| scratch.read(n).unwrap().is_some()).collect();
        assert_eq!(remaining, [4, 5]);
        assert!(scratch.write(6, 1000, 3 * size).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn files_writable_by_others_are_replaced() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let scratch = Scratch::new("refused");
        scratch.write(1, 3, 1000).unwrap();
        let path = path_of(&scratch.0, &Key([1; 32]));
        let spoil: [&dyn Fn(); 4] = [
            &|| fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap(),
            &|| fs::remove_file(&path).and_then(|()| symlink("/dev/zero", &path)).unwrap(),
            &|| fs::remove_file(&path).and_then(|()| fs::create_dir(&path)).unwrap(),
            &|| fs::set_permissions(&scratch.0, fs::Permissions::from_mode(0o770)).unwrap(),
        ];
        for (case, spoil) in spoil.iter().enumerate() {
            spoil();
            assert!(scratch.read(1).is_err(), "case {case}");
            match case {
                2 => fs::remove_dir(&path).unwrap(),
                3 => {
                    assert!(scratch.write(1, 3, 1000).is_err());
                    assert!(disk_entries(&scratch.0).is_err());
                    assert!(check_disk_cache(&scratch.0).is_err());
                    return;
                }
                _ => assert!(disk_entries(&scratch.0).unwrap()[0].refused.is_some()),
            }
            scratch.write(1, 3, 1000).unwrap();
            assert_eq!(scratch.read(1), Ok(Some(vec![1; 3])));
        }
    }

    #[test]
    fn files_are_bound_to_their_folder_name_and_size() {
        let (scratch, other) = (Scratch::new("bound"), Scratch::new("bound-other"));
        scratch.write(1, 3, 1000).unwrap();
        other.write(1, 3, 1000).unwrap();
        let path = |scratch: &Scratch, number| path_of(&scratch.0, &Key([number; 32]));
        assert!(read(&scratch.0, &Key([1; 32]), 20).unwrap_err().contains("at most 20 bytes"));
        fs::copy(path(&scratch, 1), path(&scratch, 2)).unwrap();
        assert!(scratch.read(2).unwrap_err().contains("another program"));
        fs::rename(path(&other, 1), path(&scratch, 1)).unwrap();
        assert!(scratch.read(1).unwrap_err().contains("secret"));
        // A damaged secret is replaced, and with it every file.
        scratch.write(1, 3, 1000).unwrap();
        fs::write(scratch.0.join(SECRET), b"short").unwrap();
        assert!(scratch.read(1).is_err());
        scratch.write(1, 3, 1000).unwrap();
        assert_eq!(scratch.read(1), Ok(Some(vec![1; 3])));
    }
}
