//! The thread that applies the write-ahead log to SQLite. It waits a moment for more, because many
//! appends in one transaction touch a page only once; but not when enough is pending or a caller
//! waits.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use tidegate_store::StoreErrorKind;

use super::super::tail::Tail;
use super::super::wal_applier::WalApplier;

/// The rows applied in one transaction.
pub(super) const ROWS: usize = 4_000;
/// How long an append waits for others to be applied with.
const LINGER: Duration = Duration::from_millis(30);
/// The pause before a failed transaction is retried.
const PAUSE: Duration = Duration::from_millis(100);

pub(super) struct Checkpointer {
    pub(super) tail: Arc<Tail>,
    pub(super) applier: WalApplier,
}

impl Checkpointer {
    /// Runs until the writer ends; then a last time, so that little is left to apply at the next
    /// start.
    pub(super) fn run(self, woken: &Receiver<()>) {
        let mut ended = false;
        loop {
            if self.tail.is_empty() {
                if ended {
                    return;
                }
                ended = woken.recv().is_err();
            } else if !ended && !self.tail.is_due(ROWS) {
                ended = woken.recv_timeout(LINGER) == Err(RecvTimeoutError::Disconnected);
            }
            if !self.apply_some(ended, woken) {
                return;
            }
        }
    }

    /// Applies some of what is pending; returns whether to continue.
    fn apply_some(&self, ended: bool, woken: &Receiver<()>) -> bool {
        let next = self.tail.next(ROWS);
        let Some(upto) = next.last().map(|pending| pending.lsn) else { return true };
        match self.applier.apply(next) {
            Ok(()) => self.tail.mark_applied(upto),
            Err(error) => {
                self.tail.set_failure(Some((error.kind(), error.to_string())));
                if ended || error.kind() != StoreErrorKind::Unavailable {
                    return false;
                }
                // Woken or not: look again after a moment, unless the writer has ended.
                if woken.recv_timeout(PAUSE) == Err(RecvTimeoutError::Disconnected) {
                    return false;
                }
            }
        }
        true
    }
}
