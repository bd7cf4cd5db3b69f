//! What the layer requires of every store.

use std::sync::Arc;
use std::time::Duration;

use tidegate_core::shared::record::{ForgetOutcome, HolderToken, OnLapse, RecordClaim};
use tidegate_idempotency::{InFlightPolicy, KeyFilter, Policy, RecordName};
use tidegate_store::Store;
use tokio::sync::Barrier;
use tokio::time::Instant;

use crate::service::{HandlerBehavior, Process};

const AT_ONCE: usize = 100;

pub(crate) async fn all(stores: &[Arc<dyn Store>]) {
    one_of_many_runs(stores).await;
    those_who_wait_get_its_answer(stores).await;
    a_dead_owner_is_taken_over(stores).await;
    bodies_come_back_byte_for_byte(stores).await;
    keys_are_listed_and_freed(stores).await;
}

/// Sends equal requests over all connections at the same moment; returns how many got which status.
async fn together(stores: &[Arc<dyn Store>], work: &HandlerBehavior, policy: &Policy, key: &str) -> Vec<u16> {
    let start = Arc::new(Barrier::new(AT_ONCE));
    let requests = (0..AT_ONCE).map(|nth| {
        let process = Process::new(&stores[nth % stores.len()], work, policy.clone());
        let (start, key) = (Arc::clone(&start), key.to_owned());
        tokio::spawn(async move {
            start.wait().await;
            process.post(&key, "{}").await.0
        })
    });
    let mut statuses = Vec::new();
    for request in requests.collect::<Vec<_>>() {
        statuses.push(request.await.unwrap());
    }
    statuses
}

/// IDM-8: of a hundred concurrent requests over four processes exactly one is handled.
async fn one_of_many_runs(stores: &[Arc<dyn Store>]) {
    let policy = Policy::default().with_store_patience(Duration::from_secs(20));
    for round in 0..5 {
        let work = HandlerBehavior::new(Duration::from_millis(300), "made");
        let statuses = together(stores, &work, &policy, &format!("many-{round}")).await;
        assert_eq!(work.runs(), 1, "round {round}: {statuses:?}");
        assert!(statuses.iter().all(|status| [200, 409].contains(status)), "{statuses:?}");
    }
}

/// IDM-15: the waiters get the one response, in whichever process they wait.
async fn those_who_wait_get_its_answer(stores: &[Arc<dyn Store>]) {
    let wait = InFlightPolicy::Wait(Duration::from_secs(60));
    let policy = Policy::default().with_in_flight(wait).with_store_patience(Duration::from_secs(20));
    let work = HandlerBehavior::new(Duration::from_millis(200), "made");
    let statuses = together(stores, &work, &policy, "waiting").await;
    assert_eq!((work.runs(), statuses), (1, vec![200; AT_ONCE]));
}

/// IDM-7: a key whose owner died is free when the lease has expired, not before and not an hour
/// later.
async fn a_dead_owner_is_taken_over(stores: &[Arc<dyn Store>]) {
    let work = HandlerBehavior::new(Duration::ZERO, "made");
    let process = Process::new(&stores[0], &work, Policy::default());
    process.post("probe", "{}").await;
    let name = RecordName::parse("- POST /orders probe").unwrap();
    let fingerprint = process.gate.keys().show(&name).await.unwrap().unwrap().fingerprint;
    let lease = Duration::from_secs(1);
    let ttl = Duration::from_secs(3_600);
    let claim =
        RecordClaim { fingerprint, token: HolderToken([1; 16]), lease, ttl, on_lapse: OnLapse::TakeOver };
    let died = Instant::now();
    stores[stores.len() - 1].claim_record("- POST /orders dead", claim).await.unwrap();
    while process.post("dead", "{}").await.0 == 409 {
        assert!(died.elapsed() < Duration::from_secs(60), "the key of a dead owner stays blocked");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(died.elapsed() > Duration::from_millis(900), "taken over after {:?}", died.elapsed());
    assert!(!stores[0].complete_record("- POST /orders dead", claim.token, "late".into()).await.unwrap());
    assert_eq!(process.post("dead", "{}").await.2, "made");
}

/// IDM-11, IDM-19: any bytes, and many of them.
async fn bodies_come_back_byte_for_byte(stores: &[Arc<dyn Store>]) {
    let answer: Vec<u8> =
        (0..900_000_u32).map(|byte| (byte.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let work = HandlerBehavior::new(Duration::ZERO, answer.clone());
    for store in stores {
        let (status, _, body) = Process::new(store, &work, Policy::default()).post("bytes", "{}").await;
        assert!(status == 200 && body == answer);
    }
    assert_eq!(work.runs(), 1);
}

/// IDM-22: what one process stored is listed, expired and new again in another.
async fn keys_are_listed_and_freed(stores: &[Arc<dyn Store>]) {
    let work = HandlerBehavior::new(Duration::ZERO, "made");
    let (one, other) = (&stores[0], &stores[stores.len() - 1]);
    let process = Process::new(one, &work, Policy::default());
    for nth in 0..25 {
        process.post(&format!("listed-{nth}"), "{}").await;
    }
    let keys = Process::new(other, &work, Policy::default()).gate.keys();
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = keys.list(&KeyFilter::default(), after, 10).await.unwrap();
        assert!(page.keys.len() <= 10);
        found.extend(page.keys.into_iter().map(|listed| listed.name.key.as_str().to_owned()));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    found.retain(|key| key.starts_with("listed-"));
    found.sort();
    found.dedup();
    assert_eq!(found.len(), 25, "{found:?}");
    let name = RecordName::parse("- POST /orders listed-7").unwrap();
    assert_eq!(keys.expire(&name, "a person").await.unwrap(), ForgetOutcome::Gone);
    let before = work.runs();
    process.post("listed-7", "{}").await;
    assert_eq!(work.runs(), before + 1);
}

/// IDM-7: a saved response is there for the next process too.
pub(crate) async fn answers_outlive_the_process(store: &Arc<dyn Store>) {
    let work = HandlerBehavior::new(Duration::ZERO, "not made again");
    let (status, headers, body) = Process::new(store, &work, Policy::default()).post("dead", "{}").await;
    assert_eq!((status, &body[..], work.runs()), (200, &b"made"[..], 0));
    assert_eq!(headers["idempotent-replayed"], "true");
}
