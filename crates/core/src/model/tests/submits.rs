//! Submits through alternatives: polls are free, failures count against whom they name, and what
//! reports a job early, late or never leaves one truth.

use super::*;
use crate::alternatives::{Alternative, Alternatives, UnknownSubmit};
use crate::breaker::CooldownLadder;
use crate::fact::SettleEffect;
use crate::model::ClaimReport;
use crate::state::EndState;
use crate::verdict::Blame;

const LIMITS: [&str; 4] = ["acme/health", "acme/key", "acme/slots", "acme/rpm"];

fn submission(group: &str, on_unknown: UnknownSubmit) -> Draft {
    let charges = |limits: &[&str]| limits.iter().map(|limit| Charge::tokens(*limit, 1)).collect();
    let list = vec![
        Alternative::new("acme", charges(&LIMITS)),
        Alternative::new("globex", charges(&["globex/slots"])),
    ];
    Draft { alternatives: Some(Alternatives { list, on_unknown, ..Alternatives::default() }), ..draft(group) }
}

fn effect_of(settle: &SettleOutcome) -> &SettleEffect {
    match settle {
        SettleOutcome::Settled { effect, .. } => effect,
        SettleOutcome::Stale => panic!("stale"),
    }
}

impl ModelHarness {
    /// A provider with a breaker, a breaker of its key, slots and a window, and a second provider.
    fn with_chain(rpm: u64) -> Self {
        let mut world = Self::new();
        let breaker = LimitShape::Breaker { ladder: CooldownLadder::default() };
        let window = LimitShape::Window { limit: rpm * MICRO, period: Duration::from_secs(60) };
        let slots = LimitShape::Cap { at_once: 9 };
        for (name, shape) in LIMITS.into_iter().zip([breaker, breaker, slots, window]) {
            world.limit(name, shape);
        }
        world.limit("globex/slots", slots);
        world
    }

    fn submit_one(&mut self, group: &str) -> Claim {
        self.accept(submission(group, UnknownSubmit::Fail));
        self.take(1).pop().unwrap()
    }

    fn blame(&mut self, claim: &Claim, verdict: Verdict, blame: &Blame) -> SettleOutcome {
        let report = ClaimReport::new(claim.seq, claim.fence, verdict).with_blame(blame);
        let settle = self.model.settle(self.now, report, u32::MAX / 2, &mut self.facts);
        self.model.check().unwrap();
        settle
    }

    fn is_open(&self, limit: &str) -> bool {
        self.model.limit(limit, self.now).unwrap().frozen_until.is_some()
    }

    fn level(&self, limit: &str) -> u64 {
        self.model.limit(limit, self.now).unwrap().level / MICRO
    }
}

/// DSP-12: polls of a job take nothing from the window that counts submits, are not held up by an
/// empty one, and survive a snapshot in the middle of a poll.
#[test]
fn dsp_12_polls_take_nothing_from_the_rate_of_submits() {
    let mut world = ModelHarness::with_chain(2);
    let claim = world.submit_one("a");
    world.settle(&claim, accepted(Some(5), 3_600));
    for _ in 0..5 {
        world.wait_ms(5_000);
        let poll = world.take(1).pop().unwrap();
        assert!(poll.poll);
        assert_eq!(world.level("acme/rpm"), 1, "one submit was counted, and no poll");
        // The harness compares the state with what a snapshot restores.
        let restored: Vec<Fact> = world.model.snapshot().collect();
        assert_eq!(world.replayed().snapshot().collect::<Vec<_>>(), restored);
        world.settle(&poll, accepted(Some(5), 3_600));
    }
    let second = world.submit_one("b");
    world.settle(&second, Verdict::Done);
    assert_eq!(world.level("acme/rpm"), 0);
    world.wait_ms(5_000);
    let poll = world.take(1).pop().unwrap();
    assert_eq!((poll.poll, poll.alternative.as_deref()), (true, Some("acme")), "the window is empty");
    world.done(&poll);
    assert_eq!(world.submit_one("c").alternative.as_deref(), Some("globex"));
}

/// DSP-12: an open breaker does not hold up polls of what was submitted before.
#[test]
fn dsp_12_polls_pass_an_open_breaker() {
    let mut world = ModelHarness::with_chain(9);
    let (claim, other) = (world.submit_one("a"), world.submit_one("b"));
    world.settle(&claim, accepted(Some(5), 3_600));
    world.blame(&other, retry(), &Blame::Limit(named("acme/health")));
    assert!(world.is_open("acme/health"));
    world.wait_ms(5_000);
    let claims = world.take(9);
    let polls: Vec<_> = claims.iter().filter(|claim| claim.poll).collect();
    assert_eq!(polls.len(), 1);
    world.done(&polls[0].clone());
}

/// DSP-22: a failure counts against the breaker that it names, and against no other; one that
/// names no one counts against none, whatever its class.
#[test]
fn dsp_22_a_failure_counts_against_whom_it_names() {
    let forbidden = || Fault::new(FaultClass::Forbidden, "401");
    let named = |limit: &str| Blame::Limit(limit.into());
    let table = [
        (retry(), named("acme/health"), [true, false]),
        (Verdict::Rejected(forbidden()), named("acme/key"), [false, true]),
        (Verdict::Unknown(transient()), named("acme/health"), [true, false]),
        (retry(), Blame::NoOne, [false, false]),
        (Verdict::Rejected(transient()), Blame::NoOne, [false, false]),
        (Verdict::Rejected(Fault::new(FaultClass::NotFound, "404")), named("acme/key"), [false, true]),
        (retry(), Blame::ByClass, [true, true]),
        (Verdict::Done, Blame::NoOne, [false, false]),
    ];
    for (verdict, blame, open) in table {
        let mut world = ModelHarness::with_chain(9);
        let claim = world.submit_one("a");
        world.blame(&claim, verdict.clone(), &blame);
        let found = [world.is_open("acme/health"), world.is_open("acme/key")];
        assert_eq!(found, open, "{verdict:?} {blame:?}");
    }
}

/// DSP-11: a report that comes before the response to the submit makes a poll due, and the response
/// does not put it off, whether the poll has started or not.
#[test]
fn dsp_11_an_early_report_keeps_its_poll() {
    for has_started in [false, true] {
        let mut world = ModelHarness::with_chain(9);
        let claim = world.submit_one("a");
        let early = Verdict::Accepted { poll_after: Some(Duration::ZERO), timeout: LEASE };
        assert!(matches!(effect_of(&world.settle(&claim, early)), SettleEffect::Awaiting { .. }));
        if has_started {
            world.wait_ms(100);
            assert!(world.take(1)[0].poll);
        }
        world.settle(&claim, accepted(Some(15), 3_600));
        world.wait_ms(100);
        let poll = world.take(1).pop().unwrap();
        assert_eq!((poll.poll, poll.attempt_fence), (true, claim.fence));
        world.settle(&poll, accepted(Some(15), 3_600));
        world.wait_ms(14_000);
        assert_eq!(world.take(1), [], "a poll decides when the next one is");
    }
}

/// DSP-18: a claim whose worker died is listed with its alternative, and follows the policy for
/// unknown submits.
#[test]
fn dsp_18_a_lost_submit_is_listed_and_follows_its_policy() {
    let wait = UnknownSubmit::Wait { timeout: Duration::from_secs(60) };
    for (policy, is_awaited, is_ended) in
        [(wait, true, false), (UnknownSubmit::Failover, false, false), (UnknownSubmit::Fail, false, true)]
    {
        let mut world = ModelHarness::with_chain(9);
        world.accept(submission("a", policy));
        let claim = world.take(1).pop().unwrap();
        world.wait_ms(30_000);
        let take = world.model.take(world.now, 0, LEASE, 0, &mut world.facts);
        let lost: Vec<_> = take.lost.iter().map(|lost| (lost.fence, lost.alternative.as_deref())).collect();
        assert_eq!(lost, [(claim.fence, Some("acme"))]);
        assert_eq!(world.model.claim_status(claim.seq, claim.fence).is_some(), is_awaited);
        let ended: Vec<_> = take.ended.iter().map(|ended| ended.state).collect();
        assert_eq!(ended, if is_ended { vec![EndState::Failed] } else { vec![] });
        assert!(!world.is_open("acme/health"), "a dead worker is no fault of the provider");
    }
}

/// DSP-24: an operation knows how many go before it, and what keeps each of its alternatives.
#[test]
fn dsp_24_the_position_in_the_queue() {
    let mut world = ModelHarness::with_chain(1);
    world.limit("globex/slots", LimitShape::Cap { at_once: 1 });
    let running: Vec<Claim> = ["a", "b"].map(|group| world.submit_one(group)).into();
    let waiting: Vec<Seq> =
        ["c", "d", "e"].map(|group| world.accept(submission(group, UnknownSubmit::Fail))).into();
    assert_eq!(world.take(9), []);
    let ahead = |world: &ModelHarness, seq: Seq| world.model.waiting_ahead(seq);
    assert_eq!(
        waiting.iter().map(|seq| ahead(&world, *seq)).collect::<Vec<_>>(),
        [Some(0), Some(1), Some(2)]
    );
    assert_eq!(ahead(&world, running[0].seq), None);
    let names: Vec<_> = world.model.alternatives(waiting[2], world.now);
    assert_eq!(names.iter().map(|one| &*one.name).collect::<Vec<_>>(), ["acme", "globex"]);
    world.done(&running[1]);
    assert_eq!(world.take(9)[0].seq, waiting[0]);
    assert_eq!(ahead(&world, waiting[1]), Some(0));
}

/// DSP-24: what the last poll said is told while the job is awaited, and when its time is up; what
/// a later poll has overtaken is not.
#[test]
fn dsp_24_the_last_poll_is_told_when_the_time_is_up() {
    let late = "its completion did not come in time";
    for (recovers, told) in
        [(false, format!("{late}; before that: 502 from the upstream")), (true, late.into())]
    {
        let mut world = ModelHarness::with_chain(9);
        let claim = world.submit_one("a");
        world.settle(&claim, accepted(Some(5), 60));
        world.wait_ms(5_000);
        let poll = world.take(1).pop().unwrap();
        world.settle(&poll, Verdict::PollFailed { every: Duration::from_secs(5), fault: transient() });
        if recovers {
            world.wait_ms(6_000);
            let poll = world.take(1).pop().unwrap();
            world.settle(&poll, accepted(Some(300), 60));
        }
        assert_eq!(world.model.why(claim.seq, world.now).unwrap().fault.is_none(), recovers);
        world.wait_ms(60_000);
        let take = world.model.take(world.now, 0, LEASE, 0, &mut world.facts);
        let faults: Vec<_> = take.ended.into_iter().filter_map(|ended| ended.fault).collect();
        assert_eq!(faults.iter().map(|fault| &fault.message).collect::<Vec<_>>(), [&told]);
    }
}
