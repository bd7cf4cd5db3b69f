//! The journal of deployments: what was planned for a foreign system, what became of each step, and which object there
//! has which key. It knows neither the system nor the plan: kinds, keys and ids are words. [`MemoryJournal`] is the whole rule;
//! every store answers as it does.

mod book;

use std::sync::Arc;

use crate::time::Time;

pub use book::MemoryJournal;

/// One deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deployment {
    /// Its id; ids sort by time.
    pub id: Arc<str>,
    /// What it changes, as in `guild:41771983423143937`. One runs there at a time.
    pub scope: Arc<str>,
    /// Who writes it: the fence of the lease on its scope. An older one's writes change nothing.
    pub fence: u64,
    /// How often a plan was made.
    pub round: u32,
    /// Where it stands.
    pub stage: DeploymentStage,
    /// What is wanted, as the deployer reads it back to go on after a crash.
    pub request: Arc<[u8]>,
    /// Why it failed, or what there is to say.
    pub note: Option<Arc<str>>,
    /// When it began.
    pub started_at: Time,
    /// When it was last written.
    pub updated_at: Time,
}

/// Where a deployment stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeploymentStage {
    /// It runs, or was interrupted and can be gone on with.
    Running,
    /// All is as it was wanted.
    Done,
    /// It was given up.
    Failed,
}

impl DeploymentStage {
    /// In one word, as it is stored.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
        }
    }

    /// Back from its word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Running, Self::Done, Self::Failed].into_iter().find(|stage| stage.as_str() == word)
    }
}

/// What became of one step. A deployment has one line for each kind and key; a later plan writes it again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeploymentStep {
    /// The kind of object, as in `role`.
    pub kind: Arc<str>,
    /// Its key in the template.
    pub key: Arc<str>,
    /// Its place among the steps.
    pub nth: u32,
    /// What is done, as in `create`.
    pub action: Arc<str>,
    /// Of the state that is wanted.
    pub fingerprint: Arc<str>,
    /// Where it stands.
    pub state: StepState,
    /// The operation that carries it.
    pub operation: Option<Arc<str>>,
    /// The object, when it is known.
    pub foreign_id: Option<Arc<str>>,
    /// Why it failed.
    pub note: Option<Arc<str>>,
    /// When this was written.
    pub at: Time,
}

/// Where a step stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StepState {
    /// It is to be done, and may have been.
    Planned,
    /// The object is there as wanted.
    Applied,
    /// It was not done.
    Failed,
}

impl StepState {
    /// In one word, as it is stored.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Planned => "planned",
            Self::Applied => "applied",
            Self::Failed => "failed",
        }
    }

    /// Back from its word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Planned, Self::Applied, Self::Failed].into_iter().find(|state| state.as_str() == word)
    }
}

/// Which object has which key in a scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectMapping {
    /// The kind of object.
    pub kind: Arc<str>,
    /// Its key.
    pub key: Arc<str>,
    /// The object; none when the mapping is to be forgotten.
    pub object: Option<ForeignObject>,
}

/// An object of the foreign system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignObject {
    /// Its id there.
    pub id: Arc<str>,
    /// Where it is inside the scope, if that matters: a message's channel.
    pub place: Option<Arc<str>>,
    /// Of the state that it was last brought to.
    pub fingerprint: Arc<str>,
}

/// Lines for the journal, written all or none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JournalLines {
    /// Steps; of a kind and key that is there already, the line is replaced.
    pub steps: Vec<DeploymentStep>,
    /// Objects of the deployment's scope, likewise.
    pub mapped: Vec<ObjectMapping>,
}
