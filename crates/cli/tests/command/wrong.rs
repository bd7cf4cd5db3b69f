//! What the command says when something is wrong, and how it exits.

use insta::assert_snapshot;

use crate::support::{Ran, World, run, tidegate};

fn told(args: &[&str]) -> Ran {
    let mut command = tidegate();
    command.args(args);
    run(command)
}

/// A file in a directory of its own; the path is left out of what is told.
fn check(text: &str) -> (Option<i32>, String) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("tidegate.toml"), text).unwrap();
    let mut command = tidegate();
    command.current_dir(dir.path()).args(["check-config", "tidegate.toml"]);
    let ran = run(command);
    (ran.exit, format!("{}{}", ran.out, ran.err))
}

#[test]
fn a_good_configuration_is_said_to_be_good() {
    let (exit, told) = check(
        "[[upstream]]\nname = \"echo\"\nbase_url = \"http://127.0.0.1:1\"\ntoken_env = \"NOT_SET_HERE\"\n",
    );
    assert_eq!(exit, Some(0));
    assert_snapshot!(told, @r"
    tidegate.toml: good: 1 upstreams, 0 limits, 0 tokens; listens on 127.0.0.1:7400, keeps file:tidegate-data
    note: tidegate.toml:4:13: upstream[0].token_env: The variable NOT_SET_HERE is not set.
    ");
}

#[test]
fn a_bad_configuration_is_told_line_by_line() {
    let (exit, told) = check(
        "[server]\nlisten = \"0.0.0.0:7400\"\nport = 1\n[[upstream]]\nname = \"echo\"\ntoken = \"hunter2\"\n",
    );
    assert_eq!(exit, Some(1));
    assert!(!told.contains("hunter2"));
    assert_snapshot!(told, @r"
    tidegate.toml:2:10: server.listen: 0.0.0.0:7400 can be reached from other machines, and there is no [[token]]. Add one, or listen on 127.0.0.1.
    tidegate.toml:3:1: server.port: There is no such key; here may stand connections_max, drain_s, listen, node, read_timeout_s, workers.
    tidegate.toml:4:1: upstream[0]: The key base_url is missing.
    tidegate.toml:6:1: upstream[0].token: A secret is never in the file. Put it into a variable of the environment and name that in a key that ends in _env.
    error[TG0020]: 4 things are wrong with tidegate.toml.
    ");
}

#[test]
fn serve_tells_what_is_wrong_with_its_configuration() {
    let ran = told(&["serve", "--listen", "0.0.0.0:0", "--store", "postgres://x", "--log-level", "error"]);
    assert_eq!((ran.exit, ran.out.as_str()), (Some(1), ""));
    assert_snapshot!(ran.err, @r"
    error[TG0020]: the configuration cannot be used
      hint: --listen: 0.0.0.0:0 can be reached from other machines, and there is no [[token]]. Add one, or listen on 127.0.0.1.
      hint: --store: A postgres store is not in this version; there are file:DIR and memory:.
    ");
}

#[test]
fn wrong_usage_exits_with_two() {
    for args in [
        &["frobnicate"][..],
        &["op"],
        &["op", "show"],
        &["op", "resolve", "x", "--as", "maybe"],
        &["serve", "--workers", "0"],
    ] {
        assert_eq!(told(args).exit, Some(2), "{args:?}");
    }
    let https = told(&["op", "list", "--server", "https://127.0.0.1"]);
    assert_eq!(https.exit, Some(2));
}

#[test]
fn a_server_that_is_not_there_is_told_with_a_hint() {
    // A port that was free a moment ago.
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let ran = told(&["op", "list", "--server", &format!("http://{address}")]);
    assert_eq!((ran.exit, ran.out.as_str()), (Some(1), ""));
    assert_snapshot!(ran.err.replace(&address, "ADDRESS"), @r"
    error: no server answers at http://ADDRESS (Connection refused (os error 111))
      hint: start it with `tidegate serve`, or set --server / TIDEGATE_SERVER
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_of_the_server_are_told_with_code_and_hints() {
    let world = World::new().await;
    let ran = world.run(&["op", "submit", "GET", "/x", "--upstream", "nobody"]).await;
    assert_eq!((ran.exit, ran.out.as_str()), (Some(1), ""));
    assert_snapshot!(ran.err, @r#"error[TG0003]: No upstream is called "nobody"; configured: echo."#);
    let ran = world.run(&["op", "show", "op_00000000000000000000000001", "--color", "always"]).await;
    assert!(ran.err.starts_with("\u{1b}[1;31merror[TG0010]\u{1b}[0m: "), "{ran:?}");
}
