//! Dismissals of recent failures: an operator has seen what failed in a source, and it needs
//! nothing more. Each is a shared record of the store, so that it holds for all operators and
//! nodes. A dismissal changes no operation, and is gone once the overview does not look back that
//! far.

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};
use tidegate_core::Time;
use tidegate_core::shared::record::{
    ForgetOutcome, ForgetTarget, HolderToken, OnLapse, RecordClaim, RecordClaimOutcome, RecordStage,
};
use tidegate_store::SharedState;
use tokio::time::timeout;

use crate::error::{Error, ErrorCode, Result};

/// For how long a failure is recent, and a dismissal is kept.
pub(crate) const FAILURE_LOOKBACK: Duration = Duration::from_secs(24 * 3_600);
/// The most sources whose dismissals are read at once; of further ones none is found.
const SOURCES_MAX: usize = 25;
/// How far the clock of the node on which something failed may be ahead of this one's.
const CLOCK_SKEW_MAX: Duration = Duration::from_secs(10);
/// How long one change of a dismissal may take before the next one begins.
const CHANGE_LEASE: Duration = Duration::from_secs(5);
/// How often a change asks whether another one has ended, and the pause in between.
const CHANGE_TRIES_MAX: usize = 120;
const CHANGE_PAUSE: Duration = Duration::from_millis(50);
/// How long a dismissal is waited for.
const READ_WAIT: Duration = Duration::from_secs(2);
/// What the names of these records begin with. Those of idempotency keys have three spaces, and
/// these have none: no key of a caller is one of them, and no list of keys shows one.
const PREFIX: &str = "dismissed-failures";

/// What failures are counted under.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FailureSource<'a> {
    /// All generations.
    Generations,
    /// One group.
    Group(&'a str),
}

impl FailureSource<'_> {
    fn record_name(self) -> String {
        match self {
            Self::Generations => format!("{PREFIX}:generations"),
            Self::Group(group) => format!("{PREFIX}:group:{}", utf8_percent_encode(group, NON_ALPHANUMERIC)),
        }
    }
}

/// That the recent failures of a source were seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dismissal {
    /// What finished by then is dismissed, and anything newer is not.
    pub through: Time,
    /// Who dismissed it.
    pub by: String,
    /// When that was.
    pub at: Time,
    /// Why, if a reason was given.
    pub reason: Option<String>,
}

impl Dismissal {
    /// Dismisses, now, what finished by a time. What has not failed yet was seen by no one: a time
    /// in the future counts as now.
    pub(crate) fn new(through: Time, by: &str, reason: Option<String>, now: Time) -> Self {
        let through = if through > now.after(CLOCK_SKEW_MAX) { now } else { through };
        Self { through, by: by.to_owned(), at: now, reason: reason.filter(|text| !text.is_empty()) }
    }

    /// Whether a failure that finished at this time is dismissed.
    pub(crate) fn covers(&self, finished_at: Time) -> bool {
        finished_at <= self.through
    }
}

/// A dismissal as the store has it. Times are in microseconds.
#[derive(Serialize, Deserialize)]
struct StoredDismissal {
    through: u64,
    by: String,
    at: u64,
    reason: Option<String>,
}

fn encode(dismissal: &Dismissal) -> Result<Bytes> {
    let Dismissal { through, by, at, reason } = dismissal.clone();
    let stored = StoredDismissal { through: through.as_micros(), by, at: at.as_micros(), reason };
    let bytes = serde_json::to_vec(&stored).map_err(|error| {
        Error::new(ErrorCode::Internal, format!("The dismissal cannot be written: {error}."))
    })?;
    Ok(bytes.into())
}

/// Reads what the store has; `None` for what another version wrote in another way.
fn decode(bytes: &[u8]) -> Option<Dismissal> {
    let StoredDismissal { through, by, at, reason } = serde_json::from_slice(bytes).ok()?;
    Some(Dismissal { through: Time::from_micros(through), by, at: Time::from_micros(at), reason })
}

/// Dismisses the failures of a source; returns the dismissal that holds now, which is an earlier
/// one if it reaches as far.
///
/// # Errors
/// When the store cannot be read or changed.
pub(crate) async fn dismiss(
    store: &dyn SharedState,
    source: FailureSource<'_>,
    new: Dismissal,
) -> Result<Dismissal> {
    let name = source.record_name();
    let (lock, holder) = (format!("{name}:lock"), random_holder()?);
    acquire(store, &lock, holder).await?;
    let replaced = replace(store, &name, holder, new).await;
    // If this fails, the next change waits for the end of the lease.
    let _ = store.release_record(&lock, holder).await;
    replaced
}

/// Waits until no other node changes the same dismissal: it is replaced in two steps, and an
/// earlier time must not come after a later one.
async fn acquire(store: &dyn SharedState, lock: &str, holder: HolderToken) -> Result<()> {
    for _ in 0..CHANGE_TRIES_MAX {
        if let RecordClaimOutcome::Granted { .. } = store.claim_record(lock, claim(holder)).await? {
            return Ok(());
        }
        tokio::time::sleep(CHANGE_PAUSE).await;
    }
    Err(changing_error())
}

async fn replace(
    store: &dyn SharedState,
    name: &str,
    holder: HolderToken,
    new: Dismissal,
) -> Result<Dismissal> {
    let old = find(store, name).await?;
    if let Some(old) = old.filter(|old| old.covers(new.through)) {
        return Ok(old);
    }
    store.forget_record(name, ForgetTarget::Answer).await?;
    let granted = store.claim_record(name, claim(holder)).await?;
    let is_granted = matches!(granted, RecordClaimOutcome::Granted { .. });
    if is_granted && store.complete_record(name, holder, encode(&new)?).await? {
        return Ok(new);
    }
    Err(changing_error())
}

/// Shows the failures of a source again; whether they were dismissed.
///
/// # Errors
/// When the store cannot be changed.
pub(crate) async fn undismiss(store: &dyn SharedState, source: FailureSource<'_>) -> Result<bool> {
    let forgot = store.forget_record(&source.record_name(), ForgetTarget::Answer).await?;
    Ok(forgot == ForgetOutcome::Gone)
}

/// Reads the dismissals of sources, in their order. One that cannot be read is none: a failure is
/// better shown twice than never.
pub(crate) async fn read(store: &dyn SharedState, sources: &[FailureSource<'_>]) -> Vec<Option<Dismissal>> {
    let each = sources.iter().take(SOURCES_MAX).map(async |source| {
        let found = timeout(READ_WAIT, find(store, &source.record_name())).await.ok()?;
        found.inspect_err(|error| tracing::debug!(%error, "cannot read a dismissal")).ok().flatten()
    });
    let mut dismissals = join_all(each).await;
    dismissals.resize(sources.len(), None);
    dismissals
}

async fn find(store: &dyn SharedState, name: &str) -> Result<Option<Dismissal>> {
    let record = store.get_record(name).await?;
    Ok(record.and_then(|record| match record.stage {
        RecordStage::Completed(bytes) => decode(&bytes),
        RecordStage::Processing { .. } => None,
    }))
}

/// There is one request for each record: none conflicts with another.
const fn claim(token: HolderToken) -> RecordClaim {
    let (lease, ttl, on_lapse) = (CHANGE_LEASE, FAILURE_LOOKBACK, OnLapse::TakeOver);
    RecordClaim { fingerprint: [0; 32], token, lease, ttl, on_lapse }
}

fn random_holder() -> Result<HolderToken> {
    let mut token = [0; 16];
    getrandom::fill(&mut token).map_err(|error| {
        Error::new(ErrorCode::Internal, format!("The system has no randomness: {error}."))
    })?;
    Ok(HolderToken(token))
}

fn changing_error() -> Error {
    let message = "Someone else is dismissing the same failures; try again.";
    Error::new(ErrorCode::StoreUnavailable, message).retry_after(Some(CHANGE_LEASE))
}

#[cfg(test)]
mod tests;
