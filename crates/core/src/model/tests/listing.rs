//! Lists: what an index returns is what a full scan would find.

use proptest::prelude::*;

use super::*;
use crate::model::{ActiveOperation, ActiveQuery};
use crate::operation::{OnFailure, OnUnknown};
use crate::state::State;

/// Everything that a query returns, page after page.
fn listed(model: &Model, wanted: ActiveQuery<'_>) -> Vec<ActiveOperation> {
    let (mut seen, mut before) = (Vec::new(), None);
    loop {
        let page = model.list(&ActiveQuery { before, ..wanted });
        assert!(page.operations.len() <= wanted.limit);
        assert!(page.next.is_none() || before.is_none_or(|before| page.next < Some(before)), "it moves on");
        seen.extend(page.operations);
        match page.next {
            Some(next) => before = Some(next),
            None => return seen,
        }
    }
}

fn all(state: State) -> ActiveQuery<'static> {
    ActiveQuery { state, group: None, kind: None, before: None, limit: 3, scan_max: 1_000 }
}

const GROUPS: [&str; 5] = ["a", "b", "c", "d", "e"];

fn step(world: &mut ModelHarness, what: u8, group: usize, claims: &mut Vec<Claim>) {
    let name = GROUPS[group];
    match what {
        0..=4 => {
            let kind = if what == 0 { "rare" } else { "test" };
            let draft = Draft::new(name, kind);
            world.accept(Draft { on_unknown: OnUnknown::Ask, on_failure: OnFailure::Hold, ..draft });
        }
        5 => claims.extend(world.take(2)),
        6 => drop(claims.pop().map(|claim| world.settle(&claim, Verdict::Unknown(transient())))),
        7 => drop(claims.pop().map(|claim| world.settle(&claim, Verdict::Done))),
        8 => drop(claims.pop().map(|claim| world.settle(&claim, Verdict::Rejected(transient())))),
        9 => {
            let (now, group) = (world.now, named(name));
            world.model.pause(now, &group, &named("anna"), &named(""), &mut world.facts);
        }
        _ => {
            // Refused where an operator must resolve first.
            let _ = world.model.resume(world.now, &named(name), &mut world.facts);
            let head = world.model.group(name).and_then(|group| group.head);
            if let Some(head) = head.filter(|head| head.state == State::Unknown) {
                let now = world.now;
                world
                    .model
                    .resolve(now, head.seq, crate::model::Resolution::Repeat, &mut world.facts)
                    .unwrap();
            }
        }
    }
    world.model.check().unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_list_shows_what_is_there_once_and_newest_first(
        steps in prop::collection::vec((0_u8..11, 0_usize..5), 0..120),
        limit in 1_usize..6,
        scan_max in 1_usize..40,
    ) {
        let (mut world, mut claims) = (ModelHarness::new(), Vec::new());
        for (what, group) in steps {
            step(&mut world, what, group, &mut claims);
        }
        for state in State::ALL {
            for group in [None, Some("a"), Some("nobody")] {
                for kind in [None, Some("rare"), Some("unheard of")] {
                    let expected: Vec<_> = world.model.actives(None).filter(|active| {
                        active.state == state
                            && group.is_none_or(|group| *active.group == *group)
                            && kind.is_none_or(|kind| *active.kind == *kind)
                    }).collect();
                    let wanted = ActiveQuery { state, group, kind, before: None, limit, scan_max };
                    prop_assert_eq!(&listed(&world.model, wanted), &expected, "{:?}", wanted);
                }
            }
        }
        let held: Vec<_> = world.model.groups(None)
            .filter(|group| group.held.is_some() && group.paused.is_none()).collect();
        prop_assert_eq!(world.model.held_groups(None).collect::<Vec<_>>(), held);
    }
}

/// OPS-23: operations that need an operator are found however many newer ones there are, and so are
/// running ones, the heads of groups, and the queue of one group.
#[test]
fn ops_23_what_needs_a_person_is_not_buried() {
    let mut world = ModelHarness::new();
    for group in ["p", "q"] {
        world.accept(Draft { on_unknown: OnUnknown::Ask, ..draft(group) });
    }
    for claim in world.take(9) {
        world.settle(&claim, Verdict::Unknown(transient()));
    }
    world.accept(draft("r"));
    world.take(9);
    world.accept(draft("r"));
    world.model.pause(world.now, &named("s"), &named("anna"), &named(""), &mut world.facts);
    world.accept(draft("s"));
    for _ in 0..500 {
        world.model.accept(world.now, draft("deep"), &mut world.facts);
    }
    let first = |wanted: ActiveQuery<'_>| {
        let page = world.model.list(&ActiveQuery { scan_max: 20, ..wanted });
        page.operations.iter().map(|active| active.seq.0).collect::<Vec<_>>()
    };
    assert_eq!(first(all(State::Unknown)), [2, 1]);
    assert_eq!(first(all(State::Running)), [3]);
    assert_eq!(first(all(State::Waiting)), [5]);
    assert_eq!(first(ActiveQuery { group: Some("r"), ..all(State::Queued) }), [4]);
    assert_eq!(first(ActiveQuery { group: Some("q"), ..all(State::Unknown) }), [2]);
}
