//! The thread that fills SQLite behind the front. It waits a moment for more, because many appends in one transaction
//! touch a page once; not when enough waits, and not when somebody does.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use tidegate_store::Kind;

use super::super::filling::Filling;
use super::super::tail::Tail;

/// Rows filled in with one transaction.
pub(super) const ROWS: usize = 4_000;
/// How long an append waits for others to be filled in with.
const LINGER: Duration = Duration::from_millis(30);
/// Before filling in is tried again.
const PAUSE: Duration = Duration::from_millis(100);

pub(super) struct Filler {
    pub(super) tail: Arc<Tail>,
    pub(super) filling: Filling,
}

impl Filler {
    /// Until the writer ends; then once more, so that little is left to fill in at the next start.
    pub(super) fn work(self, woken: &Receiver<()>) {
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
            if !self.fill_some(ended, woken) {
                return;
            }
        }
    }

    /// Fills in some of what waits; answers whether there is any point in going on.
    fn fill_some(&self, ended: bool, woken: &Receiver<()>) -> bool {
        let next = self.tail.next(ROWS);
        let Some(upto) = next.last().map(|pending| pending.lsn) else { return true };
        match self.filling.fill(next) {
            Ok(()) => self.tail.filled(upto),
            Err(error) => {
                self.tail.set_trouble(Some((error.kind(), error.to_string())));
                if ended || error.kind() != Kind::Unavailable {
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
