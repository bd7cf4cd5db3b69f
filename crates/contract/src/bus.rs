//! The suites that every bus must pass: [`bus_suites!`](crate::bus_suites) for all,
//! [`bus_server_suites!`](crate::bus_server_suites) for those with a server that can be killed.

mod closing;
mod delivery;
mod loss;
mod subjects;

pub use closing::{a_closed_bus_ends_its_subscriptions, a_dropped_bus_ends_its_subscriptions};
pub use delivery::{
    a_publisher_receives_its_own_messages, a_subscription_is_confirmed, every_subscriber_gets_every_message,
    no_subscriber_is_noticed, one_publisher_is_in_order, payloads_are_bounded,
};
pub use loss::{a_restarted_server_is_a_gap, a_slow_subscriber_finds_a_gap};
pub use subjects::{tenants_are_apart_whatever_they_are_called, wildcards_match_tokens};

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tidegate_bus::{
    Bus, BusError, BusEvent, BusFuture, BusMessage, BusSubscription, Delivery, FilterToken, Subject,
    SubjectFilter,
};
use tokio::time::timeout;

use crate::harness::ExpectValue;

/// Nothing that a suite waits for takes longer.
const BOUND: Duration = Duration::from_secs(20);
/// How long a suite waits before it looks again.
const POLL: Duration = Duration::from_millis(1);

/// A bus under test. Each suite gets its own.
pub trait BusBackend: Send + Sync {
    /// Connects as another process would. Within one process that is the same bus.
    fn connect(&self) -> BusFuture<'_, Arc<dyn Bus>>;

    /// Whether the bus finds out that no one received a message.
    fn notices_absence(&self) -> bool {
        true
    }
}

/// A bus with a server of its own.
pub trait BusServer: BusBackend {
    /// Kills the server.
    fn kill(&self);

    /// Starts the server again, at the same address.
    fn restart(&self);
}

impl<T> ExpectValue<T> for Result<T, BusError> {
    #[track_caller]
    #[expect(clippy::panic, reason = "a suite fails by panicking, as every test does")]
    fn expect_value(self, doing: &str) -> T {
        match self {
            Ok(value) => value,
            Err(error) => panic!("could not {doing}: {:?}: {error}", error.kind()),
        }
    }
}

async fn connect(backend: &(impl BusBackend + ?Sized)) -> Arc<dyn Bus> {
    backend.connect().await.expect_value("connect")
}

fn subject(tokens: &[&str]) -> Subject {
    Subject::new(tokens).expect_value("create a subject")
}

fn filter(tokens: &[FilterToken<'_>]) -> SubjectFilter {
    SubjectFilter::new(tokens.to_vec()).expect_value("create a filter")
}

async fn subscribe(bus: &Arc<dyn Bus>, filter: &SubjectFilter) -> BusSubscription {
    let subscribed = timeout(BOUND, bus.subscribe(filter)).await;
    subscribed.unwrap_or_else(|_| fail("a subscription was not confirmed in time")).expect_value("subscribe")
}

async fn publish(bus: &Arc<dyn Bus>, subject: &Subject, payload: impl Into<Bytes>) -> Delivery {
    let published = timeout(BOUND, bus.publish(subject, payload.into())).await;
    published.unwrap_or_else(|_| fail("a message was not published in time")).expect_value("publish")
}

/// The next event, which is there within the bound.
async fn next_event(subscription: &mut BusSubscription) -> Option<BusEvent> {
    timeout(BOUND, subscription.next()).await.unwrap_or_else(|_| fail("no event arrived in time"))
}

/// The next message, with no gap before it.
async fn next_message(subscription: &mut BusSubscription) -> BusMessage {
    match next_event(subscription).await {
        Some(BusEvent::Message(message)) => message,
        other => fail(&format!("{other:?} instead of a message")),
    }
}

/// The payload of the next message, as text.
async fn next_text(subscription: &mut BusSubscription) -> String {
    String::from_utf8_lossy(&next_message(subscription).await.payload).into_owned()
}

/// Compares what a bus knows about its receivers, as far as it can know.
#[track_caller]
fn expect_delivery(backend: &(impl BusBackend + ?Sized), found: Delivery, expected: Delivery) {
    if backend.notices_absence() || found != Delivery::Unknown {
        assert_eq!(found, expected, "what the bus knows about the receivers");
    }
}

#[track_caller]
#[expect(clippy::panic, reason = "a suite fails by panicking, as every test does")]
fn fail(message: &str) -> ! {
    panic!("{message}")
}

/// Passes the names of the suites that every bus passes to another macro, as
/// [`every_suite!`](crate::every_suite) does.
#[macro_export]
macro_rules! every_bus_suite {
    ([$($callback:tt)+] $($argument:tt)*) => {
        $($callback)+! { ($($argument)*)
            bus:
                every_subscriber_gets_every_message,
                a_publisher_receives_its_own_messages,
                a_subscription_is_confirmed,
                no_subscriber_is_noticed,
                one_publisher_is_in_order,
                payloads_are_bounded,
                wildcards_match_tokens,
                tenants_are_apart_whatever_they_are_called,
                a_slow_subscriber_finds_a_gap,
                a_closed_bus_ends_its_subscriptions;
        }
    };
}

/// Creates a test for every suite of a bus. The argument is an expression that creates a fresh
/// [`BusBackend`].
#[macro_export]
macro_rules! bus_suites {
    ($backend:expr) => {
        $crate::every_bus_suite!([$crate::suite_tests] $backend);
    };
}

/// The same, and tests that kill the server. The argument creates a fresh [`BusServer`].
#[macro_export]
macro_rules! bus_server_suites {
    ($backend:expr) => {
        $crate::bus_suites!($backend);
        $crate::suite_tests! { ($backend)
            bus:
                a_restarted_server_is_a_gap,
                a_dropped_bus_ends_its_subscriptions;
        }
    };
}
