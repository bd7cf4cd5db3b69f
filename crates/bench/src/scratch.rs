//! Stores to measure: a fresh one that is removed afterwards, because leftovers of an earlier run
//! must not be measured again; and how any of them is opened.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;
use tidegate_store::Store;

use crate::nodes;

/// Opens a store, as a server would.
pub(crate) async fn open(url: &str) -> Result<Arc<dyn Store>, String> {
    tidegate_server::backend::open(url).await.map_err(|error| error.message)
}

/// A fresh store.
#[derive(Debug)]
pub(crate) struct Scratch {
    url: String,
    dir: Option<TempDir>,
}

impl Scratch {
    /// Creates a store in a new directory below the one that `store` names, or in memory.
    pub(crate) fn new(store: &str) -> Result<Self, String> {
        let Some(parent) = store.strip_prefix("file:") else {
            return match store {
                "memory:" => Ok(Self { url: store.to_owned(), dir: None }),
                _ => Err(format!("{store:?} is not a store for a benchmark: it must be file:DIR or memory:")),
            };
        };
        let dir = dir_in(Path::new(parent))?;
        Ok(Self { url: format!("file:{}", dir.path().display()), dir: Some(dir) })
    }

    /// Like `new`, or with another prefix or another schema on a server.
    pub(crate) fn on_any_store(store: &str) -> Result<Self, String> {
        if store.contains("://") {
            Ok(Self { url: nodes::fresh_store_url(store)?, dir: None })
        } else {
            Self::new(store)
        }
    }

    /// Returns the store's URL.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Returns the directory of its files, if it has any.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        self.dir.as_ref().map(|dir| dir.path().to_owned())
    }
}

/// Creates a new directory below `parent`, which is created if it does not exist.
pub(crate) fn dir_in(parent: &Path) -> Result<TempDir, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", parent.display());
    std::fs::create_dir_all(parent).map_err(failed)?;
    tempfile::Builder::new().prefix("bench-").tempdir_in(parent).map_err(failed)
}
