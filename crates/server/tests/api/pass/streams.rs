//! LIM-28: bodies that are too large to be buffered, and responses that arrive in pieces, are
//! streamed.

use std::time::Duration;

use reqwest::Method;
use serde_json::Value;
use tidegate_core::bounds::PAYLOAD_LEN_MAX;

use super::ProxySetup;
use super::upstream::{ScriptedReply, answer as next};
use crate::support::{answer, within};

const GOOD: &str = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\ngood";
const EVENTS: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// Bytes that are not text, and without repeating parts.
fn noise(len: usize) -> Vec<u8> {
    (0..len).map(|n| (n ^ (n >> 8) ^ (n >> 16)) as u8 | 0x80).collect()
}

fn event(text: &str) -> String {
    format!("{:x}\r\ndata: {text}\n\n\r\n", text.len() + 8)
}

impl ProxySetup {
    /// Waits for the newest operation to end.
    async fn wait_until_ended(&self) -> Value {
        loop {
            let listed = self.get("/v1/operations").await.json;
            let newest = listed["operations"][0].clone();
            if matches!(newest["state"].as_str(), Some("succeeded" | "failed" | "canceled")) {
                return self.get(&format!("/v1/operations/{}", newest["id"].as_str().unwrap())).await.json;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// LIM-28: a response that is too large to be stored passes completely, and its operation says that
/// the body was not stored.
#[tokio::test]
async fn lim_28_a_large_answer_passes() {
    within(async {
        let body = noise(3 * PAYLOAD_LEN_MAX);
        let head = format!("HTTP/1.1 200 OK\r\netag: \"e\"\r\ncontent-length: {}\r\n\r\n", body.len());
        let next = ScriptedReply::Answer([head.into_bytes(), body.clone()].concat());
        let door = ProxySetup::new("response_max_bytes = 1000000\n", [next]).await;
        let response = door.request(Method::GET, "/proxy/up/x").send().await.unwrap();
        assert_eq!(
            (response.status().as_u16(), &response.headers()["etag"]),
            (200, &"\"e\"".parse().unwrap())
        );
        assert_eq!(response.content_length(), Some(body.len() as u64));
        assert!(response.bytes().await.unwrap() == body, "byte for byte");
        let operation = door.wait_until_ended().await;
        assert_eq!(
            (&operation["state"], &operation["result"]["truncated"]),
            (&"succeeded".into(), &true.into())
        );
        assert!(
            operation["result"]["body"].as_str().unwrap().contains("streamed to the client"),
            "{operation}"
        );
    })
    .await;
}

/// LIM-28: events reach the client as they arrive, not after the last one.
#[tokio::test]
async fn lim_28_events_pass_while_they_come() {
    within(async {
        let first = format!("{EVENTS}{}", event("one"));
        let rest = format!("{}0\r\n\r\n", event("two"));
        let door = ProxySetup::new("", [ScriptedReply::Parts(first.into_bytes(), rest.into_bytes())]).await;
        let mut response = door.request(Method::POST, "/proxy/up/chat").body("{}").send().await.unwrap();
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        assert_eq!(response.chunk().await.unwrap().unwrap(), "data: one\n\n");
        let running = door.get("/v1/operations?state=running").await.json;
        assert_eq!(running["operations"].as_array().map(Vec::len), Some(1), "it goes on");
        door.upstream.go.add_permits(1);
        assert_eq!(response.chunk().await.unwrap().unwrap(), "data: two\n\n");
        assert!(response.chunk().await.unwrap().is_none());
        assert_eq!(door.wait_until_ended().await["state"], "succeeded");
    })
    .await;
}

/// LIM-28, OPS-23: a stream that is cut is cut at the client too, and is not retried, even if the
/// call could be.
#[tokio::test]
async fn lim_28_ops_23_a_stream_that_breaks_off_is_not_begun_again() {
    within(async {
        let first = format!("{EVENTS}{}", event("one"));
        let door =
            ProxySetup::new("", [ScriptedReply::Parts(first.into_bytes(), Vec::new()), next(GOOD)]).await;
        let mut response = door.request(Method::GET, "/proxy/up/chat").send().await.unwrap();
        assert_eq!(response.chunk().await.unwrap().unwrap(), "data: one\n\n");
        door.upstream.go.add_permits(1);
        assert!(response.chunk().await.is_err(), "an end would look like all of it");
        let operation = door.wait_until_ended().await;
        assert_eq!(
            (&operation["state"], &operation["attempt"]),
            (&"failed".into(), &1.into()),
            "{operation}"
        );
        assert_eq!(door.upstream.requests().len(), 1);
    })
    .await;
}

/// LIM-28: a client that disconnects in the middle of a stream ends it at the upstream too.
#[tokio::test]
async fn lim_28_a_stream_that_nobody_reads_ends() {
    within(async {
        let first = format!("{EVENTS}{}", event("one"));
        let door = ProxySetup::new("", [ScriptedReply::Parts(first.into_bytes(), Vec::new())]).await;
        let mut response = door.request(Method::GET, "/proxy/up/chat").send().await.unwrap();
        response.chunk().await.unwrap().unwrap();
        drop(response);
        assert_eq!(
            door.wait_until_ended().await["state"],
            "succeeded",
            "while the upstream still holds the line"
        );
    })
    .await;
}

/// LIM-28: a request whose body is too large to be buffered passes completely; so does one that is
/// only too large in its stored form.
#[tokio::test]
async fn lim_28_a_large_request_passes() {
    within(async {
        let door = ProxySetup::new("", [next(GOOD), next(GOOD)]).await;
        for body in [noise(3 * PAYLOAD_LEN_MAX), noise(PAYLOAD_LEN_MAX - 1_000)] {
            let request = door.request(Method::PUT, "/proxy/up/x").header("content-type", "image/odd");
            let response = request.body(body.clone()).send().await.unwrap();
            assert_eq!(response.status(), 200, "{response:?}");
            assert_eq!(response.text().await.unwrap(), "good");
            let seen = door.upstream.requests().pop().unwrap();
            assert_eq!(seen.all("content-type"), ["image/odd"]);
            assert!(seen.body == body, "byte for byte");
            assert_eq!(door.wait_until_ended().await["state"], "succeeded");
        }
    })
    .await;
}

/// LIM-28: a streamed body cannot be sent again: the client gets the 429, and other calls wait.
#[tokio::test]
async fn lim_28_a_large_request_is_made_once() {
    within(async {
        let busy = "HTTP/1.1 429 Too Many Requests\r\nretry-after: 1\r\ncontent-length: 4\r\n\r\nbusy";
        let door = ProxySetup::new("", [next(busy), next(GOOD)]).await;
        let request = door.request(Method::PUT, "/proxy/up/x").body(noise(2 * PAYLOAD_LEN_MAX));
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 429);
        assert_eq!(response.text().await.unwrap(), "busy");
        let gate = door.get("/v1/limits").await.json;
        let gate = gate["limits"].as_array().unwrap().iter().find(|limit| limit["name"] == "up").cloned();
        assert!(gate.as_ref().is_some_and(|gate| !gate["closed_until"].is_null()), "{gate:?}");
        let other = door.request(Method::GET, "/proxy/up/x").send().await.unwrap();
        assert_eq!(other.text().await.unwrap(), "good");
        assert_eq!(door.upstream.requests().len(), 2);
    })
    .await;
}

/// LIM-28, OPS-9: what was streamed is gone, so that it is not run again, and its record stays.
#[tokio::test]
async fn lim_28_ops_9_a_streamed_call_is_not_run_again() {
    within(async {
        let broken = "HTTP/1.1 404 Not Found\r\ncontent-length: 4\r\n\r\nnone";
        let door = ProxySetup::new("", [next(broken)]).await;
        let request = door.request(Method::PUT, "/proxy/up/x").body(noise(2 * PAYLOAD_LEN_MAX));
        assert_eq!(request.send().await.unwrap().status(), 404);
        let before = door.wait_until_ended().await;
        let id = before["id"].as_str().unwrap();
        let rerun = door.request(Method::POST, &format!("/v1/operations/{id}/rerun"));
        answer(rerun).await.refused(409, "TG0013", None);
        assert_eq!(door.get(&format!("/v1/operations/{id}")).await.json["result"], before["result"]);
    })
    .await;
}
