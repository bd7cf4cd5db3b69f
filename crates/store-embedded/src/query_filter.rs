//! Decides which operations match a query. Where they are stored is the backend's business.

use bytes::Bytes;
use tidegate_core::EndState;
use tidegate_store::log::{StoredEntry, StoredQuery};

/// Returns whether an operation of this group and kind may match.
pub(crate) fn matches_group_and_kind(query: &StoredQuery, group: &str, kind: &str) -> bool {
    query.group.as_deref().is_none_or(|wanted| wanted == group)
        && query.kind.as_deref().is_none_or(|wanted| wanted == kind)
}

/// Returns whether an operation that ended like this matches.
pub(crate) fn matches_end_state(query: &StoredQuery, ended: Option<EndState>) -> bool {
    query.ended.is_none_or(|wanted| ended == Some(wanted))
}

/// Removes the bodies, as pages do not show them.
pub(crate) fn without_bodies(mut stored: StoredEntry) -> StoredEntry {
    stored.operation.payload = Bytes::new();
    if let Some(result) = &mut stored.result {
        result.body = Bytes::new();
    }
    stored
}
