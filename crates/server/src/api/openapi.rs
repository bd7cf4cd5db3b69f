//! The OpenAPI 3.1 description of the API. It is maintained by hand in `openapi.json`; tests
//! compare it with the routes and with real responses. What is served is built from it and the
//! configuration: which upstreams and kinds there are, and whether a token is needed.

use std::sync::{Arc, LazyLock};

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tidegate_shopify::executor::KIND as BULK;

use crate::config::Config;
use crate::executors;
use crate::state::ServerState;
use crate::work::RemoteKinds;

const TEXT: &str = include_str!("../openapi.json");

/// The parsed description.
pub(crate) static DOCUMENT: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(TEXT).unwrap_or_default());

pub(super) async fn document(State(server): State<Arc<ServerState>>) -> Response {
    ([(CONTENT_TYPE, "application/json")], server.description.clone()).into_response()
}

/// Describes the API of a server with this configuration.
pub(crate) fn describe(config: &Config) -> String {
    let mut all = DOCUMENT.clone();
    if !config.requires_tokens() {
        without_security(&mut all);
    }
    with_upstreams(&mut all, config);
    let remote = RemoteKinds::from_config(config);
    let kinds: Vec<&str> = executors::kinds(config);
    let kinds: Vec<&str> = kinds.into_iter().filter(|kind| !remote.custom.contains(*kind)).collect();
    with_kinds(&mut all, &kinds);
    with_remote_kinds(&mut all, &remote);
    all.to_string()
}

/// Removes the security requirements, if no token is needed.
fn without_security(all: &mut Value) {
    let remove =
        |value: &mut Value, name: &str| drop(value.as_object_mut().map(|fields| fields.remove(name)));
    remove(all, "security");
    remove(&mut all["components"], "securitySchemes");
    for item in all["paths"].as_object_mut().into_iter().flatten().map(|(_, item)| item) {
        for call in item.as_object_mut().into_iter().flatten().map(|(_, call)| call) {
            remove(call, "security");
        }
    }
}

/// Adds the names of the configured upstreams, wherever a request names one.
fn with_upstreams(all: &mut Value, config: &Config) {
    let names: Vec<&str> = config.upstreams.iter().map(|upstream| upstream.name.as_str()).collect();
    if !names.is_empty() {
        all["components"]["schemas"]["Submission"]["properties"]["upstream"]["enum"] = json!(names);
        for path in ["/v1/operations", "/v1/operations/batch"] {
            let body = &mut all["paths"][path]["post"]["requestBody"]["content"]["application/json"];
            name_upstream(&mut body["example"], &names);
        }
        let passed_on = all["paths"]["/proxy/{upstream}/{path}"].as_object_mut().into_iter().flatten();
        for parameter in passed_on.filter_map(|(_, call)| call["parameters"].as_array_mut()).flatten() {
            if parameter["name"] == "upstream" {
                parameter["schema"]["enum"] = json!(names);
            }
        }
    }
    let bots: Vec<&String> = config.discord.keys().collect();
    if !bots.is_empty() {
        all["components"]["schemas"]["Wanted"]["properties"]["upstream"]["enum"] = json!(bots);
    }
}

/// Lets an example name an upstream that there is.
fn name_upstream(example: &mut Value, names: &[&str]) {
    match example {
        Value::Object(fields) => {
            for (name, value) in fields {
                match name.as_str() {
                    "upstream" if !names.iter().any(|name| value == name) => *value = json!(names.first()),
                    _ => name_upstream(value, names),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| name_upstream(item, names)),
        _ => {}
    }
}

/// The kinds that there are, and what only others take left out.
fn with_kinds(all: &mut Value, kinds: &[&str]) {
    let schemas = &mut all["components"]["schemas"];
    let fields = &mut schemas["Submission"]["properties"];
    let known = kinds.iter().map(|kind| json!(kind)).chain([Value::Null]);
    fields["kind"]["enum"] = known.collect();
    if kinds.contains(&BULK) {
        return;
    }
    if let Some(words) = fields["on_unknown"]["enum"].as_array_mut() {
        words.retain(|word| word != "reconcile");
    }
    fields["request"] = json!({ "$ref": "#/components/schemas/Request" });
    drop(schemas.as_object_mut().map(|schemas| schemas.remove("BulkRequest")));
}

/// The kinds that remote workers ask for, and how those are submitted that only they understand.
fn with_remote_kinds(all: &mut Value, remote: &RemoteKinds) {
    if remote.is_empty() {
        return;
    }
    let schemas = &mut all["components"]["schemas"];
    let names: Vec<&str> = remote.names().collect();
    schemas["WorkRequest"]["properties"]["kinds"]["items"]["enum"] = json!(names);
    if remote.custom.is_empty() {
        return;
    }
    let mut submission = schemas["Submission"].clone();
    submission["description"] = json!("An operation of a kind that remote workers execute.");
    submission["required"] = json!(["kind", "group", "payload"]);
    let fields = &mut submission["properties"];
    for name in ["upstream", "request", "completion"] {
        drop(fields.as_object_mut().map(|fields| fields.remove(name)));
    }
    fields["kind"] = json!({ "type": "string", "description": "Its kind.", "enum": remote.custom });
    fields["payload"] = json!({ "description": "Any JSON, for the worker." });
    schemas["WorkSubmission"] = submission;
    let either = json!({ "anyOf": [
        { "$ref": "#/components/schemas/Submission" }, { "$ref": "#/components/schemas/WorkSubmission" },
    ] });
    schemas["Batch"]["properties"]["operations"]["items"] = either.clone();
    all["paths"]["/v1/operations"]["post"]["requestBody"]["content"]["application/json"]["schema"] = either;
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use axum::routing::MethodFilter;

    use super::*;
    use crate::api::route::{Access, AllowedOrigin, PROXIED_METHODS, RouteSpec};
    use crate::api::routes::{PROXY, routes};

    /// Every described call with its scope: `GET /v1/limits read`.
    fn described() -> BTreeSet<String> {
        let mut calls = BTreeSet::new();
        for (path, item) in DOCUMENT["paths"].as_object().unwrap() {
            for (method, call) in item.as_object().unwrap() {
                let scopes = call["security"].as_array().unwrap();
                let scope = scopes.first().map_or("", |scheme| scheme["bearer"][0].as_str().unwrap());
                calls.insert(format!("{} {path} {scope}", method.to_uppercase()));
            }
        }
        calls
    }

    /// The proxy routes are described once, with each of their methods.
    fn passed_on(calls: &mut BTreeSet<String>) {
        let methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
        assert_eq!(methods.len(), PROXIED_METHODS.len());
        calls.extend(methods.map(|method| format!("{method} /proxy/{{upstream}}/{{path}} write")));
    }

    fn calls(route: &RouteSpec) -> Vec<String> {
        let methods = [
            ("GET", MethodFilter::GET),
            ("POST", MethodFilter::POST),
            ("PUT", MethodFilter::PUT),
            ("PATCH", MethodFilter::PATCH),
            ("DELETE", MethodFilter::DELETE),
        ];
        let method = methods.iter().find(|(_, filter)| *filter == route.method).unwrap().0;
        let scope = match route.access {
            Access::Scoped(scope) | Access::Completion(scope) => scope.as_str(),
            Access::Open | Access::Webhook | Access::Nodes => "",
        };
        let path = route.path.replace("{*", "{");
        // In the table of routes, the part after the name belongs to the name's parameter.
        let behind: &[&str] = match (method, path.as_str()) {
            ("POST", "/v1/limits/{name}" | "/v1/buckets/{name}") => &["/reserve", "/settle"],
            _ => &[""],
        };
        behind.iter().map(|word| format!("{method} {path}{word} {scope}")).collect()
    }

    fn served() -> BTreeSet<String> {
        let routes = routes().into_iter().map(|route| route.spec);
        let public = routes.filter(|route| route.access != Access::Nodes && !PROXY.contains(&route.path));
        let mut calls: BTreeSet<String> = public.flat_map(|route| calls(&route)).collect();
        passed_on(&mut calls);
        calls
    }

    #[test]
    fn what_is_served_is_described_and_nothing_else() {
        assert_eq!(DOCUMENT["info"]["version"], env!("CARGO_PKG_VERSION"));
        assert_eq!(described(), served());
    }

    /// A person who shortens the address of a page gets another page.
    #[test]
    fn the_address_above_every_page_is_one() {
        let is_page = |path: &str| described().iter().any(|call| call.starts_with(&format!("GET {path} ")));
        let routes = routes().into_iter().map(|route| route.spec);
        let pages = routes.filter(|route| route.allowed_origin == AllowedOrigin::Linked);
        for page in pages {
            let (above, name) = page.path.rsplit_once('/').unwrap();
            if name.starts_with('{') {
                assert!(is_page(above), "{above} is no page, and {} is", page.path);
            }
        }
    }

    /// An example that names an upstream can be sent to this server.
    #[test]
    fn examples_name_an_upstream_that_there_is() {
        let toml = "[[upstream]]\nname = \"api\"\nbase_url = \"http://127.0.0.1:9\"\n";
        let config = Config::parse("t", toml, &|_| None, &Default::default(), &[]).unwrap();
        let served: Value = serde_json::from_str(&describe(&config)).unwrap();
        let example = |path: &str| {
            served["paths"][path]["post"]["requestBody"]["content"]["application/json"]["example"].clone()
        };
        assert_eq!(example("/v1/operations")["upstream"], "api");
        let batch = example("/v1/operations/batch");
        let members = batch["operations"].as_array().unwrap();
        assert!(members.len() > 1 && members.iter().all(|member| member["upstream"] == "api"), "{batch}");
    }

    /// Every reference resolves, and every component is referenced.
    #[test]
    fn every_reference_leads_somewhere() {
        fn collect(value: &Value, found: &mut BTreeSet<String>) {
            match value {
                Value::Object(fields) => {
                    found.extend(fields.get("$ref").map(|target| target.as_str().unwrap().to_owned()));
                    fields.values().for_each(|field| collect(field, found));
                }
                Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
                _ => {}
            }
        }
        let mut pointed = BTreeSet::new();
        collect(&DOCUMENT, &mut pointed);
        let mut there = BTreeSet::new();
        for part in ["schemas", "responses", "parameters"] {
            let names = DOCUMENT["components"][part].as_object().unwrap().keys();
            there.extend(names.map(|name| format!("#/components/{part}/{name}")));
        }
        assert_eq!(pointed, there);
    }

    /// Every POST that takes an `Idempotency-Key` says so.
    #[test]
    fn the_idempotency_key_is_described() {
        let key = json!({ "$ref": "#/components/parameters/IdempotencyKey" });
        for (path, item) in DOCUMENT["paths"].as_object().unwrap() {
            let is_keyed = path.starts_with("/v1/") || path.starts_with("/api/generations");
            // A completion has a token of its own, and can be repeated as it is.
            let is_keyed = is_keyed && path != "/v1/operations/{id}/complete";
            let Some(call) = item.get("post").filter(|_| is_keyed) else { continue };
            let parameters = call["parameters"].as_array();
            assert!(parameters.is_some_and(|parameters| parameters.contains(&key)), "{path}");
            assert!(call["responses"]["409"].is_object(), "{path}");
        }
    }

    /// Every name in a path is a parameter, and every call has a unique operation id.
    #[test]
    fn paths_and_parameters_agree() {
        let mut names = BTreeSet::new();
        for (path, item) in DOCUMENT["paths"].as_object().unwrap() {
            let in_path: BTreeSet<_> =
                path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).collect();
            for call in item.as_object().unwrap().values() {
                let parameters = call["parameters"].as_array().into_iter().flatten();
                let named: BTreeSet<_> = parameters
                    .filter(|parameter| parameter["in"] == "path" && parameter["required"] == true)
                    .map(|parameter| parameter["name"].as_str().unwrap())
                    .collect();
                assert_eq!(named, in_path, "{path}");
                assert!(names.insert(call["operationId"].as_str().unwrap()), "{path}");
            }
        }
    }
}
