//! Traces of operations, as a collector gets them: OTLP over HTTP, as JSON.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use serde_json::{Value, json};
use tidegate_server::Server;
use tidegate_server::config::{Config, Overrides};
use tidegate_sim::HttpSimOptions;
use tokio::sync::mpsc;

use crate::support::{World, operation, within};

/// A collector that answers with a status, and hands on what it gets.
struct TestCollector {
    url: String,
    received: mpsc::UnboundedReceiver<(String, String)>,
}

type Received = mpsc::UnboundedSender<(String, String)>;

async fn receive(
    State((status, out)): State<(u16, Received)>,
    headers: HeaderMap,
    body: String,
) -> StatusCode {
    let kind = headers["content-type"].to_str().unwrap().to_owned();
    out.send((kind, body)).unwrap();
    StatusCode::from_u16(status).unwrap()
}

impl TestCollector {
    async fn start(status: u16) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (out, received) = mpsc::unbounded_channel();
        let router = Router::new().route("/v1/traces", post(receive)).with_state((status, out));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, received }
    }

    fn config(&self) -> String {
        format!("[telemetry]\notlp_endpoint = \"{}/\"\nservice_name = \"orders\"\n", self.url)
    }

    /// The spans of everything that it gets next.
    async fn spans(&mut self) -> (Vec<Value>, String) {
        let (kind, body) = self.received.recv().await.unwrap();
        assert_eq!(kind, "application/json");
        let all: Value = serde_json::from_str(&body).unwrap();
        let resource = &all["resourceSpans"][0];
        assert_eq!(attributes(&resource["resource"])["service.name"], "orders");
        assert_eq!(resource["scopeSpans"][0]["scope"]["name"], "tidegate");
        (resource["scopeSpans"][0]["spans"].as_array().unwrap().clone(), body)
    }
}

/// The attributes of a span by name. A value has one type, and whole numbers are texts.
fn attributes(of: &Value) -> BTreeMap<String, String> {
    let read = |one: &Value| {
        let value = one["value"].as_object().unwrap();
        assert_eq!(value.len(), 1, "{one}");
        let text = value.get("stringValue").or(value.get("intValue")).unwrap().as_str().unwrap();
        (one["key"].as_str().unwrap().to_owned(), text.to_owned())
    };
    of["attributes"].as_array().into_iter().flatten().map(read).collect()
}

/// The start and the end of a span, which are nanoseconds since 1970, as texts.
fn times(span: &Value) -> (u64, u64) {
    let [from, to] =
        ["startTimeUnixNano", "endTimeUnixNano"].map(|name| span[name].as_str().unwrap().parse().unwrap());
    assert!(from <= to && from > 1_000_000_000_000_000_000, "{span}");
    (from, to)
}

fn assert_hex(id: &Value, len: usize) {
    let text = id.as_str().unwrap();
    assert!(
        text.len() == len && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)),
        "{id}"
    );
    assert!(text.bytes().any(|b| b != b'0'), "{id}");
}

fn named<'a>(spans: &'a [Value], name: &str) -> Vec<&'a Value> {
    spans.iter().filter(|span| span["name"] == name).collect()
}

/// OPS-24: an operation that is tried twice is one trace: the operation, and both of its attempts
/// with upstream, status and reason below it; nothing of its request is in it.
#[tokio::test]
async fn ops_24_an_operation_is_one_trace() {
    within(async {
        let mut collector = TestCollector::start(200).await;
        let sim = HttpSimOptions { fail_rate: 1.0, ..HttpSimOptions::default() };
        let world = World::with(&collector.config(), sim).await;
        let mut failing = operation("shop:1");
        failing["max_attempts"] = 2.into();
        failing["request"] = json!({
            "method": "POST", "path": "/pay/hunter2?token=hunter2", "headers": { "x-tag": "hunter2" },
            "body": { "password": "hunter2" },
        });
        let id = world.submit(failing).await;
        assert_eq!(world.wait_until_ended(&id).await["state"], "failed");
        let (spans, body) = collector.spans().await;
        assert!(!body.contains("hunter2"), "{body}");
        for span in &spans {
            assert_hex(&span["traceId"], 32);
            assert_hex(&span["spanId"], 16);
            assert_eq!(span["traceId"], spans[0]["traceId"], "one trace");
            times(span);
        }
        let [root] = named(&spans, "operation")[..] else { panic!("{body}") };
        assert!(root.get("parentSpanId").is_none() && root["kind"] == 1, "{root}");
        assert_eq!(root["status"]["code"], 2, "it failed");
        let told = attributes(root);
        let expected = [
            ("tidegate.operation.id", &*id),
            ("tidegate.group", "shop:1"),
            ("tidegate.kind", "http"),
            ("tidegate.state", "failed"),
            ("tidegate.attempts", "2"),
        ];
        for (name, value) in expected {
            assert_eq!(told[name], value, "{root}");
        }
        assert!(told["tidegate.request_id"].starts_with("req_"), "{root}");
        let attempts = named(&spans, "attempt");
        assert_eq!(attempts.len(), 2, "{body}");
        for (number, attempt) in (1..).zip(&attempts) {
            assert_eq!((&attempt["parentSpanId"], &attempt["kind"]), (&root["spanId"], &json!(3)));
            let told = attributes(attempt);
            assert_eq!(
                (&*told["tidegate.attempt"], &*told["tidegate.upstream"]),
                (&*number.to_string(), "echo")
            );
            assert_eq!(told["http.response.status_code"], "500", "{attempt}");
            let ((from, to), (start, end)) = (times(root), times(attempt));
            assert!(from <= start && end <= to, "{attempt} is part of {root}");
        }
        assert_eq!(attributes(attempts[1])["tidegate.wait.reason"], "retry");
        assert_ne!(attempts[0]["spanId"], attempts[1]["spanId"]);
    })
    .await;
}

/// OPS-24: those that wait for their turn say so; the last traces are sent when a server stops.
#[tokio::test]
async fn ops_24_the_last_traces_are_sent_at_the_end() {
    within(async {
        let mut collector = TestCollector::start(200).await;
        let world = World::with(&collector.config(), HttpSimOptions::default()).await;
        world.post("/v1/groups/g/pause", json!({ "create": true })).await;
        let ids = [world.submit(operation("g")).await, world.submit(operation("g")).await];
        tokio::time::sleep(Duration::from_millis(10)).await;
        world.post("/v1/groups/g/resume", "").await;
        for id in &ids {
            assert_eq!(world.wait_until_ended(id).await["state"], "succeeded");
        }
        world.server.shutdown().await;
        let mut spans = Vec::new();
        while named(&spans, "operation").len() < 2 {
            spans.extend(collector.spans().await.0);
        }
        let of = |name: &str| named(&spans, name).len();
        assert_eq!((of("attempt"), of("wait for turn"), of("completion")), (2, 1, 0), "{spans:?}");
        let roots = named(&spans, "operation");
        assert_ne!(roots[0]["traceId"], roots[1]["traceId"]);
        assert_eq!(roots[0]["status"]["code"], 1);
    })
    .await;
}

/// A collector that takes nothing holds up nothing; what it refused is counted. With a ratio of
/// zero there are no traces.
#[tokio::test]
async fn traces_hold_up_nothing() {
    within(async {
        let mut collector = TestCollector::start(400).await;
        let world = World::with(&collector.config(), HttpSimOptions::default()).await;
        let id = world.submit(operation("g")).await;
        assert_eq!(world.wait_until_ended(&id).await["state"], "succeeded");
        collector.spans().await;
        let dropped = "tidegate_traces_dropped_total{reason=\"refused\"}";
        while !metrics(&world.server).await.contains(dropped) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let none = format!("{}sampling_ratio = 0\n", collector.config());
        let world = World::with(&none, HttpSimOptions::default()).await;
        let id = world.submit(operation("g")).await;
        world.wait_until_ended(&id).await;
        world.server.shutdown().await;
        assert!(collector.received.try_recv().is_err(), "nothing is sampled");
        let away = "[telemetry]\notlp_endpoint = \"http://127.0.0.1:9\"\n";
        let world = World::with(away, HttpSimOptions::default()).await;
        let id = world.submit(operation("g")).await;
        assert_eq!(world.wait_until_ended(&id).await["state"], "succeeded");
        world.server.shutdown().await;
    })
    .await;
}

async fn metrics(server: &Server) -> String {
    reqwest::get(format!("http://{}/metrics", server.addr)).await.unwrap().text().await.unwrap()
}

/// The keys of `[telemetry]` are checked.
#[test]
fn the_collector_is_checked() {
    let read = |text: &str| Config::parse("test.toml", text, &|_| None, &Overrides::default(), &[]);
    for wrong in [
        "otlp_endpoint = \"collector:4318\"",
        "otlp_endpoint = \"http://user:secret@collector:4318\"",
        "sampling_ratio = 1.5",
        "service_name = \"\"",
        "endpoint = \"http://127.0.0.1:4318\"",
    ] {
        let problems = read(&format!("[telemetry]\n{wrong}\n")).unwrap_err().to_string();
        assert!(problems.contains("test.toml:2") && !problems.contains("secret"), "{problems}");
    }
}
