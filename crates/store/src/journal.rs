//! The journal of deployments, which any process may write and read. Each method is one atomic step
//! and returns exactly what [`MemoryJournal`](tidegate_core::journal::MemoryJournal) does; a
//! completed write is durable.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidegate_core::bounds::{DEPLOYMENT_LEN_MAX, JOURNAL_FENCE_MAX, JOURNAL_LINES_MAX, JOURNAL_NAME_LEN_MAX};
use tidegate_core::journal::{Deployment, DeploymentStep, JournalLines, ObjectMapping, StepEvents};

use crate::checks::invalid_error;
use crate::{Result, StoreFuture};

/// The journal.
pub trait Journal: Send + Sync {
    /// Writes a deployment, new or known; `false` when a writer with a newer fence has written it
    /// since.
    fn save_deployment(&self, deployment: Deployment) -> StoreFuture<'_, bool>;

    /// Writes lines of a deployment, all or nothing, and adds those of steps to its events in the
    /// same step; `false` when it does not exist, or a writer with a newer fence has written it
    /// since.
    fn write_journal(&self, deployment: &str, fence: u64, lines: JournalLines) -> StoreFuture<'_, bool>;

    /// Returns the deployment with this id.
    fn deployment(&self, id: &str) -> StoreFuture<'_, Option<Deployment>>;

    /// Lists the deployments of a scope, or of all scopes, newest first; at most `most`.
    fn deployments(&self, scope: Option<&str>, most: usize) -> StoreFuture<'_, Vec<Deployment>>;

    /// Lists the steps of a deployment, in order.
    fn deployment_steps(&self, id: &str) -> StoreFuture<'_, Vec<DeploymentStep>>;

    /// Lists the events of a deployment, oldest first.
    fn deployment_events(&self, id: &str) -> StoreFuture<'_, StepEvents>;

    /// Lists the mapped objects of a scope, by kind and key.
    fn mapped_objects(&self, scope: &str) -> StoreFuture<'_, Vec<ObjectMapping>>;
}

/// Most bytes of text in lines that are written in one call.
const LINES_LEN_MAX: usize = 64 * 1024 * 1024;

/// Checks that a deployment may be stored. Every store calls this first.
///
/// # Errors
/// `Invalid` when it is too large, or when some store could not keep it.
pub fn check_deployment(deployment: &Deployment) -> Result<()> {
    let length = deployment.request.len();
    if length > DEPLOYMENT_LEN_MAX {
        return Err(invalid_error(format!(
            "a deployment of {length} bytes; at most {DEPLOYMENT_LEN_MAX} are kept"
        )));
    }
    check_fence(deployment.fence)?;
    check_name("id", &deployment.id)?;
    check_name("scope", &deployment.scope)?;
    check_optional_text("note", deployment.note.as_deref())
}

/// Checks that lines may be written. Every store calls this first.
///
/// # Errors
/// `Invalid` when there are too many for one call, or when some store could not keep them.
pub fn check_lines(fence: u64, lines: &JournalLines) -> Result<()> {
    let count = lines.steps.len().max(lines.mapped.len());
    if count > JOURNAL_LINES_MAX {
        let message =
            format!("{count} lines for the journal; at most {JOURNAL_LINES_MAX} are written at once");
        return Err(invalid_error(message));
    }
    check_fence(fence)?;
    lines.steps.iter().try_for_each(check_step)?;
    lines.mapped.iter().try_for_each(check_mapping)?;
    let length =
        lines.steps.iter().map(step_len).sum::<usize>() + lines.mapped.iter().map(mapped_len).sum::<usize>();
    if length > LINES_LEN_MAX {
        let message =
            format!("lines of {length} bytes for the journal; at most {LINES_LEN_MAX} are written at once");
        return Err(invalid_error(message));
    }
    Ok(())
}

/// Keeps the last of the objects with the same kind and key, sorted by kind and key. For a store
/// that writes all of them in one statement.
#[must_use]
pub fn dedupe_mapped(mapped: Vec<ObjectMapping>) -> Vec<ObjectMapping> {
    let name = |line: &ObjectMapping| (Arc::clone(&line.kind), Arc::clone(&line.key));
    let mapped: BTreeMap<_, _> = mapped.into_iter().map(|line| (name(&line), line)).collect();
    mapped.into_values().collect()
}

fn check_fence(fence: u64) -> Result<()> {
    if fence <= JOURNAL_FENCE_MAX {
        return Ok(());
    }
    Err(invalid_error(format!(
        "the fence {fence} of a deployment is too large; the largest is {JOURNAL_FENCE_MAX}"
    )))
}

fn check_step(step: &DeploymentStep) -> Result<()> {
    check_name("kind", &step.kind)?;
    check_name("key", &step.key)?;
    check_text("action", &step.action)?;
    check_text("fingerprint", &step.fingerprint)?;
    check_optional_text("operation", step.operation.as_deref())?;
    check_optional_text("object", step.foreign_id.as_deref())?;
    check_optional_text("note", step.note.as_deref())
}

fn check_mapping(mapped: &ObjectMapping) -> Result<()> {
    check_name("kind", &mapped.kind)?;
    check_name("key", &mapped.key)?;
    let Some(object) = &mapped.object else { return Ok(()) };
    check_text("object", &object.id)?;
    check_optional_text("place", object.place.as_deref())?;
    check_text("fingerprint", &object.fingerprint)
}

fn step_len(step: &DeploymentStep) -> usize {
    let some = [&step.operation, &step.foreign_id, &step.note].into_iter().flatten();
    let words = [&step.kind, &step.key, &step.action, &step.fingerprint].into_iter().chain(some);
    words.map(|word| word.len()).sum()
}

fn mapped_len(mapped: &ObjectMapping) -> usize {
    let object = mapped.object.as_ref().map_or(0, |object| {
        object.id.len() + object.fingerprint.len() + object.place.as_ref().map_or(0, |place| place.len())
    });
    mapped.kind.len() + mapped.key.len() + object
}

/// Checks a name that is looked up and sorted by.
fn check_name(what: &str, text: &str) -> Result<()> {
    let length = text.len();
    if length > JOURNAL_NAME_LEN_MAX {
        let message = format!(
            "the {what} of a journal's line has {length} bytes; at most {JOURNAL_NAME_LEN_MAX} are kept"
        );
        return Err(invalid_error(message));
    }
    check_text(what, text)
}

fn check_optional_text(what: &str, text: Option<&str>) -> Result<()> {
    text.map_or(Ok(()), |text| check_text(what, text))
}

/// Checks for zero bytes, which not every store can keep in text.
fn check_text(what: &str, text: &str) -> Result<()> {
    match text.find('\0') {
        None => Ok(()),
        Some(at) => {
            let message = format!(
                "the {what} of a journal's line has a zero byte at {at}: not every store can keep it"
            );
            Err(invalid_error(message))
        }
    }
}
