//! The expected start of operations, compared with runs of the same queue.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

impl ModelHarness {
    /// Runs everything that is queued, with calls that take no time; returns when each started.
    fn run_dry(&mut self) -> BTreeMap<Seq, Time> {
        let mut started = BTreeMap::new();
        while self.model.active_count() > 0 {
            let claims = self.take(usize::MAX);
            if claims.is_empty() {
                self.now = self.model.next_change(true).expect("something is still to come").max(self.now);
                continue;
            }
            for claim in claims {
                started.insert(claim.seq, self.now);
                self.done(&claim);
            }
        }
        started
    }

    fn starts_at(&self, seq: Seq) -> Option<Time> {
        self.model.why(seq, self.now).unwrap().starts_at
    }

    /// Takes what can be taken at once, so that the rest waits for its limits.
    fn run_now(&mut self) {
        loop {
            let claims = self.take(usize::MAX);
            if claims.is_empty() {
                return;
            }
            claims.iter().for_each(|claim| self.done(claim));
        }
    }
}

fn window(limit: u64, period_ms: u64) -> LimitShape {
    LimitShape::Window { limit: limit * MICRO, period: Duration::from_millis(period_ms) }
}

/// OPS-24: with sixty operations of one group, at two per second, the last one reports its own time
/// and not its head's.
#[test]
fn ops_24_the_last_of_a_long_line_is_told_its_own_time() {
    let mut world = ModelHarness::new();
    world.limit("api", drip(2, 2));
    let seqs: Vec<Seq> = (0..60).map(|_| world.accept(charged("g", &[("api", 1)]))).collect();
    world.run_now();
    let why = world.model.why(seqs[59], world.now).unwrap();
    assert_eq!(why.behind, Some((seqs[2], 57)));
    assert_eq!(why.until, Some(world.now.after(Duration::from_millis(500))), "its head's time");
    assert_eq!(why.starts_at, Some(world.now.after(Duration::from_secs(29))));
    assert_eq!(world.starts_at(seqs[2]), why.until);
    world.wait_ms(500);
    let running = world.take(1).pop().unwrap();
    assert_eq!(world.starts_at(running.seq), None, "it has started");
    assert_eq!(world.starts_at(seqs[59]), why.starts_at, "also while its head is under way");
    world.model.pause(world.now, &named("g"), &named("anna"), &named(""), &mut world.facts);
    assert_eq!(world.starts_at(seqs[59]), None, "nobody knows when a person acts");
}

/// Nothing is estimated where nothing is known: no limit, or one that only a response can describe.
#[test]
fn what_is_not_known_is_not_estimated() {
    let mut world = ModelHarness::new();
    world.limit("slots", LimitShape::Cap { at_once: 1 });
    world.limit("route", window(0, 0));
    for (group, charges) in [("free", vec![]), ("capped", vec![("slots", 1)]), ("routed", vec![("route", 1)])]
    {
        world.accept(charged(group, &charges));
        let behind = world.accept(charged(group, &charges));
        assert_eq!(world.starts_at(behind), None, "{group}");
        world.take(1);
        assert_eq!(world.starts_at(behind), None, "{group}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// OPS-24: in an unchanged queue the estimate is right: within what one operation of each group
    /// costs, for any groups, lengths, costs and limits.
    #[test]
    fn ops_24_a_queue_runs_as_estimated(
        lines in prop::collection::vec(prop::collection::vec((1_u64..4, any::<bool>()), 1..30), 1..5),
        (capacity, rate) in (4_u64..20, 1_u64..20),
        (limit, period_ms) in (4_u64..12, 100_u64..3_000),
        windowed in any::<bool>(),
    ) {
        let mut world = ModelHarness::new();
        world.limit("api", if windowed { window(limit, period_ms) } else { drip(capacity, rate) });
        world.limit("daily", drip(10_000, 10_000));
        let mut seqs = Vec::new();
        let longest = lines.iter().map(Vec::len).max().unwrap_or(0);
        for place in 0..longest {
            for (group, line) in lines.iter().enumerate() {
                if let Some((cost, both)) = line.get(place) {
                    let charges = [("api", *cost), ("daily", 1)];
                    seqs.push(world.accept(charged(&format!("g{group}"), &charges[..1 + usize::from(*both)])));
                }
            }
        }
        world.run_now();
        let waiting: Vec<Seq> = seqs.into_iter().filter(|seq| world.model.active(*seq).is_some()).collect();
        let now = world.now;
        let expected: Vec<_> = waiting.iter().map(|seq| world.starts_at(*seq).unwrap_or(now)).collect();
        let started = world.run_dry();
        // Costs that do not fit the rest of a window leave a part of it unused.
        let unused = |windows: u64| Duration::from_millis((period_ms + 20) * (windows * 3 / limit + 1));
        for (seq, expected) in waiting.into_iter().zip(expected) {
            let actual = started[&seq];
            let apart = actual.max(expected).since(actual.min(expected));
            let slack = match windowed {
                true => unused(actual.since(now).as_millis() as u64 / period_ms + 1),
                false => Duration::from_micros(3 * lines.len() as u64 * 1_000_000 / rate + 10),
            };
            prop_assert!(apart <= slack, "{seq:?} started {:?} from what was expected", apart);
        }
    }

    /// A queue with delays in it starts no earlier than estimated, and no later than its limits
    /// explain.
    #[test]
    fn ops_24_delays_are_counted(
        delays in prop::collection::vec(prop::option::of(1_u64..60_000), 2..40),
        (capacity, rate) in (1_u64..5, 1_u64..5),
    ) {
        let mut world = ModelHarness::new();
        world.limit("api", drip(capacity, rate));
        let seqs: Vec<Seq> = delays.iter().map(|delay| {
            let not_before = delay.map(|ms| world.now.after(Duration::from_millis(ms)));
            world.accept(Draft { not_before, ..charged("g", &[("api", 1)]) })
        }).collect();
        let last = *seqs.last().unwrap();
        let expected = world.starts_at(last).unwrap_or(world.now);
        let actual = world.run_dry()[&last];
        prop_assert!(expected <= actual, "it started {:?} earlier", expected.since(actual));
        let most = Duration::from_secs((capacity + 1).div_ceil(rate) + 1);
        prop_assert!(actual.since(expected) <= most, "it started {:?} later", actual.since(expected));
    }
}
