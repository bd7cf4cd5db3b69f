//! The timeouts of a connection.

use std::net::{IpAddr, Ipv4Addr};

use super::super::slots::{SlotOutcome, Slots};
use super::*;

const FIRST: Duration = Duration::from_secs(3);
const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

async fn slot(slots: &Arc<Slots>) -> Arc<Slot> {
    match slots.take(HERE).await {
        SlotOutcome::Slot(slot) => Arc::new(slot),
        SlotOutcome::AddressFull => panic!("this machine may have all"),
    }
}

/// The time until it is overdue.
async fn time_of(slot: &Slot) -> Duration {
    let begun = Instant::now();
    wait_until_overdue(slot, FIRST).await;
    begun.elapsed()
}

fn is_about(found: Duration, expected: Duration) -> bool {
    found >= expected && found < expected + Duration::from_millis(10)
}

/// A connection has one timeout to its first request, another between two, and none while one is in
/// flight.
#[tokio::test(start_paused = true)]
async fn a_connection_without_a_request_has_its_time() {
    let slots = Slots::new_with_reserve(1);
    let slot = slot(&slots).await;
    assert!(is_about(time_of(&slot).await, FIRST));
    let request = slot.begin();
    assert!(timeout(IDLE_MAX * 3, wait_until_overdue(&slot, FIRST)).await.is_err());
    drop(request);
    assert!(is_about(time_of(&slot).await, IDLE_MAX));
}

/// A connection beyond the maximum has a fixed lifetime, whatever it does.
#[tokio::test(start_paused = true)]
async fn a_reserved_connection_has_its_time() {
    let slots = Slots::new_with_reserve(1);
    let usual = slot(&slots).await;
    let _at_work = usual.begin();
    let reserved = slot(&slots).await;
    let _under_way = reserved.begin();
    assert!(reserved.is_reserved() && is_about(time_of(&reserved).await, RESERVED_TIME));
    let slow = call_reserved(std::future::pending()).await.unwrap();
    assert_eq!(slow.status(), 503);
}
