//! The audit log: who commanded what, when, why, and with which status, for people who look later.
//! It is one log for all processes that share the store. It is bounded by count and by age, and
//! nothing that runs reads it.

use std::fmt;
use std::sync::Arc;

use tidegate_core::Time;
use tidegate_core::bounds::AUDIT_TEXT_LEN_MAX;

use crate::checks::invalid_error;
use crate::{Result, StoreFuture};

/// The identity of an entry. Ids sort by time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AuditId {
    /// When the command was done, by the clock of its node.
    pub at: Time,
    /// Tells commands of the same moment apart.
    pub tie: u32,
}

/// The lengths of an id's two parts, in hexadecimal digits.
const ID_DIGITS: [usize; 2] = [16, 8];

/// Prints a fixed number of digits, so that texts sort as ids do.
impl fmt::Display for AuditId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{:0at$x}-{:0tie$x}",
            self.at.as_micros(),
            self.tie,
            at = ID_DIGITS[0],
            tie = ID_DIGITS[1]
        )
    }
}

impl AuditId {
    /// Parses the text of an id; `None` for any other text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (at, tie) = text.split_once('-').filter(|(at, tie)| [at.len(), tie.len()] == ID_DIGITS)?;
        let at = Time::from_micros(u64::from_str_radix(at, 16).ok()?);
        let id = Self { at, tie: u32::from_str_radix(tie, 16).ok()? };
        (id.to_string() == text).then_some(id)
    }
}

/// One command of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// Its identity, which has its time.
    pub id: AuditId,
    /// The node that received it.
    pub node: Arc<str>,
    /// Who gave it.
    pub by: Arc<str>,
    /// The command, such as `rerun`.
    pub action: Arc<str>,
    /// What it is about: `operations`, `groups`, `limits`, `keys`.
    pub kind: Arc<str>,
    /// The name or id of that; empty for a command about all that a filter finds.
    pub subject: Arc<str>,
    /// What exactly was commanded, such as `as succeeded`.
    pub detail: Option<Arc<str>>,
    /// Why.
    pub reason: Option<Arc<str>>,
    /// The HTTP status of the response.
    pub status: u16,
}

/// A page of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditPage {
    /// Newest first.
    pub entries: Vec<AuditEntry>,
    /// Where the next page starts; `None` at the end.
    pub next: Option<AuditId>,
}

impl AuditPage {
    /// Makes a page of the entries that were found; one more than fits tells that there are more.
    #[must_use]
    pub fn cut(mut entries: Vec<AuditEntry>, most: usize) -> Self {
        let is_last = entries.len() <= most;
        entries.truncate(most);
        let next = entries.last().filter(|_| !is_last).map(|entry| entry.id);
        Self { entries, next }
    }
}

/// What stays in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditRetention {
    /// How many entries, the newest of all nodes.
    pub entries: usize,
    /// Of those, the ones from this time on.
    pub since: Time,
}

/// The audit log.
pub trait AuditLog: Send + Sync {
    /// Adds an entry, durably, and removes what the retention does not keep. Adding the same entry
    /// again changes nothing.
    fn add_audit_entry(&self, entry: AuditEntry, retention: AuditRetention) -> StoreFuture<'_, ()>;

    /// Returns a page of entries, newest first: those before an id, or the newest of all.
    fn audit_entries(&self, before: Option<AuditId>, most: usize) -> StoreFuture<'_, AuditPage>;
}

/// Checks that an entry may be stored. Every store calls this first.
///
/// # Errors
/// `Invalid` when a text is too long or some store could not keep it, or when the time is too late.
pub fn check_entry(entry: &AuditEntry) -> Result<()> {
    if i64::try_from(entry.id.at.as_micros()).is_err() {
        return Err(invalid_error("the time of an entry of the audit log is too late"));
    }
    let AuditEntry { node, by, action, kind, subject, detail, reason, .. } = entry;
    let texts =
        [Some(node), Some(by), Some(action), Some(kind), Some(subject), detail.as_ref(), reason.as_ref()];
    for text in texts.into_iter().flatten() {
        if text.len() > AUDIT_TEXT_LEN_MAX || text.contains('\0') {
            let message = format!(
                "a text of an entry of the audit log has {} bytes; it has at most {AUDIT_TEXT_LEN_MAX} and no zero byte",
                text.len()
            );
            return Err(invalid_error(message));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_its_text_and_sorts_like_it() {
        let id = |at, tie| AuditId { at: Time::from_micros(at), tie };
        let ids = [id(0, 9), id(7, 0), id(7, 1), id(1_780_000_000_000_000, u32::MAX), id(u64::MAX, 0)];
        assert!(ids.is_sorted() && ids.map(|id| id.to_string()).is_sorted());
        for id in ids {
            assert_eq!(AuditId::parse(&id.to_string()), Some(id));
        }
        let text = ids[3].to_string();
        for wrong in ["", "-", &text[1..], &text.to_uppercase(), &text.replacen('0', "+", 1)] {
            assert_eq!(AuditId::parse(wrong), None, "{wrong}");
        }
    }
}
