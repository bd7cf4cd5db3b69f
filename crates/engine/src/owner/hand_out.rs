//! Hands durable claims to the remote workers that asked for them, with their payloads. What cannot
//! be handed out any more is returned: no one has started it.

use std::sync::Arc;

use tidegate_core::bounds::WORK_PAYLOADS_LEN_MAX;
use tidegate_core::model::Claim;
use tidegate_core::{OperationId, Time, Verdict};
use tidegate_store::Clock;
use tokio::sync::oneshot;

use super::Owner;
use super::send::{FetchedClaim, fetch};
use crate::calls::CallEvent;
use crate::carry::{ReadyCall, Report};
use crate::work::{ClaimId, RemoteClaim, RemoteJob, WorkRequest};

/// The claims for each request of a caller.
pub(crate) type WorkReply = oneshot::Sender<Vec<Vec<RemoteClaim>>>;

/// A caller that asks for work, and what was claimed for each of its requests.
pub(crate) struct Taker {
    pub requests: Vec<WorkRequest>,
    pub claims: Vec<Vec<Claim>>,
    pub reply: WorkReply,
}

/// Claims on their way to a caller.
pub(crate) struct HandOut {
    /// The claims of each request whose payloads are in memory.
    ready: Vec<Vec<ReadyCall>>,
    /// Which request each of the others is for.
    missing: Vec<usize>,
    reply: WorkReply,
}

impl Taker {
    pub(crate) fn new(requests: Vec<WorkRequest>, reply: WorkReply) -> Self {
        let claims = requests.iter().map(|_| Vec::new()).collect();
        Self { requests, claims, reply }
    }
}

impl Owner {
    /// Hands out the durable claims of a caller; those whose payloads are not in memory are read
    /// first.
    pub(super) fn hand_out(&mut self, taker: Taker) {
        let Taker { claims, reply, .. } = taker;
        let mut out =
            HandOut { ready: claims.iter().map(|_| Vec::new()).collect(), missing: Vec::new(), reply };
        let mut unread = Vec::new();
        for (request, claim) in
            claims.into_iter().enumerate().flat_map(|(n, of)| of.into_iter().map(move |c| (n, c)))
        {
            match self.payloads.get_for_claim(&claim) {
                Some(operation) if !claim.poll => {
                    out.ready[request].push(ReadyCall { claim, operation, attempt: None });
                }
                // What a worker remembers of an accepted job is only in the store.
                _ => {
                    out.missing.push(request);
                    unread.push(claim);
                }
            }
        }
        if unread.is_empty() {
            self.deliver(out);
            return;
        }
        self.handing_out += 1;
        let (store, partition) = (Arc::clone(&self.store), self.options.partition);
        let (event, give_up) = (self.calls.event.clone(), self.calls.give_up.clone());
        tokio::spawn(async move {
            let fetched = fetch(&*store, partition, unread, &give_up).await;
            // The owner may have stopped.
            let _ = event.send(CallEvent::WorkFetched(Box::new(out), fetched));
        });
    }

    /// Hands out claims whose payloads were read.
    pub(super) fn work_fetched(&mut self, mut out: HandOut, fetched: Vec<FetchedClaim>) {
        self.handing_out -= 1;
        for (request, (claim, found)) in std::mem::take(&mut out.missing).into_iter().zip(fetched) {
            match found {
                Ok(ready) => out.ready[request].push(ready),
                Err(verdict) => self.settle_remote(&claim, verdict),
            }
        }
        self.deliver(out);
    }

    /// Keeps claims that were not handed out when the log could not be written: they are returned
    /// with the next recovery.
    pub(super) fn keep_unread(&mut self, out: &HandOut, fetched: &[FetchedClaim]) {
        self.handing_out -= 1;
        let unread: Vec<Claim> = fetched.iter().map(|(claim, _)| claim.clone()).collect();
        self.calls.mark_never_sent(&unread);
        for ready in out.ready.iter().flatten() {
            self.calls.mark_never_sent(std::slice::from_ref(&ready.claim));
        }
    }

    /// Hands out claims that are still current, or holds them back until the partition's lease is
    /// renewed.
    fn deliver(&mut self, out: HandOut) {
        if !self.holds_lease() && out.ready.iter().any(|ready| !ready.is_empty()) {
            self.held_back_work.push(out);
            return;
        }
        let now = self.clock.now();
        let mut handed: Vec<Vec<RemoteClaim>> = Vec::with_capacity(out.ready.len());
        let (mut claims, mut len) = (Vec::new(), 0);
        for ready in out.ready {
            let mut of_request = Vec::with_capacity(ready.len());
            for ready in ready {
                if !self.may_hand_out(&ready.claim, now) {
                    continue;
                }
                len += ready.operation.payload.len();
                if len > WORK_PAYLOADS_LEN_MAX && !claims.is_empty() {
                    // The next take gets it.
                    self.settle_remote(&ready.claim, Verdict::Returned);
                    continue;
                }
                claims.push(ready.claim.clone());
                of_request.push(self.remote_claim(ready, now));
            }
            handed.push(of_request);
        }
        let is_delivered = out.reply.send(handed).is_ok();
        for claim in claims {
            if !is_delivered {
                self.settle_remote(&claim, Verdict::Returned);
            } else if self.model.mark_sent(now, claim.seq, claim.fence, &mut self.building.facts) {
                self.building.can_wait += 1;
            }
        }
    }

    /// Delivers what waited for the lease.
    pub(super) fn deliver_held_back(&mut self) {
        for out in std::mem::take(&mut self.held_back_work) {
            self.deliver(out);
        }
    }

    /// Whether a claim is still current, and no cancel has reached it.
    fn may_hand_out(&mut self, claim: &Claim, now: Time) -> bool {
        match self.model.claim_status(claim.seq, claim.fence) {
            // Handed out again at once, to pass the cancel on.
            Some(status) if claim.poll && status.cancel_requested && !claim.cancel_requested => {
                self.settle_remote(claim, Verdict::Returned);
                false
            }
            Some(status) if status.cancel_requested && !claim.poll => {
                self.settle_remote(claim, Verdict::Canceled { may_have_happened: false });
                false
            }
            Some(status) if status.accepted_at == claim.accepted_at => {
                // It was held back for too long, and no one has started it.
                if claim.until <= now && !claim.poll {
                    self.settle_remote(claim, Verdict::Returned);
                }
                claim.until > now
            }
            _ => false,
        }
    }

    /// Settles a claim that no worker has started.
    fn settle_remote(&mut self, claim: &Claim, verdict: Verdict) {
        self.building.commands += 1;
        self.settle(Report::without_call(claim.seq, claim.fence, verdict).into());
    }

    fn remote_claim(&self, ready: ReadyCall, now: Time) -> RemoteClaim {
        let ReadyCall { claim, operation, attempt } = ready;
        let id = OperationId::new(operation.at, self.options.partition, operation.seq);
        let job = claim.poll.then(|| RemoteJob {
            since: attempt.as_ref().map_or(now, |attempt| attempt.at),
            external_id: attempt.as_ref().and_then(|attempt| attempt.external_id.clone()),
            memo: attempt.map(|attempt| attempt.memo).unwrap_or_default(),
            cancel_requested: claim.cancel_requested,
        });
        RemoteClaim {
            claim: ClaimId { id, fence: claim.fence },
            kind: Arc::clone(&operation.kind),
            group: Arc::clone(&operation.group),
            payload: operation.payload.clone(),
            attempt: claim.attempt,
            until: claim.until,
            lease: claim.until.since(now),
            deadline: claim.deadline,
            reconcile_first: claim.reconcile_first,
            in_doubt: claim.in_doubt,
            on_unknown: claim.on_unknown,
            alternative: claim.alternative,
            limits: self.model.charged_limits(claim.seq).cloned().collect(),
            job,
            completion_token: self
                .options
                .completion_key
                .as_ref()
                .map(|key| key.token(id, claim.attempt_fence)),
        }
    }
}
