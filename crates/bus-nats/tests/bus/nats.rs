//! The suites that every bus must pass, and what is particular to NATS: permissions, credentials,
//! its own bounds.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use tidegate_bus::{
    Bus, BusError, BusErrorKind, BusEvent, BusFuture, BusSubscription, Delivery, FilterToken, Subject,
    SubjectFilter,
};
use tidegate_bus_nats::NatsBus;
use tidegate_contract::bus::{BusBackend, BusServer};
use tidegate_fixture::nats::NatsServer;
use tokio::time::timeout;

struct NatsBackend {
    url: String,
    server: Mutex<NatsServer>,
}

impl NatsBackend {
    fn new() -> Self {
        let server = NatsServer::start();
        Self { url: server.url(), server: Mutex::new(server) }
    }
}

async fn connect(url: &str) -> Result<Arc<dyn Bus>, BusError> {
    Ok(Arc::new(NatsBus::connect(url).await?))
}

impl BusBackend for NatsBackend {
    fn connect(&self) -> BusFuture<'_, Arc<dyn Bus>> {
        Box::pin(connect(&self.url))
    }
}

impl BusServer for NatsBackend {
    fn kill(&self) {
        self.server.lock().unwrap().kill();
    }

    fn restart(&self) {
        self.server.lock().unwrap().restart();
    }
}

tidegate_contract::bus_server_suites!(NatsBackend::new());

/// Users: one may use a part of the subjects, one not even its inbox.
const USERS: &str = r#"
authorization {
  users = [
    { user: all, password: "p@ss" }
    { user: limited, password: pw, permissions: {
      publish: ["tg.allowed", "_INBOX.>"], subscribe: ["tg.allowed", "_INBOX.>"] } }
    { user: no_inbox, password: pw, permissions: { publish: ["tg.>"], subscribe: ["tg.>"] } }
  ]
}
"#;

fn subject(tokens: &[&str]) -> Subject {
    Subject::new(tokens).unwrap()
}

async fn next(subscription: &mut BusSubscription) -> Option<BusEvent> {
    timeout(Duration::from_secs(20), subscription.next()).await.expect("an event in time")
}

fn text(event: Option<BusEvent>) -> Bytes {
    match event {
        Some(BusEvent::Message(message)) => message.payload,
        other => panic!("{other:?} is no message"),
    }
}

/// HYD-12, HYD-23: a question from one node finds that no source is there, and finds one that
/// subscribed on another node.
#[tokio::test]
async fn hyd_12_hyd_23_nodes_reach_each_other_and_notice_absence() {
    let server = NatsServer::start();
    let (asking, source) = (connect(&server.url()).await.unwrap(), connect(&server.url()).await.unwrap());
    let question = subject(&["tg", "hydration", "acme", "order", "unknown"]);
    assert_eq!(asking.publish(&question, Bytes::new()).await.unwrap(), Delivery::NoSubscriber);
    let mut questions = source.subscribe(&(&question).into()).await.unwrap();
    assert_eq!(asking.publish(&question, Bytes::from_static(b"7")).await.unwrap(), Delivery::Received);
    assert_eq!(text(next(&mut questions).await), "7");
}

/// A denied subscription fails; a denied publication fails once the denial has arrived. What is
/// allowed works beside it.
#[tokio::test]
async fn what_the_server_forbids_is_denied() {
    let server = NatsServer::start_with(USERS);
    let bus = connect(&server.url_for("limited", "pw")).await.unwrap();
    let allowed = subject(&["tg", "allowed"]);
    let forbidden = subject(&["tg", "forbidden"]);
    let mut subscription = bus.subscribe(&(&allowed).into()).await.unwrap();
    let denied = bus.subscribe(&(&forbidden).into()).await.unwrap_err();
    assert_eq!(denied.kind(), BusErrorKind::Denied, "{denied}");
    let until_denied = async {
        loop {
            match bus.publish(&forbidden, Bytes::new()).await {
                Ok(_) => {}
                Err(error) => return error,
            }
        }
    };
    let denied = timeout(Duration::from_secs(20), until_denied).await.expect("a denial");
    assert_eq!(denied.kind(), BusErrorKind::Denied, "{denied}");
    assert_eq!(bus.publish(&allowed, Bytes::from_static(b"fine")).await.unwrap(), Delivery::Received);
    assert_eq!(text(next(&mut subscription).await), "fine");
}

#[tokio::test]
async fn wrong_credentials_and_a_closed_inbox_are_denied() {
    let server = NatsServer::start_with(USERS);
    for (user, password) in [("all", "wrong"), ("no_inbox", "pw")] {
        let denied = connect(&server.url_for(user, password)).await.err().expect("a refusal");
        assert_eq!(denied.kind(), BusErrorKind::Denied, "{denied}");
    }
    assert!(connect(&server.url_for("all", "p%40ss")).await.is_ok());
    let token = NatsServer::start_with("authorization { token: \"t0k\" }\n");
    assert!(connect(&token.url().replace("nats://", "nats://t0k@")).await.is_ok());
}

/// HYD-26: a server may accept less than the port does.
#[tokio::test]
async fn the_servers_own_bound_counts_too() {
    let server = NatsServer::start_with("max_payload: 1000\n");
    let bus = connect(&server.url()).await.unwrap();
    let refused = bus.publish(&subject(&["tg"]), Bytes::from(vec![7; 1_001])).await.unwrap_err();
    assert_eq!(refused.kind(), BusErrorKind::TooLarge, "{refused}");
}

/// A client that does not encode its subjects disturbs no one.
#[tokio::test]
async fn a_foreign_message_is_dropped() {
    let server = NatsServer::start();
    let bus = connect(&server.url()).await.unwrap();
    let mut subscription =
        bus.subscribe(&SubjectFilter::new(["tg".into(), FilterToken::Rest]).unwrap()).await.unwrap();
    let client = async_nats::connect(server.url()).await.unwrap();
    for foreign in ["tg.%zz", "tg.ä", "tg._x"] {
        client.publish(foreign, Bytes::from_static(b"foreign")).await.unwrap();
    }
    client.publish("tg.own", Bytes::from_static(b"own")).await.unwrap();
    client.flush().await.unwrap();
    assert_eq!(text(next(&mut subscription).await), "own");
}

/// A server that goes away while callers publish: every call returns, none waits for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_call_hangs_when_the_server_dies_under_load() {
    let mut server = NatsServer::start();
    let bus = connect(&server.url()).await.unwrap();
    let on = subject(&["tg", "load"]);
    let _subscription = bus.subscribe(&(&on).into()).await.unwrap();
    let callers: Vec<_> = (0..50)
        .map(|_| {
            let (bus, on) = (Arc::clone(&bus), on.clone());
            tokio::spawn(async move {
                while let Ok(Delivery::Received) = bus.publish(&on, Bytes::from_static(b"x")).await {}
            })
        })
        .collect();
    server.kill();
    for caller in callers {
        timeout(Duration::from_secs(20), caller).await.expect("a call hangs").unwrap();
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unavailable() {
    let mut server = NatsServer::start();
    server.kill();
    let error = connect(&server.url()).await.err().unwrap();
    assert_eq!(error.kind(), BusErrorKind::Unavailable, "{error}");
}
