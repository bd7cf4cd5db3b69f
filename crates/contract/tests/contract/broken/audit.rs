//! A broken audit log.

use tidegate_core::Time;
use tidegate_store::audit::{AuditEntry, AuditId, AuditPage, AuditRetention};
use tidegate_store::{AuditLog, StoreErrorKind, StoreFuture};

use super::{BrokenStore, Quirk};

impl AuditLog for BrokenStore {
    fn add_audit_entry(&self, mut entry: AuditEntry, mut retention: AuditRetention) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            match self.quirk {
                Quirk::AuditRenumbers => entry.id.tie ^= self.next_call() as u32 % 2,
                Quirk::AuditKeepsAll => retention.entries = usize::MAX,
                Quirk::AuditKeepsOld => retention.since = Time::ZERO,
                _ => {}
            }
            match self.inner.add_audit_entry(entry, retention).await {
                Err(error)
                    if error.kind() == StoreErrorKind::Invalid && self.is(Quirk::AuditTakesAnything) =>
                {
                    Ok(())
                }
                answer => answer,
            }
        })
    }

    fn audit_entries(&self, before: Option<AuditId>, most: usize) -> StoreFuture<'_, AuditPage> {
        Box::pin(async move {
            let mut page = self.inner.audit_entries(before, most).await?;
            let is_cut = page.next.is_some() && page.entries.len() > 1;
            match self.quirk {
                Quirk::AuditListsOldestFirst => page.entries.reverse(),
                Quirk::AuditSkips if is_cut => drop(page.entries.pop()),
                Quirk::ImageLacksAuditEntry if self.is_image && !page.entries.is_empty() => {
                    page.entries.remove(0);
                }
                _ => {}
            }
            Ok(page)
        })
    }
}

impl BrokenStore {
    /// Counts the calls.
    fn next_call(&self) -> u64 {
        let mut notes = self.notes.lock().unwrap();
        notes.calls += 1;
        notes.calls
    }
}
