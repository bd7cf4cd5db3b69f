//! Which connections are accepted, which are evicted, and which never are.

use super::*;

const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

fn far(last: u8) -> IpAddr {
    IpAddr::from([192, 0, 2, last])
}

fn taken(slots: &Arc<Slots>, from: IpAddr) -> Option<Arc<Slot>> {
    match slots.try_take(network(from)) {
        Some(SlotOutcome::Slot(slot)) => Some(Arc::new(slot)),
        Some(SlotOutcome::AddressFull) | None => None,
    }
}

fn is_evicted(slot: &Slot) -> bool {
    slot.state.evicted.is_cancelled()
}

/// Connections without any request are evicted first, the oldest before the others.
#[test]
fn the_oldest_that_asks_for_nothing_makes_room() {
    let slots = Slots::new(3);
    let asked = taken(&slots, HERE).unwrap();
    drop(asked.begin());
    let (older, newer) = (taken(&slots, HERE).unwrap(), taken(&slots, HERE).unwrap());
    let mut came = Vec::new();
    let mut evicted = Vec::new();
    for _ in 0..3 {
        came.push(taken(&slots, HERE).unwrap());
        came.last().unwrap().begin_for_good();
        evicted.push([&asked, &older, &newer].map(|slot| is_evicted(slot)));
    }
    assert_eq!(evicted, [[false, true, false], [false, true, true], [true, true, true]]);
    assert!(taken(&slots, HERE).is_none(), "all are at work");
}

/// When all are busy some more are accepted, but not all of them from one address; the rest wait.
#[test]
fn room_is_kept_when_all_are_at_work() {
    let slots = Slots::new_with_reserve(2);
    let at_work: Vec<_> = (0..2).map(|_| taken(&slots, HERE).unwrap()).collect();
    at_work.iter().for_each(Slot::begin_for_good);
    let mut reserved = Vec::new();
    while let Some(slot) = taken(&slots, HERE) {
        assert!(slot.is_reserved());
        reserved.push(slot);
    }
    assert_eq!(reserved.len(), RESERVED_PER_ADDRESS_MAX);
    let other = taken(&slots, far(1)).unwrap();
    assert!(other.is_reserved());
    drop(reserved);
    drop(at_work);
    assert!(!taken(&slots, HERE).unwrap().is_reserved(), "there is room again");
}

/// One address cannot have all connections, unless it is this machine; others neither wait for it
/// nor lose theirs.
#[test]
fn one_address_leaves_room_for_others() {
    let slots = Slots::new(8);
    let first = taken(&slots, far(2)).unwrap();
    let of_one: Vec<_> = (0..6).map(|_| taken(&slots, far(1)).unwrap()).collect();
    let next = taken(&slots, far(1)).unwrap();
    assert!(is_evicted(&of_one[0]) && !is_evicted(&first), "it makes room for itself");
    of_one[1..].iter().chain([&next]).for_each(Slot::begin_for_good);
    assert!(matches!(slots.try_take(far(1)), Some(SlotOutcome::AddressFull)));
    assert!(taken(&slots, far(3)).is_some());
    assert_eq!(network("2001:db8::1:2:3:4".parse().unwrap()), network("2001:db8::9".parse().unwrap()));
    assert_eq!(network("::ffff:192.0.2.1".parse().unwrap()), far(1));
}

/// A waiting connection is accepted when another ends or becomes idle.
#[tokio::test]
async fn who_waits_is_let_in() {
    let slots = Slots::new(1);
    let first = taken(&slots, HERE).unwrap();
    let request = first.begin();
    let waiting = tokio::spawn({
        let slots = Arc::clone(&slots);
        async move { slots.take(HERE).await }
    });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    drop(request);
    let SlotOutcome::Slot(second) = waiting.await.unwrap() else { panic!("it is let in") };
    assert!(is_evicted(&first));
    let second = Arc::new(second);
    second.begin_for_good();
    let waiting = tokio::spawn({
        let slots = Arc::clone(&slots);
        async move { slots.take(HERE).await }
    });
    second.state.requests.store(0, Ordering::SeqCst);
    drop((first, second));
    assert!(matches!(waiting.await.unwrap(), SlotOutcome::Slot(_)));
}

impl Slot {
    /// Starts a request that does not end.
    fn begin_for_good(self: &Arc<Self>) {
        self.state.has_asked.store(true, Ordering::SeqCst);
        self.state.requests.fetch_add(1, Ordering::SeqCst);
    }
}
