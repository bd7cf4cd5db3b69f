//! The audit log of a store with fault injection.

use tidegate_store::audit::{AuditEntry, AuditId, AuditPage, AuditRetention};
use tidegate_store::{AuditLog, StoreFuture};

use super::{FaultyStore, StoreMethod};

impl AuditLog for FaultyStore {
    fn add_audit_entry(&self, entry: AuditEntry, retention: AuditRetention) -> StoreFuture<'_, ()> {
        self.call_with_fault(StoreMethod::AddAuditEntry, move || self.inner.add_audit_entry(entry, retention))
    }

    fn audit_entries(&self, before: Option<AuditId>, most: usize) -> StoreFuture<'_, AuditPage> {
        self.call_with_fault(StoreMethod::AuditEntries, move || self.inner.audit_entries(before, most))
    }
}
