//! Valid and invalid configurations of the proxy.

use std::time::Duration;

use tidegate_idempotency::{InFlightPolicy, Policy, UnknownOutcomePolicy};

use super::{PROXY_DEFAULTS, ProxyConfig, ProxyOverrides, ScopeChoice};

fn read(text: &str) -> Result<ProxyConfig, Vec<String>> {
    let env = |name: &str| match name {
        "NO_KEY" => Some("swordfish".to_owned()),
        "A_KEY" => Some("5e".repeat(32)),
        _ => None,
    };
    let parsed = ProxyConfig::parse("p.toml", text, &env, &ProxyOverrides::default(), &[]);
    parsed.map_err(|problems| problems.0.iter().map(ToString::to_string).collect())
}

const LEAST: &str = "[proxy]\nupstream = \"http://127.0.0.1:1\"\nunscoped = true\n";

/// OPS-22: the documented defaults are those of the layer.
#[test]
fn ops_22_the_defaults_are_the_layers_own() {
    let config = read(LEAST).unwrap();
    assert_eq!(format!("{:?}", config.policy), format!("{:?}", Policy::default()));
    assert_eq!(config.upstream.connect_timeout, Duration::from_secs(5));
    assert_eq!(
        (config.store_url.as_str(), config.drain),
        ("file:tidegate-proxy-data", Duration::from_secs(25))
    );
    assert_eq!(config.scope, ScopeChoice::Unscoped);
}

/// OPS-22: every key in the comments of the defaults is valid as written there.
#[test]
fn ops_22_what_is_told_in_comments_can_be_used() {
    let is_key = |line: &str| line.starts_with("#[") || line.contains(" = ") && !line.starts_with("# ");
    let lines = PROXY_DEFAULTS.lines().filter(|line| !line.starts_with("#unscoped"));
    let text: Vec<_> =
        lines.map(|line| line.strip_prefix('#').filter(|_| is_key(line)).unwrap_or(line)).collect();
    let config = read(&text.join("\n")).unwrap();
    assert_eq!(config.routes.len(), 1);
    assert_eq!(config.routes[0].policy.on_unknown, UnknownOutcomePolicy::Hold);
}

/// IDM-5: a route overrides the settings it names and inherits the rest.
#[test]
fn idm_5_a_route_has_choices_of_its_own() {
    let more = "lease = \"1s\"\nwait = \"3s\"\n[[proxy.route]]\npath = \"/a\"\nttl = \"24h\"\nin_flight = \"wait\"\n";
    let config = read(&format!("{LEAST}{more}")).unwrap();
    let route = &config.routes[0];
    assert_eq!(
        (config.policy.ttl, route.policy.ttl),
        (Duration::from_secs(3_600), Duration::from_secs(86_400))
    );
    assert_eq!(config.policy.in_flight, InFlightPolicy::Reject);
    assert_eq!(route.policy.in_flight, InFlightPolicy::Wait(Duration::from_secs(3)));
    assert_eq!(route.policy.lease, Duration::from_secs(1));
}

/// OPS-22, IDM-2: every problem is reported with its location.
#[test]
fn ops_22_mistakes_are_told_with_line_and_column() {
    let wrong = |more: &str| read(&format!("{LEAST}{more}")).unwrap_err();
    for (more, printed) in [
        ("scope_header = \"a\"\n", "p.toml:3:12: proxy.unscoped: There is a scope_header already"),
        ("ttl = 3600\n", "p.toml:4:7: proxy.ttl: It must be a text in quotes, not a number."),
        (
            "lease = \"10ms\"\n",
            "p.toml:4:9: proxy.lease: It cannot be used: `lease` must be between 1 second and 1 hour.",
        ),
        ("methods = [\"GET\"]\n", "p.toml:4:11: proxy.methods: It must be a list of some of"),
        (
            "on_unknown = \"guess\"\n",
            "p.toml:4:14: proxy.on_unknown: It must be \"release\" or \"hold\", not \"guess\".",
        ),
        ("required = \"yes\"\n", "p.toml:4:12: proxy.required: It must be true or false, not a text."),
        ("seal_key = \"00\"\n", "p.toml:4:1: proxy.seal_key: There is no such key"),
        ("seal_key_env = \"NOT_SET\"\n", "p.toml:4:16: proxy.seal_key_env: The variable NOT_SET is not set."),
        (
            "seal_key_env = \"NO_KEY\"\n",
            "p.toml:4:16: proxy.seal_key_env: It cannot be used: key 1 in `NO_KEY` must be 64 hexadecimal digits (32 bytes).",
        ),
        ("[[proxy.route]]\nttl = \"1h\"\n", "proxy.route[0]: path is missing."),
        ("[[proxy.route]]\npath = \"a\"\n", "p.toml:5:8: proxy.route[0].path: It must be a path"),
        (
            "[[proxy.route]]\npath = \"/a\"\nlisten = \"\"\n",
            "p.toml:6:1: proxy.route[0].listen: There is no such key",
        ),
        ("http2 = true\npreserve_host = true\n", "This cannot be used: an upstream over HTTP/2"),
        (
            "listen = \"localhost:1\"\n",
            "p.toml:2:12: proxy.upstream: http://127.0.0.1:1 leads to the proxy itself, which takes requests (--listen)",
        ),
        (
            "admin_listen = \"0.0.0.0:1\"\n",
            "leads to the proxy itself, which is looked after (--admin) at 0.0.0.0:1",
        ),
        (
            "admin_listen = \"127.0.0.1:7402\"\n",
            "p.toml:4:16: proxy.admin_listen: Requests and operators need an address each",
        ),
        ("listen = \"7402\"\n", "p.toml:4:10: proxy.listen: It must be an address and a port, such as"),
        ("run_max = \"1m\"\n", "p.toml:4:11: proxy.run_max: run_max is 60s; it must be at least"),
        ("connect_timeout = \"1ms\"\n", "`connect_timeout` must be between 10 milliseconds and 5 minutes"),
    ] {
        let problems = wrong(more);
        assert!(problems.iter().any(|problem| problem.contains(printed)), "{more}: {problems:?}");
    }
    let none = read("").unwrap_err();
    assert!(none.iter().any(|problem| problem.contains("The upstream is missing")), "{none:?}");
    assert!(none.iter().any(|problem| problem.contains("Choose whose a key is.")), "{none:?}");
}

/// OPS-22, IDM-12: a variable with a valid sealing key is accepted, and the value of an invalid one
/// is not shown.
#[test]
fn ops_22_a_key_to_seal_with_is_looked_at_and_not_told() {
    let config = read(&format!("{LEAST}seal_key_env = \"A_KEY\"\n")).unwrap();
    assert_eq!(config.sealing.as_ref().unwrap().variable, "A_KEY");
    assert!(!format!("{config:?}").contains("5e5e"), "a configuration that is printed has no key in it");
    let printed = read(&format!("{LEAST}seal_key_env = \"NO_KEY\"\n")).unwrap_err();
    assert!(printed.len() == 1 && !printed[0].contains("swordfish"), "{printed:?}");
}

/// OPS-22, IDM-5: of two routes for one path, however it is spelled, the second is reported with
/// its location.
#[test]
fn ops_22_a_path_has_one_route() {
    let two = |first: &str, second: &str| {
        read(&format!("{LEAST}[[proxy.route]]\npath = \"{first}\"\n[[proxy.route]]\npath = \"{second}\"\n"))
    };
    for second in ["/a/", "/%61", "//a", "/b/../a"] {
        let printed =
            "p.toml:7:8: proxy.route[1].path: There is a route for the same path already, written \"/a\".";
        assert_eq!(two("/a", second).unwrap_err(), [printed], "{second}");
    }
    let printed = "p.toml:7:8: proxy.route[1].path: There is a route for \"/a\" already.";
    assert_eq!(two("/a", "/a").unwrap_err(), [printed]);
    for second in ["/", "/A", "/a/b", "/ab"] {
        assert_eq!(two("/a", second).unwrap().routes.len(), 2, "{second}");
    }
}
