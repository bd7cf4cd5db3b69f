//! LIM-28: which parts of a request reach the upstream, and which are refused.

use reqwest::Method;

use super::upstream::answer as next;
use super::{ProxySetup, TOKENS};
use crate::support::{answer, within};

/// LIM-28: method, path, query, headers and body pass unchanged; headers between the client and us
/// are removed.
#[tokio::test]
async fn lim_28_a_request_passes_unchanged() {
    within(async {
        let door = ProxySetup::new("", []).await;
        let body: Vec<u8> = vec![0, 255, 10, 13, 34];
        let request = door
            .request(Method::PUT, "/proxy/up/a%2Fb/%7Ec%20d?x=%20+&y=//&x=1")
            .header("x-tidegate-group", "shop:äcme")
            .header("x-tidegate-priority", "3")
            .header("accept", "text/a")
            .header("accept", "text/b")
            .header("user-agent", "client/1")
            .header("idempotency-key", "key-7")
            .header("x-request-id", "mine-1")
            .header("expect", "nothing")
            .header("te", "trailers");
        let response = request.body(body.clone()).send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["x-request-id"], "mine-1", "the upstream has sent none of its own");
        let seen = door.upstream.only_request();
        assert_eq!(seen.line(), "PUT /a%2Fb/%7Ec%20d?x=%20+&y=//&x=1 HTTP/1.1");
        assert_eq!(seen.body, body);
        assert_eq!(seen.all("accept"), ["text/a, text/b"]);
        assert_eq!(seen.all("user-agent"), ["client/1"]);
        assert_eq!(seen.all("idempotency-key"), ["key-7"]);
        assert_eq!(seen.all("x-request-id"), ["mine-1"]);
        assert_eq!(seen.all("host"), [door.upstream.addr.to_string()]);
        assert_eq!(seen.all("content-length"), ["5"]);
        assert!(seen.all("content-type").is_empty(), "none was sent: {}", seen.head);
        for name in ["x-tidegate-group", "x-tidegate-priority", "expect", "te", "transfer-encoding"] {
            assert!(seen.all(name).is_empty(), "{name} in {}", seen.head);
        }
        let operation = door.operation(&response).await;
        assert_eq!((&operation["group"], &operation["request_id"]), (&"shop:äcme".into(), &"mine-1".into()));
    })
    .await;
}

/// LIM-28: a body without a length, JSON with its white space, and a body with a GET.
#[tokio::test]
async fn lim_28_any_body_passes() {
    within(async {
        let door = ProxySetup::new("", []).await;
        let chunked = "POST /proxy/up HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n\
                       transfer-encoding: chunked\r\n\r\n4\r\n {\"a\r\n6\r\n\": 1}\n\r\n0\r\n\r\n";
        assert!(door.raw(chunked).await.starts_with("HTTP/1.1 200 OK"));
        let get = door.request(Method::GET, "/proxy/up/_search").header("content-type", "application/json");
        assert_eq!(get.body("{\"q\":{}}").send().await.unwrap().status(), 200);
        let seen = door.upstream.requests();
        assert_eq!((seen[0].line(), &seen[0].body[..]), ("POST / HTTP/1.1", &b" {\"a\": 1}\n"[..]));
        assert_eq!(seen[0].all("content-length"), ["10"]);
        assert_eq!((seen[1].line(), &seen[1].body[..]), ("GET /_search HTTP/1.1", &b"{\"q\":{}}"[..]));
    })
    .await;
}

/// LIM-28: the same key twice is two calls: the upstream decides what a key means.
#[tokio::test]
async fn lim_28_an_idempotency_key_is_the_upstreams() {
    within(async {
        let door = ProxySetup::new("", []).await;
        for _ in 0..2 {
            let request = door.request(Method::POST, "/proxy/up/orders").header("idempotency-key", "k");
            assert_eq!(request.body("{}").send().await.unwrap().status(), 200);
        }
        assert_eq!(door.upstream.requests().len(), 2);
        assert!(door.upstream.requests().iter().all(|seen| seen.all("idempotency-key") == ["k"]));
    })
    .await;
}

/// LIM-28, OPS-22: a request that cannot be forwarded is refused with a code, nothing is sent, and
/// no credential is stored.
#[tokio::test]
async fn lim_28_what_cannot_be_passed_on_is_refused() {
    within(async {
        let door = ProxySetup::new("", []).await;
        let get = |path: &str| door.request(Method::GET, path);
        let table = vec![
            (get("/proxy/nobody/x"), 404, "TG0003"),
            (get("/proxy/up/x").header("x-tidegate-gruop", "g"), 400, "TG0001"),
            (get("/proxy/up/x").header("x-tidegate-group", ""), 400, "TG0002"),
            (get("/proxy/up/x").header("x-tidegate-priority", "9"), 400, "TG0002"),
            (get("/proxy/up/x").header("x-api-key", "hunter2"), 400, "TG0002"),
            (get("/proxy/up/x").header("x-vault-token", "hunter2"), 400, "TG0002"),
            (get("/proxy/up/x").header("authorization", "Bearer hunter2"), 400, "TG0002"),
            (door.request(Method::TRACE, "/proxy/up/x"), 405, "TG0021"),
            (door.request(Method::POST, "/proxy/nobody/x").body(vec![b'x'; 4 << 20]), 404, "TG0003"),
        ];
        for (request, status, code) in table {
            let response = request.send().await.unwrap();
            assert_eq!(response.status(), status, "{code}");
            let told = response.headers()["x-tidegate-error"].to_str().unwrap().to_owned();
            let text = response.text().await.unwrap();
            assert!(text.contains(code) && !text.contains("hunter2"), "{text}");
            assert_eq!(told, code, "{text}");
        }
        for path in ["/proxy/up//evil/x", "/proxy/up/../x", "/proxy/up/a/%2e%2e/%2e%2e/x", "/proxy/up/..%2fx"]
        {
            let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
            let told = door.raw(&request).await;
            assert!(
                told.starts_with("HTTP/1.1 400 ") && told.contains("x-tidegate-error: TG0002"),
                "{path}: {told}"
            );
        }
        assert!(door.upstream.requests().is_empty());
        assert!(door.get("/v1/operations").await.json["operations"].as_array().unwrap().is_empty());
    })
    .await;
}

/// LIM-28: the upstream's own credential replaces whatever a client sends in its header.
#[tokio::test]
async fn lim_28_the_upstreams_credential_replaces_the_clients() {
    within(async {
        let credential = "token_env = \"UP_TOKEN\"\ntoken_header = \"x-shopify-access-token\"\n";
        let door = ProxySetup::new(&format!("{credential}{TOKENS}"), []).await;
        let ask = |name: &str, value: &str| {
            door.request(Method::GET, "/proxy/up/x").header(name, value).header("x-tidegate-group", "g")
        };
        // Our token in its own header, or in the upstream's, for clients that can send no other.
        let both =
            ask("authorization", "Bearer a-token-of-the-application").header("x-shopify-access-token", "any");
        assert_eq!(both.send().await.unwrap().status(), 200);
        let only = ask("x-shopify-access-token", "a-token-of-the-application").send().await.unwrap();
        assert_eq!(only.status(), 200);
        for seen in door.upstream.requests() {
            assert_eq!(seen.all("x-shopify-access-token"), ["the-upstreams-own-credential"]);
            assert!(seen.all("authorization").is_empty(), "{}", seen.head);
        }
        answer(ask("x-shopify-access-token", "another")).await.refused(401, "TG0015", None);
        answer(ask("accept", "text/a")).await.refused(401, "TG0015", None);
        answer(ask("authorization", "Bearer a-token-of-an-operator")).await.refused(403, "TG0016", None);
        assert_eq!(door.upstream.requests().len(), 2);
    })
    .await;
}

/// LIM-28: only the proxy reads a token from an upstream's header.
#[tokio::test]
async fn lim_28_other_pages_take_no_upstreams_header() {
    within(async {
        let credential = "token_env = \"UP_TOKEN\"\ntoken_header = \"x-shopify-access-token\"\n";
        let door = ProxySetup::new(&format!("{credential}{TOKENS}"), [next("HTTP/1.1 200 OK\r\n\r\n")]).await;
        let request = door
            .request(Method::GET, "/v1/limits")
            .header("x-shopify-access-token", "a-token-of-an-operator");
        answer(request).await.refused(401, "TG0015", None);
    })
    .await;
}
