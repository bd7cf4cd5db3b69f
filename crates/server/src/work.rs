//! Work for remote workers. A worker asks any node with a long poll, and gets operations of any
//! partition:
//!
//! - The callers that wait at this node are in one queue (`WorkHub`), first come first.
//! - Each partition of this node has one task (`puller`), which learns from its engine when an
//!   operation of a remote kind may be claimed. Only then, and only if a caller waits for that
//!   kind, it claims for the first callers of the queue, more of them the more it finds.
//! - For each other node one task (`routing::work`) does the same over HTTP, while callers wait
//!   here: one long poll that asks whether something may be claimed there, then a take.
//!
//! So no one polls for work in an interval, callers that wait cost nothing, and an operation that
//! becomes ready wakes one caller at each node at most, not all of them. A claim that no caller
//! waits for any more is returned to its queue at once.

mod hub;
mod puller;

use std::collections::BTreeSet;

use tidegate::Submission;
use tidegate_dispatch::KIND as GENERATION;
use tidegate_dispatch::notify::KIND as NOTIFICATION;

pub(crate) use hub::{HandedClaim, WorkHub};
pub(crate) use puller::{PAUSE, attach, return_undelivered};

use crate::config::Config;
use crate::config::kind::is_built_in;
use crate::error::{Error, ErrorCode, Result};

/// The kinds that this server leaves to remote workers.
#[derive(Clone, Debug, Default)]
pub(crate) struct RemoteKinds {
    /// Those whose payload only their workers understand.
    pub custom: BTreeSet<String>,
    /// Those that this server has an executor for.
    pub built_in: BTreeSet<String>,
    /// Custom kinds with limits: in a cluster, each is in one partition.
    pub limited: BTreeSet<String>,
}

impl RemoteKinds {
    pub(crate) fn from_config(config: &Config) -> Self {
        let mut kinds = Self::default();
        for one in &config.remote_kinds {
            if is_built_in(&one.name) {
                kinds.built_in.insert(one.name.clone());
                continue;
            }
            kinds.custom.insert(one.name.clone());
            if !one.limits.is_empty() {
                kinds.limited.insert(one.name.clone());
            }
        }
        kinds
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.custom.is_empty() && self.built_in.is_empty()
    }

    /// Whether workers may ask for a kind.
    pub(crate) fn contains(&self, kind: &str) -> bool {
        self.custom.contains(kind) || self.built_in.contains(kind)
    }

    /// All of them.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.custom.iter().chain(&self.built_in).map(String::as_str)
    }

    /// Checks that a submission is of a kind that callers submit, and has its fields: a payload for
    /// remote workers, or a request to an upstream.
    ///
    /// # Errors
    /// Names the field that is wrong, missing or does not belong there.
    pub(crate) fn check_shape(&self, submission: &Submission) -> Result<()> {
        let (kind, has_payload) = (&submission.kind, submission.upstream.is_none());
        let wrong = |field: &str, message: String| Err(Error::new(ErrorCode::Invalid, message).field(field));
        let not_submitted = match &**kind {
            GENERATION => Some("Generations are created with POST /api/generations/create."),
            NOTIFICATION => Some("Tidegate sends the reports of generations itself."),
            _ => None,
        };
        if let Some(instead) = not_submitted {
            let message = format!("Operations of kind {kind} cannot be submitted. {instead}");
            return Err(Error::new(ErrorCode::UnknownKind, message).field("kind"));
        }
        match self.custom.contains(&**kind) {
            true if !has_payload => wrong(
                "payload",
                format!("Operations of kind {kind} have a payload, and no upstream and request."),
            ),
            false if has_payload && is_built_in(kind) => wrong(
                "payload",
                format!("Operations of kind {kind} have an upstream and a request, and no payload."),
            ),
            _ => Ok(()),
        }
    }
}
