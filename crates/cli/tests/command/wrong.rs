//! The error messages and exit codes of the command.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::Stdio;

use insta::assert_snapshot;
use serde_json::Value;

use crate::support::{CommandOutput, World, run, tidegate};

fn run_failing(args: &[&str]) -> CommandOutput {
    let mut command = tidegate();
    command.args(args);
    run(command)
}

/// Checks a configuration in its own directory, so that the output has no absolute path.
fn check(text: &str) -> (Option<i32>, String) {
    let ran = with_file(text, &["check-config", "tidegate.toml"], &[]);
    (ran.exit, format!("{}{}", ran.out, ran.err))
}

/// Runs a command in a directory with this `tidegate.toml`.
fn with_file(text: &str, args: &[&str], env: &[(&str, &str)]) -> CommandOutput {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("tidegate.toml"), text).unwrap();
    let mut command = tidegate();
    command.current_dir(dir.path()).args(args).envs(env.iter().copied());
    run(command)
}

#[test]
fn a_good_configuration_is_said_to_be_good() {
    let (exit, told) = check("[[upstream]]\nname = \"echo\"\nbase_url = \"http://127.0.0.1:1\"\n");
    assert_eq!(exit, Some(0));
    assert_snapshot!(told, @"tidegate.toml: valid: 1 upstream, 0 limits, 0 tokens; listens on 127.0.0.1:7400, stores in file:tidegate-data");
}

/// Kinds of remote workers are counted, and so are their limits.
#[test]
fn a_configuration_with_kinds_counts_them() {
    let kind = "[[kind]]\nname = \"resize\"\nworker = \"remote\"\n";
    let (exit, told) = check(&format!("{kind}[[kind.limit]]\nname = \"slots\"\nat_once = 1\n"));
    assert_eq!(exit, Some(0), "{told}");
    assert!(told.contains("valid: 0 upstreams, 1 kind, 1 limit, 0 tokens"), "{told}");
}

/// OPS-22: an archive is shown after the store, without its password.
#[test]
fn ops_22_an_archive_is_told_without_its_password() {
    let text = "[store]\nurl = \"redis://:hunter2@127.0.0.1:1\"\n";
    let env = [("TIDEGATE_STORE_ARCHIVE", "postgres://me:hunter2@db/main?password=hunter2")];
    let ran = with_file(text, &["check-config", "tidegate.toml"], &env);
    assert_snapshot!(format!("{}{}", ran.out, ran.err), @"tidegate.toml: valid: 0 upstreams, 0 limits, 0 tokens; listens on 127.0.0.1:7400, stores in redis://127.0.0.1:1, archives to postgres://db/main");
    let ran = with_file(text, &["check-config", "tidegate.toml", "--json"], &env);
    let told: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(told["archive"], "postgres://db/main");
    let ran = with_file("", &["check-config", "tidegate.toml"], &env);
    assert_eq!(ran.exit, Some(1), "beside a folder there is none");
    assert!(!ran.err.contains("hunter2"), "{}", ran.err);
}

/// `check-config` reports what `serve` would refuse in this environment, with the location.
#[test]
fn variables_that_are_not_set_or_misspelled_are_told_before_the_start() {
    let text = "[[upstream]]\nname = \"echo\"\nbase_url = \"http://127.0.0.1:1\"\ntoken_env = \"NOT_SET_HERE\"\n\
                [[token]]\nname = \"t\"\nscopes = [\"read\"]\nvalue_env = \"NOR_THIS\"\n\
                [[token]]\nname = \"u\"\nscopes = [\"read\"]\nvalue_env = \"SHORT\"\n";
    let env = [("SHORT", "hunter2"), ("TIDEGATE_STORE_ULR", "memory:")];
    let checked = with_file(text, &["check-config", "tidegate.toml"], &env);
    assert_eq!((checked.exit, checked.out.as_str()), (Some(1), ""));
    assert_snapshot!(checked.err, @r"
    TIDEGATE_STORE_ULR: There is no such variable; did you mean TIDEGATE_STORE_URL?
    tidegate.toml:4:13: upstream[0].token_env: The variable NOT_SET_HERE is not set.
    tidegate.toml:8:13: token[0].value_env: The variable NOR_THIS is not set.
    tidegate.toml:12:13: token[1].value_env: The token in SHORT is shorter than 16 bytes.
    error[TG0020]: 4 problems in tidegate.toml.
    ");
    let served = with_file(text, &["serve", "--listen", "127.0.0.1:0", "--log-level", "error"], &env);
    assert_eq!(served.exit, Some(1));
    for problem in checked.err.lines().filter(|line| !line.starts_with("error")) {
        assert!(served.err.contains(&format!("hint: {problem}\n")), "{served:?}");
    }
    let json = with_file(text, &["check-config", "tidegate.toml", "--json"], &env);
    let told: Value = serde_json::from_str(&json.err).unwrap();
    assert_eq!((json.exit, &told["error"]["code"]), (Some(1), &"TG0020".into()));
    let problems = told["error"]["detail"]["problems"].as_array().unwrap();
    assert_eq!((problems.len(), &problems[1]["at"]), (4, &"tidegate.toml:4:13".into()), "{told}");
    assert_eq!(problems[1]["key"], "upstream[0].token_env");
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
    tidegate.toml:3:1: server.port: There is no such key; known keys: connections_max, drain_s, listen, node, public_url, read_timeout_s, tls_cert, tls_key, workers.
    tidegate.toml:4:1: upstream[0]: The key base_url is missing.
    tidegate.toml:6:1: upstream[0].token: Secrets are not allowed in the file. Put it into an environment variable and name that variable in a key that ends in _env.
    error[TG0020]: 4 problems in tidegate.toml.
    ");
}

#[test]
fn serve_tells_what_is_wrong_with_its_configuration() {
    let ran =
        run_failing(&["serve", "--listen", "0.0.0.0:0", "--store", "mysql://x", "--log-level", "error"]);
    assert_eq!((ran.exit, ran.out.as_str()), (Some(1), ""));
    assert_snapshot!(ran.err, @r"
    error[TG0020]: the configuration cannot be used
      hint: --listen: 0.0.0.0:0 can be reached from other machines, and there is no [[token]]. Add one, or listen on 127.0.0.1.
      hint: --store: It must be file:DIR, memory:, redis://… or postgres://…, not mysql:….
    ");
}

/// The usage lists what is missing, and no server, which has a default.
#[test]
fn usage_does_not_require_a_server() {
    let submit = |server: Option<&str>| {
        let mut command = tidegate();
        command.args(["op", "submit"]).envs(server.map(|server| ("TIDEGATE_SERVER", server)));
        run(command)
    };
    for server in [None, Some("http://127.0.0.1:1")] {
        let ran = submit(server);
        let usage =
            ran.err.lines().find(|line| line.starts_with("Usage: tidegate op submit")).unwrap_or_default();
        assert!(ran.exit == Some(2) && usage.contains("--upstream"), "{ran:?}");
        assert!(!usage.contains("--server"), "{usage}");
    }
    let ran = with_file("", &["op", "list"], &[("TIDEGATE_SERVER", "nowhere")]);
    assert!(ran.exit == Some(2) && ran.err.contains("\"nowhere\" is not a valid server"), "{ran:?}");
}

#[test]
fn wrong_usage_exits_with_two() {
    for args in [
        &["frobnicate"][..],
        &["op"],
        &["op", "show"],
        &["op", "show", ""],
        &["sim", "shopify", "--fail-rate", "2"],
        &["op", "resolve", "x", "--as", "maybe"],
        &["serve", "--workers", "0"],
    ] {
        assert_eq!(run_failing(args).exit, Some(2), "{args:?}");
    }
}

/// The help of a command answers the next question of a newcomer.
#[test]
fn help_says_what_comes_next() {
    let table = [
        (&["--help"][..], "tidegate demo"),
        (&["serve", "--help"], "TIDEGATE_SERVER_LISTEN"),
        (&["op", "submit", "--help"], "Examples:"),
        (&["limit", "set", "--help"], "--at-once 4"),
        (
            &["sim", "http", "--help"],
            "A repeated PUT or DELETE has no further effect and does not count as a duplicate.",
        ),
        (&["sim", "shopify", "--help"], "POST /_sim/shops/acme"),
    ];
    for (args, words) in table {
        let ran = run_failing(args);
        assert!(ran.expect_success().contains(words), "{ran:?}");
    }
}

/// A server behind TLS is called with TLS: nothing, least of all the token, is sent in the clear.
#[test]
fn https_is_spoken_with_tls() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("https://{}", listener.local_addr().unwrap());
    let first = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut first = [0; 3];
        stream.read_exact(&mut first).unwrap();
        first
    });
    let ran = run_failing(&["op", "list", "--server", &server]);
    assert_eq!(first.join().unwrap(), [0x16, 3, 1], "a TLS handshake");
    assert_eq!(ran.exit, Some(1), "{ran:?}");
    assert!(ran.err.contains(&format!("cannot reach a server at {server}")), "{ran:?}");
}

/// The error for an invalid address says what is valid.
#[test]
fn an_address_is_a_scheme_and_a_host() {
    for address in ["127.0.0.1:7400", "ftp://127.0.0.1", "http://", ""] {
        let ran = run_failing(&["op", "list", "--server", address]);
        assert_eq!(ran.exit, Some(2), "{ran:?}");
        assert!(
            ran.err.contains("is not a valid server address") && ran.err.contains("http://127.0.0.1:7400"),
            "{ran:?}"
        );
    }
}

/// A server that returns this response to the first request.
fn foreign_server(answer: &'static str) -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
        while lines.next().is_some_and(|line| !line.unwrap().is_empty()) {}
        stream.write_all(answer.as_bytes()).unwrap();
    });
    address
}

/// Another server at the address is not mistaken for Tidegate, whatever it returns.
#[test]
fn another_server_is_told_apart() {
    let answers = [
        (
            "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n<html>hello</html>",
            "200 OK with a body that is not JSON",
        ),
        (
            "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{\"items\":[]}",
            "200 OK with JSON that is not Tidegate's",
        ),
        ("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n[1]", "200 OK with JSON that is not Tidegate's"),
        (
            "HTTP/1.1 404 Not Found\r\nconnection: close\r\n\r\n{\"error\":\"no\"}",
            "404 Not Found with JSON that is not Tidegate's",
        ),
    ];
    for (answer, words) in answers {
        let address = foreign_server(answer);
        let ran = run_failing(&["op", "list", "--server", &address]);
        assert_eq!((ran.exit, ran.out.as_str()), (Some(1), ""), "{answer}");
        assert!(
            ran.err.contains(&format!("error: {address} is not a Tidegate server: it returned {words}")),
            "{ran:?}"
        );
    }
}

/// Data that cannot be written is a failure; a closed pipe is not.
#[tokio::test(flavor = "multi_thread")]
async fn data_that_cannot_be_written_is_a_failure() {
    let world = World::new().await;
    world.run(&["op", "submit", "GET", "/x", "--upstream", "echo"]).await.expect_success();
    let address = format!("http://{}", world.server.addr);
    let list = |out: Stdio| {
        let mut command = tidegate();
        command.args(["op", "list", "--server", &address]).stdout(out);
        tokio::task::spawn_blocking(move || run(command))
    };
    let full = list(std::fs::File::create("/dev/full").unwrap().into()).await.unwrap();
    assert_eq!(full.exit, Some(1));
    assert_snapshot!(full.err, @"error: The output could not be written: No space left on device (os error 28).");
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let closed = list(writer.into()).await.unwrap();
    assert_eq!((closed.exit, closed.err.as_str()), (Some(0), ""));
}

/// A script gets errors in one shape, from the server and from the command alike.
#[tokio::test(flavor = "multi_thread")]
async fn errors_are_json_when_json_is_asked_for() {
    let world = World::new().await;
    let error = |ran: CommandOutput| {
        assert_eq!((ran.exit, ran.out.as_str()), (Some(1), ""), "{ran:?}");
        serde_json::from_str::<Value>(&ran.err).unwrap()["error"].clone()
    };
    let refused = error(world.run(&["op", "submit", "GET", "/x", "--upstream", "nobody", "--json"]).await);
    assert_eq!((&refused["code"], &refused["detail"]["field"]), (&"TG0003".into(), &"upstream".into()));
    assert!(refused["message"].as_str().unwrap().contains("nobody"), "{refused}");
    assert_eq!((&refused["field"], &refused["title"]), (&"upstream".into(), &"Unknown upstream".into()));
    assert_eq!(
        (&refused["link"], refused["problems"].as_array().unwrap().len()),
        (&"/docs/errors/TG0003".into(), 1)
    );
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let absent = error(run_failing(&["op", "list", "--json", "--server", &format!("http://{address}")]));
    assert_eq!(absent["code"], Value::Null);
    assert!(absent["message"].is_string() && absent["hints"][0].is_string(), "{absent}");
}

#[test]
fn a_server_that_is_not_there_is_told_with_a_hint() {
    // A port that was free a moment ago.
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let ran = run_failing(&["op", "list", "--server", &format!("http://{address}")]);
    assert_eq!((ran.exit, ran.out.as_str()), (Some(1), ""));
    assert_snapshot!(ran.err.replace(&address, "ADDRESS"), @r"
    error: cannot reach a server at http://ADDRESS (Connection refused (os error 111))
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
