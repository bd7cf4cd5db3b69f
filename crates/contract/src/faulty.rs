//! A store that fails on purpose, by a script or by chance: before it did anything, late, or after it did it and with
//! the answer lost. What it wraps stays as it is.

mod journal;
mod log;
mod nodes_and_upkeep;
mod plan;
mod shared;

pub use plan::{FaultPlan, FaultRates, InjectedFault, StoreMethod};

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tidegate_store::{Error, Result, Store, StoreErrorKind, StoreFuture};

/// What was injected so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultCounts {
    /// Calls in all.
    pub calls: u64,
    /// Failed before anything was done.
    pub failed: u64,
    /// Done late.
    pub delayed: u64,
    /// Done, and answered as if it were not known.
    pub lost: u64,
}

/// A store that fails as its plan says.
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
}

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
        }
    }

    /// The same, and it says that other processes have it open too.
    #[must_use]
    pub fn shared(self) -> Self {
        Self { is_shared: true, ..self }
    }

    /// Goes by another plan from now on.
    pub fn set_plan(&self, plan: FaultPlan) {
        *self.plan.lock().unwrap_or_else(PoisonError::into_inner) = plan;
    }

    /// Puts the store out of reach: until it is told otherwise, everything fails before it is done.
    pub fn set_down(&self, is_down: bool) {
        self.is_down.store(is_down, Ordering::SeqCst);
    }

    /// What was injected so far.
    #[must_use]
    pub fn fault_counts(&self) -> FaultCounts {
        FaultCounts {
            calls: self.calls.load(Ordering::SeqCst),
            failed: self.failed.load(Ordering::SeqCst),
            delayed: self.delayed.load(Ordering::SeqCst),
            lost: self.lost.load(Ordering::SeqCst),
        }
    }

    /// How often a verb was called.
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

    /// Does a verb with the injury that is due. `call` is made only when the verb is to be done at all, because a
    /// backend may start before its answer is awaited.
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

/// The answer was on its way and is gone. A refusal stays one: it is the same the next time.
fn lost<T>(verb: StoreMethod, answer: Result<T>) -> Result<T> {
    answer?;
    if verb.only_reads() {
        return Err(unavailable(verb));
    }
    Err(Error::new(StoreErrorKind::Unsure, format!("the answer was lost ({verb:?} was done all the same)")))
}
