//! An archive shared by the engines of one process, and whether copying to it currently fails.

use std::fmt;
use std::sync::Arc;

use tidegate_store::Archive;

use crate::outage::Outage;

/// An archive, shared by every engine of a process. Clones share state.
#[derive(Clone)]
pub struct SharedArchive {
    pub(crate) archive: Arc<dyn Archive>,
    pub(crate) outage: Arc<Outage>,
}

impl SharedArchive {
    /// Wraps an archive.
    #[must_use]
    pub fn new(archive: Arc<dyn Archive>) -> Self {
        Self { archive, outage: Arc::default() }
    }
}

impl fmt::Debug for SharedArchive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedArchive({})", self.archive.describe())
    }
}
