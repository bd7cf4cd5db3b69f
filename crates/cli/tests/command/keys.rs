//! `key` against a server.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::support::World;

/// Sends a POST with a key and returns the status line. The command itself sends none.
fn post(world: &World, path: &str, key: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(world.server.addr).unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nidempotency-key: {key}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.lines().next().unwrap_or_default().to_owned()
}

/// IDM-22: keys are listed, shown and expired; an ambiguous one is refused with a list of the
/// candidates.
#[tokio::test(flavor = "multi_thread")]
async fn idm_22_keys_are_operated_on_from_the_command_line() {
    let world = World::new().await;
    let none = world.run(&["key", "list"]).await;
    assert_eq!((none.expect_success(), none.err.trim()), ("", "no key matches"));
    for path in ["/v1/groups/a/pause", "/v1/groups/b/pause"] {
        let said = tokio::task::block_in_place(|| post(&world, path, "order-1", r#"{"create":true}"#));
        assert!(said.contains("200"), "{said}");
    }
    let list = world.run(&["key", "list", "--state", "completed", "--scope", "-"]).await;
    assert_eq!(list.expect_success().lines().count(), 2, "{list:?}");
    assert!(list.out.contains("order-1\tcompleted\t-\tPOST\t/v1/groups/a/pause\t"), "{list:?}");
    let both = world.run(&["key", "show", "order-1"]).await;
    assert_eq!(both.exit, Some(1));
    assert!(both.err.starts_with("error[TG0025]: "), "{both:?}");
    assert!(both.err.contains("--scope - --method POST --path /v1/groups/b/pause"), "{both:?}");
    let which = ["order-1", "--scope", "-", "--method", "POST", "--path", "/v1/groups/b/pause"];
    let shown = world.run(&[&["key", "show"], &which[..]].concat()).await;
    assert!(shown.expect_success().contains("state\tcompleted\n"), "{shown:?}");
    assert!(shown.out.contains("answer\tstatus 200, a body of "), "{shown:?}");
    let released = world.run(&[&["key", "release"], &which[..]].concat()).await;
    assert!(released.exit == Some(1) && released.err.starts_with("error[TG0013]: "), "{released:?}");
    let expired = world.run(&[&["key", "expire"], &which[..], &["--json"]].concat()).await.json();
    assert_eq!(expired["state"], "expired", "{expired}");
    let gone = world.run(&[&["key", "expire"], &which[..]].concat()).await;
    assert!(gone.exit == Some(1) && gone.err.starts_with("error[TG0024]: "), "{gone:?}");
    assert_eq!(world.run(&["key", "list", "--json"]).await.json()["keys"].as_array().unwrap().len(), 1);
}

/// IDM-22: a caller is found by its header's value, which the command hashes; --scope and
/// --scope-value exclude each other.
#[tokio::test(flavor = "multi_thread")]
async fn idm_22_a_scope_is_found_by_its_value() {
    let world = World::new().await;
    let none = world.run(&["key", "show", "k", "--scope-value", "Bearer hunter2"]).await;
    assert!(none.exit == Some(1) && none.err.starts_with("error[TG0024]: "), "{none:?}");
    assert!(!none.err.contains("hunter2"), "{none:?}");
    let twice = world.run(&["key", "list", "--scope-value", "x", "--scope", "y"]).await;
    assert_eq!(twice.exit, Some(2), "{twice:?}");
    let wrong = world.run(&["key", "show", "é"]).await;
    assert!(wrong.exit == Some(1) && wrong.err.starts_with("error[TG0001]: "), "{wrong:?}");
}
