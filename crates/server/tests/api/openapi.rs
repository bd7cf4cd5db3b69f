//! The description of the API, compared with real responses.

use reqwest::Method;
use serde_json::{Value, json};
use tidegate_sim::HttpSimOptions;

use crate::support::{World, operation, with, within};

const LIMITED: &str = "[[upstream.limit]]\nname = \"points\"\ncapacity = 10\nrefill_per_s = 1\n";

/// Reports where a value does not match a schema. Supports the parts of JSON Schema that the
/// document uses.
pub(crate) fn differs(all: &Value, schema: &Value, value: &Value, place: &str) -> Option<String> {
    if let Some(target) = schema["$ref"].as_str() {
        return differs(all, all.pointer(&target[1..]).unwrap(), value, place);
    }
    if let Some(choices) = schema["anyOf"].as_array().or(schema["oneOf"].as_array()) {
        let fits = choices.iter().any(|choice| differs(all, choice, value, place).is_none());
        return (!fits).then(|| format!("{place} fits none of its choices"));
    }
    let kinds = schema["type"].as_array().cloned().unwrap_or_else(|| vec![schema["type"].clone()]);
    let is = |kind: &Value| match kind.as_str() {
        None => true,
        Some("null") => value.is_null(),
        Some("string") => value.is_string(),
        Some("integer") => value.is_u64(),
        Some("number") => value.is_number(),
        Some("boolean") => value.is_boolean(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        Some(other) => panic!("{place}: what is {other}?"),
    };
    if !kinds.iter().any(is) {
        return Some(format!("{place} is no {kinds:?}"));
    }
    if schema["enum"].as_array().is_some_and(|words| !words.contains(value)) {
        return Some(format!("{place} is none of its words"));
    }
    let items = value.as_array().into_iter().flatten();
    if let Some(problem) = items.filter_map(|item| differs(all, &schema["items"], item, place)).next() {
        return Some(problem);
    }
    let (Some(fields), Some(known)) = (value.as_object(), schema["properties"].as_object()) else {
        return None;
    };
    let needed = schema["required"].as_array().into_iter().flatten();
    if let Some(missing) = needed.filter_map(Value::as_str).find(|name| !fields.contains_key(*name)) {
        return Some(format!("{place}.{missing} is missing"));
    }
    let of = |(name, field): (&String, &Value)| match known.get(name) {
        Some(schema) => differs(all, schema, field, &format!("{place}.{name}")),
        None => Some(format!("{place}.{name} is not described")),
    };
    fields.iter().find_map(of)
}

struct SchemaChecker<'a> {
    world: &'a World,
    all: Value,
}

impl SchemaChecker<'_> {
    /// Sends a request and checks the response against the schema of its status.
    async fn call(&self, method: Method, path: &str, template: &str, body: Option<Value>) -> Value {
        let request = self.world.request(method.clone(), path);
        let request = body.map_or(request.try_clone().unwrap(), |body| request.body(body.to_string()));
        let response = request.send().await.unwrap();
        let status = response.status().as_u16().to_string();
        let call = &self.all["paths"][template][method.as_str().to_lowercase()];
        let mut answer = &call["responses"][&status];
        if let Some(target) = answer["$ref"].as_str() {
            answer = self.all.pointer(&target[1..]).unwrap();
        }
        let value: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
        let schema = &answer["content"]["application/json"]["schema"];
        assert!(!schema.is_null(), "{method} {path}: {status} is not described: {value}");
        assert_eq!(differs(&self.all, schema, &value, "it"), None, "{method} {path}: {value}");
        value
    }

    async fn get(&self, path: &str, template: &str) -> Value {
        self.call(Method::GET, path, template, None).await
    }

    async fn post(&self, path: &str, template: &str, body: Value) -> Value {
        self.call(Method::POST, path, template, Some(body)).await
    }

    /// Calls all routes about idempotency keys, after one was used.
    async fn keys(&self) {
        let request = self.world.request(Method::POST, "/v1/operations").header("idempotency-key", "k-1");
        assert_eq!(request.body(operation("k").to_string()).send().await.unwrap().status(), 202);
        self.get("/v1/keys", "/v1/keys").await;
        self.get("/v1/keys?state=none", "/v1/keys").await;
        self.get("/v1/keys/k-1", "/v1/keys/{key}").await;
        self.get("/v1/keys/none", "/v1/keys/{key}").await;
        self.post("/v1/keys/k-1/release", "/v1/keys/{key}/release", json!({})).await;
        self.post("/v1/keys/k-1/expire", "/v1/keys/{key}/expire", json!({})).await;
    }
}

#[tokio::test]
async fn what_is_answered_is_what_is_described() {
    within(async {
        let world = World::with(LIMITED, HttpSimOptions::default()).await;
        let all = world.get("/openapi.json").await.json;
        assert_eq!(all["openapi"], "3.1.0");
        let api = SchemaChecker { world: &world, all };
        let one = api.post("/v1/operations", "/v1/operations", with("dedupe_key", "k")).await;
        api.post("/v1/operations", "/v1/operations", with("dedupe_key", "k")).await;
        for wrong in [json!({}), with("upstream", "nobody"), with("cost", json!({ "points": 11 }))] {
            api.post("/v1/operations", "/v1/operations", wrong).await;
        }
        api.keys().await;
        let batch = json!({ "operations": [operation("b"), 7] });
        api.post("/v1/operations/batch", "/v1/operations/batch", batch).await;
        let id = one["id"].as_str().unwrap();
        let ended = api.get(&format!("/v1/operations/{id}?wait_ms=30000"), "/v1/operations/{id}").await;
        assert_eq!(ended["state"], "succeeded");
        api.get("/v1/operations/none", "/v1/operations/{id}").await;
        api.get(&format!("/v1/operations/{id}/why"), "/v1/operations/{id}/why").await;
        api.get("/v1/operations?state=succeeded", "/v1/operations").await;
        api.get("/v1/operations?state=none", "/v1/operations").await;
        let (pause, body) =
            ("/v1/groups/{group}/pause", json!({ "by": "anna", "reason": "price fix", "create": true }));
        api.post("/v1/groups/p/pause", pause, body).await;
        let waiting = api.post("/v1/operations", "/v1/operations", operation("p")).await;
        api.get("/v1/groups", "/v1/groups").await;
        api.get("/v1/groups/p", "/v1/groups/{group}").await;
        api.get("/v1/groups/none", "/v1/groups/{group}").await;
        for (order, body) in
            [("resolve", json!({ "as": "failed" })), ("rerun", json!({})), ("cancel", json!({}))]
        {
            let path = format!("/v1/operations/{}/{order}", waiting["id"].as_str().unwrap());
            api.post(&path, &format!("/v1/operations/{{id}}/{order}"), body).await;
        }
        for (command, body) in [
            ("/v1/operations/cancel", json!({ "group": "p", "dry_run": true })),
            ("/v1/operations/rerun", json!({ "group": "p", "state": "canceled" })),
            ("/v1/operations/resolve", json!({})),
        ] {
            api.post(command, command, body).await;
        }
        api.post("/v1/groups/p/resume", "/v1/groups/{group}/resume", json!({})).await;
        api.get("/v1/limits", "/v1/limits").await;
        api.get("/v1/costs", "/v1/costs").await;
        api.get("/v1/costs?since_s=0", "/v1/costs").await;
        for body in
            [json!({ "capacity": 4, "refill_per_s": 0.5 }), json!({ "at_once": 0 }), json!({ "at_once": 1 })]
        {
            api.call(Method::PUT, "/v1/limits/echo/points", "/v1/limits/{name}", Some(body)).await;
        }
        api.get("/healthz", "/healthz").await;
        api.get("/readyz", "/readyz").await;
        world.server.drain().await;
        api.post("/v1/operations", "/v1/operations", operation("g")).await;
        api.get("/readyz", "/readyz").await;
    })
    .await;
}

/// The page is rendered from the same document, and needs no script and no token.
#[tokio::test]
async fn the_description_can_be_read() {
    within(async {
        let token = "[[token]]\nname = \"t\"\nvalue_env = \"TEST_TOKEN\"\nscopes = [\"read\"]\n";
        let world = World::with(token, HttpSimOptions::default()).await;
        let response = world.request(Method::GET, "/docs").send().await.unwrap();
        assert_eq!(response.status(), 200);
        let page = response.text().await.unwrap();
        let all = world.get("/openapi.json").await.json;
        for path in all["paths"].as_object().unwrap().keys() {
            assert!(page.contains(&format!(" {path}</code>")), "{path} is not in {page}");
        }
        for name in all["components"]["schemas"].as_object().unwrap().keys() {
            assert!(page.contains(&format!("id=\"shape-{name}\"")), "{name}");
        }
        assert!(!page.contains("<script") && !page.contains(" style="), "{page}");
        assert!(page.contains("request.method") && page.contains("1 to 1000"), "{page}");
    })
    .await;
}

/// The served description matches this server: its upstreams and kinds, and a token only if one is
/// needed.
#[tokio::test]
async fn the_description_is_of_this_server() {
    within(async {
        let open = World::new().await.get("/openapi.json").await.json;
        assert_eq!(open["paths"]["/v1/limits"]["get"]["security"], Value::Null);
        assert_eq!(open["components"]["securitySchemes"], Value::Null);
        let submission = &open["components"]["schemas"]["Submission"]["properties"];
        assert_eq!(submission["upstream"]["enum"], json!(["echo"]));
        assert_eq!(submission["kind"]["enum"], json!(["http", null]));
        assert_eq!(submission["on_unknown"]["enum"], json!(["repeat", "ask", null]));
        assert_eq!(submission["request"]["$ref"], "#/components/schemas/Request");
        let token = "[[token]]\nname = \"t\"\nvalue_env = \"TEST_TOKEN\"\nscopes = [\"read\"]\n\
                     [[upstream]]\nname = \"shop\"\ndialect = \"shopify\"\nbase_url = \"http://127.0.0.1:1\"\n\
                     token_env = \"TEST_TOKEN\"\n";
        let guarded = World::with(token, HttpSimOptions::default()).await.get("/openapi.json").await.json;
        assert_eq!(guarded["paths"]["/v1/limits"]["get"]["security"], json!([{ "bearer": ["read"] }]));
        let submission = &guarded["components"]["schemas"]["Submission"]["properties"];
        assert_eq!(submission["upstream"]["enum"], json!(["echo", "shop"]));
        assert_eq!(submission["kind"]["enum"], json!(["http", "shopify.bulk", null]));
    })
    .await;
}
