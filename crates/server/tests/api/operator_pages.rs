//! The pages for operators: filters, search, the overview, and pages of what is not there.

use reqwest::redirect::Policy;
use reqwest::{Client, Method};
use serde_json::json;
use tidegate_sim::HttpSimOptions;

use crate::support::{World, operation, with, within};

async fn page(world: &World, path: &str) -> (u16, String) {
    let request = world.request(Method::GET, path).header("accept", "text/html,*/*;q=0.8");
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}

/// Operations are found by state, group, key and the text of their error, and every list is a link.
#[tokio::test]
async fn operations_are_found() {
    within(async {
        let world = World::with("", HttpSimOptions { fail_rate: 1.0, ..HttpSimOptions::default() }).await;
        let mut failing = operation("shop:1");
        (failing["max_attempts"], failing["dedupe_key"]) = (1.into(), "order-7".into());
        let failed = world.submit(failing).await;
        world.wait_until_ended(&failed).await;
        world.post("/v1/groups/shop%3A2/pause", json!({ "create": true })).await;
        let waiting = world.submit(operation("shop:2")).await;
        for (query, has_failed, has_waiting) in [
            ("", true, true),
            ("?state=&group=&error=", true, true),
            ("?state=failed", true, false),
            ("?group=shop%3A2", false, true),
            ("?upstream=echo&kind=http", true, true),
            ("?upstream=none", false, false),
            ("?dedupe_key=order-7", true, false),
            ("?error=500", true, false),
            ("?error=no+such+text", false, false),
        ] {
            let (status, html) = page(&world, &format!("/operations{query}")).await;
            assert_eq!(status, 200, "{query}: {html}");
            assert_eq!(
                (html.contains(&failed), html.contains(&waiting)),
                (has_failed, has_waiting),
                "{query}: {html}"
            );
        }
        let (_, html) = page(&world, "/operations?state=failed&group=shop%3A1").await;
        let rerun_all = "/actions/rerun-all?subject=state%3Dfailed%26group%3Dshop%253A1";
        assert!(html.contains(rerun_all), "{html}");
        for wrong in ["?state=lost", "?sate=failed", "?cursor=x"] {
            let (status, html) = page(&world, &format!("/operations{wrong}")).await;
            assert!(status == 400 && html.contains("</html>"), "{wrong}: {status} {html}");
        }
        let client = Client::builder().redirect(Policy::none()).build().unwrap();
        for (wanted, target) in [
            (failed.as_str(), format!("/operations/{failed}")),
            ("shop%3A1", "/groups/shop%3A1".to_owned()),
            ("order-7", format!("/operations/{failed}")),
            ("shop", "/groups?prefix=shop".to_owned()),
            (&failed[failed.len() - 6..], format!("/operations/{failed}")),
            ("state%3Afailed", "/operations?state=failed".to_owned()),
            ("Bad+Gateway", "/operations?error=Bad%20Gateway".to_owned()),
            ("", "/operations".to_owned()),
        ] {
            let response = client.get(world.url(&format!("/search?q={wanted}"))).send().await.unwrap();
            assert_eq!(
                (response.status().as_u16(), response.headers()["location"].to_str().unwrap()),
                (303, &*target)
            );
        }
        let (_, html) = page(&world, "/groups?prefix=shop").await;
        assert!(html.contains("shop:2") && html.contains("Names that begin with"), "{html}");
        let (_, html) = page(&world, "/groups?prefix=x").await;
        assert!(html.contains("No group whose name begins like this") && !html.contains("shop:2"), "{html}");
        let (_, html) = page(&world, "/groups?state=held").await;
        assert!(html.contains("No group is in this state."), "{html}");
        let (_, html) = page(&world, &format!("/operations/{failed}")).await;
        assert!(html.contains(&format!("tidegate op rerun {failed} --server http://127.0.0.1:")), "{html}");
    })
    .await;
}

/// The search finds what pages show, whatever the case and however much came since: the end of an
/// id, a limit, and what an operation was submitted with.
#[tokio::test]
async fn what_pages_show_is_found() {
    within(async {
        let limits = "[[upstream.limit]]\nname = \"Points\"\ncapacity = 5000\nrefill_per_s = 5000\n";
        let limits = limits.replace("Points", "points");
        let world = World::with(&limits, HttpSimOptions::default()).await;
        let mut known = operation("Shop:Acme");
        (known["dedupe_key"], known["deployment_id"]) = ("Order-7".into(), "D-9".into());
        let request = world.request(Method::POST, "/v1/operations").header("x-request-id", "Req-1");
        let submitted = request.body(known.to_string()).send().await.unwrap();
        let submitted: serde_json::Value = serde_json::from_str(&submitted.text().await.unwrap()).unwrap();
        let id = submitted["id"].as_str().unwrap().to_owned();
        let client = Client::builder().redirect(Policy::none()).build().unwrap();
        let find = async |wanted: &str| {
            let response = client.get(world.url(&format!("/search?q={wanted}"))).send().await.unwrap();
            response.headers()["location"].to_str().unwrap().to_owned()
        };
        let (page, short) = (format!("/operations/{id}"), id[id.len() - 8..].to_owned());
        for (wanted, target) in [
            (&*id.to_uppercase(), &*page),
            (&format!("op_%E2%80%A6{short}"), &page),
            (&short.to_uppercase(), &page),
            ("req-1", &page),
            ("d-9", &page),
            ("order-7", &page),
            ("shop%3Aacme", "/groups/Shop%3AAcme"),
            ("SHOP", "/groups?prefix=Shop"),
            ("ECHO%2FPoints", "/limits?name=ECHO%2FPoints"),
            ("oint", "/limits?name=oint"),
            ("no+such+text", "/operations?error=no%20such%20text"),
        ] {
            assert_eq!(find(wanted).await, target, "{wanted}");
        }
        let batch = json!({ "operations": vec![operation("many"); 1_000] });
        assert_eq!(world.post("/v1/operations/batch", batch).await.status, 202);
        world.submit(operation("many")).await;
        assert_eq!(find(&short).await, page, "a thousand came since");
        let (_, html) = self::page(&world, "/limits?name=POINTS").await;
        assert!(html.contains("echo/points") && html.contains("Names that contain"), "{html}");
        let (_, html) = self::page(&world, "/limits?name=none").await;
        assert!(!html.contains("echo/points"), "{html}");
        let (_, html) = self::page(&world, &format!("/operations?id_end={short}")).await;
        assert!(html.contains(&id) && html.contains("End of the id"), "{html}");
        world.get("/v1/operations?id_end=wng").await.refused(400, "TG0001", Some("id_end"));
    })
    .await;
}

/// An operation shows its way; a group without operations has a page, and so has an address that
/// is not there.
#[tokio::test]
async fn what_is_idle_or_not_there_has_a_page() {
    within(async {
        let world = World::new().await;
        let id = world.submit(with("group", "g")).await;
        world.wait_until_ended(&id).await;
        let (status, html) = page(&world, &format!("/operations/{id}")).await;
        assert!(status == 200 && html.contains("class=\"journey\"") && html.contains("POST /x"), "{html}");
        assert_eq!(html.matches("class=\"past\"").count(), 5, "{html}");
        assert!(
            html.contains("<span class=\"quiet\">0 ms</span>") && !html.contains("not recorded"),
            "{html}"
        );
        let (status, html) = page(&world, "/groups/g").await;
        assert!(status == 200 && html.contains("idle") && html.contains(&id), "{html}");
        let (status, html) = page(&world, "/groups/never-seen").await;
        assert!(
            status == 200 && html.contains("check the spelling") && !html.contains("/actions/pause"),
            "{html}"
        );
        let (status, html) = page(&world, "/no/such/page").await;
        assert!(
            status == 404 && html.contains("There is nothing at /no/such/page") && html.contains("</html>"),
            "{html}"
        );
        world.get("/no/such/page").await.refused(404, "TG0021", None);
        let icon = world.request(Method::GET, "/favicon.ico").send().await.unwrap();
        assert_eq!(
            (icon.status().as_u16(), icon.headers()["content-type"].to_str().unwrap()),
            (200, "image/svg+xml")
        );
    })
    .await;
}

/// An address that is shortened, or guessed from what a page says, is that of a view.
#[tokio::test]
async fn shortened_addresses_have_a_view() {
    within(async {
        let world = World::new().await;
        let client = Client::builder().redirect(Policy::none()).build().unwrap();
        for (path, target) in [("/awaiting", "/workers"), ("/actions", "/audit")] {
            let response = client.get(world.url(path)).send().await.unwrap();
            assert_eq!(
                (response.status().as_u16(), response.headers()["location"].to_str().unwrap()),
                (303, target)
            );
        }
        for (path, shown) in [
            ("/deployments", "There are none."),
            ("/nodes", "<th scope=\"row\">"),
            ("/docs/errors", "href=\"/docs/errors/TG0001\""),
            ("/awaiting", "<h1>Workers</h1>"),
            ("/actions", "The commands of operators"),
        ] {
            let (status, html) = page(&world, path).await;
            assert!(status == 200 && html.contains(shown), "{path}: {status} {html}");
        }
        let (status, html) = page(&world, "/deployments?cursor=x").await;
        assert!(status == 400 && html.contains("</html>"), "{status} {html}");
    })
    .await;
}

/// OPS-24: one decision is one card: that of the call whose outcome is unknown, and not of its
/// group too; that of the group which is held after a failure, and not of the failure too.
#[tokio::test]
async fn ops_24_one_decision_is_one_card() {
    within(async {
        let cut = World::with("", HttpSimOptions { cut_rate: 1.0, ..HttpSimOptions::default() }).await;
        let id = cut.submit(operation("g")).await;
        cut.submit(operation("g")).await;
        while cut.get(&format!("/v1/operations/{id}")).await.json["state"] != "unknown" {
            tokio::task::yield_now().await;
        }
        let (_, html) = page(&cut, "/").await;
        assert!(html.contains("Needs you (1)") && html.matches("<li id=\"need-").count() == 1, "{html}");
        let down = World::with("", HttpSimOptions { fail_rate: 1.0, ..HttpSimOptions::default() }).await;
        let mut holding = with("on_failure", "hold");
        holding["max_attempts"] = 1.into();
        let id = down.submit(holding).await;
        assert_eq!(down.wait_until_ended(&id).await["state"], "failed");
        down.submit(operation("g")).await;
        let (_, html) = page(&down, "/").await;
        assert!(html.contains("Needs you (1)") && html.matches("<li id=\"need-").count() == 1, "{html}");
        assert!(
            html.contains("/actions/resume?subject=g") && html.contains("/actions/rerun-failed?subject=g")
        );
    })
    .await;
}

/// OPS-24: the overview ranks the groups by how much waits for how long, draws the last hour, and
/// is in the language of the reader.
#[tokio::test]
async fn ops_24_the_overview_ranks_what_waits() {
    within(async {
        let world = World::new().await;
        let id = world.submit(operation("quick")).await;
        world.wait_until_ended(&id).await;
        world.post("/v1/groups/deep/pause", json!({ "reason": "x", "create": true })).await;
        world.post("/v1/groups/flat/pause", json!({ "reason": "x", "create": true })).await;
        world.submit(operation("flat")).await;
        for _ in 0..50 {
            world.submit(operation("deep")).await;
        }
        let summary = world.get("/v1/summary").await.json;
        assert_eq!(json!([summary["counts"]["succeeded"], summary["counts"]["stopped"]]), json!([1, 2]));
        assert_eq!(summary["groups"][0]["group"], "deep", "{summary}");
        assert_eq!(summary["groups"][0]["depth"], 50, "{summary}");
        let succeeded = |minute: &serde_json::Value| minute["succeeded"].as_u64().unwrap();
        let sum: u64 = summary["minutes"].as_array().unwrap().iter().map(succeeded).sum();
        assert!(sum <= 1, "{summary}");
        let (status, html) = page(&world, "/").await;
        assert_eq!((status, html.matches("class=\"chart ").count()), (200, 4), "{html}");
        assert!(html.contains("Needs you (2)") && html.contains("/actions/resume?subject=deep"), "{html}");
        assert!(html.len() < 120 * 1024, "{}", html.len());
        let russian = world.request(Method::GET, "/").header("accept-language", "ru").send().await.unwrap();
        let html = russian.text().await.unwrap();
        assert!(html.contains("<html lang=\"ru\">") && html.contains("Возобновить"), "{html}");
    })
    .await;
}
