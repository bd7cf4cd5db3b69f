//! A store with fault injection, scripted or random: a call fails before it is executed, is late,
//! or is executed and its reply lost. The wrapped store is unchanged.

mod audit;
mod journal;
mod log;
mod nodes_and_upkeep;
mod plan;
mod shared;

pub use plan::{FaultPlan, FaultRates, InjectedFault, StoreMethod};

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tidegate_store::log::StoredEntry;
use tidegate_store::{Error, Result, Store, StoreErrorKind, StoreFuture};

/// The faults injected so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultCounts {
    /// The total number of calls.
    pub calls: u64,
    /// Calls that failed before they were executed.
    pub failed: u64,
    /// Calls that were delayed.
    pub delayed: u64,
    /// Calls that were executed and whose reply was lost.
    pub lost: u64,
}

/// A store that fails according to its plan.
pub struct FaultyStore {
    inner: Arc<dyn Store>,
    plan: Mutex<FaultPlan>,
    is_shared: bool,
    is_down: AtomicBool,
    calls: AtomicU64,
    failed: AtomicU64,
    delayed: AtomicU64,
    lost: AtomicU64,
    by_verb: Mutex<HashMap<StoreMethod, u64>>,
    damage: Mutex<Option<Arc<Damage>>>,
}

/// Changes an operation that is read.
type Damage = dyn Fn(&mut StoredEntry) + Send + Sync;

impl FaultyStore {
    /// Wraps `store`.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, plan: FaultPlan) -> Self {
        Self {
            is_shared: store.is_shared(),
            inner: store,
            plan: Mutex::new(plan),
            is_down: AtomicBool::new(false),
            calls: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            delayed: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            by_verb: Mutex::default(),
            damage: Mutex::default(),
        }
    }

    /// Makes the store report that other processes have it open too.
    #[must_use]
    pub fn shared(self) -> Self {
        Self { is_shared: true, ..self }
    }

    /// Replaces the plan.
    pub fn set_plan(&self, plan: FaultPlan) {
        *self.plan.lock().unwrap_or_else(PoisonError::into_inner) = plan;
    }

    /// Makes the store unavailable: until it is up again, every call fails before it is executed.
    pub fn set_down(&self, is_down: bool) {
        self.is_down.store(is_down, Ordering::SeqCst);
    }

    /// Changes every operation that is read from now on, as a damaged store would.
    pub fn set_damage(&self, damage: impl Fn(&mut StoredEntry) + Send + Sync + 'static) {
        *self.damage.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(damage));
    }

    fn damaged(&self, mut stored: StoredEntry) -> StoredEntry {
        let damage = self.damage.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(damage) = damage {
            damage(&mut stored);
        }
        stored
    }

    /// The faults injected so far.
    #[must_use]
    pub fn fault_counts(&self) -> FaultCounts {
        FaultCounts {
            calls: self.calls.load(Ordering::SeqCst),
            failed: self.failed.load(Ordering::SeqCst),
            delayed: self.delayed.load(Ordering::SeqCst),
            lost: self.lost.load(Ordering::SeqCst),
        }
    }

    /// The number of calls of a method.
    #[must_use]
    pub fn calls_of(&self, verb: StoreMethod) -> u64 {
        self.by_verb.lock().unwrap_or_else(PoisonError::into_inner).get(&verb).copied().unwrap_or_default()
    }

    fn next_fault(&self, verb: StoreMethod) -> InjectedFault {
        self.calls.fetch_add(1, Ordering::SeqCst);
        *self.by_verb.lock().unwrap_or_else(PoisonError::into_inner).entry(verb).or_default() += 1;
        if self.is_down.load(Ordering::SeqCst) {
            return InjectedFault::Fail;
        }
        self.plan.lock().unwrap_or_else(PoisonError::into_inner).next_fault(verb)
    }

    /// Executes a call with the fault that is due. `call` is invoked only when the method is to be
    /// executed at all, because a backend may start before its future is awaited.
    fn call_with_fault<'a, T: Send + 'a>(
        &'a self,
        verb: StoreMethod,
        call: impl FnOnce() -> StoreFuture<'a, T> + Send + 'a,
    ) -> StoreFuture<'a, T> {
        Box::pin(async move {
            match self.next_fault(verb) {
                InjectedFault::None => call().await,
                InjectedFault::Fail => {
                    self.failed.fetch_add(1, Ordering::SeqCst);
                    Err(unavailable(verb))
                }
                InjectedFault::Delay(by) => {
                    self.delayed.fetch_add(1, Ordering::SeqCst);
                    tokio::time::sleep(by).await;
                    call().await
                }
                InjectedFault::LoseReply => {
                    let answer = call().await;
                    self.lost.fetch_add(1, Ordering::SeqCst);
                    lost(verb, answer)
                }
            }
        })
    }
}

fn unavailable(verb: StoreMethod) -> Error {
    Error::new(StoreErrorKind::Unavailable, format!("the store is out of reach ({verb:?} was made to fail)"))
}

/// The result of a call whose reply was lost. A refusal stays one: it would be the same the next
/// time.
fn lost<T>(verb: StoreMethod, answer: Result<T>) -> Result<T> {
    answer?;
    if verb.only_reads() {
        return Err(unavailable(verb));
    }
    Err(Error::new(StoreErrorKind::Unsure, format!("the answer was lost ({verb:?} was done all the same)")))
}
