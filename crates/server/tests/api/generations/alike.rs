//! Generations that wait for the same on the overview, and those that come while a gallery is open.

use reqwest::Method;
use serde_json::json;
use tidegate_sim::Provider;

use super::studio::{Studio, StudioPlan, generation, slow};
use crate::support::within;

async fn page(studio: &Studio, path: &str) -> String {
    studio.request(Method::GET, path).send().await.unwrap().text().await.unwrap()
}

/// One provider with one slot, so that all but one wait.
async fn busy_studio() -> (Studio, Vec<String>) {
    let chain = vec![Provider::Replicate];
    let studio = Studio::start(StudioPlan { chain, slots: 1, sim: slow, ..StudioPlan::default() }).await;
    let first = studio.create(&generation("anna", "a cat")).await;
    studio.wait_for_status(&first, "processing").await;
    let mut ids = vec![first];
    for n in 0..30 {
        ids.push(studio.create(&generation(&format!("user-{n}"), "a dog")).await);
    }
    (studio, ids)
}

/// OPS-24: generations that wait for the same are one row, and push no other group out; limits and
/// providers count the same that wait.
#[tokio::test]
async fn ops_24_generations_that_wait_for_the_same_are_one_row() {
    within(async {
        let (studio, ids) = busy_studio().await;
        let pause = json!({ "create": true });
        studio.post("/v1/groups/generation:x/pause", &pause).await;
        let groups = studio.get("/v1/summary").await.json["groups"].as_array().unwrap().clone();
        let waiting = groups.iter().find(|group| group["alike"]["groups"].as_u64() >= Some(25));
        let waiting = waiting.unwrap_or_else(|| panic!("{groups:#?}"));
        assert!(groups.len() <= 3, "{groups:#?}");
        assert_eq!(waiting["alike"]["operations"], waiting["alike"]["groups"]);
        let html = page(&studio, "/").await;
        assert!(
            html.contains("href=\"/generations?status=queued\"") && html.contains("id=\"alike-"),
            "{html}"
        );
        assert!(!html.contains(&format!("id=\"group-generation%3A{}", ids[9])), "{html}");
        let (provider, limits) =
            (studio.provider("replicate").await, studio.get("/v1/limits").await.json["limits"].clone());
        let counted = limits.as_array().unwrap().iter().map(|limit| limit["waiting"].as_u64().unwrap());
        assert!(provider["waiting"].as_u64() >= Some(25), "{provider}");
        assert_eq!(counted.max(), provider["waiting"].as_u64(), "{limits}");
    })
    .await;
}

/// An open gallery shows the generations that it was opened with, and counts those that came since.
#[tokio::test]
async fn an_open_gallery_counts_what_came_since() {
    within(async {
        let (studio, ids) = busy_studio().await;
        let opened = page(&studio, "/generations").await;
        assert!(opened.contains(&format!("data-through=\"{}\"", ids[30])), "{opened}");
        let html = page(&studio, &format!("/generations?through={}", ids[27])).await;
        for (id, is_shown) in [(&ids[3], false), (&ids[4], true), (&ids[27], true), (&ids[28], false)] {
            assert_eq!(html.contains(&format!("<li id=\"{id}\"")), is_shown, "{id}: {html}");
        }
        assert!(html.contains(&format!("data-through=\"{}\"", ids[27])), "{html}");
        assert!(html.contains("data-newer=\"3\"") && html.contains("{} new, show"), "{html}");
        let wrong = studio.request(Method::GET, "/generations?through=x").header("accept", "text/html");
        assert!(wrong.send().await.unwrap().status().is_client_error());
    })
    .await;
}
