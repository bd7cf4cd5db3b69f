//! The arithmetic of waiting, checked against its formula and against nonsense.

use std::time::Duration;

use proptest::prelude::*;
use tidegate_core::bounds::RETRY_AFTER_MAX;

use super::*;

/// LIM-1 / LIM-18: the formula at its edges.
#[test]
fn lim_1_the_delay_is_what_is_missing_over_the_rate() {
    let table = [
        (ThrottleStatus::of_points(2_000, 666, 100), 752, Some(860)),
        (ThrottleStatus::of_points(2_000, 2_000, 100), 2_000, Some(0)),
        (ThrottleStatus::of_points(2_000, 1_999, 100), 2_000, Some(10)),
        (ThrottleStatus::of_points(1_000, 0, 3), 1, Some(334)),
        (ThrottleStatus::of_points(1_000, 0, 0), 0, Some(0)),
        (ThrottleStatus::of_points(1_000, 0, 0), 1, None),
        (ThrottleStatus::of_points(0, 0, 1), u64::MAX, Some(u64::MAX.div_ceil(1_000))),
    ];
    for (status, cost, delay) in table {
        assert_eq!(from_throttle_status(&status, cost), delay, "{status:?} {cost}");
    }
    let decimals = ThrottleStatus { maximum: 40 * MICRO, available: 1_500_000, restore_per_s: 2_500_000 };
    assert_eq!(decimals.delay_ms(4 * MICRO), Some(1_000));
    assert!(decimals.can_hold(40 * MICRO) && !decimals.can_hold(40 * MICRO + 1));
}

/// LIM-18: the longer one of a 429's header and body counts, in every form.
#[test]
fn lim_18_a_429_says_when_in_its_header_or_its_body() {
    let table: [(Option<&str>, &str, Option<u64>); 11] = [
        (Some("2.0"), "", Some(2_000)),
        (Some("0.0001"), "", Some(1)),
        (Some("2"), r#"{"retry_after":64.57}"#, Some(64_570)),
        (Some("65"), r#"{"retry_after":"64.57"}"#, Some(65_000)),
        (None, r#"{"errors":"Exceeded 4 calls per second for api client."}"#, Some(250)),
        (None, r#"{"errors":"Exceeded 0 calls per second for api client."}"#, None),
        (None, r#"{"errors":{"base":["Exceeded 2 calls per second"]}}"#, None),
        (Some("nonsense"), "<html>429</html>", None),
        (None, r#"{"retry_after":-1}"#, None),
        (None, r#"{"retry_after":"Sun, 06 Nov 1994 08:49:47 GMT"}"#, None),
        (None, "[]", None),
    ];
    for (retry_after, body, wait) in table {
        let told = TooManyRequests { retry_after, date: None, body: body.as_bytes() };
        assert_eq!(from_429(&told, Time::ZERO), wait, "{retry_after:?} {body}");
    }
    let dated = TooManyRequests {
        retry_after: Some("Sun, 06 Nov 1994 08:49:47 GMT"),
        date: Some("Sun, 06 Nov 1994 08:49:37 GMT"),
        body: b"",
    };
    assert_eq!(from_429(&dated, Time::from_millis(1)), Some(10_000), "their clock, not ours");
}

proptest! {
    /// LIM-1: after the delay the cost is available, and a millisecond earlier it was not.
    #[test]
    fn lim_1_the_delay_is_enough_and_no_longer(
        available in 0_u64..40_000_000_000,
        restore_per_s in 1_u64..2_000_000_000,
        cost in 0_u64..40_000_000_000,
    ) {
        let status = ThrottleStatus { maximum: 40_000_000_000, available, restore_per_s };
        let delay = status.delay_ms(cost).unwrap();
        let at = |ms: u64| u128::from(available) * 1_000 + u128::from(restore_per_s) * u128::from(ms);
        let needed = u128::from(cost) * 1_000;
        prop_assert!(at(delay) >= needed);
        prop_assert!(delay == 0 || at(delay - 1) < needed);
    }

    /// LIM-18: no numbers are too odd for it.
    #[test]
    fn lim_18_no_status_is_too_odd(
        maximum: u64,
        available: u64,
        restore_per_s in prop_oneof![Just(0), any::<u64>()],
        cost: u64,
    ) {
        let status = ThrottleStatus { maximum, available, restore_per_s };
        prop_assert_eq!(status.delay_ms(cost).is_none(), restore_per_s == 0 && cost > available);
    }

    /// LIM-18: whatever a 429 contains, it is parsed or ignored.
    #[test]
    fn lim_18_no_429_is_too_odd(header in "\\PC{0,40}", date in "\\PC{0,40}", body in "\\PC{0,200}") {
        let told = TooManyRequests { retry_after: Some(&header), date: Some(&date), body: body.as_bytes() };
        if let Some(wait) = from_429(&told, Time::ZERO) {
            prop_assert!(Duration::from_millis(wait) <= RETRY_AFTER_MAX);
        }
    }
}
