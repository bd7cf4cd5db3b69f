//! Entities of other modules over HTTP: asked for, answered by a URL, published.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use reqwest::Method;
use serde_json::{Value, json};
use tidegate_server::Server;
use tidegate_server::config::{ApiToken, TokenScope};
use tidegate_sim::{HttpSim, HttpSimOptions};

use crate::support::{World, answer, config, within};

/// A service in another language that owns customers.
#[derive(Clone, Default)]
struct Customers(Arc<AtomicUsize>);

async fn hydrate(State(customers): State<Customers>, Json(question): Json<Value>) -> Response {
    customers.0.fetch_add(1, Ordering::SeqCst);
    assert_eq!(question["event"], "entity/unknown");
    let id = question["payload"]["entity_id"].as_str().unwrap();
    let reply = |event: &str, rest: Value| {
        let mut payload = json!({ "entity_type": "customer", "entity_id": id, "source_module": "customers" });
        payload.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        let correlation_id = &question["correlation_id"];
        Json(json!({ "event": event, "correlation_id": correlation_id, "payload": payload })).into_response()
    };
    match id {
        "gone" => reply("entity/not-found", json!({ "reason": "deleted_or_never_existed" })),
        "foreign" => {
            let payload = json!({ "entity_type": "customer", "entity_id": id, "source_module": "customers",
                "data": { "name": "Mallory" } });
            Json(json!({ "event": "entity/updated", "tenant": "evil", "payload": payload })).into_response()
        }
        "later" => StatusCode::ACCEPTED.into_response(),
        "broken" => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        "slow" => {
            tokio::time::sleep(Duration::from_millis(100)).await;
            reply("entity/updated", json!({ "data": { "name": "Slow" } }))
        }
        _ => reply("entity/updated", json!({ "data": { "name": "Ada", "city": "London" }, "version": 5 })),
    }
}

async fn start_customers() -> (SocketAddr, Customers) {
    let customers = Customers::default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let router = Router::new().route("/hydrate", post(hydrate)).with_state(customers.clone());
    tokio::spawn(async move { axum::serve(listener, router).await });
    (addr, customers)
}

async fn with_source() -> (World, Customers) {
    register_source(World::new().await).await
}

async fn register_source(world: World) -> (World, Customers) {
    let (addr, customers) = start_customers().await;
    let url = format!("http://{addr}/hydrate");
    let registered = world.put("/v1/sources/customer", json!({ "url": url })).await;
    assert_eq!((registered.status, &registered.json["url"]), (200, &json!(url)), "{registered:?}");
    (world, customers)
}

fn updated(id: &str, name: &str, version: u64) -> Value {
    json!({ "event": "entity/updated", "payload": {
        "entity_type": "customer", "entity_id": id, "source_module": "customers",
        "data": { "name": name }, "version": version,
    } })
}

/// HYD-13: asked over HTTP, answered by a registered URL: 200, then from the copy; 404, then
/// remembered.
#[tokio::test]
async fn hyd_13_a_registered_source_answers() {
    within(async {
        let (world, customers) = with_source().await;
        let first = world.get("/v1/entities/customer/c-7").await;
        assert_eq!(first.status, 200, "{first:?}");
        assert_eq!(first.json["data"], json!({ "name": "Ada", "city": "London" }));
        assert_eq!((&first.json["version"], &first.json["stale"]), (&json!(5), &json!(false)));
        let part = world.get("/v1/entities/customer/c-7?fields=city").await;
        assert_eq!((part.status, &part.json["data"]), (200, &json!({ "city": "London" })));
        let exists = world.get("/v1/entities/customer/c-7?mode=existence").await;
        assert_eq!((exists.status, &exists.json["data"]), (200, &json!({})));
        assert_eq!(customers.0.load(Ordering::SeqCst), 1);
        for _ in 0..2 {
            let gone = world.get("/v1/entities/customer/gone").await;
            assert_eq!((gone.status, &gone.json["reason"]), (404, &json!("deleted_or_never_existed")));
        }
        assert_eq!(customers.0.load(Ordering::SeqCst), 2);
        let other = world.get("/v1/entities/customer/c-7?tenant=globex").await;
        assert_eq!((other.status, customers.0.load(Ordering::SeqCst)), (200, 3), "another tenant's entity");
        let metrics = world.request(Method::GET, "/metrics").send().await.unwrap().text().await.unwrap();
        for name in ["hydration_published", "hydration_local_hit", "hydration_negative_hit"] {
            assert!(metrics.lines().any(|line| line.starts_with(&format!("{name} "))), "{name}");
        }
    })
    .await;
}

/// HYD-13: a source is asked as soon as it is registered, whatever was missing before; its answers
/// name its own module, and a newer version has its own time or none.
#[tokio::test]
async fn hyd_13_a_source_is_asked_as_soon_as_it_is_registered() {
    within(async {
        let world = World::new().await;
        let absent = world.get("/v1/entities/customer/c-7").await;
        assert_eq!((absent.status, &absent.json["reason"]), (503, &json!("source-absent")), "{absent:?}");
        let (world, _) = register_source(world).await;
        let found = world.get("/v1/entities/customer/c-7").await;
        assert_eq!((found.status, &found.json["source_module"]), (200, &json!("customers")), "{found:?}");
        assert!(found.json["as_of"].is_string(), "{found:?}");
        let published = world.post("/v1/entities/events", updated("c-7", "Bob", 6)).await;
        assert_eq!(published.status, 202, "{published:?}");
        loop {
            let found = world.get("/v1/entities/customer/c-7").await.json;
            if found["version"] == 6 {
                break assert_eq!(found["as_of"], Value::Null, "{found}");
            }
        }
        for url in ["ftp://host/x", "http://u:p@host/x", "host"] {
            let refused = world.put("/v1/sources/customer", json!({ "url": url })).await;
            let message = refused.json["error"]["message"].as_str().unwrap().to_owned();
            assert!(!message.contains("..") && !message.contains("token_env"), "{message}");
            refused.refused(400, "TG0002", Some("url"));
        }
        let outside = world.put("/v1/sources/customer", json!({ "url": "http://host/../../x" })).await;
        outside.refused(400, "TG0002", Some("url"));
    })
    .await;
}

/// HYD-13, HYD-19: callers at the same moment are one request to the source.
#[tokio::test]
async fn hyd_13_many_callers_are_one_request() {
    within(async {
        let (world, customers) = with_source().await;
        let callers = (0..50).map(|_| answer(world.request(Method::GET, "/v1/entities/customer/slow")));
        for found in futures_util::future::join_all(callers).await {
            assert_eq!((found.status, &found.json["data"]["name"]), (200, &json!("Slow")));
        }
        assert_eq!(customers.0.load(Ordering::SeqCst), 1);
    })
    .await;
}

/// HYD-13, HYD-7: without an answer 503, 202 or the stale copy, by what the caller asked for; a
/// source that fails is named at once, and one that says 202 publishes later.
#[tokio::test]
async fn hyd_13_the_outcome_follows_the_failure_mode() {
    within(async {
        let (world, _) = with_source().await;
        let absent = world.get("/v1/entities/invoice/i-1").await;
        assert_eq!((absent.status, &absent.json["reason"]), (503, &json!("source-absent")), "{absent:?}");
        let broken = world.get("/v1/entities/customer/broken?wait_ms=60000").await;
        assert_eq!((broken.status, &broken.json["reason"]), (503, &json!("source-failed")), "at once");
        let foreign = world.get("/v1/entities/customer/foreign?wait_ms=60000").await;
        assert_eq!((foreign.status, &foreign.json["reason"]), (503, &json!("source-failed")), "{foreign:?}");
        let deferred = world.get("/v1/entities/customer/later?wait_ms=50&on_miss=defer").await;
        assert_eq!((deferred.status, &deferred.json["state"]), (202, &json!("deferred")));
        let flights = world.get("/v1/flights").await.json;
        let later =
            flights["flights"].as_array().unwrap().iter().find(|flight| flight["entity_id"] == "later");
        assert_eq!(later.unwrap()["waiters"][0]["deferred"], true, "{flights}");
        let published = world.post("/v1/entities/events", updated("later", "Late", 1)).await;
        assert_eq!((published.status, &published.json["received"]), (202, &json!(true)));
        let found = world.get("/v1/entities/customer/later?wait_ms=5000").await;
        assert_eq!((found.status, &found.json["data"]["name"]), (200, &json!("Late")));
        assert_eq!(world.request(Method::DELETE, "/v1/sources/customer").send().await.unwrap().status(), 200);
        let stale = world.get("/v1/entities/customer/later?max_age_ms=0&on_miss=degrade").await;
        assert_eq!((stale.status, &stale.json["stale"]), (200, &json!(true)), "{stale:?}");
    })
    .await;
}

/// HYD-13: what was published by mistake, with a version that its owner never reaches, can be
/// removed by who may publish; a token that only writes may do neither.
#[tokio::test]
async fn hyd_13_a_wrong_copy_is_removed() {
    within(async {
        let (world, _) = with_source().await;
        world.post("/v1/entities/events", updated("c-7", "Mallory", u64::MAX >> 11)).await;
        let wrong = world.get("/v1/entities/customer/c-7").await;
        assert_eq!(wrong.json["data"]["name"], "Mallory");
        for removed in [true, false] {
            let forgotten = answer(world.request(Method::DELETE, "/v1/entities/customer/c-7")).await;
            assert_eq!((forgotten.status, &forgotten.json["removed"]), (200, &json!(removed)));
        }
        assert_eq!(world.get("/v1/entities/customer/c-7").await.json["data"]["name"], "Ada");
        let token = "[[token]]\nname = \"w\"\nvalue_env = \"TEST_TOKEN\"\nscopes = [\"write\", \"read\"]\n";
        let world = World::with(token, HttpSimOptions::default()).await;
        for (method, path) in
            [(Method::POST, "/v1/entities/events"), (Method::DELETE, "/v1/entities/customer/c-7")]
        {
            let request = world.request(method, path).bearer_auth("a-token-from-the-environment");
            answer(request.body(updated("c-7", "Mallory", 1).to_string())).await.refused(403, "TG0016", None);
        }
    })
    .await;
}

/// HYD-13, HYD-2: what is wrong is refused by name.
#[tokio::test]
async fn hyd_13_a_bad_request_is_refused_by_name() {
    within(async {
        let world = World::new().await;
        for (query, field) in
            [("mode=all", "mode"), ("wait_ms=x", "wait_ms"), ("on_miss=wait", "on_miss"), ("x=1", "x")]
        {
            world.get(&format!("/v1/entities/customer/c-7?{query}")).await.refused(
                400,
                "TG0001",
                Some(field),
            );
        }
        world.put("/v1/sources/customer", r#"{"url":"ftp://x"}"#).await.refused(400, "TG0002", Some("url"));
        world.put("/v1/sources/customer", "{}").await.refused(400, "TG0001", Some("url"));
        let payload = |payload: Value| json!({ "event": "entity/updated", "payload": payload });
        let named = json!({ "entity_type": "customer", "entity_id": "", "source_module": "x", "data": {} });
        for (event, field) in [
            (payload(json!({})), "payload.entity_type"),
            (payload(json!(["customer", "c-7", "x", { "a": 1 }])), "payload"),
            (payload(named), "payload.entity_id"),
            (json!({ "event": "entity/deleted", "payload": {} }), "event"),
        ] {
            let refused = world.post("/v1/entities/events", event).await;
            assert!(!refused.json.to_string().contains("Json"), "{refused:?}");
            refused.refused(400, "TG0001", Some(field));
        }
        let cut = world.post("/v1/entities/events", "[1").await;
        assert!(cut.json["error"]["message"].as_str().unwrap().contains("not JSON"), "{cut:?}");
        let long = format!("/v1/entities/customer/{}", "x".repeat(256));
        world.get(&long).await.refused(400, "TG0002", Some("entity_id"));
        assert_eq!(world.get("/v1/sources").await.json, json!({ "sources": [] }));
    })
    .await;
}

/// HYD-13: the path and query of a source's URL may be what it knows its caller by: whoever only
/// reads sees its host.
#[tokio::test]
async fn hyd_13_the_url_of_a_source_is_shown_to_operators_only() {
    within(async {
        let sim = HttpSim::start(HttpSimOptions::default()).await.unwrap();
        let mut config = config(&sim, "");
        let reader = ApiToken::new("reader", "a-token-to-read", vec![TokenScope::Read]);
        let scopes = vec![TokenScope::Read, TokenScope::Operate];
        config.tokens = vec![reader, ApiToken::new("operator", "a-token-to-operate", scopes)];
        let server = Server::start(config).await.unwrap();
        let world = World { server, sim, client: reqwest::Client::new() };
        let call = |method, path: &str, token: &str| {
            world.request(method, path).bearer_auth(format!("a-token-to-{token}"))
        };
        let url = "http://127.0.0.1:1/ask/s3cret?key=s3cret";
        let body = json!({ "url": url }).to_string();
        let registered = answer(call(Method::PUT, "/v1/sources/customer", "operate").body(body)).await;
        assert_eq!(registered.status, 200, "{registered:?}");
        for (token, shown) in [("operate", url), ("read", "http://127.0.0.1:1/…")] {
            let listed = answer(call(Method::GET, "/v1/sources", token)).await;
            assert_eq!(listed.json["sources"][0]["url"], shown, "{listed:?}");
        }
        let page = call(Method::GET, "/flights", "read").send().await.unwrap().text().await.unwrap();
        assert!(page.contains("http://127.0.0.1:1/…") && !page.contains("s3cret"), "{page}");
    })
    .await;
}

/// HYD-2: the schemas of the events are served.
#[tokio::test]
async fn hyd_2_schemas_are_served() {
    within(async {
        let world = World::new().await;
        assert_eq!(world.get("/schemas/entity-updated.schema.json").await.json["title"], "entity/updated");
        assert_eq!(world.get("/schemas/asyncapi.json").await.json["asyncapi"], "3.0.0");
        world.get("/schemas/other.json").await.refused(404, "TG0021", None);
    })
    .await;
}
