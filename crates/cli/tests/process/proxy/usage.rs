//! Usage errors of `tidegate proxy`: each message names the flag or the variable.

use std::net::TcpListener;

use crate::child::tidegate;

/// How it exits with these flags and this environment, and what it says.
fn ends(args: &[&str], env: &[(&str, &str)]) -> (Option<i32>, String) {
    let dir = tempfile::tempdir().unwrap();
    let mut command = tidegate();
    command.arg("proxy").args(args).envs(env.iter().copied()).current_dir(dir.path());
    let output = command.output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

const LEAST: [&str; 5] = ["--upstream", "http://127.0.0.1:1", "--unscoped", "--store", "memory:"];

/// OPS-22, IDM-2: the message names the wrong option, and the exit code is that of wrong usage.
#[test]
fn ops_22_wrong_usage_of_the_proxy_names_the_flag() {
    for (more, told) in [
        (
            &["--ttl", "0s"][..],
            "--ttl: It cannot be used: `ttl` must be between 1 second and 90 days, not 0s.",
        ),
        (&["--ttl", "100d"], "90 days, not 100d."),
        (&["--listen", "7402"], "such as 127.0.0.1:7402 or localhost:7402"),
        (
            &["--listen", "localhost:7409", "--admin", "127.0.0.1:7409"],
            "--admin: Requests and operators need",
        ),
        (&["--listen", "localhost:1"], "--upstream: http://127.0.0.1:1 leads to the proxy itself"),
    ] {
        let (exit, said) = ends(&[&LEAST[..], more].concat(), &[]);
        assert!(exit == Some(2) && said.contains(told), "{more:?}: {exit:?} {said}");
    }
    let scoped = ["--upstream", "http://127.0.0.1:1", "--scope-header", "Idempotency-Key"];
    let (exit, said) = ends(&scoped, &[]);
    assert!(
        exit == Some(2) && said.contains("--scope-header: Idempotency-Key says nothing about who"),
        "{said}"
    );
    let (exit, said) = ends(&LEAST[..2], &[]);
    assert!(exit == Some(2) && said.contains("tidegate proxy: Choose whose a key is."), "{said}");
    let (exit, said) = ends(&[&LEAST[..3], &["--store", "sqlite:hunter2"]].concat(), &[]);
    assert!(exit == Some(2) && said.contains("not sqlite:…."), "{said}");
    assert!(!said.contains("hunter2"), "{said}");
    let (_, said) = ends(&LEAST, &[("TIDEGATE_PROXY_TTL", "0s")]);
    assert!(said.contains("TIDEGATE_PROXY_TTL: proxy.ttl: It cannot be used"), "{said}");
}

/// OPS-22: the error for a port in use names the flag that selects another.
#[test]
fn ops_22_a_taken_port_of_the_proxy_names_its_flag() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let _held = TcpListener::bind(&taken).unwrap();
    for (flag, other) in [("--listen", "--admin"), ("--admin", "--listen")] {
        let (exit, said) = ends(&[&LEAST[..], &[flag, &taken, other, "127.0.0.1:0"]].concat(), &[]);
        assert!(exit == Some(1) && said.contains(&format!("Choose another address with {flag}")), "{said}");
    }
}

/// OPS-22: a configuration file of the proxy is checked as the proxy would.
#[test]
fn ops_22_a_file_of_the_proxy_is_checked() {
    let dir = tempfile::tempdir().unwrap();
    let check = |text: &str| {
        std::fs::write(dir.path().join("p.toml"), text).unwrap();
        let output = tidegate().args(["check-config", "p.toml"]).current_dir(dir.path()).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(said).unwrap())
    };
    let good = "[proxy]\nupstream = \"http://127.0.0.1:1\"\nunscoped = true\n";
    let (exit, said) = check(good);
    let told =
        "p.toml: valid: a proxy for http://127.0.0.1:1, 0 routes; listens on 127.0.0.1:7402, stores in file:";
    assert!(exit == Some(0) && said.contains(told), "{said}");
    let (exit, said) = check(&format!("{good}ttll = \"1h\"\n"));
    assert!(exit == Some(1) && said.contains("p.toml:4:1: proxy.ttll: There is no such key"), "{said}");
}
