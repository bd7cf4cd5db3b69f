//! `tidegate proxy` as its own process: it replays, is killed, is frozen, and is shut down.

mod away;
mod bounds;
mod child;
mod clock;
mod gone;
mod lease;
mod service;
mod silent;
mod stop;
mod unknown;
mod usage;

use hyper::Method;
use serde_json::{Value, json};

use crate::caller::Caller;
use crate::child::tidegate;
use child::Proxy;
use service::Service;

/// A POST with a key: the status, the text, and whether it says that it was given before.
async fn post(caller: &Caller, key: &str) -> Option<(u16, String, bool)> {
    let headers = [("idempotency-key", key)];
    let (status, headers, text) =
        caller.call_full(Method::POST, "/items", &headers, Some(&json!({}))).await?;
    Some((status, text, headers.contains_key("idempotent-replayed")))
}

/// IDM-12, IDM-9: a repeat gets the first answer, other routes have other choices, and the figures
/// are on the admin port.
#[tokio::test(flavor = "multi_thread")]
async fn idm_12_a_repeat_gets_the_first_answer() {
    let service = Service::start(0).await;
    let dir = tempfile::tempdir().unwrap();
    let more = "[[proxy.route]]\npath = \"/payments\"\nrequired = true\n";
    let proxy = Proxy::start(dir.path(), &service, "memory:", more);
    let (caller, admin) = (Caller::of(&proxy.address), Caller::of(&proxy.admin));
    assert_eq!(post(&caller, "k").await.unwrap(), (201, "run 1".into(), false));
    assert_eq!(post(&caller, "k").await.unwrap(), (201, "run 1".into(), true));
    let other = caller.call(Method::POST, "/items", &[("idempotency-key", "k")], Some(&json!([]))).await;
    let (status, body) = other.unwrap();
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((status, &body["error_code"]), (409, &"IDEMPOTENCY_KEY_CONFLICT".into()));
    let (status, body) = caller.call(Method::POST, "//payments/7", &[], Some(&json!({}))).await.unwrap();
    assert_eq!(status, 400, "{body}");
    assert_eq!(service.runs(), 1);
    let figures = admin.get("/metrics").await;
    for line in ["idempotency_hit 1", "idempotency_miss 1", "idempotency_conflict 1"] {
        assert!(figures.lines().any(|found| found == line), "{line}: {figures}");
    }
    let paths = admin.get("/").await;
    assert!(paths.contains("/metrics") && paths.contains("/v1/keys"), "{paths}");
    assert_eq!(admin.get("/healthz").await, "{\"status\":\"ok\"}");
    assert_eq!(admin.get("/readyz").await, "{\"status\":\"ready\"}");
    assert!(admin.get("/docs/errors/TG0024").await.contains("idempotency key"));
    for counter in ["idempotency_body_too_slow 0", "idempotency_bodies_full 0"] {
        assert!(figures.contains(counter), "{counter} in {figures}");
    }
}

/// IDM-22: keys are listed and freed through the admin port, by the same command as a server's.
#[tokio::test(flavor = "multi_thread")]
async fn idm_22_keys_are_freed_through_the_admin_port() {
    let service = Service::start(0).await;
    let dir = tempfile::tempdir().unwrap();
    let proxy = Proxy::start(dir.path(), &service, "memory:", "");
    let caller = Caller::of(&proxy.address);
    post(&caller, "order-7").await.unwrap();
    let server = proxy.admin.clone();
    let key = |args: &[&str]| {
        let output = tidegate().arg("key").args(args).args(["--server", &server]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let listed = key(&["list"]);
    assert!(listed.contains("order-7") && listed.contains("/items"), "{listed}");
    let page = Caller::of(&proxy.admin).get("/keys").await;
    assert!(page.contains(">order-7<") && page.contains("POST /items"), "{page}");
    assert!(!page.contains("run 1"), "a page shows no body: {page}");
    assert!(!page.contains("\"/docs\"") && !page.contains("href=\"/\""), "each link leads somewhere: {page}");
    key(&["expire", "order-7"]);
    assert_eq!(post(&caller, "order-7").await.unwrap(), (201, "run 2".into(), false));
    let page = [("origin", "https://elsewhere.example")];
    let (status, _) =
        Caller::of(&proxy.admin).call(Method::POST, "/v1/keys/order-7/expire", &page, None).await.unwrap();
    assert_eq!(status, 403, "a web site in a browser on this machine cannot free keys");
}

fn refused(args: &[&str], config: Option<&str>) -> String {
    let dir = tempfile::tempdir().unwrap();
    let mut command = tidegate();
    command.arg("proxy").args(args).current_dir(dir.path());
    if let Some(config) = config {
        std::fs::write(dir.path().join("proxy.toml"), config).unwrap();
        command.args(["--config", "proxy.toml"]);
    }
    let output = command.output().unwrap();
    assert!(!output.status.success(), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// IDM-2: the scope of keys must be chosen; problems of the file are reported with line and column.
#[test]
fn idm_2_the_scope_must_be_chosen() {
    let told = refused(&["--upstream", "http://127.0.0.1:1"], None);
    assert!(told.contains("Choose whose a key is.") && told.contains("--unscoped"), "{told}");
    let told = refused(&["--unscoped"], Some("[proxy]\nupstream = \"http://127.0.0.1:1\"\nttll = \"1h\"\n"));
    assert!(told.contains("proxy.toml:3:1: proxy.ttll: There is no such key"), "{told}");
    let told = refused(&["--unscoped", "--ttl", "1", "--upstream", "http://127.0.0.1:1"], None);
    assert!(told.contains("It must be a time such as 500ms, 90s"), "{told}");
}
