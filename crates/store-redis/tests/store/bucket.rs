//! One bucket, many processes: the test starts itself several times as a taker, each with a
//! connection of its own.

use std::process::{Command, Stdio};
use std::time::Duration;

use tidegate_core::operation::MICRO;
use tidegate_core::shared::bucket::{ReservationRequest, ReserveOutcome};
use tidegate_store::SharedState;
use tidegate_store_redis::RedisStore;

use crate::sample::RawClient;

const TAKERS: usize = 4;
const CAPACITY: u64 = 50;
const RATE: u64 = 400;
/// The number of takes before a taker stops.
const TURNS: u64 = 300;
/// The name of this test, to start itself.
const ITSELF: &str = "bucket::lim_6_lim_19_processes_never_get_more_than_capacity_and_refill";
/// The variable with the taker's store URL.
const URL: &str = "TIDEGATE_TEST_TAKE_FROM";

fn want(cost: u64) -> ReservationRequest {
    let (capacity, refill_per_s) = (CAPACITY * MICRO, RATE * MICRO);
    ReservationRequest { name: "contested".into(), cost: cost * MICRO, capacity, refill_per_s }
}

async fn now(eye: &mut RawClient) -> Duration {
    let (seconds, micros): (u64, u64) = eye.ask(&["TIME"]).await;
    Duration::from_secs(seconds) + Duration::from_micros(micros)
}

/// LIM-6, LIM-19: processes that take from one bucket on a real Redis never get more than capacity
/// plus refill.
#[tokio::test]
async fn lim_6_lim_19_processes_never_get_more_than_capacity_and_refill() {
    if let Ok(url) = std::env::var(URL) {
        return take(&url).await;
    }
    let server = tidegate_fixture::redis::RedisServer::start();
    let store = RedisStore::open(&server.url()).await.unwrap();
    let mut eye = RawClient::at(&server.url()).await;
    let start = now(&mut eye).await;
    assert!(matches!(store.reserve(vec![want(0)]).await.unwrap(), ReserveOutcome::Granted { .. }));
    let takers: Vec<_> = (0..TAKERS)
        .map(|_| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", ITSELF, "--nocapture"])
                .env(URL, server.url())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    let mut taken = 0;
    for taker in takers {
        let said = taker.wait_with_output().unwrap();
        let said = String::from_utf8(said.stdout).unwrap();
        let spent = said.lines().find_map(|line| line.split_once("took ")?.1.parse::<u64>().ok());
        taken += spent.unwrap_or_else(|| panic!("a taker failed: {said}"));
    }
    let elapsed = now(&mut eye).await - start;
    let most = u128::from(CAPACITY * MICRO) + elapsed.as_micros() * u128::from(RATE);
    assert!(u128::from(taken * MICRO) <= most, "{taken} taken in {elapsed:?}");
    assert!(taken > CAPACITY, "the takers got {taken}: nothing was contested");
    let level = store.observe_bucket("contested").await.unwrap().unwrap();
    assert!(level.tokens <= CAPACITY * MICRO);
}

/// A taker: takes as often as it can and prints how much it got.
async fn take(url: &str) {
    let store = RedisStore::open(url).await.unwrap();
    let mut taken = 0;
    for turn in 0..TURNS {
        let cost = 1 + turn % 3;
        match store.reserve(vec![want(cost)]).await.unwrap() {
            ReserveOutcome::Granted { remaining } => {
                assert!(remaining[0] <= (CAPACITY - cost) * MICRO);
                taken += cost;
            }
            ReserveOutcome::Wait { delay, .. } => assert!(!delay.is_zero()),
            ReserveOutcome::Never { which } => panic!("bucket {which} holds that much"),
        }
    }
    println!("took {taken}");
}
