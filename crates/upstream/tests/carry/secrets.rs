//! Messages, debug output and stored data never hold a credential, a body or a query.

use std::collections::BTreeMap;

use tidegate_upstream::http::{TokenHeader, UpstreamConfig};
use tidegate_upstream::{HttpUpstreams, Outcome, Secret, Upstream};

use crate::peer::{Peer, PeerAction, answer};
use crate::{carry, payload};

const TOKEN: &str = "hunter2";
const REQUEST: &str = r#"{"method":"POST","path":"/x?key=hunter2","body":"hunter2"}"#;

fn with_token(url: &str, header: TokenHeader) -> (UpstreamConfig, HttpUpstreams) {
    let config = UpstreamConfig::new("echo", url)
        .with_token(Secret::new(TOKEN))
        .with_token_header(header)
        .with_timeout(crate::PATIENCE);
    let upstreams = HttpUpstreams::new(vec![config.clone()]).unwrap();
    (config, upstreams)
}

/// The credential is sent in the configured header.
#[tokio::test]
async fn the_token_goes_into_its_header() {
    let peer = Peer::saying(answer("200 OK", "", "")).await;
    for (header, name, value) in [
        (TokenHeader::default(), "authorization", "Bearer hunter2"),
        (TokenHeader::parse("Authorization: Bot"), "authorization", "Bot hunter2"),
        (TokenHeader::parse("x-api-key"), "x-api-key", "hunter2"),
    ] {
        carry(&with_token(&peer.url(), header).1, REQUEST).await;
        assert_eq!(peer.seen().last().unwrap().header(name), Some(value));
    }
}

/// OPS-22: however a call ends, nothing that is printed holds what it carried.
#[tokio::test]
async fn ops_22_no_outcome_tells_what_was_carried() {
    let table = [
        PeerAction::Close,
        PeerAction::Stall(Vec::new()),
        PeerAction::SayAndClose(b"hunter2 hunter2\r\n\r\n".to_vec()),
        PeerAction::Say(answer("400 hunter2", "x-a: hunter2\r\n", "hunter2")),
        PeerAction::Say(answer("302 Away", "location: http://u:hunter2@evil/?hunter2\r\n", "hunter2")),
        PeerAction::Say(answer("429 Slow", "retry-after: hunter2\r\n", "hunter2")),
        PeerAction::Say(answer("500 Oops", "", "hunter2")),
    ];
    for then in table {
        let peer = Peer::start(move |_| then.clone()).await;
        let (config, upstreams) = with_token(&peer.url(), TokenHeader::default());
        let outcome: Outcome = carry(&upstreams, REQUEST).await;
        let printed =
            format!("{config:?} {upstreams:?} {outcome:?} {:?}", crate::call(&payload(REQUEST), "op-1"));
        assert!(!printed.contains(TOKEN), "{printed}");
        assert_eq!(peer.seen()[0].header("authorization"), Some("Bearer hunter2"));
    }
    let (_, nowhere) = with_token(crate::NOBODY, TokenHeader::default());
    let outcome = carry(&nowhere, REQUEST).await;
    assert!(!format!("{outcome:?}").contains(TOKEN), "{outcome:?}");
}

/// OPS-22: a server that repeats the token does not get it printed or stored.
#[tokio::test]
async fn ops_22_a_token_that_is_echoed_is_masked() {
    let echo = "bad header Bearer a-token-of-some-length";
    for status in ["400 Bad", "200 OK", "503 Oops"] {
        let json = format!(r#"{{"message":"{echo}"}}"#);
        let peer = Peer::saying(answer(status, "content-type: application/json\r\n", &json)).await;
        let config =
            UpstreamConfig::new("echo", peer.url()).with_token(Secret::new("a-token-of-some-length"));
        let outcome = carry(&HttpUpstreams::new(vec![config]).unwrap(), REQUEST).await;
        let kept = crate::text(&outcome);
        assert!(kept.contains(r#"{"message":"bad header Bearer ***"}"#), "{kept}");
        assert!(!crate::message(&outcome.verdict).contains("a-token-of"), "{outcome:?}");
    }
}

/// A caller cannot set the header that carries the token.
#[tokio::test]
async fn the_token_cannot_be_overridden() {
    let (_, upstreams) = with_token("http://127.0.0.1:9", TokenHeader::parse("x-token"));
    let request = payload(r#"{"method":"GET","path":"/","headers":{"X-Token":"mine"}}"#);
    let refusal = upstreams.check(&request, &BTreeMap::new()).unwrap_err();
    assert_eq!(refusal.field, "request.headers");
    assert!(refusal.message.contains("token_env") && !refusal.message.contains("mine"));
}

/// OPS-22: a header that carries a credential is refused, for any vendor, unless the upstream
/// declares that it is none.
#[tokio::test]
async fn ops_22_credentials_are_not_stored() {
    let peer = Peer::saying(answer("200 OK", "", "")).await;
    let config = UpstreamConfig::new("echo", peer.url())
        .with_stored_headers(vec!["x-tenant-key".into()])
        .with_timeout(crate::PATIENCE);
    let upstreams = HttpUpstreams::new(vec![config.clone()]).unwrap();
    let with = |name: &str, value: &str| {
        payload(&format!(r#"{{"method":"GET","path":"/","headers":{{"{name}":"{value}"}}}}"#))
    };
    for (name, value) in
        [("X-Vault-Token", TOKEN), ("x-rapidapi-key", TOKEN), ("x-a", "Bearer hunter2"), ("cookie", TOKEN)]
    {
        let refusal = upstreams.check(&with(name, value), &BTreeMap::new()).unwrap_err();
        assert_eq!(refusal.field, "request.headers");
        let told = &refusal.message;
        assert!(told.contains(&name.to_lowercase()) && told.contains("token_env"), "{told}");
        assert!(!told.contains(TOKEN), "{told}");
        let outcome = upstreams.carry(crate::call(&with(name, value), "op-1")).await;
        assert!(matches!(outcome.verdict, tidegate_core::Verdict::Rejected(_)), "{outcome:?}");
    }
    assert!(peer.seen().is_empty());
    for name in ["x-group", "content-type", "idempotency-key", "x-tenant-key"] {
        upstreams.carry(crate::call(&with(name, "a"), "op-1")).await;
        assert_eq!(peer.seen().last().unwrap().header(name), Some("a"), "{name}");
    }
    for name in ["authorization", "cookie", "host", "X-Tenant-Key", "a b", ""] {
        let wrong = config.clone().with_stored_headers(vec![name.into()]);
        let refusal = HttpUpstreams::new(vec![wrong]).unwrap_err();
        assert_eq!(refusal.field, "upstream.echo.stored_headers", "{name}");
    }
}

/// The check refuses a path that would lead to another host, and nothing is sent if it gets through
/// anyway.
#[tokio::test]
async fn no_path_leads_to_another_host() {
    let (peer, evil) =
        (Peer::saying(answer("200 OK", "", "")).await, Peer::saying(answer("200 OK", "", "")).await);
    let (_, upstreams) = with_token(&format!("{}/base", peer.url()), TokenHeader::default());
    let evil_host = evil.addr;
    for path in [
        format!("//{evil_host}/"),
        format!("/\\\\\\\\{evil_host}/"),
        format!("http://{evil_host}/"),
        format!("@{evil_host}/"),
        format!(":80@{evil_host}/"),
        "/../admin".into(),
        "/%2e%2e/admin".into(),
        "/x/../../admin".into(),
        "/.. ".into(),
    ] {
        let request = payload(&format!(r#"{{"method":"GET","path":"{path}"}}"#));
        assert_eq!(upstreams.check(&request, &BTreeMap::new()).unwrap_err().field, "request.path", "{path}");
        let outcome = upstreams.carry(crate::call(&request, "op-1")).await;
        assert!(matches!(outcome.verdict, tidegate_core::Verdict::Rejected(_)), "{outcome:?}");
    }
    assert_eq!((peer.seen().len(), evil.seen().len()), (0, 0));
}
