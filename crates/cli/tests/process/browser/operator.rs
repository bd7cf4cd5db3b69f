//! An operator who decides with clicks what became of a call, and has another one sent again: with
//! scripts, and without. The same for idempotency keys, and for a limit that an upstream closed.

use std::path::Path;
use std::time::Duration;

use hyper::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate_core::shared::record::{HolderToken, OnLapse, RecordClaim};
use tidegate_fixture::chromium::ChromeDriver;
use tidegate_sim::{HttpSim, HttpSimOptions};
use tidegate_store::SharedState;
use tidegate_store_embedded::{EmbeddedStore, Options};
use tokio::time::timeout;

use super::session::Browser;
use crate::ALONE;
use crate::caller::Caller;
use crate::child::{RunningServer, configure, upstream};

/// Longer than all of it may take.
const LIMIT: Duration = Duration::from_secs(60);

/// Follows the first link whose text is `arguments[1]`, in the card or section with the id
/// `arguments[0]`.
pub(crate) const FOLLOW: &str = "[...document.getElementById(arguments[0]).querySelectorAll('a')]\
                      .find(link => link.textContent === arguments[1]).click();";

/// Follows the link with this name for those who do not see it.
pub(crate) const FOLLOW_NAMED: &str = "document.querySelector(`a[aria-label=\"${arguments[0]}\"]`).click();";
pub(crate) const HAS_NAMED: &str = "document.querySelector(`a[aria-label=\"${arguments[0]}\"]`)";

/// Keys of which the outcome is unknown, one after the other.
const UNKNOWN_KEYS: [&str; 2] = ["order-1", "order-2"];
/// The key of a request that was answered.
const ANSWERED_KEY: &str = "order-3";

/// A server whose upstreams drop every answer after the effect, always fail, and throttle.
struct PaymentDesk {
    server: RunningServer,
    caller: Caller,
    _sims: [HttpSim; 3],
    _dir: TempDir,
}

impl PaymentDesk {
    async fn start() -> Self {
        let cut = HttpSimOptions { cut_rate: 1.0, ..HttpSimOptions::default() };
        let failing = HttpSimOptions { fail_rate: 1.0, ..HttpSimOptions::default() };
        let strict = HttpSimOptions { capacity: 1, refill_per_s: Some(0.01), ..HttpSimOptions::default() };
        let start = async |options| HttpSim::start(options).await.unwrap();
        let sims = [start(cut).await, start(failing).await, start(strict).await];
        let dir = tempfile::tempdir().unwrap();
        let sections = [
            upstream("cut", &sims[0], None),
            upstream("down", &sims[1], None),
            upstream("strict", &sims[2], None),
        ];
        configure(dir.path(), 4, &sections.concat());
        claim_keys(&dir.path().join("data")).await;
        let server = RunningServer::start(dir.path(), "warn", None);
        let caller = Caller::of(&server.address);
        Self { server, caller, _sims: sims, _dir: dir }
    }

    /// Submits an operation and waits until it has this state.
    async fn submit(&self, upstream: &str, group: &str, state: &str) -> String {
        let request = json!({ "method": "POST", "path": "/pay/7", "body": { "n": 1 } });
        let operation =
            json!({ "upstream": upstream, "group": group, "request": request, "max_attempts": 1 });
        let (id, _) = self.caller.submit(&operation).await;
        while self.state_of(&id).await != state {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        id
    }

    async fn state_of(&self, id: &str) -> String {
        let shown = self.caller.get(&format!("/v1/operations/{id}")).await;
        let shown: Value = serde_json::from_str(&shown).unwrap();
        shown["state"].as_str().unwrap().to_owned()
    }
}

/// Decides one unknown outcome and reruns what failed in a group, from the overview.
async fn operate(desk: &PaymentDesk, browser: &Browser, unknown: &str, group: &str) {
    browser.open(&desk.server.address).await;
    browser.run(FOLLOW, &[&format!("need-{unknown}"), "It happened"]).await;
    browser.wait_until("document.body.textContent.includes('POST /pay/7')", &[]).await;
    browser.confirm("seen in the shop", "It happened").await;
    assert_eq!(desk.state_of(unknown).await, "succeeded");
    browser.open(&desk.server.address).await;
    browser.run(FOLLOW, &[&format!("need-failed-{group}"), "Re-run 1"]).await;
    browser.confirm("the upstream is back", "(1)").await;
    let log: Value = serde_json::from_str(&desk.caller.get("/v1/audit").await).unwrap();
    let reasons: Vec<_> =
        log["entries"].as_array().unwrap().iter().take(2).map(|one| &one["reason"]).collect();
    assert_eq!(reasons, ["the upstream is back", "seen in the shop"]);
}

/// Leaves keys behind as a process does that died with its requests.
async fn claim_keys(dir: &Path) {
    let store = EmbeddedStore::open(dir, Options::default()).unwrap();
    for key in UNKNOWN_KEYS {
        let claim = RecordClaim {
            fingerprint: [1; 32],
            token: HolderToken([2; 16]),
            lease: Duration::ZERO,
            ttl: Duration::from_secs(3_600),
            on_lapse: OnLapse::Hold,
        };
        store.claim_record(&format!("- POST /v1/operations {key}"), claim).await.unwrap();
    }
}

/// Records the response of one key, and frees two others, from the list of keys.
async fn decide_about_keys(desk: &PaymentDesk, browser: &Browser) {
    let operation =
        json!({ "upstream": "down", "group": "keyed", "request": { "method": "POST", "path": "/x" } });
    desk.caller.post("/v1/operations", &[("idempotency-key", ANSWERED_KEY)], &operation).await;
    let [first, second] = UNKNOWN_KEYS;
    browser.open(&format!("{}/keys", desk.server.address)).await;
    for (action, key) in [("Record response", first), ("Release", second), ("Expire", ANSWERED_KEY)] {
        let link = format!("{action} {key}");
        browser.wait_until(HAS_NAMED, &[&link]).await;
        browser.run(FOLLOW_NAMED, &[&link]).await;
        browser.confirm("seen in the shop", action).await;
        let (status, shown) =
            desk.caller.call(Method::GET, &format!("/v1/keys/{key}"), &[], None).await.unwrap();
        match key == first {
            true => assert!(status == 200 && shown.contains("\"completed\""), "{action}: {status} {shown}"),
            false => assert_eq!(status, 404, "{action}: {shown}"),
        }
    }
}

/// Opens a limit that its upstream has closed, from the list of limits.
async fn open_limit(desk: &PaymentDesk, browser: &Browser) {
    for group in ["strict-1", "strict-2"] {
        let request = json!({ "method": "POST", "path": "/pay/8" });
        desk.caller.submit(&json!({ "upstream": "strict", "group": group, "request": request })).await;
    }
    browser.open(&format!("{}/limits", desk.server.address)).await;
    let link = "Open strict";
    browser.wait_until(HAS_NAMED, &[link]).await;
    browser.run(FOLLOW_NAMED, &[link]).await;
    browser.confirm("the upstream said so", "Open").await;
    let log: Value = serde_json::from_str(&desk.caller.get("/v1/audit?limit=1").await).unwrap();
    let entry = &log["entries"][0];
    let told = ["action", "subject", "detail", "reason"].map(|field| entry[field].clone());
    assert_eq!(json!(told), json!(["set", "strict", "open true", "the upstream said so"]));
}

/// OPS-23, OPS-25: an operator resolves an unknown outcome and reruns what failed with clicks, with
/// and without scripts, decides about keys and opens a limit; the console has no errors.
#[tokio::test(flavor = "multi_thread")]
async fn ops_23_ops_25_chromium_acts_for_an_operator() {
    let _alone = ALONE.lock().await;
    let acted = async {
        let driver = ChromeDriver::start();
        let (desk, scripted, plain) = tokio::join!(
            PaymentDesk::start(),
            Browser::start(&driver, "scripted", "en-GB,en"),
            Browser::start(&driver, "plain", "en"),
        );
        plain.forbid_scripts().await;
        for (browser, group) in [(&scripted, "first"), (&plain, "second")] {
            let unknown = desk.submit("cut", &format!("cut-{group}"), "unknown").await;
            desk.submit("down", group, "failed").await;
            operate(&desk, browser, &unknown, group).await;
        }
        decide_about_keys(&desk, &plain).await;
        open_limit(&desk, &scripted).await;
        assert_eq!(scripted.console_errors().await, [""; 0]);
    };
    timeout(LIMIT, acted).await.expect("all of it is done in time");
}
