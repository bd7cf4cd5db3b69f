//! Turns a durable claim into a call: its payload is in memory, this node certainly still owns the
//! partition, the claim is still current, and its charges count from the moment the call is sent.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tidegate_core::id::Partition;
use tidegate_core::model::Claim;
use tidegate_core::{Fault, FaultClass, Seq, Time, Verdict};
use tidegate_store::attempt::StoredAttempt;
use tidegate_store::log::StoredOperation;
use tidegate_store::{Clock, Store, StoreErrorKind};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Owner;
use crate::calls::CallEvent;
use crate::carry::{ReadyCall, Report};
use crate::payloads::matches_claim;
use crate::seal;

/// Attempts to read payloads while the store is unavailable, and the pause between them.
const TRIES: u32 = 4;
const PAUSE: Duration = Duration::from_millis(250);
/// This fraction of the partition's lease is left as a margin: sending a call takes a moment.
const LEASE_MARGIN_PART: u32 = 10;

/// A claim and its stored operation, or the verdict when it cannot be read.
pub(crate) type FetchedClaim = (Claim, Result<ReadyCall, Verdict>);

impl Owner {
    /// Sends the calls of durable claims; those whose payload is not in memory follow after a
    /// single read of all of them.
    pub(super) fn release(&mut self, claims: &mut Vec<Claim>) {
        let (mut ready, mut missing) = (Vec::with_capacity(claims.len()), Vec::new());
        for claim in claims.drain(..) {
            if self.calls.adopt(&claim) {
                // A cancel may have been requested while the claim was written.
                let status = self.model.claim_status(claim.seq, claim.fence);
                if status.is_some_and(|status| status.cancel_requested) {
                    self.calls.stop(claim.seq, claim.fence);
                }
                continue;
            }
            match self.payloads.get_for_claim(&claim) {
                Some(operation) if !claim.poll => ready.push(ReadyCall { claim, operation, attempt: None }),
                // What the executor remembers of an accepted job is only in the store.
                _ => missing.push(claim),
            }
        }
        self.send(ready);
        if !missing.is_empty() {
            let (store, partition) = (Arc::clone(&self.store), self.options.partition);
            let (event, give_up) = (self.calls.event.clone(), self.calls.give_up.clone());
            tokio::spawn(async move {
                let fetched = fetch(&*store, partition, missing, &give_up).await;
                // The owner may have stopped.
                let _ = event.send(CallEvent::Fetched(fetched));
            });
        }
    }

    /// Sends the calls whose payloads were read, unless their claims are no longer ours.
    pub(super) fn fetched(&mut self, fetched: Vec<FetchedClaim>) {
        let mut ready = Vec::with_capacity(fetched.len());
        for (claim, found) in fetched {
            match found {
                Ok(found) => ready.push(found),
                Err(verdict) => self.settle_unsent(&claim, verdict),
            }
        }
        self.send(ready);
    }

    /// Sends calls, or holds them back until the partition's lease is renewed.
    pub(super) fn send(&mut self, ready: Vec<ReadyCall>) {
        if ready.is_empty() {
            return;
        }
        if !self.holds_lease() {
            self.held_back.extend(ready);
            return;
        }
        let now = self.clock.now();
        for ready in ready {
            let claim = &ready.claim;
            match self.model.claim_status(claim.seq, claim.fence) {
                // Handed out again at once, to pass the cancel on.
                Some(status) if claim.poll && status.cancel_requested && !claim.cancel_requested => {
                    self.settle_unsent(claim, Verdict::Returned);
                }
                Some(status) if status.cancel_requested && !claim.poll => {
                    self.settle_unsent(claim, Verdict::Canceled { may_have_happened: false });
                }
                Some(status) if status.accepted_at == claim.accepted_at => {
                    self.dispatch(ready, now);
                }
                // Another worker has it, or it has ended.
                _ => drop(self.calls.take_unsent(claim.fence)),
            }
        }
    }

    /// Sends the calls that waited for the lease.
    pub(super) fn send_held_back(&mut self) {
        let held_back = std::mem::take(&mut self.held_back);
        self.send(held_back);
    }

    /// Whether no other node can own the partition now. A lease counts from when it was requested,
    /// so a slow reply proves little.
    pub(super) fn holds_lease(&self) -> bool {
        let margin = self.options.partition_lease / LEASE_MARGIN_PART;
        !self.store.is_shared() || Instant::now() + margin < self.owned_until
    }

    /// Settles a claim whose call is not sent.
    fn settle_unsent(&mut self, claim: &Claim, verdict: Verdict) {
        if self.calls.take_unsent(claim.fence) {
            self.building.commands += 1;
            self.settle(Report::without_call(claim.seq, claim.fence, verdict).into());
        }
    }

    /// Sends a call: its claim is durable and its payload is in memory.
    fn dispatch(&mut self, ready: ReadyCall, now: Time) {
        let claim = &ready.claim;
        if !self.calls.take_unsent(claim.fence) {
            return;
        }
        if self.model.mark_sent(now, claim.seq, claim.fence, &mut self.building.facts) {
            self.building.can_wait += 1;
        }
        let stop = self.calls.mark_sent(claim, now);
        if !claim.poll {
            self.journeys.sent(claim.seq, now);
        }
        let (seq, fence) = (claim.seq, claim.fence);
        let (carrier, event) = (Arc::clone(&self.carrier), self.calls.event.clone());
        // A panic in an executor is an attempt of unknown outcome; the owner must learn of it.
        // A task is moved several times until it runs, so what it consists of is boxed.
        let attempt = Box::pin(AssertUnwindSafe(carrier.carry(ready, stop)).catch_unwind());
        tokio::spawn(attempt.map(move |done| {
            let done = done.unwrap_or_else(|_| Report::panicked(seq, fence));
            // The next owner of the partition in this process receives it too.
            let _ = event.send(CallEvent::Reported(Box::new(done)));
        }));
    }
}

/// Reads the operations of claims, and the attempts of those that are polled. While the store is
/// unavailable they are returned, because an attempt that was not made costs nothing. A damaged or
/// missing operation fails alone.
pub(super) async fn fetch(
    store: &dyn Store,
    partition: Partition,
    claims: Vec<Claim>,
    give_up: &CancellationToken,
) -> Vec<FetchedClaim> {
    for _ in 0..TRIES {
        let found = tokio::select! {
            found = read(store, partition, &claims) => found,
            () = give_up.cancelled() => break,
        };
        match found {
            Ok(found) => {
                let found = claims.into_iter().zip(found);
                return found
                    .map(|(claim, (operation, attempts))| checked(claim, operation, attempts))
                    .collect();
            }
            Err(error) if error.kind() == StoreErrorKind::Unreadable && claims.len() > 1 => {
                let mut fetched = Vec::with_capacity(claims.len());
                for claim in claims {
                    fetched.extend(Box::pin(fetch(store, partition, vec![claim], give_up)).await);
                }
                return fetched;
            }
            Err(error) if error.kind() == StoreErrorKind::Unreadable => {
                let failed = |claim: Claim| {
                    let verdict = damaged(&claim, &error);
                    (claim, Err(verdict))
                };
                return claims.into_iter().map(failed).collect();
            }
            Err(error) => {
                tracing::debug!(%error, "payloads cannot be read now; retrying");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
    claims.into_iter().map(|claim| (claim, Err(Verdict::Returned))).collect()
}

/// Checks that what is sent is what was accepted.
fn checked(claim: Claim, found: Option<StoredOperation>, attempts: Vec<StoredAttempt>) -> FetchedClaim {
    let attempt = attempts.into_iter().find(|attempt| attempt.fence == claim.attempt_fence);
    let ready = match found {
        Some(operation) if matches_claim(&claim, &operation) => match seal::check(&operation) {
            Ok(()) => Ok(ReadyCall {
                claim: claim.clone(),
                operation: Arc::new(operation),
                attempt: attempt.map(Box::new),
            }),
            Err(error) => Err(damaged(&claim, &error)),
        },
        Some(_) => Err(missing(&claim, "the store has a different request in its place")),
        None => Err(missing(&claim, "its payload is no longer stored")),
    };
    (claim, ready)
}

/// Reads operations, and for those that are polled their attempts.
async fn read(
    store: &dyn Store,
    partition: Partition,
    claims: &[Claim],
) -> tidegate_store::Result<Vec<(Option<StoredOperation>, Vec<StoredAttempt>)>> {
    let seqs: Vec<Seq> = claims.iter().map(|claim| claim.seq).collect();
    let operations = store.load_operations(partition, seqs).await?;
    let polled: Vec<Seq> = claims.iter().filter(|claim| claim.poll).map(|claim| claim.seq).collect();
    let mut attempts = match polled.is_empty() {
        true => Vec::new(),
        false => store.read_attempts(partition, polled).await?,
    }
    .into_iter();
    let with_attempts = |(claim, operation): (&Claim, Option<StoredOperation>)| {
        let attempts = if claim.poll { attempts.next().unwrap_or_default() } else { Vec::new() };
        (operation, attempts)
    };
    Ok(claims.iter().zip(operations).map(with_attempts).collect())
}

/// A damaged request stays damaged, and is never sent.
fn damaged(claim: &Claim, error: &tidegate_store::Error) -> Verdict {
    tracing::error!(seq = claim.seq.0, %error, "a stored request is damaged and is not sent");
    let message = format!("its stored request cannot be read, and was not sent: {error}");
    unsent(claim, Fault::new(FaultClass::Validation, message))
}

fn missing(claim: &Claim, message: &str) -> Verdict {
    tracing::error!(seq = claim.seq.0, message, "a stored request is missing and is not sent");
    unsent(claim, Fault::new(FaultClass::Transient, message))
}

/// The verdict on a claim that cannot be sent. A job that was accepted is still awaited.
fn unsent(claim: &Claim, fault: Fault) -> Verdict {
    if claim.poll { Verdict::Unknown(fault) } else { Verdict::Rejected(fault) }
}
