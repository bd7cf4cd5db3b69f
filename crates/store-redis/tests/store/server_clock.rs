//! Leases, windows, buckets and owners by the server's own clock, as in production.

use std::time::Duration;

use tidegate_core::operation::MICRO;
use tidegate_core::shared::bucket::{ReservationRequest, ReserveOutcome, Settlement};
use tidegate_core::shared::lease::AcquireOutcome;
use tidegate_core::shared::record::{HolderToken, OnLapse, RecordClaim};
use tidegate_core::shared::window::OpenWindowOutcome;
use tidegate_store::nodes::NodeRecord;
use tidegate_store::{Log, Nodes, SharedState};
use tidegate_store_redis::RedisStore;

use crate::sample::{PARTITION, RawClient, TTL};

const HOUR: Duration = Duration::from_secs(3_600);

async fn micros(eye: &mut RawClient) -> u64 {
    let (seconds, micros): (u64, u64) = eye.ask(&["TIME"]).await;
    seconds * 1_000_000 + micros
}

/// LIM-5, LIM-15: times are the server's, to the microsecond; the time of a record is behind by one
/// round trip at most.
#[tokio::test]
async fn lim_5_lim_15_times_are_the_servers() {
    let server = tidegate_fixture::redis::RedisServer::start();
    let store = RedisStore::open(&server.url()).await.unwrap();
    let mut eye = RawClient::at(&server.url()).await;
    let before = micros(&mut eye).await;
    let AcquireOutcome::Held(lease) = store.acquire_lease("bulk", HOUR).await.unwrap() else {
        panic!("it was free")
    };
    let owner = store.acquire_partition(PARTITION, "test", HOUR).await.unwrap();
    let node = store.register("a", &NodeRecord::at("10.0.0.1:7400"), HOUR).await.unwrap();
    let OpenWindowOutcome::Ask(window) = store.open_window("w", 1, HOUR).await.unwrap() else {
        panic!("it was closed")
    };
    let claim = RecordClaim {
        fingerprint: [7; 32],
        token: HolderToken([1; 16]),
        lease: TTL,
        ttl: HOUR,
        on_lapse: OnLapse::TakeOver,
    };
    store.claim_record("key", claim).await.unwrap();
    let record = store.get_record("key").await.unwrap().expect("it is claimed");
    let after = micros(&mut eye).await;
    for until in [lease.until, owner.until, node.until, window.until, record.expires] {
        let asked = until.before(HOUR).as_micros();
        assert!((before..=after).contains(&asked), "{asked} is not between {before} and {after}");
    }
    assert!(matches!(store.acquire_lease("bulk", HOUR).await.unwrap(), AcquireOutcome::Busy { .. }));
    let kept = store.renew_lease("bulk", lease, 2 * HOUR).await.unwrap().expect("it is held");
    assert!(kept.until > lease.until && kept.fence == lease.fence);
    assert!(store.release_lease("bulk", kept).await.unwrap());
    let AcquireOutcome::Held(next) = store.acquire_lease("bulk", HOUR).await.unwrap() else {
        panic!("it is free")
    };
    assert_eq!(next.fence, lease.fence + 1);
    assert_eq!(
        (store.partition_owners().await.unwrap().len(), store.list_nodes().await.unwrap()),
        (1, vec![node])
    );
}

/// A window expires by itself when it closes; a lease, a bucket and a record never do: that would
/// change results.
#[tokio::test]
async fn only_windows_go_by_themselves() {
    let server = tidegate_fixture::redis::RedisServer::start();
    let store = RedisStore::open(&server.url()).await.unwrap();
    let mut eye = RawClient::at(&server.url()).await;
    store.open_window("w", 1, HOUR).await.unwrap();
    store.acquire_lease("l", TTL).await.unwrap();
    let want = ReservationRequest { name: "b".into(), cost: MICRO, capacity: 2 * MICRO, refill_per_s: MICRO };
    store.reserve(vec![want]).await.unwrap();
    let left: i64 = eye.ask(&["PTTL", "tg:{window:w}"]).await;
    assert!((3_590_000..=3_600_001).contains(&left), "{left} ms");
    assert_eq!(eye.ask::<i64>(&["PTTL", "tg:{lease:l}"]).await, -1);
    assert_eq!(eye.ask::<i64>(&["PTTL", "tg:{bucket:}:b"]).await, -1);
}

/// LIM-5: a server that forgets its scripts between two requests, or during one, grants and refuses
/// as before: each is sent again whole, and counts once.
#[tokio::test]
async fn lim_5_a_server_that_forgets_its_scripts_grants_the_same() {
    let server = tidegate_fixture::redis::RedisServer::start();
    let store = RedisStore::open(&server.url()).await.unwrap();
    let mut eye = RawClient::at(&server.url()).await;
    let want = |name: &str| ReservationRequest {
        name: name.into(),
        cost: MICRO,
        capacity: 20 * MICRO,
        // Nothing that counts comes back during the test.
        refill_per_s: 1,
    };
    for round in 1..=20 {
        let flush = eye.ask::<String>(&["SCRIPT", "FLUSH"]);
        // One bucket and several take different ways.
        let wanted = if round % 4 < 2 { vec![want("a/1")] } else { vec![want("a/1"), want("a/2")] };
        let reserve = store.reserve(wanted);
        let reserved =
            if round % 2 == 0 { tokio::join!(flush, reserve).1 } else { (flush.await, reserve.await).1 };
        let ReserveOutcome::Granted { remaining } = reserved.unwrap() else {
            panic!("refused in round {round}")
        };
        assert_eq!(remaining[0].div_euclid(MICRO), 20 - round, "{remaining:?}");
    }
    eye.ask::<String>(&["SCRIPT", "FLUSH"]).await;
    let refused = store.reserve(vec![want("a/1")]).await.unwrap();
    assert!(matches!(refused, ReserveOutcome::Wait { .. }), "{refused:?}");
    let settled = Settlement { reserved: 2 * MICRO, actual: MICRO };
    eye.ask::<String>(&["SCRIPT", "FLUSH"]).await;
    assert!(
        store.settle_bucket("a/2", settled).await.unwrap().is_some_and(|level| level.tokens >= 11 * MICRO)
    );
    eye.ask::<String>(&["SCRIPT", "FLUSH"]).await;
    assert!(store.observe_bucket("a/2").await.unwrap().is_some_and(|level| level.tokens >= 11 * MICRO));
}

/// LIM-5: the scripts of a bucket keep the contract of `docs/redis-keys.md`, for programs that call
/// them without this library; both take from one bucket.
#[tokio::test]
async fn lim_5_the_scripts_of_a_bucket_keep_their_contract() {
    const KEY: &str = "tg:{bucket:shop}:shop/requests";
    const RESERVE: &str = concat!(
        include_str!("../../src/scripts/bucket_quick.lua"),
        include_str!("../../src/scripts/clock.lua"),
        include_str!("../../src/scripts/drip.lua"),
        include_str!("../../src/scripts/bucket_reserve.lua")
    );
    const SETTLE: &str = concat!(
        include_str!("../../src/scripts/clock.lua"),
        include_str!("../../src/scripts/drip.lua"),
        include_str!("../../src/scripts/bucket_settle.lua")
    );
    let server = tidegate_fixture::redis::RedisServer::start();
    let store = RedisStore::open(&server.url()).await.unwrap();
    let mut eye = RawClient::at(&server.url()).await;
    let reserve = ["EVAL", RESERVE, "1", KEY, "", "1000000", "2000000", "1"];
    let first: String = eye.ask(&reserve).await;
    let (time, before) = first.split_once(" 1;").expect("granted");
    let (seconds, micros) = time.split_once(' ').expect("two numbers");
    let at: u64 = seconds.parse::<u64>().unwrap() * 1_000_000 + micros.parse::<u64>().unwrap();
    assert_eq!(before, "", "there was none before");
    assert_eq!(eye.ask::<String>(&["GET", KEY]).await, format!("1000000 0 {at} 2000000 1"));
    let want = ReservationRequest {
        name: "shop/requests".into(),
        cost: MICRO,
        capacity: 2 * MICRO,
        refill_per_s: 1,
    };
    assert!(matches!(store.reserve(vec![want]).await.unwrap(), ReserveOutcome::Granted { .. }));
    let refused: String = eye.ask(&reserve).await;
    let (_, before) = refused.split_once(" 0;").expect("refused");
    let figures: Vec<u64> = before.split(' ').map(|figure| figure.parse().unwrap()).collect();
    assert!(figures.len() == 5 && figures[0] < 100 && figures[3..] == [2_000_000, 1], "{before}");
    let settle = ["EVAL", SETTLE, "1", KEY, "", "500000", "1"];
    let (_, before): (String, Option<String>) = eye.ask(&settle).await;
    assert!(before.is_some());
    let level = store.observe_bucket("shop/requests").await.unwrap().unwrap();
    assert!((500_000..500_100).contains(&level.tokens), "{level:?}");
    let (_, none): (String, Option<String>) =
        eye.ask(&["EVAL", SETTLE, "1", "tg:{bucket:}:no", "", "1", "1"]).await;
    assert_eq!(none, None);
}

/// LIM-5: the delay of a refusal is exact; LIM-7: it takes from neither.
#[tokio::test]
async fn lim_5_lim_7_a_refusal_says_when_and_takes_nothing() {
    let server = tidegate_fixture::redis::RedisServer::start();
    let store = RedisStore::open(&server.url()).await.unwrap();
    let want = |name: &str, cost| ReservationRequest {
        name: name.into(),
        cost: cost * MICRO,
        capacity: 5 * MICRO,
        refill_per_s: 10,
    };
    let both = || vec![want("shop/a", 1), want("page/b", 4)];
    assert_eq!(
        store.reserve(both()).await.unwrap(),
        ReserveOutcome::Granted { remaining: vec![4 * MICRO, MICRO] }
    );
    let ReserveOutcome::Wait { delay, remaining } = store.reserve(both()).await.unwrap() else {
        panic!("granted twice")
    };
    // Ten micro-tokens are refilled each second, so three tokens take 300,000 seconds.
    assert!(delay > Duration::from_secs(299_990) && delay <= Duration::from_secs(300_000), "{delay:?}");
    assert!(remaining[0] >= 4 * MICRO && remaining[0] < 4 * MICRO + 1_000, "{remaining:?}");
    let level =
        store.settle_bucket("page/b", Settlement { reserved: 4 * MICRO, actual: MICRO }).await.unwrap();
    assert!(level.is_some_and(|level| level.tokens >= 4 * MICRO));
    assert_eq!(store.reserve(vec![want("shop/a", 6)]).await.unwrap(), ReserveOutcome::Never { which: 0 });
}
