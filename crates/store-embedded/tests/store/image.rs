//! A crash image: what a directory would look like if the machine stopped right now. It is a copy
//! of the files, taken while they are in use. A copy is not taken at one moment, so it is repeated
//! when SQLite restarted its log in between.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// Copies a directory.
pub(crate) fn of(dir: &Path) -> TempDir {
    loop {
        let image = tempfile::tempdir().expect("a directory");
        if copied(dir, image.path()) {
            return image;
        }
    }
}

/// Copies the marks, the write-ahead log, the SQLite files, their logs, and the snapshots, in this
/// order: each may be newer than those before it, never older.
fn copied(dir: &Path, image: &Path) -> bool {
    for path in named(dir, |name| name.ends_with(".mark")) {
        copy(&path, image);
    }
    for path in named(dir, |name| name.contains(".front-")) {
        copy(&path, image);
    }
    let databases = named(dir, |name| name.ends_with(".sqlite"));
    let before: Vec<_> = databases.iter().map(|path| log_head(path)).collect();
    for path in &databases {
        copy(path, image);
    }
    for path in &databases {
        copy(&log_of(path), image);
    }
    let after: Vec<_> = databases.iter().map(|path| log_head(path)).collect();
    for path in named(dir, |name| name.contains(".snapshot-")) {
        copy(&path, image);
    }
    before == after
}

fn named(dir: &Path, wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).expect("the directory is there");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths.filter(|path| wanted(&path.file_name().expect("a name").to_string_lossy())).collect()
}

fn log_of(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

/// Holds the salt that changes whenever SQLite restarts its log.
fn log_head(database: &Path) -> Option<[u8; 32]> {
    let mut head = [0; 32];
    File::open(log_of(database)).ok()?.read_exact(&mut head).ok()?;
    Some(head)
}

/// Copies a file. It may have been removed by now; then it is not in the image.
fn copy(path: &Path, image: &Path) {
    let name = path.file_name().expect("a name");
    if let Err(error) = fs::copy(path, image.join(name)) {
        assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{}: {error}", path.display());
    }
}
