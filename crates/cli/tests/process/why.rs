//! The sentence that says why an operation waits, the same in the API, the command and the page.

use serde_json::{Value, json};
use tidegate_sim::{HttpSim, HttpSimOptions};

use crate::ALONE;
use crate::caller::Caller;
use crate::child::{RunningServer, configure, tidegate, upstream};

/// A sentence without how long ago it was: three places are asked one after the other.
fn timeless(sentence: &str) -> String {
    let (before, after) = sentence.split_once(" ago").expect("it says how long ago");
    let mut words: Vec<_> = before.split(' ').collect();
    let unit = words.pop().unwrap();
    assert!(["ms", "s"].contains(&unit), "{sentence}");
    words.pop().unwrap().parse::<f64>().expect("how long ago is a number");
    format!("{} … ago{after}", words.join(" "))
}

/// What the page says, read as a browser would.
fn on_page(page: &str) -> String {
    let sentence = page.split("<p class=\"sentence\">").nth(1).expect("there is a sentence");
    let sentence = sentence.split("</p>").next().unwrap();
    sentence.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
}

async fn on_command_line(address: &str, id: &str) -> String {
    let mut command = tidegate();
    command.args(["op", "why", id, "--server", address]);
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().lines().next().unwrap().to_owned()
}

/// OPS-24: the API, the command and the page give the same sentence, for the first of a paused
/// group and for what is behind it.
#[tokio::test(flavor = "multi_thread")]
async fn ops_24_why_is_the_same_sentence_everywhere() {
    let _alone = ALONE.lock().await;
    let sim = HttpSim::start(HttpSimOptions::default()).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    configure(dir.path(), 8, &upstream("echo", &sim, None));
    let server = RunningServer::start(dir.path(), "warn", None);
    let caller = Caller::of(&server.address);
    let reason = "\"fix\" the <template> & wait";
    caller
        .post("/v1/groups/g/pause", &[], &json!({ "by": "tester", "reason": reason, "create": true }))
        .await;
    let operation =
        json!({ "upstream": "echo", "group": "g", "request": { "method": "POST", "path": "/x" } });
    let (first, _) = caller.submit(&operation).await;
    let (second, _) = caller.submit(&operation).await;
    for (id, begins) in [(&first, "Paused by tester "), (&second, "Waiting its turn: 1 before it")] {
        let api: Value =
            serde_json::from_str(&caller.get(&format!("/v1/operations/{id}/why")).await).unwrap();
        let api = timeless(api["because"].as_str().unwrap());
        assert!(api.starts_with(begins) && api.contains(reason), "{api}");
        assert_eq!(timeless(&on_command_line(&server.address, id).await), api);
        assert_eq!(timeless(&on_page(&caller.get(&format!("/operations/{id}")).await)), api);
        assert!(id == &first || api.contains(&first), "{api}");
    }
    assert_eq!(sim.stats().calls, 0);
}

/// OPS-24: operations for an upstream that is gone from the configuration are named in the log of
/// the start.
#[tokio::test(flavor = "multi_thread")]
async fn ops_24_upstreams_that_are_gone_are_named_at_the_start() {
    let _alone = ALONE.lock().await;
    let sim = HttpSim::start(HttpSimOptions::default()).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let both = upstream("echo", &sim, None) + &upstream("gone", &sim, None);
    let mut logs = Vec::new();
    for upstreams in [both, upstream("echo", &sim, None)] {
        configure(dir.path(), 8, &upstreams);
        let server = tokio::task::block_in_place(|| RunningServer::start(dir.path(), "warn", None));
        let caller = Caller::of(&server.address);
        for name in ["gone", "echo", "gone"].into_iter().filter(|_| logs.is_empty()) {
            let request = json!({ "method": "GET", "path": "/x" });
            let later = json!({ "upstream": name, "group": name, "delay_ms": 60_000, "request": request });
            caller.submit(&later).await;
        }
        logs.push(tokio::task::block_in_place(|| server.kill()));
    }
    assert!(!logs[0].contains("not configured"), "{}", logs[0]);
    assert!(
        logs[1].contains("upstreams that are not configured") && logs[1].contains("gone (2)"),
        "{}",
        logs[1]
    );
}
