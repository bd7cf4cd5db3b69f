//! Which requests are the same, and which do not count as requests with a key.

use http::{Method, Request};
use http_body_util::Full;
use tidegate_idempotency::{BodyComparison, KeyAlphabet, Policy, RefusalDialect};

use crate::world::{Handler, World, post};

/// IDM-1: without a key, or with another method, a request passes as often as it comes.
#[tokio::test(start_paused = true)]
async fn without_a_key_everything_passes() {
    let world = World::new(Handler::creating(), Policy::default());
    for nth in 1..=2 {
        let answer = world.send(Request::post("/x").body(Full::from("a")).unwrap()).await;
        assert_eq!((answer.status, answer.text()), (201, format!("made {nth}").as_str()));
    }
    for nth in 3..=4 {
        let mut put = post("k", "a");
        *put.method_mut() = Method::PUT;
        assert_eq!(world.send(put).await.text(), format!("made {nth}"));
    }
    assert_eq!(world.store.fault_counts().calls, 0, "the store was not asked");
}

/// IDM-1, IDM-3: a new key runs once; the retry gets the same status and body, marked (IDM-12).
#[tokio::test(start_paused = true)]
async fn a_repeat_gets_the_first_answer() {
    let world = World::new(Handler::creating(), Policy::default());
    let first = world.post("k", "{}").await;
    assert_eq!((first.status, first.text(), first.is_replay()), (201, "made 1", false));
    for _ in 0..3 {
        let again = world.post("k", "{}").await;
        assert_eq!((again.status, again.text(), again.is_replay()), (201, "made 1", true));
    }
    assert_eq!(world.handler.runs(), 1);
    assert_eq!(world.handler.bodies(), ["{}"]);
}

/// IDM-3, IDM-20: another body is a conflict, by one space or by the order of its members.
#[tokio::test(start_paused = true)]
async fn another_body_is_a_conflict() {
    let world = World::new(Handler::creating(), Policy::default());
    world.post("k", "{\"a\":1,\"b\":2}").await;
    for other in ["{\"a\":1,\"b\":2} ", "{\"b\":2,\"a\":1}", ""] {
        let answer = world.post("k", other).await;
        assert_eq!((answer.status, answer.code()), (409, "IDEMPOTENCY_KEY_CONFLICT"), "{other}");
    }
    assert_eq!(world.handler.runs(), 1);
}

/// IDM-3: a conflict is also reported while the first request is in flight; waiting with another
/// body would be useless.
#[tokio::test(start_paused = true)]
async fn another_body_in_flight_is_a_conflict_too() {
    let world = World::new(Handler::slow(crate::world::secs(5)), Policy::default());
    let (first, other) = tokio::join!(world.post("k", "a"), async {
        tokio::task::yield_now().await;
        world.post("k", "b").await
    });
    assert_eq!((first.status, other.code()), (201, "IDEMPOTENCY_KEY_CONFLICT"));
}

/// IDM-2, IDM-20: another path or method is another key; another query or content type is a
/// conflict. Never a replay.
#[tokio::test(start_paused = true)]
async fn the_route_is_part_of_the_key_and_the_query_of_what_is_compared() {
    let policy = Policy::default().with_methods(vec![Method::POST, Method::PATCH]);
    let world = World::new(Handler::creating(), policy);
    world.post("k", "a").await;
    let mut elsewhere = post("k", "a");
    *elsewhere.uri_mut() = "/api/v1/orders".parse().unwrap();
    assert_eq!(world.send(elsewhere).await.text(), "made 2");
    let mut patch = post("k", "a");
    *patch.method_mut() = Method::PATCH;
    assert_eq!(world.send(patch).await.text(), "made 3");
    let mut asked = post("k", "a");
    *asked.uri_mut() = "/api/v1/items?dry=1".parse().unwrap();
    let asked = world.send(asked).await;
    assert_eq!(asked.code(), "IDEMPOTENCY_KEY_CONFLICT");
    assert_eq!(asked.headers["idempotency-hint"], "the first request with this key had another query");
    let mut typed = post("k", "a");
    typed.headers_mut().insert("content-type", "text/plain".parse().unwrap());
    let typed = world.send(typed).await;
    assert_eq!(typed.code(), "IDEMPOTENCY_KEY_CONFLICT");
    assert_eq!(typed.headers["idempotency-hint"], "the first request with this key had another content type");
    assert_eq!(world.handler.runs(), 3);
}

/// IDM-2: another spelling of the same path is the same route: a repeat there runs nothing.
#[tokio::test(start_paused = true)]
async fn idm_2_one_path_has_one_name_however_it_is_spelled() {
    let world = World::new(Handler::creating(), Policy::default());
    let at = |path: &str| {
        let mut request = post("k", "a");
        *request.uri_mut() = path.parse().unwrap();
        request
    };
    assert_eq!(world.send(at("/pay/card")).await.text(), "made 1");
    for path in ["/%70ay/card", "//pay/card", "/pay/./card", "/x/%2e%2e/pay/card"] {
        assert!(world.send(at(path)).await.is_replay(), "{path}");
    }
    for (nth, path) in ["/pay%2fcard", "/pay/card/", "/Pay/card"].into_iter().enumerate() {
        assert_eq!(world.send(at(path)).await.text(), format!("made {}", nth + 2), "{path}");
    }
    assert_eq!(world.handler.runs(), 4);
}

/// IDM-2: two callers with one key and one body are two requests; an unidentified caller is
/// rejected.
#[tokio::test(start_paused = true)]
async fn callers_never_see_each_others_answers() {
    let world = World::new(Handler::creating(), Policy::default());
    let of = |tenant: &str| {
        let mut request = post("k", "a");
        request.headers_mut().insert("x-tenant", tenant.parse().unwrap());
        request
    };
    assert_eq!(world.send(of("one")).await.text(), "made 1");
    assert_eq!(world.send(of("two")).await.text(), "made 2");
    assert_eq!(world.send(of("one")).await.text(), "made 1");
    let nobody = world.send(of("")).await;
    assert_eq!((nobody.status, nobody.code()), (400, "IDEMPOTENCY_SCOPE_MISSING"));
    assert_eq!(world.handler.runs(), 2);
}

/// IDM-16, IDM-20: `"abc"` is the key `abc`, and `Abc` is another one; an invalid key is rejected
/// before its body is read, and reported as it was sent.
#[tokio::test(start_paused = true)]
async fn keys_are_read_as_they_should_be() {
    let world = World::new(Handler::creating(), Policy::default());
    world.post("\"abc\"", "a").await;
    assert!(world.post("abc", "a").await.is_replay());
    assert!(!world.post("Abc", "a").await.is_replay(), "case matters");
    let wrong = world.post("a.b", "a").await;
    assert_eq!(wrong.status, 400);
    assert_eq!(
        wrong.text(),
        "{\"detail\":\"Invalid idempotency key format. Key must be 1-255 characters long and contain only letters, \
         numbers, hyphens, and underscores\",\"error_code\":\"INVALID_IDEMPOTENCY_KEY\",\"idempotency_key\":\"a.b\"}"
    );
    assert_eq!(world.handler.runs(), 2);
}

/// IDM-1: the keys of clients that were written for other services are accepted if configured;
/// otherwise the refusal names the setting.
#[tokio::test(start_paused = true)]
async fn printable_keys_are_taken_by_choice() {
    let any = Policy::default().with_key_alphabet(KeyAlphabet::Printable);
    let world = World::new(Handler::creating(), any);
    for key in ["order:7", "YWJj+/==", "a b"] {
        assert_eq!(world.post(key, "a").await.status, 201, "{key}");
        assert!(world.post(key, "a").await.is_replay(), "{key}");
    }
    let world = World::new(Handler::creating(), Policy::default());
    let refused = world.post("order:7", "a").await;
    assert_eq!((refused.status, refused.code()), (400, "INVALID_IDEMPOTENCY_KEY"));
    let hint = refused.headers["idempotency-hint"].to_str().unwrap();
    assert!(hint.contains("key_alphabet = \"printable\""), "{hint}");
    let ietf = World::new(Handler::creating(), Policy::default().with_dialect(RefusalDialect::Ietf));
    ietf.post("\"order:7\";v=1", "a").await;
    assert!(ietf.post("\"order:7\"", "a").await.is_replay());
}

/// IDM-2, IDM-4: what does not count is not compared, and a conflict names what differs.
#[tokio::test(start_paused = true)]
async fn a_conflict_says_what_differs() {
    let by_value =
        Policy::default().with_fingerprint(BodyComparison::Json).with_dialect(RefusalDialect::Ietf);
    let world = World::new(Handler::creating(), by_value);
    world.post("k", r#"{"sku":1,"count":2}"#).await;
    assert!(world.post("k", r#"{ "count": 2, "sku": 1 }"#).await.is_replay());
    let other = world.post("k", r#"{"sku":1,"count":3}"#).await;
    assert_eq!(other.status, 422);
    let problem: serde_json::Value = serde_json::from_str(other.text()).unwrap();
    assert_eq!(problem["hint"], "the first request with this key had another body");
    let form = |boundary: &str| {
        let mut request = post("form", &format!("--{boundary}\r\n\r\nfile\r\n--{boundary}--\r\n"));
        let kind = format!("multipart/form-data; boundary={boundary}");
        request.headers_mut().insert("content-type", kind.parse().unwrap());
        request
    };
    world.send(form("first")).await;
    assert!(world.send(form("second-try")).await.is_replay());
    assert_eq!(world.handler.runs(), 2);
}

/// IDM-16: the other dialect, through the layer.
#[tokio::test(start_paused = true)]
async fn the_ietf_dialect_answers_422() {
    let world = World::new(Handler::creating(), Policy::default().with_dialect(RefusalDialect::Ietf));
    world.post("k", "a").await;
    let answer = world.post("k", "b").await;
    assert_eq!((answer.status, answer.code()), (422, "IDEMPOTENCY_KEY_CONFLICT"));
    assert_eq!(answer.headers["content-type"], "application/problem+json");
    let wrong = world.post("", "b").await;
    assert_eq!((wrong.status, wrong.code()), (400, "INVALID_IDEMPOTENCY_KEY"));
}

/// A route may require a key.
#[tokio::test(start_paused = true)]
async fn a_key_can_be_required() {
    let world = World::new(Handler::creating(), Policy::default().with_required(true));
    let answer = world.send(Request::post("/x").body(Full::from("a")).unwrap()).await;
    assert_eq!((answer.status, answer.code()), (400, "IDEMPOTENCY_KEY_REQUIRED"));
    assert_eq!(world.handler.runs(), 0);
}
