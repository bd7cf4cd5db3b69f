//! An operator who decides with clicks what became of a call, and has another one sent again: with
//! scripts, and without.

use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate_fixture::chromium::ChromeDriver;
use tidegate_sim::{HttpSim, HttpSimOptions};
use tokio::time::timeout;

use super::session::Browser;
use crate::ALONE;
use crate::caller::Caller;
use crate::child::{RunningServer, configure, upstream};

/// Longer than all of it may take.
const LIMIT: std::time::Duration = std::time::Duration::from_secs(60);

/// Follows the first link whose text is `arguments[1]`, in the card or section with the id
/// `arguments[0]`.
pub(crate) const FOLLOW: &str = "[...document.getElementById(arguments[0]).querySelectorAll('a')]\
                      .find(link => link.textContent === arguments[1]).click();";

/// A server whose upstream drops every answer after the effect, and one that always fails.
struct PaymentDesk {
    server: RunningServer,
    caller: Caller,
    _sims: [HttpSim; 2],
    _dir: TempDir,
}

impl PaymentDesk {
    async fn start() -> Self {
        let cut = HttpSimOptions { cut_rate: 1.0, ..HttpSimOptions::default() };
        let failing = HttpSimOptions { fail_rate: 1.0, ..HttpSimOptions::default() };
        let sims = [HttpSim::start(cut).await.unwrap(), HttpSim::start(failing).await.unwrap()];
        let dir = tempfile::tempdir().unwrap();
        configure(dir.path(), 4, &(upstream("cut", &sims[0], None) + &upstream("down", &sims[1], None)));
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
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
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
    browser.run(FOLLOW, &[&format!("need-failed-{group}"), "Re-run failed"]).await;
    browser.confirm("the upstream is back", "(1)").await;
    let log: Value = serde_json::from_str(&desk.caller.get("/v1/audit").await).unwrap();
    let reasons: Vec<_> =
        log["entries"].as_array().unwrap().iter().take(2).map(|one| &one["reason"]).collect();
    assert_eq!(reasons, ["the upstream is back", "seen in the shop"]);
}

/// OPS-23, OPS-25: an operator resolves an unknown outcome and reruns what failed with clicks, with
/// and without scripts; the console has no errors.
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
        assert_eq!(scripted.console_errors().await, [""; 0]);
    };
    timeout(LIMIT, acted).await.expect("all of it is done in time");
}
