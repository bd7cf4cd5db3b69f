//! An open page whose subject goes away and comes back, one whose group is done, and one whose
//! store is away.

use std::path::Path;

use serde_json::json;
use tidegate_fixture::chromium::ChromeDriver;
use tidegate_fixture::redis::RedisServer;
use tidegate_sim::{HttpSim, HttpSimOptions};
use tokio::time::timeout;

use super::exhibit::wait_for;
use super::session::Browser;
use crate::ALONE;
use crate::caller::Caller;
use crate::child::{RunningServer, StartingServer, configure, tidegate, upstream};

/// Longer than all of it may take.
const LIMIT: std::time::Duration = std::time::Duration::from_secs(90);

const IS_LIVE: &str = "document.getElementById('live').textContent.includes('●')";
const IS_GONE: &str = "document.getElementById('live').textContent.includes('no longer known here')";
const SHOWS: &str = "document.getElementById('main').textContent.includes(arguments[0])";
/// What a browser says when its user comes back to the tab.
const COME_BACK: &str = "document.dispatchEvent(new Event('visibilitychange'));";
const STORE_SAYS: &str = "document.getElementById('store').textContent.startsWith(arguments[0])";
const QUEUE: &str = "return document.querySelectorAll('#line tbody tr').length;";
const IS_DONE: &str = "!document.querySelector('#line tbody') && document.querySelector('#last tbody tr')";

/// Starts a server that listens here, where an earlier one may have done so.
fn start_again(dir: &Path, listen: &str, store: Option<&str>) -> RunningServer {
    let mut command = tidegate();
    command.args(["serve", "--log-level", "warn", "--listen", listen, "--config"]);
    command.arg(dir.join("tidegate.toml")).current_dir(dir);
    command.args(store.map(|store| ["--store", store]).into_iter().flatten());
    tokio::task::block_in_place(|| RunningServer::of(StartingServer::of(command)))
}

/// OPS-24: a page whose operation is not known any more says so and keeps what it shows, and is
/// live again once the operation is back.
#[tokio::test(flavor = "multi_thread")]
async fn ops_24_chromium_finds_what_was_gone() {
    let _alone = ALONE.lock().await;
    let watched = async {
        let sim = HttpSim::start(HttpSimOptions::default()).await.unwrap();
        let dir = tempfile::tempdir().unwrap();
        configure(dir.path(), 4, &upstream("echo", &sim, None));
        let server = tokio::task::block_in_place(|| RunningServer::start(dir.path(), "warn", None));
        let (address, driver) = (server.address.clone(), ChromeDriver::start());
        let listen = address.trim_start_matches("http://").to_owned();
        let browser = Browser::start(&driver, "gone", "en-GB,en").await;
        let caller = Caller::of(&address);
        let request = json!({ "method": "POST", "path": "/pay/7" });
        let operation = json!({ "upstream": "echo", "group": "g", "request": request });
        let (id, _) = caller.submit(&operation).await;
        wait_for(&caller, &id, "succeeded").await;
        browser.open(&format!("{address}/operations/{id}")).await;
        browser.wait_until(IS_LIVE, &[]).await;
        server.kill();
        let other = start_again(dir.path(), &listen, Some("memory:"));
        browser.wait_until(IS_GONE, &[]).await;
        browser.wait_until(SHOWS, &["POST /pay/7"]).await;
        other.kill();
        let _again = start_again(dir.path(), &listen, None);
        browser.run(COME_BACK, &[]).await;
        browser.wait_until(IS_LIVE, &[]).await;
    };
    timeout(LIMIT, watched).await.expect("all of it is seen in time");
}

/// OPS-24: the open page of a group whose work is done shows no queue any more.
#[tokio::test(flavor = "multi_thread")]
async fn ops_24_chromium_empties_the_queue_of_a_group() {
    let _alone = ALONE.lock().await;
    let watched = async {
        let sim = HttpSim::start(HttpSimOptions::default()).await.unwrap();
        let dir = tempfile::tempdir().unwrap();
        configure(dir.path(), 4, &upstream("echo", &sim, None));
        let server = tokio::task::block_in_place(|| RunningServer::start(dir.path(), "warn", None));
        let (caller, driver) = (Caller::of(&server.address), ChromeDriver::start());
        let browser = Browser::start(&driver, "done", "en-GB,en").await;
        caller.post("/v1/groups/g/pause", &[], &json!({ "create": true })).await;
        let request = json!({ "method": "POST", "path": "/x" });
        let operation = json!({ "upstream": "echo", "group": "g", "request": request });
        caller.submit(&operation).await;
        browser.open(&format!("{}/groups/g", server.address)).await;
        assert_eq!(browser.run(QUEUE, &[]).await, json!(1));
        caller.post("/v1/groups/g/resume", &[], &json!({})).await;
        browser.wait_until(IS_DONE, &[]).await;
        browser.wait_until(SHOWS, &["Nothing is queued here"]).await;
        assert_eq!(browser.console_errors().await, [""; 0]);
    };
    timeout(LIMIT, watched).await.expect("all of it is seen in time");
}

/// OPS-24: the header says that the store is away, and since when, until it is back.
#[tokio::test(flavor = "multi_thread")]
async fn ops_24_chromium_says_that_the_store_is_away() {
    let _alone = ALONE.lock().await;
    let watched = async {
        let sim = HttpSim::start(HttpSimOptions::default()).await.unwrap();
        let dir = tempfile::tempdir().unwrap();
        configure(dir.path(), 4, &upstream("echo", &sim, None));
        let mut redis = tokio::task::block_in_place(RedisServer::start);
        let server = start_again(dir.path(), "127.0.0.1:0", Some(&redis.url()));
        let driver = ChromeDriver::start();
        let browser = Browser::start(&driver, "away", "en-GB,en").await;
        browser.open(&server.address).await;
        browser.wait_until(STORE_SAYS, &["store ready"]).await;
        redis.kill();
        browser.wait_until(STORE_SAYS, &["✕ store unavailable since "]).await;
        tokio::task::block_in_place(|| redis.restart());
        browser.wait_until(STORE_SAYS, &["store ready"]).await;
    };
    timeout(LIMIT, watched).await.expect("all of it is seen in time");
}
