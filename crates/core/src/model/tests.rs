//! The guarantees of the model, one scenario each. The contract crate runs random sequences with
//! every invariant checked after every step, and also replays them through a store.

mod alternatives;
mod awaiting;
mod breakers;
mod control;
mod deadlines;
mod estimate;
mod groups;
mod limits;
mod listing;
mod oldest;
mod opened;
mod overdue;
mod rechain;
mod remote;
mod retries;
mod submits;
mod takeover;
mod upcoming;

use std::sync::Arc;
use std::time::Duration;

use super::{AcceptOutcome, Claim, ClaimReport, Model, SettleOutcome, TakeOutcome};
use crate::fact::{Fact, LimitShape};
use crate::fault::{Fault, FaultClass};
use crate::id::Seq;
use crate::operation::{Charge, Draft, MICRO};
use crate::time::Time;
use crate::verdict::Verdict;

const LEASE: Duration = Duration::from_secs(30);

/// A partition, a manual clock, and randomness fixed at the middle.
struct ModelHarness {
    model: Model,
    facts: Vec<Fact>,
    now: Time,
}

impl ModelHarness {
    fn new() -> Self {
        Self { model: Model::new(), facts: Vec::new(), now: Time::from_millis(1_000_000) }
    }

    fn wait_ms(&mut self, ms: u64) {
        self.now = self.now.after(Duration::from_millis(ms));
    }

    fn try_accept(&mut self, draft: Draft) -> AcceptOutcome {
        let answer = self.model.accept(self.now, draft, &mut self.facts);
        self.model.check().unwrap();
        answer
    }

    fn accept(&mut self, draft: Draft) -> Seq {
        match self.try_accept(draft) {
            AcceptOutcome::New(seq) => seq,
            other => panic!("not accepted: {other:?}"),
        }
    }

    fn take(&mut self, n: usize) -> Vec<Claim> {
        self.take_outcome(n).claims
    }

    fn take_outcome(&mut self, n: usize) -> TakeOutcome {
        let take = self.model.take(self.now, n, LEASE, u32::MAX / 2, &mut self.facts);
        for claim in &take.claims {
            self.model.mark_sent(self.now, claim.seq, claim.fence, &mut self.facts);
        }
        self.model.check().unwrap();
        if take.claims.len() < n {
            self.model.check_no_stuck_groups(self.now).unwrap();
        }
        take
    }

    fn take_seqs(&mut self, n: usize) -> Vec<u64> {
        self.take(n).iter().map(|claim| claim.seq.0).collect()
    }

    fn settle(&mut self, claim: &Claim, verdict: Verdict) -> SettleOutcome {
        let settle = self.model.settle(
            self.now,
            ClaimReport::new(claim.seq, claim.fence, verdict),
            u32::MAX / 2,
            &mut self.facts,
        );
        self.model.check().unwrap();
        settle
    }

    fn done(&mut self, claim: &Claim) {
        assert!(matches!(self.settle(claim, Verdict::Done), SettleOutcome::Settled { ended: Some(_), .. }));
    }

    fn limit(&mut self, name: &str, shape: LimitShape) {
        self.model.configure(self.now, &name.into(), shape, &mut self.facts).unwrap();
    }

    /// The model that a new owner would build from the log so far.
    fn replayed(&self) -> Model {
        let mut model = self.empty_model();
        for fact in &self.facts {
            model.absorb(fact);
        }
        model.check().unwrap();
        model
    }
}

impl ModelHarness {
    /// An empty model with the same remote kinds.
    fn empty_model(&self) -> Model {
        Model::with_remote_kinds(self.model.remote_kinds.iter().cloned())
    }

    /// Checks that the log equals memory, read from the start or from a snapshot.
    fn check_read_back(&self) {
        let live: Vec<Fact> = self.model.snapshot().collect();
        assert_eq!(self.replayed().snapshot().collect::<Vec<_>>(), live);
        let mut restored = self.empty_model();
        for fact in &live {
            restored.absorb(fact);
        }
        restored.check().unwrap();
        assert_eq!(restored.snapshot().collect::<Vec<_>>(), live);
    }
}

impl Drop for ModelHarness {
    /// Every scenario ends so.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.check_read_back();
        }
    }
}

fn draft(group: &str) -> Draft {
    Draft::new(group, "test")
}

fn charged(group: &str, charges: &[(&str, u64)]) -> Draft {
    let charges = charges.iter().map(|(limit, tokens)| Charge::tokens(*limit, *tokens)).collect();
    Draft { charges, ..draft(group) }
}

fn drip(capacity: u64, refill_per_s: u64) -> LimitShape {
    LimitShape::Drip { capacity: capacity * MICRO, refill_per_s: refill_per_s * MICRO, margin: 0 }
}

fn transient() -> Fault {
    Fault::new(FaultClass::Transient, "502 from the upstream")
}

fn retry() -> Verdict {
    Verdict::Retry { after: None, fault: transient() }
}

fn throttled(after_ms: Option<u64>) -> Verdict {
    let fault = Fault::new(FaultClass::RateLimited, "429 from the upstream");
    Verdict::Throttled { after: after_ms.map(Duration::from_millis), scope: None, fault }
}

fn accepted(poll_after_s: Option<u64>, timeout_s: u64) -> Verdict {
    let poll_after = poll_after_s.map(Duration::from_secs);
    Verdict::Accepted { poll_after, timeout: Duration::from_secs(timeout_s) }
}

fn named(name: &str) -> Arc<str> {
    name.into()
}
