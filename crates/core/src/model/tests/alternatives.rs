//! Alternatives: the pick is the take, a failed attempt moves on to the next one, and what is
//! parked costs nothing.

use super::*;
use crate::alternatives::{Alternative, Alternatives, PickStrategy, UnknownSubmit};
use crate::breaker::CooldownLadder;
use crate::fact::SettleEffect;
use crate::model::{AlternativeState, Cause, DraftRefusal, WorkerSlots};
use crate::state::{EndState, State};
use crate::steps;

const PROVIDERS: [&str; 3] = ["acme", "globex", "initech"];

fn cap(at_once: u32) -> LimitShape {
    LimitShape::Cap { at_once }
}

pub(super) fn alternatives(names: &[&str]) -> Alternatives {
    let charges = |name: &&str| {
        let limit = |part: &str| Charge::tokens(format!("{name}/{part}"), 1);
        vec![limit("health"), limit("slots")]
    };
    let list = names.iter().map(|name| Alternative::new(*name, charges(name))).collect();
    Alternatives { list, ..Alternatives::default() }
}

pub(super) fn chained(group: &str, names: &[&str]) -> Draft {
    Draft { alternatives: Some(alternatives(names)), ..draft(group) }
}

fn rejected(class: FaultClass, message: &str) -> Verdict {
    Verdict::Rejected(Fault::new(class, message.to_owned()))
}

fn effect_of(settle: &SettleOutcome) -> &SettleEffect {
    match settle {
        SettleOutcome::Settled { effect, .. } => effect,
        SettleOutcome::Stale => panic!("stale"),
    }
}

impl ModelHarness {
    /// Three providers, each with a breaker and this many slots.
    pub(super) fn with_providers(slots: u32) -> Self {
        let mut world = Self::new();
        for name in PROVIDERS {
            let ladder = CooldownLadder::default();
            world.limit(&format!("{name}/health"), LimitShape::Breaker { ladder });
            world.limit(&format!("{name}/slots"), cap(slots));
        }
        world
    }

    /// The alternatives that a take picks.
    pub(super) fn take_picked(&mut self, n: usize) -> Vec<String> {
        self.take(n).iter().map(|claim| claim.alternative.as_deref().unwrap_or("none").into()).collect()
    }

    pub(super) fn in_flight(&self, limit: &str) -> u32 {
        self.model.limit(limit, self.now).unwrap().in_flight
    }
}

/// DSP-5: the first alternative that is under its slots and cooled down is picked, and reserved in
/// the same step; the claim says which. The next one is used when it is full.
#[test]
fn dsp_5_the_pick_is_the_take() {
    let mut world = ModelHarness::with_providers(2);
    for group in ["a", "b", "c", "d", "e"] {
        world.accept(chained(group, &PROVIDERS));
    }
    assert_eq!(world.take_picked(5), ["acme", "acme", "globex", "globex", "initech"]);
    assert_eq!([world.in_flight("acme/slots"), world.in_flight("initech/slots")], [2, 1]);
    assert_eq!(world.model.picked_alternative(Seq(5)).map(|name| &**name), Some("initech"));
    for group in ["f", "g", "h"] {
        world.accept(chained(group, &PROVIDERS));
    }
    assert_eq!(world.take_picked(5), ["initech"]);
    assert_eq!(world.model.limit("acme/slots", world.now).unwrap().parked, 2, "they wait for any of three");
}

/// DSP-5: charges that every alternative shares are granted with it, all or nothing.
#[test]
fn dsp_5_common_charges_are_granted_with_the_alternative() {
    let mut world = ModelHarness::with_providers(9);
    world.limit("user", cap(1));
    let common = vec![Charge::tokens("user", 1)];
    for group in ["a", "b"] {
        world.accept(Draft { charges: common.clone(), ..chained(group, &PROVIDERS) });
    }
    let claim = world.take(9).pop().unwrap();
    assert_eq!(world.take(9), [], "the user has no slot left");
    assert_eq!(world.in_flight("acme/slots"), 1, "and nothing was reserved for the second one");
    world.done(&claim);
    assert_eq!(world.take_picked(9), ["acme"]);
}

/// DSP-4, DSP-9: a provider that fails at submit is left for the next one at once, at the old turn;
/// when all of them failed, the operation fails with every reason.
#[test]
fn dsp_9_every_provider_failed() {
    let mut world = ModelHarness::with_providers(1);
    world.accept(chained("first", &PROVIDERS));
    let claim = world.take(1).pop().unwrap();
    for group in ["later", "last"] {
        world.accept(draft(group));
    }
    let settle = world.settle(&claim, rejected(FaultClass::Transient, "503"));
    assert_eq!(*effect_of(&settle), SettleEffect::NextAlternative);
    assert_eq!(world.in_flight("acme/slots"), 0);
    let claim = world.take(1).pop().unwrap();
    assert_eq!((claim.seq, claim.attempt, claim.alternative.as_deref()), (Seq(1), 2, Some("globex")));
    world.settle(&claim, Verdict::Retry { after: None, fault: Fault::new(FaultClass::Transient, "refused") });
    let claim = world.take(1).pop().unwrap();
    assert_eq!((claim.seq, claim.alternative.as_deref()), (Seq(1), Some("initech")));
    let SettleOutcome::Settled { ended: Some(ended), .. } =
        world.settle(&claim, rejected(FaultClass::Forbidden, "the key is not valid."))
    else {
        panic!("it did not end");
    };
    assert_eq!((ended.state, ended.attempt), (EndState::Failed, 3));
    assert_eq!(
        ended.fault.unwrap().message,
        "every alternative failed: acme: 503; globex: refused; initech: the key is not valid"
    );
}

/// DSP-7: what the user got wrong fails the operation, is tried nowhere else and heats no one.
#[test]
fn dsp_7_wrong_input_is_not_tried_elsewhere() {
    let mut world = ModelHarness::with_providers(1);
    world.accept(chained("g", &PROVIDERS));
    let claim = world.take(1).pop().unwrap();
    let settle = world.settle(&claim, rejected(FaultClass::Validation, "422"));
    assert!(matches!(settle, SettleOutcome::Settled { ended: Some(_), .. }));
    assert!(world.model.limits(world.now).all(|limit| limit.frozen_until.is_none()));
}

/// More alternatives than attempts: each of them is tried all the same.
#[test]
fn attempts_do_not_bound_alternatives() {
    let mut world = ModelHarness::with_providers(1);
    world.accept(Draft { max_attempts: 1, ..chained("g", &PROVIDERS) });
    for name in PROVIDERS {
        let claim = world.take(1).pop().unwrap();
        assert_eq!(claim.alternative.as_deref(), Some(name));
        world.settle(&claim, retry());
    }
    assert_eq!(world.model.active_count(), 0);
}

/// DSP-8: a 429 closes the provider and strikes nothing out: the next one is used, and when all of
/// them are closed the operation waits for the first that opens.
#[test]
fn dsp_8_throttled_providers_are_waited_for() {
    let mut world = ModelHarness::with_providers(1);
    world.accept(chained("g", &PROVIDERS));
    for (name, after_ms) in PROVIDERS.into_iter().zip([30_000, 20_000, 40_000]) {
        let claim = world.take(1).pop().unwrap();
        assert_eq!(claim.alternative.as_deref(), Some(name));
        world.settle(&claim, throttled(Some(after_ms)));
    }
    assert_eq!(world.take(1), []);
    assert_eq!(world.model.next_change(true), Some(world.now.after(Duration::from_secs(20))));
    world.wait_ms(20_000);
    let claim = world.take(1).pop().unwrap();
    assert_eq!((claim.alternative.as_deref(), claim.attempt), (Some("globex"), 1));
    world.done(&claim);
}

/// A 429 of a provider that nothing closes strikes it out, so that it is not asked again at once.
#[test]
fn a_429_that_closes_nothing_strikes_out() {
    let mut world = ModelHarness::new();
    world.limit("slots", cap(1));
    let list = ["a", "b"].map(|name| Alternative::new(name, vec![Charge::tokens("slots", 1)]));
    let alternatives = Some(Alternatives { list: list.into(), ..Alternatives::default() });
    world.accept(Draft { alternatives, ..draft("g") });
    let claim = world.take(1).pop().unwrap();
    world.settle(&claim, throttled(Some(5_000)));
    assert_eq!(world.take_picked(1), ["b"]);
}

/// DSP-8: a slot that is released, a cooldown that ends and a window that opens each let the first
/// of the waiting go, and no more than there is room for.
#[test]
fn dsp_8_whatever_frees_a_provider_wakes_the_first() {
    let mut world = ModelHarness::new();
    world.limit("acme/slots", cap(1));
    world.limit("globex/rate", LimitShape::Window { limit: MICRO, period: Duration::from_secs(60) });
    let list =
        ["acme/slots", "globex/rate"].map(|name| Alternative::new(name, vec![Charge::tokens(name, 1)]));
    let alternatives = Alternatives { list: list.into(), ..Alternatives::default() };
    for number in 0..6 {
        let alternatives = Some(alternatives.clone());
        world.accept(Draft { alternatives, ..draft(&format!("g-{number}")) });
    }
    let claims = world.take(9);
    assert_eq!(claims.iter().map(|claim| claim.seq.0).collect::<Vec<_>>(), [1, 2]);
    world.done(&claims[1]);
    assert_eq!(world.take(9), [], "the window is used up");
    world.done(&claims[0]);
    let claims = world.take(9);
    assert_eq!(
        (claims.len(), claims[0].seq, claims[0].alternative.as_deref()),
        (1, Seq(3), Some("acme/slots"))
    );
    let opens = world.model.next_change(true).unwrap().since(world.now);
    assert!(opens <= Duration::from_secs(60), "the lease of a claim, or the window: {opens:?}");
    world.model.renew(Seq(3), claims[0].fence, Time::MAX, &mut world.facts);
    world.wait_ms(61_000);
    let claims = world.take(9);
    assert_eq!(
        (claims.len(), claims[0].seq, claims[0].alternative.as_deref()),
        (1, Seq(4), Some("globex/rate"))
    );
}

/// DSP-8: ten thousand parked on hot providers cause no picks: a take looks at a fixed number of
/// things, however many wait, and an operation that another provider serves is not held up.
#[test]
fn dsp_8_what_is_parked_costs_nothing() {
    let mut cost = Vec::new();
    for parked in [10_u64, 10_000] {
        let mut world = ModelHarness::with_providers(1);
        for name in PROVIDERS {
            let claim = {
                world.accept(chained("heat", &[name]));
                world.take(1).pop().unwrap()
            };
            world.settle(&claim, throttled(Some(3_600_000)));
            world.model.cancel(world.now, claim.seq, &mut world.facts);
        }
        for number in 0..parked {
            world.model.accept(world.now, chained(&format!("g-{number}"), &PROVIDERS), &mut world.facts);
        }
        assert_eq!(world.take(64), []);
        let (model, now) = (&mut world.model, world.now);
        let before = world.facts.len();
        let (claims, steps) = steps::of(|| {
            let takes = (1..=1_000).map(|ms| now.after(Duration::from_millis(ms)));
            takes.flat_map(|now| model.take(now, 64, LEASE, 0, &mut world.facts).claims).count()
        });
        assert_eq!((claims, world.facts.len()), (0, before));
        assert!(steps < 20 * 1_000, "{steps} steps of a thousand takes with {parked} parked");
        cost.push(steps);
        // One provider opens: the first one goes, and no one else is looked at.
        world.wait_ms(1_000);
        world.accept(draft("other"));
        assert_eq!(world.take_seqs(64), [parked + 4]);
        world.model.thaw(world.now, &named("globex/health"), &mut world.facts).unwrap();
        let (model, now) = (&mut world.model, world.now);
        let (claims, steps) = steps::of(|| model.take(now, 64, LEASE, 0, &mut world.facts).claims);
        assert_eq!(claims.iter().map(|claim| claim.seq.0).collect::<Vec<_>>(), [4]);
        assert!(steps < 500, "{steps} steps for one claim with {parked} parked");
    }
    assert!(cost[1] <= cost[0] + 1_000, "the number of the parked makes no difference: {cost:?}");
}

/// DSP-23: an operation that only one busy provider can serve does not block those behind it, and
/// keeps its turn: it goes before later ones when its provider is free.
#[test]
fn dsp_23_a_busy_provider_blocks_only_its_own() {
    let mut world = ModelHarness::with_providers(1);
    world.accept(chained("a", &["acme"]));
    let busy = world.take(1).pop().unwrap();
    world.accept(chained("b", &["acme"]));
    world.accept(chained("c", &["acme", "globex"]));
    world.accept(chained("d", &["acme", "globex"]));
    assert_eq!(world.take_seqs(9), [3]);
    world.done(&busy);
    let claims = world.take(9);
    assert_eq!(claims.iter().map(|claim| claim.seq.0).collect::<Vec<_>>(), [2], "the earlier turn");
    world.done(&claims[0]);
    assert_eq!(world.take_seqs(9), [4]);
}

/// A waiting operation without alternatives and one with some take turns at a limit they share.
#[test]
fn turns_hold_between_operations_with_and_without_alternatives() {
    let mut world = ModelHarness::with_providers(1);
    world.accept(chained("a", &["acme"]));
    let mut claim = world.take(1).pop().unwrap();
    for (number, group) in ["b", "c", "d", "e"].into_iter().enumerate() {
        let plain = charged(group, &[("acme/slots", 1)]);
        world.accept(if number % 2 == 0 { plain } else { chained(group, &["acme"]) });
        assert_eq!(world.take(9), []);
    }
    for seq in 2..=5 {
        world.done(&claim);
        let mut claims = world.take(9);
        assert_eq!(claims.iter().map(|claim| claim.seq.0).collect::<Vec<_>>(), [seq]);
        claim = claims.pop().unwrap();
    }
}

/// DSP-18: an unknown submit follows its policy: it keeps its slot and is polled, the next provider
/// is used, or the operation fails. A worker that died is no proof that nothing was sent.
#[test]
fn dsp_18_an_unknown_submit_follows_its_policy() {
    let wait = UnknownSubmit::Wait { timeout: Duration::from_secs(60) };
    for verdict in [Verdict::Unknown(transient()), Verdict::Lost(transient())] {
        for policy in [wait, UnknownSubmit::Failover, UnknownSubmit::Fail] {
            let mut world = ModelHarness::with_providers(1);
            let alternatives = Alternatives { on_unknown: policy, ..alternatives(&PROVIDERS) };
            world.accept(Draft { alternatives: Some(alternatives), ..draft("g") });
            let claim = world.take(1).pop().unwrap();
            world.settle(&claim, verdict.clone());
            match policy {
                UnknownSubmit::Wait { .. } => {
                    assert_eq!(world.in_flight("acme/slots"), 1, "it keeps its slot");
                    assert_eq!(world.model.active(claim.seq).unwrap().state, State::Running);
                    world.wait_ms(1_000);
                    let poll = world.take(1).pop().unwrap();
                    assert_eq!((poll.poll, poll.attempt_fence), (true, claim.fence));
                    assert_eq!(poll.alternative.as_deref(), Some("acme"));
                    world.settle(&poll, Verdict::Unknown(transient()));
                    world.wait_ms(60_000);
                    let take = world.model.take(world.now, 0, LEASE, 0, &mut world.facts);
                    assert_eq!(take.ended[0].state, EndState::Failed, "its time is up");
                    assert_eq!(world.in_flight("acme/slots"), 0);
                }
                UnknownSubmit::Failover => {
                    let next = world.take(1).pop().unwrap();
                    assert_eq!((next.alternative.as_deref(), next.in_doubt), (Some("globex"), true));
                }
                UnknownSubmit::Fail => assert_eq!(world.model.active_count(), 0),
            }
        }
    }
}

/// DSP-11: a job that was accepted and fails is not submitted elsewhere; it heats its provider.
#[test]
fn dsp_11_an_accepted_job_is_not_submitted_elsewhere() {
    let mut world = ModelHarness::with_providers(1);
    world.accept(chained("g", &PROVIDERS));
    let claim = world.take(1).pop().unwrap();
    world.settle(&claim, accepted(None, 60));
    let settle = world.settle(&claim, rejected(FaultClass::Transient, "the job failed"));
    assert!(matches!(settle, SettleOutcome::Settled { ended: Some(_), .. }));
    assert!(world.model.limit("acme/health", world.now).unwrap().frozen_until.is_some());
}

/// A claim that is returned or canceled gives its alternative back; it is picked anew, or ends.
#[test]
fn what_is_returned_is_picked_anew() {
    let mut world = ModelHarness::with_providers(1);
    world.accept(chained("g", &PROVIDERS));
    let claim = world.take(1).pop().unwrap();
    world.settle(&claim, Verdict::Returned);
    assert_eq!(world.in_flight("acme/slots"), 0);
    let claim = world.take(1).pop().unwrap();
    assert_eq!((claim.alternative.as_deref(), claim.attempt), (Some("acme"), 1));
    world.model.cancel(world.now, claim.seq, &mut world.facts);
    world.settle(&claim, retry());
    assert_eq!(world.model.active_count(), 0, "a cancel is not followed by the next provider");
}

/// DSP-23: a wait has an end: the deadline ends an operation that is parked, at once when no
/// provider can be free before it.
#[test]
fn dsp_23_a_wait_has_an_end() {
    let mut world = ModelHarness::with_providers(1);
    world.accept(chained("heat", &["acme"]));
    let claim = world.take(1).pop().unwrap();
    world.settle(&claim, throttled(Some(60_000)));
    let within = |seconds| Some(world.now.after(Duration::from_secs(seconds)));
    let (short, long) = (within(30), within(90));
    let late = Draft { deadline: short, ..chained("late", &["acme"]) };
    let earliest = world.now.after(Duration::from_secs(60));
    assert_eq!(world.try_accept(late), AcceptOutcome::Refused(DraftRefusal::TooLate { earliest }));
    world.accept(Draft { deadline: short, ..chained("either", &["acme", "globex"]) });
    let globex = world.take(1).pop().unwrap();
    world.accept(Draft { deadline: long, ..chained("patient", &["acme", "globex"]) });
    world.accept(Draft { deadline: short, ..chained("impatient", &["acme", "globex"]) });
    assert_eq!(world.take(9), []);
    world.settle(&globex, throttled(Some(60_000)));
    world.wait_ms(30_000);
    let take = world.model.take(world.now, 9, LEASE, 0, &mut world.facts);
    let ended: Vec<_> = take.ended.iter().map(|ended| (ended.seq.0, ended.state)).collect();
    assert_eq!(ended, [(2, EndState::Failed), (4, EndState::Failed)]);
    assert_eq!(world.model.active(Seq(3)).unwrap().state, State::Waiting);
}

/// DSP-24: every alternative is listed with its reason and its time: the limit that is free last,
/// or why it failed for this operation.
#[test]
fn dsp_24_why_lists_every_alternative() {
    let mut world = ModelHarness::with_providers(1);
    world.accept(chained("g", &PROVIDERS));
    let claim = world.take(1).pop().unwrap();
    world.settle(&claim, rejected(FaultClass::Forbidden, "the key is not valid"));
    let claim = world.take(1).pop().unwrap();
    world.settle(&claim, throttled(Some(45_000)));
    let until = world.now.after(Duration::from_secs(45));
    let busy = world.take(1).pop().unwrap();
    assert_eq!(busy.alternative.as_deref(), Some("initech"));
    world.settle(&busy, Verdict::Returned);
    world.accept(chained("other", &["initech"]));
    world.model.pause(world.now, &named("g"), &named("ann"), &named("wait"), &mut world.facts);
    world.take(1);
    world.model.resume(world.now, &named("g"), &mut world.facts).unwrap();
    assert_eq!(world.take(1), []);
    let why = world.model.why(Seq(1), world.now).unwrap();
    assert_eq!((why.until, why.starts_at), (Some(until), Some(until)));
    let Cause::Alternatives(each) = why.cause else { panic!("{:?}", why.cause) };
    let names: Vec<_> = each.iter().map(|status| (&*status.name, status.until)).collect();
    assert_eq!(names, [("globex", Some(until)), ("initech", None), ("acme", None)]);
    let AlternativeState::Waits(cause) = &each[0].state else { panic!("{each:?}") };
    assert!(matches!(&**cause, Cause::Breaker { name, cooling: true, .. } if **name == *"globex/health"));
    let AlternativeState::Waits(cause) = &each[1].state else { panic!("{each:?}") };
    assert!(matches!(&**cause, Cause::Cap { held: 1, at_once: 1, .. }));
    let AlternativeState::Failed(fault) = &each[2].state else { panic!("{each:?}") };
    assert_eq!(fault.message, "the key is not valid");
}

/// DSP-25: at take time the model knows how busy, how fast and how dear each one is, and draws by
/// weight anew for each claim.
#[test]
fn dsp_25_strategies_go_by_what_the_model_knows() {
    let with = |strategy| {
        let mut alternatives = Alternatives { strategy, ..alternatives(&PROVIDERS) };
        for (place, alternative) in alternatives.list.iter_mut().enumerate() {
            (alternative.price, alternative.weight) = ([5, 3, 4][place], [0, 1, 1][place]);
        }
        alternatives
    };
    let submit = |world: &mut ModelHarness, strategy, count: usize| {
        for number in 0..count {
            let group = format!("{}-{number}", world.model.last_seq().0);
            world.accept(Draft { alternatives: Some(with(strategy)), ..draft(&group) });
        }
        world.take(count)
    };
    let picked = |claims: &[Claim]| {
        claims.iter().map(|claim| claim.alternative.as_deref().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let mut world = ModelHarness::with_providers(40);
    assert_eq!(picked(&submit(&mut world, PickStrategy::Cheapest, 2)), ["globex", "globex"]);
    let least_busy = picked(&submit(&mut world, PickStrategy::LeastBusy, 4));
    assert_eq!(least_busy, ["acme", "initech", "acme", "initech"]);
    let weighted = picked(&submit(&mut world, PickStrategy::Weighted, 40));
    let share = weighted.iter().filter(|name| *name == "globex").count();
    assert!(!weighted.contains(&"acme".to_owned()) && (10..30).contains(&share), "{weighted:?}");

    let mut world = ModelHarness::with_providers(9);
    for (name, took_ms) in [("acme", 900), ("globex", 300), ("initech", 600)] {
        world.accept(chained("probe", &[name]));
        let claim = world.take(1).pop().unwrap();
        world.wait_ms(took_ms);
        world.done(&claim);
    }
    assert_eq!(picked(&submit(&mut world, PickStrategy::Fastest, 1)), ["globex"]);
}

/// Alternatives are refused like charges: unknown limits, a limit charged twice, too many.
#[test]
fn alternatives_are_checked_at_acceptance() {
    let mut world = ModelHarness::with_providers(1);
    let unknown = world.try_accept(chained("g", &["acme", "hooli"]));
    assert!(matches!(unknown, AcceptOutcome::Refused(DraftRefusal::UnknownLimit(_))), "{unknown:?}");
    let common = vec![Charge::tokens("globex/slots", 1)];
    let twice = world.try_accept(Draft { charges: common, ..chained("g", &PROVIDERS) });
    assert!(matches!(twice, AcceptOutcome::Refused(DraftRefusal::ChargedTwice(_))), "{twice:?}");
    let none = world.try_accept(chained("g", &[]));
    assert!(matches!(none, AcceptOutcome::Refused(DraftRefusal::Invalid(_))), "{none:?}");
    assert!(world.facts.iter().all(|fact| matches!(fact, Fact::LimitSet { .. })));
}

/// Remote workers pick alternatives as the owner's own do.
#[test]
fn remote_workers_get_alternatives_too() {
    let mut world = ModelHarness::new();
    world.model = Model::with_remote_kinds([named("remote")]);
    world.limit("acme/health", LimitShape::Breaker { ladder: CooldownLadder::default() });
    world.limit("acme/slots", cap(1));
    for group in ["a", "b"] {
        world.accept(Draft { kind: named("remote"), ..chained(group, &["acme"]) });
    }
    assert_eq!(world.take(9), [], "they are left to remote workers");
    let kinds = [named("remote")];
    let slots = [WorkerSlots { kinds: Some(&kinds), free: 9, lease: LEASE }];
    let take = world.model.take_for(world.now, &slots, 0, &mut world.facts);
    assert_eq!(take.claims.iter().map(|claim| claim.seq.0).collect::<Vec<_>>(), [1]);
    assert_eq!(world.model.claimable_kinds().count(), 0);
    world.done(&take.claims[0]);
    assert_eq!(world.model.claimable_kinds().collect::<Vec<_>>(), [&named("remote")]);
    let take = world.model.take_for(world.now, &slots, 0, &mut world.facts);
    assert_eq!(take.claims.iter().map(|claim| claim.seq.0).collect::<Vec<_>>(), [2]);
}

/// An operation without alternatives is kept as before: the flag takes no memory of its own.
#[test]
fn operations_without_alternatives_cost_nothing_extra() {
    assert_eq!(size_of::<crate::model::entry::Entry>(), 80);
}
