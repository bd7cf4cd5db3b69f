//! What the breakers of a provider, its keys and its accounts say together.

use tidegate_core::breaker::CooldownLadder;
use tidegate_core::fact::{LimitShape, LimitSource};
use tidegate_core::{Fault, FaultClass, Seq};

use super::*;

const NOW: Time = Time::from_millis(100_000);

fn at_s(second: u64) -> Time {
    Time::from_millis(second * 1_000)
}

fn well(name: &str) -> LimitView {
    LimitView {
        name: name.into(),
        shape: LimitShape::Breaker { ladder: CooldownLadder::default() },
        source: LimitSource::Config,
        opened: false,
        level: 0,
        in_flight: 0,
        waiting: 0,
        parked: 0,
        users: 0,
        frozen_until: None,
        reset_at: None,
        period: None,
        failures: 0,
        closure: None,
    }
}

/// A breaker that fails since one second, was closed last in another, and is closed until a third.
fn failing(name: &str, [since, at, until]: [u64; 3]) -> LimitView {
    let fault = Some(Fault::new(FaultClass::Transient, format!("{name} at {at}")));
    let closure = LimitClosure { since: at_s(since), at: at_s(at), seq: Seq(at), accepted_at: NOW, fault };
    let frozen_until = Some(at_s(until)).filter(|until| *until > NOW);
    LimitView { level: 1, failures: 2, frozen_until, closure: Some(closure), ..well(name) }
}

fn provider(breaker: LimitView, keys: Vec<KeyStatus>, accounts: Vec<(String, LimitView)>) -> ProviderStatus {
    ProviderStatus {
        name: "acme".into(),
        adapter: "fal",
        breaker,
        slots: LimitView { shape: LimitShape::Cap { at_once: 4 }, level: 4, ..well("slots") },
        rpm: LimitView { level: 60 * MICRO, ..well("rpm") },
        keys,
        accounts,
        last_error: None,
    }
}

fn key(name: &str, account: Option<&str>, breaker: LimitView) -> KeyStatus {
    KeyStatus { name: name.into(), account: account.map(Into::into), breaker }
}

/// DSP-24: a provider says since when it fails and why, also between two cooldowns, when one job
/// goes first.
#[test]
fn dsp_24_a_provider_fails_from_its_first_error_to_its_next_success() {
    let one = |breaker| provider(breaker, vec![key("a", None, well("a"))], Vec::new());
    let cooling = one(failing("acme", [40, 90, 110]));
    assert_eq!(cooling.state(NOW), (Availability::CoolingDown, Some(at_s(110))));
    let probing = one(failing("acme", [40, 90, 99]));
    assert_eq!(probing.state(NOW), (Availability::Probing, None));
    for status in [&cooling, &probing] {
        assert_eq!(status.failing_since(), Some(at_s(40)));
        let error = status.closing_error(0).unwrap();
        assert_eq!((error.at, &*error.message), (at_s(90), "acme at 90"));
        assert_eq!(error.generation, OperationId::new(NOW, 0, Seq(90)));
    }
    let widened = one(LimitView { level: 2, ..failing("acme", [40, 90, 99]) });
    assert_eq!((widened.state(NOW).0, widened.failing_since()), (Availability::Free, None));
    assert_eq!(one(well("acme")).closing_error(0), None);
}

/// DSP-22, DSP-24: a provider whose keys all fail, alone or with their account, takes no jobs
/// either; as long as one key is well, it does.
#[test]
fn dsp_22_dsp_24_keys_and_accounts_close_a_provider() {
    let failing_a = || key("a", None, failing("a", [40, 90, 110]));
    let b = |breaker| key("b", Some("team"), breaker);
    let accounts = |limit| vec![("team".to_owned(), limit)];
    let half = provider(well("acme"), vec![failing_a(), b(well("b"))], accounts(well("team")));
    assert_eq!((half.state(NOW).0, half.failing_since()), (Availability::Free, None));
    let all =
        provider(well("acme"), vec![failing_a(), b(well("b"))], accounts(failing("team", [60, 95, 130])));
    assert_eq!(all.state(NOW), (Availability::CoolingDown, Some(at_s(110))), "the first that is back");
    assert_eq!(all.failing_since(), Some(at_s(60)), "since the last of them failed");
    assert_eq!(all.because(NOW), "Each of its keys cools after an error.");
    assert_eq!(all.closing_error(0).unwrap().message, "team at 95");
    assert_eq!(provider(well("acme"), Vec::new(), Vec::new()).failing_since(), None);
}
