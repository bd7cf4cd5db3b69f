//! Breakers in the queue: they close an operation's way like any other limit, and learn from what
//! is settled.

use super::*;
use crate::breaker::CooldownLadder;
use crate::model::{Cause, DraftRefusal, LimitRefusal};
use crate::state::EndState;

fn breaker() -> LimitShape {
    LimitShape::Breaker { ladder: CooldownLadder::default() }
}

fn fault(class: FaultClass) -> Fault {
    Fault::new(class, "the provider's answer")
}

impl ModelHarness {
    fn with_breaker() -> Self {
        let mut world = Self::new();
        world.limit("acme", breaker());
        world
    }

    /// Until when the breaker cools, in seconds from now.
    fn cools_s(&self) -> u64 {
        let until = self.model.limit("acme", self.now).unwrap().frozen_until;
        until.map_or(0, |until| until.since(self.now).as_secs())
    }

    /// Accepts operations of this many groups, and claims what may run.
    fn submit(&mut self, count: usize) -> Vec<Claim> {
        for number in 0..count {
            let group = format!("{}-{number}", self.model.last_seq().0);
            self.accept(charged(&group, &[("acme", 1)]));
        }
        self.take(count)
    }
}

/// DSP-6, DSP-21: twenty calls that fail in one outage cool the provider once; then one probe goes,
/// and when it succeeds the backlog follows in steps.
#[test]
fn dsp_6_dsp_21_an_outage_counts_once_and_one_probe_goes_first() {
    let mut world = ModelHarness::with_breaker();
    let claims = world.submit(20);
    assert_eq!(claims.len(), 20);
    for claim in &claims {
        world.settle(claim, Verdict::Rejected(transient()));
    }
    assert_eq!(world.cools_s(), 10);
    assert_eq!(world.submit(40), [], "no one gets through while it cools");
    assert_eq!(world.model.next_change(true), Some(world.now.after(Duration::from_secs(10))));
    world.wait_ms(10_000);
    let probe = world.take(40).pop().unwrap();
    assert_eq!(world.take(40), [], "one probe, not the backlog");
    assert!(matches!(
        world.model.why(Seq(22), world.now).unwrap().cause,
        Cause::Breaker { failures: 1, cooling: false, .. }
    ));
    world.done(&probe);
    for step in [2, 4, 8] {
        let claims = world.take(40);
        assert_eq!(claims.len(), step);
        world.done(&claims[0]);
        for claim in &claims[1..] {
            world.settle(claim, Verdict::Rejected(fault(FaultClass::Validation)));
        }
    }
}

/// DSP-6: a probe is leased: when its worker dies, the next one goes, and nothing is heated.
#[test]
fn dsp_6_the_probe_is_leased() {
    let mut world = ModelHarness::with_breaker();
    let claim = world.submit(1).pop().unwrap();
    world.settle(&claim, Verdict::Rejected(transient()));
    world.submit(2);
    world.wait_ms(10_000);
    assert_eq!(world.take(9).len(), 1);
    world.wait_ms(29_999);
    assert_eq!(world.take(9), []);
    world.wait_ms(1);
    assert_eq!(world.take(9).len(), 1, "the lease of the first probe is over");
    assert_eq!(world.cools_s(), 0, "a dead worker is not the provider's fault");
}

/// DSP-24: a breaker remembers since when it is closed, by whom and why, until a call succeeds;
/// a new owner knows it too.
#[test]
fn dsp_24_a_breaker_says_since_when_and_why_it_is_closed() {
    let mut world = ModelHarness::with_breaker();
    let closure = |world: &ModelHarness| {
        let closure = world.model.limit("acme", world.now).unwrap().closure?;
        let ago = |at: Time| world.now.since(at).as_secs();
        Some((ago(closure.since), ago(closure.at), closure.seq, closure.fault?.message))
    };
    let claims = world.submit(2);
    assert_eq!(closure(&world), None);
    world.wait_ms(1_000);
    world.settle(&claims[0], Verdict::Rejected(Fault::new(FaultClass::Transient, "503")));
    world.settle(&claims[1], Verdict::Rejected(Fault::new(FaultClass::Transient, "the same outage")));
    assert_eq!(closure(&world), Some((0, 0, Seq(1), "503".into())));
    world.wait_ms(11_000);
    let probe = world.submit(2).pop().unwrap();
    world.settle(&probe, Verdict::Unknown(Fault::new(FaultClass::Transient, "no answer")));
    world.wait_ms(31_000);
    let later = Some((42, 31, probe.seq, "no answer".into()));
    assert_eq!(closure(&world), later, "since the first failure, and why it failed last");
    let mut restored = Model::default();
    world.model.snapshot().for_each(|fact| restored.absorb(&fact));
    let [restored, known] = [&restored, &world.model].map(|model| model.limit("acme", world.now).unwrap());
    assert_eq!(restored.closure, known.closure);
    let probe = world.take(9).pop().unwrap();
    world.done(&probe);
    assert_eq!(closure(&world), None, "a success ends it");

    let last = world.submit(1).pop().unwrap();
    world.settle(&last, Verdict::Rejected(transient()));
    assert!(closure(&world).is_some());
    world.wait_ms(620_000);
    assert_eq!(closure(&world), None, "a failure of ten minutes ago is none of now");
    let next = world.submit(1).pop().unwrap();
    world.settle(&next, Verdict::Rejected(transient()));
    assert_eq!(closure(&world).unwrap().0, 0, "another outage begins now");
    let name = named("acme");
    world.model.thaw_closed(world.now, &name, &mut world.facts).unwrap();
    assert!(closure(&world).is_some(), "nothing shows yet that it is well");
    let refused = world.model.thaw_closed(world.now, &name, &mut world.facts);
    assert_eq!(refused, Err(LimitRefusal::NotClosed));
}

/// OPS-24: so does a bucket that an upstream closed, as long as it is closed.
#[test]
fn ops_24_a_closed_bucket_says_since_when_and_why() {
    let mut world = ModelHarness::new();
    world.limit("acme", LimitShape::Gate);
    world.accept(charged("a", &[("acme", 1)]));
    let claim = world.take(1).pop().unwrap();
    world.settle(&claim, throttled(Some(5_000)));
    let closure = world.model.limit("acme", world.now).unwrap().closure.unwrap();
    assert_eq!((closure.since, closure.seq), (world.now, Seq(1)));
    assert!(closure.fault.is_some());
    world.wait_ms(9_000);
    assert_eq!(world.model.limit("acme", world.now).unwrap().closure, None);
    let claim = world.take(1).pop().unwrap();
    world.settle(&claim, throttled(Some(5_000)));
    let again = world.model.limit("acme", world.now).unwrap().closure.unwrap();
    assert_eq!((again.since, again.at), (closure.since, world.now), "none succeeded in between");
    world.wait_ms(9_000);
    let claim = world.take(1).pop().unwrap();
    world.done(&claim);
    assert!(world.model.snapshot().all(|fact| !matches!(fact, Fact::ClosureImage { .. })));
}

/// DSP-7: time-outs, 5xx, credentials and 429 heat the provider; what its caller got wrong, a
/// cancel, a dead worker and a call that was not sent do not.
#[test]
fn dsp_7_only_faults_of_the_provider_heat_it() {
    let retry = |class| Verdict::Retry { after: None, fault: fault(class) };
    let table = [
        (Verdict::Rejected(fault(FaultClass::Transient)), 10),
        (Verdict::Rejected(fault(FaultClass::Forbidden)), 10),
        (Verdict::Unknown(fault(FaultClass::Transient)), 10),
        (retry(FaultClass::Transient), 10),
        (throttled(None), 10),
        (throttled(Some(0)), 10),
        (throttled(Some(45_000)), 45),
        (Verdict::Rejected(fault(FaultClass::Validation)), 0),
        (Verdict::Rejected(fault(FaultClass::NotFound)), 0),
        (Verdict::Rejected(fault(FaultClass::Conflict)), 0),
        (retry(FaultClass::Conflict), 0),
        (Verdict::Lost(fault(FaultClass::Transient)), 0),
        (Verdict::Canceled { may_have_happened: true }, 0),
        (Verdict::Returned, 0),
        (Verdict::Done, 0),
        (accepted(None, 60), 0),
    ];
    for (verdict, cools_s) in table {
        let mut world = ModelHarness::with_breaker();
        let claim = world.submit(1).pop().unwrap();
        world.settle(&claim, verdict.clone());
        assert_eq!(world.cools_s(), cools_s, "{verdict:?}");
    }
}

/// DSP-7: a 429 with a hint does not shorten a longer cooldown, and a shorter one follows nothing.
#[test]
fn dsp_7_a_hint_never_shortens_a_cooldown() {
    let mut world = ModelHarness::with_breaker();
    let claims = world.submit(3);
    for (claim, after_ms, cools_s) in
        [(&claims[0], 60_000, 60), (&claims[1], 5_000, 60), (&claims[2], 90_000, 90)]
    {
        world.settle(claim, throttled(Some(after_ms)));
        assert_eq!(world.cools_s(), cools_s);
    }
}

/// DSP-22: a 429 that names the limit of the key heats the key, not the provider.
#[test]
fn dsp_22_a_429_heats_the_key_it_names() {
    for key in [breaker(), drip(100, 1), LimitShape::Gate] {
        let mut world = ModelHarness::with_breaker();
        world.limit("acme/key-1", key);
        world.accept(charged("g", &[("acme", 1), ("acme/key-1", 1)]));
        let claim = world.take(1).pop().unwrap();
        let (after, scope) = (Some(Duration::from_secs(45)), Some(named("acme/key-1")));
        world.settle(&claim, Verdict::Throttled { after, scope, fault: transient() });
        assert_eq!(world.cools_s(), 0);
        assert!(world.model.limit("acme/key-1", world.now).unwrap().frozen_until.is_some());
    }
}

/// A job that was accepted counts as a sign of health at once and as a success only when it ends
/// well: a provider that accepts everything and fails every job climbs the ladder.
#[test]
fn jobs_that_are_accepted_and_fail_climb_the_ladder() {
    let mut world = ModelHarness::with_breaker();
    for cooldown in [10, 30, 60, 120] {
        let job = world.submit(1).pop().unwrap();
        world.settle(&job, accepted(Some(5), 600));
        world.wait_ms(5_000);
        let poll = world.take(1).pop().unwrap();
        assert!(poll.poll);
        world.settle(&poll, Verdict::Rejected(transient()));
        assert_eq!(world.cools_s(), cooldown);
        world.wait_ms(cooldown * 1_000);
    }
    let job = world.submit(1).pop().unwrap();
    world.settle(&job, accepted(None, 600));
    world.done(&job);
    let job = world.submit(1).pop().unwrap();
    world.settle(&job, Verdict::Rejected(transient()));
    assert_eq!(world.cools_s(), 10);
}

/// DSP-10: a job that is never completed gives its slot back; polls go on while the provider cools.
#[test]
fn dsp_10_polls_pass_a_breaker_and_an_overdue_job_gives_its_slot_back() {
    let mut world = ModelHarness::with_breaker();
    world.limit("slots", LimitShape::Cap { at_once: 2 });
    let charges = [("acme", 1), ("slots", 1)];
    world.accept(charged("a", &charges));
    world.accept(charged("b", &charges));
    let claims = world.take(2);
    world.settle(&claims[0], accepted(Some(5), 60));
    world.settle(&claims[1], Verdict::Rejected(transient()));
    assert_eq!(world.cools_s(), 10);
    world.wait_ms(5_000);
    let poll = world.take(1).pop().unwrap();
    assert!(poll.poll, "a poll is not held up");
    world.settle(&poll, Verdict::Unknown(transient()));
    assert_eq!(world.cools_s(), 5, "a poll that found out nothing says nothing");
    world.wait_ms(55_000);
    world.take(0);
    assert_eq!(world.model.limit("slots", world.now).unwrap().in_flight, 0);
    assert_eq!(world.cools_s(), 0, "it was sent before the breaker opened");
}

/// An operator sees why a breaker is open, ends its cooldown, and cannot make it another kind of
/// limit.
#[test]
fn operators_see_a_breaker_and_end_its_cooldown() {
    let mut world = ModelHarness::with_breaker();
    let claim = world.submit(1).pop().unwrap();
    world.settle(&claim, Verdict::Rejected(transient()));
    world.submit(1);
    let why = world.model.why(Seq(2), world.now).unwrap();
    let until = Some(world.now.after(Duration::from_secs(10)));
    assert_eq!((why.until, why.starts_at), (until, until));
    assert_eq!(why.cause, Cause::Breaker { name: named("acme"), failures: 1, cooling: true, ahead: 0 });
    let cap = LimitShape::Cap { at_once: 1 };
    let other = world.model.set_limit(world.now, &named("acme"), cap, &mut world.facts);
    assert_eq!(other, Err(LimitRefusal::OtherKind));
    let ladder = CooldownLadder([Duration::from_secs(1); 4]);
    let shape = LimitShape::Breaker { ladder };
    world.model.set_limit(world.now, &named("acme"), shape, &mut world.facts).unwrap();
    assert_eq!(world.cools_s(), 10, "a shorter ladder shortens no cooldown");
    world.submit(4);
    world.model.thaw(world.now, &named("acme"), &mut world.facts).unwrap();
    let mut claims = world.take(9);
    assert_eq!(claims.len(), 1, "one call goes first, although an operator opened it");
    let ladder = CooldownLadder([1, 2, 3, 4].map(Duration::from_secs));
    let shape = LimitShape::Breaker { ladder };
    world.model.set_limit(world.now, &named("acme"), shape, &mut world.facts).unwrap();
    world.settle(&claims.pop().unwrap(), Verdict::Rejected(transient()));
    assert_eq!(world.cools_s(), 2, "the second failure in a row");
}

/// An operation that cannot start before its deadline because its provider cools is refused, and
/// one that waits is ended.
#[test]
fn a_cooldown_beyond_the_deadline_ends_an_operation() {
    let mut world = ModelHarness::with_breaker();
    let claims = world.submit(2);
    let deadline = Some(world.now.after(Duration::from_secs(40)));
    world.settle(&claims[0], Verdict::Rejected(transient()));
    let late = Draft { deadline, ..charged("late", &[("acme", 1)]) };
    world.accept(late.clone());
    assert_eq!(world.take(1), []);
    world.settle(&claims[1], throttled(Some(60_000)));
    let take = world.model.take(world.now, 1, LEASE, 0, &mut world.facts);
    assert_eq!(take.ended.iter().map(|ended| ended.state).collect::<Vec<_>>(), [EndState::Failed]);
    let refused =
        AcceptOutcome::Refused(DraftRefusal::TooLate { earliest: world.now.after(Duration::from_secs(60)) });
    assert_eq!(world.try_accept(Draft { group: named("later"), ..late }), refused);
}
