//! Every action of an operator, each through its confirm step in a browser, at a server or at the
//! nodes of a cluster in turn, with what each is about. What an action means is tested elsewhere;
//! here each of them is done, and is in the audit log.

use std::collections::BTreeSet;

use hyper::Method;
use serde_json::{Value, json};
use tidegate_core::shared::record::{HolderToken, OnLapse, RecordClaim};
use tokio::time::{Duration, sleep};

use super::exhibit::{state_of, wait_for};
use super::operator::{FOLLOW_NAMED, HAS_NAMED};
use super::session::Browser;
use super::studio;
use crate::caller::Caller;

const LOOK: Duration = Duration::from_millis(20);
/// Why all of it is done.
const REASON: &str = "because of a test";
/// Keys of which the outcome is unknown.
const UNKNOWN_KEYS: [&str; 2] = ["order-1042", "order-1043"];
/// The key of a request that was answered.
const ANSWERED_KEY: &str = "order-1044";
/// The provider that is away, and its model.
const AWAY: &str = "away";

/// The configuration of a provider that is away, and of a model that only it serves.
pub(crate) fn sections() -> String {
    let (key, schema) = (studio::PROVIDER_KEY.0, r#"{"type":"object"}"#);
    format!(
        "[provider.{AWAY}]\nadapter = \"replicate\"\nbase_url = \"http://127.0.0.1:1/v1\"\nkey_env = \"{key}\"\n\
         [model.{AWAY}]\ninput_schema = '{schema}'\n\
         chain = [{{ provider = \"{AWAY}\", model = \"acme/flux\", cost = 1 }}]\n"
    )
}

/// Leaves keys behind in a store, as a process does that died with its requests.
pub(crate) async fn claim_keys(url: &str) {
    let store = tidegate_backend::open(url).await.unwrap();
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

/// An operator with a browser.
pub(crate) struct Acting<'a> {
    pub caller: &'a Caller,
    pub browser: &'a Browser,
    /// The servers, each of which is asked in turn.
    pub addresses: &'a [String],
    done: BTreeSet<&'static str>,
}

impl<'a> Acting<'a> {
    pub(crate) fn new(caller: &'a Caller, browser: &'a Browser, addresses: &'a [String]) -> Self {
        Self { caller, browser, addresses, done: BTreeSet::new() }
    }

    /// Does every action there is.
    pub(crate) async fn do_everything(mut self) {
        self.about_a_queue().await;
        self.about_failures().await;
        self.about_unknown_outcomes().await;
        self.about_limits().await;
        self.about_keys().await;
        let log = self.caller.get("/v1/audit?limit=200").await;
        assert_eq!(log.matches(REASON).count(), self.done.len(), "{log}");
        let document: Value = serde_json::from_str(&self.caller.get("/openapi.json").await).unwrap();
        let named = &document["paths"]["/actions/{action}"]["get"]["parameters"][0]["schema"]["enum"];
        let named: Vec<&str> = named.as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
        assert_eq!(self.done, named.into_iter().collect(), "every action is done");
    }

    /// The next server.
    fn address(&self) -> &'a str {
        &self.addresses[self.done.len() % self.addresses.len()]
    }

    /// Confirms an action about a subject, and waits for what the page then says.
    async fn act(&mut self, name: &'static str, subject: &str, notice: &str) {
        let subject = subject.replace('%', "%25").replace('=', "%3D").replace('&', "%26");
        self.browser.open(&format!("{}/actions/{name}?subject={subject}", self.address())).await;
        self.browser.confirm(REASON, notice).await;
        assert!(self.done.insert(name), "{name} is done once");
    }

    /// Submits an operation that is tried once.
    async fn submit(&self, upstream: &str, group: &str) -> String {
        let request = json!({ "method": "POST", "path": "/pay/7" });
        let operation =
            json!({ "upstream": upstream, "group": group, "request": request, "max_attempts": 1 });
        self.caller.submit(&operation).await.0
    }

    async fn about_a_queue(&mut self) {
        let first = self.submit("echo", "acts").await;
        wait_for(self.caller, &first, "succeeded").await;
        self.act("pause", "acts", "Pause").await;
        let mut queued = Vec::new();
        for _ in 0..3 {
            queued.push(self.submit("echo", "acts").await);
        }
        self.act("cancel", &queued[0], "Cancel").await;
        self.act("cancel-all", "group=acts", "(2)").await;
        for id in &queued {
            assert_eq!(state_of(self.caller, id).await, "canceled");
        }
        self.act("resume", "acts", "Resume").await;
    }

    async fn about_failures(&mut self) {
        const GROUP: &str = "acts-failed";
        let id = self.submit("down", GROUP).await;
        wait_for(self.caller, &id, "failed").await;
        self.act("rerun", &id, "Re-run").await;
        wait_for(self.caller, &id, "failed").await;
        self.act("rerun-failed", GROUP, "(1)").await;
        wait_for(self.caller, &id, "failed").await;
        self.act("rerun-all", &format!("state=failed&group={GROUP}"), "(1)").await;
        wait_for(self.caller, &id, "failed").await;
        let ended = self.field(&format!("/v1/operations/{id}"), "finished_at").await;
        let through = ended.as_str().expect("it has ended");
        self.act("dismiss", &format!("group={GROUP}&through={through}"), "Dismiss").await;
        self.act("restore", &format!("group={GROUP}"), "Show again").await;
    }

    async fn about_unknown_outcomes(&mut self) {
        for (name, notice, ended) in [
            ("happened", "It happened", Some("succeeded")),
            ("did-not-happen", "It did not happen", Some("failed")),
            ("send-again", "Send again", None),
        ] {
            let id = self.submit("cut", &format!("acts-{name}")).await;
            wait_for(self.caller, &id, "unknown").await;
            self.act(name, &id, notice).await;
            self.wait_for_end(&id, ended).await;
        }
        for (name, ended) in
            [("all-happened", Some("succeeded")), ("none-happened", Some("failed")), ("send-all-again", None)]
        {
            let group = format!("acts-{name}");
            let id = self.submit("cut", &group).await;
            wait_for(self.caller, &id, "unknown").await;
            self.act(name, &format!("state=unknown&group={group}"), "(1)").await;
            self.wait_for_end(&id, ended).await;
        }
    }

    /// Waits until an operation has ended like this; what is sent again does not end soon.
    async fn wait_for_end(&self, id: &str, ended: Option<&str>) {
        if let Some(state) = ended {
            wait_for(self.caller, id, state).await;
        }
    }

    async fn about_limits(&mut self) {
        self.act("set-limit", "echo/requests", "Change").await;
        self.act("reset-limit", "echo/requests", "As configured").await;
        for group in ["acts-strict-1", "acts-strict-2"] {
            self.submit("strict", group).await;
        }
        while self.field("/v1/limits/strict", "closed_until").await.is_null() {
            sleep(LOOK).await;
        }
        self.act("open-limit", "strict", "Open").await;
        let body = json!({ "model_id": AWAY, "user_id": "anna", "input": {} });
        self.caller.post("/api/generations/create", &[], &body).await;
        while !self.is_cooling().await {
            sleep(LOOK).await;
        }
        self.act("open-provider", AWAY, "Try again now").await;
    }

    async fn is_cooling(&self) -> bool {
        let all = self.field("/v1/providers", "providers").await;
        let found = all.as_array().and_then(|all| all.iter().find(|one| one["name"] == AWAY));
        found.is_some_and(|one| one["state"] == "cooling_down")
    }

    /// Decides about keys from the list of them, as their names have more than one part.
    async fn about_keys(&mut self) {
        let request = json!({ "method": "POST", "path": "/x" });
        let operation = json!({ "upstream": "echo", "group": "keyed", "request": request });
        self.caller.post("/v1/operations", &[("idempotency-key", ANSWERED_KEY)], &operation).await;
        let [first, second] = UNKNOWN_KEYS;
        for (name, button, key) in [
            ("complete-key", "Record response", first),
            ("release-key", "Release", second),
            ("expire-key", "Expire", ANSWERED_KEY),
        ] {
            let link = format!("{button} {key}");
            self.browser.open(&format!("{}/keys", self.address())).await;
            self.browser.wait_until(HAS_NAMED, &[&link]).await;
            self.browser.run(FOLLOW_NAMED, &[&link]).await;
            self.browser.confirm(REASON, button).await;
            assert!(self.done.insert(name), "{name} is done once");
            let path = format!("/v1/keys/{key}");
            let (status, _) = self.caller.call(Method::GET, &path, &[], None).await.unwrap();
            assert_eq!(status, if key == first { 200 } else { 404 }, "{button}");
        }
    }

    async fn field(&self, path: &str, name: &str) -> Value {
        let shown: Value = serde_json::from_str(&self.caller.get(path).await).unwrap();
        shown[name].clone()
    }
}
