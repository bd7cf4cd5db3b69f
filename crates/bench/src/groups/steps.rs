//! Take and settle on the model alone, with few groups and with many: no store, no tasks, a manual
//! clock. Both models take turns, because the machine's speed drifts.

use std::sync::Arc;
use std::time::Duration;

use tidegate_core::fact::{Fact, LimitShape};
use tidegate_core::model::{AcceptOutcome, ClaimReport, SettleOutcome};
use tidegate_core::operation::MICRO;
use tidegate_core::{Charge, Draft, Model, Time, Verdict};
use tokio::time::Instant;

use super::{Args, Case};

/// Turns of each model.
const SLICES: u64 = 20;
/// Operations taken before the same number is accepted again, outside the measured time.
const CHUNK_MAX: u64 = 64;
/// Longer than any run in the model's time: the stuck claim never expires.
const LEASE: Duration = Duration::from_secs(24 * 3_600);
/// How far the model's clock advances with each step.
const STEP: Duration = Duration::from_micros(10);
const CHANCE: u32 = u32::MAX / 2;

/// Measures both cases.
pub(super) fn measure(args: &Args) -> Result<(Case, Case), String> {
    let mut worlds = Vec::new();
    for groups in [args.few, args.many] {
        eprintln!("filling a model with {groups} groups of {} operations", args.depth);
        let mut world = TestPartition::filled(groups, args)?;
        let chunk = CHUNK_MAX.min(groups * args.depth);
        // A first turn that does not count.
        world.run(args.steps.div_ceil(SLICES), chunk)?;
        worlds.push((groups, chunk, world, Duration::ZERO, 0));
    }
    eprintln!("taking and settling {} operations in each", args.steps);
    for _ in 0..SLICES {
        for (_, chunk, world, took, steps) in &mut worlds {
            let (time, count) = world.run(args.steps.div_ceil(SLICES), *chunk)?;
            *took += time;
            *steps += count;
        }
    }
    let mut cases = worlds.into_iter().map(|(groups, _, _, took, steps)| Case {
        groups,
        steps,
        ns_per_take_and_settle: (took.as_nanos() as f64 / steps as f64).round(),
    });
    cases.next().zip(cases.next()).ok_or_else(|| "there are two cases".into())
}

/// A partition with its clock.
struct TestPartition {
    model: Model,
    facts: Vec<Fact>,
    now: Time,
    kind: Arc<str>,
}

impl TestPartition {
    /// Creates groups that can run, one that is stuck, and those that wait for an empty bucket.
    fn filled(groups: u64, args: &Args) -> Result<Self, String> {
        let (facts, now) = (Vec::new(), Time::from_millis(1_000_000));
        let mut world = Self { model: Model::new(), facts, now, kind: "bench".into() };
        let scarce: Arc<str> = "scarce".into();
        let shape = LimitShape::Drip { capacity: MICRO, refill_per_s: MICRO, margin: 0 };
        let set = world.model.configure(world.now, &scarce, shape, &mut world.facts);
        set.map_err(|refusal| format!("the limit was not set: {refusal:?}"))?;
        // One more than wait: it takes the only token.
        for number in 0..=args.waiting {
            let charges = vec![Charge::tokens(Arc::clone(&scarce), 1)];
            world.accept(Draft { charges, ..world.draft(&format!("waits-{number}")) })?;
        }
        world.step()?;
        world.accept(world.draft("stuck"))?;
        world.take()?;
        let names: Vec<Arc<str>> = (0..groups).map(|number| format!("group-{number}").into()).collect();
        for _ in 0..args.depth {
            for name in &names {
                let draft = Draft::new(Arc::clone(name), Arc::clone(&world.kind));
                world.accept(draft)?;
            }
        }
        Ok(world)
    }

    /// Takes and settles at least `steps` operations; returns the time that this alone took, and
    /// their number.
    fn run(&mut self, steps: u64, chunk: u64) -> Result<(Duration, u64), String> {
        let (mut took, mut done) = (Duration::ZERO, 0);
        let mut groups = Vec::new();
        while done < steps {
            let started = Instant::now();
            for _ in 0..chunk {
                groups.push(self.step()?);
                self.now = self.now.after(STEP);
                self.facts.clear();
            }
            took += started.elapsed();
            done += chunk;
            for group in groups.drain(..) {
                // A group that waited for the bucket and was served in passing is not replaced.
                if group.starts_with("group") {
                    self.accept(Draft::new(group, Arc::clone(&self.kind)))?;
                }
            }
            self.facts.clear();
        }
        Ok((took, done))
    }

    fn draft(&self, group: &str) -> Draft {
        Draft::new(group, Arc::clone(&self.kind))
    }

    fn accept(&mut self, draft: Draft) -> Result<(), String> {
        match self.model.accept(self.now, draft, &mut self.facts) {
            AcceptOutcome::New(_) => Ok(()),
            other => Err(format!("the model did not accept an operation: {other:?}")),
        }
    }

    fn take(&mut self) -> Result<tidegate_core::model::Claim, String> {
        let mut take = self.model.take(self.now, 1, LEASE, CHANCE, &mut self.facts);
        take.claims.pop().ok_or_else(|| "the model had nothing to take".into())
    }

    fn step(&mut self) -> Result<Arc<str>, String> {
        let claim = self.take()?;
        let (seq, fence) = (claim.seq, claim.fence);
        match self.model.settle(
            self.now,
            ClaimReport::new(seq, fence, Verdict::Done),
            CHANCE,
            &mut self.facts,
        ) {
            SettleOutcome::Settled { .. } => Ok(claim.group),
            SettleOutcome::Stale => Err("the model refused a settlement".into()),
        }
    }
}
