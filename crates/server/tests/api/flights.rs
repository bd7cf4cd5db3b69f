//! The open flights over HTTP.

use serde_json::json;

use crate::support::{World, within};

/// HYD-15: flights are listed page after page, with how many wait, and shown on a page.
#[tokio::test]
async fn hyd_15_flights_are_paged_with_who_waits() {
    within(async {
        let world = World::new().await;
        for number in 0..5 {
            for _ in 0..12 {
                let path = format!("/v1/entities/customer/c-{number}?wait_ms=0&on_miss=defer");
                assert_eq!(world.get(&path).await.status, 202);
            }
        }
        let (mut seen, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = world.get(&format!("/v1/flights?limit=2&cursor={cursor}")).await.json;
            for flight in page["flights"].as_array().unwrap() {
                assert_eq!((&flight["waiting"], &flight["deferred"]), (&json!(0), &json!(12)), "{flight}");
                assert_eq!(flight["waiters"].as_array().unwrap().len(), 10, "the first of them: {flight}");
                assert_eq!(
                    (&flight["unanswered"], &flight["reason"]),
                    (&json!(true), &json!("source-absent"))
                );
                assert!(flight["questions"].as_u64() >= Some(1) && flight["until"].is_string(), "{flight}");
                seen.push(flight["entity_id"].as_str().unwrap().to_owned());
            }
            match page["next_cursor"].as_str() {
                Some(next) => next.clone_into(&mut cursor),
                None => break,
            }
        }
        assert_eq!(seen, ["c-0", "c-1", "c-2", "c-3", "c-4"]);
        world.get("/v1/flights?cursor=made-up").await.refused(400, "TG0014", Some("cursor"));
        let page = world.client.get(world.url("/flights")).send().await.unwrap().text().await.unwrap();
        assert!(page.contains("c-4") && page.contains("No source is registered"), "{page}");
    })
    .await;
}
