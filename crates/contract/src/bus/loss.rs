//! What is lost is reported, and the subscription works again afterwards.

use bytes::Bytes;
use tidegate_bus::{BusEvent, Delivery, FilterToken};
use tidegate_core::bounds::{BUS_PAYLOAD_LEN_MAX, BUS_QUEUE_BYTES_MAX};
use tokio::time::{Instant, sleep, timeout};

use super::{
    BOUND, BusBackend, BusServer, POLL, connect, expect_delivery, fail, filter, next_event, next_text,
    publish, subject, subscribe,
};

/// HYD-24: a subscriber that does not read in time finds one gap where messages are missing, blocks
/// no one, and receives what is published afterwards.
pub async fn a_slow_subscriber_finds_a_gap(backend: &dyn BusBackend) {
    let bus = connect(backend).await;
    let on = subject(&["tg", "slow"]);
    let (mut slow, mut quick) = (subscribe(&bus, &(&on).into()).await, subscribe(&bus, &(&on).into()).await);
    let fitting = BUS_QUEUE_BYTES_MAX / BUS_PAYLOAD_LEN_MAX;
    let large = Bytes::from(vec![7; BUS_PAYLOAD_LEN_MAX]);
    for _ in 0..fitting + 4 {
        publish(&bus, &on, large.clone()).await;
        assert!(
            matches!(next_event(&mut quick).await, Some(BusEvent::Message(_))),
            "a quick subscriber lags"
        );
    }
    let start = Instant::now();
    while slow.queued() < fitting {
        assert!(start.elapsed() < BOUND, "{} of {fitting} messages arrived", slow.queued());
        sleep(POLL).await;
    }
    let mut received = 0;
    loop {
        match next_event(&mut slow).await {
            Some(BusEvent::Message(_)) => received += 1,
            Some(BusEvent::Gap) => break,
            None => fail("the subscription ended"),
        }
    }
    assert!(received < fitting + 4, "a gap, but nothing is missing");
    publish(&bus, &on, "after").await;
    while next_text(&mut slow).await != "after" {}
}

/// HYD-24: the server is killed and comes back. No call hangs while it is away; every subscription
/// finds a gap, and by then it is confirmed again: what anyone publishes now is received.
pub async fn a_restarted_server_is_a_gap(backend: &dyn BusServer) {
    let (here, there) = (connect(backend).await, connect(backend).await);
    let on = subject(&["tg", "acme", "updated"]);
    let mut exact = subscribe(&there, &(&on).into()).await;
    let mut wild = subscribe(&there, &filter(&["tg".into(), FilterToken::Rest])).await;
    backend.kill();
    if let Ok(delivery) = timeout(BOUND, here.publish(&on, Bytes::from_static(b"lost"))).await
        && let Ok(Delivery::Received | Delivery::NoSubscriber) = delivery
    {
        fail("a server that is dead cannot know its subscribers");
    }
    if timeout(BOUND, there.subscribe(&(&on).into())).await.is_err() {
        fail("a subscription hangs while the server is away");
    }
    backend.restart();
    for subscription in [&mut exact, &mut wild] {
        assert_eq!(next_event(subscription).await, Some(BusEvent::Gap));
        let newcomer = connect(backend).await;
        expect_delivery(backend, publish(&newcomer, &on, "new").await, Delivery::Received);
        while next_text(subscription).await != "new" {}
    }
    let start = Instant::now();
    while here.publish(&on, Bytes::from_static(b"old")).await.is_err() {
        assert!(start.elapsed() < BOUND, "the publisher does not reconnect");
        sleep(POLL).await;
    }
    while next_text(&mut exact).await != "old" {}
}
