//! `op`, `group` and `limit` against a server.

use std::io::{BufRead, BufReader, Write};

use serde_json::{Value, json};

use crate::support::{World, run, tidegate};

/// OPS-6: an operation is submitted, awaited and shown.
#[tokio::test(flavor = "multi_thread")]
async fn ops_6_submit_and_wait() {
    let world = World::new().await;
    let submit =
        ["op", "submit", "post", "/x?q=1", "--upstream", "echo", "--group", "g", "--body", "{\"n\":1}"];
    let shown = world.run(&[&submit[..], &["--wait-ms", "20000", "--cost", "points=2"]].concat()).await;
    assert!(
        shown.expect_success().contains("state\tsucceeded\n") && shown.out.contains("result\tstatus 200"),
        "{shown:?}"
    );
    assert_eq!(shown.err, "");
    assert!(shown.out.contains("request\tPOST /x?q=1\nrequest body\t{\"n\":1}\n"), "what it is: {shown:?}");
    let keyed = [&submit[..], &["--key", "k", "--header", "accept: text/plain"]].concat();
    let first = world.run(&keyed).await;
    assert!(first.expect_success().starts_with("op_") && first.expect_success().len() == 29, "{first:?}");
    let again = world.run(&keyed).await;
    assert_eq!(again.expect_success(), first.expect_success());
    assert!(again.err.contains("same operation"), "{again:?}");
    let json =
        world.run(&["op", "show", first.expect_success(), "--wait-ms", "20000", "--json"]).await.json();
    assert_eq!((&json["state"], &json["result"]["body"]["body"]), (&json!("succeeded"), &json!({ "n": 1 })));
    assert_eq!(world.sim.stats().writes, 2);
    let refused = world.run(&[&submit[..], &["--completion", "{}"]].concat()).await;
    assert!(refused.err.contains("Either a callback or a poll"), "{refused:?}");
    let complete = ["op", "complete", first.expect_success(), "--as", "failed", "--message", "no"];
    let ended = world.run(&complete).await;
    assert!(ended.expect_success().contains("state\tsucceeded\n"), "it has ended before: {ended:?}");
}

/// OPS-23: a submission whose outcome is unknown says so, and how to record the outcome.
#[tokio::test(flavor = "multi_thread")]
async fn ops_23_submit_tells_of_an_unknown_outcome() {
    let world = World::cutting().await;
    let submit = ["op", "submit", "POST", "/x", "--upstream", "echo", "--wait-ms", "20000"];
    let unknown = world.run(&submit).await;
    assert_eq!(unknown.exit, Some(1), "{unknown:?}");
    assert!(
        unknown.err.contains(" is unknown") && unknown.err.contains("tidegate op resolve op_"),
        "{unknown:?}"
    );
    let list = world.run(&["op", "list", "--key", ""]).await;
    assert!(
        list.err.starts_with("error[TG0001]: ") && list.out.is_empty(),
        "an empty key finds nothing: {list:?}"
    );
}

/// OPS-6: operations of other kinds can be submitted too; the server refuses an unknown kind.
#[tokio::test(flavor = "multi_thread")]
async fn ops_6_submit_of_another_kind() {
    let world = World::new().await;
    let submit = ["op", "submit", "--kind", "shopify.bulk", "--upstream", "echo"];
    let refused = world.run(&[&submit[..], &["--body", "{\"query\":\"{ a }\"}"]].concat()).await;
    assert!(refused.exit == Some(1) && refused.err.contains("No kind is called"), "{refused:?}");
    assert_eq!(world.run(&submit).await.exit, Some(2), "its request is its body");
    assert_eq!(world.run(&["op", "submit", "--upstream", "echo"]).await.exit, Some(2), "a method is missing");
}

/// OPS-9, OPS-24: a group is paused and resumed; an operation that waits in it says why, is
/// canceled and rerun.
#[tokio::test(flavor = "multi_thread")]
async fn ops_9_groups_and_orders() {
    let world = World::new().await;
    let misspelled = world.run(&["group", "pause", "a/b"]).await;
    assert!(misspelled.err.starts_with("error[TG0011]: "), "{misspelled:?}");
    assert!(misspelled.err.contains("before its first operation: --create"), "{misspelled:?}");
    let paused = world.run(&["group", "pause", "a/b", "--create", "--reason", "template fix"]).await;
    assert!(paused.expect_success().contains("state\tpaused\n"), "{paused:?}");
    assert!(paused.err.contains("tidegate group resume a/b"), "{paused:?}");
    let submit = ["op", "submit", "POST", "/x?pin=1", "--upstream", "echo", "--group", "a/b"];
    let body = ["--body", r#"{"password":"hunter2","n":1.10}"#];
    let submitted = world.run(&[&submit[..], &body[..]].concat()).await;
    let id = submitted.expect_success();
    let shown = world.run(&["op", "show", id]).await;
    assert!(shown.expect_success().contains("request\tPOST /x?pin=redacted\n"), "{shown:?}");
    assert!(shown.out.contains("request body\t{\"password\":\"redacted\",\"n\":1.10}\n"), "{shown:?}");
    let why = world.run(&["op", "why", id]).await;
    assert!(why.expect_success().contains("tester") && why.out.contains("template fix"), "{why:?}");
    let list = world.run(&["group", "list", "--state", "paused"]).await;
    assert!(list.expect_success().starts_with("a/b\tpaused\t1\t"), "{list:?}");
    assert!(world.run(&["op", "cancel", id]).await.expect_success().contains("state\tcanceled"));
    let twice = world.run(&["op", "cancel", id]).await;
    assert_eq!(twice.exit, Some(1));
    assert!(twice.err.starts_with("error[TG0013]: ") && twice.out.is_empty(), "{twice:?}");
    world.run(&["op", "rerun", id]).await.expect_success();
    world.run(&["group", "resume", "a/b"]).await.expect_success();
    assert!(
        world
            .run(&["op", "show", id, "--wait-ms", "20000"])
            .await
            .expect_success()
            .contains("state\tsucceeded")
    );
    let list = world.run(&["op", "list", "--group", "a/b", "--state", "succeeded"]).await;
    let columns: Vec<_> = list.expect_success().split('\t').take(5).collect();
    assert_eq!(columns, [id, "succeeded", "http", "a/b", "echo POST /x"]);
    let none = world.run(&["op", "list", "--state", "failed"]).await;
    assert_eq!((none.expect_success(), none.err.trim()), ("", "no operation matches"));
}

/// OPS-9: operations are counted by a filter, and canceled with `--yes`.
#[tokio::test(flavor = "multi_thread")]
async fn ops_9_all_that_a_filter_finds() {
    let world = World::new().await;
    world.run(&["group", "pause", "g", "--create"]).await.expect_success();
    let submit = ["op", "submit", "POST", "/x", "--upstream", "echo", "--group", "g"];
    let ids = [world.run(&submit).await, world.run(&submit).await];
    let cancel = ["op", "cancel", "--group", "g", "--upstream", "echo"];
    let counted = world.run(&cancel).await;
    assert_eq!(counted.expect_success(), "matched\t2", "{counted:?}");
    assert!(counted.err.contains("--yes"), "{counted:?}");
    let done = world.run(&[&cancel[..], &["--yes"]].concat()).await;
    assert!(done.expect_success().contains("changed\t2") && done.err.is_empty(), "{done:?}");
    let shown = world.run(&["op", "show", ids[0].expect_success()]).await;
    assert!(shown.expect_success().contains("state\tcanceled"), "{shown:?}");
    let rerun = ["op", "rerun", "--state", "canceled", "--yes", "--json"];
    assert_eq!(world.run(&rerun).await.json()["changed"], 2);
    let none = world.run(&["op", "resolve", "--as", "repeat", "--upstream", "echo"]).await;
    assert_eq!(none.expect_success(), "matched\t0");
    for wrong in
        [&["op", "cancel"][..], &["op", "cancel", "--yes"], &["op", "cancel", "op_1", "--group", "g"]]
    {
        assert_eq!(world.run(wrong).await.exit, Some(2), "{wrong:?}");
    }
}

/// A server that returns these responses, one per request; then returns the request lines.
fn canned(answers: Vec<Value>) -> (String, std::thread::JoinHandle<Vec<String>>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let answering = std::thread::spawn(move || {
        let answer = |answer: Value| {
            let (mut stream, _) = listener.accept().unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map(Result::unwrap);
            let first = lines.next().unwrap();
            lines.take_while(|line| !line.is_empty()).for_each(drop);
            let body = answer.to_string();
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n";
            write!(stream, "{head}content-length: {}\r\n\r\n{body}", body.len()).unwrap();
            first
        };
        answers.into_iter().map(answer).collect()
    });
    (address, answering)
}

/// OPS-6: an empty page with a cursor is not the end of a list.
#[test]
fn ops_6_a_list_goes_on_behind_an_empty_page() {
    let empty = |next: &str| json!({ "operations": [], "next_cursor": next });
    let one = json!({ "operations": [{ "id": "op_1", "state": "waiting" }], "next_cursor": null });
    let (address, called) = canned(vec![empty("c1"), empty("c2"), one]);
    let mut command = tidegate();
    command.args(["op", "list", "--state", "waiting", "--server", &address]);
    let ran = run(command);
    assert!(ran.expect_success().starts_with("op_1\twaiting"), "{ran:?}");
    let called = called.join().unwrap();
    for (call, cursor) in called[1..].iter().zip(["cursor=c1", "cursor=c2"]) {
        assert!(call.contains("state=waiting") && call.contains(cursor), "{called:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_are_listed_and_set() {
    let world = World::new().await;
    let list = world.run(&["limit", "list"]).await;
    assert_eq!(
        list.expect_success().lines().last(),
        Some("echo/points\tdrip\t10\t10\t0.5/s\t0\tconfig"),
        "{list:?}"
    );
    let set = world
        .run(&["limit", "set", "echo/points", "--capacity", "40", "--refill-per-s", "2", "--json"])
        .await;
    assert_eq!(set.json()["capacity"], 40);
    assert_eq!(world.run(&["limit", "set", "echo/points"]).await.exit, Some(2));
    let one = world.run(&["limit", "set", "echo/points", "--refill-per-s", "0.01", "--json"]).await;
    assert_eq!((&one.json()["capacity"], &one.json()["refill_per_s"]), (&json!(40), &json!(0.01)));
    let open = world.run(&["limit", "set", "echo", "--open"]).await;
    assert!(open.expect_success().starts_with("echo\t") && open.err.contains("not closed"), "{open:?}");
    let unknown = world.run(&["limit", "set", "nobody", "--capacity", "4"]).await;
    assert!(unknown.exit == Some(1) && unknown.err.contains("nobody"), "{unknown:?}");
    let none = world.run(&["limit", "set", "nobody", "--open"]).await;
    assert!(none.exit == Some(1) && none.err.starts_with("error[TG0012]: "), "{none:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_alone_owns_its_one_partition() {
    let world = World::new().await;
    let status = world.run(&["cluster", "status"]).await;
    assert!(status.expect_success().starts_with("0\ttidegate\t"), "{status:?}");
    assert!(status.err.contains("its own store"), "{status:?}");
    let json = world.run(&["cluster", "status", "--json"]).await.json();
    assert_eq!(json["partitions"].as_array().unwrap().len(), 1, "{json}");
}
