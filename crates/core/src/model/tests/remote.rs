//! Kinds that are left to remote workers: who gets what, in which order, and what it costs when no
//! one asks.

use super::*;
use crate::model::{Cause, WorkerSlots};

fn world() -> ModelHarness {
    let mut world = ModelHarness::new();
    world.model = Model::with_remote_kinds(["resize", "scan"].map(Arc::from));
    world
}

fn of_kind(group: &str, kind: &str) -> Draft {
    Draft::new(group, kind)
}

/// What a take claims and sends, with the slot of each.
fn claim_for(world: &mut ModelHarness, slots: &[(Option<&[&str]>, usize)]) -> Vec<(Claim, usize)> {
    let kinds = |names: &[&str]| names.iter().map(|kind| named(kind)).collect::<Vec<_>>();
    let kinds: Vec<_> = slots.iter().map(|(names, _)| names.map(kinds)).collect();
    let asked: Vec<WorkerSlots<'_>> = kinds
        .iter()
        .zip(slots)
        .map(|(kinds, (_, free))| WorkerSlots { kinds: kinds.as_deref(), free: *free, lease: LEASE })
        .collect();
    let take = world.model.take_for(world.now, &asked, 0, &mut world.facts);
    for claim in &take.claims {
        world.model.mark_sent(world.now, claim.seq, claim.fence, &mut world.facts);
    }
    world.model.check().unwrap();
    take.claims.into_iter().zip(take.slots).collect()
}

/// The groups that a take claims, with the slot of each.
fn take_for(world: &mut ModelHarness, slots: &[(Option<&[&str]>, usize)]) -> Vec<(String, usize)> {
    claim_for(world, slots).into_iter().map(|(claim, slot)| (claim.group.to_string(), slot)).collect()
}

/// The number of operations that a take claims, each of which is done at once.
fn work(world: &mut ModelHarness, slots: &[(Option<&[&str]>, usize)]) -> usize {
    let claims = claim_for(world, slots);
    for (claim, _) in &claims {
        let (seq, fence) = (claim.seq, claim.fence);
        world.model.settle(world.now, ClaimReport::new(seq, fence, Verdict::Done), 0, &mut world.facts);
    }
    claims.len()
}

/// OPS-5: own workers never take a remote kind, remote ones only the kinds they ask for, and within
/// these the turns decide, whoever asks.
#[test]
fn ops_5_workers_get_the_kinds_they_execute_in_turn() {
    let mut world = world();
    for (group, kind) in
        [("a", "resize"), ("b", "http"), ("c", "scan"), ("d", "resize"), ("e", "http"), ("f", "scan")]
    {
        world.accept(of_kind(group, kind));
    }
    let claimable: Vec<_> = world.model.claimable_kinds().map(ToString::to_string).collect();
    assert_eq!(claimable, ["resize", "scan"]);
    assert_eq!(take_for(&mut world, &[(None, 1)]), [("b".into(), 0)]);
    assert_eq!(take_for(&mut world, &[(Some(&["other"]), 9)]), []);
    let taken = take_for(&mut world, &[(Some(&["scan"]), 1), (Some(&["scan", "resize"]), 2), (None, 9)]);
    assert_eq!(taken, [("a".into(), 1), ("c".into(), 0), ("d".into(), 1), ("e".into(), 2)]);
    let claimable: Vec<_> = world.model.claimable_kinds().map(ToString::to_string).collect();
    assert_eq!(claimable, ["scan"]);
    assert_eq!(
        world.model.why(Seq(6), world.now).unwrap().cause,
        Cause::RemoteWorker { kind: "scan".into() }
    );
}

/// What waits for a worker, what runs and what awaits its completion is counted by kind; a remote
/// kind without work is there too.
#[test]
fn the_work_of_each_kind_is_counted() {
    let mut world = world();
    for (group, kind) in [("a", "resize"), ("b", "resize"), ("b", "http"), ("c", "resize"), ("d", "http")] {
        world.accept(of_kind(group, kind));
    }
    let claims = claim_for(&mut world, &[(Some(&["resize"]), 2)]);
    let accepted = Verdict::Accepted { poll_after: None, timeout: Duration::from_secs(60) };
    let report = ClaimReport::new(claims[0].0.seq, claims[0].0.fence, accepted);
    world.model.settle(world.now, report, 0, &mut world.facts);
    let loads = world.model.kind_loads().into_iter();
    let counted: Vec<_> = loads
        .map(|load| (load.kind.to_string(), load.is_remote, [load.ready, load.running, load.awaiting]))
        .collect();
    let expected = [("resize", true, [1, 1, 1]), ("http", false, [1, 0, 0]), ("scan", true, [0, 0, 0])];
    assert_eq!(counted, expected.map(|(kind, remote, counts)| (kind.to_owned(), remote, counts)));
}

/// OPS-4: a group has one queue, whoever executes its operations.
#[test]
fn ops_4_order_holds_across_kinds() {
    let mut world = world();
    world.accept(of_kind("g", "http"));
    world.accept(of_kind("g", "resize"));
    world.accept(of_kind("g", "http"));
    assert_eq!(take_for(&mut world, &[(Some(&["resize"]), 9)]), []);
    let first = world.take(9).pop().unwrap();
    assert_eq!(take_for(&mut world, &[(None, 9), (Some(&["resize"]), 9)]), []);
    world.done(&first);
    assert!(world.take(9).is_empty(), "it is the remote worker's turn");
    assert_eq!(take_for(&mut world, &[(Some(&["resize"]), 9)]), [("g".into(), 0)]);
    assert!(world.take(9).is_empty());
}

/// OPS-27: operations that no worker asks for stand in no one's way and cost nothing: a take moves
/// only what it claims. At a limit that they share with others, they do not hold up those.
#[test]
fn ops_27_what_no_worker_asks_for_costs_nothing() {
    let mut world = world();
    world.limit("api", drip(10, 10));
    for n in 0..2_000 {
        let kind = if n % 2 == 0 { "resize" } else { "http" };
        let draft = Draft { kind: kind.into(), ..charged(&format!("g{n}"), &[("api", 1)]) };
        assert!(matches!(world.model.accept(world.now, draft, &mut world.facts), AcceptOutcome::New(_)));
    }
    assert_eq!(work(&mut world, &[(None, 99)]), 10);
    for _ in 0..3 {
        world.wait_ms(500);
        let before = world.model.limit("api", world.now).unwrap().waiting;
        assert_eq!(work(&mut world, &[(None, 99)]), 5, "in spite of a thousand earlier turns");
        let after = world.model.limit("api", world.now).unwrap().waiting;
        assert_eq!(before - after, 5);
    }
    world.wait_ms(400);
    // Both ask: the earliest turns go first, and those are the ones that had to wait.
    let taken = take_for(&mut world, &[(None, 99), (Some(&["resize"]), 99)]);
    assert_eq!(taken.iter().map(|(_, slot)| *slot).collect::<Vec<_>>(), [1; 4]);
}

/// OPS-8: the lease of a remote worker runs out: its outcome is unknown, and the operation's rule
/// decides. A late report of the dead worker changes nothing.
#[test]
fn ops_8_a_dead_remote_worker_gives_its_claim_back() {
    use crate::operation::OnUnknown;
    for (on_unknown, state) in
        [(OnUnknown::Repeat, crate::State::Running), (OnUnknown::Ask, crate::State::Unknown)]
    {
        let mut world = world();
        world.limit("slots", LimitShape::Cap { at_once: 1 });
        let seq = world.accept(Draft { kind: "resize".into(), on_unknown, ..charged("g", &[("slots", 1)]) });
        let kinds = [named("resize")];
        let asked = [WorkerSlots { kinds: Some(&kinds), free: 1, lease: LEASE }];
        let first = world.model.take_for(world.now, &asked, 0, &mut world.facts).claims.pop().unwrap();
        world.wait_ms(30_000);
        world.take(1);
        assert_eq!(world.model.limit("slots", world.now).unwrap().in_flight, 0, "no slot is leaked");
        world.wait_ms(20_000);
        let again = world.model.take_for(world.now, &asked, 0, &mut world.facts).claims;
        assert_eq!(world.model.active(seq).unwrap().state, state);
        assert_eq!(world.settle(&first, Verdict::Done), SettleOutcome::Stale);
        if let Some(again) = again.first() {
            assert_eq!(again.attempt, 2);
            world.done(again);
        }
    }
}

/// OPS-8: an operation that woke while no worker had a slot for it sleeps again when the clock goes
/// back, as it does in a model that was replayed.
#[test]
fn ops_8_a_clock_that_goes_back_finds_operations_asleep_again() {
    let mut world = world();
    let (before, then) = (world.now, world.now.after(Duration::from_secs(10)));
    world.accept(Draft { not_before: Some(then), ..of_kind("a", "resize") });
    world.now = then;
    assert_eq!(take_for(&mut world, &[(None, 9)]), []);
    world.now = before;
    assert_eq!(take_for(&mut world, &[(Some(&["resize"]), 9)]), []);
    world.now = then;
    assert_eq!(take_for(&mut world, &[(Some(&["resize"]), 9)]), [("a".into(), 0)]);
}

/// OPS-23, DSP-18: a worker dies while it polls, and the completion is overdue when its lease
/// expires: the attempt is reported as overdue, so that no one awaits it forever.
#[test]
fn ops_23_dsp_18_a_lost_poll_of_an_overdue_job_ends_its_attempt() {
    let mut world = ModelHarness::new();
    world.accept(draft("g"));
    let claim = world.take(1).pop().unwrap();
    world.settle(&claim, accepted(Some(5), 8));
    world.wait_ms(5_000);
    assert!(world.take(9)[0].poll);
    world.wait_ms(30_000);
    let take = world.take_outcome(9);
    let overdue: Vec<_> = take.overdue.iter().map(|one| (one.seq, one.fence, one.attempt)).collect();
    assert_eq!((overdue, take.lost), (vec![(claim.seq, claim.fence, 1)], vec![]));
    assert_eq!(world.model.active(claim.seq).unwrap().state, crate::state::State::Unknown);
}
