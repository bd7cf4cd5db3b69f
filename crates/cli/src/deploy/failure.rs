//! The failures of a deployment: what to do about each, and the same for scripts.

use serde_json::{Value, json};
use tidegate_discord::deploy::{BlockedStep, Error, StepFailure};
use tidegate_discord::plan::Conflict;
use tidegate_server::ErrorCode;

use super::{StoreArgs, summary};
use crate::error::CliError;

/// The hint when Discord refused the token.
const TOKEN: &str = "Set DISCORD_TOKEN to a valid token of the bot; it has a new one after each reset.";
/// The hint when a folder is in use.
const LOCKED: &str = "Another command, such as `deploy apply`, uses this folder: try again when it has ended. \
                      To look meanwhile, deploy with --server, or keep the journal in Redis or PostgreSQL.";

/// Says what uses a folder, and how to look meanwhile.
pub(super) fn explain_lock(error: CliError) -> CliError {
    let is_lock = error.code.as_deref() == Some(&ErrorCode::StoreRefused.to_string());
    if is_lock && error.message.contains("another process") { error.hint(LOCKED) } else { error }
}

/// A deployment that has begun, where it can be looked at.
pub(super) struct BegunDeployment<'a> {
    pub(super) id: &'a str,
    pub(super) guild: tidegate_discord::Id,
    pub(super) place: &'a StoreArgs,
}

impl BegunDeployment<'_> {
    /// Names the deployment in an error.
    pub(super) fn name_in(&self, error: CliError) -> CliError {
        let Self { id, guild, place } = self;
        let flag = place.flag();
        error.hint(format!(
            "Deployment {id}: `tidegate deploy status --guild {guild} --deployment {id}{flag}` shows its steps."
        ))
    }
}

/// The error of a plan: nothing was begun, so there is nothing to resume.
pub(super) fn plan_error(error: &Error) -> CliError {
    let trouble = CliError::new(error.to_string()).coded(error.code());
    match error {
        Error::TokenRefused { .. } => trouble.hint(TOKEN),
        _ => trouble,
    }
}

/// The error of a deployment; with its steps and its id, if it has begun.
pub(super) fn deploy_error(error: &Error, begun: Option<&BegunDeployment<'_>>) -> CliError {
    let mut detail = json!({});
    if let Some(begun) = begun {
        detail["deployment"] = begun.id.into();
    }
    let trouble = match error {
        Error::Conflicts(conflicts) => {
            detail["conflicts"] = conflicts.iter().map(Conflict::to_json).collect();
            plan_error(error).hint(summary::CONFLICTS)
        }
        Error::Changed => plan_error(error).hint(summary::PLAN_AGAIN),
        Error::Incomplete { failures, blocked, .. } => {
            detail["failed"] = failures.iter().map(failure_json).collect();
            detail["not_tried"] = blocked.iter().map(blocked_json).collect();
            summary::failure_hints(failures.iter().map(|failure| failure.cause.as_str()))
                .fold(plan_error(error), CliError::hint)
        }
        Error::GaveUp { .. } | Error::ReadFailed(_) if begun.is_some() => {
            plan_error(error).hint(summary::AGAIN)
        }
        _ => plan_error(error),
    };
    let trouble = begun.into_iter().fold(trouble, |trouble, begun| begun.name_in(trouble));
    trouble.detail(if detail == json!({}) { Value::Null } else { detail })
}

fn failure_json(failure: &StepFailure) -> Value {
    let (kind, key) = failure.target.words();
    json!({
        "kind": kind, "key": key, "action": failure.action.as_str(), "route": failure.route,
        "status": failure.status(), "class": failure.cause.as_str(), "reason": failure.message,
    })
}

fn blocked_json(step: &BlockedStep) -> Value {
    let (kind, key) = step.target.words();
    json!({ "kind": kind, "key": key, "action": step.action.as_str(), "reason": step.reason() })
}

/// The failed and the untried steps of a deployment that a server has ended.
pub(super) fn ended_detail(ended: &Value) -> Value {
    let steps = ended["steps"].as_array().map(Vec::as_slice).unwrap_or_default();
    let in_state = |state: &str| -> Vec<Value> {
        let steps = steps.iter().filter(|step| step["state"] == state);
        steps.map(step_json).collect()
    };
    json!({ "deployment": ended["id"], "failed": in_state("failed"), "not_tried": in_state("planned") })
}

fn step_json(step: &Value) -> Value {
    let note = step["note"].as_str().unwrap_or_default();
    // The class is in brackets at the end of the note.
    let (reason, class) = note
        .strip_suffix(')')
        .and_then(|note| note.rsplit_once(" ("))
        .map_or((note, None), |(reason, class)| (reason, Some(class)));
    json!({
        "kind": step["kind"], "key": step["key"], "action": step["action"], "operation": step["operation"],
        "class": class, "reason": reason,
    })
}
