//! Valid configurations, and the problems that are reported for invalid ones.

mod bus;
mod kinds;
mod on_failure;
mod server_errors;
mod sources;

use insta::assert_snapshot;

use super::*;
use tidegate_core::ServerErrors;
use tidegate_upstream::http::TokenHeader;

fn env(name: &str) -> Option<String> {
    let known = ["ECHO_TOKEN", "OPERATOR_TOKEN", "REPLICATE_API_TOKEN", "SECRET"];
    known.contains(&name).then(|| "a-secret-of-some-length".to_owned())
}

pub(super) fn parse(text: &str) -> Result<Config, ConfigProblems> {
    Config::parse("tidegate.toml", text, &env, &Overrides::default(), &[])
}

pub(super) fn wrong(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

#[test]
fn the_defaults_are_the_documented_ones() {
    let config = Config::defaults(&|_| None, &Overrides::default()).unwrap();
    assert_eq!(config.listen.to_string(), "127.0.0.1:7400");
    assert_eq!((config.store_url.as_str(), config.archive_url), ("file:tidegate-data", None));
    let options = tidegate::Options::default();
    assert_eq!((config.workers, config.drain), (options.workers, options.drain));
    assert_eq!((config.retention, config.dedupe_window), (options.retention, options.dedupe_window));
    assert!(config.upstreams.is_empty() && config.tokens.is_empty());
}

/// The commented-out settings of the defaults are valid, and their figures are the defaults.
#[test]
fn what_the_defaults_show_can_be_used() {
    let shown: String = DEFAULTS
        .lines()
        .map(|line| match line.strip_prefix('#') {
            Some(setting) if !setting.is_empty() && !setting.starts_with(' ') => format!("{setting}\n"),
            _ => format!("{line}\n"),
        })
        .collect();
    let config = parse(&shown).unwrap();
    let (upstream, usual) = (&config.upstreams[0], UpstreamConfig::new("echo", ""));
    assert_eq!((upstream.timeout, upstream.connect_timeout), (usual.timeout, usual.connect_timeout));
    assert_eq!(upstream.response_max_bytes, usual.response_max_bytes);
    assert_eq!(upstream.token_header, usual.token_header);
    assert_eq!(upstream.server_errors, Some(ServerErrors::default()));
    assert_eq!(upstream.stored_headers, ["x-tenant-key"]);
    assert_eq!((upstream.limits.len(), config.tokens.len()), (2, 2));
    let (shown, usual) = (&config.generations.dispatch, tidegate_dispatch::ModelConfig::new("", Vec::new()));
    let provider = &shown.providers[0];
    let usual_provider = tidegate_dispatch::ProviderConfig::new("", provider.adapter.clone());
    assert_eq!((provider.cooldown, provider.deadline), (usual_provider.cooldown, usual_provider.deadline));
    assert_eq!(provider.timeout, usual_provider.timeout);
    let model = &shown.models[0];
    assert_eq!((model.strategy, model.max_wait), (usual.strategy, usual.max_wait));
    assert_eq!((model.fair, model.on_unknown), (usual.fair, usual.on_unknown));
    assert_eq!(config.tokens[1].scopes, [TokenScope::Read, TokenScope::Write, TokenScope::Operate]);
}

#[test]
fn the_environment_goes_before_the_file_and_flags_before_both() {
    let text = "[server]\nlisten = \"127.0.0.1:1\"\nworkers = 3\n[store]\nurl = \"file:a\"";
    let env = |name: &str| match name {
        "TIDEGATE_SERVER_LISTEN" => Some("127.0.0.1:2".to_owned()),
        "TIDEGATE_STORE_URL" => Some("memory:".to_owned()),
        "TIDEGATE_STORE_RETENTION_S" => Some("90000".to_owned()),
        _ => None,
    };
    let over = Overrides { listen: Some("127.0.0.1:3".parse().unwrap()), ..Overrides::default() };
    let config = Config::parse("f", text, &env, &over, &[]).unwrap();
    assert_eq!((config.listen.port(), config.workers, config.store_url.as_str()), (3, 3, "memory:"));
    assert_eq!(config.retention, Duration::from_secs(90_000));
    let env = |name: &str| (name == "TIDEGATE_SERVER_WORKERS").then(|| "many".to_owned());
    let problems = Config::parse("f", text, &env, &Overrides::default(), &[]).unwrap_err();
    assert_snapshot!(problems, @"TIDEGATE_SERVER_WORKERS: server.workers: It must be 1 to 100000, not many.");
}

#[test]
fn unknown_keys_are_refused_with_their_place() {
    let text = r#"
[server]
listen = "127.0.0.1:7400"

[[upstream]]
name = "echo"
base_url = "http://127.0.0.1:1"
  [[upstream.limit]]
  name = "a"
  at_once = 1
  [[upstream.limit]]
  name = "b"
  at_once = 1
  foo = 1

[clutser]
"#;
    assert_snapshot!(wrong(text), @r"
    tidegate.toml:14:3: upstream[0].limit[1].foo: There is no such key; known keys: at_once, capacity, name, refill_per_s.
    tidegate.toml:16:2: clutser: There is no such key; known keys: auth, bus, cluster, generations, hydration, idempotency, kind, model, on_failure, pacing, provider, server, source, store, telemetry, token, upstream.
    ");
}

#[test]
fn a_store_has_a_scheme_that_is_known() {
    assert_snapshot!(wrong("[[model]]\n[store]\nurl = \"mysql://x\""), @r"
    tidegate.toml:1:1: model: This must be a section: [model].
    tidegate.toml:3:7: store.url: It must be file:DIR, memory:, redis://… or postgres://…, not mysql:….
    ");
}

/// OPS-22: only a store on Redis can have an archive; the error message contains no password.
#[test]
fn ops_22_an_archive_stands_beside_a_redis() {
    let beside = |store: &str, archive: &str| format!("[store]\nurl = \"{store}\"\narchive = \"{archive}\"");
    let archive = "postgres://me:hunter2@db/main";
    for store in ["redis://x", "rediss://x", "redis+cluster://x"] {
        assert_eq!(parse(&beside(store, archive)).unwrap().archive_url.as_deref(), Some(archive));
    }
    assert_eq!(parse(&beside("memory:", "")).unwrap().archive_url, None);
    let printed = [
        wrong(&beside("redis://x", "mysql://me:hunter2@db/main")),
        wrong(&beside("file:data", archive)),
        wrong(&beside("memory:", archive)),
        wrong(&beside("postgres://me:hunter2@db/main", archive)),
    ];
    assert!(printed.iter().all(|printed| !printed.contains("hunter2")));
    assert_snapshot!(printed.join("\n"), @r"
    tidegate.toml:3:11: store.archive: It must be postgres://….
    tidegate.toml:3:11: store.archive: An archive needs a store on Redis: url must be redis://….
    tidegate.toml:3:11: store.archive: An archive needs a store on Redis: url must be redis://….
    tidegate.toml:3:11: store.archive: The store is PostgreSQL: what ended is in its tables already, for retention_s.
    ");
    let env = |name: &str| (name == "TIDEGATE_STORE_ARCHIVE").then(|| archive.to_owned());
    let over = Overrides { store_url: Some("redis://x".into()), ..Overrides::default() };
    assert_eq!(Config::parse("f", "", &env, &over, &[]).unwrap().archive_url.as_deref(), Some(archive));
    assert!(Config::parse("f", "", &env, &Overrides::default(), &[]).is_err(), "the usual store is a folder");
}

#[test]
fn wrong_types_and_figures_are_told_by_line_and_column() {
    let text = r#"server = { workers = 0, drain_s = -1, listen = 7400, connections_max = "1" }
[[upstream]]
name = "a b"
dialect = "carrier pigeon"
base_url = "ftp://x"
timeout_ms = 1.5
[[upstream.limit]]
name = "points"
capacity = 0
refill_per_s = nan
[[upstream.limit]]
name = "both"
capacity = 5
at_once = 1
[[upstream.limit]]
refill_per_s = true
"#;
    assert_snapshot!(wrong(text), @r#"
    tidegate.toml:1:22: server.workers: It must be 1 to 100000, not 0.
    tidegate.toml:1:35: server.drain_s: It must be 0 to 86400, not -1.
    tidegate.toml:1:48: server.listen: It must be a text in quotes, not a number.
    tidegate.toml:1:72: server.connections_max: It must be a whole number, not a text.
    tidegate.toml:3:8: upstream[0].name: A name is 1 to 64 letters, digits, '-', '_' or '.'.
    tidegate.toml:4:11: upstream[0].dialect: The dialect "carrier pigeon" is not known; there are "http", "shopify" and "discord".
    tidegate.toml:5:12: upstream[0].base_url: It must start with http:// or https://.
    tidegate.toml:6:14: upstream[0].timeout_ms: It must be a whole number, not a decimal number.
    tidegate.toml:9:12: upstream[0].limit[0].capacity: It must be 1 to 1000000000000, not 0.
    tidegate.toml:10:16: upstream[0].limit[0].refill_per_s: It must be 0.000001 to 1000000000000, not nan.
    tidegate.toml:11:1: upstream[0].limit[1]: A limit needs either capacity and refill_per_s, or at_once.
    tidegate.toml:15:1: upstream[0].limit[2]: The key name is missing.
    tidegate.toml:15:1: upstream[0].limit[2]: A limit needs either capacity and refill_per_s, or at_once.
    tidegate.toml:16:16: upstream[0].limit[2].refill_per_s: It must be a number, not true or false.
    "#);
}

#[test]
fn the_dialect_says_what_it_cannot_use() {
    assert_snapshot!(wrong("[[upstream]]\nname = \"a b\"\nbase_url = \"http://127.0.0.1:1\""), @"tidegate.toml:2:8: upstream[0].name: A name is 1 to 64 letters, digits, '-', '_' or '.'.");
    assert_snapshot!(wrong("[[upstream]]\nname = \"a\"\nbase_url = \"ftp://x\""), @"tidegate.toml:3:12: upstream[0].base_url: It must start with http:// or https://.");
    assert_snapshot!(wrong("[[upstream]]\nname = \"a\"\nbase_url = \"http://user:pass@x\""), @"tidegate.toml:3:12: upstream[0].base_url: It holds a user or a password; put the credential into token_env.");
    assert_snapshot!(wrong("[[upstream]]\ndialect = \"smoke\""), @r#"
    tidegate.toml:1:1: upstream[0]: The key name is missing.
    tidegate.toml:1:1: upstream[0]: The key base_url is missing.
    tidegate.toml:2:11: upstream[0].dialect: The dialect "smoke" is not known; there are "http", "shopify" and "discord".
    "#);
}

/// LIM-29: a shop needs a name, an address and a token; its limits are created for it.
#[test]
fn lim_29_a_shop_has_its_header_and_its_places() {
    let shop = "[[upstream]]\nname = \"acme\"\ndialect = \"shopify\"\nbase_url = \"https://acme.myshopify.com\"\ntoken_env = \"ECHO_TOKEN\"\n";
    let config = parse(shop).unwrap();
    assert_eq!(config.upstreams[0].token_header, TokenHeader::parse("X-Shopify-Access-Token"));
    assert_eq!(config.shopify["acme"].bulk_at_once, 1);
    let five = parse(&format!("{shop}bulk_at_once = 5\ntoken_header = \"x-other\"")).unwrap();
    assert_eq!(
        (five.shopify["acme"].bulk_at_once, five.upstreams[0].token_header.name.as_str()),
        (5, "x-other")
    );
    assert_eq!(
        (config.shopify["acme"].at_once, config.limit_count()),
        (None, 3),
        "points, requests and bulk"
    );
    let few = parse(&format!("{shop}at_once = 4")).unwrap();
    assert_eq!((few.shopify["acme"].at_once, few.limit_count()), (Some(4), 4));
    let text = format!(
        "{shop}bulk_at_once = 0\nspread = \"group\"\n[[upstream.limit]]\nname = \"points\"\ncapacity = 5\nrefill_per_s = 5"
    );
    assert_snapshot!(wrong(&text), @r#"
    tidegate.toml:6:16: upstream[0].bulk_at_once: It must be 1 to 5, not 0.
    tidegate.toml:7:10: upstream[0].spread: What is spread over partitions cannot have limits: they are kept in one place.
    tidegate.toml:8:1: upstream[0].limit: The dialect "shopify" makes its limits itself and learns their figures: take this out.
    "#);
    assert_snapshot!(wrong("[[upstream]]\nname = \"a\"\nbase_url = \"http://x\"\nbulk_at_once = 2"), @r#"tidegate.toml:4:16: upstream[0].bulk_at_once: Only the dialect "shopify" has places for bulk operations."#);
    assert_snapshot!(wrong("[[upstream]]\nname = \"a\"\nbase_url = \"http://x\"\nat_once = 2"), @r#"tidegate.toml:4:11: upstream[0].at_once: Only the dialects "shopify" and "discord" have this key: put an [[upstream.limit]] with it below."#);
}

/// OPS-21, OPS-5: a bot needs a name and a token; Discord's address and limits are known, and three
/// groups run at once unless it says otherwise.
#[test]
fn ops_21_a_bot_has_its_address_its_header_and_its_figures() {
    let bot = "[[upstream]]\nname = \"discord\"\ndialect = \"discord\"\ntoken_env = \"ECHO_TOKEN\"\n";
    let config = parse(bot).unwrap();
    assert_eq!(config.upstreams[0].base_url, "https://discord.com/api/v10");
    assert_eq!(config.upstreams[0].token_header, TokenHeader::parse("authorization: Bot"));
    let usual = config.discord["discord"];
    assert_eq!((usual.global_per_s, usual.invalid_max, usual.at_once), (50, None, 3));
    let set =
        parse(&format!("{bot}base_url = \"http://x\"\nglobal_per_s = 1200\ninvalid_max = 100\nat_once = 12"))
            .unwrap();
    let bigger = set.discord["discord"];
    assert_eq!((bigger.global_per_s, bigger.invalid_max, bigger.at_once), (1_200, Some(100), 12));
    assert_eq!(set.upstreams[0].base_url, "http://x");
    assert_snapshot!(wrong(&format!("{bot}base_url = 7\nspread = \"group\"\nglobal_per_s = 0\ninvalid_max = 10000\nbulk_at_once = 1")), @r#"
    tidegate.toml:5:12: upstream[0].base_url: It must be a text in quotes, not a number.
    tidegate.toml:6:10: upstream[0].spread: What is spread over partitions cannot have limits: they are kept in one place.
    tidegate.toml:7:16: upstream[0].global_per_s: It must be 1 to 100000, not 0.
    tidegate.toml:8:15: upstream[0].invalid_max: It must be 2 to 9500, not 10000.
    tidegate.toml:9:16: upstream[0].bulk_at_once: Only the dialect "shopify" has places for bulk operations.
    "#);
    assert_snapshot!(wrong("[[upstream]]\nname = \"a\"\nbase_url = \"http://x\"\nglobal_per_s = 2\ninvalid_max = 9"), @r#"
    tidegate.toml:4:16: upstream[0].global_per_s: Only the dialect "discord" has a limit on all calls by itself.
    tidegate.toml:5:15: upstream[0].invalid_max: Only the dialect "discord" counts refused calls.
    "#);
}

#[test]
fn two_of_one_name_are_refused() {
    let one = "[[upstream]]\nname = \"a\"\nbase_url = \"http://127.0.0.1:1\"\n";
    assert_snapshot!(wrong(&format!("{one}{one}")), @r#"tidegate.toml:5:8: upstream[1].name: There is another one called "a"."#);
}

/// All problems of an upstream and its limits are reported at once, with their locations.
#[test]
fn all_that_is_wrong_inside_an_upstream_is_told_where_it_stands() {
    let text = r#"
[[upstream]]
name = "a b"
base_url = "ftp://x"
token_env = "NOT_SET"
token_header = "x y"
timeout_ms = 0
[[upstream.limit]]
name = "points"
capacity = 0
refill_per_s = 1
[[upstream.limit]]
name = "points"
at_once = 1
[[upstream.limit]]
name = "in words"
at_once = 1
[[upstream]]
name = "a b"
base_url = "http://127.0.0.1:1"
"#;
    assert_snapshot!(wrong(text), @r#"
    tidegate.toml:3:8: upstream[0].name: A name is 1 to 64 letters, digits, '-', '_' or '.'.
    tidegate.toml:4:12: upstream[0].base_url: It must start with http:// or https://.
    tidegate.toml:5:13: upstream[0].token_env: The variable NOT_SET is not set.
    tidegate.toml:6:16: upstream[0].token_header: HTTP does not allow this header, or the token in it.
    tidegate.toml:7:14: upstream[0].timeout_ms: It must be 1 to 3600000, not 0.
    tidegate.toml:10:12: upstream[0].limit[0].capacity: It must be 1 to 1000000000000, not 0.
    tidegate.toml:13:8: upstream[0].limit[1].name: There is another one called "points".
    tidegate.toml:16:8: upstream[0].limit[2].name: A name is 1 to 64 letters, digits, '-', '_' or '.'.
    tidegate.toml:19:8: upstream[1].name: There is another one called "a b".
    tidegate.toml:19:8: upstream[1].name: A name is 1 to 64 letters, digits, '-', '_' or '.'.
    "#);
    let limits: String =
        (0..8).map(|n| format!("[[upstream.limit]]\nname = \"l{n}\"\nat_once = 1\n")).collect();
    assert_snapshot!(wrong(&format!("[[upstream]]\nname = \"a\"\nbase_url = \"http://127.0.0.1:1\"\n{limits}")), @"tidegate.toml:4:1: upstream[0].limit: It has 8 limits; the most is 7.");
}

/// An unknown variable with our prefix is refused, with a suggestion.
#[test]
fn a_misspelled_variable_is_refused() {
    let set = [
        "TIDEGATE_STORE_ULR",
        "TIDEGATE_SERVER_WORKER",
        "TIDEGATE_LISTEN",
        "TIDEGATE_FROBNICATE",
        "TIDEGATE_ECHO",
        "PATH",
    ];
    let set = set.map(str::to_owned);
    let env = |name: &str| (name == "TIDEGATE_ECHO").then(|| "a-secret-of-some-length".to_owned());
    let echo = "[[upstream]]\nname = \"e\"\nbase_url = \"http://127.0.0.1:1\"\ntoken_env = \"TIDEGATE_ECHO\"";
    let problems = Config::parse("f", echo, &env, &Overrides::default(), &set).unwrap_err();
    assert_snapshot!(problems, @r"
    TIDEGATE_FROBNICATE: There is no such variable. Each key of a section of the configuration has one, such as TIDEGATE_STORE_URL for url in [store].
    TIDEGATE_LISTEN: There is no such variable; did you mean TIDEGATE_SERVER_LISTEN?
    TIDEGATE_SERVER_WORKER: There is no such variable; did you mean TIDEGATE_SERVER_WORKERS?
    TIDEGATE_STORE_ULR: There is no such variable; did you mean TIDEGATE_STORE_URL?
    ");
    assert!(Config::parse("f", echo, &env, &Overrides::default(), &set[4..]).is_ok());
}

/// OPS-22: a secret in the file is refused, and one that is missing in the environment is reported
/// by its variable's name.
#[test]
fn ops_22_secrets_come_from_the_environment() {
    let text = r#"
[[upstream]]
name = "a"
base_url = "http://127.0.0.1:1"
token = "hunter2"
[[upstream]]
name = "b"
base_url = "http://127.0.0.1:1"
token_env = "NOT_SET"
[[token]]
name = "t"
value = "hunter2"
scopes = ["read", "fly"]
[[token]]
name = "u"
hash = "sha256:12"
scopes = []
"#;
    let printed = wrong(text);
    assert!(!printed.contains("hunter2"));
    assert_snapshot!(printed, @r#"
    tidegate.toml:5:1: upstream[0].token: Secrets are not allowed in the file. Put it into an environment variable and name that variable in a key that ends in _env.
    tidegate.toml:9:13: upstream[1].token_env: The variable NOT_SET is not set.
    tidegate.toml:10:1: token[0]: A token needs either hash or value_env.
    tidegate.toml:12:1: token[0].value: Secrets are not allowed in the file. Put it into an environment variable and name that variable in a key that ends in _env.
    tidegate.toml:13:10: token[0].scopes: There is no scope "fly"; there are read, write, work, operate.
    tidegate.toml:16:8: token[1].hash: It must be sha256: and 64 hexadecimal digits.
    tidegate.toml:17:10: token[1].scopes: A token without scopes may do nothing; there are read, write, work, operate.
    "#);
}

#[test]
fn without_a_token_only_this_machine_is_served() {
    assert_snapshot!(wrong("[server]\nlisten = \"0.0.0.0:7400\""), @"tidegate.toml:2:10: server.listen: 0.0.0.0:7400 can be reached from other machines, and there is no [[token]]. Add one, or listen on 127.0.0.1.");
    let token = "[[token]]\nname = \"t\"\nvalue_env = \"OPERATOR_TOKEN\"\nscopes = [\"read\"]";
    assert!(parse(&format!("[server]\nlisten = \"0.0.0.0:7400\"\n{token}")).is_ok());
}

#[test]
fn what_is_not_toml_is_told_where_it_breaks() {
    assert_snapshot!(wrong("[server]\nlisten = \n"), @"tidegate.toml:2:10: This is not TOML: string values must be quoted, expected literal string.");
    assert_snapshot!(wrong("[server]\n[server]\n"), @"tidegate.toml:2:2: This is not TOML: duplicate key.");
    assert_snapshot!(wrong("é = 1\nserver = 7"), @"tidegate.toml:1:1: This is not TOML: invalid unquoted key, expected letters, numbers, `-`, `_`.");
}

/// Operations are kept at least as long as their dedupe keys.
#[test]
fn what_is_kept_outlasts_the_keys() {
    assert_snapshot!(wrong("[store]\nretention_s = 1\ndedupe_window_s = 2"), @"tidegate.toml:2:15: store.retention_s: It must be at least dedupe_window_s, which is 2: a key must find its operation.");
}

/// A node of a cluster must be reachable, and must be able to authenticate other nodes.
#[test]
fn a_node_that_can_be_reached_needs_a_name_and_a_secret() {
    let shared = "[server]\nlisten = \"0.0.0.0:7400\"\n[store]\nurl = \"redis://x\"\n[[token]]\nname = \"a\"\nvalue_env = \"OPERATOR_TOKEN\"\nscopes = [\"read\"]\n";
    assert_snapshot!(wrong(shared), @r"
    tidegate.toml:1:1: cluster: advertise is missing: other nodes cannot reach 0.0.0.0:7400 by that name.
    tidegate.toml:1:1: cluster: token_env is missing: nodes that can be reached from other machines need a secret.
    ");
    let good = format!("{shared}[cluster]\nadvertise = \"node-1:7400\"\ntoken_env = \"ECHO_TOKEN\"");
    assert!(parse(&good).is_ok());
    assert!(parse(&shared.replace("redis://x", "memory:")).is_ok(), "alone it needs neither");
}

/// Problems of `[cluster]` are reported with their locations, and a spread upstream cannot have
/// limits.
#[test]
fn a_cluster_is_checked_too() {
    let text = r#"[cluster]
advertise = "http://node-1"
partitions = 0
token_env = "TIDEGATE_ECHO"
[[upstream]]
name = "echo"
base_url = "http://127.0.0.1:1"
spread = "group"
[[upstream.limit]]
name = "requests"
capacity = 1
refill_per_s = 1
[[upstream]]
name = "other"
base_url = "http://127.0.0.1:1"
spread = "all"
"#;
    assert_snapshot!(wrong(text), @r#"
    tidegate.toml:2:13: cluster.advertise: It must be a host and a port, such as node-1:7400.
    tidegate.toml:3:14: cluster.partitions: It must be 1 to 1024, not 0.
    tidegate.toml:4:13: cluster.token_env: The variable TIDEGATE_ECHO is not set.
    tidegate.toml:8:10: upstream[0].spread: What is spread over partitions cannot have limits: they are kept in one place.
    tidegate.toml:16:10: upstream[1].spread: It must be "group", or left out.
    "#);
}

/// IDM-12, IDM-5: the keys of the server's own routes have the defaults of the layer, unless the
/// file overrides them.
#[test]
fn idm_12_how_keys_are_kept_is_configured() {
    use tidegate_idempotency::{InFlightPolicy, Policy, UnknownOutcomePolicy};
    let (policy, usual) = (parse("").unwrap().idempotency.policy, Policy::default());
    assert_eq!((policy.ttl, policy.lease, policy.in_flight), (usual.ttl, usual.lease, usual.in_flight));
    assert_eq!(policy.on_unknown, usual.on_unknown);
    assert_eq!(policy.keep_client_errors, usual.keep_client_errors);
    let text = "[idempotency]\nttl_s = 60\nlease_s = 5\nin_flight = \"wait\"\nwait_ms = 250\non_unknown = \"hold\"\n\
                keep_client_errors = true\n";
    let policy = parse(text).unwrap().idempotency.policy;
    assert_eq!((policy.ttl, policy.lease), (Duration::from_secs(60), Duration::from_secs(5)));
    assert_eq!(policy.in_flight, InFlightPolicy::Wait(Duration::from_millis(250)));
    assert!(policy.on_unknown == UnknownOutcomePolicy::Hold && policy.keep_client_errors);
    assert_eq!(policy.check(), Ok(()));
}

/// IDM-5, IDM-16, IDM-21: the server's own routes have the proxy's settings, and each may override
/// them.
#[test]
fn idm_5_a_route_of_the_server_has_settings_of_its_own() {
    use tidegate_idempotency::{
        BodyComparison, InFlightPolicy, KeyAlphabet, RefusalDialect, StoreUnavailablePolicy,
        UnknownOutcomePolicy,
    };
    let text = "[idempotency]\nttl_s = 60\nwait_ms = 70\nanswer_max = \"2MiB\"\ndialect = \"ietf\"\n\
                store_away = \"pass\"\nkey_alphabet = \"printable\"\nfingerprint = \"json\"\n\
                keep_server_errors = true\n[[idempotency.route]]\npath = \"/v1/leases\"\nttl_s = 5\n\
                in_flight = \"wait\"\non_unknown = \"hold\"\ndialect = \"tidegate\"\n";
    let config = parse(text).unwrap().idempotency;
    let (usual, route) = (&config.policy, &config.routes[0]);
    assert_eq!((usual.ttl.as_secs(), usual.answer_max), (60, 2 << 20));
    assert_eq!(
        (usual.dialect, usual.store_unavailable),
        (RefusalDialect::Ietf, StoreUnavailablePolicy::PassOn)
    );
    assert_eq!((usual.key_alphabet, usual.fingerprint), (KeyAlphabet::Printable, BodyComparison::Json));
    assert!(usual.keep_server_errors);
    assert_eq!((route.path.as_str(), route.policy.ttl.as_secs()), ("/v1/leases", 5));
    assert_eq!(route.policy.in_flight, InFlightPolicy::Wait(Duration::from_millis(70)));
    assert_eq!(
        (route.policy.on_unknown, route.policy.dialect),
        (UnknownOutcomePolicy::Hold, RefusalDialect::Tidegate)
    );
    assert_eq!(route.policy.answer_max, 2 << 20, "what it does not say is as for all");
    let text =
        "[idempotency]\nanswer_max = \"1GiB\"\n[[idempotency.route]]\nttl_s = 5\nseal_key_env = \"X\"\n";
    let printed = wrong(text);
    for part in [
        "tidegate.toml:2:14: idempotency.answer_max: It cannot be used: `answer_max` must be between",
        "idempotency.route[0]: path is missing.",
        "tidegate.toml:5:1: idempotency.route[0].seal_key_env: There is no such key",
    ] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
}

/// IDM-12: problems of `[idempotency]` are reported by line and column, and never with a secret.
#[test]
fn idm_12_what_is_wrong_about_keys_is_told() {
    let text = "[idempotency]\nttl_s = 0\nin_flight = \"queue\"\nkeep_client_errors = 1\nttl = 3\n\
                seal_key_env = \"ECHO_TOKEN\"\n";
    let printed = wrong(text);
    assert!(!printed.contains("a-secret"), "{printed}");
    assert_snapshot!(printed, @r"
    tidegate.toml:2:9: idempotency.ttl_s: It must be 1 to 7776000, not 0.
    tidegate.toml:3:13: idempotency.in_flight: It must be one of reject, wait.
    tidegate.toml:4:22: idempotency.keep_client_errors: It must be true or false, not a number.
    tidegate.toml:5:1: idempotency.ttl: There is no such key; known keys: answer_max, dialect, fingerprint, in_flight, keep_client_errors, keep_server_errors, key_alphabet, lease_s, on_unknown, route, seal_key_env, store_away, ttl_s, wait_ms.
    tidegate.toml:6:16: idempotency.seal_key_env: It cannot be used: key 1 in `ECHO_TOKEN` must be 64 hexadecimal digits (32 bytes).
    ");
}
