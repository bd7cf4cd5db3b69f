//! The bus on a real Redis and on a real Redis Cluster.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use tidegate_bus::{
    Bus, BusErrorKind, BusEvent, BusFuture, BusSubscription, Delivery, FilterToken, Subject, SubjectFilter,
};
use tidegate_contract::bus::{self, BusBackend, BusServer};
use tidegate_fixture::redis::{RedisCluster, RedisServer};
use tidegate_store_redis::RedisBus;
use tokio::time::timeout;

use crate::sample::RawClient;

struct RedisBusBackend {
    url: String,
    server: Mutex<RedisServer>,
}

impl RedisBusBackend {
    fn new() -> Self {
        let server = RedisServer::start();
        Self { url: server.url(), server: Mutex::new(server) }
    }
}

async fn connect(url: &str) -> Result<Arc<dyn Bus>, tidegate_bus::BusError> {
    Ok(Arc::new(RedisBus::connect(url).await?))
}

impl BusBackend for RedisBusBackend {
    fn connect(&self) -> BusFuture<'_, Arc<dyn Bus>> {
        Box::pin(connect(&self.url))
    }
}

impl BusServer for RedisBusBackend {
    fn kill(&self) {
        self.server.lock().unwrap().kill();
    }

    fn restart(&self) {
        self.server.lock().unwrap().restart();
    }
}

mod single {
    tidegate_contract::bus_server_suites!(super::RedisBusBackend::new());
}

struct ClusterBackend(RedisCluster);

impl BusBackend for ClusterBackend {
    fn connect(&self) -> BusFuture<'_, Arc<dyn Bus>> {
        Box::pin(async { connect(&self.0.url()).await })
    }

    /// A node of a cluster counts its own subscribers only.
    fn notices_absence(&self) -> bool {
        false
    }
}

/// A cluster takes seconds to start, so the suites share one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hyd_12_a_bus_works_on_a_cluster() {
    let cluster = ClusterBackend(RedisCluster::start());
    bus::every_subscriber_gets_every_message(&cluster).await;
    bus::a_publisher_receives_its_own_messages(&cluster).await;
    bus::no_subscriber_is_noticed(&cluster).await;
    bus::one_publisher_is_in_order(&cluster).await;
    bus::tenants_are_apart_whatever_they_are_called(&cluster).await;
    bus::a_closed_bus_ends_its_subscriptions(&cluster).await;
}

fn updated() -> Subject {
    Subject::new(["tg", "updated"]).unwrap()
}

async fn next(subscription: &mut BusSubscription) -> Option<BusEvent> {
    timeout(Duration::from_secs(20), subscription.next()).await.expect("an event in time")
}

fn text(event: Option<BusEvent>) -> Bytes {
    match event {
        Some(BusEvent::Message(message)) => message.payload,
        other => panic!("{other:?} is no message"),
    }
}

/// HYD-12, HYD-23: a question from one node finds that no source is there, and finds one that
/// subscribed on another node.
#[tokio::test]
async fn hyd_12_hyd_23_nodes_reach_each_other_and_notice_absence() {
    let server = RedisServer::start();
    let (asking, source) = (connect(&server.url()).await.unwrap(), connect(&server.url()).await.unwrap());
    let question = updated();
    assert_eq!(asking.publish(&question, Bytes::new()).await.unwrap(), Delivery::NoSubscriber);
    let mut questions = source.subscribe(&(&question).into()).await.unwrap();
    assert_eq!(asking.publish(&question, Bytes::from_static(b"7")).await.unwrap(), Delivery::Received);
    assert_eq!(text(next(&mut questions).await), "7");
}

/// Two prefixes on one server are two buses.
#[tokio::test]
async fn buses_with_different_prefixes_are_apart() {
    let server = RedisServer::start();
    let one = connect(&format!("{}?prefix=one", server.url())).await.unwrap();
    let other = connect(&format!("{}?prefix=other", server.url())).await.unwrap();
    let all = SubjectFilter::new([FilterToken::Rest]).unwrap();
    let _subscription = one.subscribe(&all).await.unwrap();
    assert_eq!(other.publish(&updated(), Bytes::new()).await.unwrap(), Delivery::NoSubscriber);
}

/// A client that does not encode its subjects disturbs no one.
#[tokio::test]
async fn a_foreign_message_is_dropped() {
    let server = RedisServer::start();
    let bus = connect(&server.url()).await.unwrap();
    let mut subscription = bus.subscribe(&SubjectFilter::new([FilterToken::Rest]).unwrap()).await.unwrap();
    let mut client = RawClient::at(&server.url()).await;
    for channel in ["tg:bus:2:tg.%zz", "tg:bus:2:tg.a b", "tg:bus:1:_INBOX"] {
        assert_eq!(client.ask::<u64>(&["PUBLISH", channel, "foreign"]).await, 1);
    }
    bus.publish(&updated(), Bytes::from_static(b"own")).await.unwrap();
    assert_eq!(text(next(&mut subscription).await), "own");
}

/// HYD-24: a connection that is cut reports a gap, although the server never went away.
#[tokio::test]
async fn hyd_24_a_cut_connection_is_a_gap() {
    let server = RedisServer::start();
    let bus = connect(&server.url()).await.unwrap();
    let mut subscription = bus.subscribe(&(&updated()).into()).await.unwrap();
    let mut client = RawClient::at(&server.url()).await;
    assert_eq!(client.ask::<u64>(&["CLIENT", "KILL", "TYPE", "pubsub"]).await, 1);
    assert_eq!(next(&mut subscription).await, Some(BusEvent::Gap));
    assert_eq!(bus.publish(&updated(), Bytes::from_static(b"after")).await.unwrap(), Delivery::Received);
    assert_eq!(text(next(&mut subscription).await), "after");
}

#[tokio::test]
async fn what_the_server_forbids_is_denied() {
    let server = RedisServer::start();
    let mut client = RawClient::at(&server.url()).await;
    client.ask::<String>(&["ACL", "SETUSER", "limited", "on", ">pw", "+@all", "~*", "resetchannels"]).await;
    let bus = connect(&server.url().replace("redis://", "redis://limited:pw@")).await.unwrap();
    let published = bus.publish(&updated(), Bytes::new()).await.unwrap_err();
    assert_eq!(published.kind(), BusErrorKind::Denied, "{published}");
    let subscribed = bus.subscribe(&(&updated()).into()).await.unwrap_err();
    assert_eq!(subscribed.kind(), BusErrorKind::Denied, "{subscribed}");
    let wrong = connect(&server.url().replace("redis://", "redis://limited:no@")).await.err().unwrap();
    assert_eq!(wrong.kind(), BusErrorKind::Denied, "{wrong}");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unavailable() {
    let mut server = RedisServer::start();
    server.kill();
    let error = connect(&server.url()).await.err().unwrap();
    assert_eq!(error.kind(), BusErrorKind::Unavailable, "{error}");
    assert_eq!(connect("http://a").await.err().unwrap().kind(), BusErrorKind::Invalid);
}
