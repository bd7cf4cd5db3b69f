//! What needs an operator, on a phone: every card is in a list below the one before it.

use serde_json::{Value, json};
use tidegate_fixture::chromium::ChromeDriver;
use tokio::time::timeout;

use super::exhibit::{Exhibit, wait_for};
use super::session::{Browser, PHONE};
use crate::ALONE;

/// Longer than all of it may take.
const LIMIT: std::time::Duration = std::time::Duration::from_secs(90);
/// The least height of what a thumb hits, in CSS pixels.
const THUMB: f64 = 44.0;

/// The place of each card, what it begins with, and its buttons.
const CARDS: &str = "return [...document.querySelectorAll('.needs > li')].map((card) => {\
    const box = card.getBoundingClientRect();\
    const buttons = [...card.querySelectorAll('a.button')].map((one) => one.getBoundingClientRect());\
    const parts = [...card.querySelectorAll('*')].map((part) => part.getBoundingClientRect().right);\
    return { left: box.left, right: box.right, top: box.top, bottom: box.bottom,\
             first: card.firstElementChild.className, last: card.lastElementChild.className,\
             why: card.firstElementChild.textContent, widest: Math.max(...parts),\
             lowest: Math.min(...buttons.map((one) => one.height)) };\
});";
const HAS_CARD: &str = "document.getElementById(`need-${arguments[0]}`)";
const HIDDEN_WIDTH: &str = "const list = document.querySelector('#needs');\
                            return list.scrollWidth - list.clientWidth;";

/// OPS-24: on a phone no card is beside another one, each begins with why and ends with buttons
/// that a thumb hits, and nothing is wider than the screen, whatever it is called.
#[tokio::test(flavor = "multi_thread")]
async fn ops_24_every_decision_is_seen_on_a_phone() {
    let _alone = ALONE.lock().await;
    let looked = async {
        let driver = ChromeDriver::start();
        let (exhibit, phone, russian) = tokio::join!(
            Exhibit::open(),
            Browser::start(&driver, "phone", "en-GB,en"),
            Browser::start(&driver, "russian", "ru"),
        );
        let request = json!({ "method": "POST", "path": format!("/{}", "x".repeat(300)) });
        let group = format!("guild:{}", "9".repeat(100));
        let long = json!({ "upstream": "cut", "group": group, "request": request, "max_attempts": 1 });
        let (long, _) = exhibit.caller.submit(&long).await;
        wait_for(&exhibit.caller, &long, "unknown").await;
        for browser in [&phone, &russian] {
            browser.resize(PHONE).await;
            browser.open(&exhibit.server.address).await;
            browser.wait_until(HAS_CARD, &[&long]).await;
            assert_eq!(browser.run(HIDDEN_WIDTH, &[]).await, 0);
            assert_eq!(browser.overflow(PHONE).await, 0);
            check(browser.run(CARDS, &[]).await.as_array().expect("cards are a list"));
        }
    };
    timeout(LIMIT, looked).await.expect("all of it is seen in time");
}

fn check(cards: &[Value]) {
    let number = |card: &Value, name: &str| card[name].as_f64().unwrap_or_else(|| panic!("{name}: {card}"));
    // Four unknown outcomes, a paused group, and a failure.
    assert!(cards.len() >= 6, "{cards:#?}");
    for card in cards {
        assert_eq!((&card["first"], &card["last"]), (&json!("why"), &json!("buttons")), "{card}");
        assert!(card["why"].as_str().is_some_and(|why| why.len() > 10), "{card}");
        assert!(number(card, "right") <= f64::from(PHONE) && number(card, "left") >= 0.0, "{card}");
        assert!(number(card, "widest") <= number(card, "right"), "{card}");
        assert!(number(card, "lowest") >= THUMB, "{card}");
    }
    for pair in cards.windows(2) {
        assert!(number(&pair[1], "top") >= number(&pair[0], "bottom"), "{pair:#?}");
    }
}
