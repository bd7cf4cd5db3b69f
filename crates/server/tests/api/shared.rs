//! Buckets and leases for any process, over HTTP.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{World, answer, within};

/// A path below a limit or a bucket that takes other methods says which.
#[tokio::test]
async fn another_method_is_refused_with_those_there_are() {
    within(async {
        let world = World::new().await;
        for (path, allowed) in [("/v1/limits/lim/requests", "PUT"), ("/v1/buckets/mail", "DELETE")] {
            let refused = world.request(Method::POST, path).send().await.unwrap();
            assert_eq!(refused.status(), 405, "{path}");
            let allow = refused.headers()["allow"].to_str().unwrap();
            assert!(allow.contains("GET") && allow.contains(allowed), "{path}: {allow}");
        }
    })
    .await;
}

/// LIM-5: reserve or learn when to retry, in one step; the figures come with the request, or are
/// those of the last one.
#[tokio::test]
async fn lim_5_a_bucket_is_taken_from_or_says_when() {
    within(async {
        let world = World::new().await;
        let reserve = "/v1/limits/mail/out/reserve";
        world.post(reserve, "").await.refused(404, "TG0012", Some("capacity"));
        let first =
            world.post(reserve, &json!({ "cost": 3, "capacity": 4, "refill_per_s": 0.5 }).to_string()).await;
        assert_eq!(first.status, 200, "{first:?}");
        assert_eq!(first.json, json!({ "allowed": true, "delay_ms": 0, "tokens_remaining": 1.0 }));
        let second = world.post(reserve, r#"{"cost":2}"#).await.json;
        assert_eq!(second["allowed"], false);
        let delay = second["delay_ms"].as_u64().unwrap();
        assert!((1_000..=2_000).contains(&delay), "a token comes back in two seconds: {second}");
        assert_eq!(world.post(reserve, "").await.json["allowed"], true, "one was left");
        world.post(reserve, r#"{"cost":5}"#).await.refused(422, "TG0006", Some("cost"));
    })
    .await;
}

/// LIM-7: several buckets in one step, all or nothing; the delay is the longest of them.
#[tokio::test]
async fn lim_7_several_buckets_are_taken_together_or_not_at_all() {
    within(async {
        let world = World::new().await;
        let both = json!({
            "cost": 1, "capacity": 10, "refill_per_s": 1,
            "with": [{ "name": "global", "cost": 2, "capacity": 3, "refill_per_s": 0.1 }],
        });
        let first = world.post("/v1/limits/route/reserve", &both.to_string()).await.json;
        assert_eq!((&first["allowed"], &first["with"]), (&json!(true), &json!([1.0])), "{first}");
        let second = world.post("/v1/limits/route/reserve", &both.to_string()).await.json;
        assert_eq!(second["allowed"], false, "{second}");
        assert!(second["delay_ms"].as_u64().unwrap() > 8_000, "{second}");
        let alone = world.post("/v1/limits/route/reserve", r#"{"cost":9}"#).await.json;
        assert_eq!(alone["allowed"], true, "a refusal took nothing: {alone}");
    })
    .await;
}

#[tokio::test]
async fn a_bad_reservation_is_refused_by_field() {
    within(async {
        let world = World::new().await;
        let table = [
            (json!({ "cost": -1 }), 400, "TG0002", "cost"),
            (json!({ "capacity": 5 }), 400, "TG0001", "refill_per_s"),
            (json!({ "refill_per_s": 5 }), 400, "TG0001", "capacity"),
            (json!({ "capacity": 0, "refill_per_s": 1 }), 400, "TG0002", "capacity"),
            (json!({ "capacity": 1, "refill_per_s": 1, "with": {} }), 400, "TG0001", "with"),
            (
                json!({ "capacity": 1, "refill_per_s": 1, "with": [{ "cost": 1 }] }),
                400,
                "TG0001",
                "with[0].name",
            ),
            (
                json!({ "capacity": 1, "refill_per_s": 1, "with": [{ "name": "a", "cost": -1 }] }),
                400,
                "TG0002",
                "with[0].cost",
            ),
            (json!({ "what": 1 }), 400, "TG0001", "what"),
        ];
        for (body, status, code, field) in table {
            world.post("/v1/limits/b/reserve", &body.to_string()).await.refused(status, code, Some(field));
        }
        let both = json!({ "capacity": 1, "refill_per_s": 1, "with": [{ "name": "new" }] }).to_string();
        world.post("/v1/limits/b/reserve", &both).await.refused(404, "TG0012", Some("with[0].capacity"));
        world.post("/v1/limits/b", "{}").await.refused(405, "TG0021", None);
        let long = format!("/v1/limits/{}/reserve", "n".repeat(256));
        world.post(&long, "{}").await.refused(400, "TG0002", Some("name"));
    })
    .await;
}

/// LIM-15: acquired only if free, renewed and released only by the holder, with a fence that grows.
#[tokio::test]
async fn lim_15_a_lease_has_one_holder() {
    within(async {
        let world = World::new().await;
        let call = async |verb: &str, body: &str| {
            world.post(&format!("/v1/leases/bulk-lock:acme/{verb}"), body).await
        };
        let first = call("acquire", r#"{"ttl_ms":60000}"#).await.json;
        assert_eq!((&first["held"], &first["fence"]), (&json!(true), &json!(1)), "{first}");
        let busy = call("acquire", "").await.json;
        assert_eq!((&busy["held"], &busy["token"]), (&json!(false), &json!(null)));
        assert_eq!(busy["expires_at"], first["expires_at"]);
        let token = json!({ "token": first["token"] }).to_string();
        let renewed = call("renew", &token).await.json;
        assert_eq!((&renewed["held"], &renewed["token"]), (&json!(true), &first["token"]));
        assert_eq!(call("release", r#"{"token":"lease_7"}"#).await.json, json!({ "released": false }));
        assert_eq!(call("release", &token).await.json, json!({ "released": true }));
        let next = call("acquire", "").await.json;
        assert_eq!((&next["held"], &next["fence"]), (&json!(true), &json!(2)));
        assert_eq!(call("renew", &token).await.json["held"], false, "the old holder has lost it");
        call("renew", "{}").await.refused(400, "TG0001", Some("token"));
        call("renew", r#"{"token":"x"}"#).await.refused(400, "TG0002", Some("token"));
        call("acquire", r#"{"ttl_ms":0}"#).await.refused(400, "TG0002", Some("ttl_ms"));
    })
    .await;
}

/// LIM-5: stand-alone buckets are listed, shown, corrected and deleted under their own path; the
/// first path of reservations leads to the same buckets.
#[tokio::test]
async fn lim_5_buckets_are_listed_shown_and_deleted() {
    within(async {
        let world = World::new().await;
        let figures = json!({ "cost": 3, "capacity": 4, "refill_per_s": 0.000_001 });
        for name in ["mail/out", "a", "b"] {
            let reserved = world.post(&format!("/v1/buckets/{name}/reserve"), &figures).await;
            assert_eq!(reserved.json["allowed"], true, "{reserved:?}");
        }
        assert_eq!(world.post("/v1/limits/mail/out/reserve", "").await.json["allowed"], true);
        let settled = world.post("/v1/buckets/mail/out/settle", json!({ "reserved": 3, "actual": 1 })).await;
        assert_eq!((settled.status, settled.json["tokens_remaining"].as_f64().unwrap().round()), (200, 2.0));
        let shown = world.get("/v1/buckets/mail/out").await;
        assert_eq!((shown.text("name"), &shown.json["capacity"]), ("mail/out".into(), &json!(4)));
        let (mut names, mut path) = (Vec::new(), "/v1/buckets?limit=2".to_owned());
        for _ in 0..9 {
            let page = world.get(&path).await;
            let buckets = page.json["buckets"].as_array().unwrap();
            names.extend(buckets.iter().map(|bucket| bucket["name"].as_str().unwrap().to_owned()));
            let Some(cursor) = page.json["next_cursor"].as_str() else { break };
            path = format!("/v1/buckets?limit=2&cursor={cursor}");
        }
        assert_eq!(names, ["a", "b", "mail/out"]);
        let gone = answer(world.request(Method::DELETE, "/v1/buckets/mail/out")).await;
        assert_eq!((gone.status, gone.json), (200, json!({ "name": "mail/out", "deleted": true })));
        answer(world.request(Method::DELETE, "/v1/buckets/mail/out")).await.refused(
            404,
            "TG0012",
            Some("name"),
        );
        world.get("/v1/buckets/mail/out").await.refused(404, "TG0012", Some("name"));
        world.post("/v1/buckets/mail/out/settle", json!({ "reserved": 1, "actual": 1 })).await.refused(
            404,
            "TG0012",
            Some("name"),
        );
        world.post("/v1/buckets/mail/out", "{}").await.refused(405, "TG0021", None);
        world.get("/v1/buckets?cursor=abc").await.refused(400, "TG0014", Some("cursor"));
    })
    .await;
}

/// LIM-8, LIM-23: a settled bucket adopts the figures that an API reported, and its level where
/// that is lower; the first path leads to the same buckets.
#[tokio::test]
async fn lim_8_lim_23_a_bucket_is_taught_what_the_api_reported() {
    within(async {
        let world = World::new().await;
        let figures = json!({ "cost": 10, "capacity": 100, "refill_per_s": 0.000_001 });
        world.post("/v1/buckets/shop/reserve", &figures).await;
        let settle = async |path: &str, body: Value| {
            let settled = world.post(&format!("/v1/{path}/shop/settle"), &body).await;
            assert_eq!(settled.status, 200, "{settled:?}");
            let tokens = settled.json["tokens_remaining"].as_f64().unwrap();
            (tokens.round(), settled.json["capacity"].clone(), settled.json["refill_per_s"].clone())
        };
        let rate = json!(0.000_001);
        let lowered = settle("buckets", json!({ "reserved": 10, "actual": 4, "remaining": 50 })).await;
        assert_eq!(lowered, (50.0, json!(100), rate.clone()));
        let raised = settle("limits", json!({ "reservation": 0, "actual": 0, "remaining": 90 })).await;
        assert_eq!(raised, (50.0, json!(100), rate.clone()), "a report never raises the level");
        let smaller = settle("buckets", json!({ "reserved": 0, "actual": 0, "capacity": 20 })).await;
        assert_eq!(smaller, (20.0, json!(20), rate));
        let faster =
            settle("buckets", json!({ "reserved": 0, "actual": 3, "capacity": 40, "refill_per_s": 0.5 }))
                .await;
        assert_eq!((faster.1, faster.2), (json!(40), json!(0.5)));
        assert!((17.0..=18.0).contains(&faster.0), "{}", faster.0);
        // Whoever reserves without figures of its own uses those.
        world.post("/v1/buckets/shop/reserve", "{}").await;
        assert_eq!(world.get("/v1/buckets/shop").await.json["capacity"], 40);
        let table = [
            (json!({ "actual": 1 }), "TG0001", "reserved"),
            (json!({ "reserved": 1 }), "TG0001", "actual"),
            (json!({ "reserved": 1, "reservation": 1, "actual": 1 }), "TG0001", "reservation"),
            (json!({ "reserved": 1, "actual": 1, "remaining": -1 }), "TG0002", "remaining"),
            (json!({ "reserved": 1, "actual": 1, "capacity": 0 }), "TG0002", "capacity"),
            (json!({ "reserved": 1, "actual": 1, "refill_per_s": 0 }), "TG0002", "refill_per_s"),
        ];
        for (body, code, field) in table {
            world.post("/v1/buckets/shop/settle", &body).await.refused(400, code, Some(field));
        }
    })
    .await;
}

/// LIM-15: operators can list leases, whether they are held and until when.
#[tokio::test]
async fn lim_15_leases_are_listed_and_shown() {
    within(async {
        let world = World::new().await;
        world.get("/v1/leases/a").await.refused(404, "TG0012", Some("name"));
        for name in ["a", "b%2Fc", "d"] {
            world.post(&format!("/v1/leases/{name}/acquire"), r#"{"ttl_ms":60000}"#).await;
        }
        let released = world.post("/v1/leases/d/release", r#"{"token":"lease_1"}"#).await;
        assert_eq!(released.json, json!({ "released": true }));
        let held = world.get("/v1/leases/b%2Fc").await;
        assert_eq!(
            (held.text("name"), &held.json["held"], &held.json["fence"]),
            ("b/c".into(), &json!(true), &json!(1))
        );
        assert!(held.json["expires_at"].is_string(), "{held:?}");
        let free = world.get("/v1/leases/d").await.json;
        assert_eq!(free, json!({ "name": "d", "held": false, "fence": 1, "expires_at": null }));
        let first = world.get("/v1/leases?limit=2").await;
        let rest = world.get(&format!("/v1/leases?limit=2&cursor={}", first.text("next_cursor"))).await;
        let pages = [&first.json["leases"], &rest.json["leases"]].map(|page| page.as_array().unwrap().len());
        assert_eq!((pages, &rest.json["next_cursor"]), ([2, 1], &json!(null)));
    })
    .await;
}
