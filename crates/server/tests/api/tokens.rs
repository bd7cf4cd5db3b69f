//! Tokens in a file of their own: created, revoked and expired while the server runs; and addresses
//! that send wrong ones.

use std::path::Path;
use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use tidegate_core::Time;
use tidegate_server::Server;
use tidegate_server::config::{ApiToken, TokenFile, TokenRecord, TokenScope};
use tidegate_sim::{HttpSim, HttpSimOptions};
use tidegate_store::{Clock, WallClock};

use crate::support::{World, answer, config, operation, within};

const TEXT: &str = "the-token-of-a-reader";

fn record(name: &str, text: &str, scopes: &[TokenScope]) -> TokenRecord {
    TokenRecord { token: ApiToken::new(name, text, scopes.to_vec()), created_at: None }
}

async fn world_with(file: &Path, more: &str) -> World {
    let sim = HttpSim::start(HttpSimOptions::default()).await.unwrap();
    let text = format!("[auth]\ntokens_file = \"{}\"\n{more}", file.display());
    let server = Server::start(config(&sim, &text)).await.unwrap();
    World { server, sim, client: reqwest::Client::new() }
}

async fn status(world: &World, token: &str) -> u16 {
    answer(world.request(Method::GET, "/v1/limits").bearer_auth(token)).await.status
}

/// Waits until a token gets this status.
async fn wait_for(world: &World, token: &str, wanted: u16) {
    while status(world, token).await != wanted {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A token counts as soon as the server has read the file again, and no longer when it is revoked.
/// Without any token left the server stays closed, on this machine too.
#[tokio::test]
async fn tokens_come_and_go_while_the_server_runs() {
    within(async {
        let folder = tempfile::tempdir().unwrap();
        let file = TokenFile::new(folder.path().join("tokens.toml"));
        let world = world_with(file.path(), "failures_per_minute = 0\n").await;
        world.get("/v1/limits").await.refused(401, "TG0015", None);
        assert_eq!(status(&world, TEXT).await, 401);
        file.add(record("reader", TEXT, &[TokenScope::Read])).unwrap();
        wait_for(&world, TEXT, 200).await;
        let write = world.request(Method::POST, "/v1/operations").bearer_auth(TEXT);
        answer(write.body(operation("g").to_string())).await.refused(403, "TG0016", None);
        let expired = Time::from_millis(WallClock.now().as_millis() - 1_000);
        let mut old = record("old", "a-token-that-has-expired", &[TokenScope::Read]);
        old.token.expires_at = Some(expired);
        file.add(old).unwrap();
        assert!(file.remove("reader").unwrap());
        wait_for(&world, TEXT, 401).await;
        let answer = answer(world.request(Method::GET, "/v1/limits").bearer_auth("a-token-that-has-expired"));
        let answer = answer.await;
        answer.refused(401, "TG0015", None);
        assert!(answer.json["error"]["message"].as_str().unwrap().contains("expired"), "{answer:?}");
        world.get("/v1/limits").await.refused(401, "TG0015", None);
    })
    .await;
}

/// A stream of events ends soon after its token was revoked.
#[tokio::test]
async fn a_stream_ends_with_its_token() {
    within(async {
        let folder = tempfile::tempdir().unwrap();
        let file = TokenFile::new(folder.path().join("tokens.toml"));
        file.add(record("reader", TEXT, &[TokenScope::Read])).unwrap();
        file.add(record("other", "the-token-of-another", &[TokenScope::Read])).unwrap();
        let world = world_with(file.path(), "").await;
        let open = async |text: &str| {
            world.request(Method::GET, "/v1/events").bearer_auth(text).send().await.unwrap()
        };
        let (mut revoked, mut kept) = (open(TEXT).await, open("the-token-of-another").await);
        assert_eq!((revoked.status().as_u16(), kept.status().as_u16()), (200, 200));
        assert!(file.remove("reader").unwrap());
        while let Some(chunk) = revoked.chunk().await.unwrap() {
            assert!(chunk.starts_with(b":") || chunk.starts_with(b"id:"), "no event: {chunk:?}");
        }
        let still = tokio::time::timeout(Duration::from_millis(100), kept.chunk()).await;
        assert!(!matches!(still, Ok(Ok(None))), "another token keeps its stream");
    })
    .await;
}

/// A file that cannot be read keeps the server from starting; one that is damaged later changes
/// nothing.
#[tokio::test]
async fn a_damaged_file_changes_nothing() {
    within(async {
        let folder = tempfile::tempdir().unwrap();
        let file = TokenFile::new(folder.path().join("tokens.toml"));
        file.add(record("reader", TEXT, &[TokenScope::Read])).unwrap();
        let world = world_with(file.path(), "").await;
        assert_eq!(status(&world, TEXT).await, 200);
        std::fs::write(file.path(), "[[token]]\nname = 7\n").unwrap();
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        assert_eq!(status(&world, TEXT).await, 200);
        let text = format!("[auth]\ntokens_file = \"{}\"\n", file.path().display());
        let error = Server::start(config(&world.sim, &text)).await.err().unwrap();
        assert_eq!(error.code.to_string(), "TG0020");
        assert!(error.message.contains("tokens.toml:2:"), "{error}");
    })
    .await;
}

/// After too many wrong tokens an address is told to wait, with a right one too. Calls without a
/// token do not count.
#[tokio::test]
async fn an_address_cannot_try_many_tokens() {
    within(async {
        let folder = tempfile::tempdir().unwrap();
        let file = TokenFile::new(folder.path().join("tokens.toml"));
        file.add(record("reader", TEXT, &[TokenScope::Read])).unwrap();
        let world = world_with(file.path(), "failures_per_minute = 3\n").await;
        for _ in 0..5 {
            world.get("/v1/limits").await.refused(401, "TG0015", None);
        }
        for nth in 0..3 {
            assert_eq!(status(&world, TEXT).await, 200, "{nth}");
            assert_eq!(status(&world, "a-wrong-token").await, 401);
        }
        let request = world.request(Method::GET, "/v1/limits").bearer_auth(TEXT);
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 401);
        let wait: u64 = response.headers()["retry-after"].to_str().unwrap().parse().unwrap();
        assert!((1..=20).contains(&wait), "{wait}");
        assert_eq!(world.get("/healthz").await.status, 200);
    })
    .await;
}

/// A token of a tenant sees the entities of that tenant only, and two tokens of one tenant share
/// its idempotency keys.
#[tokio::test]
async fn a_tenant_is_kept_to_its_own() {
    within(async {
        let folder = tempfile::tempdir().unwrap();
        let file = TokenFile::new(folder.path().join("tokens.toml"));
        let scopes = [TokenScope::Read, TokenScope::Write, TokenScope::Operate];
        for (name, tenant) in [("one", "acme"), ("two", "acme"), ("three", "other")] {
            let mut record = record(name, &format!("the-token-of-caller-{name}"), &scopes);
            record.token.tenant = Some(tenant.to_owned());
            file.add(record).unwrap();
        }
        let world = world_with(file.path(), "").await;
        let call = |name: &str, method: Method, path: &str| {
            world.request(method, path).bearer_auth(format!("the-token-of-caller-{name}"))
        };
        let event = |tenant: &str| {
            let payload = json!({
                "entity_type": "product", "entity_id": "p1", "source_module": "test", "version": 1,
                "data": { "title": tenant },
            });
            json!({ "event": "entity/updated", "tenant": tenant, "payload": payload })
        };
        let publish = |name: &str, tenant: &str| {
            answer(call(name, Method::POST, "/v1/entities/events").body(event(tenant).to_string()))
        };
        publish("one", "other").await.refused(403, "TG0016", None);
        let published = publish("one", "acme").await;
        assert!((200..300).contains(&published.status), "{published:?}");
        let path = "/v1/entities/product/p1?wait_ms=0";
        let own = answer(call("two", Method::GET, path)).await;
        assert_eq!((own.status, &own.json["data"]["title"]), (200, &json!("acme")), "{own:?}");
        let theirs = answer(call("three", Method::GET, path)).await;
        assert_ne!(theirs.status, 200, "{theirs:?}");
        let asked = format!("{path}&tenant=acme");
        answer(call("three", Method::GET, &asked)).await.refused(403, "TG0016", None);
        let gone = "/v1/entities/product/p1?tenant=acme";
        answer(call("three", Method::DELETE, gone)).await.refused(403, "TG0016", None);
        let submit = |name: &str| {
            let request = call(name, Method::POST, "/v1/operations").header("idempotency-key", "k-1");
            answer(request.body(operation("g").to_string()))
        };
        let first = submit("one").await.text("id");
        assert_eq!(submit("two").await.text("id"), first, "the same tenant");
        assert_ne!(submit("three").await.text("id"), first);
    })
    .await;
}
