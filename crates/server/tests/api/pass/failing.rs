//! LIM-28: the responses to a client when the upstream fails, without delays for others.

use reqwest::Method;

use super::ProxySetup;
use super::upstream::{ScriptedReply, answer as next};
use crate::support::{read, within};

const BROKEN: &str = "HTTP/1.1 500 Oops\r\ncontent-length: 4\r\n\r\nfour";
const GOOD: &str = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\ngood";
const THROTTLED: &str = "HTTP/1.1 429 Slow\r\nretry-after: 0\r\ncontent-length: 0\r\n\r\n";

/// LIM-28: a call that may be sent twice is retried; the last response is the upstream's own.
#[tokio::test]
async fn lim_28_what_may_be_sent_twice_is_tried_again() {
    within(async {
        let door = ProxySetup::new(
            "[pacing]\nmax_attempts = 2\n",
            [next(BROKEN), next(GOOD), next(BROKEN), next(BROKEN)],
        )
        .await;
        let get = || door.request(Method::GET, "/proxy/up/x").send();
        let good = get().await.unwrap();
        assert_eq!(door.operation(&good).await["attempt"], 2);
        assert_eq!((good.status().as_u16(), &*good.text().await.unwrap()), (200, "good"));
        let broken = get().await.unwrap();
        assert!(!broken.headers().contains_key("x-tidegate-error"));
        assert_eq!((broken.status().as_u16(), &*broken.text().await.unwrap()), (500, "four"));
        assert_eq!(door.upstream.requests().len(), 4);
    })
    .await;
}

/// LIM-28, OPS-23: a call that must not happen twice is sent once, and the client gets its own 5xx.
#[tokio::test]
async fn lim_28_ops_23_a_post_is_sent_once() {
    within(async {
        let door = ProxySetup::new("", [next(BROKEN), next(BROKEN), next(GOOD)]).await;
        let post = door.request(Method::POST, "/proxy/up/x").body("{}");
        assert_eq!(post.send().await.unwrap().status(), 500);
        assert_eq!(door.upstream.requests().len(), 1);
        let keyed = door.request(Method::POST, "/proxy/up/x").header("idempotency-key", "k").body("{}");
        assert_eq!(keyed.send().await.unwrap().status(), 200, "the upstream knows that it is the same");
        assert_eq!(door.upstream.requests().len(), 3);
    })
    .await;
}

/// LIM-28: the client learns that a POST got no response, and the group continues.
#[tokio::test]
async fn lim_28_an_unknown_outcome_holds_nobody_up() {
    within(async {
        let door = ProxySetup::new(
            "timeout_ms = 300\n",
            [ScriptedReply::Cut, ScriptedReply::Hold(Vec::new()), next(GOOD)],
        )
        .await;
        for _ in 0..2 {
            let response = door.request(Method::POST, "/proxy/up/x").body("{}").send().await.unwrap();
            assert_eq!(response.status(), 502);
            assert_eq!(response.headers()["x-tidegate-error"], "TG0027");
            assert!(!response.headers().contains_key("retry-after"));
            let operation = door.operation(&response).await;
            assert_eq!((&operation["state"], &operation["attempt"]), (&"failed".into(), &1.into()));
            assert!(response.text().await.unwrap().contains("its outcome is unknown"));
        }
        let after = door.request(Method::POST, "/proxy/up/x").body("{}").send().await.unwrap();
        assert_eq!(after.text().await.unwrap(), "good");
        assert_eq!(door.upstream.requests().len(), 3, "nothing was repeated");
        let groups = door.get("/v1/groups?state=stopped").await.json;
        assert!(groups["groups"].as_array().unwrap().is_empty(), "{groups}");
    })
    .await;
}

/// LIM-28: a 429 never reaches the client, even with one attempt.
#[tokio::test]
async fn lim_28_a_429_never_reaches_the_client() {
    within(async {
        let door = ProxySetup::new("", [next(THROTTLED), next(THROTTLED), next(GOOD)]).await;
        let response = door.request(Method::POST, "/proxy/up/x").body("{}").send().await.unwrap();
        assert_eq!(response.text().await.unwrap(), "good");
        assert_eq!(door.upstream.requests().len(), 3);
    })
    .await;
}

/// LIM-28: if the upstream asks to wait for longer than the timeout, the client gets our 429 with
/// the time at which the upstream opens again.
#[tokio::test]
async fn lim_28_a_429_for_too_long_is_not_in_time() {
    within(async {
        let long = "HTTP/1.1 429 Slow\r\nretry-after: 3600\r\ncontent-length: 0\r\n\r\n";
        let door = ProxySetup::new("", [next(long)]).await;
        let response = door.request(Method::GET, "/proxy/up/x").send().await.unwrap();
        assert_eq!(response.status(), 429);
        assert_eq!(response.headers()["x-tidegate-error"], "TG0026");
        assert!(retry_after(&response) > 3_590);
        // And the next client gets it at once.
        let next = door.request(Method::GET, "/proxy/up/x").send().await.unwrap();
        assert_eq!(
            (next.status().as_u16(), &next.headers()["x-tidegate-error"]),
            (429, &"TG0008".parse().unwrap())
        );
        assert!(retry_after(&next) > 3_590);
        let told = read(next).await.json;
        assert!(told["error"]["field"].is_null(), "the client sent no deadline: {told}");
        assert!(told["error"]["message"].as_str().unwrap().contains("wait_s"), "{told}");
        assert_eq!(door.upstream.requests().len(), 1);
    })
    .await;
}

fn retry_after(response: &reqwest::Response) -> u64 {
    response.headers()["retry-after"].to_str().unwrap().parse().unwrap()
}

/// LIM-28: a call whose turn comes later than it may wait is refused at once, with the time of its
/// turn; the timeout of its upstream is no part of that.
#[tokio::test]
async fn lim_28_a_turn_beyond_the_wait_is_refused_at_once() {
    within(async {
        let limit =
            "[[upstream.limit]]\nname = \"r\"\ncapacity = 1\nrefill_per_s = 0.05\n[pacing]\nwait_s = 10\n";
        let door = ProxySetup::new(limit, []).await;
        let get = async || door.request(Method::GET, "/proxy/up/x").send().await.unwrap();
        assert_eq!(get().await.status(), 200);
        let started = tokio::time::Instant::now();
        let refused = get().await;
        assert_eq!(refused.status(), 429);
        assert_eq!(refused.headers()["x-tidegate-error"], "TG0008");
        assert!((11..=21).contains(&retry_after(&refused)), "{refused:?}");
        assert!(started.elapsed().as_secs() < 9, "it waited");
        assert_eq!(door.upstream.requests().len(), 1);
    })
    .await;
}

/// LIM-28: a call that waited in vain for its limit gets the time at which the limit lets it start.
#[tokio::test]
async fn lim_28_a_wait_in_vain_for_a_limit_names_its_end() {
    within(async {
        let throttled = "HTTP/1.1 429 Slow\r\nretry-after: 20\r\ncontent-length: 0\r\n\r\n";
        let door = ProxySetup::new("[pacing]\nwait_s = 1\n", [next(throttled)]).await;
        let response = door.request(Method::GET, "/proxy/up/x").send().await.unwrap();
        assert_eq!(
            (response.status().as_u16(), &response.headers()["x-tidegate-error"]),
            (429, &"TG0026".parse().unwrap())
        );
        assert!((17..=21).contains(&retry_after(&response)), "{response:?}");
        assert_eq!(door.upstream.requests().len(), 1);
    })
    .await;
}

/// LIM-28: a response that is too large, and a refused connection, are reported as such.
#[tokio::test]
async fn lim_28_what_cannot_be_given_back_is_told() {
    within(async {
        let large = "HTTP/1.1 404 Not Found\r\ncontent-length: 4\r\n\r\nnone";
        let door = ProxySetup::new("response_max_bytes = 3\n", [next(large)]).await;
        let large = door.request(Method::POST, "/proxy/up/x").send().await.unwrap();
        assert_eq!(
            (large.status().as_u16(), &large.headers()["x-tidegate-error"]),
            (502, &"TG0027".parse().unwrap())
        );
        assert!(large.text().await.unwrap().contains("more than 3 bytes"));
        let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let closed = nobody.local_addr().unwrap();
        drop(nobody);
        let away = format!("[[upstream]]\nname = \"away\"\nbase_url = \"http://{closed}\"\n");
        let door = ProxySetup::new(&away, []).await;
        let response = door.request(Method::POST, "/proxy/away/x").send().await.unwrap();
        assert_eq!(response.status(), 502);
        assert!(response.text().await.unwrap().contains("was not sent"));
    })
    .await;
}
