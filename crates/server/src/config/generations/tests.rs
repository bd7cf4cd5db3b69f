//! The sections of generations: what they mean, and that every problem has its place.

use std::time::Duration;

use insta::assert_snapshot;
use tidegate_dispatch::{AdapterConfig, PickStrategy, UnknownPolicy};

use super::super::tests::{parse, wrong};
use super::ResultStorageConfig;

const PROVIDERS: &str = r#"
[provider.replicate]
key_env = "SECRET"
max_concurrent = 20
rpm = 540
cooldown_s = [5, 15]
poll_after_s = 7

[provider.house]
adapter = "fal"
base_url = "http://127.0.0.1:7415"
jwks_url = "http://127.0.0.1:7415/keys"
keys = [{ env = "SECRET", account = "main" }, { env = "SECRET", name = "spare" }]
deadline_s = 90
timeout_s = 9
"#;

const MODEL: &str = r#"
[model.flux]
input_schema = '{"type":"object","required":["prompt"]}'
chain = [
  { provider = "replicate", model = "acme/flux", weight = 3, cost = 3000 },
  { provider = "house", model = "acme/flux/dev" },
]
strategy = "cheapest"
fair = true
max_wait_s = 60
on_unknown = "failover"
"#;

/// DSP-14: limits per provider are configuration, with defaults for what is left out.
#[test]
fn dsp_14_providers_and_models_are_read() {
    let config = parse(&format!("{PROVIDERS}{MODEL}")).unwrap().generations.dispatch;
    let [house, replicate] = config.providers.as_slice() else { panic!("{:?}", config.providers) };
    assert_eq!((replicate.name.as_str(), replicate.adapter.name()), ("replicate", "replicate"));
    assert_eq!((replicate.max_concurrent, replicate.rpm), (Some(20), Some(540)));
    assert_eq!(replicate.cooldown, [5, 15, 15, 15].map(Duration::from_secs));
    assert_eq!((replicate.poll_after, replicate.poll_every), (Some(Duration::from_secs(7)), None));
    assert!(
        matches!(&house.adapter, AdapterConfig::Fal { jwks_url: Some(url), .. } if url.ends_with("/keys"))
    );
    let keys: Vec<_> = house.keys.iter().map(|key| (key.name.as_str(), key.account.as_deref())).collect();
    assert_eq!(keys, [("key-1", Some("main")), ("spare", None)]);
    assert_eq!(house.cooldown, [10, 30, 60, 120].map(Duration::from_secs));
    assert_eq!((house.deadline, house.timeout), (Duration::from_secs(90), Duration::from_secs(9)));
    let [model] = config.models.as_slice() else { panic!("{:?}", config.models) };
    assert_eq!((model.strategy, model.fair), (PickStrategy::Cheapest, true));
    assert_eq!((model.max_wait, model.on_unknown), (Some(Duration::from_secs(60)), UnknownPolicy::Failover));
    let chain: Vec<_> = model.chain.iter().map(|link| (&*link.provider, link.weight, link.cost)).collect();
    assert_eq!(chain, [("replicate", 3, 3_000), ("house", 1, 0)]);
    assert_eq!((config.per_user.max_active, config.per_user.per_minute), (Some(10), Some(60)));
    assert!(!format!("{config:?}").contains("a-secret"), "no secret is printed");
}

/// DSP-17: where remote workers submit, the server knows keys by their names and may be without
/// them; whoever submits may not.
#[test]
fn dsp_17_remote_workers_have_the_keys() {
    let kind = "[[kind]]\nname = \"generation\"\nworker = \"remote\"\n";
    let without = PROVIDERS.replace("key_env = \"SECRET\"\n", "").replace("env = \"SECRET\", ", "");
    let config = parse(&format!("{kind}{without}{MODEL}")).unwrap();
    let [house, replicate] = config.generations.dispatch.providers.as_slice() else { panic!() };
    let keys: Vec<_> = house.keys.iter().map(|key| (key.name.as_str(), key.account.as_deref())).collect();
    assert_eq!(keys, [("key-1", Some("main")), ("spare", None)]);
    assert_eq!((replicate.keys.len(), replicate.keys[0].name.as_str()), (1, "key-1"));
    let kinds = ["generation".to_owned()];
    let refused = crate::executors::check_worker_keys(&config, &kinds).unwrap_err();
    assert!(refused.message.contains("providers.house: Its key is missing"), "{}", refused.message);
    assert!(crate::executors::check_worker_keys(&config, &["http".to_owned()]).is_ok());
    let complete = parse(&format!("{kind}{PROVIDERS}{MODEL}")).unwrap();
    assert!(crate::executors::check_worker_keys(&complete, &kinds).is_ok());
    assert!(wrong(&format!("{without}{MODEL}")).contains("A provider needs either key_env or keys."));
}

/// DSP-13: a provider with a plain API is configuration alone.
#[test]
fn dsp_13_a_provider_is_configured() {
    let acme = r#"
[provider.acme]
adapter = "generic"
base_url = "https://api.acme.example/v2"
key_env = "SECRET"
webhook = "token"
throttle_scope = "account"
[provider.acme.auth]
header = "x-api-key"
[provider.acme.submit]
path = "/{model}/jobs"
input_field = "/params"
[provider.acme.poll]
path = "/jobs/{id}"
[provider.acme.cancel]
method = "DELETE"
path = "/jobs/{id}"
[provider.acme.fields]
id = "/id"
status = "/state"
files = ["/results/*/href"]
[provider.acme.states]
succeeded = ["ok"]
failed = ["broken"]
[model.flux]
chain = ["acme"]
"#;
    let config = parse(acme).unwrap().generations.dispatch;
    let AdapterConfig::Generic(generic) = &config.providers[0].adapter else { panic!() };
    assert_eq!((generic.auth.header.as_str(), generic.auth.prefix.as_str()), ("x-api-key", ""));
    assert_eq!(generic.cancel.as_ref().unwrap().method, "DELETE");
    assert_eq!(config.models[0].chain[0].model, "flux");
    let broken = acme.replace(
        "path = \"/jobs/{id}\"\n[provider.acme.cancel]",
        "path = \"/jobs\"\nx = 1\n[provider.acme.cancel]",
    );
    assert_snapshot!(wrong(&broken), @r"
    tidegate.toml:14:8: provider.acme.poll.path: poll.path: it must start with a slash and have {id}.
    tidegate.toml:15:1: provider.acme.poll.x: There is no such key; known keys: path.
    ");
}

#[test]
fn results_go_to_a_folder_or_to_a_bucket() {
    let storage = |text: &str| parse(text).unwrap().generations.storage;
    let folder = |text: &str| match storage(text) {
        ResultStorageConfig::Folder(folder) => folder.display().to_string(),
        ResultStorageConfig::S3(bucket) => panic!("{bucket:?}"),
    };
    assert_eq!(folder(""), "tidegate-results");
    assert_eq!(folder("[generations]\nstorage = \"pictures\""), "pictures");
    let bucket = "[generations.storage]\nkind = \"s3\"\nendpoint = \"https://s3.example\"\nregion = \"r\"\n\
                  bucket = \"b-1\"\naccess_key_env = \"SECRET\"\nsecret_key_env = \"SECRET\"";
    let ResultStorageConfig::S3(config) = storage(bucket) else { panic!() };
    assert_eq!((config.bucket.as_str(), config.region.as_str()), ("b-1", "r"));
    assert!(!format!("{config:?}").contains("secret_access_key: Secret(\"a-secret"));
    assert_snapshot!(wrong("[generations.storage]\nkind = \"ftp\"\nendpont = \"x\"\nendpoint = \"s3\""), @r#"
    tidegate.toml:1:1: generations.storage: The key region is missing.
    tidegate.toml:1:1: generations.storage: The key bucket is missing.
    tidegate.toml:1:1: generations.storage: The key access_key_env is missing.
    tidegate.toml:1:1: generations.storage: The key secret_key_env is missing.
    tidegate.toml:2:8: generations.storage.kind: It must be "s3"; a folder is storage = "FOLDER" in [generations].
    tidegate.toml:3:1: generations.storage.endpont: There is no such key; known keys: access_key_env, addressing, bucket, endpoint, kind, region, secret_key_env.
    tidegate.toml:4:12: generations.storage.endpoint: It must be a URL without user and query, such as https://tidegate.example.com.
    "#);
    assert_snapshot!(wrong("[generations]\nstorage = 7\nnotify_url = \"https://a.example/hook\""), @r"
    tidegate.toml:2:11: generations.storage: It must be a text in quotes, not a number.
    tidegate.toml:3:14: generations.notify_url: notify_secret_env is missing: reports are signed, so that they can be trusted.
    ");
    let receiver =
        "[generations]\nnotify_url = \"http://127.0.0.1:9/hook\"\nnotify_secret_env = \"WEBHOOK\"\n";
    let refused = wrong(receiver);
    assert!(refused.contains("generations.notify_url: Its host is not on the public internet."), "{refused}");
    let allowed = wrong(&format!("{receiver}notify_private = true\n"));
    assert!(!allowed.contains("notify_url"), "{allowed}");
}

/// What is wrong is reported with its place, all of it.
#[test]
fn every_problem_of_a_section_has_its_place() {
    let text = r#"
[provider.a]
adapter = "dall-e"
key_env = "SECRET"

[provider.fal]
key_env = "SECRET"
keys = [{ env = "SECRET" }]
max_concurent = 2

[provider.replicate]
key_env = "NOT_SET"
cooldown_s = [30, 10]
submit = { path = "/x" }
jwks_url = "https://x.example"

[model.flux]
input_schema = '{'
chain = [{ provider = "nowhere", modle = "x" }]
strategy = "random"
on_unknown = "retry"
"#;
    assert_snapshot!(wrong(text), @r#"
    tidegate.toml:3:11: provider.a.adapter: There is no adapter "dall-e"; there are "replicate", "google", "fal", "higgsfield", "generic".
    tidegate.toml:6:1: provider.fal: A provider needs either key_env or keys.
    tidegate.toml:9:1: provider.fal.max_concurent: There is no such key; known keys: adapter, base_url, cooldown_s, deadline_s, jwks_url, key_env, keys, max_concurrent, poll_after_s, poll_every_s, rpm, timeout_s, webhook_secret_env.
    tidegate.toml:12:11: provider.replicate.key_env: The variable NOT_SET is not set.
    tidegate.toml:13:14: provider.replicate.cooldown_s: It must be 1 to 4 numbers, none smaller than the one before it.
    tidegate.toml:14:10: provider.replicate.submit: Only the adapter "generic" has this key.
    tidegate.toml:15:12: provider.replicate.jwks_url: Only the adapters "google" and "fal" have public keys.
    tidegate.toml:18:16: model.flux.input_schema: It is not JSON: EOF while parsing an object at line 1 column 1.
    tidegate.toml:19:10: model.flux.chain[0]: The key model is missing.
    tidegate.toml:19:23: model.flux.chain[0].provider: There is no [provider.nowhere].
    tidegate.toml:19:34: model.flux.chain[0].modle: There is no such key; known keys: cost, model, provider, weight.
    tidegate.toml:20:12: model.flux.strategy: It must be chain, weights, least_busy, fastest or cheapest.
    tidegate.toml:21:14: model.flux.on_unknown: It must be wait, failover or fail.
    "#);
    let unknown_model = format!("{PROVIDERS}{MODEL}").replace("\"acme/flux\"", "\"flux\"");
    assert_snapshot!(wrong(&unknown_model), @r#"tidegate.toml:20:37: model.flux.chain[0].model: "flux" is no model of Replicate."#);
    let bad_schema = format!("{PROVIDERS}{MODEL}").replace("\"object\"", "7");
    assert_snapshot!(wrong(&bad_schema), @"tidegate.toml:18:16: model.flux.input_schema: It is no JSON Schema: /type: 7 is not valid under any of the schemas listed in the 'anyOf' keyword.");
}

/// DSP-14: problems of several tables, and several of one, are reported at once, each at its own
/// key and once.
#[test]
fn dsp_14_problems_are_reported_at_once() {
    let text = r#"
[generations]
result_max = "100GiB"

[provider.Foo]
key_env = "SECRET"

[provider.acme]
adapter = "generic"
base_url = "https://api.acme.example"
key_env = "SECRET"
submit = { path = "/{model}" }
poll = { path = "/jobs/{id}" }
fields = { id = "/id", status = "/state" }
states = { failed = ["broken"] }

[provider.replicate]
key_env = "SECRET"

[model.flux]
input_schema = '{"type":7,"minLength":-1}'
chain = ["nope"]

[model.dev]
chain = [{ provider = "replicate", model = "dev" }]
"#;
    let found = wrong(text);
    let expected = [
        "tidegate.toml:3:14: generations.result_max: ",
        "tidegate.toml:5:1: provider.Foo: Its name must be 1 to 31 of a-z, 0-9, - and _.",
        "tidegate.toml:14:10: provider.acme.fields: The key files is missing.",
        "tidegate.toml:15:10: provider.acme.states: The key succeeded is missing.",
        "tidegate.toml:21:16: model.flux.input_schema: It is no JSON Schema: /minLength: ",
        "tidegate.toml:21:16: model.flux.input_schema: It is no JSON Schema: /type: ",
        "tidegate.toml:22:9: model.flux.chain: There is no [provider.nope].",
        "tidegate.toml:25:44: model.dev.chain[0].model: \"dev\" is no model of Replicate.",
    ];
    for problem in expected {
        assert_eq!(found.matches(problem).count(), 1, "{problem}: {found}");
    }
    assert_eq!(found.lines().count(), expected.len(), "{found}");
}
