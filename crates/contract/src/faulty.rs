//! A store that fails on purpose, by a script or by chance: before it did anything, late, or after it did it and with
//! the answer lost. What it wraps stays as it is.

mod journal;
mod log;
mod plan;
mod rest;
mod shared;

pub use plan::{Injury, Odds, Plan, Verb};

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tidegate_store::{Answer, Error, Kind, Result, Store};

/// What was injected so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Injected {
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
pub struct Faulty {
    inner: Arc<dyn Store>,
    plan: Mutex<Plan>,
    is_shared: bool,
    is_down: AtomicBool,
    calls: AtomicU64,
    failed: AtomicU64,
    delayed: AtomicU64,
    lost: AtomicU64,
    by_verb: Mutex<HashMap<Verb, u64>>,
}

impl Faulty {
    /// Wraps `store`.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, plan: Plan) -> Self {
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
    pub fn follow(&self, plan: Plan) {
        *self.plan.lock().unwrap_or_else(PoisonError::into_inner) = plan;
    }

    /// Puts the store out of reach: until it is told otherwise, everything fails before it is done.
    pub fn set_down(&self, is_down: bool) {
        self.is_down.store(is_down, Ordering::SeqCst);
    }

    /// What was injected so far.
    #[must_use]
    pub fn injected(&self) -> Injected {
        Injected {
            calls: self.calls.load(Ordering::SeqCst),
            failed: self.failed.load(Ordering::SeqCst),
            delayed: self.delayed.load(Ordering::SeqCst),
            lost: self.lost.load(Ordering::SeqCst),
        }
    }

    /// How often a verb was called.
    #[must_use]
    pub fn calls_of(&self, verb: Verb) -> u64 {
        self.by_verb.lock().unwrap_or_else(PoisonError::into_inner).get(&verb).copied().unwrap_or_default()
    }

    fn injury(&self, verb: Verb) -> Injury {
        self.calls.fetch_add(1, Ordering::SeqCst);
        *self.by_verb.lock().unwrap_or_else(PoisonError::into_inner).entry(verb).or_default() += 1;
        if self.is_down.load(Ordering::SeqCst) {
            return Injury::Fail;
        }
        self.plan.lock().unwrap_or_else(PoisonError::into_inner).next(verb)
    }

    /// Does a verb with the injury that is due. `call` is made only when the verb is to be done at all, because a
    /// backend may start before its answer is awaited.
    fn pass<'a, T: Send + 'a>(
        &'a self,
        verb: Verb,
        call: impl FnOnce() -> Answer<'a, T> + Send + 'a,
    ) -> Answer<'a, T> {
        Box::pin(async move {
            match self.injury(verb) {
                Injury::None => call().await,
                Injury::Fail => {
                    self.failed.fetch_add(1, Ordering::SeqCst);
                    Err(unavailable(verb))
                }
                Injury::Delay(by) => {
                    self.delayed.fetch_add(1, Ordering::SeqCst);
                    tokio::time::sleep(by).await;
                    call().await
                }
                Injury::LoseReply => {
                    let answer = call().await;
                    self.lost.fetch_add(1, Ordering::SeqCst);
                    lost(verb, answer)
                }
            }
        })
    }
}

fn unavailable(verb: Verb) -> Error {
    Error::new(Kind::Unavailable, format!("the store is out of reach ({verb:?} was made to fail)"))
}

/// The answer was on its way and is gone. A refusal stays one: it is the same the next time.
fn lost<T>(verb: Verb, answer: Result<T>) -> Result<T> {
    answer?;
    if verb.only_reads() {
        return Err(unavailable(verb));
    }
    Err(Error::new(Kind::Unsure, format!("the answer was lost ({verb:?} was done all the same)")))
}
