//! How many commands one batch takes. A log that holds several appends at a time works best when
//! each of them has its share of the commands: while one is written, the owner applies the next.
//! Callers that all wait for one append would all be served, and then wait, at the same time. The
//! share follows from what is in flight and waiting now; there is nothing to configure.

/// A share is never smaller: an append costs more than these commands take to apply.
const SHARE_MIN: usize = 32;
/// After each batch a share that turned out too large shrinks by this fraction.
const SHRINKS_BY: usize = 16;

/// The share of a batch, and what it follows from.
#[derive(Debug)]
pub(crate) struct BatchShare {
    /// The appends that the log holds at a time.
    appends_max: usize,
    /// The commands of the batches that are being written.
    in_flight: usize,
    /// What recent batches showed: callers that were just served have not come back yet.
    recent: usize,
}

impl BatchShare {
    pub(crate) fn new(appends_max: usize) -> Self {
        Self { appends_max: appends_max.max(1), in_flight: 0, recent: SHARE_MIN }
    }

    /// The commands that the next batch takes at most, when so many are collected or wait.
    pub(crate) fn limit(&self, waiting: usize) -> usize {
        match self.appends_max {
            1 => usize::MAX,
            appends => self.recent.max((self.in_flight + waiting).div_ceil(appends)),
        }
    }

    /// Notes that a batch is being written; so many commands were collected or waited.
    pub(crate) fn sealed(&mut self, commands: usize, waiting: usize) {
        let share = (self.in_flight + waiting).div_ceil(self.appends_max);
        self.recent = (self.recent - self.recent / SHRINKS_BY).max(share).max(SHARE_MIN);
        self.in_flight += commands;
    }

    /// Notes that a batch was written.
    pub(crate) fn written(&mut self, commands: usize) {
        self.in_flight = self.in_flight.saturating_sub(commands);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Callers that came all at once are served in two halves from then on.
    #[test]
    fn two_appends_share_the_commands() {
        let mut share = BatchShare::new(2);
        let first = share.limit(128);
        assert_eq!(first, 64);
        share.sealed(first, 128);
        assert_eq!(share.limit(64), 64, "the others fit into the second append");
        share.sealed(64, 64);
        for _ in 0..100 {
            share.written(64);
            assert_eq!(share.limit(64), 64);
            share.sealed(64, 64);
        }
    }

    #[test]
    fn a_few_commands_are_not_split() {
        let mut share = BatchShare::new(2);
        assert_eq!(share.limit(20), SHARE_MIN);
        share.sealed(20, 20);
        assert_eq!(share.limit(3), SHARE_MIN);
    }

    #[test]
    fn a_burst_counts_at_once_and_is_forgotten_later() {
        let mut share = BatchShare::new(2);
        share.sealed(500, 1_000);
        assert_eq!(share.limit(500), 500);
        share.written(500);
        let mut shrunk = share.limit(1);
        for _ in 0..100 {
            share.sealed(1, 1);
            share.written(1);
            assert!(share.limit(1) <= shrunk);
            shrunk = share.limit(1);
        }
        assert_eq!(shrunk, SHARE_MIN);
    }

    #[test]
    fn one_append_takes_everything() {
        let mut share = BatchShare::new(1);
        share.sealed(10, 10);
        assert_eq!(share.limit(0), usize::MAX);
    }
}
