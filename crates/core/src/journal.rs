//! The journal of deployments: what was planned for a foreign system, the state of each step and
//! the events that led to it, and which object there has which key. The journal knows neither the
//! system nor the plan: kinds, keys and ids are opaque strings. [`MemoryJournal`] is the reference
//! implementation; every store behaves the same.

mod book;

use std::sync::Arc;

use crate::time::Time;

pub use book::MemoryJournal;

/// One deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deployment {
    /// Its id; ids sort by time.
    pub id: Arc<str>,
    /// The scope it changes, as in `guild:41771983423143937`. Only one deployment runs in a scope
    /// at a time.
    pub scope: Arc<str>,
    /// The writer: the fence of the lease on its scope. Writes with an older fence change nothing.
    pub fence: u64,
    /// The number of plans made so far.
    pub round: u32,
    /// Its current stage.
    pub stage: DeploymentStage,
    /// The requested state; the deployer reads it back to resume after a crash.
    pub request: Arc<[u8]>,
    /// Why it failed, or another remark.
    pub note: Option<Arc<str>>,
    /// When it began.
    pub started_at: Time,
    /// When it was last written.
    pub updated_at: Time,
}

/// The stage of a deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeploymentStage {
    /// It is running, or was interrupted and can be resumed.
    Running,
    /// The requested state is reached.
    Done,
    /// It was abandoned.
    Failed,
}

impl DeploymentStage {
    /// The stored name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
        }
    }

    /// Parses the stored name.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Running, Self::Done, Self::Failed].into_iter().find(|stage| stage.as_str() == word)
    }
}

/// The state of one step. A deployment has one line for each kind and key; a later plan overwrites
/// it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeploymentStep {
    /// The kind of object, as in `role`.
    pub kind: Arc<str>,
    /// Its key in the template.
    pub key: Arc<str>,
    /// Its position among the steps.
    pub nth: u32,
    /// The action, as in `create`.
    pub action: Arc<str>,
    /// The fingerprint of the desired state.
    pub fingerprint: Arc<str>,
    /// Its current state.
    pub state: StepState,
    /// The operation that executes it.
    pub operation: Option<Arc<str>>,
    /// The object, when it is known.
    pub foreign_id: Option<Arc<str>>,
    /// Why it failed.
    pub note: Option<Arc<str>>,
    /// When this line was written.
    pub at: Time,
}

/// The state of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StepState {
    /// It is to be done, and may have been done.
    Planned,
    /// The object exists in the desired state.
    Applied,
    /// It failed.
    Failed,
}

impl StepState {
    /// The stored name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Planned => "planned",
            Self::Applied => "applied",
            Self::Failed => "failed",
        }
    }

    /// Parses the stored name.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Planned, Self::Applied, Self::Failed].into_iter().find(|state| state.as_str() == word)
    }
}

/// The events of a deployment: each line of a step as it was written, oldest first. Planned,
/// applied and failed follow each other here, while [`DeploymentStep`] keeps only the latest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepEvents {
    /// The number of older events that made room for these.
    pub dropped: u64,
    /// The events that are kept, at most
    /// [`DEPLOYMENT_EVENTS_KEPT`](crate::bounds::DEPLOYMENT_EVENTS_KEPT).
    pub events: Vec<DeploymentStep>,
}

/// Maps a key to an object of a scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectMapping {
    /// The kind of object.
    pub kind: Arc<str>,
    /// Its key.
    pub key: Arc<str>,
    /// The object; `None` removes the mapping.
    pub object: Option<ForeignObject>,
}

/// An object of the foreign system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignObject {
    /// Its id in the foreign system.
    pub id: Arc<str>,
    /// Its location inside the scope, if that matters: the channel of a message.
    pub place: Option<Arc<str>>,
    /// The fingerprint of the state it was last brought to.
    pub fingerprint: Arc<str>,
}

/// Lines for the journal, written all or nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JournalLines {
    /// Steps; a line with an existing kind and key is replaced. Each is an event too.
    pub steps: Vec<DeploymentStep>,
    /// Objects of the deployment's scope, replaced in the same way.
    pub mapped: Vec<ObjectMapping>,
}
