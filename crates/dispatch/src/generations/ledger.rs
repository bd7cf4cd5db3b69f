//! The ledger: every attempt of every generation, with its provider, what it may have cost, and
//! whether the generation may have been billed twice. Read from the rows of attempts; never a key.

use tidegate::{Filter, OperationId, OperationView, Time};
use tidegate_core::bounds::PAGE_ITEMS_MAX;
use tidegate_store::attempt::{AttemptState, StoredAttempt};

use super::Generations;
use crate::dispatch::KIND;
use crate::error::DispatchError;
use crate::executor::AttemptMemo;

/// One attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerEntry {
    /// The generation.
    pub generation: OperationId,
    /// The user it is for.
    pub user: Option<String>,
    /// Its model.
    pub model: Option<String>,
    /// The number of the attempt among those of the generation; the first is 1.
    pub attempt: u16,
    /// The provider.
    pub provider: String,
    /// The name of the key.
    pub key: String,
    /// The provider's id of the job.
    pub external_id: Option<String>,
    /// When it was submitted.
    pub submitted_at: Time,
    /// When it ended.
    pub ended_at: Option<Time>,
    /// What became of it.
    pub outcome: AttemptOutcome,
    /// Why it failed, in the provider's words, or what is known if the provider said nothing.
    pub reason: Option<String>,
    /// What it may have cost, as configured.
    pub cost: Option<u64>,
    /// Whether this attempt and another one of the generation may both have been billed.
    pub may_be_billed_twice: bool,
}

/// What became of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptOutcome {
    /// Its job is not finished, as far as known.
    Awaiting,
    /// Its job succeeded.
    Succeeded,
    /// It ended the generation without a result.
    Failed,
    /// It failed, and the next provider was used.
    NextProvider,
    /// The provider asked to wait.
    Throttled,
    /// It was canceled.
    Canceled,
    /// Whether it created a job, or what became of that, is not known.
    Unknown,
}

impl AttemptOutcome {
    /// The stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Awaiting => "awaiting",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::NextProvider => "next_provider",
            Self::Throttled => "throttled",
            Self::Canceled => "canceled",
            Self::Unknown => "unknown",
        }
    }
}

/// A page of the ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LedgerPage {
    /// By generation, newest first; the attempts of each in their order.
    pub entries: Vec<LedgerEntry>,
    /// Where the next page starts; `None` at the end.
    pub next: Option<OperationId>,
}

impl Generations {
    /// Every attempt of a generation, in order.
    ///
    /// # Errors
    /// When there is none with this id.
    pub async fn ledger_of(&self, id: OperationId) -> Result<Vec<LedgerEntry>, DispatchError> {
        let view = self.engine.get(id).await?;
        if &*view.kind != KIND {
            return Err(DispatchError::not_found(id));
        }
        let attempts = self.all_attempts(&[id]).await?;
        Ok(attempts.iter().flat_map(|attempts| entries(&view, attempts)).collect())
    }

    /// The attempts of generations, with those whose submit is in flight.
    async fn all_attempts(&self, ids: &[OperationId]) -> Result<Vec<Vec<StoredAttempt>>, DispatchError> {
        // Asked first: what has been settled since then has its row.
        let claimed = self.engine.claimed_attempts(ids).await?;
        let mut attempts = self.engine.attempts_of_each(ids).await?;
        for (attempts, claimed) in attempts.iter_mut().zip(claimed) {
            let is_new = |new: &StoredAttempt| attempts.iter().all(|known| known.fence != new.fence);
            let new = claimed.filter(is_new);
            attempts.extend(new);
        }
        Ok(attempts)
    }

    /// The attempts of `limit` generations, newest first, before the given one.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn ledger(
        &self,
        before: Option<OperationId>,
        limit: usize,
    ) -> Result<LedgerPage, DispatchError> {
        let most = usize::try_from(PAGE_ITEMS_MAX).unwrap_or(usize::MAX);
        let filter = Filter::default().with_kind(KIND).with_before(before).with_limit(limit.clamp(1, most));
        let page = self.engine.list(filter).await?;
        let ids: Vec<_> = page.operations.iter().map(|view| view.id).collect();
        let attempts = self.all_attempts(&ids).await?;
        let entries =
            page.operations.iter().zip(&attempts).flat_map(|(view, attempts)| entries(view, attempts));
        Ok(LedgerPage { entries: entries.collect(), next: page.next })
    }
}

fn entries(view: &OperationView, attempts: &[StoredAttempt]) -> Vec<LedgerEntry> {
    let memos: Vec<AttemptMemo> = attempts.iter().map(|attempt| AttemptMemo::decode(&attempt.memo)).collect();
    let is_billed: Vec<bool> =
        attempts.iter().zip(&memos).map(|(attempt, memo)| may_be_billed(attempt, memo)).collect();
    let billed = is_billed.iter().filter(|is_billed| **is_billed).count();
    // What ended the generation ended its last attempt, of which the provider said nothing.
    let last = attempts.last().map(|attempt| attempt.fence);
    let end = view.fault.as_ref().map(|fault| &fault.message);
    let reason = |attempt: &StoredAttempt| {
        end.filter(|_| attempt.state == AttemptState::Unknown && last == Some(attempt.fence)).cloned()
    };
    let entry = |(number, attempt, memo, is_billed): (u16, &StoredAttempt, AttemptMemo, bool)| LedgerEntry {
        generation: view.id,
        user: view.user.as_deref().map(str::to_owned),
        model: view.upstream.as_deref().map(str::to_owned),
        attempt: number,
        outcome: outcome(attempt, &memo),
        external_id: attempt.external_id.as_deref().map(str::to_owned),
        submitted_at: memo.sent_at().unwrap_or(attempt.at),
        ended_at: attempt.ended_at,
        cost: attempt.cost.filter(|_| is_billed),
        provider: memo.provider,
        key: memo.key,
        reason: memo.reason.or_else(|| reason(attempt)),
        may_be_billed_twice: is_billed && billed > 1,
    };
    let attempts = (1..).zip(attempts).zip(memos).zip(is_billed);
    attempts.map(|(((number, attempt), memo), is_billed)| entry((number, attempt, memo, is_billed))).collect()
}

fn outcome(attempt: &StoredAttempt, memo: &AttemptMemo) -> AttemptOutcome {
    match attempt.state {
        AttemptState::Awaiting => AttemptOutcome::Awaiting,
        AttemptState::Succeeded => AttemptOutcome::Succeeded,
        AttemptState::Failed if attempt.external_id.is_none() && is_in_doubt(memo) => AttemptOutcome::Unknown,
        AttemptState::Failed => AttemptOutcome::Failed,
        AttemptState::Retried if memo.cause.as_deref() == Some("throttled") => AttemptOutcome::Throttled,
        AttemptState::Retried => AttemptOutcome::NextProvider,
        AttemptState::Canceled => AttemptOutcome::Canceled,
        AttemptState::Unknown => AttemptOutcome::Unknown,
    }
}

/// Whether a provider may have billed an attempt: it has a job, or may have one.
pub(crate) fn may_be_billed(attempt: &StoredAttempt, memo: &AttemptMemo) -> bool {
    match attempt.state {
        AttemptState::Awaiting | AttemptState::Succeeded | AttemptState::Unknown => true,
        AttemptState::Failed | AttemptState::Retried | AttemptState::Canceled => {
            attempt.external_id.is_some() || is_in_doubt(memo)
        }
    }
}

/// Whether no one knows if the submit created a job.
fn is_in_doubt(memo: &AttemptMemo) -> bool {
    memo.cause.as_deref() == Some("unknown")
}
