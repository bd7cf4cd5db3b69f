//! Wall clocks of child processes, moved while they run.

use std::path::PathBuf;

use tempfile::TempDir;

/// A clock for each node, in a file that says how far it is off.
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

    /// What has a node go by its file; the clock that only measures is left alone.
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

/// Where the package `faketime` puts its library.
fn library() -> PathBuf {
    let libs = std::fs::read_dir("/usr/lib").unwrap().map(|lib| lib.unwrap().path());
    let found = libs.map(|lib| lib.join("faketime/libfaketimeMT.so.1")).find(|library| library.exists());
    found.expect("install the package faketime")
}
