//! A step of the writer: its work, its result, and its caller.

use rusqlite::Connection;
use tidegate_core::Time;
use tidegate_store::{Error, Result};
use tokio::sync::oneshot;

use crate::embedded::partition_meta::PartitionMeta;

/// What a step works with.
pub(in crate::embedded) struct StepContext<'a> {
    pub(in crate::embedded) sql: &'a Connection,
    pub(in crate::embedded) meta: &'a mut PartitionMeta,
    pub(in crate::embedded) now: Time,
}

/// The result of a step: the inner one is returned if the commit succeeds; the outer error rolls
/// the step back. A step that returns an inner error has written nothing.
pub(in crate::embedded) type StepResult<T> = rusqlite::Result<Result<T>>;

/// A queued step and its caller. It may be run a second time, after the first was rolled back.
pub(in crate::embedded) trait Task: Send {
    fn rows(&self) -> usize;
    /// Whether it must be durable when it returns.
    fn is_durable(&self) -> bool;
    fn run(&mut self, desk: &mut StepContext<'_>) -> rusqlite::Result<()>;
    fn committed(self: Box<Self>);
    fn failed(self: Box<Self>, why: Error);
}

pub(in crate::embedded) struct Step<T, F, N> {
    pub(in crate::embedded) rows: usize,
    pub(in crate::embedded) durable: bool,
    pub(in crate::embedded) work: F,
    /// Runs after the commit, before the reply.
    pub(in crate::embedded) then: N,
    pub(in crate::embedded) answer: Option<Result<T>>,
    pub(in crate::embedded) reply: oneshot::Sender<Result<T>>,
}

impl<T, F, N> Task for Step<T, F, N>
where
    T: Send,
    F: FnMut(&mut StepContext<'_>) -> StepResult<T> + Send,
    N: FnOnce(&T) + Send,
{
    fn rows(&self) -> usize {
        self.rows
    }

    fn is_durable(&self) -> bool {
        self.durable
    }

    fn run(&mut self, desk: &mut StepContext<'_>) -> rusqlite::Result<()> {
        self.answer = Some((self.work)(desk)?);
        Ok(())
    }

    fn committed(self: Box<Self>) {
        if let Some(answer) = self.answer {
            if let Ok(answer) = &answer {
                (self.then)(answer);
            }
            // The caller may be gone.
            let _ = self.reply.send(answer);
        }
    }

    fn failed(self: Box<Self>, why: Error) {
        let _ = self.reply.send(Err(why));
    }
}
