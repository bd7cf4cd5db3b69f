//! What is published reaches who subscribed, and the publisher learns whether anyone did.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tidegate_bus::{BusErrorKind, Delivery, FilterToken};
use tidegate_core::bounds::BUS_PAYLOAD_LEN_MAX;
use tokio::time::{Instant, sleep};

use super::{
    BOUND, BusBackend, POLL, connect, expect_delivery, fail, filter, next_message, next_text, publish,
    subject, subscribe,
};

/// An absent receiver is noticed within this, on loopback.
const NOTICED_WITHIN: Duration = Duration::from_millis(50);
/// Messages of one publisher whose order is checked.
const IN_ORDER: usize = 300;

/// HYD-12: each subscription gets its own copy, on every node, whole and with its subject.
pub async fn every_subscriber_gets_every_message(backend: &dyn BusBackend) {
    let (here, there) = (connect(backend).await, connect(backend).await);
    let on = subject(&["tg", "acme", "updated"]);
    let mut subscriptions = Vec::new();
    for bus in [&here, &there, &there] {
        subscriptions.push(subscribe(bus, &(&on).into()).await);
    }
    let payload = Bytes::from((0..=255).collect::<Vec<u8>>());
    for bus in [&here, &there] {
        expect_delivery(backend, publish(bus, &on, payload.clone()).await, Delivery::Received);
    }
    for subscription in &mut subscriptions {
        for _ in 0..2 {
            let message = next_message(subscription).await;
            assert_eq!((&message.subject, &message.payload), (&on, &payload));
        }
    }
}

/// A module may be source and consumer at once.
pub async fn a_publisher_receives_its_own_messages(backend: &dyn BusBackend) {
    let bus = connect(backend).await;
    let on = subject(&["tg", "own"]);
    let mut subscription = subscribe(&bus, &(&on).into()).await;
    expect_delivery(backend, publish(&bus, &on, "mine").await, Delivery::Received);
    assert_eq!(next_text(&mut subscription).await, "mine");
}

/// HYD-24: once `subscribe` returns, a message published anywhere is received.
pub async fn a_subscription_is_confirmed(backend: &dyn BusBackend) {
    let (here, there) = (connect(backend).await, connect(backend).await);
    for round in 0..20 {
        let on = subject(&["tg", &round.to_string()]);
        let wanted =
            if round % 2 == 0 { (&on).into() } else { filter(&[FilterToken::Any, FilterToken::Rest]) };
        let mut subscription = subscribe(&here, &wanted).await;
        publish(&there, &on, round.to_string()).await;
        assert_eq!(next_text(&mut subscription).await, round.to_string());
    }
}

/// HYD-23: that no one subscribes is known at once, before the first subscription, next to others,
/// and after the last one has ended.
pub async fn no_subscriber_is_noticed(backend: &dyn BusBackend) {
    let (here, there) = (connect(backend).await, connect(backend).await);
    let on = subject(&["tg", "acme", "unknown"]);
    let _other = subscribe(&there, &filter(&["tg".into(), FilterToken::Any])).await;
    let mut quickest = BOUND;
    for _ in 0..10 {
        let start = Instant::now();
        expect_delivery(backend, publish(&here, &on, "who?").await, Delivery::NoSubscriber);
        quickest = quickest.min(start.elapsed());
    }
    assert!(quickest < NOTICED_WITHIN, "noticed only after {quickest:?}");

    let subscription = subscribe(&there, &(&on).into()).await;
    expect_delivery(backend, publish(&here, &on, "who?").await, Delivery::Received);
    drop(subscription);
    let start = Instant::now();
    while backend.notices_absence() && publish(&here, &on, "who?").await != Delivery::NoSubscriber {
        assert!(start.elapsed() < BOUND, "a dropped subscription is still there");
        sleep(POLL).await;
    }
}

/// Messages of one publisher arrive in their order, also while others publish.
pub async fn one_publisher_is_in_order(backend: &dyn BusBackend) {
    let (here, there) = (connect(backend).await, connect(backend).await);
    let (on, noise) = (subject(&["tg", "order"]), subject(&["tg", "noise"]));
    let mut subscription = subscribe(&there, &filter(&["tg".into(), FilterToken::Any])).await;
    let other = Arc::clone(&there);
    let others = tokio::spawn(async move {
        for _ in 0..IN_ORDER {
            publish(&other, &noise, "noise").await;
        }
    });
    for number in 0..IN_ORDER {
        publish(&here, &on, number.to_string()).await;
    }
    let (mut numbers, mut count) = (Vec::new(), 0);
    while count < 2 * IN_ORDER {
        let message = next_message(&mut subscription).await;
        count += 1;
        if message.subject == on {
            numbers.push(String::from_utf8_lossy(&message.payload).into_owned());
        }
    }
    assert_eq!(numbers, (0..IN_ORDER).map(|number| number.to_string()).collect::<Vec<_>>());
    if others.await.is_err() {
        fail("the other publisher failed");
    }
}

/// HYD-26: a payload at the bound arrives whole; one byte more is refused, and nothing is sent.
pub async fn payloads_are_bounded(backend: &dyn BusBackend) {
    let bus = connect(backend).await;
    let on = subject(&["tg", "large"]);
    let mut subscription = subscribe(&bus, &(&on).into()).await;
    let largest = Bytes::from(vec![7; BUS_PAYLOAD_LEN_MAX]);
    publish(&bus, &on, largest.clone()).await;
    match bus.publish(&on, Bytes::from(vec![7; BUS_PAYLOAD_LEN_MAX + 1])).await {
        Err(error) => assert_eq!(error.kind(), BusErrorKind::TooLarge, "{error}"),
        Ok(delivery) => fail(&format!("too large a payload was published: {delivery:?}")),
    }
    publish(&bus, &on, "next").await;
    assert!(next_message(&mut subscription).await.payload == largest, "the payload changed on its way");
    assert_eq!(next_text(&mut subscription).await, "next");
}
