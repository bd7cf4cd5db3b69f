//! The groups of an overview that stays open: they keep their places, and others wait behind a
//! line.

use serde_json::{Value, json};
use tidegate_fixture::chromium::ChromeDriver;
use tidegate_sim::{HttpSim, HttpSimOptions};
use tokio::time::timeout;

use super::session::Browser;
use crate::ALONE;
use crate::caller::Caller;
use crate::child::{RunningServer, configure, upstream};

/// Longer than all of it may take.
const LIMIT: std::time::Duration = std::time::Duration::from_secs(60);

/// The names and the depths of the groups, in the order of their rows.
const ROWS: &str = "return [...document.querySelectorAll('#groups tbody tr')]\
                    .map(row => row.querySelector('th').textContent + row.querySelector('.number').textContent);";
const HAS_LINE: &str =
    "document.querySelector('#groups .newcomers:not([hidden])')?.textContent === arguments[0]";
/// Follows the line, and marks the document, so that a reload would be noticed.
const SHOW: &str = "window.isSamePage = true; document.querySelector('#groups .newcomers a').click();";
const IS_EMPTIED: &str = "document.querySelector('#group-b.quiet td.why')?.textContent === arguments[0]";

/// Submits an operation to a group that is paused.
async fn queue(caller: &Caller, group: &str) -> String {
    caller.post(&format!("/v1/groups/{group}/pause"), &[], &json!({ "create": true })).await;
    let request = json!({ "method": "POST", "path": "/x" });
    caller.submit(&json!({ "upstream": "echo", "group": group, "request": request })).await.0
}

/// OPS-24: a group that comes up takes the place of one that is done, or is counted in a line and
/// shown by its link; a place that no one takes stays empty. The title says how many groups wait
/// for an operator.
#[tokio::test(flavor = "multi_thread")]
async fn ops_24_chromium_keeps_the_groups_in_their_places() {
    let _alone = ALONE.lock().await;
    let watched = async {
        let sim = HttpSim::start(HttpSimOptions::default()).await.unwrap();
        let dir = tempfile::tempdir().unwrap();
        configure(dir.path(), 4, &upstream("echo", &sim, None));
        let server = RunningServer::start(dir.path(), "warn", None);
        let (caller, driver) = (Caller::of(&server.address), ChromeDriver::start());
        let browser = Browser::start(&driver, "slots", "en-GB,en").await;
        let [first, second] = [queue(&caller, "a").await, queue(&caller, "b").await];
        browser.open(&server.address).await;
        assert_eq!(browser.run(ROWS, &[]).await, json!(["a1", "b1"]));
        for group in ["c", "c", "d"] {
            queue(&caller, group).await;
        }
        browser.wait_until(HAS_LINE, &["2 new, show"]).await;
        assert_eq!(browser.run(ROWS, &[]).await, json!(["a1", "b1"]));
        caller.post(&format!("/v1/operations/{first}/cancel"), &[], &json!({})).await;
        browser.wait_until(HAS_LINE, &["1 new, show"]).await;
        assert_eq!(browser.run(ROWS, &[]).await, json!(["c2", "b1"]), "a free place is taken");
        browser.run(SHOW, &[]).await;
        browser.wait_until("window.isSamePage && document.querySelector('#group-d')", &[]).await;
        let Value::Array(rows) = browser.run(ROWS, &[]).await else { panic!("no rows") };
        assert!(rows.len() == 3 && rows.contains(&json!("c2")) && rows.contains(&json!("b1")), "{rows:?}");
        caller.post(&format!("/v1/operations/{second}/cancel"), &[], &json!({})).await;
        browser.wait_until(IS_EMPTIED, &["Its queue is empty."]).await;
        browser.wait_until("document.title.startsWith('(4) ')", &[]).await;
        assert_eq!(browser.console_errors().await, Vec::<String>::new());
    };
    timeout(LIMIT, watched).await.expect("all of it is done in time");
}
