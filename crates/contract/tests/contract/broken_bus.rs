//! For each suite of a bus that needs no server, a bus with the defect that it exists to detect.

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use tidegate_bus::{
    Bus, BusEvent, BusFuture, BusSubscription, Delivery, FilterToken, InProcessBus, Subject, SubjectFilter,
};
use tidegate_contract::bus::BusBackend;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BusQuirk {
    None,
    SecondSubscriberGetsNothing,
    DropsOwnMessages,
    ConfirmsTooEarly,
    NeverMissesAnyone,
    SwapsMessages,
    AcceptsTooMuch,
    WildcardTakesTheRest,
    ForgetsOddCharacters,
    HidesGaps,
    IgnoresClose,
}

/// The suite that must find each defect.
const CASES: [(&str, BusQuirk); 10] = [
    ("every_subscriber_gets_every_message", BusQuirk::SecondSubscriberGetsNothing),
    ("a_publisher_receives_its_own_messages", BusQuirk::DropsOwnMessages),
    ("a_subscription_is_confirmed", BusQuirk::ConfirmsTooEarly),
    ("no_subscriber_is_noticed", BusQuirk::NeverMissesAnyone),
    ("one_publisher_is_in_order", BusQuirk::SwapsMessages),
    ("payloads_are_bounded", BusQuirk::AcceptsTooMuch),
    ("wildcards_match_tokens", BusQuirk::WildcardTakesTheRest),
    ("tenants_are_apart_whatever_they_are_called", BusQuirk::ForgetsOddCharacters),
    ("a_slow_subscriber_finds_a_gap", BusQuirk::HidesGaps),
    ("a_closed_bus_ends_its_subscriptions", BusQuirk::IgnoresClose),
];

/// A bus with one defect.
struct BrokenBus {
    inner: InProcessBus,
    quirk: BusQuirk,
    subscriptions: Arc<AtomicUsize>,
    subscribes: AtomicBool,
    held: Mutex<Option<(Subject, Bytes)>>,
}

impl BrokenBus {
    fn is(&self, quirk: BusQuirk) -> bool {
        self.quirk == quirk
    }

    /// Holds every second message back until the next one has passed.
    async fn swap(&self, subject: &Subject, payload: Bytes) -> Result<Delivery, tidegate_bus::BusError> {
        let held = self.held.lock().unwrap().take();
        let Some((earlier, content)) = held else {
            *self.held.lock().unwrap() = Some((subject.clone(), payload));
            return Ok(Delivery::Received);
        };
        self.inner.publish(subject, payload).await?;
        self.inner.publish(&earlier, content).await
    }

    fn late(&self, filter: &SubjectFilter) -> BusSubscription {
        let (sender, subscription) = BusSubscription::with_sender();
        let (bus, filter) = (self.inner.clone(), filter.clone());
        tokio::spawn(async move {
            tokio::task::yield_now().await;
            let mut inner = bus.subscribe(&filter).await.unwrap();
            while let Some(BusEvent::Message(message)) = inner.next().await {
                sender.send(message);
            }
        });
        subscription
    }

    /// Loses messages without a gap: passes on one in two large ones.
    async fn lossy(&self, filter: &SubjectFilter) -> BusSubscription {
        let (sender, subscription) = BusSubscription::with_sender();
        let mut inner = self.inner.subscribe(filter).await.unwrap();
        tokio::spawn(async move {
            let mut count = 0;
            while let Some(BusEvent::Message(message)) = inner.next().await {
                count += 1;
                if message.payload.len() < 100 || count % 2 == 1 {
                    sender.send(message);
                }
            }
        });
        subscription
    }
}

/// The subject without what is neither a letter nor a digit.
fn simplified(subject: &Subject) -> Subject {
    let token = |token: String| token.chars().filter(char::is_ascii_alphanumeric).collect::<String>();
    Subject::new(subject.tokens().map(token)).unwrap()
}

/// The filter with a wildcard at its end taken for the rest.
fn widened(filter: &SubjectFilter) -> SubjectFilter {
    let text = filter.as_str();
    let Some(head) = text.strip_suffix(".*") else { return filter.clone() };
    let tokens = head.split('.').map(|token| match token {
        "*" => FilterToken::Any,
        exact => FilterToken::Exact(exact),
    });
    SubjectFilter::new(tokens.chain([FilterToken::Rest])).unwrap()
}

impl Bus for BrokenBus {
    fn publish<'a>(&'a self, subject: &'a Subject, payload: Bytes) -> BusFuture<'a, Delivery> {
        Box::pin(async move {
            match self.quirk {
                BusQuirk::DropsOwnMessages if self.subscribes.load(Ordering::Relaxed) => {
                    Ok(Delivery::Received)
                }
                BusQuirk::NeverMissesAnyone => {
                    self.inner.publish(subject, payload).await.map(|_| Delivery::Received)
                }
                BusQuirk::SwapsMessages => self.swap(subject, payload).await,
                BusQuirk::AcceptsTooMuch if payload.len() > 1024 * 1024 => Ok(Delivery::Received),
                BusQuirk::ForgetsOddCharacters => self.inner.publish(&simplified(subject), payload).await,
                _ => self.inner.publish(subject, payload).await,
            }
        })
    }

    fn subscribe<'a>(&'a self, filter: &'a SubjectFilter) -> BusFuture<'a, BusSubscription> {
        Box::pin(async move {
            self.subscribes.store(true, Ordering::Relaxed);
            let number = self.subscriptions.fetch_add(1, Ordering::Relaxed);
            match self.quirk {
                BusQuirk::SecondSubscriberGetsNothing if number == 1 => {
                    self.inner.subscribe(&SubjectFilter::new([FilterToken::Exact("nothing")])?).await
                }
                BusQuirk::ConfirmsTooEarly => Ok(self.late(filter)),
                BusQuirk::WildcardTakesTheRest => self.inner.subscribe(&widened(filter)).await,
                BusQuirk::ForgetsOddCharacters => {
                    let all = SubjectFilter::new([FilterToken::Rest])?;
                    let exact = Subject::parse(filter.as_str()).map(|subject| (&simplified(&subject)).into());
                    self.inner.subscribe(&exact.unwrap_or(all)).await
                }
                BusQuirk::HidesGaps if number == 0 => Ok(self.lossy(filter).await),
                _ => self.inner.subscribe(filter).await,
            }
        })
    }

    fn close(&self) {
        if !self.is(BusQuirk::IgnoresClose) {
            self.inner.close();
        }
    }
}

struct BrokenBusBackend {
    inner: InProcessBus,
    quirk: BusQuirk,
    subscriptions: Arc<AtomicUsize>,
}

impl BusBackend for BrokenBusBackend {
    fn connect(&self) -> BusFuture<'_, Arc<dyn Bus>> {
        let bus = BrokenBus {
            inner: self.inner.clone(),
            quirk: self.quirk,
            subscriptions: Arc::clone(&self.subscriptions),
            subscribes: AtomicBool::new(false),
            held: Mutex::default(),
        };
        Box::pin(async move { Ok(Arc::new(bus) as _) })
    }
}

type BusSuite = for<'a> fn(&'a dyn BusBackend) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

macro_rules! suites {
    (() $($part:ident: $($suite:ident),+;)+) => {
        vec![$($((stringify!($suite), (|backend| Box::pin(tidegate_contract::$part::$suite(backend))) as BusSuite)),+),+]
    };
}

fn all() -> Vec<(&'static str, BusSuite)> {
    tidegate_contract::every_bus_suite!([suites])
}

/// Runs a suite under a clock that skips every wait; returns whether it failed.
fn fails(suite: BusSuite, quirk: BusQuirk) -> bool {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let trial = std::thread::spawn(move || {
        let backend = BrokenBusBackend { inner: InProcessBus::new(), quirk, subscriptions: Arc::default() };
        runtime.block_on(suite(&backend));
    });
    trial.join().is_err()
}

#[test]
fn a_wrapped_bus_with_nothing_wrong_passes() {
    for (name, suite) in all() {
        assert!(!fails(suite, BusQuirk::None), "{name}");
    }
}

#[test]
fn every_bus_suite_finds_what_it_is_there_to_find() {
    let missed: Vec<_> = all()
        .into_iter()
        .flat_map(|(name, suite)| {
            CASES.iter().filter(move |(wanted, _)| *wanted == name).map(move |case| (suite, case))
        })
        .filter(|(suite, (_, quirk))| !fails(*suite, *quirk))
        .map(|(_, case)| case)
        .collect();
    assert!(missed.is_empty(), "these were not found: {missed:?}");
}

#[test]
fn no_bus_suite_is_without_a_bus_that_fails_it() {
    let names: BTreeSet<_> = all().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, CASES.iter().map(|(name, _)| *name).collect::<BTreeSet<_>>());
}
