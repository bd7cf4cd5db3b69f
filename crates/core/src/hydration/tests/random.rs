//! Random walks: whatever happens in whatever order, every caller gets exactly one outcome,
//! questions stay within their budget, and nothing is left behind.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::super::*;
use super::world::*;
use HydrationMode::{Existence, Full};

const IDS: [&str; 3] = ["a", "b", "c"];

#[derive(Clone, Copy, Debug)]
enum Step {
    Ask(usize, bool),
    Defer(usize),
    Updated(usize, bool),
    NotFound(usize),
    Published(PublishOutcome),
    Cancel(usize),
    Invalidate(usize),
    Gap,
    Advance(u64),
}

fn any_step() -> impl Strategy<Value = Step> {
    let id = 0..IDS.len();
    prop_oneof![
        4 => (id.clone(), any::<bool>()).prop_map(|(id, full)| Step::Ask(id, full)),
        1 => id.clone().prop_map(Step::Defer),
        2 => (id.clone(), any::<bool>()).prop_map(|(id, full)| Step::Updated(id, full)),
        1 => id.clone().prop_map(Step::NotFound),
        1 => prop_oneof![
            Just(PublishOutcome::Sent),
            Just(PublishOutcome::NoSubscriber),
            Just(PublishOutcome::Failed)
        ]
        .prop_map(Step::Published),
        2 => (0_usize..8).prop_map(Step::Cancel),
        1 => id.prop_map(Step::Invalidate),
        1 => Just(Step::Gap),
        4 => prop_oneof![Just(1), Just(100), Just(250), Just(700), Just(5_000)].prop_map(Step::Advance),
    ]
}

struct Walk {
    world: World,
    next: u32,
    /// Callers that are registered.
    waiting: BTreeMap<u32, Option<Ticket>>,
    ended: BTreeSet<u32>,
}

impl Walk {
    fn end(&mut self, callers: &[u32]) {
        for caller in callers {
            assert!(self.waiting.remove(caller).is_some(), "{caller} did not wait");
            assert!(self.ended.insert(*caller), "{caller} was woken twice");
        }
    }

    fn ask(&mut self, waiter: &Waiter<u32>, id: usize) {
        let caller = waiter.handle;
        self.next += 1;
        match self.world.ask_as(&key(IDS[id]), waiter.clone()) {
            (Reply::Joined | Reply::Opened | Reply::Upgraded, ticket) => {
                self.waiting.insert(caller, ticket);
            }
            _ => assert!(self.ended.insert(caller)),
        }
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Ask(id, full) => {
                let mode = if full { Full } else { Existence };
                let waiter = self.world.waiter(self.next, &mode, WaiterKind::Blocking);
                self.ask(&waiter, id);
            }
            Step::Defer(id) => {
                let waiter = self.world.waiter(self.next, &Full, WaiterKind::Deferred);
                self.ask(&waiter, id);
            }
            Step::Updated(id, full) => {
                let woken = self.world.updated(IDS[id], if full { &Full } else { &Existence });
                self.end(&woken);
            }
            Step::NotFound(id) => {
                let woken = self.world.not_found(IDS[id]);
                self.end(&woken);
            }
            Step::Published(outcome) => {
                if let Some(question) = self.world.published.last().cloned() {
                    let woken = handles(&self.world.table.published(&question, outcome));
                    self.end(&woken);
                }
            }
            Step::Cancel(nth) => {
                let ticket = self.waiting.values().nth(nth).cloned().flatten();
                if let Some(gone) = ticket.and_then(|ticket| self.world.table.cancel(&ticket)) {
                    self.end(&[gone.handle]);
                }
            }
            Step::Invalidate(id) => self.world.table.invalidate(&key(IDS[id]), self.world.now),
            Step::Gap => self.world.table.gap(self.world.now),
            Step::Advance(millis) => {
                let expired = self.world.advance(millis);
                self.end(&expired);
            }
        }
    }

    fn check(&self) {
        let (blocking, deferred) = self.world.table.waiters();
        assert_eq!(blocking + deferred, self.waiting.len(), "counted and registered");
        let views = self.world.table.views(None, 10, self.world.now);
        assert_eq!(views.iter().map(|view| view.waiting + view.deferred).sum::<usize>(), self.waiting.len());
        assert_eq!(self.world.table.flights(), self.world.table.timers.len(), "one timer for each flight");
        for view in views {
            let covered = view.waiters.iter().all(|waiter| view.mode.covers(&waiter.mode));
            let is_deferred = view.waiters.iter().any(|waiter| waiter.kind == WaiterKind::Deferred);
            assert!(
                covered || is_deferred && view.failure.is_some(),
                "what is waited for is asked: {view:?}"
            );
        }
    }
}

proptest! {
    /// HYD-6, HYD-25, HYD-26: each caller ends once, the books agree, questions stay within their
    /// budget, and when all have given up nothing is left.
    #[test]
    fn hyd_6_every_caller_ends_once(steps in prop::collection::vec(any_step(), 1..80)) {
        let mut walk = Walk { world: World::new(), next: 0, waiting: BTreeMap::new(), ended: BTreeSet::new() };
        let start = walk.world.now;
        let causes = steps.iter().filter(|step| matches!(step,
            Step::Ask(..) | Step::Defer(_) | Step::Gap | Step::Invalidate(_) | Step::Updated(..) | Step::NotFound(_))).count();
        for step in steps {
            walk.take(step);
            walk.check();
        }
        let windows = walk.world.now.since(start).as_millis() / 5_000 + 1;
        let most = 2 * windows as usize * IDS.len() + (2 + IDS.len()) * causes;
        prop_assert!(walk.world.published.len() <= most, "{} questions, {most} expected", walk.world.published.len());
        let ids: BTreeSet<_> = walk.world.published.iter().map(|question| &question.correlation_id).collect();
        prop_assert_eq!(ids.len(), walk.world.published.len(), "no two questions have one id");
        let expired = walk.world.advance(70_000);
        walk.end(&expired);
        let late: Vec<_> = walk.waiting.values().flatten().cloned().collect();
        for ticket in late {
            walk.world.table.cancel(&ticket);
        }
        walk.world.advance(5_000);
        prop_assert_eq!((walk.world.table.flights(), walk.world.table.waiters()), (0, (0, 0)));
        prop_assert_eq!(walk.world.table.next_timer(), None);
    }
}
