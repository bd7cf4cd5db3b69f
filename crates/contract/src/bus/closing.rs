//! A bus that is closed or dropped ends its subscriptions and serves no further call.

use bytes::Bytes;
use tidegate_bus::{BusErrorKind, FilterToken};

use super::{
    BusBackend, BusServer, connect, fail, filter, next_event, next_text, publish, subject, subscribe,
};

/// A subscriber reads what it has received and then the end; later calls fail as closed.
pub async fn a_closed_bus_ends_its_subscriptions(backend: &dyn BusBackend) {
    let bus = connect(backend).await;
    let on = subject(&["tg", "closing"]);
    let mut exact = subscribe(&bus, &(&on).into()).await;
    let mut wild = subscribe(&bus, &filter(&[FilterToken::Rest])).await;
    publish(&bus, &on, "last").await;
    assert_eq!(next_text(&mut exact).await, "last");
    assert_eq!(next_text(&mut wild).await, "last");
    bus.close();
    for subscription in [&mut exact, &mut wild] {
        assert_eq!(next_event(subscription).await, None);
    }
    let refused = [
        bus.publish(&on, Bytes::new()).await.err().map(|error| error.kind()),
        bus.subscribe(&(&on).into()).await.err().map(|error| error.kind()),
    ];
    assert_eq!(refused, [Some(BusErrorKind::Closed); 2]);
}

/// The same when the bus is dropped; others go on.
pub async fn a_dropped_bus_ends_its_subscriptions(backend: &dyn BusServer) {
    let (dropped, other) = (connect(backend).await, connect(backend).await);
    let on = subject(&["tg", "closing"]);
    let mut ending = subscribe(&dropped, &(&on).into()).await;
    let mut staying = subscribe(&other, &(&on).into()).await;
    drop(dropped);
    if next_event(&mut ending).await.is_some() {
        fail("an event although nothing was published");
    }
    publish(&other, &on, "still there").await;
    assert_eq!(next_text(&mut staying).await, "still there");
}
