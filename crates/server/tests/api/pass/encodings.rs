//! LIM-28: responses with a content encoding: read here, passed unchanged to clients that accept
//! the encoding, decoded for others.

use reqwest::{Client, Method};
use serde_json::{Value, json};
use tidegate_encoding::{Coding, Codings, decode, encode};
use tidegate_server::Server;
use tidegate_server::config::{Config, Overrides};
use tidegate_sim::{ShopifySim, ShopifySimOptions};

use super::ProxySetup;
use super::upstream::ScriptedReply;
use crate::support::{answer, within};

const BODY: &[u8] = br#"{"shop": {"name": "acme"}}"#;

async fn coded(coding: Coding) -> (ScriptedReply, Vec<u8>) {
    let body = encode(coding, BODY).await.unwrap().to_vec();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-encoding: {coding}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    (ScriptedReply::Answer([head.into_bytes(), body.clone()].concat()), body)
}

/// LIM-28: a client gets the encoding that it asked for, byte for byte, and none that it cannot
/// decode; the stored response is decoded.
#[tokio::test]
async fn lim_28_a_client_gets_what_it_can_read() {
    within(async {
        for coding in Coding::ALL {
            let (next, bytes) = coded(coding).await;
            let door = ProxySetup::new("", [next.clone(), next]).await;
            let asked = door
                .request(Method::GET, "/proxy/up/x")
                .header("accept-encoding", "gzip, deflate, br, zstd, sdch");
            let response = asked.send().await.unwrap();
            assert_eq!(response.headers()["content-encoding"], coding.as_str());
            let operation = door.operation(&response).await;
            assert_eq!(response.bytes().await.unwrap(), bytes, "{coding}");
            assert_eq!(operation["result"]["body"], json!({"shop": {"name": "acme"}}), "{coding}");
            assert!(operation["result"]["headers"]["content-encoding"].is_null(), "{operation}");

            let other = door.request(Method::GET, "/proxy/up/x").header("accept-encoding", "identity");
            let response = other.send().await.unwrap();
            assert!(!response.headers().contains_key("content-encoding"), "{coding}");
            assert_eq!(response.headers()["content-length"], BODY.len().to_string().as_str());
            assert_eq!(response.bytes().await.unwrap(), BODY, "{coding}");
            let seen = door.upstream.requests();
            assert_eq!(seen[0].all("accept-encoding"), ["gzip, deflate, br, zstd"], "sdch is not known here");
        }
    })
    .await;
}

/// LIM-28: a body that does not match its content encoding, and one with an unknown encoding, pass
/// unchanged.
#[tokio::test]
async fn lim_28_what_cannot_be_decoded_passes_as_it_came() {
    within(async {
        for coding in ["gzip", "compress"] {
            let text =
                format!("HTTP/1.1 200 OK\r\ncontent-encoding: {coding}\r\ncontent-length: 3\r\n\r\nabc");
            let door = ProxySetup::new("", [ScriptedReply::Answer(text.into_bytes())]).await;
            let response = door.request(Method::GET, "/proxy/up/x").send().await.unwrap();
            assert_eq!(
                (response.status().as_u16(), &response.headers()["content-encoding"]),
                (200, &coding.parse().unwrap())
            );
            assert_eq!(response.text().await.unwrap(), "abc");
        }
    })
    .await;
}

const GRAPHQL: &str = "/admin/api/2026-04/graphql.json";
const PRODUCTS: &str = "{ products(first: 40) { nodes { id } } }";
const CHANGE: &str =
    "mutation { productCreate(product: {title: \"Lamp\"}) @idempotent(key: \"k\") { product { id } } }";

/// A shop that compresses, with 100 points that refill quickly, and a server in front of it.
async fn shop() -> (ShopifySim, Server, Client) {
    let sim = ShopifySim::start(ShopifySimOptions::default()).await.unwrap();
    let client = Client::builder().no_proxy().build().unwrap();
    let figures = json!({ "maximum": 100, "restore_per_s": 50 }).to_string();
    client.post(format!("http://{}/_sim/shops/acme", sim.addr())).body(figures).send().await.unwrap();
    let text = format!(
        "[server]\nlisten = \"127.0.0.1:0\"\n[store]\nurl = \"memory:\"\n[[upstream]]\nname = \"acme\"\ndialect = \"shopify\"\n\
         base_url = \"http://{}/shops/acme\"\ntoken_env = \"ACME_TOKEN\"\n",
        sim.addr()
    );
    let env = |name: &str| (name == "ACME_TOKEN").then(|| "shpat_of-the-environment".to_owned());
    let config = Config::parse("test.toml", &text, &env, &Overrides::default(), &[]).unwrap();
    (sim, Server::start(config).await.unwrap(), client)
}

async fn ask(client: &Client, url: String, query: &str, accept: &str) -> Value {
    let request = client.post(url).header("x-shopify-access-token", "t").header("accept-encoding", accept);
    let request = request.header("content-type", "application/json");
    let response = request.body(json!({ "query": query }).to_string()).send().await.unwrap();
    let coding = response.headers().get("content-encoding").map(|coding| coding.to_str().unwrap().to_owned());
    let codings = Codings::parse(&coding.unwrap_or_default()).unwrap();
    let body = decode(&codings, &response.bytes().await.unwrap(), 1 << 20).await.unwrap();
    serde_json::from_slice(&body).unwrap()
}

/// LIM-17, LIM-28: Shopify's dialect reads compressed responses: a throttled mutation never reaches
/// the client, each call is retried as needed, and its cost is learned.
#[tokio::test]
async fn lim_17_lim_28_compressed_answers_of_shopify_are_read() {
    within(async {
        for accept in ["gzip, deflate, br", "deflate", "br", "zstd"] {
            let (sim, server, client) = shop().await;
            // Another client spends the budget, which this server cannot know.
            let direct = format!("http://{}/shops/acme{GRAPHQL}", sim.addr());
            let drained = ask(&client, direct, PRODUCTS, "identity").await;
            assert!(drained["data"].is_object(), "{drained}");
            let proxied = format!("http://{}/proxy/acme{GRAPHQL}", server.addr);
            let big = ask(&client, proxied.clone(), "{ products(first: 90) { nodes { id } } }", accept).await;
            assert!(big["data"].is_object(), "{accept}: {big}");
            let changed = ask(&client, proxied, CHANGE, accept).await;
            assert!(changed["data"]["productCreate"].is_object(), "{accept}: {changed}");
            let stats = sim.stats().all;
            assert_eq!((stats.throttled, stats.writes, stats.calls), (1, 1, 4), "{accept}: {stats:?}");
            let limits = answer(client.get(format!("http://{}/v1/limits", server.addr))).await.json;
            let points =
                limits["limits"].as_array().unwrap().iter().find(|limit| limit["name"] == "acme/points");
            assert_eq!(points.unwrap()["capacity"], 100, "it was learned: {limits}");
        }
    })
    .await;
}

/// LIM-17: an operation that asks for a compressed response ends like one that does not, with a
/// readable result.
#[tokio::test]
async fn lim_17_an_operation_may_ask_for_a_compressed_answer() {
    within(async {
        let (sim, server, client) = shop().await;
        let operation = json!({ "upstream": "acme", "group": "g", "request": {
            "method": "POST", "path": GRAPHQL, "headers": { "accept-encoding": "gzip" }, "body": { "query": CHANGE },
        }});
        let url = format!("http://{}/v1/operations", server.addr);
        let accepted = answer(client.post(&url).body(operation.to_string())).await;
        let ended = answer(client.get(format!("{url}/{}?wait_ms=30000", accepted.text("id")))).await.json;
        assert_eq!(ended["state"], "succeeded", "{ended}");
        assert!(ended["result"]["body"]["data"]["productCreate"].is_object(), "{ended}");
        assert_eq!(sim.stats().all.calls, 1);
    })
    .await;
}
