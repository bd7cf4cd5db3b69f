//! The rules of a breaker, one each, and those that hold in every sequence.

use proptest::prelude::*;

use super::*;

const START: Time = Time::from_millis(1_000_000);

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn breaker() -> Breaker {
    Breaker::new(CooldownLadder::default())
}

/// Lets one call through and reports on it at once.
fn call(breaker: &mut Breaker, report: BreakerReport, now: Time) {
    assert_eq!(breaker.ready(now), Readiness::Now);
    let mark = breaker.take();
    breaker.report(mark, report, now);
    breaker.release(mark);
}

/// DSP-6: 10, 30, 60, then 120 s; a success clears the count.
#[test]
fn dsp_6_failures_in_a_row_climb_the_ladder_and_a_success_clears_them() {
    let (mut breaker, mut now) = (breaker(), START);
    for cooldown in [10, 30, 60, 120, 120] {
        call(&mut breaker, BreakerReport::Failed, now);
        let until = now.after(seconds(cooldown));
        assert_eq!(breaker.ready(now), Readiness::At(until));
        assert_eq!(breaker.ready(until.before(Duration::from_micros(1))), Readiness::At(until));
        now = until;
    }
    call(&mut breaker, BreakerReport::Succeeded, now);
    call(&mut breaker, BreakerReport::Failed, now);
    assert_eq!(breaker.ready(now), Readiness::At(now.after(seconds(10))));
}

/// DSP-6: the count is forgotten 600 s after the last failure, and not before.
#[test]
fn dsp_6_failures_are_forgotten_after_ten_minutes() {
    for (pause, cooldown) in [(599, 30), (600, 10)] {
        let mut breaker = breaker();
        call(&mut breaker, BreakerReport::Failed, START);
        let now = START.after(seconds(pause));
        call(&mut breaker, BreakerReport::Failed, now);
        assert_eq!(breaker.ready(now), Readiness::At(now.after(seconds(cooldown))), "after {pause} s");
    }
}

/// DSP-6, DSP-21: after a cooldown one probe goes first, then two calls, then four.
#[test]
fn dsp_6_dsp_21_after_a_probe_the_load_comes_back_in_steps() {
    let mut breaker = breaker();
    call(&mut breaker, BreakerReport::Failed, START);
    let now = START.after(seconds(10));
    for step in [1, 2, 4, 8] {
        let admitted = std::iter::from_fn(|| (breaker.ready(now) == Readiness::Now).then(|| breaker.take()));
        let marks: Vec<u64> = admitted.take(100).collect();
        assert_eq!(marks.len(), step);
        // One of them shows that the provider is well; the others say nothing.
        breaker.report(marks[0], BreakerReport::Accepted, now);
        marks.iter().for_each(|mark| breaker.release(*mark));
    }
    for _ in 0..10 {
        call(&mut breaker, BreakerReport::Succeeded, now);
    }
    assert!(breaker.is_at_rest(now), "{breaker:?}");
}

/// A probe that says nothing about the provider makes room for the next probe.
#[test]
fn a_probe_without_a_report_is_followed_by_another_probe() {
    let mut breaker = breaker();
    call(&mut breaker, BreakerReport::Failed, START);
    let now = START.after(seconds(10));
    let probe = breaker.take();
    assert_eq!(breaker.ready(now), Readiness::AfterAnswer);
    breaker.release(probe);
    assert_eq!(breaker.ready(now), Readiness::Now);
}

/// DSP-21: twenty failures of one outage count once; calls that hang on from it neither take the
/// place of the probe nor undo what it found.
#[test]
fn dsp_21_an_outage_counts_once() {
    let (mut breaker, mut now) = (breaker(), START);
    let marks: Vec<u64> = (0..20).map(|_| breaker.take()).collect();
    for mark in &marks[..10] {
        now = now.after(Duration::from_millis(100));
        breaker.report(*mark, BreakerReport::Failed, now);
        breaker.release(*mark);
    }
    assert_eq!((breaker.failures, breaker.open_until), (1, START.after(Duration::from_millis(10_100))));
    now = breaker.open_until;
    let probe = breaker.take();
    breaker.report(marks[10], BreakerReport::Failed, now);
    breaker.report(marks[11], BreakerReport::Succeeded, now);
    marks[10..].iter().for_each(|mark| breaker.release(*mark));
    assert_eq!((breaker.failures, breaker.at_once, breaker.in_flight), (1, 1, 1));
    breaker.report(probe, BreakerReport::Failed, now);
    assert_eq!((breaker.failures, breaker.open_until), (2, now.after(seconds(30))));
}

/// DSP-7: a hint cools for as long as it says, does not count as a failure, and shortens nothing.
#[test]
fn dsp_7_a_hint_cools_for_as_long_as_it_says() {
    let mut breaker = breaker();
    let marks = [breaker.take(), breaker.take(), breaker.take()];
    let long = START.after(seconds(300));
    breaker.report(marks[0], BreakerReport::Throttled { until: long }, START);
    assert_eq!((breaker.ready(START), breaker.failures), (Readiness::At(long), 0));
    breaker.report(marks[1], BreakerReport::Throttled { until: START.after(seconds(5)) }, START);
    assert_eq!(breaker.ready(START), Readiness::At(long));
    let longer = START.after(seconds(400));
    breaker.report(marks[2], BreakerReport::Throttled { until: longer }, START);
    assert_eq!(breaker.ready(START), Readiness::At(longer));
}

/// DSP-25: the time that operations take is followed, and an outlier is not believed at once.
#[test]
fn dsp_25_latency_is_followed() {
    let mut breaker = breaker();
    breaker.observe_latency(seconds(8));
    assert_eq!(breaker.latency, seconds(8), "the first one is believed");
    breaker.observe_latency(seconds(80));
    assert_eq!(breaker.latency, seconds(17));
    for _ in 0..100 {
        breaker.observe_latency(seconds(2));
    }
    assert!(breaker.latency.abs_diff(seconds(2)) < Duration::from_millis(10), "{:?}", breaker.latency);
    breaker.observe_latency(Duration::ZERO);
    assert!(breaker.latency > Duration::ZERO, "zero means that it is not known");
}

/// An operator ends a cooldown: one call goes first, and its failure counts after those before it.
#[test]
fn an_operator_ends_a_cooldown() {
    let mut breaker = breaker();
    call(&mut breaker, BreakerReport::Failed, START);
    breaker.end_cooldown(START);
    assert_eq!(breaker.ready(START), Readiness::Now);
    let mark = breaker.take();
    assert_eq!(breaker.ready(START), Readiness::AfterAnswer, "one goes first");
    breaker.report(mark, BreakerReport::Failed, START);
    assert_eq!(breaker.ready(START), Readiness::At(START.after(seconds(30))), "the second in a row");
    breaker.end_cooldown(START.after(seconds(40)));
    assert_eq!(breaker.open_until, START.after(seconds(30)), "one that is over stays as it was");
}

#[derive(Clone, Debug)]
enum Step {
    Take,
    Report(prop::sample::Index, BreakerReport),
    Release(prop::sample::Index),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let report = prop_oneof![
        Just(BreakerReport::Accepted),
        Just(BreakerReport::Succeeded),
        Just(BreakerReport::Failed),
        (0_u64..200).prop_map(|s| BreakerReport::Throttled { until: START.after(seconds(s)) }),
    ];
    prop_oneof![
        3 => Just(Step::Take),
        3 => (any::<prop::sample::Index>(), report).prop_map(|(at, report)| Step::Report(at, report)),
        2 => any::<prop::sample::Index>().prop_map(Step::Release),
        2 => (0_u64..90_000).prop_map(Step::Wait),
    ]
}

proptest! {
    /// DSP-21: whatever happens, a cooldown is never shortened, at most as many calls as allowed
    /// are in flight since the last opening, none is admitted during a cooldown, and one report
    /// climbs the ladder by at most one step.
    #[test]
    fn dsp_21_the_rules_hold_in_every_sequence(steps in proptest::collection::vec(step(), 1..200)) {
        let (mut breaker, mut now, mut flights) = (breaker(), START, Vec::<u64>::new());
        for step in steps {
            let before = breaker.clone();
            match step {
                Step::Take => {
                    if breaker.ready(now) == Readiness::Now {
                        prop_assert!(breaker.open_until <= now);
                        flights.push(breaker.take());
                    }
                }
                Step::Report(at, report) if !flights.is_empty() => {
                    let mark = flights.swap_remove(at.index(flights.len()));
                    breaker.report(mark, report, now);
                    breaker.release(mark);
                    if report == BreakerReport::Failed && !before.is_current(mark) {
                        prop_assert_eq!(&breaker, &before);
                    }
                }
                Step::Release(at) if !flights.is_empty() => {
                    breaker.release(flights.swap_remove(at.index(flights.len())));
                }
                Step::Wait(ms) => now = now.after(Duration::from_millis(ms)),
                Step::Report(..) | Step::Release(_) => {}
            }
            prop_assert!(breaker.open_until >= before.open_until);
            prop_assert!(breaker.failures <= before.failures + 1);
            prop_assert!(breaker.at_once == 0 || breaker.in_flight <= breaker.at_once);
            let current = flights.iter().filter(|mark| breaker.is_current(**mark)).count();
            prop_assert_eq!(breaker.in_flight as usize, current);
        }
    }
}
