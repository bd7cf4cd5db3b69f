//! The queue of callers that wait for work at this node, and what its partitions have ready.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::value::RawValue;
use tidegate::{ClaimId, Partition, ReadyKinds, WorkRequest};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The shortest wait: the time to find out whether there is something to claim.
const WAIT_MIN: Duration = Duration::from_millis(100);

/// A claim for a caller: its id, and its JSON, which holds secrets and is never printed.
pub(crate) struct HandedClaim {
    pub claim: ClaimId,
    pub json: Box<RawValue>,
}

/// A caller that waits.
struct WaitingCall {
    request: WorkRequest,
    until: Instant,
    reply: oneshot::Sender<Vec<HandedClaim>>,
}

/// Callers that were taken out of the queue to claim something for them, in their order.
#[derive(Default)]
pub(crate) struct ReservedCalls(Vec<(u64, WaitingCall)>);

#[derive(Default)]
struct HubState {
    next_ticket: u64,
    waiting: BTreeMap<u64, WaitingCall>,
    /// What may be claimed in each partition of this node.
    ready: BTreeMap<Partition, ReadyKinds>,
    /// When a caller last asked for each kind, here or at another node.
    last_asked: BTreeMap<Arc<str>, Instant>,
}

impl HubState {
    fn record_asked(&mut self, kinds: &[Arc<str>]) {
        let now = Instant::now();
        self.last_asked.extend(kinds.iter().map(|kind| (Arc::clone(kind), now)));
    }
}

/// The callers that wait for work at this node.
pub(crate) struct WorkHub {
    state: Mutex<HubState>,
    /// Notifies those who claim that another caller waits.
    calls: watch::Sender<()>,
    /// Notifies other nodes that something may be claimed here.
    ready: watch::Sender<()>,
    /// The claims of callers that hung up before they saw them.
    undelivered: mpsc::UnboundedSender<HandedClaim>,
    /// Its other end, until someone takes it to return them.
    to_return: Mutex<Option<mpsc::UnboundedReceiver<HandedClaim>>>,
}

impl Default for WorkHub {
    fn default() -> Self {
        let (undelivered, to_return) = mpsc::unbounded_channel();
        Self {
            state: Mutex::default(),
            calls: watch::channel(()).0,
            ready: watch::channel(()).0,
            undelivered,
            to_return: Mutex::new(Some(to_return)),
        }
    }
}

impl WorkHub {
    fn state(&self) -> MutexGuard<'_, HubState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for work for at most `wait`, or until the server stops.
    pub(crate) async fn take(
        &self,
        request: WorkRequest,
        wait: Duration,
        stopping: &CancellationToken,
    ) -> Vec<HandedClaim> {
        let (reply, claims) = oneshot::channel();
        let until = Instant::now() + wait.max(WAIT_MIN);
        let kinds = request.kinds.clone();
        let ticket = {
            let mut state = self.state();
            let ticket = state.next_ticket;
            state.next_ticket += 1;
            state.waiting.insert(ticket, WaitingCall { request, until, reply });
            ticket
        };
        // A caller that hangs up leaves the queue.
        let mut place = QueuePlace { hub: self, ticket, kinds, claims };
        self.calls.send_replace(());
        tokio::select! {
            claims = &mut place.claims => return claims.unwrap_or_default(),
            () = tokio::time::sleep_until(until) => {}
            () = stopping.cancelled() => {}
        }
        if self.state().waiting.remove(&ticket).is_some() {
            return Vec::new();
        }
        // Something is being claimed for it.
        (&mut place.claims).await.unwrap_or_default()
    }

    /// The claims of callers that hung up before they saw them; for one task, which returns them.
    pub(crate) fn undelivered(&self) -> mpsc::UnboundedReceiver<HandedClaim> {
        let mut to_return = self.to_return.lock().unwrap_or_else(PoisonError::into_inner);
        to_return.take().unwrap_or_else(|| mpsc::unbounded_channel().1)
    }

    /// Notifies of callers that begin to wait.
    pub(crate) fn calls(&self) -> watch::Receiver<()> {
        self.calls.subscribe()
    }

    /// The kinds that callers wait for.
    pub(crate) fn wanted(&self) -> BTreeSet<Arc<str>> {
        let state = self.state();
        let open = state.waiting.values().filter(|call| !call.reply.is_closed());
        open.flat_map(|call| call.request.kinds.iter().cloned()).collect()
    }

    /// How long ago a caller asked for each kind.
    pub(crate) fn demand(&self) -> Vec<(Arc<str>, Duration)> {
        let wanted = self.wanted();
        let mut state = self.state();
        state.record_asked(&Vec::from_iter(wanted));
        state.last_asked.iter().map(|(kind, at)| (Arc::clone(kind), at.elapsed())).collect()
    }

    /// The number of callers that wait.
    pub(crate) fn waiting_count(&self) -> usize {
        self.state().waiting.len()
    }

    /// Takes the first `most` callers that wait for one of these kinds out of the queue.
    pub(crate) fn reserve(&self, kinds: &[Arc<str>], most: usize) -> ReservedCalls {
        let mut state = self.state();
        // A caller that hung up waits for nothing.
        state.waiting.retain(|_, call| !call.reply.is_closed());
        let wants = |call: &WaitingCall| call.request.kinds.iter().any(|kind| kinds.contains(kind));
        let first = state.waiting.iter().filter(|(_, call)| wants(call)).map(|(ticket, _)| *ticket);
        let first: Vec<u64> = first.take(most).collect();
        let mut reserved = Vec::with_capacity(first.len());
        for ticket in first {
            reserved.extend(state.waiting.remove(&ticket).map(|call| (ticket, call)));
        }
        ReservedCalls(reserved)
    }

    /// Puts callers back where they were in the queue. Those whose time is up get nothing.
    pub(crate) fn requeue(&self, ReservedCalls(calls): ReservedCalls) {
        let now = Instant::now();
        let mut state = self.state();
        for (ticket, call) in calls {
            if call.until <= now {
                // The caller may be gone.
                let _ = call.reply.send(Vec::new());
            } else {
                state.waiting.insert(ticket, call);
            }
        }
        drop(state);
        self.calls.send_replace(());
    }

    /// Hands claims to their callers, and puts those back that got none. Returns the claims of
    /// callers that are gone.
    pub(crate) fn deliver(&self, reserved: ReservedCalls, claims: Vec<Vec<HandedClaim>>) -> Vec<HandedClaim> {
        let (mut unserved, mut undelivered) = (Vec::new(), Vec::new());
        let mut claims = claims.into_iter();
        for (ticket, call) in reserved.0 {
            match claims.next().filter(|claims| !claims.is_empty()) {
                Some(claims) => {
                    if let Err(claims) = call.reply.send(claims) {
                        undelivered.extend(claims);
                    }
                }
                None => unserved.push((ticket, call)),
            }
        }
        undelivered.extend(claims.flatten());
        if !unserved.is_empty() {
            self.requeue(ReservedCalls(unserved));
        }
        undelivered
    }

    /// Records what may be claimed in a partition of this node; nothing when it has left.
    pub(crate) fn set_ready(&self, partition: Partition, kinds: &ReadyKinds) {
        let mut state = self.state();
        let before = match kinds.is_empty() {
            true => state.ready.remove(&partition),
            false => state.ready.insert(partition, Arc::clone(kinds)),
        };
        drop(state);
        if before.unwrap_or_default() != *kinds {
            self.ready.send_replace(());
        }
    }

    /// The kinds among these that may be claimed at this node, after `wait` at the latest.
    pub(crate) async fn ready_among(&self, kinds: &[Arc<str>], wait: Duration) -> Vec<Arc<str>> {
        let until = Instant::now() + wait;
        let mut changes = self.ready.subscribe();
        loop {
            self.state().record_asked(kinds);
            changes.borrow_and_update();
            let found = self.ready_now(kinds);
            if !found.is_empty() {
                return found;
            }
            if tokio::time::timeout_at(until, changes.changed()).await.is_err() {
                return Vec::new();
            }
        }
    }

    fn ready_now(&self, kinds: &[Arc<str>]) -> Vec<Arc<str>> {
        let state = self.state();
        let is_ready = |kind: &&Arc<str>| state.ready.values().any(|ready| ready.contains(kind));
        kinds.iter().filter(is_ready).cloned().collect()
    }
}

/// The place of a caller in the queue, which it leaves at the latest when this is dropped.
struct QueuePlace<'a> {
    hub: &'a WorkHub,
    ticket: u64,
    kinds: Vec<Arc<str>>,
    claims: oneshot::Receiver<Vec<HandedClaim>>,
}

impl Drop for QueuePlace<'_> {
    fn drop(&mut self) {
        let mut state = self.hub.state();
        state.waiting.remove(&self.ticket);
        state.record_asked(&self.kinds);
        drop(state);
        // From here on, what is claimed for it is not delivered; what was before is returned.
        self.claims.close();
        for claim in self.claims.try_recv().unwrap_or_default() {
            // The server may have stopped.
            let _ = self.hub.undelivered.send(claim);
        }
    }
}

impl ReservedCalls {
    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What the callers ask for.
    pub(crate) fn requests(&self) -> Vec<WorkRequest> {
        self.0.iter().map(|(_, call)| call.request.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use tidegate_core::{OperationId, Seq, Time};

    use super::*;

    fn request(kinds: &[&str]) -> WorkRequest {
        let kinds = kinds.iter().map(|kind| Arc::from(*kind)).collect();
        WorkRequest { kinds, max: 1, lease: Duration::from_secs(30) }
    }

    fn claim(seq: u64) -> HandedClaim {
        let id = OperationId::new(Time::ZERO, 0, Seq(seq));
        let json = RawValue::from_string(seq.to_string()).unwrap();
        HandedClaim { claim: ClaimId { id, fence: tidegate_core::Fence(seq) }, json }
    }

    fn caller(
        hub: &Arc<WorkHub>,
        kinds: &[&str],
        wait: Duration,
    ) -> tokio::task::JoinHandle<Vec<HandedClaim>> {
        let (hub, request) = (Arc::clone(hub), request(kinds));
        tokio::spawn(async move { hub.take(request, wait, &CancellationToken::new()).await })
    }

    /// Waits, without time passing, until so many callers wait.
    async fn until_waiting(hub: &WorkHub, count: usize) {
        while hub.waiting_count() != count {
            tokio::task::yield_now().await;
        }
    }

    /// Callers are served first come first, each once, and one that found nothing keeps its place.
    #[tokio::test(start_paused = true)]
    async fn callers_are_served_in_order() {
        let hub = Arc::new(WorkHub::default());
        let long = Duration::from_secs(20);
        let first = caller(&hub, &["resize"], long);
        until_waiting(&hub, 1).await;
        let second = caller(&hub, &["scan", "resize"], long);
        until_waiting(&hub, 2).await;
        assert!(hub.reserve(&["other".into()], 9).is_empty());
        let reserved = hub.reserve(&["resize".into()], 1);
        assert_eq!((reserved.requests(), hub.waiting_count()), (vec![request(&["resize"])], 1));
        assert!(hub.deliver(reserved, vec![Vec::new()]).is_empty());
        let reserved = hub.reserve(&["resize".into()], 9);
        assert_eq!(reserved.requests(), [request(&["resize"]), request(&["scan", "resize"])]);
        assert!(hub.deliver(reserved, vec![vec![claim(1)], vec![claim(2)]]).is_empty());
        assert_eq!(first.await.unwrap()[0].json.get(), "1");
        assert_eq!(second.await.unwrap()[0].json.get(), "2");
    }

    /// A caller whose time is up gets nothing, unless something is being claimed for it; what was
    /// claimed for one that hung up comes back.
    #[tokio::test(start_paused = true)]
    async fn no_claim_is_lost_with_its_caller() {
        let hub = Arc::new(WorkHub::default());
        let wait = Duration::from_secs(5);
        assert!(caller(&hub, &["resize"], wait).await.unwrap().is_empty());
        assert_eq!(hub.waiting_count(), 0);
        let late = caller(&hub, &["resize"], wait);
        until_waiting(&hub, 1).await;
        let reserved = hub.reserve(&["resize".into()], 9);
        tokio::time::sleep(wait * 2).await;
        hub.deliver(reserved, vec![vec![claim(1)]]);
        assert_eq!(late.await.unwrap().len(), 1);
        let gone = caller(&hub, &["resize"], wait);
        until_waiting(&hub, 1).await;
        let reserved = hub.reserve(&["resize".into()], 9);
        gone.abort();
        assert!(gone.await.is_err());
        let back = hub.deliver(reserved, vec![vec![claim(7)]]);
        assert_eq!(back[0].claim.fence.0, 7);
        let mut undelivered = hub.undelivered();
        let cut = caller(&hub, &["resize"], wait);
        until_waiting(&hub, 1).await;
        let reserved = hub.reserve(&["resize".into()], 9);
        assert!(hub.deliver(reserved, vec![vec![claim(8)]]).is_empty(), "it was there until now");
        cut.abort();
        assert!(cut.await.is_err());
        assert_eq!(undelivered.try_recv().unwrap().claim.fence.0, 8);
        assert!(undelivered.try_recv().is_err());
    }

    /// Another node learns at once what may be claimed here, or waits until something may.
    #[tokio::test(start_paused = true)]
    async fn other_nodes_wait_for_what_they_want() {
        let hub = Arc::new(WorkHub::default());
        let kinds = ["resize".into(), "scan".into()];
        hub.set_ready(3, &Arc::from(["other".into()]));
        assert!(hub.ready_among(&kinds, Duration::from_secs(1)).await.is_empty());
        let asked = tokio::spawn({
            let (hub, kinds) = (Arc::clone(&hub), kinds.clone());
            async move { hub.ready_among(&kinds, Duration::from_secs(60)).await }
        });
        tokio::task::yield_now().await;
        hub.set_ready(4, &Arc::from(["scan".into()]));
        assert_eq!(asked.await.unwrap(), [Arc::<str>::from("scan")]);
        hub.set_ready(4, &ReadyKinds::default());
        assert!(hub.ready_among(&kinds, Duration::from_secs(1)).await.is_empty());
    }
}
