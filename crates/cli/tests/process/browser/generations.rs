//! Generations as people see them: in English, in Russian, and without scripts, at the same time.

use tidegate_fixture::chromium::ChromeDriver;
use tokio::time::timeout;

use super::session::{Browser, DESKTOP, PHONE};
use super::studio::Studio;
use crate::ALONE;

/// Longer than all of it may take.
const LIMIT: std::time::Duration = std::time::Duration::from_secs(60);

/// Writes down each state that the list shows for the generation `arguments[0]`, and what moves
/// once all cards are there, and marks the document, so that a reload would be noticed.
const RECORD: &str = r#"
    const id = arguments[0];
    const list = document.getElementById("generations");
    window.statesSeen = [];
    // Cards that come push others away; a frame after the last one, nothing moves any more.
    window.shifts = [];
    let allFrom = Infinity;
    const look = () => {
        // Those that come while the list is open wait to be asked for.
        document.querySelector(".newcomers:not([hidden]) a")?.click();
        if (allFrom === Infinity && list.querySelectorAll("li").length === 3) allFrom = performance.now() + 100;
        const shown = document.getElementById(id)?.querySelector(".state")?.lastChild.textContent.trim();
        if (shown && shown !== window.statesSeen.at(-1)) window.statesSeen.push(shown);
    };
    const describe = ({ node }) => (node?.outerHTML ?? "").slice(0, 120);
    const keep = (entry) => {
        if (entry.startTime > allFrom) window.shifts.push([entry.value, entry.sources.map(describe)[0] ?? ""]);
    };
    new PerformanceObserver((entries) => entries.getEntries().forEach(keep)).observe({ type: "layout-shift" });
    new MutationObserver(look).observe(list, { subtree: true, childList: true, characterData: true });
    look();
"#;
/// The most that all shifts may add up to: times that grow by a digit, and nothing that is seen.
const SHIFT_MAX: f64 = 0.001;
/// The picture of a generation has arrived and is decoded.
const HAS_PICTURE: &str = "[...(document.getElementById(arguments[0])?.querySelectorAll('img') ?? [])].some(img => img.naturalWidth > 0)";
/// A generation is shown in a state, or with a reason.
const SAYS: &str = "document.getElementById(arguments[0])?.textContent.includes(arguments[1])";
/// A text is on the page.
const HAS_TEXT: &str = "document.getElementById('main')?.textContent.includes(arguments[0])";

/// Three generations: one that ends first, one that its provider refuses, one that waits for both.
struct WatchedGenerations {
    first: String,
    refused: String,
    waiting: String,
}

/// What a person with scripts sees of it, live: the states of the one that waits, its picture, and
/// the reason of the refused one; then every page about them, on a phone too.
async fn watch(
    studio: &Studio,
    browser: &Browser,
    watched: &WatchedGenerations,
    [lang, words @ ..]: [&str; 5],
) {
    let [in_queue, generating, done, failed] = words;
    browser.wait_until("document.documentElement.lang === arguments[0]", &[lang]).await;
    browser.wait_until(HAS_PICTURE, &[&watched.waiting]).await;
    browser.wait_until(HAS_PICTURE, &[&watched.first]).await;
    browser.wait_until(SAYS, &[&watched.waiting, done]).await;
    let seen = browser.run("return window.statesSeen;", &[]).await;
    assert_eq!(seen, serde_json::json!([in_queue, generating, done]), "without a reload, in order");
    let shifts = browser.run("return window.shifts;", &[]).await;
    let moved: f64 = shifts.as_array().unwrap().iter().filter_map(|shift| shift[0].as_f64()).sum();
    assert!(moved < SHIFT_MAX, "a picture that comes moves nothing; this shifts by {moved}: {shifts:#}");
    browser.wait_until(SAYS, &[&watched.refused, failed]).await;
    let reason = studio.error_of(&watched.refused).await;
    browser.wait_until(SAYS, &[&watched.refused, &reason]).await;
    for path in [
        "/generations".to_owned(),
        format!("/generations/{}", watched.waiting),
        format!("/generations/{}", watched.refused),
        "/providers".to_owned(),
        "/ledger".to_owned(),
    ] {
        for width in [DESKTOP, PHONE] {
            browser.resize(width).await;
            browser.open(&studio.page(&path)).await;
            let overflow = browser.overflow(width).await;
            assert!(overflow <= 0, "{path} is {overflow} px too wide for {width} px");
        }
        if path.ends_with(&watched.refused) {
            browser.wait_until(HAS_TEXT, &[&reason]).await;
        }
    }
    assert_eq!(browser.console_errors().await, [""; 0]);
}

/// The same without scripts: the page reloads itself until it shows the picture.
async fn watch_without_scripts(
    browser: &Browser,
    watched: &WatchedGenerations,
    loaded_at: &serde_json::Value,
) {
    browser.wait_until(HAS_PICTURE, &[&watched.waiting]).await;
    assert_ne!(browser.run("return performance.timeOrigin;", &[]).await, *loaded_at, "it reloads");
    let is_static = "return document.getElementById('hold').hidden && window.statesSeen === undefined;";
    assert_eq!(browser.run(is_static, &[]).await, true, "no script has run");
    assert_eq!(browser.console_errors().await, [""; 0]);
}

/// DSP-16: a generation that is created over HTTP moves from "in queue…" over "generating…" to its
/// picture before the eyes of people who look at the list, in English and in Russian, without a
/// reload; a failed one says why; without scripts the page reloads itself; nothing is wider than a
/// phone, and the console has no errors.
#[tokio::test(flavor = "multi_thread")]
async fn dsp_16_chromium_shows_a_generation_from_the_queue_to_its_picture() {
    let _alone = ALONE.lock().await;
    let told = async {
        let driver = ChromeDriver::start();
        let (studio, english, russian, plain) = tokio::join!(
            Studio::start(),
            Browser::start(&driver, "english", "en-GB,en"),
            Browser::start(&driver, "russian", "ru-RU,ru,en"),
            Browser::start(&driver, "plain", "en"),
        );
        let list = studio.page("/generations");
        plain.forbid_scripts().await;
        tokio::join!(english.open(&list), russian.open(&list));
        let watched = WatchedGenerations {
            first: studio.create("a lighthouse at dusk").await,
            refused: studio.create("[nsfw] what a filter refuses").await,
            waiting: studio.create("a paper boat in a canal").await,
        };
        let waiting = watched.waiting.as_str();
        let recorded = [waiting];
        tokio::join!(english.run(RECORD, &recorded), russian.run(RECORD, &recorded), plain.open(&list));
        let loaded_at = plain.run("return performance.timeOrigin;", &[]).await;
        plain.wait_until(SAYS, &[waiting, "in queue…"]).await;
        tokio::join!(
            watch(&studio, &english, &watched, ["en", "in queue…", "generating…", "done", "failed"]),
            watch(&studio, &russian, &watched, ["ru", "в очереди…", "генерируется…", "готово", "ошибка"]),
            watch_without_scripts(&plain, &watched, &loaded_at),
        );
    };
    timeout(LIMIT, told).await.expect("all of it is seen in time");
}
