//! Wall clocks of child processes, changed while they run.

use std::path::PathBuf;

use tempfile::TempDir;

/// A clock for each node, in a file with its offset.
pub(crate) struct Clocks(TempDir);

impl Clocks {
    pub(crate) fn new(nodes: usize) -> Self {
        let clocks = Self(tempfile::tempdir().unwrap());
        (0..nodes).for_each(|node| clocks.set(node, 0));
        clocks
    }

    fn file(&self, node: usize) -> PathBuf {
        self.0.path().join(node.to_string())
    }

    pub(crate) fn set(&self, node: usize, seconds: i64) {
        let new = self.0.path().join("new");
        std::fs::write(&new, format!("{seconds:+}\n")).unwrap();
        std::fs::rename(new, self.file(node)).unwrap();
    }

    /// The environment that makes a node use its file; the monotonic clock is left alone.
    pub(crate) fn environment(&self, node: usize) -> Vec<(String, String)> {
        let variables = [
            ("LD_PRELOAD", library().display().to_string()),
            ("FAKETIME_TIMESTAMP_FILE", self.file(node).display().to_string()),
            ("FAKETIME_CACHE_DURATION", "1".to_owned()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
        ];
        variables.map(|(name, value)| (name.to_owned(), value)).into()
    }
}

/// The path of the library of the package `faketime`.
fn library() -> PathBuf {
    let libs = std::fs::read_dir("/usr/lib").unwrap().map(|lib| lib.unwrap().path());
    let found = libs.map(|lib| lib.join("faketime/libfaketimeMT.so.1")).find(|library| library.exists());
    found.expect("install the package faketime")
}
