//! The handle that callers hold. Cheap to clone; every verb goes to the owner or reads the store.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tidegate_core::OperationId;
use tidegate_core::fact::Shape;
use tidegate_core::model::{Counts, GroupView, LimitView, Resolution};
use tidegate_store::Store;
use tidegate_upstream::Upstream;

use crate::error::Result;
use crate::events::Subscription;
use crate::options::Options;
use crate::submission::{Receipt, Submission};
use crate::view::{Filter, GroupPage, Page, Reason, View};

/// Who carries which kind.
pub type Executors = BTreeMap<Arc<str>, Arc<dyn Upstream>>;

/// An engine that owns its partition.
#[derive(Clone, Debug)]
pub struct Engine {}

impl Engine {
    /// Becomes the owner, replays the log, sets the configured limits and starts working.
    ///
    /// # Errors
    /// When the store cannot be owned or read.
    pub async fn open(
        _store: Arc<dyn Store>,
        _options: Options,
        _executors: Executors,
        _limits: Vec<(Arc<str>, Shape)>,
    ) -> Result<Self> {
        std::future::pending().await
    }

    /// Hands in an operation; answers when its acceptance is durable.
    ///
    /// # Errors
    /// When it is refused, or the store cannot be written.
    pub async fn submit(&self, _submission: Submission) -> Result<Receipt> {
        std::future::pending().await
    }

    /// Hands in several; each is answered for itself, in order. The good ones are accepted in one step.
    pub async fn submit_all(&self, _submissions: Vec<Submission>) -> Vec<Result<Receipt>> {
        std::future::pending().await
    }

    /// An operation as it stands.
    ///
    /// # Errors
    /// When there is none of that id.
    pub async fn get(&self, _id: OperationId) -> Result<View> {
        std::future::pending().await
    }

    /// An operation when it has ended, or as it stands after `most`.
    ///
    /// # Errors
    /// When there is none of that id.
    pub async fn wait(&self, _id: OperationId, _most: Duration) -> Result<View> {
        std::future::pending().await
    }

    /// A page of operations.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn list(&self, _filter: Filter) -> Result<Page> {
        std::future::pending().await
    }

    /// Why an operation does not run.
    ///
    /// # Errors
    /// When there is none of that id.
    pub async fn why(&self, _id: OperationId) -> Result<Reason> {
        std::future::pending().await
    }

    /// Calls an operation off; one that runs is told to stop and ends soon after.
    ///
    /// # Errors
    /// When there is none of that id, or it has ended.
    pub async fn cancel(&self, _id: OperationId) -> Result<View> {
        std::future::pending().await
    }

    /// Runs an operation that failed or was called off again, at the end of its group.
    ///
    /// # Errors
    /// When there is none of that id, or it has not failed.
    pub async fn rerun(&self, _id: OperationId) -> Result<View> {
        std::future::pending().await
    }

    /// Says what happened to an operation whose outcome is unknown.
    ///
    /// # Errors
    /// When its outcome is not unknown.
    pub async fn resolve(&self, _id: OperationId, _resolution: Resolution) -> Result<View> {
        std::future::pending().await
    }

    /// Groups by name; only those that wait for a person when `stopped`.
    ///
    /// # Errors
    /// When the engine is stopping.
    pub async fn groups(&self, _stopped: bool, _after: Option<Arc<str>>, _limit: usize) -> Result<GroupPage> {
        std::future::pending().await
    }

    /// A group, what it waits for, and the first of its line.
    ///
    /// # Errors
    /// When nothing is known of it.
    pub async fn group(&self, _name: &str) -> Result<(GroupView, Option<Reason>, Vec<View>)> {
        std::future::pending().await
    }

    /// Stops a group.
    ///
    /// # Errors
    /// When a name is out of bounds.
    pub async fn pause(&self, _group: &str, _by: &str, _reason: &str) -> Result<GroupView> {
        std::future::pending().await
    }

    /// Lets a paused or held group go on.
    ///
    /// # Errors
    /// When it is neither, or an outcome must be resolved first.
    pub async fn resume(&self, _group: &str) -> Result<()> {
        std::future::pending().await
    }

    /// All limits as they stand.
    ///
    /// # Errors
    /// When the engine is stopping.
    pub async fn limits(&self) -> Result<Vec<LimitView>> {
        std::future::pending().await
    }

    /// Sets a limit to other figures.
    ///
    /// # Errors
    /// When there is none of that name, or the figures are out of bounds.
    pub async fn set_limit(&self, _name: &str, _shape: Shape) -> Result<LimitView> {
        std::future::pending().await
    }

    /// Opens a limit that an upstream had closed.
    ///
    /// # Errors
    /// When there is none of that name.
    pub async fn thaw(&self, _name: &str) -> Result<LimitView> {
        std::future::pending().await
    }

    /// How many operations there are in each state.
    ///
    /// # Errors
    /// When the engine is stopping.
    pub async fn counts(&self) -> Result<Counts> {
        std::future::pending().await
    }

    /// Whether it works: the store can be written and the owner answers.
    ///
    /// # Errors
    /// Says what does not.
    pub async fn health(&self) -> Result<()> {
        std::future::pending().await
    }

    /// Changes from now on, or after the event of this id.
    #[must_use]
    pub fn events(&self, _after: Option<u64>) -> Subscription {
        crate::events::Events::new(0).subscribe(None)
    }

    /// Resolves when the engine has stopped by itself because its store failed; the reason is in it.
    pub async fn stopped(&self) -> crate::error::Error {
        std::future::pending().await
    }

    /// Stops taking, lets calls under way finish or gives them back, and gives the partition up.
    pub async fn drain(&self) {}
}
