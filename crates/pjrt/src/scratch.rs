//! A temporary folder for tests.

use std::path::PathBuf;

/// A temporary folder that is removed at the end of the test.
pub(crate) struct ScratchFolder(pub(crate) PathBuf);

impl ScratchFolder {
    /// Creates the folder, whose name contains `name` and the process.
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("nxla-{name}-{}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
