//! Buckets of every kind: what is granted, what is sent, and what responses teach.

use super::*;
use crate::operation::MICRO;

fn drip(capacity: u64, rate: u64, now: Time) -> Bucket {
    let shape = LimitShape::Drip { capacity: capacity * MICRO, refill_per_s: rate * MICRO, margin: 0 };
    Bucket::new(shape, now).unwrap()
}

/// Grants a call and sends it at once.
fn sent(bucket: &mut Bucket, cost: u64, now: Time) -> u64 {
    let mark = bucket.take(cost);
    bucket.mark_sent(mark, now);
    mark
}

/// LIM-12 / LIM-20: after a freeze the throttled call runs again on time, and no burst follows it.
#[test]
fn lim_12_a_freeze_ends_on_time_and_without_a_burst() {
    let now = Time::from_millis(10_000);
    let mut bucket = drip(40, 2, now);
    sent(&mut bucket, MICRO, now);
    let until = now.after(Duration::from_secs(2));
    bucket.freeze(until, MICRO, now);
    assert_eq!(bucket.ready(MICRO, now), Readiness::At(until));
    assert_eq!(bucket.ready(MICRO, until), Readiness::Now);
    sent(&mut bucket, MICRO, until);
    assert_eq!(bucket.ready(MICRO, until), Readiness::At(until.after(Duration::from_millis(500))));
    bucket.freeze(until.after(Duration::from_secs(9)), MICRO, until);
    bucket.freeze(until.after(Duration::from_secs(3)), MICRO, until);
    assert_eq!(bucket.frozen_until, until.after(Duration::from_secs(9)));
    bucket.thaw(until);
    assert_eq!(bucket.ready(MICRO, until), Readiness::At(until.after(Duration::from_millis(500))));
}

/// LIM-23: the lower of the upstream's figure and ours counts, minus what was sent later.
#[test]
fn lim_23_answers_out_of_order_never_raise_a_balance() {
    let now = Time::from_millis(10_000);
    let mut bucket = drip(10, 1, now);
    let first = sent(&mut bucket, MICRO, now);
    let second = sent(&mut bucket, MICRO, now);
    let left = |remaining| Hint { remaining: Some(remaining * MICRO), ..Hint::default() };
    bucket.observe(&left(5), second, now);
    assert_eq!(bucket.ready(5 * MICRO, now), Readiness::Now);
    bucket.observe(&left(9), first, now);
    assert_eq!(bucket.ready(5 * MICRO, now), Readiness::Now);
    assert!(bucket.ready(6 * MICRO, now) > Readiness::Now);
    bucket.observe(&left(5), first, now);
    assert!(bucket.ready(5 * MICRO, now) > Readiness::Now, "one left after the first: 5 - 1 = 4");
}

/// LIM-23, LIM-14: a response that comes after those to later calls deducts their actual costs, not
/// what was reserved for them; what is still in flight is deducted in full.
#[test]
fn lim_23_lim_14_a_late_answer_knows_what_later_calls_cost() {
    let now = Time::from_millis(10_000);
    let mut bucket = drip(1_000, 50, now);
    let marks: Vec<u64> = (0..20).map(|_| sent(&mut bucket, 47 * MICRO, now)).collect();
    let later = now.after(Duration::from_millis(300));
    let answered = |bucket: &mut Bucket, mark, left: u64| {
        bucket.mark_finished(mark, later);
        bucket.settle(mark, 47 * MICRO, 2 * MICRO, later);
        bucket.observe(&Hint { remaining: Some(left * MICRO), ..Hint::default() }, mark, later);
    };
    for (nth, mark) in marks[1..19].iter().enumerate() {
        answered(&mut bucket, *mark, 1_000 - 2 * (nth as u64 + 1));
    }
    answered(&mut bucket, marks[0], 962);
    let level = |bucket: &Bucket| match &bucket.budget {
        Budget::Drip(paced) => paced.available(later) / MICRO,
        _ => 0,
    };
    assert_eq!(level(&bucket), 962 - 18 * 2 - 47, "eighteen cost 2 each, one is under way");
    answered(&mut bucket, marks[19], 960);
    assert_eq!(level(&bucket), 960, "none is under way: its own figure stands");
    sent(&mut bucket, MICRO, later);
    assert!(bucket.corrections.is_empty(), "they are of no use any more");
}

/// LIM-14, LIM-23: a burst against an upstream that reserves the requested cost of running calls,
/// as Shopify does, takes hardly longer than its budget: what was counted twice while calls were in
/// flight comes back with the responses.
#[test]
fn lim_14_lim_23_a_burst_takes_as_long_as_the_budget_needs() {
    const REQUESTED: u64 = 60 * MICRO;
    const ACTUAL: u64 = 31 * MICRO;
    let start = Time::from_millis(10_000);
    let (mut ours, mut theirs) = (drip(1_000, 50, start), Drip::full(1_000 * MICRO, 50 * MICRO, 0, start));
    let (mut now, mut left, mut running) = (start, 64, VecDeque::new());
    while left > 0 || !running.is_empty() {
        while left > 0 && ours.ready(REQUESTED, now) == Readiness::Now {
            let mark = sent(&mut ours, REQUESTED, now);
            assert!(theirs.refreshed(now).level >= REQUESTED, "it would be throttled");
            theirs.take(REQUESTED, now);
            // The later ones complete first, now and then.
            let takes = Duration::from_millis(if left % 3 == 0 { 900 } else { 300 });
            running.push_back((now.after(takes), mark));
            left -= 1;
        }
        running.make_contiguous().sort_unstable();
        let next = running.front().map(|(at, _)| *at);
        let granted = match ours.ready(REQUESTED, now) {
            Readiness::At(at) if left > 0 => Some(at),
            _ => None,
        };
        now = next.into_iter().chain(granted).min().unwrap();
        while let Some((_, mark)) = running.front().copied().filter(|(at, _)| *at <= now) {
            running.pop_front();
            theirs.give_back(REQUESTED - ACTUAL, now);
            let remaining = Some(theirs.refreshed(now).level);
            ours.mark_finished(mark, now);
            ours.settle(mark, REQUESTED, ACTUAL, now);
            ours.observe(&Hint { remaining, ..Hint::default() }, mark, now);
        }
    }
    let needed = Duration::from_millis((64 * 31 - 1_000) * 1_000 / 50);
    let took = now.since(start);
    assert!(took < needed.mul_f64(1.15), "{took:?} where {needed:?} are needed");
}

/// LIM-14: a grant whose call has not been sent stays reserved, for as long as that takes; it is
/// deducted from a window when it is sent, and the window begins then.
#[test]
fn lim_14_a_grant_is_held_aside_until_its_call_leaves() {
    let now = Time::from_millis(10_000);
    let later = now.after(Duration::from_secs(60));
    let window = LimitShape::Window { limit: 5 * MICRO, period: Duration::from_secs(2) };
    for mut bucket in [drip(5, 10, now), Bucket::new(window, now).unwrap()] {
        let marks = [bucket.take(MICRO), bucket.take(3 * MICRO)];
        for at in [now, later] {
            assert_eq!(bucket.ready(MICRO, at), Readiness::Now);
            assert_eq!(bucket.ready(2 * MICRO, at), Readiness::AfterAnswer, "all five may arrive now");
        }
        bucket.return_unsent(marks[0], MICRO, later);
        assert_eq!(bucket.ready(2 * MICRO, later), Readiness::Now, "it never left");
        bucket.mark_sent(marks[1], later);
        assert_eq!(bucket.ready(2 * MICRO, later), Readiness::Now);
        let Readiness::At(at) = bucket.ready(3 * MICRO, later) else { panic!("only two are left") };
        assert!(at > later, "it refills from when the call left");
    }
}

/// LIM-25: a gate that a response closes stays closed until then, and reopens for one call first.
#[test]
fn lim_25_a_gate_is_closed_by_what_is_said() {
    let now = Time::from_millis(10_000);
    let mut gate = Bucket::new(LimitShape::Gate, now).unwrap();
    let mark = gate.take(MICRO);
    let until = now.after(Duration::from_secs(9));
    let says = |at| Hint { reset_at: Some(at), ..Hint::default() };
    gate.observe(&says(until), mark, now);
    gate.observe(&says(now), mark, now);
    gate.mark_finished(mark, now);
    assert_eq!(gate.ready(MICRO, now), Readiness::At(until));
    assert_eq!(gate.ready(MICRO, until), Readiness::Now);
    gate.take(MICRO);
    assert_eq!(gate.ready(MICRO, until), Readiness::AfterAnswer);
}

/// LIM-8: a new rate takes effect at once.
#[test]
fn lim_8_a_learned_rate_takes_effect_at_once() {
    let now = Time::from_millis(10_000);
    let mut bucket = drip(10, 1, now);
    let mark = sent(&mut bucket, 10 * MICRO, now);
    let hint = Hint { refill_per_s: Some(100 * MICRO), capacity: Some(200 * MICRO), ..Hint::default() };
    bucket.observe(&hint, mark, now);
    let LimitShape::Drip { capacity, refill_per_s, .. } = bucket.shape() else { panic!() };
    assert_eq!((capacity, refill_per_s), (200 * MICRO, 100 * MICRO));
}

#[test]
fn the_margin_is_a_quarter_at_most() {
    assert_eq!(default_margin(20 * MICRO, 100 * MICRO), 2 * MICRO);
    assert_eq!(default_margin(40 * MICRO, 2 * MICRO), MICRO / 25);
    assert_eq!(default_margin(MICRO, 1_000 * MICRO), MICRO / 4);
}

/// LIM-26, LIM-23: calls in flight at once are counted once: whatever the order of their responses,
/// all of a window is used, and never more.
#[test]
fn lim_26_calls_in_flight_are_counted_once() {
    let now = Time::from_millis(10_000);
    let reset = now.after(Duration::from_secs(5));
    let told = |left: u64| Hint {
        remaining: Some(left * MICRO),
        capacity: Some(5 * MICRO),
        reset_at: Some(reset),
        ..Hint::default()
    };
    // The upstream has counted all three when it answers the first of them, or each in turn.
    for answers in [[(0, 2), (1, 2), (2, 2)], [(2, 4), (0, 3), (1, 2)], [(1, 3), (2, 2), (0, 4)]] {
        let mut window = Bucket::new(LimitShape::Window { limit: 0, period: Duration::ZERO }, now).unwrap();
        window.observe(&told(5), 0, now);
        let marks: Vec<_> = (0..3).map(|_| sent(&mut window, MICRO, now)).collect();
        for (nth, left) in answers {
            window.mark_finished(marks[nth], now);
            window.observe(&told(left), marks[nth], now);
            assert!(window.ready(3 * MICRO, now) > Readiness::Now, "only two are left: {answers:?}");
        }
        assert_eq!(window.ready(2 * MICRO, now), Readiness::Now, "two are left: {answers:?}");
    }
    // Whose response was lost may have been counted or not.
    let mut window = Bucket::new(LimitShape::Window { limit: 0, period: Duration::ZERO }, now).unwrap();
    window.observe(&told(5), 0, now);
    let marks = [sent(&mut window, MICRO, now), sent(&mut window, MICRO, now)];
    window.mark_finished(marks[0], now);
    window.observe(&told(4), marks[0], now);
    window.mark_finished(marks[1], now);
    window.miss_report();
    assert!(window.ready(4 * MICRO, now) > Readiness::Now, "three are left at most");
}

/// LIM-12: a refusal by a window is the truth about it, and an operator can open it all the same.
#[test]
fn lim_12_a_refused_window_opens_when_it_is_said() {
    let now = Time::from_millis(10_000);
    let shape = LimitShape::Window { limit: 250 * MICRO, period: Duration::from_secs(48 * 3_600) };
    let mut window = Bucket::new(shape, now).unwrap();
    sent(&mut window, MICRO, now);
    let until = now.after(Duration::from_secs(3));
    window.freeze(until, MICRO, now);
    assert!(window.ready(MICRO, until.before(Duration::from_millis(1))) > Readiness::Now);
    assert_eq!(window.ready(MICRO, until.after(window::RESET_MARGIN)), Readiness::Now);
    window.thaw(now);
    assert_eq!(window.ready(250 * MICRO, now), Readiness::Now);
}

/// OPS-24: of a window that was learned, later ones are expected to be as long as the first.
#[test]
fn ops_24_later_windows_are_as_long_as_the_first() {
    let now = Time::from_millis(10_000);
    let mut window = Bucket::new(LimitShape::Window { limit: 0, period: Duration::ZERO }, now).unwrap();
    assert_eq!(window.all_granted_at(MICRO, now), None);
    let length = Duration::from_secs(9);
    let told = Hint {
        remaining: Some(4 * MICRO),
        capacity: Some(5 * MICRO),
        reset_at: Some(now.after(length)),
        ..Hint::default()
    };
    window.observe(&told, 0, now);
    assert_eq!(window.all_granted_at(4 * MICRO, now), Some(now));
    let margin = window::RESET_MARGIN;
    let next = now.after(length).after(margin);
    assert_eq!(window.all_granted_at(9 * MICRO, now), Some(next));
    assert_eq!(window.all_granted_at(19 * MICRO, now), Some(next.after((length + margin) * 2)));
}
