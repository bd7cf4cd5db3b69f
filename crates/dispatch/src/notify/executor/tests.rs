//! Notifications to a receiver on loopback that verifies each of them.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use http::HeaderValue;
use serde_json::json;
use tidegate_core::Time;
use tidegate_images::{Webhook, WebhookKeys};

use super::*;
use crate::notify::{GenerationEnd, NotificationOperation};

const SECRET: &str = "whsec_b3RoZXJvdGhlcm90aGVyb3RoZXJvdGhlcg==";
const OLDER: &str = "whsec_b2xkZXJvbGRlcm9sZGVyb2xkZXJvbGRlcg==";

/// A receiver with responses to give, and what it received.
#[derive(Default)]
struct Receiver {
    responses: Mutex<Vec<(u16, &'static str, &'static str)>>,
    received: Mutex<Vec<(HeaderMap, Bytes)>>,
}

impl Receiver {
    async fn start(responses: &[(u16, &'static str, &'static str)]) -> (Arc<Self>, String) {
        let receiver = Arc::new(Self::default());
        receiver.responses.lock().unwrap().extend(responses.iter().rev());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook?key=hunter2", listener.local_addr().unwrap());
        let router = Router::new().fallback(receive).with_state(Arc::clone(&receiver));
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        (receiver, url)
    }

    fn received(&self) -> Vec<(HeaderMap, Bytes)> {
        self.received.lock().unwrap().clone()
    }
}

async fn receive(State(receiver): State<Arc<Receiver>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    assert_eq!((head.method.as_str(), head.uri.to_string().as_str()), ("POST", "/hook?key=hunter2"));
    let body = axum::body::to_bytes(body, 1_000_000).await.unwrap();
    receiver.received.lock().unwrap().push((head.headers, body));
    let next = receiver.responses.lock().unwrap().pop();
    let Some((status, name, value)) = next else { return std::future::pending().await };
    let mut response = StatusCode::from_u16(status).unwrap().into_response();
    response.headers_mut().insert(name, HeaderValue::from_static(value));
    response
}

fn config() -> NotifierConfig {
    let secrets = [SECRET, OLDER].map(|text| StandardSecret::parse(text).unwrap()).to_vec();
    NotifierConfig::new(secrets).with_private(true).with_timeout(Duration::from_millis(300))
}

fn operation(url: &str) -> NotificationOperation {
    let data = json!({ "id": "op_7", "status": "completed", "images": ["https://a.example/0.png"] });
    let end = GenerationEnd::Completed;
    Notification::new(url, "op_7", end, now(), &data).unwrap().to_operation().unwrap()
}

fn now() -> Time {
    Time::from_millis(1_780_000_000_000)
}

fn verify(received: &(HeaderMap, Bytes), secret: &str, at: Time) -> bool {
    let keys = WebhookKeys::Standard(vec![StandardSecret::parse(secret).unwrap()]);
    let webhook = Webhook { headers: &received.0, body: &received.1, token: None, received_at: at };
    standard::verify(&webhook, &keys).is_ok()
}

async fn attempt(notifier: &Notifier, payload: &[u8], attempt: u16, at: Time) -> Outcome {
    let outcome = notifier.carry(Call::new("op_9", payload, at).with_attempt(attempt)).await;
    let printed = format!("{outcome:?} {}", String::from_utf8_lossy(&outcome.body));
    assert!(!printed.contains("hunter2") && !printed.contains("whsec_"), "{printed}");
    outcome
}

fn retried_after(outcome: &Outcome) -> Duration {
    match &outcome.verdict {
        Verdict::Retry { after: Some(after), .. } => *after,
        other => panic!("{other:?}"),
    }
}

/// DSP-2: an attempt a day later has the same id and body, and a new signature that is not stale;
/// during a rotation it verifies with either secret.
#[tokio::test]
async fn dsp_2_each_attempt_is_signed_when_it_is_sent() {
    let (receiver, url) = Receiver::start(&[(500, "a", "b"), (204, "a", "b")]).await;
    let notifier = Notifier::new(config()).unwrap();
    let payload = operation(&url).payload;
    let later = now().after(Duration::from_secs(24 * 3_600));
    let failed = attempt(&notifier, &payload, 1, now()).await;
    assert_eq!(failed.status, Some(500));
    let waits = retried_after(&failed);
    assert!(waits >= Duration::from_secs(5) && waits < Duration::from_secs(6), "{waits:?}");
    let done = attempt(&notifier, &payload, 2, later).await;
    assert_eq!((done.verdict, done.status), (Verdict::Done, Some(204)));
    let received = receiver.received();
    let [first, second] = &received[..] else { panic!("{}", received.len()) };
    assert_eq!((&first.0["webhook-id"], &first.1), (&second.0["webhook-id"], &second.1));
    assert_eq!(first.0["webhook-id"], "msg_op_7_generation_completed");
    assert_eq!(first.0["content-type"], "application/json");
    for secret in [SECRET, OLDER] {
        assert!(verify(first, secret, now()) && verify(second, secret, later));
        assert!(!verify(first, secret, later), "it is stale");
    }
    let body: serde_json::Value = serde_json::from_slice(&first.1).unwrap();
    assert_eq!((&body["type"], &body["data"]["id"]), (&json!("generation.completed"), &json!("op_7")));
}

/// DSP-2: whatever a receiver returns, the notification is sent again, later if it asks for that;
/// only 410 ends it. A redirect is not followed.
#[tokio::test]
async fn dsp_2_only_a_success_or_410_ends_it() {
    let elsewhere = ("location", "http://127.0.0.1:1/");
    let responses =
        [(302, elsewhere.0, elsewhere.1), (404, "a", "b"), (503, "retry-after", "600"), (410, "a", "b")];
    let (receiver, url) = Receiver::start(&responses).await;
    let notifier = Notifier::new(config()).unwrap();
    let payload = operation(&url).payload;
    for number in [1, 2] {
        retried_after(&attempt(&notifier, &payload, number, now()).await);
    }
    let throttled = attempt(&notifier, &payload, 1, now()).await;
    assert_eq!(retried_after(&throttled), Duration::from_secs(600));
    let gone = attempt(&notifier, &payload, 4, now()).await;
    assert!(matches!(gone.verdict, Verdict::Rejected(_)), "{gone:?}");
    let silent = attempt(&notifier, &payload, 5, now()).await;
    let Verdict::Retry { fault, .. } = &silent.verdict else { panic!("{silent:?}") };
    assert!(fault.may_have_happened, "it was sent");
    assert_eq!(receiver.received().len(), 5);

    let refused = attempt(&notifier, &operation("http://127.0.0.1:1/").payload, 1, now()).await;
    let Verdict::Retry { fault, .. } = &refused.verdict else { panic!("{refused:?}") };
    assert!(!fault.may_have_happened, "no connection was made");
}

/// DSP-2: a private address is refused at acceptance, and again when it is sent, by name too.
#[tokio::test]
async fn dsp_2_private_addresses_are_not_reached() {
    let (receiver, url) = Receiver::start(&[]).await;
    let notifier = Notifier::new(config().with_private(false)).unwrap();
    let payload = operation(&url).payload;
    assert_eq!(notifier.check(&payload, &BTreeMap::new()).unwrap_err().field, "notify_url");
    let outcome = attempt(&notifier, &payload, 1, now()).await;
    assert!(matches!(outcome.verdict, Verdict::Rejected(_)), "{outcome:?}");
    // A name that only the resolver knows to be private.
    let named: url::Url = url.replace("127.0.0.1", "localhost").parse().unwrap();
    let sent = notifier.transport.post(&named, HeaderMap::new(), Bytes::new(), config().timeout).await;
    let reason = sent.unwrap_err().reason;
    assert!(reason.contains("no public address"), "{reason}");
    assert!(receiver.received().is_empty());
}

#[test]
fn a_payload_is_checked_before_it_is_accepted() {
    let notifier = Notifier::new(config().with_at_once(3)).unwrap();
    let payload = operation("https://app.example/hook?key=hunter2").payload;
    let required = notifier.check(&payload, &BTreeMap::new()).unwrap();
    let charged: Vec<_> = required.charges.iter().map(|charge| &*charge.limit).collect();
    let defined: Vec<_> = notifier.limits().into_iter().map(|(name, _)| name).collect();
    assert_eq!(charged, ["notification", "notification/slots"]);
    assert_eq!(defined.iter().map(AsRef::as_ref).collect::<Vec<&str>>(), charged);
    assert_eq!(required.on_unknown, OnUnknown::Repeat);
    let line = notifier.request_line(&payload).unwrap();
    assert_eq!((line.method, line.path.as_str()), ("POST", "/hook"));
    assert_eq!(notifier.check(b"{}", &BTreeMap::new()).unwrap_err().field, "payload");
    for empty in
        [NotifierConfig::new(Vec::new()), config().with_at_once(0), config().with_timeout(Duration::ZERO)]
    {
        assert!(Notifier::new(empty).is_err());
    }
    assert!(!format!("{notifier:?}").contains("b3Ro"));
}
