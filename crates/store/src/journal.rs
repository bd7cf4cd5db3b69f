//! The journal of deployments, which any process may write and read. Each verb is one atomic step and answers exactly as
//! [`Book`](tidegate_core::journal::Book) does; what was answered is durable.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidegate_core::bounds::{DEPLOYMENT_LEN_MAX, JOURNAL_LINES_MAX};
use tidegate_core::journal::{Deployment, Lines, Mapped, Step};

use crate::checks::invalid;
use crate::{Answer, Result};

/// The journal.
pub trait Journal: Send + Sync {
    /// Writes a deployment, new or known; `false` when somebody with a newer fence has written it since.
    fn keep_deployment(&self, deployment: Deployment) -> Answer<'_, bool>;

    /// Writes lines of a deployment, all or none; `false` when it is not there, or somebody with a newer fence has written
    /// it since.
    fn write_journal(&self, deployment: &str, fence: u64, lines: Lines) -> Answer<'_, bool>;

    /// The deployment of this id.
    fn deployment(&self, id: &str) -> Answer<'_, Option<Deployment>>;

    /// Deployments of a scope, or of all, the newest first; at most `most`.
    fn deployments(&self, scope: Option<&str>, most: usize) -> Answer<'_, Vec<Deployment>>;

    /// The steps of a deployment, in their order.
    fn deployment_steps(&self, id: &str) -> Answer<'_, Vec<Step>>;

    /// The objects of a scope, by kind and key.
    fn mapped(&self, scope: &str) -> Answer<'_, Vec<Mapped>>;
}

/// Longest id, scope, kind or key, in bytes: any store can sort by it.
pub const NAME_LEN_MAX: usize = 512;
/// Most bytes of words in lines that are written at once.
pub const LINES_LEN_MAX: usize = 64 * 1024 * 1024;
/// Largest fence: any store can compare it.
pub const FENCE_MAX: u64 = i64::MAX.cast_unsigned();

/// That a deployment may be kept. Every store asks it first.
///
/// # Errors
/// `Invalid` when it is larger than a store keeps, or when some store could not keep it.
pub fn check_deployment(deployment: &Deployment) -> Result<()> {
    let length = deployment.request.len();
    if length > DEPLOYMENT_LEN_MAX {
        return Err(invalid(format!(
            "a deployment of {length} bytes; at most {DEPLOYMENT_LEN_MAX} are kept"
        )));
    }
    check_fence(deployment.fence)?;
    name("id", &deployment.id)?;
    name("scope", &deployment.scope)?;
    some_word("note", deployment.note.as_deref())
}

/// That lines may be written. Every store asks it first.
///
/// # Errors
/// `Invalid` when there are more than are written at once, or when some store could not keep them.
pub fn check_lines(fence: u64, lines: &Lines) -> Result<()> {
    let count = lines.steps.len().max(lines.mapped.len());
    if count > JOURNAL_LINES_MAX {
        let message =
            format!("{count} lines for the journal; at most {JOURNAL_LINES_MAX} are written at once");
        return Err(invalid(message));
    }
    check_fence(fence)?;
    lines.steps.iter().try_for_each(step)?;
    lines.mapped.iter().try_for_each(mapped)?;
    let length =
        lines.steps.iter().map(step_len).sum::<usize>() + lines.mapped.iter().map(mapped_len).sum::<usize>();
    if length > LINES_LEN_MAX {
        let message =
            format!("lines of {length} bytes for the journal; at most {LINES_LEN_MAX} are written at once");
        return Err(invalid(message));
    }
    Ok(())
}

/// The lines that count: of those with the same kind and key the last one, by kind and key. For a store that writes all
/// of them in one statement.
#[must_use]
pub fn that_count(lines: Lines) -> Lines {
    let name = |kind: &Arc<str>, key: &Arc<str>| (Arc::clone(kind), Arc::clone(key));
    let steps: BTreeMap<_, _> =
        lines.steps.into_iter().map(|line| (name(&line.kind, &line.key), line)).collect();
    let mapped: BTreeMap<_, _> =
        lines.mapped.into_iter().map(|line| (name(&line.kind, &line.key), line)).collect();
    Lines { steps: steps.into_values().collect(), mapped: mapped.into_values().collect() }
}

fn check_fence(fence: u64) -> Result<()> {
    if fence <= FENCE_MAX {
        return Ok(());
    }
    Err(invalid(format!("the fence {fence} of a deployment is too large; the largest is {FENCE_MAX}")))
}

fn step(step: &Step) -> Result<()> {
    name("kind", &step.kind)?;
    name("key", &step.key)?;
    word("action", &step.action)?;
    word("fingerprint", &step.fingerprint)?;
    some_word("operation", step.operation.as_deref())?;
    some_word("object", step.foreign_id.as_deref())?;
    some_word("note", step.note.as_deref())
}

fn mapped(mapped: &Mapped) -> Result<()> {
    name("kind", &mapped.kind)?;
    name("key", &mapped.key)?;
    let Some(object) = &mapped.object else { return Ok(()) };
    word("object", &object.id)?;
    some_word("place", object.place.as_deref())?;
    word("fingerprint", &object.fingerprint)
}

fn step_len(step: &Step) -> usize {
    let some = [&step.operation, &step.foreign_id, &step.note].into_iter().flatten();
    let words = [&step.kind, &step.key, &step.action, &step.fingerprint].into_iter().chain(some);
    words.map(|word| word.len()).sum()
}

fn mapped_len(mapped: &Mapped) -> usize {
    let object = mapped.object.as_ref().map_or(0, |object| {
        object.id.len() + object.fingerprint.len() + object.place.as_ref().map_or(0, |place| place.len())
    });
    mapped.kind.len() + mapped.key.len() + object
}

/// A word by which something is found and sorted.
fn name(what: &str, text: &str) -> Result<()> {
    let length = text.len();
    if length > NAME_LEN_MAX {
        let message =
            format!("the {what} of a journal's line has {length} bytes; at most {NAME_LEN_MAX} are kept");
        return Err(invalid(message));
    }
    word(what, text)
}

fn some_word(what: &str, text: Option<&str>) -> Result<()> {
    text.map_or(Ok(()), |text| word(what, text))
}

/// Not every store keeps text with a zero byte in it.
fn word(what: &str, text: &str) -> Result<()> {
    match text.find('\0') {
        None => Ok(()),
        Some(at) => {
            let message = format!(
                "the {what} of a journal's line has a zero byte at {at}: not every store can keep it"
            );
            Err(invalid(message))
        }
    }
}
