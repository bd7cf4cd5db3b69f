//! What the page of an operation says after an operator decided about it.

use serde_json::json;
use tidegate_sim::HttpSimOptions;

use super::operator::Operator;
use super::{unknown_operation, within};
use crate::support::World;

fn cut() -> HttpSimOptions {
    HttpSimOptions { cut_rate: 1.0, ..HttpSimOptions::default() }
}

/// OPS-23: an operation that an operator decided about says who decided what, when and why, and not
/// that the upstream answered; a decided failure has no class of a fault.
#[tokio::test]
async fn ops_23_a_decided_operation_says_who_decided() {
    within(async {
        let world = World::with("", cut()).await;
        let operator = Operator::at(&world.server);
        let ids = [
            unknown_operation(&world, "a").await,
            unknown_operation(&world, "b").await,
            unknown_operation(&world, "c").await,
        ];
        operator.act("happened", &ids[0], &[("reason", "seen in the shop")]).await;
        operator.act("did-not-happen", &ids[1], &[]).await;
        let all = json!({ "as": "failed", "group": "c", "reason": "all of c" });
        assert_eq!(world.post("/v1/operations/resolve", all).await.json["changed"], 1);
        for (id, decided, by, reason) in [
            (&ids[0], "It happened", "operator", "seen in the shop"),
            (&ids[1], "It did not happen", "operator", ""),
            (&ids[2], "It did not happen", "local", "all of c"),
        ] {
            let (_, html) = operator.page(&format!("/operations/{id}")).await;
            let sentence = format!("Decided: <b>{decided}</b>, by <b>{by}</b>, <time");
            assert!(html.contains(&sentence) && html.contains(reason), "{html}");
            assert!(html.contains("No answer to its call came.") && html.contains("none came"), "{html}");
            for wrong in ["It has ended", "transient:"] {
                assert!(!html.contains(wrong), "{wrong}: {html}");
            }
        }
        let russian = operator.request(reqwest::Method::GET, &format!("/operations/{}", ids[0]));
        let html = russian.header("accept-language", "ru").send().await.unwrap().text().await.unwrap();
        assert!(html.contains("Решено: <b>Выполнилось</b>, оператор <b>operator</b>"), "{html}");
    })
    .await;
}

/// OPS-23: attempts after a re-run are those of another run, on every part of the page.
#[tokio::test]
async fn ops_23_a_rerun_is_another_run() {
    within(async {
        let world = World::with("", cut()).await;
        let operator = Operator::at(&world.server);
        let id = unknown_operation(&world, "a").await;
        let path = format!("/operations/{id}");
        let (_, html) = operator.page(&path).await;
        assert!(!html.contains("run 1"), "{html}");
        operator.act("did-not-happen", &id, &[]).await;
        operator.act("rerun", &id, &[]).await;
        while world.get(&format!("/v1{path}")).await.json["state"] != "unknown" {
            tokio::task::yield_now().await;
        }
        assert_eq!(world.get(&format!("/v1{path}")).await.json["attempt"], json!(1));
        let (_, html) = operator.page(&path).await;
        for (part, times) in [("run 1, attempt 1", 1), ("run 2, attempt 1", 3)] {
            assert_eq!(html.matches(part).count(), times, "{part}: {html}");
        }
    })
    .await;
}
