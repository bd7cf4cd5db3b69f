//! The page: complete without a script, nothing inline, nothing from other origins, everything
//! escaped.

use reqwest::Method;
use serde_json::json;

use crate::support::{World, operation, within};

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
                      base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

async fn page(world: &World, path: &str) -> (u16, String) {
    let response = world.request(Method::GET, path).send().await.unwrap();
    assert_eq!(response.headers()["content-security-policy"], POLICY, "{path}");
    assert_eq!(response.headers()["x-content-type-options"], "nosniff");
    (response.status().as_u16(), response.text().await.unwrap())
}

/// OPS-24: the page shows what each group waits for, and text from clients is escaped.
#[tokio::test]
async fn ops_24_the_page_says_what_groups_wait_for() {
    within(async {
        let world = World::new().await;
        let evil = "<img src=x onerror=alert(1)>\"'";
        let encoded = "%3Cimg%20src%3Dx%20onerror%3Dalert%281%29%3E%22%27";
        let body = json!({ "by": "<b>anna</b>", "reason": "</td><script>alert(2)</script>", "create": true });
        world.post(&format!("/v1/groups/{encoded}/pause"), body).await;
        let id = world.submit(operation(evil)).await;
        let paths = [
            "/".to_owned(),
            "/page/live".to_owned(),
            format!("/groups/{encoded}"),
            format!("/operations/{id}"),
        ];
        for path in paths {
            let (status, html) = page(&world, &path).await;
            assert_eq!(status, 200, "{path}");
            assert!(html.contains("&lt;b&gt;anna&lt;/b&gt;"), "{path}: {html}");
            assert!(
                !html.contains("<img") && !html.contains("<b>anna") && !html.contains("<script>"),
                "{path}: {html}"
            );
            for inline in [" style=", " onclick=", " onload=", "javascript:", "<style"] {
                assert!(!html.contains(inline), "{path} holds {inline}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn the_assets_are_small_and_kept() {
    within(async {
        let world = World::new().await;
        let (_, html) = page(&world, "/").await;
        for (kind, most) in [("css", 17_500), ("js", 12_000)] {
            let start = html.find(&format!("/assets/page.{kind}?")).unwrap();
            let path = html[start..].split('"').next().unwrap();
            let response = world.request(Method::GET, path).send().await.unwrap();
            assert_eq!(response.status(), 200);
            assert!(response.headers()["cache-control"].to_str().unwrap().contains("immutable"));
            assert!(response.text().await.unwrap().len() <= most);
        }
        let (status, html) = page(&world, "/operations/op_00000000000000000000000001").await;
        assert_eq!(status, 404);
        assert!(html.contains("TG0010") && html.contains("</html>"), "{html}");
    })
    .await;
}

/// An open page is notified of changes at most once a second.
#[tokio::test]
async fn an_open_page_is_told_of_changes_at_most_once_a_second() {
    within(async {
        let world = World::new().await;
        let started = tokio::time::Instant::now();
        let mut ticks = world.request(Method::GET, "/page/ticks").send().await.unwrap();
        let mut text = String::new();
        while text.matches("event: tick").count() < 2 {
            tokio::select! {
                _ = world.submit(operation("g")) => {}
                piece = ticks.chunk() => text.push_str(std::str::from_utf8(&piece.unwrap().unwrap()).unwrap()),
            }
        }
        // Without a change, a tick comes every five seconds.
        assert!(started.elapsed() < std::time::Duration::from_secs(9), "{:?}", started.elapsed());
        assert!(started.elapsed() >= std::time::Duration::from_millis(2_000), "{:?}", started.elapsed());
    })
    .await;
}
