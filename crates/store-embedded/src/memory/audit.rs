//! The audit log in plain memory.

use std::ops::Bound;

use tidegate_store::audit::{AuditEntry, AuditId, AuditPage, AuditRetention, check_entry};
use tidegate_store::{AuditLog, StoreFuture};

use super::{MemoryStore, ready};

impl AuditLog for MemoryStore {
    fn add_audit_entry(&self, entry: AuditEntry, retention: AuditRetention) -> StoreFuture<'_, ()> {
        ready(move || {
            check_entry(&entry)?;
            let mut log = self.audit();
            log.entry(entry.id).or_insert(entry);
            *log = log.split_off(&AuditId { at: retention.since, tie: 0 });
            while log.len() > retention.entries {
                log.pop_first();
            }
            Ok(())
        })
    }

    fn audit_entries(&self, before: Option<AuditId>, most: usize) -> StoreFuture<'_, AuditPage> {
        ready(move || {
            let end = before.map_or(Bound::Unbounded, Bound::Excluded);
            let log = self.audit();
            let found = log.range((Bound::Unbounded, end)).rev().map(|(_, entry)| entry.clone());
            Ok(AuditPage::cut(found.take(most.saturating_add(1)).collect(), most))
        })
    }
}
