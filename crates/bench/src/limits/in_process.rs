//! Decisions in this process, without a server or a network: ours compared with `governor` and with
//! a naive bucket, all in turns in one run. Every bucket refills faster than it is drained, so that
//! every decision is a grant.

mod baselines;
mod candidates;

use std::sync::{Arc, Barrier};

use serde::Serialize;
use tidegate_core::Time;
use tidegate_store::{Clock, SharedState, SteadyClock, WallClock};

/// Turns of each; the median counts.
const TURNS: usize = 151;
/// Decisions per thread and turn: few, so that most turns end before another process wants the CPU.
const STEPS: u32 = 5_000;
/// The requested cost of a decision, and its actual cost.
const COST: u64 = 2;
const ACTUAL: u64 = 1;
/// The capacity of a bucket, and its refill per second: a second of it, since a thread may be held
/// up after it read a clock.
const CAPACITY: u64 = 1_000_000_000;
const REFILL: u64 = 1_000_000_000;

/// All contenders with one bucket or with two, by one thread or by two.
#[derive(Debug, Serialize)]
pub(super) struct Case {
    buckets: usize,
    threads: usize,
    figures: Vec<Figure>,
}

/// The figures of one contender.
#[derive(Debug, Serialize)]
struct Figure {
    what: &'static str,
    /// Time per decision, over all threads.
    median_ns: f64,
    lowest_ns: f64,
    highest_ns: f64,
    /// Compared with the first, which is `governor`.
    to_governor: f64,
}

/// A decision; false when it was no grant.
type Decision = Box<dyn Fn() -> bool + Sync>;

/// Measures all contenders. `store` is one that responds at once.
pub(super) fn measure(store: &Arc<dyn SharedState>) -> Result<Vec<Case>, String> {
    let mut cases = Vec::new();
    for buckets in [1, 2] {
        for threads in [1, 2] {
            eprintln!("{buckets} of the buckets in this process, {threads} threads");
            let mut contenders = vec![
                ("governor check_n", baselines::governor(buckets)?),
                ("naive bucket in a mutex", baselines::naive(buckets)),
            ];
            // Every decision of ours reads the clock once, and every settlement a second time.
            contenders.push(("our clock alone", Box::new(|| WallClock.now() > Time::ZERO)));
            contenders.extend(candidates::contenders(store, buckets)?);
            cases.push(Case { buckets, threads, figures: race(&contenders, threads)? });
        }
    }
    Ok(cases)
}

fn race(contenders: &[(&'static str, Decision)], threads: usize) -> Result<Vec<Figure>, String> {
    let mut turns: Vec<Vec<f64>> = vec![Vec::new(); contenders.len()];
    // The first turn does not count: caches, and the CPU's own frequency.
    for turn in 0..=TURNS {
        for ((what, step), taken) in contenders.iter().zip(&mut turns) {
            let nanos =
                one_turn(step, threads).ok_or_else(|| format!("{what}: a decision was not a grant"))?;
            if turn > 0 {
                taken.push(nanos);
            }
        }
    }
    for taken in &mut turns {
        taken.sort_by(f64::total_cmp);
    }
    let middle = |taken: &[f64]| taken.get(TURNS / 2).copied().unwrap_or(f64::NAN);
    let governor = turns.first().map_or(f64::NAN, |taken| middle(taken));
    let tenths = |nanos: f64| (nanos * 10.0).round() / 10.0;
    let figure = |((what, _), taken): (&(&'static str, Decision), &Vec<f64>)| Figure {
        what,
        median_ns: tenths(middle(taken)),
        lowest_ns: tenths(taken.first().copied().unwrap_or(f64::NAN)),
        highest_ns: tenths(taken.last().copied().unwrap_or(f64::NAN)),
        to_governor: (middle(taken) / governor * 100.0).round() / 100.0,
    };
    Ok(contenders.iter().zip(&turns).map(figure).collect())
}

/// Returns the nanoseconds per decision, from the first thread's start to the last one's end.
fn one_turn(step: &Decision, threads: usize) -> Option<f64> {
    let (clock, barrier) = (SteadyClock::new(), Barrier::new(threads));
    let steps = || {
        barrier.wait();
        let start = clock.now();
        let granted = (0..STEPS).all(|_| step());
        (start, clock.now(), granted)
    };
    let ended: Vec<_> = std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(steps)).collect();
        running.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    let start = ended.iter().map(|(start, ..)| *start).min()?;
    let end = ended.iter().map(|(_, end, _)| *end).max()?;
    let all = ended.len() == threads && ended.iter().all(|(.., granted)| *granted);
    let decisions = f64::from(STEPS) * threads as f64;
    all.then(|| end.since(start).as_nanos() as f64 / decisions)
}
