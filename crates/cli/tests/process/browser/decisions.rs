//! The cards of what needs an operator, on an overview that stays open: they keep their places,
//! whatever is decided and whatever comes up.

use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate_fixture::chromium::ChromeDriver;
use tidegate_sim::{HttpSim, HttpSimOptions};
use tokio::time::timeout;

use super::axe::Axe;
use super::session::{Browser, DESKTOP};
use crate::ALONE;
use crate::caller::Caller;
use crate::child::{RunningServer, configure, upstream};

/// Longer than all of it may take.
const LIMIT: std::time::Duration = std::time::Duration::from_secs(90);

/// The ids of the cards, in their order.
const CARDS: &str = "return [...document.querySelectorAll('.needs > li')]\
                     .map((card) => card.id.replace('need-group-', ''));";
/// The place and the size of each card, in their order.
const BOXES: &str = "return [...document.querySelectorAll('.needs > li')].map((card) => {\
    const box = card.getBoundingClientRect();\
    return [box.left, box.top, box.width, box.height];\
});";
const HAS_CARD: &str = "document.querySelector(`#need-group-${arguments[0]}:not(.quiet) .buttons a`)";
/// A place is empty: it says so, and nothing in it can be clicked.
const IS_EMPTIED: &str = "(() => {\
    const card = document.querySelector(`#need-group-${arguments[0]}.quiet`);\
    return card?.textContent === 'Nothing to decide here any more.' && !card.firstElementChild;\
})()";
/// The heading, without and with the line of what came up.
const HAS_HEADING: &str = "document.querySelector('#needs h2').innerText === arguments[0]";
/// The centre of the first card.
const FIRST_CARD: &str = "const box = document.querySelector('.needs > li').getBoundingClientRect();\
                          return [box.left + box.width / 2, box.top + box.height / 2];";
const IS_POINTED_AT: &str = "document.querySelector('#needs').matches(':hover')";
/// Half a minute later, for the script of the page.
const LATER: &str = "const now = Date.now; Date.now = () => now() + 30000;";
const SHOW: &str = "document.querySelector('#needs .newcomers a').click();";

/// A server whose groups are paused, so that each waits for an operator.
struct PausedGroups {
    server: RunningServer,
    caller: Caller,
    _sim: HttpSim,
    _dir: TempDir,
}

impl PausedGroups {
    async fn start(groups: &[&str]) -> Self {
        let sim = HttpSim::start(HttpSimOptions::default()).await.unwrap();
        let dir = tempfile::tempdir().unwrap();
        configure(dir.path(), 4, &upstream("echo", &sim, None));
        let server = tokio::task::block_in_place(|| RunningServer::start(dir.path(), "warn", None));
        let caller = Caller::of(&server.address);
        let world = Self { server, caller, _sim: sim, _dir: dir };
        for group in groups {
            world.pause(group, "price fix").await;
        }
        world
    }

    async fn pause(&self, group: &str, reason: &str) {
        let pause = json!({ "by": "anna", "reason": reason, "create": true });
        self.caller.post(&format!("/v1/groups/{group}/pause"), &[], &pause).await;
        let request = json!({ "method": "POST", "path": "/x" });
        self.caller.submit(&json!({ "upstream": "echo", "group": group, "request": request })).await;
    }

    async fn resume(&self, group: &str) {
        self.caller.post(&format!("/v1/groups/{group}/resume"), &[], &json!({})).await;
    }
}

/// The boxes of the first cards.
async fn boxes(browser: &Browser, count: usize) -> Vec<Value> {
    let boxes = browser.run(BOXES, &[]).await;
    boxes.as_array().expect("boxes are a list")[..count].to_vec()
}

async fn point_at_cards(browser: &Browser) {
    let centre = browser.run(FIRST_CARD, &[]).await;
    browser.point_at([0, 1].map(|n| centre[n].as_f64().expect("a place is a number"))).await;
    browser.wait_until(IS_POINTED_AT, &[]).await;
}

/// OPS-24: a card whose decision is made leaves an empty place of its height, which a new card
/// takes; the others stay where they are, and what has no place comes last. A decision that comes
/// back is where it was. Empty places at the end of the cards are gone after a while, and all of
/// them when the page is opened again.
#[tokio::test(flavor = "multi_thread")]
async fn ops_24_chromium_keeps_the_cards_in_their_places() {
    let _alone = ALONE.lock().await;
    let watched = async {
        let (driver, axe) = (ChromeDriver::start(), Axe::load());
        let world = PausedGroups::start(&["c", "e", "g"]).await;
        // Its card is higher than the least height.
        world.pause("d", &"so long ".repeat(60)).await;
        let browser = Browser::start(&driver, "decisions", "en-GB,en").await;
        browser.open(&world.server.address).await;
        assert_eq!(browser.run(CARDS, &[]).await, json!(["c", "d", "e", "g"]));
        let places = boxes(&browser, 4).await;
        assert!(places[1][3].as_f64() > places[0][3].as_f64(), "one is higher than the least: {places:?}");
        world.resume("d").await;
        browser.wait_until(IS_EMPTIED, &["d"]).await;
        browser.wait_until(HAS_HEADING, &["Needs you (3)"]).await;
        assert_eq!(boxes(&browser, 4).await, places, "an empty place is as high as its card");
        let faults = axe.faults_here(&browser, "an empty place").await;
        assert!(faults.is_empty(), "{faults:#?}");
        browser.resize(DESKTOP).await;
        let places = boxes(&browser, 4).await;
        world.pause("a", "price fix").await;
        browser.wait_until(HAS_CARD, &["a"]).await;
        assert_eq!(browser.run(CARDS, &[]).await, json!(["c", "a", "e", "g"]), "the free place is taken");
        world.pause("b", "price fix").await;
        browser.wait_until(HAS_CARD, &["b"]).await;
        assert_eq!(browser.run(CARDS, &[]).await, json!(["c", "a", "e", "g", "b"]), "a new card is the last");
        assert_eq!(boxes(&browser, 4).await, places);
        world.resume("e").await;
        browser.wait_until(IS_EMPTIED, &["e"]).await;
        world.pause("e", "again").await;
        browser.wait_until(HAS_CARD, &["e"]).await;
        assert_eq!(browser.run(CARDS, &[]).await, json!(["c", "a", "e", "g", "b"]), "it is where it was");
        assert_eq!(boxes(&browser, 4).await, places);
        world.resume("c").await;
        browser.wait_until(IS_EMPTIED, &["c"]).await;
        world.resume("b").await;
        browser.wait_until(IS_EMPTIED, &["b"]).await;
        browser.run(LATER, &[]).await;
        browser.wait_until("!document.getElementById('need-group-b')", &[]).await;
        assert_eq!(browser.run(CARDS, &[]).await, json!(["c", "a", "e", "g"]), "only the end is given up");
        assert_eq!(boxes(&browser, 4).await, places);
        browser.open(&world.server.address).await;
        assert_eq!(browser.run(CARDS, &[]).await, json!(["a", "e", "g"]), "as the server has them");
        assert_eq!(browser.console_errors().await, [""; 0]);
    };
    timeout(LIMIT, watched).await.expect("all of it is seen in time");
}

/// OPS-24: while someone points at the cards, none of them comes, goes or moves. The heading says
/// how many decisions there are, and how many cards came up, which its link shows.
#[tokio::test(flavor = "multi_thread")]
async fn ops_24_chromium_leaves_the_cards_below_the_pointer() {
    let _alone = ALONE.lock().await;
    let watched = async {
        let driver = ChromeDriver::start();
        let world = PausedGroups::start(&["b", "c"]).await;
        let browser = Browser::start(&driver, "pointed", "en-GB,en").await;
        browser.open(&world.server.address).await;
        let (shown, places) = (json!(["b", "c"]), boxes(&browser, 2).await);
        point_at_cards(&browser).await;
        world.pause("a", "price fix").await;
        browser.wait_until(HAS_HEADING, &["Needs you (3) 1 new, show"]).await;
        assert_eq!(browser.run(CARDS, &[]).await, shown, "no card comes");
        world.resume("c").await;
        browser.wait_until(HAS_HEADING, &["Needs you (2) 1 new, show"]).await;
        assert_eq!(browser.run(CARDS, &[]).await, shown, "no card goes");
        browser.wait_until(HAS_CARD, &["c"]).await;
        assert_eq!(boxes(&browser, 2).await, places, "the line is in the heading");
        world.pause("d", "price fix").await;
        browser.wait_until(HAS_HEADING, &["Needs you (3) 2 new, show"]).await;
        browser.run(SHOW, &[]).await;
        browser.wait_until(HAS_HEADING, &["Needs you (3)"]).await;
        assert_eq!(browser.run(CARDS, &[]).await, json!(["b", "a", "d"]), "the places are kept");
        assert_eq!(boxes(&browser, 2).await, places);
        world.pause("e", "price fix").await;
        browser.wait_until(HAS_HEADING, &["Needs you (4) 1 new, show"]).await;
        browser.point_at([0.0, 0.0]).await;
        browser.wait_until(HAS_HEADING, &["Needs you (4)"]).await;
        assert_eq!(browser.run(CARDS, &[]).await, json!(["b", "a", "d", "e"]), "it comes without a click");
        world.resume("b").await;
        browser.wait_until(IS_EMPTIED, &["b"]).await;
        point_at_cards(&browser).await;
        world.pause("b", "again").await;
        browser.wait_until(HAS_HEADING, &["Needs you (4) 1 new, show"]).await;
        browser.wait_until(IS_EMPTIED, &["b"]).await;
        assert_eq!(browser.console_errors().await, [""; 0]);
    };
    timeout(LIMIT, watched).await.expect("all of it is seen in time");
}
