//! A process that holds a lease is stopped and continued: the test starts itself as the holder.

use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tidegate_fixture::redis::RedisServer;
use tidegate_limits::NamedLease;

/// The name of this test, to start itself.
const ITSELF: &str = "stalled::lim_15_a_stopped_process_is_told_that_it_lost_its_lease";
/// The variable with the holder's store URL.
const URL: &str = "TIDEGATE_TEST_HOLD_AT";
const TTL: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(60);

/// LIM-15: a holder that was stopped for longer than its lease learns of the loss when it
/// continues, and another holder has the lease with a larger fence by then.
#[tokio::test]
async fn lim_15_a_stopped_process_is_told_that_it_lost_its_lease() {
    if let Ok(url) = std::env::var(URL) {
        return hold(&url).await;
    }
    let server = RedisServer::start();
    let lease =
        NamedLease::new(tidegate_store_redis::open(&server.url()).await.unwrap(), "bulk", TTL).unwrap();
    let mut holder = Holder::start(&server.url());
    assert_eq!(holder.says(), "held 1");
    assert!(lease.try_acquire().await.unwrap().held().is_none());
    holder.signal("-STOP");
    let guard = lease.acquire_within(PATIENCE).await.unwrap().held().expect("it runs out");
    assert_eq!(guard.fence(), 2);
    holder.signal("-CONT");
    assert_eq!(holder.says(), "lost");
    assert!(guard.is_held());
    assert!(guard.release().await.unwrap());
}

async fn hold(url: &str) {
    let store = tidegate_store_redis::open(url).await.unwrap();
    let lease = NamedLease::new(Arc::clone(&store) as _, "bulk", TTL).unwrap();
    let guard = lease.acquire_within(PATIENCE).await.unwrap().held().expect("it is free");
    println!("\n> held {}", guard.fence());
    tokio::time::timeout(PATIENCE, guard.lost()).await.expect("it is told");
    assert!(!guard.is_held());
    println!("\n> lost");
}

/// The other process, which ends with the test.
struct Holder {
    child: Child,
    said: Lines<BufReader<ChildStdout>>,
}

impl Holder {
    fn start(url: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", ITSELF, "--nocapture"])
            .env(URL, url)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, said }
    }

    /// The next line of its output.
    fn says(&mut self) -> String {
        let line = self.said.find_map(|line| Some(line.unwrap().strip_prefix("> ")?.to_owned()));
        line.expect("the holder says something")
    }

    fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
