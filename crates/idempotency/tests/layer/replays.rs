//! What a replay contains of the first response: what matters, byte for byte, and nothing specific
//! to the first request.

use std::sync::Arc;

use bytes::Bytes;
use http::header::HeaderName;
use http::{HeaderValue, StatusCode};
use tidegate_idempotency::{CallerScope, KeyStore, Policy, SealingKeys};
use tidegate_store::SharedState;

use crate::world::{Handler, World, text};

fn with_headers(headers: &'static [(&'static str, &'static [u8])]) -> Handler {
    Handler::new(move |_| async move {
        let mut response = text(StatusCode::CREATED, "made");
        for (name, value) in headers {
            let value = HeaderValue::from_bytes(value).unwrap();
            response.headers_mut().append(HeaderName::from_static(name), value);
        }
        Ok(response)
    })
}

/// IDM-19: a replay has no cookie, no date, nothing of the connection; repeated headers come in
/// order; `no-store` does not switch it off.
#[tokio::test(start_paused = true)]
async fn a_replay_has_the_headers_that_matter() {
    let handler = with_headers(&[
        ("set-cookie", b"session=1"),
        ("date", b"Sun, 15 Nov 2026 10:00:00 GMT"),
        ("connection", b"x-hop"),
        ("x-hop", b"1"),
        ("location", b"/items/7"),
        ("link", b"<a>, <b>"),
        ("link", b"<c>"),
        ("x-odd", b"\xfe"),
        ("cache-control", b"no-store"),
    ]);
    let world = World::new(handler, Policy::default());
    let first = world.post("k", "a").await;
    assert_eq!(first.headers["set-cookie"], "session=1", "the first client gets all of it");
    let again = world.post("k", "a").await;
    assert!(again.is_replay());
    for gone in ["set-cookie", "date", "connection", "x-hop"] {
        assert!(!again.headers.contains_key(gone), "{gone}");
    }
    let links: Vec<_> = again.headers.get_all("link").iter().collect();
    assert_eq!(links, ["<a>, <b>", "<c>"]);
    assert_eq!(again.headers["x-odd"].as_bytes(), b"\xfe");
    assert_eq!((&again.headers["location"], again.text()), (&HeaderValue::from_static("/items/7"), "made"));
}

const NAME: &str = "acme POST /api/v1/items k";

/// IDM-19: a damaged stored response is not served, and nothing runs again.
#[tokio::test(start_paused = true)]
async fn a_damaged_answer_is_not_served() {
    let whole = {
        let world = World::new(Handler::creating(), Policy::default());
        world.post("k", "a").await;
        stored(&world).await
    };
    for damaged in
        [whole.slice(..whole.len() - 1), Bytes::new(), Bytes::from_static(b"\x63 of a newer program")]
    {
        let world = World::new(Handler::creating(), Policy::default());
        world.post("k", "a").await;
        replace(&world, damaged).await;
        let answer = world.post("k", "a").await;
        assert_eq!((answer.status, answer.code()), (500, "IDEMPOTENCY_ANSWER_DAMAGED"));
        assert_eq!(world.handler.runs(), 1);
    }
}

async fn stored(world: &World) -> Bytes {
    let record = world.store.get_record(NAME).await.unwrap().unwrap();
    match record.stage {
        tidegate_core::shared::record::RecordStage::Completed(answer) => answer,
        tidegate_core::shared::record::RecordStage::Processing { .. } => panic!("not answered"),
    }
}

/// Replaces a stored response with other bytes.
async fn replace(world: &World, bytes: Bytes) {
    use tidegate_core::shared::record::{ForgetTarget, OnLapse, RecordClaim};
    let record = world.store.get_record(NAME).await.unwrap().unwrap();
    world.store.forget_record(NAME, ForgetTarget::Answer).await.unwrap();
    let claim = RecordClaim {
        fingerprint: record.fingerprint,
        token: record.token,
        lease: crate::world::secs(1),
        ttl: crate::world::secs(3_600),
        on_lapse: OnLapse::TakeOver,
    };
    world.store.claim_record(NAME, claim).await.unwrap();
    assert!(world.store.complete_record(NAME, record.token, bytes).await.unwrap());
}

/// Stored responses can be sealed: the store contains nothing of the body, and only a configured
/// key opens it.
#[tokio::test(start_paused = true)]
async fn answers_can_be_sealed() {
    let store = crate::world::store();
    let sealed = |key: u8| KeyStore::sealed(Arc::clone(&store) as _, SealingKeys::new(&[[key; 32]]).unwrap());
    let handler = Handler::creating();
    let world = |gate| World::behind(gate, Arc::clone(&store), handler.clone(), Policy::default());
    world(sealed(1)).post("k", "a").await;
    assert!(world(sealed(1)).post("k", "a").await.is_replay());
    let bytes = stored(&world(sealed(1))).await;
    assert!(!bytes.windows(4).any(|window| window == b"made"));
    for gate in [sealed(2), KeyStore::new(Arc::clone(&store) as _)] {
        assert_eq!(world(gate).post("k", "a").await.code(), "IDEMPOTENCY_ANSWER_DAMAGED");
    }
    assert_eq!(handler.runs(), 1);
}

/// IDM-22: operators list keys, show them without bodies, release claims and expire responses; a
/// handler that still works on a released key loses it.
#[tokio::test(start_paused = true)]
async fn operators_see_and_free_keys() {
    use tidegate_core::shared::record::ForgetOutcome;
    use tidegate_idempotency::{IdempotencyKey, KeyFilter, KeyState};
    let world = World::new(Handler::slow(crate::world::secs(5)), Policy::default());
    world.post("done", "a").await;
    let busy = world.clone();
    let late = tokio::spawn(async move { busy.post("busy", "a").await });
    tokio::time::sleep(crate::world::secs(1)).await;
    let keys = world.gate.keys();
    let page = keys.list(&KeyFilter::default(), None, 10).await.unwrap();
    let listed: Vec<_> = page.keys.iter().map(|listed| listed.name.key.as_str()).collect();
    assert_eq!((listed, page.next), (vec!["busy", "done"], None));
    let strangers = KeyFilter { scope: Some(CallerScope::named("other")), ..KeyFilter::default() };
    assert!(keys.list(&strangers, None, 10).await.unwrap().keys.is_empty());
    let only = KeyFilter { key: IdempotencyKey::new("done"), ..KeyFilter::default() };
    let done = keys.list(&only, None, 10).await.unwrap().keys.remove(0);
    assert!(matches!(done.state, KeyState::Completed(_)));
    let shown = keys.show(&done.name).await.unwrap().unwrap();
    assert_eq!((shown.answer, shown.damaged), (Some((201, Some("made 1".len()))), None));
    assert_eq!(keys.release(&done.name, "ops").await.unwrap(), ForgetOutcome::Mismatch);
    assert_eq!(keys.expire(&done.name, "ops").await.unwrap(), ForgetOutcome::Gone);
    assert_eq!(keys.expire(&done.name, "ops").await.unwrap(), ForgetOutcome::Absent);
    assert_eq!(keys.show(&done.name).await.unwrap(), None);
    let busy = page.keys[0].name.clone();
    assert_eq!(keys.release(&busy, "ops").await.unwrap(), ForgetOutcome::Gone);
    assert_eq!(world.post("busy", "a").await.text(), "made 3", "free for the next");
    assert!(late.await.unwrap().text().starts_with("made"));
}
