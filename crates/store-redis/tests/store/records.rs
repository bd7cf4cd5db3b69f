//! Idempotency records as they lie in Redis: what a claim and its answer cost, and pages of a list that records leave
//! meanwhile.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use tidegate_contract::HandClock;
use tidegate_core::shared::record::{Claim, Claimed, Forget, Forgot, OnLapse, Token};
use tidegate_fixture::redis::Redis as Server;
use tidegate_store::{Kind, Shared};
use tidegate_store_redis::Redis;
use tokio::time::Instant;

use crate::sample::{Eye, kind};

const CLAIM: Claim = Claim {
    fingerprint: [7; 32],
    token: Token([1; 16]),
    lease: Duration::from_secs(30),
    ttl: Duration::from_secs(3_600),
    on_lapse: OnLapse::TakeOver,
};

/// How often the server has run a command.
async fn calls(eye: &mut Eye, command: &str) -> u64 {
    let stats: String = eye.ask(&["INFO", "commandstats"]).await;
    let line = stats.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{command}:calls=")));
    line.and_then(|line| line.split(',').next()?.parse().ok()).unwrap_or_default()
}

/// IDM-5: a claim and its answer are one trip each, and five commands in the server. How long they take beside two
/// bare `SET` is printed.
#[tokio::test]
async fn idm_5_a_claim_and_its_answer_are_one_trip_each() {
    const PAIRS: u64 = 2_000;
    let server = Server::start();
    let store = Redis::open(&server.url()).await.unwrap();
    let mut eye = Eye::at(&server.url()).await;
    let answer = Bytes::from(vec![b'x'; 200]);
    // Makes the scripts known.
    store.claim_record("first", CLAIM).await.unwrap();
    store.complete_record("first", CLAIM.token, answer.clone()).await.unwrap();
    eye.ask::<String>(&["CONFIG", "RESETSTAT"]).await;
    let start = Instant::now();
    for pair in 0..PAIRS {
        let key = format!("key-{pair}");
        assert_eq!(store.claim_record(&key, CLAIM).await.unwrap(), Claimed::Yours { taken_over: false });
        assert!(store.complete_record(&key, CLAIM.token, answer.clone()).await.unwrap());
    }
    let records = start.elapsed() / PAIRS as u32;
    for (command, wanted) in
        [("evalsha", 2), ("eval", 0), ("time", 1), ("hmget", 2), ("hset", 2), ("zadd", 1)]
    {
        assert_eq!(calls(&mut eye, command).await, wanted * PAIRS, "{command}");
    }
    let value = String::from_utf8(answer.to_vec()).unwrap();
    let start = Instant::now();
    for pair in 0..PAIRS {
        let key = format!("bare-{pair}");
        eye.ask::<Option<String>>(&["SET", &key, "claimed", "NX", "PX", "3600000"]).await;
        eye.ask::<String>(&["SET", &key, &value, "PX", "3600000"]).await;
    }
    println!("claim and complete take {records:?}; SET NX and SET take {:?}", start.elapsed() / PAIRS as u32);
}

/// IDM-18: a list goes on where it was, also when the record it stopped at has gone and many have the same score.
#[tokio::test]
async fn idm_18_a_list_goes_on_behind_a_record_that_has_gone() {
    const RECORDS: usize = 700;
    let server = Server::start();
    let store = Redis::open_with_clock(&server.url(), HandClock::today()).await.unwrap();
    let keys: BTreeSet<String> = (0..RECORDS).map(|number| format!("key-{number}")).collect();
    for key in &keys {
        store.claim_record(key, CLAIM).await.unwrap();
    }
    let (mut found, mut after, mut pages) = (Vec::new(), None, 0);
    loop {
        let page = store.list_records(after, 5).await.unwrap();
        pages += 1;
        if let Some((last, _)) = page.records.last() {
            assert_eq!(store.forget_record(last, Forget::Claim).await.unwrap(), Forgot::Gone);
        }
        found.extend(page.records.into_iter().map(|(key, _)| key));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(found.len(), RECORDS, "each is listed once, on {pages} pages");
    assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), keys);
    assert_eq!(kind(store.list_records(Some("nowhere".to_owned()), 5).await), Kind::Invalid);
}

/// IDM-6: what expired unfinished is looked at once and then left until its day is over; completed after all, it goes
/// with the next sweep.
#[tokio::test]
async fn idm_6_what_expired_unfinished_does_not_stand_in_the_way_of_a_sweep() {
    let server = Server::start();
    let clock = HandClock::today();
    let store = Redis::open_with_clock(&server.url(), std::sync::Arc::clone(&clock) as _).await.unwrap();
    let mut eye = Eye::at(&server.url()).await;
    for number in 0..300 {
        store.claim_record(&format!("key-{number}"), CLAIM).await.unwrap();
    }
    clock.advance(CLAIM.ttl);
    assert_eq!(store.sweep_records(1).await.unwrap(), 0);
    eye.ask::<String>(&["CONFIG", "RESETSTAT"]).await;
    assert_eq!(store.sweep_records(1).await.unwrap(), 0);
    assert_eq!(calls(&mut eye, "hmget").await, 0, "the second sweep looks at none of them");
    assert!(store.complete_record("key-7", CLAIM.token, Bytes::new()).await.unwrap());
    assert_eq!(store.sweep_records(10).await.unwrap(), 1);
}
