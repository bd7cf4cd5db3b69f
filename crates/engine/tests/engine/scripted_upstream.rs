//! The test fixture: an upstream that follows a script and records its calls.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use tidegate::{Engine, Executors, Options, Submission};
use tidegate_core::fact::LimitShape;
use tidegate_core::operation::MICRO;
use tidegate_core::{Charge, Fault, FaultClass, Verdict};
use tidegate_store::{Store, WallClock};
use tidegate_store_embedded::MemoryStore;
use tidegate_upstream::{Call, CallFuture, CallRequirements, FieldRefusal, Outcome, Upstream};
use tokio::time::Instant;

/// The script of the upstream: how long a call takes, and its verdict.
pub(crate) type Script = dyn Fn(&str, u16) -> (Duration, Verdict) + Send + Sync;

/// A call that arrived.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Arrival {
    pub(crate) payload: String,
    pub(crate) attempt: u16,
    pub(crate) reconcile_first: bool,
    pub(crate) at: Instant,
}

/// The scripted upstream. Payloads are `limit,limit|text`: the limits before the bar are charged
/// one token each.
pub(crate) struct ScriptedUpstream {
    script: Box<Script>,
    pub(crate) arrivals: Mutex<Vec<Arrival>>,
    pub(crate) under_way: Mutex<(usize, usize)>,
}

impl ScriptedUpstream {
    pub(crate) fn new(
        script: impl Fn(&str, u16) -> (Duration, Verdict) + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self { script: Box::new(script), arrivals: Mutex::default(), under_way: Mutex::default() })
    }

    pub(crate) fn payloads(&self) -> Vec<String> {
        self.arrivals.lock().unwrap().iter().map(|arrival| arrival.payload.clone()).collect()
    }

    pub(crate) fn most_under_way(&self) -> usize {
        self.under_way.lock().unwrap().1
    }
}

/// Counts a call while it is in flight, however it ends.
struct InFlightGuard<'a>(&'a ScriptedUpstream);

impl<'a> InFlightGuard<'a> {
    fn new(scripted: &'a ScriptedUpstream) -> Self {
        let mut counts = scripted.under_way.lock().unwrap();
        counts.0 += 1;
        counts.1 = counts.1.max(counts.0);
        drop(counts);
        Self(scripted)
    }
}

impl Drop for InFlightGuard<'_> {
    fn drop(&mut self) {
        self.0.under_way.lock().unwrap().0 -= 1;
    }
}

impl Upstream for ScriptedUpstream {
    fn check(&self, payload: &[u8], _cost: &BTreeMap<String, u64>) -> Result<CallRequirements, FieldRefusal> {
        let text = std::str::from_utf8(payload).map_err(|_| FieldRefusal::new("request", "not text"))?;
        let limits = text.split_once('|').map_or("", |(limits, _)| limits);
        let charges = limits.split(',').filter(|name| !name.is_empty()).map(|name| Charge::tokens(name, 1));
        Ok(CallRequirements::new(charges.collect()).with_can_reconcile(true))
    }

    fn carry<'a>(&'a self, call: Call<'a>) -> CallFuture<'a> {
        Box::pin(async move {
            let payload = String::from_utf8(call.payload.to_vec()).unwrap();
            let (attempt, look_first) = (call.attempt, call.reconcile_first);
            let _under_way = InFlightGuard::new(self);
            let arrival = Arrival {
                payload: payload.clone(),
                attempt,
                reconcile_first: look_first,
                at: Instant::now(),
            };
            self.arrivals.lock().unwrap().push(arrival);
            let (takes, verdict) = (self.script)(&payload, attempt);
            tokio::time::sleep(takes).await;
            let body = Bytes::from(format!("answer to {payload}"));
            Outcome::unanswered(verdict).with_body(body)
        })
    }
}

/// An upstream where every call succeeds after this many milliseconds.
pub(crate) fn all_done(ms: u64) -> Arc<ScriptedUpstream> {
    ScriptedUpstream::new(move |_, _| (Duration::from_millis(ms), Verdict::Done))
}

pub(crate) fn memory() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new(Arc::new(WallClock)))
}

pub(crate) async fn open(store: &Arc<dyn Store>, upstream: &Arc<ScriptedUpstream>) -> Engine {
    open_with(store, upstream, Options::default(), &[]).await
}

pub(crate) async fn open_with(
    store: &Arc<dyn Store>,
    upstream: &Arc<ScriptedUpstream>,
    options: Options,
    limits: &[(&str, LimitShape)],
) -> Engine {
    let executors = Executors::from([("test".into(), Arc::clone(upstream) as Arc<dyn Upstream>)]);
    let limits = limits.iter().map(|(name, shape)| (Arc::from(*name), *shape));
    Engine::builder(Arc::clone(store))
        .options(options)
        .executors(executors)
        .limits(limits)
        .open()
        .await
        .unwrap()
}

pub(crate) fn operation(group: &str, payload: &str) -> Submission {
    Submission::new("test", group, payload.to_owned())
}

pub(crate) fn drip(capacity: u64, refill_per_s: u64) -> LimitShape {
    LimitShape::Drip { capacity: capacity * MICRO, refill_per_s: refill_per_s * MICRO, margin: 0 }
}

pub(crate) fn fault(message: &str) -> Fault {
    Fault::new(FaultClass::Transient, message)
}

/// Longer than anything in these tests takes, in virtual time.
pub(crate) const LONG: Duration = Duration::from_secs(3_600);
