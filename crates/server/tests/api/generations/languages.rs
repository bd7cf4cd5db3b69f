//! The pages: a spinner, a picture, a reason, in the language of the browser, without a script.

use reqwest::Method;
use serde_json::json;
use tidegate_sim::Provider;

use super::studio::{Studio, StudioPlan, generation, slow};
use crate::support::within;

async fn page(studio: &Studio, path: &str, language: &str) -> String {
    let request = studio.request(Method::GET, path).header("accept-language", language);
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 200, "{path}");
    assert!(response.headers()["content-type"].to_str().unwrap().starts_with("text/html"));
    let html = response.text().await.unwrap();
    for inline in [" style=", " onclick=", " onload=", "javascript:", "<style"] {
        assert!(!html.contains(inline), "{path} holds {inline}");
    }
    html
}

const LANGUAGES: [(&str, [&str; 6]); 2] = [
    (
        "en-GB,en;q=0.9,ru;q=0.5",
        ["lang=\"en\"", "in queue…", "generating…", "done", "failed", "Position in the queue"],
    ),
    (
        "ru-RU,ru;q=0.9,en;q=0.5",
        ["lang=\"ru\"", "в очереди…", "генерируется…", "готово", "ошибка", "Место в очереди"],
    ),
];

/// DSP-16: the page shows a spinner with "in queue…" and "generating…", the picture when done and
/// the reason when failed, in English, and in Russian where the browser prefers it.
#[tokio::test]
async fn dsp_16_the_page_shows_progress_in_both_languages() {
    within(async {
        let plan =
            StudioPlan { chain: vec![Provider::Replicate], slots: 1, sim: slow, ..StudioPlan::default() };
        let studio = Studio::start(plan).await;
        let running = studio.create(&generation("<b>anna</b>", "<script>alert(1)</script>")).await;
        studio.wait_for_status(&running, "processing").await;
        let waiting = studio.create(&generation("boris", "[nsfw] a dog")).await;
        for (language, [lang, in_queue, generating, _, _, position]) in LANGUAGES {
            let list = page(&studio, "/generations", language).await;
            assert!(list.contains(lang) && list.contains(in_queue) && list.contains(generating), "{list}");
            assert!(list.contains("class=\"spinner\"") && !list.contains("<b>anna"), "{list}");
            assert!(list.contains("http-equiv=\"refresh\""), "it works without a script");
            let one = page(&studio, &format!("/generations/{waiting}"), language).await;
            assert!(one.contains(in_queue) && one.contains(position) && one.contains("replicate"), "{one}");
            let one = page(&studio, &format!("/generations/{running}"), language).await;
            assert!(one.contains(generating) && one.contains("&lt;script&gt;"), "{one}");
            assert!(!one.contains("<script>alert"), "{one}");
        }
        studio.wait_until_ended(&running).await;
        let failed = studio.wait_until_ended(&waiting).await;
        assert_eq!(failed["status"], "failed", "{failed}");
        for (language, [_, _, _, done, went_wrong, _]) in LANGUAGES {
            let list = page(&studio, "/generations", language).await;
            let picture = format!("<img src=\"/api/generations/{running}/result/0\"");
            assert!(list.contains(&picture) && list.contains(done) && list.contains(went_wrong), "{list}");
            assert!(!list.contains("class=\"spinner\""), "{list}");
            let one = page(&studio, &format!("/generations/{waiting}"), language).await;
            let reason = failed["error"].as_str().unwrap().split(['&', '<', '"', '\'']).next().unwrap();
            assert!(one.contains(reason), "{reason:?} in {one}");
        }
        let mine = page(&studio, "/generations?user_id=boris", "en").await;
        assert!(mine.contains(&waiting) && !mine.contains(&running), "{mine}");
    })
    .await;
}

/// DSP-16: the pages of providers and of the ledger are in both languages too, and are in the
/// navigation.
#[tokio::test]
async fn dsp_16_providers_and_the_ledger_have_pages() {
    within(async {
        let studio = Studio::start(StudioPlan::default()).await;
        let id = studio.create(&generation("anna", "a cat")).await;
        studio.wait_until_ended(&id).await;
        for (language, words) in [
            ("en", ["Providers", "Ledger", "free", "Errors in a row", "Cost"]),
            ("ru", ["Провайдеры", "Журнал попыток", "свободен", "Ошибок подряд", "Стоимость"]),
        ] {
            let providers = page(&studio, "/providers", language).await;
            let ledger = page(&studio, "/ledger", language).await;
            for word in words {
                assert!(providers.contains(word) || ledger.contains(word), "{word}");
            }
            assert!(providers.contains("higgsfield") && ledger.contains(&format!("/generations/{id}")));
            for link in ["/generations", "/providers", "/ledger"] {
                assert!(ledger.contains(&format!("href=\"{link}\"")), "{link}");
            }
        }
        let doubtful = page(&studio, "/ledger?may_be_double=true", "en").await;
        assert!(doubtful.contains("There are none."), "{doubtful}");
        studio.post(&format!("/api/generations/{id}/cancel"), &json!({})).await.refused(409, "TG0013", None);
    })
    .await;
}
