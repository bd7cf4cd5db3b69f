//! A step of the writer: what it does, what it comes to, and whoever waits for it.

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

/// What a step comes to: the inner answer stands if the commit does; the outer failure undoes the step. A step
/// that refuses has written nothing.
pub(in crate::embedded) type StepResult<T> = rusqlite::Result<Result<T>>;

/// A step that waits, and whoever waits for it. It may be run a second time, after the first was undone.
pub(in crate::embedded) trait Task: Send {
    fn rows(&self) -> usize;
    /// Whether it must be on the disk when it is answered.
    fn is_durable(&self) -> bool;
    fn run(&mut self, desk: &mut StepContext<'_>) -> rusqlite::Result<()>;
    fn committed(self: Box<Self>);
    fn failed(self: Box<Self>, why: Error);
}

pub(in crate::embedded) struct Step<T, F, N> {
    pub(in crate::embedded) rows: usize,
    pub(in crate::embedded) durable: bool,
    pub(in crate::embedded) work: F,
    /// What is done when it is committed, before it is answered.
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
            // Nobody has to wait for an answer.
            let _ = self.reply.send(answer);
        }
    }

    fn failed(self: Box<Self>, why: Error) {
        let _ = self.reply.send(Err(why));
    }
}
