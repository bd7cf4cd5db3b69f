//! Names the parts that an engine is opened with.

use std::sync::Arc;

use tidegate_core::fact::LimitShape;
use tidegate_store::Store;
use tidegate_upstream::{HttpUpstreams, Upstream};

use super::{Engine, Executors};
use crate::archiver::SharedArchive;
use crate::error::Result;
use crate::options::Options;

/// The kind of operations that are HTTP requests.
pub(crate) const HTTP: &str = "http";

/// The parts of an engine; see [`Engine::builder`].
#[must_use = "nothing happens before `open`"]
pub struct EngineBuilder {
    pub(super) store: Arc<dyn Store>,
    pub(super) options: Options,
    pub(super) executors: Executors,
    pub(super) remote_kinds: Vec<Arc<str>>,
    pub(super) limits: Vec<(Arc<str>, LimitShape)>,
    pub(super) archive: Option<SharedArchive>,
}

impl Engine {
    /// Starts building an engine on a store, with default options and without executors.
    pub fn builder(store: Arc<dyn Store>) -> EngineBuilder {
        EngineBuilder {
            store,
            options: Options::default(),
            executors: Executors::new(),
            remote_kinds: Vec::new(),
            limits: Vec::new(),
            archive: None,
        }
    }
}

impl EngineBuilder {
    /// Sets the options.
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Sends operations of kind `http` to these upstreams, within their limits.
    pub fn http(mut self, upstreams: HttpUpstreams) -> Self {
        self.limits.extend(upstreams.limits());
        self.executor(HTTP, Arc::new(upstreams))
    }

    /// Executes operations of one kind with an executor of your own.
    pub fn executor(mut self, kind: impl Into<Arc<str>>, executor: Arc<dyn Upstream>) -> Self {
        self.executors.insert(kind.into(), executor);
        self
    }

    /// Leaves operations of one kind to remote workers, which take them with
    /// [`Engine::take_work`]. `executor` checks them when they are submitted, and executes none.
    pub fn remote(self, kind: impl Into<Arc<str>>, executor: Arc<dyn Upstream>) -> Self {
        let kind = kind.into();
        self.executor(Arc::clone(&kind), executor).remote_kinds([kind])
    }

    /// Leaves operations of kinds that have an executor to remote workers.
    pub fn remote_kinds(mut self, kinds: impl IntoIterator<Item = Arc<str>>) -> Self {
        self.remote_kinds.extend(kinds);
        self
    }

    /// Adds executors by kind.
    pub fn executors(mut self, executors: Executors) -> Self {
        self.executors.extend(executors);
        self
    }

    /// Adds limits. An executor charges them by name.
    pub fn limits(mut self, limits: impl IntoIterator<Item = (Arc<str>, LimitShape)>) -> Self {
        self.limits.extend(limits);
        self
    }

    /// Copies ended operations to an archive, if there is one. The store must have an archive
    /// queue. An archive that cannot be reached does not keep the engine from opening.
    pub fn archive(mut self, archive: impl Into<Option<SharedArchive>>) -> Self {
        self.archive = archive.into();
        self
    }

    /// Acquires the partition, replays its log, sets the limits and starts working, in tasks of the
    /// current Tokio runtime.
    ///
    /// # Errors
    /// When the partition cannot be acquired or read, or the options are invalid.
    pub async fn open(self) -> Result<Engine> {
        // The replay of a log needs room that callers should not carry in their own futures.
        Box::pin(Engine::open(self)).await
    }
}
