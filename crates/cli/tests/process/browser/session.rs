//! A browser that a test drives by the WebDriver protocol, and by DevTools where that has no word
//! for it. Conditions are waited for; nothing sleeps for a fixed time.

use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hyper::Method;
use serde_json::{Value, json};
use tidegate_fixture::chromium::ChromeDriver;
use tokio::time::{Instant, sleep};

use crate::caller::Caller;

/// How long a condition may take to hold.
const PATIENCE: Duration = Duration::from_secs(20);
/// The timeout of a command: longer than that after which the driver says what a script did.
const DRIVER_PATIENCE: Duration = Duration::from_secs(40);
/// The pause between two looks at a condition.
const PAUSE: Duration = Duration::from_millis(50);
/// The width of a phone, in CSS pixels.
pub(crate) const PHONE: u32 = 390;
/// The width of a desktop, in CSS pixels.
pub(crate) const DESKTOP: u32 = 1_440;
const HEIGHT: u32 = 900;
/// Gives a reason and confirms.
const CONFIRM: &str = "document.querySelector('.confirm [name=reason]').value = arguments[0];\
                       document.querySelector('.confirm button').click();";
const HAS_FORM: &str = "document.querySelector('.confirm')";
const HAS_NOTICE: &str = "document.querySelector('.notice')?.textContent.includes(arguments[0])";

/// One browser. It ends with its driver.
pub(crate) struct Browser {
    driver: Caller,
    session: String,
}

impl Browser {
    /// Starts a browser whose user prefers these languages, as in `ru,en`.
    pub(crate) async fn start(driver: &ChromeDriver, profile: &str, languages: &str) -> Self {
        let caller = Caller::of(&driver.url()).with_patience(DRIVER_PATIENCE);
        let options = json!({
            "args": driver.arguments(profile),
            "prefs": { "intl.accept_languages": languages },
        });
        let wanted = json!({ "goog:chromeOptions": options, "goog:loggingPrefs": { "browser": "ALL" } });
        let body = json!({ "capabilities": { "alwaysMatch": wanted } });
        let started = caller.post("/session", &[], &body).await;
        let session = started["value"]["sessionId"].as_str().expect("a session has an id").to_owned();
        let browser = Self { driver: caller, session };
        browser.resize(DESKTOP).await;
        browser
    }

    async fn command(&self, path: &str, body: &Value) -> Value {
        let path = format!("/session/{}/{path}", self.session);
        self.driver.post(&path, &[], body).await["value"].take()
    }

    /// Sends a command of the DevTools protocol.
    pub(crate) async fn devtools(&self, command: &str, parameters: &Value) -> Value {
        self.command("goog/cdp/execute", &json!({ "cmd": command, "params": parameters })).await
    }

    /// Opens a page and waits until it has loaded.
    pub(crate) async fn open(&self, url: &str) {
        self.command("url", &json!({ "url": url })).await;
    }

    /// Runs the body of a function with these `arguments` in the page, and returns its result.
    pub(crate) async fn run(&self, script: &str, arguments: &[&str]) -> Value {
        self.command("execute/sync", &json!({ "script": script, "args": arguments })).await
    }

    /// Runs the body of a function that calls the last of its `arguments` with its result.
    pub(crate) async fn run_until_called(&self, script: &str, arguments: &[&str]) -> Value {
        self.command("execute/async", &json!({ "script": script, "args": arguments })).await
    }

    /// Gives a reason in the confirm step that is open, confirms, and waits for a notice that has
    /// this text.
    pub(crate) async fn confirm(&self, reason: &str, notice: &str) {
        self.wait_until(HAS_FORM, &[]).await;
        self.run(CONFIRM, &[reason]).await;
        self.wait_until(HAS_NOTICE, &[notice]).await;
    }

    /// Waits until an expression about the page is true.
    pub(crate) async fn wait_until(&self, condition: &str, arguments: &[&str]) {
        let until = Instant::now() + PATIENCE;
        let script = format!("return Boolean({condition});");
        // A page that reloads has no body for a moment; the driver then answers with an error.
        while self.attempt(&script, arguments).await != Some(Value::Bool(true)) {
            if Instant::now() > until {
                let page = self.run("return document.documentElement.outerHTML;", &[]).await;
                panic!("{condition} is not true: {page}");
            }
            sleep(PAUSE).await;
        }
    }

    async fn attempt(&self, script: &str, arguments: &[&str]) -> Option<Value> {
        let path = format!("/session/{}/execute/sync", self.session);
        let body = json!({ "script": script, "args": arguments });
        let (status, text) = self.driver.call(Method::POST, &path, &[], Some(&body)).await?;
        let mut answer: Value = serde_json::from_str(&text).ok()?;
        (status == 200).then(|| answer["value"].take())
    }

    /// Gives the page another width.
    pub(crate) async fn resize(&self, width: u32) {
        let size = json!({
            "width": width, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": width == PHONE,
        });
        self.devtools("Emulation.setDeviceMetricsOverride", &size).await;
    }

    /// Has the page believe that its user prefers `light` or `dark`.
    pub(crate) async fn prefer(&self, scheme: &str) {
        let feature = json!({ "name": "prefers-color-scheme", "value": scheme });
        self.devtools("Emulation.setEmulatedMedia", &json!({ "features": [feature] })).await;
    }

    /// Moves the pointer.
    pub(crate) async fn point_at(&self, [x, y]: [f64; 2]) {
        let moved = json!({ "type": "mouseMoved", "x": x, "y": y });
        self.devtools("Input.dispatchMouseEvent", &moved).await;
    }

    /// What is seen of the page, as PNG.
    pub(crate) async fn picture(&self) -> Vec<u8> {
        let taken = self.devtools("Page.captureScreenshot", &json!({ "format": "png" })).await;
        BASE64_STANDARD.decode(taken["data"].as_str().expect("a picture is text")).expect("of base64")
    }

    /// From the next page on, no page runs its scripts.
    pub(crate) async fn forbid_scripts(&self) {
        self.devtools("Emulation.setScriptExecutionDisabled", &json!({ "value": true })).await;
    }

    /// How many pixels a page is wider than the screen.
    pub(crate) async fn overflow(&self, width: u32) -> i64 {
        let wide = self.run("return document.documentElement.scrollWidth;", &[]).await;
        wide.as_i64().expect("a page has a width") - i64::from(width)
    }

    /// The errors in the console since the last call: of scripts, of the policy, of loading.
    pub(crate) async fn console_errors(&self) -> Vec<String> {
        let log = self.command("se/log", &json!({ "type": "browser" })).await;
        let entries = log.as_array().expect("the log is a list");
        let severe = entries.iter().filter(|entry| entry["level"] == "SEVERE");
        severe.map(|entry| entry["message"].to_string()).collect()
    }
}
