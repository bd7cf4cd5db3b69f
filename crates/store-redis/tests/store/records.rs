//! Idempotency records as stored in Redis: what a claim and its response cost, what an interrupted
//! pipeline leaves, and listing while records are removed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tidegate_contract::ManualClock;
use tidegate_core::shared::record::{
    ABANDONED_RETENTION, ForgetOutcome, ForgetTarget, HolderToken, OnLapse, RecordClaim, RecordClaimOutcome,
};
use tidegate_fixture::redis::RedisServer;
use tidegate_store::{Clock, SharedState, StoreErrorKind};
use tidegate_store_redis::RedisStore;
use tokio::time::Instant;

use crate::sample::{RawClient, kind};

const CLAIM: RecordClaim = RecordClaim {
    fingerprint: [7; 32],
    token: HolderToken([1; 16]),
    lease: Duration::from_secs(30),
    ttl: Duration::from_secs(3_600),
    on_lapse: OnLapse::TakeOver,
};

/// How often the server has run a command.
async fn calls(eye: &mut RawClient, command: &str) -> u64 {
    let stats: String = eye.ask(&["INFO", "commandstats"]).await;
    let line = stats.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{command}:calls=")));
    line.and_then(|line| line.split(',').next()?.parse().ok()).unwrap_or_default()
}

/// IDM-5: a claim and its response take one round trip each, of plain commands but for a script of
/// two; a replay is plain. Their duration compared with two bare `SET` is printed.
#[tokio::test]
async fn idm_5_a_claim_and_its_answer_are_one_trip_each() {
    const PAIRS: u64 = 2_000;
    let server = RedisServer::start();
    let store = RedisStore::open(&server.url()).await.unwrap();
    let mut eye = RawClient::at(&server.url()).await;
    let answer = Bytes::from(vec![b'x'; 200]);
    // Loads the scripts.
    store.claim_record("first", CLAIM).await.unwrap();
    store.complete_record("first", CLAIM.token, answer.clone()).await.unwrap();
    eye.ask::<String>(&["CONFIG", "RESETSTAT"]).await;
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    let value = String::from_utf8(answer.to_vec()).unwrap();
    let start = Instant::now();
    for pair in 0..PAIRS {
        let key = format!("key-{pair}");
        let start = Instant::now();
        assert_eq!(
            store.claim_record(&key, CLAIM).await.unwrap(),
            RecordClaimOutcome::Granted { taken_over: false }
        );
        assert!(store.complete_record(&key, CLAIM.token, answer.clone()).await.unwrap());
        ours.push(start.elapsed());
        let start = Instant::now();
        eye.ask::<Option<String>>(&["SET", &key, "claimed", "NX", "PX", "3600000"]).await;
        eye.ask::<String>(&["SET", &key, &value, "PX", "3600000"]).await;
        bare.push(start.elapsed());
    }
    // Two of every four `SET` are the bare ones.
    for (command, wanted) in
        [("zadd", 1), ("set", 4), ("evalsha", 1), ("getrange", 1), ("eval", 0), ("get", 0)]
    {
        assert_eq!(calls(&mut eye, command).await, wanted * PAIRS, "{command}");
    }
    for pair in 0..PAIRS {
        let found = store.claim_record(&format!("key-{pair}"), CLAIM).await.unwrap();
        assert_eq!(found, RecordClaimOutcome::Completed(answer.clone()));
    }
    for (command, wanted) in [("zadd", 2), ("set", 5), ("evalsha", 1), ("getrange", 1), ("get", 0)] {
        assert_eq!(calls(&mut eye, command).await, wanted * PAIRS, "{command} with replays");
    }
    let (asked, most) = (calls(&mut eye, "time").await, start.elapsed().as_secs() + 1);
    assert!(asked <= most, "the time was asked for {asked} times in {most} s");
    ours.sort_unstable();
    bare.sort_unstable();
    let middle = PAIRS as usize / 2;
    println!("claim and complete take {:?}; SET NX and SET take {:?}", ours[middle], bare[middle]);
}

/// The score of a key in the index.
async fn score(eye: &mut RawClient, key: &str) -> Option<u64> {
    for index in eye.keys("tg:{record:*}:due").await {
        if let Some(score) = eye.ask::<Option<f64>>(&["ZSCORE", &index, key]).await {
            return Some(score as u64);
        }
    }
    None
}

/// When a record is due to be swept: the last moment of its time still belongs to it.
fn just_after() -> Duration {
    CLAIM.ttl + Duration::from_micros(1)
}

/// IDM-6: an index entry without a record, as an interrupted claim leaves it, is harmless: the next
/// claim repairs it, and a sweep removes it when there is none.
#[tokio::test]
async fn idm_6_an_entry_without_a_record_does_no_harm() {
    let server = RedisServer::start();
    let clock = ManualClock::today();
    let store = RedisStore::open_with_clock(&server.url(), Arc::clone(&clock) as _).await.unwrap();
    let mut eye = RawClient::at(&server.url()).await;
    for far in [clock.now().before(CLAIM.ttl), clock.now().after(CLAIM.ttl * 5)] {
        store.claim_record("key", CLAIM).await.unwrap();
        let (index, record) = (eye.keys("tg:*:due").await.remove(0), eye.keys("tg:*:r:key").await.remove(0));
        assert_eq!(score(&mut eye, "key").await, Some(clock.now().after(just_after()).as_micros()));
        eye.ask::<u64>(&["DEL", &record]).await;
        eye.ask::<u64>(&["ZADD", &index, &far.as_micros().to_string(), "key"]).await;
        assert_eq!(store.list_records(None, 5).await.unwrap().records, []);
        assert_eq!(
            store.claim_record("key", CLAIM).await.unwrap(),
            RecordClaimOutcome::Granted { taken_over: false }
        );
        assert_eq!(score(&mut eye, "key").await, Some(clock.now().after(just_after()).as_micros()));
        assert_eq!(store.list_records(None, 5).await.unwrap().records.len(), 1);
        eye.ask::<u64>(&["DEL", &record]).await;
        clock.advance(just_after());
        assert_eq!(store.sweep_records(5).await.unwrap(), 0);
        assert_eq!(score(&mut eye, "key").await, None);
    }
}

/// IDM-6: an entry that comes up too early costs a look: a record and its response stay until they
/// expire.
#[tokio::test]
async fn idm_6_an_entry_that_comes_too_early_takes_nothing_away() {
    let server = RedisServer::start();
    let clock = ManualClock::today();
    let store = RedisStore::open_with_clock(&server.url(), Arc::clone(&clock) as _).await.unwrap();
    let mut eye = RawClient::at(&server.url()).await;
    let answer = Bytes::from_static(b"the answer");
    for key in ["done", "in work"] {
        store.claim_record(key, CLAIM).await.unwrap();
    }
    assert!(store.complete_record("done", CLAIM.token, answer.clone()).await.unwrap());
    for index in eye.keys("tg:{record:*}:due").await {
        for key in ["done", "in work"] {
            eye.ask::<u64>(&["ZADD", &index, "XX", "7", key]).await;
        }
    }
    assert_eq!(store.sweep_records(5).await.unwrap(), 0);
    assert_eq!(store.claim_record("done", CLAIM).await.unwrap(), RecordClaimOutcome::Completed(answer));
    for key in ["done", "in work"] {
        assert_eq!(score(&mut eye, key).await, Some(clock.now().after(just_after()).as_micros()), "{key}");
    }
    assert!(store.complete_record("in work", CLAIM.token, Bytes::new()).await.unwrap());
    clock.advance(just_after());
    assert_eq!(store.sweep_records(5).await.unwrap(), 2);
}

/// IDM-22: every claim whose connection was cut, at whatever moment, is listed and swept if it
/// exists at all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idm_22_whatever_was_cut_is_listed() {
    let server = RedisServer::start();
    let clock = ManualClock::today();
    let store = RedisStore::open_with_clock(&server.url(), Arc::clone(&clock) as _).await.unwrap();
    let mut eye = RawClient::at(&server.url()).await;
    let mut unsure = 0;
    for round in 0..200_u32 {
        let key = format!("key-{round}");
        let cut = async {
            for _ in 0..round / 4 {
                tokio::task::yield_now().await;
            }
            eye.ask::<u64>(&["CLIENT", "KILL", "TYPE", "normal"]).await;
        };
        match tokio::join!(store.claim_record(&key, CLAIM), cut).0 {
            Ok(claimed) => assert_eq!(claimed, RecordClaimOutcome::Granted { taken_over: false }),
            Err(error) => {
                unsure += u32::from(error.kind() == StoreErrorKind::Unsure);
                if round % 2 == 0 {
                    // The call after the cut may use a connection that is not yet known to be lost.
                    let mut again = store.claim_record(&key, CLAIM).await;
                    for _ in 0..5 {
                        if again.is_err() {
                            again = store.claim_record(&key, CLAIM).await;
                        }
                    }
                    assert_eq!(
                        again.unwrap(),
                        RecordClaimOutcome::Granted { taken_over: false },
                        "it is known again"
                    );
                }
            }
        }
    }
    assert!(unsure > 0, "no connection was cut in time");
    let there = eye.keys("tg:{record:*}:r:*").await.len();
    assert_eq!(store.list_records(None, 500).await.unwrap().records.len(), there);
    clock.advance(CLAIM.ttl + ABANDONED_RETENTION);
    assert_eq!(store.sweep_records(500).await.unwrap(), there);
    assert!(eye.keys("tg:{record:*").await.is_empty());
}

/// A record of the previous layout is under another name, and does not interfere.
#[tokio::test]
async fn records_of_the_first_layout_are_in_nobodys_way() {
    let server = RedisServer::start();
    let mut eye = RawClient::at(&server.url()).await;
    eye.ask::<String>(&["SET", "tg:format", "1"]).await;
    for shard in 0..16 {
        let tag = format!("tg:{{record:{shard}}}");
        eye.ask::<u64>(&["HSET", &format!("{tag}:k:key"), "print", "x", "until", ""]).await;
        eye.ask::<u64>(&["ZADD", &format!("{tag}:expires"), "1", "key"]).await;
    }
    let store = RedisStore::open(&server.url()).await.unwrap();
    assert_eq!(eye.ask::<String>(&["GET", "tg:format"]).await, "3");
    assert_eq!(
        store.claim_record("key", CLAIM).await.unwrap(),
        RecordClaimOutcome::Granted { taken_over: false }
    );
    assert_eq!(store.sweep_records(50).await.unwrap(), 0);
    assert_eq!(store.list_records(None, 5).await.unwrap().records.len(), 1);
}

/// Data that is not a record of this program is unreadable: it is neither claimed nor overwritten.
#[tokio::test]
async fn what_is_no_record_is_left_alone() {
    let server = RedisServer::start();
    let store = RedisStore::open(&server.url()).await.unwrap();
    let mut eye = RawClient::at(&server.url()).await;
    store.claim_record("key", CLAIM).await.unwrap();
    let record = eye.keys("tg:*:r:key").await.remove(0);
    eye.ask::<String>(&["SET", &record, "something else"]).await;
    assert_eq!(kind(store.claim_record("key", CLAIM).await), StoreErrorKind::Unreadable);
    assert_eq!(
        kind(store.complete_record("key", CLAIM.token, Bytes::new()).await),
        StoreErrorKind::Unreadable
    );
    assert_eq!(kind(store.get_record("key").await), StoreErrorKind::Unreadable);
    let index = eye.keys("tg:*:due").await.remove(0);
    eye.ask::<u64>(&["ZADD", &index, "1", "key", "2", "long gone"]).await;
    assert_eq!(store.sweep_records(50).await.unwrap(), 0, "it does not stop the sweep");
    assert_eq!(eye.ask::<u64>(&["ZCARD", &index]).await, 1, "what was behind it in the index has gone");
    assert_eq!(eye.ask::<String>(&["GET", &record]).await, "something else");
}

/// IDM-18: a list resumes where it was, even when the record it stopped at has been removed and
/// many have the same score.
#[tokio::test]
async fn idm_18_a_list_goes_on_behind_a_record_that_has_gone() {
    const RECORDS: usize = 700;
    let server = RedisServer::start();
    let store = RedisStore::open_with_clock(&server.url(), ManualClock::today()).await.unwrap();
    let keys: BTreeSet<String> = (0..RECORDS).map(|number| format!("key-{number}")).collect();
    for key in &keys {
        store.claim_record(key, CLAIM).await.unwrap();
    }
    let (mut found, mut after, mut pages) = (Vec::new(), None, 0);
    loop {
        let page = store.list_records(after, 5).await.unwrap();
        pages += 1;
        if let Some((last, _)) = page.records.last() {
            assert_eq!(store.forget_record(last, ForgetTarget::Claim).await.unwrap(), ForgetOutcome::Gone);
        }
        found.extend(page.records.into_iter().map(|(key, _)| key));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(found.len(), RECORDS, "each is listed once, on {pages} pages");
    assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), keys);
    assert_eq!(kind(store.list_records(Some("nowhere".to_owned()), 5).await), StoreErrorKind::Invalid);
}

/// IDM-6: a record that expired unfinished is looked at once and then left until its grace day is
/// over; if completed after all, the next sweep removes it.
#[tokio::test]
async fn idm_6_what_expired_unfinished_does_not_stand_in_the_way_of_a_sweep() {
    let server = RedisServer::start();
    let clock = ManualClock::today();
    let store = RedisStore::open_with_clock(&server.url(), Arc::clone(&clock) as _).await.unwrap();
    let mut eye = RawClient::at(&server.url()).await;
    for number in 0..300 {
        store.claim_record(&format!("key-{number}"), CLAIM).await.unwrap();
    }
    clock.advance(just_after());
    assert_eq!(store.sweep_records(1).await.unwrap(), 0);
    eye.ask::<String>(&["CONFIG", "RESETSTAT"]).await;
    assert_eq!(store.sweep_records(1).await.unwrap(), 0);
    assert_eq!(calls(&mut eye, "getrange").await, 0, "the second sweep looks at none of them");
    assert!(store.complete_record("key-7", CLAIM.token, Bytes::new()).await.unwrap());
    assert_eq!(store.sweep_records(10).await.unwrap(), 1);
}
