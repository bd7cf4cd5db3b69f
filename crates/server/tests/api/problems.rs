//! The problems of a request: one shape, all of them at once, with a page to read; unknown fields
//! and parameters are refused.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{World, answer, operation, read, within};

/// The fields that an error names, sorted.
fn fields(refusal: &Value) -> Vec<String> {
    let problems = refusal["error"]["problems"].as_array().unwrap();
    let mut fields: Vec<_> = problems.iter().map(|one| one["field"].as_str().unwrap().to_owned()).collect();
    fields.sort_unstable();
    fields
}

/// Sends requests, each of which is refused with all of these fields.
async fn expect_fields<'a>(
    world: &World,
    table: impl IntoIterator<Item = (Method, &'a str, &'a str, Vec<&'a str>)>,
) {
    for (method, path, body, wanted) in table {
        let refused = answer(world.request(method, path).body(body.to_owned())).await;
        assert_eq!(
            (refused.status, fields(&refused.json)),
            (400, wanted.into_iter().map(str::to_owned).collect()),
            "{path}"
        );
    }
}

#[tokio::test]
async fn all_that_is_wrong_with_a_request_is_told_at_once() {
    within(async {
        let world = World::new().await;
        let submission = json!({
            "upstream": "echo", "gruop": "g", "priority": 9, "max_attempts": 0,
            "request": { "method": "GRAB", "headers": { "x-n": 7 } },
        });
        let refused = world.post("/v1/operations", &submission).await;
        assert_eq!((refused.status, &refused.json["error"]["title"]), (400, &json!("Malformed request")));
        let wanted = [
            "group",
            "gruop",
            "max_attempts",
            "priority",
            "request.headers.x-n",
            "request.method",
            "request.path",
        ];
        assert_eq!(fields(&refused.json), wanted);
        let headers = json!({ "authorization": "c", "cookie": "a", "host": "b", "x-a": "a\nb" });
        let wanted_headers =
            ["authorization", "cookie", "host", "x-a"].map(|name| format!("request.headers.{name}"));
        let request = json!({ "method": "GET", "path": "/x", "headers": headers });
        let refused = world
            .post("/v1/operations", json!({ "upstream": "echo", "group": "g", "request": request }))
            .await;
        assert_eq!(fields(&refused.json), wanted_headers);
        let refused =
            world.post("/v1/operations", json!({ "upstream": "echo", "group": 7, "request": request })).await;
        assert_eq!(fields(&refused.json)[1..], wanted_headers, "one for the group, and its headers");
        let batch = world.post("/v1/operations/batch", json!({ "operations": [submission] })).await;
        assert_eq!(fields(&batch.json["operations"][0]), wanted);
        let table = [
            (
                Method::GET,
                "/v1/operations?limit=0&state=happy&colour=red",
                "",
                vec!["colour", "limit", "state"],
            ),
            (Method::GET, "/v1/keys?limit=x&cursor=x&state=y", "", vec!["cursor", "limit", "state"]),
            (Method::POST, "/v1/groups/g/pause", r#"{"by":7,"why":1}"#, vec!["by", "why"]),
            (
                Method::POST,
                "/v1/buckets/b/reserve",
                r#"{"cost":-1,"capacity":0,"x":1}"#,
                vec!["capacity", "cost", "x"],
            ),
            (Method::POST, "/v1/leases/l/renew", r#"{"ttl_ms":0}"#, vec!["token", "ttl_ms"]),
            (
                Method::PUT,
                "/v1/limits/echo",
                r#"{"capacity":0,"refill_per_s":"x"}"#,
                vec!["capacity", "refill_per_s"],
            ),
            (
                Method::POST,
                "/v1/deployments",
                r#"{"guild":7,"prune":1}"#,
                vec!["guild", "prune", "template", "upstream"],
            ),
        ];
        expect_fields(&world, table).await;
    })
    .await;
}

/// All that is wrong inside a completion or an event is reported too.
#[tokio::test]
async fn all_that_is_wrong_inside_a_body_is_told_at_once() {
    within(async {
        let world = World::new().await;
        let table = [
            (
                Method::POST,
                "/v1/operations",
                r#"{"upstream":"echo","group":"g","request":{"method":"POST","path":"/x"},
                    "completion":{"poll":{"path":7,"every":1},"timeout_s":"1"}}"#,
                vec![
                    "completion.poll.done",
                    "completion.poll.every",
                    "completion.poll.path",
                    "completion.timeout_s",
                ],
            ),
            (
                Method::POST,
                "/v1/operations",
                r#"{"upstream":"echo","group":"g","request":{"method":"POST","path":"/x"},"priority":9,
                    "completion":{"poll":{"path":"x","every_s":0,"done":{}},"timeout_s":0}}"#,
                vec![
                    "completion.poll.done",
                    "completion.poll.every_s",
                    "completion.poll.path",
                    "completion.timeout_s",
                    "priority",
                ],
            ),
            (
                Method::POST,
                "/v1/entities/events",
                r#"{"event":"entity/updated","tenant":7,
                    "payload":{"entity_id":1,"data":[],"version":"x","as_of":"soon","fields":7}}"#,
                vec![
                    "payload.as_of",
                    "payload.data",
                    "payload.entity_id",
                    "payload.entity_type",
                    "payload.fields",
                    "payload.source_module",
                    "payload.version",
                    "tenant",
                ],
            ),
        ];
        expect_fields(&world, table).await;
    })
    .await;
}

/// A body that is no JSON is refused for what is wrong with it, a missing field as missing, and
/// every header that may not be stored is named.
#[tokio::test]
async fn what_is_wrong_with_a_body_is_named() {
    within(async {
        let world = World::new().await;
        let table: [(&[u8], &str); 4] = [
            (b"", "it is empty"),
            (b"\xef\xbb\xbf{}", "it starts with a byte order mark"),
            (b"{\"group\":\"\xff\"}", "byte 11 and what follows is not UTF-8"),
            (b"{", "it ends too early at line 1 column 1"),
        ];
        for (body, wanted) in table {
            let refused = answer(world.request(Method::POST, "/v1/operations").body(body)).await;
            let message = refused.json["error"]["message"].as_str().unwrap();
            assert!(message.contains(wanted), "{message}");
        }
        let mut submission = operation("g");
        submission["completion"] = json!({ "timeout_s": 60, "poll": { "path": "/x" } });
        let refused = world.post("/v1/operations", &submission).await;
        refused.refused(400, "TG0001", Some("completion.poll.done"));
        assert_eq!(refused.json["error"]["message"], "The field \"completion.poll.done\" is missing.");
        let mut submission = operation("g");
        submission["request"]["headers"] =
            json!({ "x-grant": "8f3aC1d2E4b5a697882746152433", "x-vault-token": "a" });
        let refused = world.post("/v1/operations", &submission).await;
        refused.refused(400, "TG0002", Some("request.headers.x-grant"));
        let message = refused.json["error"]["message"].as_str().unwrap();
        assert!(message.contains("x-grant") && message.contains("x-vault-token"), "{message}");
    })
    .await;
}

/// A path that is not text is refused in the same shape as anything else.
#[tokio::test]
async fn a_path_that_is_not_text_is_refused_in_the_one_shape() {
    within(async {
        let world = World::new().await;
        for path in ["/v1/groups/%ff", "/v1/operations/%C3", "/v1/buckets/%ff", "/v1/keys/%ff", "/groups/%ff"]
        {
            let request = world.request(Method::GET, path);
            let response = request.send().await.unwrap();
            assert_eq!(response.headers()["x-tidegate-error"], "TG0001", "{path}");
            read(response).await.refused(400, "TG0001", Some("path"));
        }
        for path in ["/%ff", "/groups/%ff"] {
            let request = world.request(Method::GET, path).header("accept", "text/html,*/*");
            let response = request.send().await.unwrap();
            assert_eq!(response.status(), 400, "{path}");
            let page = response.text().await.unwrap();
            assert!(page.contains("TG0001") && page.contains("</html>"), "{path}: {page}");
        }
    })
    .await;
}

/// The link of an error leads to its page, without a token.
#[tokio::test]
async fn an_error_leads_to_its_page() {
    within(async {
        let world = World::new().await;
        let refused = world.get("/v1/operations/none").await;
        let link = refused.json["error"]["link"].as_str().unwrap();
        let page = world.request(Method::GET, link).send().await.unwrap();
        assert_eq!(
            (page.status().as_u16(), page.headers()["content-type"].to_str().unwrap()),
            (200, "text/html; charset=utf-8")
        );
        let page = page.text().await.unwrap();
        assert!(
            page.contains("<h1>TG0010 No such operation or generation</h1>") && page.contains("What to do"),
            "{page}"
        );
        let missing = world.request(Method::GET, "/docs/errors/TG9999").send().await.unwrap();
        assert_eq!(missing.status(), 404);
        assert!(missing.text().await.unwrap().contains("There is no error code"));
    })
    .await;
}

/// Every described call refuses an unknown parameter, by name.
#[tokio::test]
async fn an_unknown_parameter_is_refused_everywhere() {
    within(async {
        let world = World::new().await;
        let all = world.get("/openapi.json").await.json;
        let mut count = 0;
        for (path, item) in all["paths"].as_object().unwrap() {
            if !path.starts_with("/v1/") {
                continue;
            }
            for method in item.as_object().unwrap().keys() {
                let path = path.replace("{id}", "op_00000000000000000000000001").replace(['{', '}'], "");
                let method: Method = method.to_uppercase().parse().unwrap();
                let refused = answer(world.request(method, &format!("{path}?colour=red"))).await;
                assert_eq!(refused.status, 400, "{path}: {refused:?}");
                assert_eq!(fields(&refused.json), ["colour"], "{path}");
                count += 1;
            }
        }
        assert!(count > 30, "{count} calls were made");
    })
    .await;
}
