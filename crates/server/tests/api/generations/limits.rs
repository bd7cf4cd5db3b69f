//! Limits: of users, and of providers while the server runs.

use reqwest::Method;
use serde_json::{Value, json};
use tidegate_sim::{Provider, ProviderSimOptions};

use super::studio::{Studio, StudioPlan, fast, generation, slow};
use crate::support::within;

fn one_slot() -> StudioPlan {
    StudioPlan { chain: vec![Provider::Replicate], slots: 1, sim: slow, ..StudioPlan::default() }
}

/// DSP-1: a user with too many unfinished generations gets 429 with the time to wait; another user
/// does not wait for them.
#[tokio::test]
async fn dsp_1_a_user_has_limits() {
    within(async {
        let generations = "per_user_active = 2\nper_user_rpm = 3".to_owned();
        let studio = Studio::start(StudioPlan { generations, ..one_slot() }).await;
        let create = |user: &str| {
            let request = studio.request(Method::POST, "/api/generations/create");
            request.body(generation(user, "a cat").to_string()).send()
        };
        let mut ids = Vec::new();
        for _ in 0..2 {
            ids.push(studio.create(&generation("anna", "a cat")).await);
        }
        let refused = create("anna").await.unwrap();
        assert_eq!(
            (refused.status().as_u16(), &refused.headers()["x-tidegate-error"]),
            (429, &"TG0032".parse().unwrap())
        );
        let wait: u64 = refused.headers()["retry-after"].to_str().unwrap().parse().unwrap();
        assert!((1..=60).contains(&wait), "{wait}");
        assert_eq!(create("boris").await.unwrap().status(), 202);
        for id in &ids {
            studio.post(&format!("/api/generations/{id}/cancel"), &json!({})).await;
            studio.wait_until_ended(id).await;
        }
        assert_eq!(create("anna").await.unwrap().status(), 202, "the third of this minute");
        studio.get("/api/generations?user_id=anna&status=queued").await;
        let fourth = create("anna").await.unwrap();
        assert_eq!(fourth.status(), 429, "a minute allows three");
    })
    .await;
}

/// DSP-1: a user whose name would turn what is next to it on a page is refused.
#[tokio::test]
async fn dsp_1_a_user_is_plain_text() {
    within(async {
        let studio = Studio::start(one_slot()).await;
        for user in ["anna\u{202e}1", "anna\n1"] {
            let refused = studio.post("/api/generations/create", &generation(user, "a cat")).await;
            refused.refused(400, "TG0002", Some("user_id"));
        }
    })
    .await;
}

/// DSP-14: slots and rate of a provider are changed at run time, and what waited runs at once.
#[tokio::test]
async fn dsp_14_limits_are_changed_at_run_time() {
    within(async {
        let studio = Studio::start(one_slot()).await;
        let first = studio.create(&generation("anna", "a cat")).await;
        studio.wait_for_status(&first, "processing").await;
        let second = studio.create(&generation("anna", "a dog")).await;
        let busy = studio.provider("replicate").await;
        assert_eq!((&busy["state"], &busy["slots"]["in_use"]), (&json!("busy"), &json!(1)), "{busy}");
        assert_eq!(busy["slots"]["source"], "config");
        let changed =
            studio.patch("/v1/providers/replicate", &json!({ "max_concurrent": 2, "rpm": 77 })).await;
        assert_eq!(changed.status, 200, "{changed:?}");
        assert_eq!(changed.json["slots"]["max_concurrent"], 2);
        assert_eq!(
            (&changed.json["rpm"]["limit"], &changed.json["rpm"]["source"]),
            (&json!(77), &json!("operator"))
        );
        let free = studio.patch("/v1/providers/replicate", &json!({ "max_concurrent": 1_000_000 })).await;
        let slots = &free.json["slots"];
        assert_eq!((&slots["max_concurrent"], &slots["free"]), (&Value::Null, &Value::Null), "any number");
        let runs = studio.wait_for_status(&second, "processing").await;
        assert_eq!(runs["provider"], "replicate");
        for (body, code, field) in [
            (json!({}), "TG0001", "max_concurrent"),
            (json!({ "max_concurrent": 0 }), "TG0002", "max_concurrent"),
            (json!({ "rpm": 1.5 }), "TG0001", "rpm"),
            (json!({ "slots": 2 }), "TG0001", "slots"),
        ] {
            studio.patch("/v1/providers/replicate", &body).await.refused(400, code, Some(field));
        }
        studio.patch("/v1/providers/nowhere", &json!({ "rpm": 1 })).await.refused(404, "TG0033", None);
    })
    .await;
}

fn failing(provider: Provider) -> ProviderSimOptions {
    let fail_rate = if provider == Provider::Fal { 1.0 } else { 0.0 };
    ProviderSimOptions { fail_rate, ..fast(provider) }
}

/// DSP-14: the state of each provider is shown: a provider that fails cools, with its last error,
/// and the next one makes the picture.
#[tokio::test]
async fn dsp_14_a_provider_that_fails_is_shown_with_its_error() {
    within(async {
        let chain = vec![Provider::Fal, Provider::Replicate];
        let studio = Studio::start(StudioPlan { chain, sim: failing, ..StudioPlan::default() }).await;
        let id = studio.create(&generation("anna", "a cat")).await;
        let done = studio.wait_until_ended(&id).await;
        assert_eq!(
            (&done["status"], &done["provider"]),
            (&json!("completed"), &json!("replicate")),
            "{done}"
        );
        let hot = studio.provider("fal").await;
        assert_eq!(
            (&hot["state"], &hot["breaker"]["state"]),
            (&json!("cooling_down"), &json!("open")),
            "{hot}"
        );
        assert_eq!(hot["breaker"]["failures"], 1, "{hot}");
        assert!(hot["until"].is_string() && hot["last_error"]["message"].is_string(), "{hot}");
        assert_eq!(hot["last_error"]["generation"], json!(id));
        let well = studio.provider("replicate").await;
        assert_eq!((&well["state"], &well["breaker"]["failures"]), (&json!("free"), &json!(0)), "{well}");
        assert!(well["last_error"].is_null(), "{well}");
        let keys = hot["keys"].as_array().unwrap();
        assert_eq!((keys.len(), &keys[0]["name"]), (1, &json!("key-1")));
    })
    .await;
}

/// DSP-6, DSP-14: an operator ends the cooldown of a provider: one job goes first, and when it
/// fails, the next cooldown is longer; since when and why it fails is known throughout.
#[tokio::test]
async fn dsp_6_dsp_14_a_provider_is_tried_again_before_its_time() {
    within(async {
        let chain = vec![Provider::Fal, Provider::Replicate];
        let studio = Studio::start(StudioPlan { chain, sim: failing, ..StudioPlan::default() }).await;
        let open = json!({ "open": true });
        let refused = studio.patch("/v1/providers/fal", &open).await;
        refused.refused(409, "TG0013", Some("open"));
        let first = studio.create(&generation("anna", "a cat")).await;
        studio.wait_until_ended(&first).await;
        let hot = studio.provider("fal").await;
        assert!(hot["failing_since"].is_string(), "{hot}");
        let opened = studio.patch("/v1/providers/fal", &open).await;
        assert_eq!((opened.status, &opened.json["state"]), (200, &json!("probing")), "{opened:?}");
        assert_eq!(opened.json["failing_since"], hot["failing_since"], "nothing shows that it is well");
        studio.patch("/v1/providers/fal", &open).await.refused(409, "TG0013", Some("open"));
        let second = studio.create(&generation("anna", "a dog")).await;
        studio.wait_until_ended(&second).await;
        let hotter = studio.provider("fal").await;
        assert_eq!(
            (&hotter["state"], &hotter["breaker"]["failures"]),
            (&json!("cooling_down"), &json!(2)),
            "{hotter}"
        );
        assert_eq!(hotter["failing_since"], hot["failing_since"]);
        assert_eq!(hotter["last_error"]["generation"], json!(second));
        let limit = studio.get("/v1/limits/provider:fal/health").await.json;
        assert_eq!(limit["failing_since"], hot["failing_since"]);
        assert_eq!(limit["last_fault"]["operation"], json!(second), "{limit}");
        let (status, html) = studio.page("/actions/open-provider?subject=fal").await;
        assert!(status == 200 && html.contains("failing for") && html.contains("name=\"token\""), "{html}");
        let (status, html) = studio.page("/actions/open-provider?subject=replicate").await;
        assert!(status == 200 && html.contains("not possible in its present state"), "{html}");
        assert_eq!(studio.page("/actions/open-provider?subject=nowhere").await.0, 404);
    })
    .await;
}
