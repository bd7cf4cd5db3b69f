//! Jobs that end elsewhere, over HTTP: a service that accepts a job calls back, or is polled.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use reqwest::{Client, Method};
use serde_json::{Value, json};
use tidegate_fixture::redis::RedisServer;
use tidegate_server::Server;
use tidegate_server::config::{Config, Overrides};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::support::{Answer, answer, within};

/// A service that accepts jobs with a 202 and an id.
#[derive(Clone, Default)]
struct JobService {
    /// Method and path of each request, the callback URL and token that came with it, and its body.
    seen: Arc<Mutex<Vec<Submitted>>>,
    /// The answers to polls, in order; the last one stays.
    polls: Arc<Mutex<Vec<Value>>>,
    /// Whether it calls back before it answers.
    calls_back_first: Arc<Mutex<bool>>,
    /// The values of the header `X-Hook`.
    hooks: Arc<Mutex<Vec<String>>>,
}

#[derive(Clone, Debug)]
struct Submitted {
    url: String,
    token: String,
    body: Value,
}

impl JobService {
    async fn start(self) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let router = Router::new().fallback(serve).with_state(self);
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        addr
    }

    async fn submitted(&self, count: usize) -> Submitted {
        loop {
            if let Some(found) = self.seen.lock().unwrap().get(count - 1) {
                return found.clone();
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

async fn serve(State(service): State<JobService>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    if head.method == Method::GET {
        let mut polls = service.polls.lock().unwrap();
        let next = if polls.len() > 1 { polls.remove(0) } else { polls[0].clone() };
        return Json(next).into_response();
    }
    let header = |name: &str| head.headers.get(name).map_or("", |value| value.to_str().unwrap()).to_owned();
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    let seen = Submitted {
        url: header("tidegate-callback-url"),
        token: header("tidegate-completion-token"),
        body: serde_json::from_slice(&body).unwrap_or_default(),
    };
    service.hooks.lock().unwrap().extend(Some(header("x-hook")).filter(|hook| !hook.is_empty()));
    service.seen.lock().unwrap().push(seen.clone());
    let is_early = *service.calls_back_first.lock().unwrap();
    if is_early {
        assert_eq!(call_back(&seen, json!({ "outcome": "succeeded", "result": "early" })).await.status, 200);
    }
    (StatusCode::ACCEPTED, Json(json!({ "id": "j 1", "status": "queued" }))).into_response()
}

async fn call_back(job: &Submitted, body: Value) -> Answer {
    let request = Client::new().post(&job.url).header("tidegate-completion-token", &job.token);
    answer(request.body(body.to_string())).await
}

fn config(store: &str, listen: SocketAddr, service: SocketAddr, more: &str) -> Config {
    let text = format!(
        "[server]\nlisten = \"{listen}\"\ndrain_s = 1\npublic_url = \"http://{listen}\"\n[store]\nurl = \"{store}\"\n\
         [[upstream]]\nname = \"jobs\"\nbase_url = \"http://{service}\"\n{more}"
    );
    let env = |name: &str| (name == "TEST_TOKEN").then(|| "a-token-from-the-environment".to_owned());
    Config::parse("test.toml", &text, &env, &Overrides::default(), &[]).unwrap()
}

/// An address that was free a moment ago.
async fn free_addr() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}

struct World {
    server: Server,
    service: JobService,
}

impl World {
    async fn new(more: &str) -> Self {
        let service = JobService::default();
        let addr = service.clone().start().await;
        let server = Server::start(config("memory:", free_addr().await, addr, more)).await.unwrap();
        Self { server, service }
    }

    async fn call(&self, method: Method, path: &str, body: &Value) -> Answer {
        let request = Client::new().request(method, format!("http://{}{path}", self.server.addr));
        let request = request.bearer_auth("a-token-from-the-environment");
        answer(if body.is_null() { request } else { request.body(body.to_string()) }).await
    }

    async fn submit(&self, completion: &Value) -> String {
        let answer = self.call(Method::POST, "/v1/operations", &job(completion)).await;
        assert_eq!(answer.status, 202, "{answer:?}");
        answer.text("id")
    }

    async fn show(&self, id: &str) -> Value {
        self.call(Method::GET, &format!("/v1/operations/{id}"), &Value::Null).await.json
    }
}

fn job(completion: &Value) -> Value {
    json!({
        "upstream": "jobs", "group": "g", "completion": completion,
        "request": { "method": "POST", "path": "/jobs", "body": { "n": 1 } },
    })
}

const TOKEN: &str =
    "[[token]]\nname = \"t\"\nvalue_env = \"TEST_TOKEN\"\nscopes = [\"read\", \"write\", \"operate\"]\n";

/// A service calls back with the token of its attempt and no other; twice, late or after a cancel
/// it changes nothing.
#[tokio::test]
async fn a_service_calls_back_with_its_token() {
    within(async {
        let world = World::new(TOKEN).await;
        let id = world.submit(&json!({ "callback": true })).await;
        let job = world.service.submitted(1).await;
        assert!(job.url.ends_with(&format!("/v1/operations/{id}/complete")), "{job:?}");
        let result = json!({ "outcome": "succeeded", "result": { "file": 42 } });
        for token in ["", "1.0", &job.token[1..]] {
            let wrong = Submitted { token: token.to_owned(), ..job.clone() };
            call_back(&wrong, result.clone()).await.refused(401, "TG0015", None);
        }
        call_back(&job, json!({ "outcome": "perhaps" })).await.refused(400, "TG0001", Some("outcome"));
        assert_eq!(world.show(&id).await["state"], "running");
        let ended = call_back(&job, result.clone()).await;
        assert_eq!(
            (ended.status, &ended.json["applied"], &ended.json["state"]),
            (200, &json!(true), &json!("succeeded"))
        );
        assert_eq!(ended.json["result"]["body"], json!({ "file": 42 }));
        let twice = call_back(&job, json!({ "outcome": "failed" })).await;
        assert_eq!(
            (twice.status, &twice.json["applied"], &twice.json["state"]),
            (200, &json!(false), &json!("succeeded"))
        );
        let id = world.submit(&json!({ "callback": { "url": "/hook/url" } })).await;
        let hook = world.service.submitted(2).await.body["hook"]["url"].as_str().unwrap().to_owned();
        let canceled = world.call(Method::POST, &format!("/v1/operations/{id}/cancel"), &Value::Null).await;
        assert_eq!(canceled.status, 200, "{canceled:?}");
        let path = format!("/v1/operations/{id}?wait_ms=30000");
        assert_eq!(world.call(Method::GET, &path, &Value::Null).await.json["state"], "canceled");
        let late = answer(Client::new().post(&hook).body(result.to_string())).await;
        assert_eq!((late.status, &late.json["applied"]), (200, &json!(false)), "{late:?}");
    })
    .await;
}

/// Without tokens the server answers only to this machine; a service still calls back at the public
/// URL, because its completion token proves that it may.
#[tokio::test]
async fn a_service_calls_back_at_the_public_url_without_tokens() {
    within(async {
        let world = World::new("").await;
        let id = world.submit(&json!({ "callback": true })).await;
        let job = world.service.submitted(1).await;
        let at_public_url = |token: &str| {
            let request = Client::new().post(&job.url).header("host", "tidegate.example.com");
            let request = request.header("tidegate-completion-token", token);
            answer(request.body(json!({ "outcome": "succeeded" }).to_string()))
        };
        at_public_url("").await.refused(403, "TG0016", None);
        at_public_url("1.0").await.refused(401, "TG0015", None);
        assert_eq!(world.show(&id).await["state"], "running");
        assert_eq!(at_public_url(&job.token).await.status, 200);
        assert_eq!(world.show(&id).await["state"], "succeeded");
    })
    .await;
}

/// Whoever made a token up is refused before a byte of the body is read, whether or not the
/// operation exists: neither memory nor a connection is spent on it.
#[tokio::test]
async fn a_made_up_token_is_refused_before_the_body() {
    within(async {
        let world = World::new(TOKEN).await;
        let id = world.submit(&json!({ "callback": true })).await;
        let job = world.service.submitted(1).await;
        let other = "op_01jqwertyu0000000000000000";
        for (id, token) in [(id.as_str(), "1.0"), (id.as_str(), "x"), (other, job.token.as_str())] {
            let mut stream = tokio::net::TcpStream::connect(world.server.addr).await.unwrap();
            let head = format!(
                "POST /v1/operations/{id}/complete HTTP/1.1\r\nhost: {}\r\ncontent-length: 1000000\r\n\
                 tidegate-completion-token: {token}\r\n\r\n{{",
                world.server.addr
            );
            stream.write_all(head.as_bytes()).await.unwrap();
            let mut start = [0; 12];
            stream.read_exact(&mut start).await.unwrap();
            assert_eq!(&start, b"HTTP/1.1 401", "{token}");
        }
        assert_eq!(world.show(&id).await["state"], "running");
    })
    .await;
}

/// A service that calls back in its own format is understood by the values that the submission
/// names, or polled at once; without either it is told what is missing.
#[tokio::test]
async fn a_service_may_call_back_in_its_own_format() {
    within(async {
        let world = World::new("").await;
        let theirs = |status: &str| json!({ "id": "j 1", "status": status, "output": 7 });
        let plain = world.submit(&json!({ "callback": true })).await;
        let job = world.service.submitted(1).await;
        let refused = call_back(&job, theirs("succeeded")).await;
        assert!(refused.json["error"]["message"].as_str().unwrap().contains("completion.callback.done"));
        refused.refused(400, "TG0001", Some("id"));
        let wrong = Submitted { token: "1.0".into(), ..job.clone() };
        call_back(&wrong, theirs("succeeded")).await.refused(401, "TG0015", None);
        assert_eq!(world.show(&plain).await["state"], "running");
        let ours = call_back(&job, json!({ "outcome": "failed", "fault": { "class": "conflict" } })).await;
        assert!(!ours.json["error"]["message"].as_str().unwrap().contains("completion.callback.done"));
        ours.refused(400, "TG0001", Some("fault.message"));
        assert_eq!(call_back(&job, json!({ "outcome": "succeeded" })).await.status, 200);

        let ends = json!({ "url": "X-Hook", "done": { "/status": ["succeeded"] }, "failed": { "/status": ["failed"] } });
        let id = world.submit(&json!({ "callback": ends })).await;
        world.service.submitted(2).await;
        assert_eq!(world.show(&id).await["completion"], json!({ "callback": ends }));
        let url = format!("http://{}/v1/operations/{id}/complete", world.server.addr);
        let hook = world.service.hooks.lock().unwrap().pop().unwrap();
        assert!(hook.starts_with(&format!("{url}?token=")), "{hook}");
        // A service may add parameters of its own.
        let hook = format!("{hook}&job=7");
        let post = |body: Value| answer(Client::new().post(&hook).body(body.to_string()));
        let early = post(theirs("processing")).await;
        assert_eq!((early.status, &early.json["applied"]), (200, &json!(false)), "{early:?}");
        let ended = post(theirs("succeeded")).await;
        assert_eq!((ended.status, &ended.json["state"]), (200, &json!("succeeded")), "{ended:?}");
        assert_eq!(ended.json["result"]["body"], theirs("succeeded"));

        *world.service.polls.lock().unwrap() = vec![theirs("succeeded")];
        let poll = json!({ "path": "/jobs/{/id}", "every_s": 3600, "done": { "/status": ["succeeded"] } });
        let id = world.submit(&json!({ "callback": true, "poll": poll, "timeout_s": 7200 })).await;
        let job = world.service.submitted(3).await;
        loop {
            // The first of these may come before the response to the submission.
            assert_eq!(call_back(&job, json!({ "event": "job.changed" })).await.status, 200);
            let path = format!("/v1/operations/{id}?wait_ms=200");
            let found = world.call(Method::GET, &path, &Value::Null).await.json;
            if found["state"] == "succeeded" {
                break assert_eq!(found["result"]["body"]["output"], 7, "polled an hour early");
            }
        }
    })
    .await;
}

/// A service may call back before it answers the submission; that answer changes nothing.
#[tokio::test]
async fn a_service_may_call_back_before_it_answers() {
    within(async {
        let world = World::new("").await;
        *world.service.calls_back_first.lock().unwrap() = true;
        let id = world.submit(&json!({ "callback": true })).await;
        let path = format!("/v1/operations/{id}?wait_ms=30000");
        let ended = world.call(Method::GET, &path, &Value::Null).await.json;
        assert_eq!(
            (&ended["state"], &ended["result"]["body"], &ended["attempt"]),
            (&json!("succeeded"), &json!("early"), &json!(1))
        );
        let next = world.submit(&json!({ "callback": true })).await;
        assert_eq!(
            world.call(Method::GET, &format!("/v1/operations/{next}?wait_ms=30000"), &Value::Null).await.json
                ["state"],
            "succeeded"
        );
    })
    .await;
}

/// OPS-23: a job whose completion did not come in time shows the service's id of it and the
/// response that accepted it, so that a person can find out what became of it. A job that failed
/// has no status that no one sent.
#[tokio::test]
async fn ops_23_a_job_without_an_end_shows_what_is_known_of_it() {
    within(async {
        let world = World::new("").await;
        *world.service.polls.lock().unwrap() = vec![json!({ "status": "running" })];
        let poll = json!({ "path": "/jobs/{/id}", "every_s": 3600, "done": { "/status": ["succeeded"] } });
        let polled = json!({ "callback": true, "poll": poll, "timeout_s": 1 });
        let called = json!({ "callback": true, "timeout_s": 1 });
        for (completion, job_id) in [(called, Value::Null), (polled, json!("j 1"))] {
            let id = world.submit(&completion).await;
            let path = format!("/v1/operations/{id}");
            let found = world.call(Method::GET, &format!("{path}?wait_ms=30000"), &Value::Null).await.json;
            assert_eq!((&found["state"], &found["job_id"]), (&json!("unknown"), &job_id), "{found}");
            assert_eq!(
                (&found["result"]["status"], &found["result"]["body"]["id"]),
                (&json!(202), &json!("j 1")),
                "{found}"
            );
            assert_eq!(found["fault"]["may_have_happened"], true, "{found}");
            let page = Client::new().get(format!("http://{}/operations/{id}", world.server.addr)).send();
            let page = page.await.unwrap().text().await.unwrap();
            assert_eq!(page.contains("<code>j 1</code>"), job_id == "j 1", "{page}");
            let resolved =
                world.call(Method::POST, &format!("{path}/resolve"), &json!({ "as": "failed" })).await;
            assert_eq!(resolved.json["fault"]["may_have_happened"], false, "{resolved:?}");
            assert_eq!(resolved.json["job_id"], job_id, "{resolved:?}");
        }

        let failed = world.submit(&json!({ "callback": true })).await;
        let job = world.service.submitted(3).await;
        let body = json!({ "outcome": "failed", "result": { "x": 1 } });
        let ended = loop {
            // The first of these may come before the response to the submission.
            let ended = call_back(&job, body.clone()).await;
            if ended.json["state"] != "running" {
                break ended.json;
            }
        };
        assert_eq!((&ended["id"], &ended["state"]), (&json!(failed), &json!("failed")), "{ended}");
        assert_eq!(
            ended["result"],
            json!({ "status": null, "headers": ended["result"]["headers"], "body": { "x": 1 } })
        );
        assert_eq!(ended["fault"]["may_have_happened"], false, "{ended}");
    })
    .await;
}

/// A job that is polled ends by what the service says about it; an operator may end it too.
#[tokio::test]
async fn a_service_is_polled() {
    within(async {
        let world = World::new("").await;
        let states = ["running", "succeeded"].map(|state| json!({ "status": state, "n": 7 }));
        *world.service.polls.lock().unwrap() = states.to_vec();
        let poll = json!({ "path": "/jobs/{/id}", "every_s": 1, "done": { "/status": ["succeeded"] }, "failed": { "/status": ["failed"] } });
        let id = world.submit(&json!({ "poll": poll.clone() })).await;
        let path = format!("/v1/operations/{id}?wait_ms=30000");
        let ended = world.call(Method::GET, &path, &Value::Null).await.json;
        assert_eq!((&ended["state"], &ended["result"]["body"]["n"]), (&json!("succeeded"), &json!(7)), "{ended}");
        *world.service.polls.lock().unwrap() = vec![json!({ "status": "failed" })];
        let id = world.submit(&json!({ "poll": poll })).await;
        let ended = world.call(Method::GET, &format!("/v1/operations/{id}?wait_ms=30000"), &Value::Null).await.json;
        assert_eq!(ended["state"], "failed", "{ended}");
        let id = world.submit(&json!({ "callback": true })).await;
        world.service.submitted(3).await;
        let why = world.call(Method::GET, &format!("/v1/operations/{id}/why"), &Value::Null).await.json;
        assert!(["completion", "running"].contains(&why["waiting_for"].as_str().unwrap()), "{why}");
        loop {
            let path = format!("/v1/operations/{id}/complete");
            let ended = world.call(Method::POST, &path, &json!({ "outcome": "failed", "fault": { "message": "no" } })).await;
            if ended.status == 200 {
                assert_eq!((&ended.json["state"], &ended.json["fault"]["message"]), (&json!("failed"), &json!("no")));
                break;
            }
            ended.refused(409, "TG0013", None);
        }
    })
    .await;
}

/// What a submission says about its job is checked before it is accepted.
#[tokio::test]
async fn a_wrong_completion_is_refused_by_field() {
    within(async {
        let world = World::new("token_env = \"TEST_TOKEN\"\ntoken_header = \"x-up\"\n").await;
        let table = [
            (json!(true), "TG0001", "completion"),
            (json!({}), "TG0002", "completion"),
            (json!({ "callback": true, "timeout_s": 0 }), "TG0002", "completion.timeout_s"),
            (json!({ "callback": { "url": "/n/url" } }), "TG0002", "completion.callback"),
            // A URL in their place would be overwritten, or sent as a credential.
            (json!({ "callback": { "url": "authorization" } }), "TG0002", "completion.callback"),
            (json!({ "callback": { "url": "X-Up" } }), "TG0002", "completion.callback"),
        ];
        for (completion, code, field) in table {
            let refused = world.call(Method::POST, "/v1/operations", &job(&completion)).await;
            refused.refused(400, code, Some(field));
        }
    })
    .await;
}

/// A completion may arrive at any node of a cluster, and counts once.
#[tokio::test]
async fn a_completion_may_arrive_at_any_node() {
    within(async {
        let (store, service) = (RedisServer::start(), JobService::default());
        let addr = service.clone().start().await;
        let mut nodes = Vec::new();
        for _ in 0..2 {
            nodes.push(Server::start(config(&store.url(), free_addr().await, addr, "")).await.unwrap());
        }
        let client = Client::new();
        for n in 1..=4 {
            let mut operation = job(&json!({ "callback": true }));
            operation["group"] = json!(format!("g{n}"));
            let url = format!("http://{}/v1/operations", nodes[n % 2].addr);
            let id = answer(client.post(url).body(operation.to_string())).await.text("id");
            let job = service.submitted(n).await;
            let mut applied = Vec::new();
            for node in &nodes {
                let url = format!("http://{}/v1/operations/{id}/complete", node.addr);
                let wrong = Submitted { url: url.clone(), token: "1.0".into(), ..job.clone() };
                assert_eq!(call_back(&wrong, json!({ "outcome": "succeeded" })).await.status, 401);
                let ended =
                    call_back(&Submitted { url, ..job.clone() }, json!({ "outcome": "succeeded" })).await;
                assert_eq!((ended.status, &ended.json["state"]), (200, &json!("succeeded")), "{ended:?}");
                applied.push(ended.json["applied"].as_bool().unwrap());
            }
            assert_eq!(applied, [true, false]);
        }
    })
    .await;
}

/// On a cluster too, a completion without a token or a scope changes nothing, however empty its
/// token is.
#[tokio::test]
async fn an_empty_token_is_no_proof_at_any_node() {
    within(async {
        let (store, service) = (RedisServer::start(), JobService::default());
        let addr = service.clone().start().await;
        let mut nodes = Vec::new();
        for _ in 0..2 {
            nodes.push(Server::start(config(&store.url(), free_addr().await, addr, TOKEN)).await.unwrap());
        }
        let call = |method, url: String| {
            Client::new().request(method, url).bearer_auth("a-token-from-the-environment")
        };
        let url = format!("http://{}/v1/operations", nodes[0].addr);
        let submitted = call(Method::POST, url.clone()).body(job(&json!({ "callback": true })).to_string());
        let id = answer(submitted).await.text("id");
        service.submitted(1).await;
        for node in &nodes {
            let url = format!("http://{}/v1/operations/{id}/complete", node.addr);
            for url in [url.clone(), format!("{url}?token=")] {
                let empty = Client::new().post(url).header("tidegate-completion-token", "");
                answer(empty.body(r#"{"outcome":"succeeded"}"#)).await.refused(401, "TG0015", None);
            }
        }
        assert_eq!(answer(call(Method::GET, format!("{url}/{id}"))).await.json["state"], "running");
    })
    .await;
}
