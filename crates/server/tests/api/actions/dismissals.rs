//! Recent failures that an operator has seen: dismissed and restored, over the API and on the page.

use reqwest::Method;
use serde_json::{Value, json};
use tidegate_server::Server;
use tidegate_sim::HttpSim;

use super::operator::{Operator, encoded, unproven};
use super::{failed_operation, failing};
use crate::support::{World, answer, config_on, operation, within};

const DISMISS: &str = "/v1/failures/dismiss";
const RESTORE: &str = "/v1/failures/restore";
/// More failures than a page of the API has.
const NOISY: usize = 210;

/// When the operation finished, as the overview shows it.
async fn finished_at(world: &World, id: &str) -> String {
    world.get(&format!("/v1/operations/{id}")).await.text("finished_at")
}

/// OPS-24: what an operator has seen is dismissed up to the last failure that was shown; an earlier
/// time never lowers that. Each command is in the audit log.
#[tokio::test]
async fn ops_24_failures_are_dismissed_and_restored() {
    within(async {
        let world = World::with("", failing()).await;
        let first = finished_at(&world, &failed_operation(&world, "shop:1").await).await;
        let last = finished_at(&world, &failed_operation(&world, "shop:1").await).await;
        let dismiss = async |through: &str, reason: Value| {
            world.post(DISMISS, json!({ "group": "shop:1", "through": through, "reason": reason })).await
        };
        let done = dismiss(&first, "the shop was closed".into()).await;
        assert_eq!(done.status, 200, "{done:?}");
        let at = done.text("at");
        let expected = json!({
            "group": "shop:1", "through": first, "by": "local", "at": at, "reason": "the shop was closed",
        });
        assert_eq!(done.json, expected);
        let later = dismiss(&last, Value::Null).await.json;
        assert_eq!((&later["through"], &later["reason"]), (&json!(last), &Value::Null), "{later}");
        assert_eq!(dismiss(&first, "again".into()).await.json, later, "it is not lowered");
        let strict = json!({ "group": "shop:1", "through": last, "strict": true });
        let refused = world.post(DISMISS, strict).await;
        refused.refused(409, "TG0013", Some("through"));
        assert!(refused.json.to_string().contains("already, by local"), "{refused:?}");
        let future = dismiss("2999-01-01T00:00:00Z", Value::Null).await;
        assert_eq!(future.text("through"), future.text("at"), "what has not failed yet was not seen");
        let restored = async || world.post(RESTORE, json!({ "group": "shop:1" })).await.json;
        assert_eq!(restored().await, json!({ "group": "shop:1", "restored": true }));
        assert_eq!(restored().await, json!({ "group": "shop:1", "restored": false }));
        let refused = world.post(RESTORE, json!({ "group": "shop:1", "strict": true })).await;
        refused.refused(409, "TG0013", None);
        let all = json!({ "kind": "generation", "through": last, "strict": true });
        assert_eq!(world.post(DISMISS, all).await.json["kind"], "generation");
        let log = world.get("/v1/audit?limit=9").await.json;
        let fields = ["action", "kind", "subject", "detail", "reason", "status"];
        let entry = |place: usize| json!(fields.map(|field| log["entries"][place][field].clone()));
        let detail = format!("kind generation, through {last}");
        assert_eq!(entry(0), json!(["dismiss", "generations", "", detail, null, 200]));
        assert_eq!(entry(1), json!(["restore", "groups", "shop:1", "group shop:1", null, 409]));
        assert_eq!(entry(2), json!(["restore", "groups", "shop:1", "group shop:1", null, 200]));
        let detail = format!("group shop:1, through {first}");
        let reason = "the shop was closed";
        assert_eq!(entry(8), json!(["dismiss", "groups", "shop:1", detail, reason, 200]));
        assert_eq!(world.get("/v1/keys").await.json["keys"], json!([]), "they are no keys");
    })
    .await;
}

/// OPS-24: a command names one source and a time, and nothing that is not known.
#[tokio::test]
async fn ops_24_a_dismissal_is_read_strictly() {
    within(async {
        let world = World::new().await;
        let through = "2031-05-06T07:08:09Z";
        for (body, code, field) in [
            (json!({}), "TG0002", "group"),
            (json!({ "through": through }), "TG0002", "group"),
            (json!({ "group": "g", "kind": "generation", "through": through }), "TG0002", "group"),
            (json!({ "group": "", "through": through }), "TG0002", "group"),
            (json!({ "kind": "http", "through": through }), "TG0001", "kind"),
            (json!({ "group": "g" }), "TG0001", "through"),
            (json!({ "group": "g", "through": "today" }), "TG0001", "through"),
            (json!({ "group": "g", "through": through, "reason": "a\nb" }), "TG0002", "reason"),
            (json!({ "group": "g", "through": through, "by": "anna" }), "TG0001", "by"),
            (json!({ "group": "g", "through": "2999-01-01T00:00:00Z", "strict": true }), "TG0002", "through"),
        ] {
            let refused = world.post(DISMISS, &body).await;
            assert_eq!(refused.status, 400, "{body}");
            refused.refused(400, code, Some(field));
        }
        let late = json!({ "group": "g", "through": through });
        world.post(RESTORE, late).await.refused(400, "TG0001", Some("through"));
        let subjects: Vec<Value> = {
            let log = world.get("/v1/audit?limit=200").await.json;
            log["entries"].as_array().unwrap().iter().map(|entry| entry["kind"].clone()).collect()
        };
        assert_eq!(subjects.last(), Some(&json!("failures")), "a refused one without a source: {subjects:?}");
    })
    .await;
}

/// OPS-24: the confirm step says what happens, by whom it was dismissed before, and restores only
/// what is dismissed.
#[tokio::test]
async fn ops_24_failures_are_dismissed_from_the_page() {
    within(async {
        let world = World::with("", failing()).await;
        let operator = Operator::at(&world.server);
        let through = finished_at(&world, &failed_operation(&world, "a&b").await).await;
        let subject = format!("group=a%26b&through={through}");
        let encoded = encoded(&subject);
        let (status, html) = operator.page(&format!("/actions/restore?subject={encoded}")).await;
        assert!(status == 200 && html.contains("This is not possible"), "nothing is dismissed: {html}");
        let (_, html) = operator.page(&format!("/actions/dismiss?subject={encoded}")).await;
        assert!(html.contains("Dismiss the recent failures: <code>a&amp;b</code>?"), "{html}");
        assert!(html.contains("stay failed and in the lists") && html.contains("failed up to"), "{html}");
        let card = "id=\"need-failed-a&amp;b\"";
        let (_, html) = operator.page("/").await;
        assert!(
            html.contains(card) && html.contains("/actions/dismiss?subject=group%3Da%2526b%26through"),
            "{html}"
        );
        let target = operator.act("dismiss", &subject, &[("reason", "seen")]).await;
        let (_, html) = operator.page("/").await;
        assert!(!html.contains(card) && html.contains("Nothing waits for an operator"), "{html}");
        assert!(html.contains("Failures that were dismissed (1)") && html.contains(": seen"), "{html}");
        assert!(html.contains("/actions/restore?subject=group%3Da%2526b\""), "{html}");
        let (_, html) = operator.page(&format!("/actions/dismiss?subject={encoded}")).await;
        assert!(html.contains("This is not possible"), "who comes later is told: {html}");
        assert!(html.contains("Last command: <b>Dismiss</b>, by <b>operator</b>"), "{html}");
        failed_operation(&world, "a&b").await;
        let (_, html) = operator.page("/").await;
        assert!(html.contains(card) && html.contains("within a day: <b>1</b>"), "a newer one: {html}");
        assert_eq!(unproven(&target), "/operations?state=failed&group=a%26b&done=dismiss");
        let (status, html) = operator.page(&target).await;
        assert!(
            status == 200 && html.contains("Done: Dismiss.") && html.contains("/operations/op_"),
            "{html}"
        );
        let (_, html) = operator.page(&format!("/actions/restore?subject={encoded}")).await;
        assert!(html.contains("Dismissed by <b>operator</b>") && html.contains(": seen"), "{html}");
        let target = operator.act("restore", "group=a%26b", &[]).await;
        let (_, html) = operator.page("/").await;
        assert!(html.contains("within a day: <b>2</b>") && !html.contains("dismissed (1)"), "{html}");
        assert_eq!(unproven(&target), "/operations?state=failed&group=a%26b&done=restore");
        let log = operator.audit().await;
        let told: Vec<_> = log.iter().map(|one| format!("{} {}", one["action"], one["reason"])).collect();
        assert_eq!(told, [r#""restore" null"#, r#""dismiss" "seen""#]);
        let (_, html) = operator.page("/audit").await;
        assert!(html.contains(">Show again ") && html.contains(">Dismiss "), "{html}");
        for wrong in ["through%3Dx", "group%3Da", "group%3Da%26kind%3Dgeneration", "group%3Da%26x%3D1"] {
            let (status, html) = operator.page(&format!("/actions/dismiss?subject={wrong}")).await;
            assert!(status == 400 && html.contains("</html>"), "{wrong}: {status} {html}");
        }
    })
    .await;
}

/// OPS-24: a dismissal holds at all nodes of a store, and any of them restores.
#[tokio::test(flavor = "multi_thread")]
async fn ops_24_a_dismissal_holds_at_all_nodes() {
    let store = tidegate_fixture::redis::RedisServer::start();
    within(async {
        let sim = HttpSim::start(failing()).await.unwrap();
        let mut servers = Vec::new();
        for _ in 0..2 {
            servers.push(Server::start(config_on(&store.url(), &sim, "")).await.unwrap());
        }
        let [first, other] = [0, 1].map(|nth: usize| Operator::at(&servers[nth]));
        let post = async |operator: &Operator, path: &str, body: Value| {
            answer(operator.request(Method::POST, path).body(body.to_string())).await.json
        };
        for (operator, other) in [(&first, &other), (&other, &first)] {
            for through in ["2026-01-01T00:00:00.000Z", "2026-01-01T00:00:09.000Z"] {
                let body = json!({ "group": "a b c", "through": through });
                assert_eq!(post(operator, DISMISS, body).await["through"], through);
            }
            let (_, html) = other.page("/actions/restore?subject=group%3Da%2Bb%2Bc").await;
            assert!(html.contains("Dismissed by <b>local</b>"), "{html}");
            assert_eq!(answer(other.request(Method::GET, "/v1/keys")).await.json["keys"], json!([]));
            let restored = post(other, RESTORE, json!({ "group": "a b c" })).await;
            assert_eq!(restored, json!({ "group": "a b c", "restored": true }));
        }
    })
    .await;
}

/// OPS-24: however many failed in one group, the failures of another one are seen, and still are
/// once those of the first are dismissed.
#[tokio::test]
async fn ops_24_many_failures_of_a_group_hide_no_other() {
    within(async {
        let world = World::with("", failing()).await;
        let operator = Operator::at(&world.server);
        failed_operation(&world, "important").await;
        let mut last = String::new();
        for _ in 0..NOISY {
            let mut noisy = operation("noisy");
            noisy["max_attempts"] = 1.into();
            last = world.submit(noisy).await;
        }
        world.wait_until_ended(&last).await;
        let (_, html) = operator.page("/").await;
        assert!(html.contains(&format!("failed within a day: <b>{NOISY}</b>")), "{html}");
        assert!(html.contains("need-failed-important"), "{html}");
        let through = finished_at(&world, &last).await;
        world.post(DISMISS, json!({ "group": "noisy", "through": through })).await;
        let (_, html) = operator.page("/").await;
        assert!(html.contains("need-failed-important") && !html.contains("need-failed-noisy"), "{html}");
    })
    .await;
}
