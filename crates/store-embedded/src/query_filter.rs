//! Which operations a query asks for. Only looks; where they lie is the backend's business.

use bytes::Bytes;
use tidegate_core::EndState;
use tidegate_store::log::{StoredEntry, StoredQuery};

/// Most rows that one `list` looks at; the caller goes on from where it stopped.
pub(crate) const SCANNED_MAX: usize = 50_000;

/// Whether an operation of this group and kind may belong to the answer.
pub(crate) fn matches_group_and_kind(query: &StoredQuery, group: &str, kind: &str) -> bool {
    query.group.as_deref().is_none_or(|wanted| wanted == group)
        && query.kind.as_deref().is_none_or(|wanted| wanted == kind)
}

/// Whether one that ended like this does.
pub(crate) fn matches_end_state(query: &StoredQuery, ended: Option<EndState>) -> bool {
    query.ended.is_none_or(|wanted| ended == Some(wanted))
}

/// As a page shows it.
pub(crate) fn without_bodies(mut stored: StoredEntry) -> StoredEntry {
    stored.operation.payload = Bytes::new();
    if let Some(result) = &mut stored.result {
        result.body = Bytes::new();
    }
    stored
}
