//! Folders and files that no other user can change.
//!
//! The process runs machine code that it reads from a folder, so every step of the path to that
//! folder and every file in it must belong to the effective user or to root and must not be
//! writable by anyone else. Files are opened without following links, and owner, mode, kind and
//! size are checked on the open descriptor, so that a file cannot be exchanged after the check.
//!
//! Systems without Unix permissions get the checks of kind and size alone.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

/// A folder that only the effective user and root can change.
#[derive(Clone, Debug)]
pub struct PrivateFolder {
    path: PathBuf,
}

impl PrivateFolder {
    /// Opens a folder, or returns `None` if it does not exist.
    ///
    /// # Errors
    /// Returns `PermissionDenied` if another user owns or can change the folder or a step of its
    /// path.
    pub fn open(path: &Path) -> io::Result<Option<Self>> {
        match check_path(path) {
            Ok(()) => Ok(Some(Self { path: path.to_owned() })),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Opens a folder that only its owner can access, and creates missing parts of the path.
    ///
    /// # Errors
    /// Returns the error of the system if the folder cannot be created, or an error of
    /// [`Self::open`].
    pub fn create(path: &Path) -> io::Result<Self> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(path)?;
        check_path(path)?;
        Ok(Self { path: path.to_owned() })
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a file for reading.
    ///
    /// # Errors
    /// Returns `NotFound` if there is no such file, and `PermissionDenied` if it is a link, is not
    /// a regular file, or if another user owns it or can change it.
    pub fn open_file(&self, name: &str) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true);
        self.open_checked(name, options)
    }

    /// Opens a file for appending, and creates it for its owner alone if it does not exist.
    ///
    /// # Errors
    /// Returns the errors of [`Self::open_file`], and the error of the system if the file cannot be
    /// created.
    pub fn append_to(&self, name: &str) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        self.open_checked(name, options)
    }

    /// Creates a file for its owner alone.
    ///
    /// # Errors
    /// Returns `AlreadyExists` if there is one, or the error of the system.
    pub fn create_file(&self, name: &str) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        self.open_checked(name, options)
    }

    /// Reads a whole file, or returns `None` if it does not exist. The size is compared with
    /// `limit`, in bytes, before any memory is allocated.
    ///
    /// # Errors
    /// Returns the errors of [`Self::open_file`], and `FileTooLarge` if the file is larger than the limit.
    pub fn read(&self, name: &str, limit: u64) -> io::Result<Option<Vec<u8>>> {
        let file = match self.open_file(name) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        read_bounded(&file, limit).map(Some)
    }

    fn open_checked(&self, name: &str, mut options: OpenOptions) -> io::Result<File> {
        let path = self.path.join(name);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt;
            // Opening a FIFO for reading would wait for a writer without `O_NONBLOCK`.
            options.mode(0o600).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
        }
        let file = options.open(&path).map_err(|error| describe_open_error(&path, error))?;
        let data = file.metadata()?;
        if !data.is_file() {
            return Err(permission_error(
                &path,
                "must be a regular file",
                "got another kind of file",
            ));
        }
        check_owner(&path, &data)?;
        check_mode(&path, &data, PathPart::Leaf)?;
        Ok(file)
    }
}

/// Reads an open file whose size is at most `limit` bytes.
///
/// # Errors
/// Returns `FileTooLarge` for a larger file, or the error of the system.
pub fn read_bounded(file: &File, limit: u64) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len();
    let too_large = |length: u64| {
        let text = format!("file must have at most {limit} bytes; got {length}");
        io::Error::new(ErrorKind::FileTooLarge, text)
    };
    if length > limit {
        return Err(too_large(length));
    }
    let mut bytes = Vec::new();
    // The file may grow between the two calls.
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(too_large(bytes.len() as u64));
    }
    Ok(bytes)
}

/// The role of a path: the folder or file itself, or a folder that leads to it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PathPart {
    Ancestor,
    Leaf,
}

/// Checks a folder and everything that decides which folder its path names: each parent, and each
/// link with the parents of its target.
fn check_path(path: &Path) -> io::Result<()> {
    /// The limit of Linux for links in one path.
    const MAX_LINKS: usize = 40;
    let absolute = std::path::absolute(path)?;
    let mut current = PathBuf::new();
    let mut pending: Vec<PathBuf> = components_reversed(&absolute);
    let mut links = 0;
    while let Some(component) = pending.pop() {
        if component == Path::new("..") {
            current.pop();
            continue;
        }
        let next = current.join(&component);
        let data = fs::symlink_metadata(&next)?;
        check_owner(&next, &data)?;
        if data.is_symlink() {
            links += 1;
            if links > MAX_LINKS {
                return Err(permission_error(path, "must contain at most 40 links", "got more"));
            }
            pending.extend(components_reversed(&fs::read_link(&next)?));
            continue;
        }
        check_mode(&next, &data, PathPart::Ancestor)?;
        current = next;
    }
    let data = fs::symlink_metadata(&current)?;
    if !data.is_dir() {
        let text = format!("{}: must be a folder; got a file", current.display());
        return Err(io::Error::new(ErrorKind::NotADirectory, text));
    }
    check_mode(&current, &data, PathPart::Leaf)
}

fn components_reversed(path: &Path) -> Vec<PathBuf> {
    path.components().rev().map(|component| PathBuf::from(component.as_os_str())).collect()
}

#[cfg(unix)]
fn check_owner(path: &Path, data: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    // SAFETY: the function has no preconditions and cannot fail.
    let user = unsafe { libc::geteuid() };
    let owner = data.uid();
    if owner == user || owner == 0 {
        return Ok(());
    }
    Err(permission_error(
        path,
        &format!("owner must be user {user} or root"),
        &format!("got user {owner}"),
    ))
}

#[cfg(unix)]
fn check_mode(path: &Path, data: &Metadata, part: PathPart) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    const GROUP_OR_OTHERS_WRITE: u32 = 0o022;
    const STICKY: u32 = 0o1000;
    let mode = data.mode();
    // In a sticky folder such as `/tmp`, only its owner can rename or remove the files of others.
    let is_sticky = part == PathPart::Ancestor && data.is_dir() && mode & STICKY != 0;
    if mode & GROUP_OR_OTHERS_WRITE == 0 || is_sticky {
        return Ok(());
    }
    let got = format!("got mode {:04o} (chmod go-w removes the access)", mode & 0o7777);
    Err(permission_error(path, "must not be writable by the group or by others", &got))
}

#[cfg(not(unix))]
fn check_owner(_: &Path, _: &Metadata) -> io::Result<()> {
    Ok(())
}

#[cfg(not(unix))]
fn check_mode(_: &Path, _: &Metadata, _: PathPart) -> io::Result<()> {
    Ok(())
}

fn describe_open_error(path: &Path, error: io::Error) -> io::Error {
    #[cfg(unix)]
    if error.raw_os_error() == Some(libc::ELOOP) {
        return permission_error(path, "must be a regular file", "got a symbolic link");
    }
    let _ = path;
    error
}

fn permission_error(path: &Path, requirement: &str, got: &str) -> io::Error {
    let text = format!("{}: {requirement}; {got}", path.display());
    io::Error::new(ErrorKind::PermissionDenied, text)
}

#[cfg(all(test, unix))]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;
    use crate::scratch::ScratchFolder;

    impl ScratchFolder {
        fn set_mode(&self, name: &str, mode: u32) {
            fs::set_permissions(self.0.join(name), fs::Permissions::from_mode(mode)).unwrap();
        }

        fn refusal(&self) -> String {
            PrivateFolder::open(&self.0).unwrap_err().to_string()
        }
    }

    #[test]
    fn folders_writable_by_others_are_rejected() {
        let scratch = ScratchFolder::new("modes");
        for mode in [0o700, 0o755, 0o500] {
            scratch.set_mode("", mode);
            assert!(PrivateFolder::open(&scratch.0).unwrap().is_some(), "{mode:o}");
        }
        for mode in [0o770, 0o720, 0o702, 0o777, 0o1777] {
            scratch.set_mode("", mode);
            assert!(scratch.refusal().contains("group or by others"), "{mode:o}");
        }
    }

    #[test]
    fn parents_writable_by_others_need_the_sticky_bit() {
        let scratch = ScratchFolder::new("parents");
        let inner = scratch.0.join("parent/inner");
        PrivateFolder::create(&inner).unwrap();
        assert_eq!(fs::metadata(&inner).unwrap().permissions().mode() & 0o777, 0o700);
        for (mode, is_accepted) in [(0o777, false), (0o775, false), (0o1777, true), (0o755, true)] {
            scratch.set_mode("parent", mode);
            assert_eq!(PrivateFolder::open(&inner).is_ok(), is_accepted, "{mode:o}");
        }
        // The parents of the target of a link count as well.
        scratch.set_mode("parent", 0o777);
        symlink(&inner, scratch.0.join("link")).unwrap();
        assert!(PrivateFolder::open(&scratch.0.join("link")).is_err());
        assert!(PrivateFolder::open(&scratch.0.join("missing")).unwrap().is_none());
    }

    #[test]
    fn only_private_regular_files_of_bounded_size_are_read() {
        let scratch = ScratchFolder::new("files");
        let folder = PrivateFolder::create(&scratch.0).unwrap();
        assert!(folder.read("file", 10).unwrap().is_none());
        folder.create_file("file").unwrap().write_all(b"12345").unwrap();
        assert_eq!(folder.read("file", 5).unwrap().unwrap(), b"12345");
        assert_eq!(folder.read("file", 4).unwrap_err().kind(), ErrorKind::FileTooLarge);
        for mode in [0o666, 0o620, 0o602] {
            scratch.set_mode("file", mode);
            assert_eq!(folder.read("file", 5).unwrap_err().kind(), ErrorKind::PermissionDenied);
        }
        symlink("/dev/zero", scratch.0.join("zero")).unwrap();
        assert!(folder.read("zero", 5).unwrap_err().to_string().contains("symbolic link"));
        fs::create_dir(scratch.0.join("inner")).unwrap();
        assert!(folder.read("inner", 5).unwrap_err().to_string().contains("regular file"));
        let pipe = std::ffi::CString::new(scratch.0.join("pipe").to_str().unwrap()).unwrap();
        // SAFETY: the path ends with a zero byte.
        assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o600) }, 0);
        assert!(folder.read("pipe", 5).unwrap_err().to_string().contains("regular file"));
    }

    #[test]
    fn files_and_folders_of_other_users_are_rejected() {
        // SAFETY: the function has no preconditions and cannot fail.
        if unsafe { libc::geteuid() } != 0 {
            return; // Only root can change the owner of a file.
        }
        let scratch = ScratchFolder::new("owners");
        let folder = PrivateFolder::create(&scratch.0).unwrap();
        folder.create_file("file").unwrap();
        std::os::unix::fs::chown(scratch.0.join("file"), Some(12345), None).unwrap();
        assert!(folder.read("file", 5).unwrap_err().to_string().contains("got user 12345"));
        std::os::unix::fs::chown(&scratch.0, Some(12345), None).unwrap();
        assert!(scratch.refusal().contains("owner must be"));
    }
}
