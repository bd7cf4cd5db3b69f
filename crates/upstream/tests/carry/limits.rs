//! The charges of a request, and the limits set in the model.

use std::collections::BTreeMap;

use tidegate_core::fact::LimitShape;
use tidegate_core::operation::MICRO;
use tidegate_core::{Charge, OnUnknown};
use tidegate_upstream::http::{LimitConfig, LimitKind, UpstreamConfig};
use tidegate_upstream::{HttpUpstreams, Secret, Upstream};

use crate::{GET, POST, payload};

fn drip(name: &str, capacity: f64, refill_per_s: f64) -> LimitConfig {
    LimitConfig::new(name, LimitKind::Drip { capacity, refill_per_s })
}

fn config() -> UpstreamConfig {
    let limits = vec![drip("points", 40.0, 0.5), LimitConfig::new("bulk", LimitKind::AtOnce { at_once: 2 })];
    UpstreamConfig::new("echo", "http://127.0.0.1:9").with_limits(limits)
}

/// LIM-7: the gate and every limit are charged together, by the caller's cost or one token.
#[test]
fn lim_7_a_request_charges_the_gate_and_every_limit() {
    let upstreams = HttpUpstreams::new(vec![config()]).unwrap();
    let cost = BTreeMap::from([("points".to_owned(), 52)]);
    let checked = upstreams.check(&payload(POST), &cost).unwrap();
    let charges =
        [Charge::tokens("echo", 1), Charge::tokens("echo/points", 52), Charge::tokens("echo/bulk", 1)];
    assert_eq!(checked.charges, charges);
    assert_eq!((checked.on_unknown, checked.can_reconcile), (OnUnknown::Ask, false));
    let checked = upstreams.check(&payload(GET), &BTreeMap::new()).unwrap();
    assert_eq!(checked.charges[1], Charge::tokens("echo/points", 1));
    assert_eq!(checked.on_unknown, OnUnknown::Repeat);
}

/// LIM-4: each limit is set in the model under the upstream's name, with its own unit.
#[test]
fn lim_4_limits_are_named_after_their_upstream() {
    let upstreams = HttpUpstreams::new(vec![config()]).unwrap();
    let limits: Vec<_> =
        upstreams.limits().into_iter().map(|(name, shape)| (name.to_string(), shape)).collect();
    let drip = LimitShape::Drip { capacity: 40 * MICRO, refill_per_s: MICRO / 2, margin: MICRO / 100 };
    let expected =
        [("echo", LimitShape::Gate), ("echo/points", drip), ("echo/bulk", LimitShape::Cap { at_once: 2 })];
    assert_eq!(limits, expected.map(|(name, shape)| (name.to_owned(), shape)));
}

#[test]
fn a_cost_for_no_limit_is_refused() {
    let upstreams = HttpUpstreams::new(vec![config()]).unwrap();
    let cost = BTreeMap::from([("point".to_owned(), 1)]);
    let refusal = upstreams.check(&payload(POST), &cost).unwrap_err();
    assert_eq!(refusal.to_string(), "cost.point: echo has no limit called \"point\"; it has: points, bulk.");
    let stranger = br#"{"upstream":"ecco","request":{"method":"GET","path":"/"}}"#;
    let refusal = upstreams.check(stranger, &BTreeMap::new()).unwrap_err();
    assert_eq!(refusal.to_string(), "upstream: No upstream is called \"ecco\"; configured: echo.");
}

#[test]
fn a_bad_configuration_is_refused_by_field() {
    let limit = |limit: LimitConfig| config().with_limits(vec![limit]);
    let many = (0..8).map(|n| drip(&format!("l{n}"), 1.0, 1.0)).collect();
    let table = [
        (UpstreamConfig::new("a/b", "http://127.0.0.1:9"), "upstream.a/b.name"),
        (UpstreamConfig::new("echo", "ftp://x"), "upstream.echo.base_url"),
        (config().with_timeout(std::time::Duration::ZERO), "upstream.echo.timeout"),
        (config().with_response_max_bytes(usize::MAX), "upstream.echo.response_max_bytes"),
        (config().with_token(Secret::new("a\nb")), "upstream.echo.token_header"),
        (config().with_limits(many), "upstream.echo.limit"),
        (limit(drip("a", 0.0, 1.0)), "upstream.echo.limit.a"),
        (limit(drip("a", f64::NAN, 1.0)), "upstream.echo.limit.a"),
        (limit(drip("a", 1.0, f64::INFINITY)), "upstream.echo.limit.a"),
        (limit(drip("a", 1.0, -1.0)), "upstream.echo.limit.a"),
        (limit(drip("a b", 1.0, 1.0)), "upstream.echo.limit.name"),
    ];
    for (config, field) in table {
        assert_eq!(HttpUpstreams::new(vec![config]).unwrap_err().field, field);
    }
    assert_eq!(HttpUpstreams::new(vec![config(), config()]).unwrap_err().field, "upstream.echo.name");
}
