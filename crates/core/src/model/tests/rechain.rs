//! Other alternatives for an operation that was accepted: what waits follows them at its old turn,
//! what is claimed keeps what it uses, and what failed is not tried again without need.

use super::alternatives::{alternatives, chained};
use super::*;
use crate::fact::SettleEffect;
use crate::model::DraftRefusal;

impl ModelHarness {
    fn rechain(&mut self, seq: Seq, names: &[&str]) -> bool {
        let changed = self.model.replace_alternatives(self.now, seq, alternatives(names), &mut self.facts);
        self.model.check().unwrap();
        changed.unwrap()
    }
}

/// DSP-4: what waits for a busy provider goes to the one that replaces it, in the order of
/// acceptance and before what came later.
#[test]
fn dsp_4_what_waits_follows_the_new_chain() {
    let mut world = ModelHarness::with_providers(2);
    for group in ["a", "b", "c", "d", "e"] {
        world.accept(chained(group, &["acme"]));
    }
    assert_eq!(world.take_picked(5), ["acme", "acme"]);
    assert_eq!(world.take_picked(5).len(), 0, "three are parked");
    world.accept(chained("f", &["globex"]));
    for seq in [5, 4, 3] {
        assert!(world.rechain(Seq(seq), &["globex"]));
    }
    let claims = world.take(5);
    assert_eq!(claims.iter().map(|claim| claim.seq.0).collect::<Vec<_>>(), [3, 4]);
    assert!(claims.iter().all(|claim| claim.alternative.as_deref() == Some("globex")));
    world.done(&claims[0]);
    assert_eq!(world.take_seqs(5), [5], "before the one that was accepted after it");
}

/// DSP-4: a provider that refused it is not asked again while another one is left; if none is, the
/// operation starts over and is not lost.
#[test]
fn dsp_4_what_failed_stays_struck_out() {
    for (chain, next) in [(&["acme", "initech"][..], "initech"), (&["acme"], "acme")] {
        let mut world = ModelHarness::with_providers(1);
        let seq = world.accept(chained("a", &["acme", "globex"]));
        let claim = world.take(1).pop().unwrap();
        assert_eq!(claim.alternative.as_deref(), Some("acme"));
        world.settle(&claim, retry());
        assert!(world.rechain(seq, chain));
        world.wait_ms(60_000);
        assert_eq!(world.take_picked(1), [next], "{chain:?}");
    }
}

fn unavailable() -> Verdict {
    Verdict::Unavailable(Fault::new(FaultClass::NotFound, "not configured here"))
}

/// DSP-18: what its executor is not configured for was not sent: the next alternative is used. The
/// last one is not struck out: the operation waits, and keeps its place and its attempts.
#[test]
fn dsp_18_what_an_executor_does_not_know_is_not_lost() {
    let mut world = ModelHarness::with_providers(1);
    let seq = world.accept(chained("a", &["acme", "globex"]));
    let later = world.accept(chained("b", &["globex"]));
    let claim = world.take(1).pop().unwrap();
    let settle = world.settle(&claim, unavailable());
    assert!(matches!(settle, SettleOutcome::Settled { ended: None, effect: SettleEffect::NextAlternative }));
    let claim = world.take(1).pop().unwrap();
    assert_eq!((claim.seq, claim.alternative.as_deref()), (seq, Some("globex")));
    world.settle(&claim, unavailable());
    let other = world.take(2);
    assert_eq!(other.iter().map(|claim| claim.seq).collect::<Vec<_>>(), [later], "it waits unclaimed");
    world.done(&other[0]);
    world.wait_ms(4_999);
    assert!(world.take(1).is_empty());
    world.wait_ms(1);
    let claim = world.take(1).pop().unwrap();
    assert_eq!((claim.seq, claim.alternative.as_deref()), (seq, Some("globex")));
    world.settle(&claim, unavailable());
    assert!(world.rechain(seq, &["initech"]));
    assert_eq!(world.take_picked(1), ["initech"], "what it waited for is over");
    let health = world.model.limit("acme/health", world.now).unwrap();
    assert_eq!(health.frozen_until, None, "no provider is blamed");
}

/// DSP-18: an alternative that a claim keeps is gone with it, so that it is not picked for ever.
#[test]
fn dsp_18_what_left_the_chain_is_picked_once_at_most() {
    let mut world = ModelHarness::with_providers(1);
    let seq = world.accept(chained("a", &["acme"]));
    let claim = world.take(1).pop().unwrap();
    let busy = world.accept(chained("b", &["globex"]));
    assert_eq!(world.take(1)[0].seq, busy);
    assert!(world.rechain(seq, &["globex"]));
    world.settle(&claim, Verdict::Returned);
    let claim = world.take(1).pop().unwrap();
    assert_eq!(claim.alternative.as_deref(), Some("acme"), "globex is busy");
    world.settle(&claim, unavailable());
    assert!(world.take(1).is_empty(), "it waits for globex");
    assert_eq!(world.model.active(seq).unwrap().state, crate::state::State::Waiting);
}

/// What waits for something that is gone is failed with a reason; what is claimed is left alone.
#[test]
fn what_waits_in_vain_fails() {
    let mut world = ModelHarness::with_providers(1);
    let [running, waiting] = ["a", "b"].map(|group| world.accept(chained(group, &["acme"])));
    let claim = world.take(2).pop().unwrap();
    let fault = Fault::new(FaultClass::NotFound, "it is gone");
    let mut fail = |seq| world.model.fail_waiting(world.now, seq, fault.clone(), &mut world.facts);
    assert_eq!(fail(running), None);
    let ended = fail(waiting).unwrap();
    assert_eq!((ended.state, ended.fault), (crate::state::EndState::Failed, Some(fault.clone())));
    assert_eq!(fail(waiting), None);
    world.done(&claim);
}

/// DSP-18: a claim keeps the alternative that it uses, with its slot, and follows the new chain if
/// that fails.
#[test]
fn dsp_18_a_claim_keeps_what_it_uses() {
    let mut world = ModelHarness::with_providers(1);
    let seq = world.accept(chained("a", &["acme"]));
    let claim = world.take(1).pop().unwrap();
    assert!(world.rechain(seq, &["globex"]) && !world.rechain(seq, &["globex"]));
    assert_eq!((world.in_flight("acme/slots"), world.in_flight("globex/slots")), (1, 0));
    assert_eq!(world.model.picked_alternative(seq).map(|name| &**name), Some("acme"));
    let settle = world.settle(&claim, retry());
    assert!(matches!(settle, SettleOutcome::Settled { effect: SettleEffect::NextAlternative, .. }));
    assert_eq!(world.in_flight("acme/slots"), 0);
    let claim = world.take(1).pop().unwrap();
    assert_eq!((claim.seq, claim.alternative.as_deref()), (seq, Some("globex")));
    world.settle(&claim, accepted(Some(5), 60));
    assert!(world.rechain(seq, &["initech"]), "a job that is awaited keeps its own, too");
    world.wait_ms(5_000);
    let poll = world.take(1).pop().unwrap();
    assert_eq!((poll.poll, poll.alternative.as_deref()), (true, Some("globex")));
    world.done(&poll);
}

/// What cannot be used changes nothing.
#[test]
fn alternatives_are_checked_when_they_are_replaced() {
    let mut world = ModelHarness::with_providers(1);
    let seq = world.accept(chained("a", &["acme"]));
    let plain = world.accept(draft("b"));
    let facts = world.facts.len();
    assert!(!world.rechain(seq, &["acme"]), "it has them");
    assert!(!world.rechain(plain, &["acme"]), "it never had any");
    assert!(!world.rechain(Seq(99), &["acme"]), "there is none");
    let mut refuse = |names: &[&str]| {
        let refused = world.model.replace_alternatives(world.now, seq, alternatives(names), &mut world.facts);
        refused.unwrap_err()
    };
    assert_eq!(refuse(&["hooli"]), DraftRefusal::UnknownLimit(named("hooli/health")));
    assert!(matches!(refuse(&[]), DraftRefusal::Invalid(_)));
    assert_eq!(world.facts.len(), facts);
    assert_eq!(world.take_picked(1), ["acme"]);
}
