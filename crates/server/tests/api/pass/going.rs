//! LIM-28: clients that disconnect, timeouts, and servers that shut down.

use std::time::Duration;

use reqwest::{Client, Method};
use tidegate_server::Server;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::upstream::{ScriptedReply, Upstream};
use super::{ProxySetup, config};
use crate::support::within;

const GOOD: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\ngood";
const BUSY: &[u8] = b"HTTP/1.1 503 Wait\r\ncontent-length: 0\r\n\r\n";
const PUT: &str = "PUT /proxy/up/x HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\nv1";
const POST: &str =
    "POST /proxy/up/x HTTP/1.1\r\nhost: localhost\r\nx-tidegate-group: up\r\ncontent-length: 2\r\n\r\n{}";

impl ProxySetup {
    /// The states of all operations, newest first.
    async fn states(&self) -> Vec<String> {
        let listed = self.get("/v1/operations").await.json;
        let listed = listed["operations"].as_array().unwrap().iter();
        listed.map(|one| one["state"].as_str().unwrap().to_owned()).collect()
    }

    async fn until(&self, states: &[&str]) {
        while self.states().await != states {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Sends a request and keeps the connection open.
    async fn send_request(&self) -> TcpStream {
        let mut client = TcpStream::connect(self.server.addr).await.unwrap();
        client.write_all(POST.as_bytes()).await.unwrap();
        client
    }
}

/// LIM-28: a client that disconnects leaves nothing in the queue; a call in flight continues to its
/// end.
#[tokio::test]
async fn lim_28_a_client_that_goes_away_leaves_nothing_in_the_line() {
    within(async {
        let door = ProxySetup::new("", [ScriptedReply::Hold(GOOD.to_vec())]).await;
        let first = door.send_request().await;
        door.upstream.wait_for_requests(1).await;
        let second = door.send_request().await;
        door.until(&["queued", "running"]).await;
        drop((first, second));
        door.until(&["canceled", "running"]).await;
        door.upstream.go.add_permits(1);
        door.until(&["canceled", "succeeded"]).await;
        assert_eq!(door.upstream.requests().len(), 1);
    })
    .await;
}

/// LIM-28: a timeout is reported with the operation's id; a waiting operation is canceled, a call
/// in flight continues.
#[tokio::test]
async fn lim_28_the_wait_is_bounded() {
    within(async {
        let door = ProxySetup::new("[pacing]\nwait_s = 1\n", [ScriptedReply::Hold(GOOD.to_vec())]).await;
        let ask =
            || door.request(Method::POST, "/proxy/up/x").header("x-tidegate-group", "up").body("{}").send();
        let (first, second) = tokio::join!(ask(), async {
            door.upstream.wait_for_requests(1).await;
            ask().await
        });
        for (response, words) in [(first.unwrap(), "may be in flight"), (second.unwrap(), "was canceled")] {
            assert_eq!(response.status(), 504);
            assert_eq!(response.headers()["x-tidegate-error"], "TG0026");
            let id = response.headers()["x-tidegate-operation"].to_str().unwrap().to_owned();
            let told: serde_json::Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
            assert_eq!(told["error"]["detail"]["operation"], id);
            assert!(told["error"]["message"].as_str().unwrap().contains(words), "{told}");
        }
        door.upstream.go.add_permits(1);
        door.until(&["canceled", "succeeded"]).await;
        assert_eq!(door.upstream.requests().len(), 1);
    })
    .await;
}

/// LIM-28: once a client has disconnected or was told that there is no answer, no further attempt
/// of its call starts, so it cannot overtake a newer one.
#[tokio::test]
async fn lim_28_what_no_one_waits_for_is_not_sent_again() {
    within(async {
        let door = ProxySetup::new("[pacing]\nwait_s = 1\n", [ScriptedReply::Hold(BUSY.to_vec())]).await;
        let told = door.request(Method::PUT, "/proxy/up/x").body("v1").send().await.unwrap();
        assert_eq!(
            (told.status().as_u16(), &told.headers()["x-tidegate-error"]),
            (504, &"TG0026".parse().unwrap())
        );
        door.upstream.go.add_permits(1);
        door.until(&["canceled"]).await;
        door.upstream.push_reply(ScriptedReply::Hold(BUSY.to_vec()));
        let mut gone = TcpStream::connect(door.server.addr).await.unwrap();
        gone.write_all(PUT.as_bytes()).await.unwrap();
        door.upstream.wait_for_requests(2).await;
        drop(gone);
        door.upstream.go.add_permits(1);
        door.until(&["canceled", "canceled"]).await;
        assert_eq!(door.upstream.requests().len(), 2);
    })
    .await;
}

/// LIM-28: a call that was in flight when the server stopped, and whose client was told so, is not
/// sent by the next process.
#[tokio::test]
async fn lim_28_what_was_answered_at_a_stop_is_not_sent_by_the_next_process() {
    within(async {
        let dir = tempfile::tempdir().unwrap();
        let upstream = Upstream::start([ScriptedReply::Hold(GOOD.to_vec())]).await;
        let mut config = config(&format!("file:{}", dir.path().display()), upstream.addr, "");
        config.drain = Duration::from_millis(50);
        let server = Server::start(config.clone()).await.unwrap();
        let client = Client::builder().no_proxy().build().unwrap();
        let put = client.put(format!("http://{}/proxy/up/x", server.addr)).body("v1").send();
        let (told, ()) = tokio::join!(put, async {
            upstream.wait_for_requests(1).await;
            server.shutdown().await;
        });
        let told = told.unwrap();
        assert_eq!(
            (told.status().as_u16(), &told.headers()["x-tidegate-error"]),
            (502, &"TG0027".parse().unwrap())
        );
        let id = told.headers()["x-tidegate-operation"].to_str().unwrap().to_owned();
        let next = loop {
            // The folder is free when the last task of the first server has ended.
            match Server::start(config.clone()).await {
                Ok(next) => break next,
                Err(error) => assert_eq!(error.code.to_string(), "TG0022", "{error}"),
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        let next = ProxySetup { server: next, upstream, client: Client::new() };
        let operation = next.get(&format!("/v1/operations/{id}")).await.json;
        assert_eq!(operation["state"], "canceled", "{operation}");
        let told = operation["fault"]["message"].as_str().unwrap();
        assert!(told.contains("before the response came"), "{told}");
        assert_eq!(next.upstream.requests().len(), 1);
    })
    .await;
}

/// LIM-28: a client learns that an operator canceled its operation.
#[tokio::test]
async fn lim_28_what_a_person_calls_off_is_told() {
    within(async {
        let door = ProxySetup::new("", []).await;
        let paused = door
            .request(Method::POST, "/v1/groups/up/pause")
            .body(r#"{"create":true}"#)
            .send()
            .await
            .unwrap();
        assert_eq!(paused.status(), 200);
        let ask =
            door.request(Method::POST, "/proxy/up/x").header("x-tidegate-group", "up").body("{}").send();
        let (response, ()) = tokio::join!(ask, async {
            while door.states().await.is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            let listed = door.get("/v1/operations").await.json;
            let id = listed["operations"][0]["id"].as_str().unwrap().to_owned();
            let cancel =
                door.request(Method::POST, &format!("/v1/operations/{id}/cancel")).send().await.unwrap();
            assert_eq!(cancel.status(), 200);
        });
        let response = response.unwrap();
        assert_eq!(
            (response.status().as_u16(), &response.headers()["x-tidegate-error"]),
            (502, &"TG0027".parse().unwrap())
        );
        assert!(door.upstream.requests().is_empty());
    })
    .await;
}

/// LIM-28: a server that shuts down cancels what waits, and returns the responses of calls in
/// flight.
#[tokio::test]
async fn lim_28_a_stop_calls_off_what_waits() {
    within(async {
        let door = ProxySetup::new("", [ScriptedReply::Hold(GOOD.to_vec())]).await;
        let ask = || {
            let request =
                door.request(Method::POST, "/proxy/up/x").header("x-tidegate-group", "up").body("{}");
            tokio::spawn(request.send())
        };
        let first = ask();
        door.upstream.wait_for_requests(1).await;
        let second = ask();
        door.until(&["queued", "running"]).await;
        let stopping = tokio::spawn(door.server.shutdown());
        let second = second.await.unwrap().unwrap();
        assert_eq!(
            (second.status().as_u16(), &second.headers()["x-tidegate-error"]),
            (503, &"TG0018".parse().unwrap())
        );
        door.upstream.go.add_permits(1);
        let first = first.await.unwrap().unwrap();
        assert_eq!(first.text().await.unwrap(), "good");
        stopping.await.unwrap();
        assert_eq!(door.upstream.requests().len(), 1);
    })
    .await;
}
