//! Names that people read: none of them holds what changes how a page is shown.

use serde_json::json;

use crate::support::{World, operation, within};

/// A name that shows the rest of its line from right to left, and one that ends its line.
const BAD: [&str; 2] = ["shop\u{202e}1", "shop\n1"];

/// OPS-24: groups, keys, deployments and buckets are named by one rule.
#[tokio::test]
async fn ops_24_a_name_changes_nothing_around_it() {
    within(async {
        let world = World::new().await;
        for bad in BAD {
            for field in ["group", "dedupe_key", "deployment_id"] {
                let mut submission = operation("g");
                submission[field] = bad.into();
                world.post("/v1/operations", submission).await.refused(400, "TG0002", Some(field));
            }
            let name = bad.replace('\u{202e}', "%E2%80%AE").replace('\n', "%0A");
            let bucket = json!({ "cost": 1, "capacity": 4, "refill_per_s": 1 });
            let reserved = world.post(&format!("/v1/buckets/{name}/reserve"), bucket).await;
            reserved.refused(400, "TG0002", Some("name"));
        }
        assert_eq!(world.count().await, 0);
    })
    .await;
}
