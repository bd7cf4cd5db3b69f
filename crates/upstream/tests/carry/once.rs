//! At most one request on the wire for each attempt, and one that may have been sent is never
//! called unsent.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tidegate_core::{Charge, FaultClass, OnUnknown, ServerErrors, Verdict};
use tidegate_upstream::http::{LimitDefinition, PlainDialect, UpstreamConfig};
use tidegate_upstream::{Dialect, FieldRefusal, HttpRequest, HttpUpstreams, Upstream};

use crate::peer::{Peer, PeerAction, answer};
use crate::{GET, NOW, PATIENCE, POST, call, carry, hasty, message, payload, upstreams};

/// OPS-23: the rule of failed calls, as it applies to a request that may not be repeated (where
/// server errors are retried, and where they are unknown) and to one that may.
#[tokio::test]
async fn ops_23_a_failed_call_follows_the_rule() {
    let say = |status: &str| PeerAction::Say(answer(status, "retry-after: 3\r\n", ""));
    let cut = || PeerAction::SayAndClose(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf".to_vec());
    for (then, retried) in [
        (say("500 Oops"), [true, false, true]),
        (say("502 Oops"), [true, false, true]),
        (say("524 Oops"), [true, false, true]),
        (say("503 Wait"), [true; 3]),
        (say("521 Down"), [true; 3]),
        (say("408 Slow"), [true; 3]),
        (PeerAction::Close, [false, false, true]),
        (cut(), [false, false, true]),
    ] {
        let action = then.clone();
        let peer = Peer::start(move |_| action.clone()).await;
        let cases = [
            (ServerErrors::Retry, OnUnknown::Ask),
            (ServerErrors::Unknown, OnUnknown::Ask),
            (ServerErrors::Unknown, OnUnknown::Repeat),
        ];
        for ((errors, on_unknown), is_retried) in cases.into_iter().zip(retried) {
            let mut config = UpstreamConfig::new("echo", peer.url());
            config.server_errors = Some(errors);
            let upstreams = HttpUpstreams::new(vec![config]).unwrap();
            let payload = payload(POST);
            let outcome = upstreams.carry(call(&payload, "op-1").with_on_unknown(on_unknown)).await;
            match &outcome.verdict {
                Verdict::Retry { after, .. } if is_retried => {
                    let has_said = matches!(then, PeerAction::Say(_));
                    assert_eq!(*after, has_said.then_some(Duration::from_secs(3)), "{outcome:?}");
                }
                verdict => {
                    assert!(!is_retried && is_unknown(verdict), "{on_unknown:?} {errors:?} {outcome:?}");
                }
            }
        }
        assert_eq!(peer.seen().len(), 3);
    }
}

/// A dialect in which a server error leaves the outcome unknown.
struct CautiousDialect(PlainDialect);

impl Dialect for CautiousDialect {
    fn limits(&self) -> Vec<LimitDefinition> {
        self.0.limits()
    }

    fn charges(
        &self,
        request: &HttpRequest,
        cost: &BTreeMap<String, u64>,
    ) -> Result<Vec<Charge>, FieldRefusal> {
        self.0.charges(request, cost)
    }

    fn server_errors(&self) -> ServerErrors {
        ServerErrors::Unknown
    }
}

/// OPS-23: what a server error means is the dialect's rule, unless the upstream is configured.
#[tokio::test]
async fn ops_23_an_upstream_overrides_the_rule_of_its_dialect() {
    let peer = Peer::saying(answer("500 Oops", "", "")).await;
    let payload = payload(POST);
    let table = [(None, true), (Some(ServerErrors::Unknown), true), (Some(ServerErrors::Retry), false)];
    for (errors, is_unknown_here) in table {
        let mut config = UpstreamConfig::new("echo", peer.url());
        config.server_errors = errors;
        let dialect = CautiousDialect(PlainDialect::new(&config.name, &config.limits));
        let upstreams =
            HttpUpstreams::with_dialects(vec![(config, Arc::new(dialect) as Arc<dyn Dialect>)]).unwrap();
        let outcome = upstreams.carry(call(&payload, "op-1").with_on_unknown(OnUnknown::Ask)).await;
        let is_retried = matches!(outcome.verdict, Verdict::Retry { .. });
        assert_eq!(
            (is_unknown(&outcome.verdict), is_retried),
            (is_unknown_here, !is_unknown_here),
            "{errors:?}"
        );
    }
}

/// OPS-23: a 409 to a request with a key, after an attempt that may have been received or with a
/// time to wait, says that the receiver still works on the first: it is asked again. Without either
/// it is a conflict.
#[tokio::test]
async fn ops_23_a_key_in_use_is_asked_for_again() {
    let keyed = r#"{"method":"POST","path":"/x","headers":{"Idempotency-Key":"k"},"body":{"a":1}}"#;
    let table = [
        (keyed, false, "retry-after: 1\r\n", Some(Some(1))),
        (keyed, true, "retry-after: 1\r\n", Some(Some(1))),
        (keyed, true, "", Some(None)),
        // An earlier attempt that was not sent cannot be in progress.
        (keyed, false, "", None),
        (POST, true, "retry-after: 1\r\n", None),
    ];
    for (request, in_doubt, headers, retried) in table {
        let peer = Peer::saying(answer("409 Conflict", headers, "")).await;
        let payload = payload(request);
        let call = call(&payload, "op-1").with_attempt(2).with_doubt(in_doubt);
        let call = call.with_on_unknown(OnUnknown::Repeat);
        let outcome = upstreams(peer.url()).carry(call).await;
        match (&outcome.verdict, retried) {
            (Verdict::Retry { after, fault }, Some(wait)) => {
                assert_eq!((*after, fault.class), (wait.map(Duration::from_secs), FaultClass::Transient));
                assert!(fault.message.contains("an earlier request with its key"), "{fault}");
                assert!(fault.may_have_happened, "{fault}");
            }
            (Verdict::Rejected(fault), None) => assert_eq!(fault.class, FaultClass::Conflict),
            _ => panic!("{in_doubt} {headers} {outcome:?}"),
        }
    }
}

fn is_unknown(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Unknown(fault) if fault.class == FaultClass::Transient)
}

/// OPS-23: the request arrived and the connection was cut: unknown, and sent once.
#[tokio::test]
async fn ops_23_a_cut_after_the_request_is_unknown() {
    for request in [POST, GET] {
        let peer = Peer::start(|_| PeerAction::Close).await;
        let outcome = carry(&upstreams(peer.url()), request).await;
        assert!(is_unknown(&outcome.verdict), "{outcome:?}");
        assert_eq!((outcome.status, outcome.body.len()), (None, 0));
        assert_eq!(peer.seen().len(), 1);
    }
}

/// OPS-23: the same on a reused connection, where other clients resend automatically.
#[tokio::test]
async fn ops_23_a_cut_on_a_reused_connection_is_not_repeated() {
    for request in [POST, GET] {
        let peer =
            Peer::start(
                |n| if n == 0 { PeerAction::Say(answer("200 OK", "", "")) } else { PeerAction::Close },
            )
            .await;
        let upstreams = upstreams(peer.url());
        assert_eq!(carry(&upstreams, request).await.verdict, Verdict::Done);
        assert!(is_unknown(&carry(&upstreams, request).await.verdict));
        assert_eq!(peer.seen().len(), 2);
    }
}

/// OPS-23: no response in time, slow headers, half a status line, and no HTTP at all are unknown.
#[tokio::test]
async fn ops_23_no_proper_answer_is_unknown() {
    let table = [
        PeerAction::Stall(Vec::new()),
        PeerAction::Stall(b"HTTP/1.1 200 OK\r\nx-slow: 1\r\n".to_vec()),
        PeerAction::SayAndClose(b"HTTP/1.1 200".to_vec()),
        PeerAction::SayAndClose(b"\x16\x03\x01 what is this?\r\n\r\n".to_vec()),
        PeerAction::SayAndClose(b"HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n".to_vec()),
    ];
    for then in table {
        let peer = Peer::start(move |_| then.clone()).await;
        let outcome = carry(&hasty(peer.url(), PATIENCE), POST).await;
        assert!(is_unknown(&outcome.verdict), "{outcome:?}");
        assert_eq!(peer.seen().len(), 1);
    }
}

/// OPS-23: a success with an incomplete body is unknown; a failure stands by its status.
#[tokio::test]
async fn ops_23_a_cut_body_makes_a_success_unknown() {
    for then in [PeerAction::SayAndClose, PeerAction::Stall] {
        let peer =
            Peer::start(move |_| then(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf".to_vec())).await;
        let outcome = carry(&hasty(peer.url(), PATIENCE), POST).await;
        assert!(is_unknown(&outcome.verdict) && outcome.status == Some(200), "{outcome:?}");
        let peer =
            Peer::start(move |_| then(b"HTTP/1.1 404 Not\r\ncontent-length: 100\r\n\r\nhalf".to_vec())).await;
        let outcome = carry(&hasty(peer.url(), PATIENCE), POST).await;
        assert!(matches!(outcome.verdict, Verdict::Rejected(_)), "{outcome:?}");
    }
}

/// OPS-23: a server that closes each connection without announcing it races with the next request.
/// Nothing is sent twice, every success was seen, and what is called unsent was never seen.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ops_23_stale_connections_never_double_a_request() {
    let peer = Peer::start(|_| PeerAction::SayAndClose(answer("200 OK", "", ""))).await;
    let upstreams = upstreams(peer.url());
    let payload = payload(POST);
    let mut outcomes = Vec::new();
    for n in 0..300 {
        let id = format!("op-{n}");
        let verdict = upstreams.carry(call(&payload, &id)).await.verdict;
        outcomes.push((id, verdict));
    }
    let seen = peer.seen();
    let ids: BTreeSet<_> = seen.iter().map(|s| s.header("tidegate-operation").unwrap().to_owned()).collect();
    assert_eq!(ids.len(), seen.len(), "one of them came twice");
    for (id, verdict) in outcomes {
        match verdict {
            Verdict::Done => assert!(ids.contains(&id), "{id} is done and was not seen"),
            Verdict::Retry { .. } => assert!(!ids.contains(&id), "{id} is called unsent and was seen"),
            verdict => assert!(is_unknown(&verdict), "{id}: {verdict:?}"),
        }
    }
}

/// Connections are reused.
#[tokio::test]
async fn one_connection_carries_many_calls() {
    let peer = Peer::saying(answer("200 OK", "", "")).await;
    let upstreams = upstreams(peer.url());
    for _ in 0..40 {
        assert_eq!(carry(&upstreams, POST).await.verdict, Verdict::Done);
    }
    assert_eq!(peer.seen().len(), 40);
    assert_eq!(peer.connections(), 1);
}

/// An idle connection is closed after a while, before a server would close it.
#[tokio::test]
async fn idle_connections_are_closed() {
    let peer = Peer::saying(answer("200 OK", "", "")).await;
    let upstreams = upstreams(peer.url());
    assert_eq!(carry(&upstreams, GET).await.verdict, Verdict::Done);
    // From here on the clock jumps to whatever is awaited.
    tokio::time::pause();
    peer.one_gone().await;
    tokio::time::resume();
    assert_eq!(carry(&upstreams, GET).await.verdict, Verdict::Done);
    assert_eq!(peer.connections(), 2);
}

/// OPS-23: a request whose outcome is unknown and cannot be checked is not sent again; one that may
/// be repeated is.
#[tokio::test]
async fn ops_23_nothing_is_repeated_blindly() {
    let peer = Peer::saying(answer("200 OK", "", "")).await;
    let upstreams = upstreams(peer.url());
    let (post, get) = (payload(POST), payload(GET));
    let look = |payload| call(payload, "op-1").with_reconcile_first(true);
    assert!(is_unknown(&upstreams.carry(look(&post)).await.verdict));
    assert!(peer.seen().is_empty());
    assert_eq!(upstreams.carry(look(&get)).await.verdict, Verdict::Done);
}

/// Dropping a call aborts it: the server sees the connection close.
#[tokio::test]
async fn a_dropped_call_is_aborted() {
    let peer = Peer::start(|_| PeerAction::Stall(Vec::new())).await;
    let upstreams = upstreams(peer.url());
    let payload = payload(POST);
    let mut carrying = upstreams.carry(call(&payload, "op-1"));
    while peer.seen().is_empty() {
        let tick = tokio::time::timeout(Duration::from_millis(5), &mut carrying).await;
        assert!(tick.is_err(), "it cannot have ended");
    }
    drop(carrying);
    peer.one_gone().await;
}

/// OPS-23: the deadline ends the wait for a response before the timeout does.
#[tokio::test]
async fn ops_23_the_deadline_counts_too() {
    let peer = Peer::start(|_| PeerAction::Stall(Vec::new())).await;
    let upstreams = upstreams(peer.url());
    let payload = payload(POST);
    let deadline = Some(NOW.after(PATIENCE));
    let outcome = upstreams.carry(call(&payload, "op-1").with_deadline(deadline)).await;
    assert!(is_unknown(&outcome.verdict));
    assert!(message(&outcome.verdict).contains("no answer within 1000 ms"), "{outcome:?}");
}
