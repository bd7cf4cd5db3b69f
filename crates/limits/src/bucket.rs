//! A bucket that many processes take from. Taking or saying when is one step of the store; waiting is done here, in a line
//! for each handle. The figures travel with every call, so there is nothing to set up and nothing to migrate.

pub(crate) mod figures;
mod line;
mod several;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tidegate_core::shared::bucket::{Reserve, Reserved};
use tidegate_store::Shared;
use tokio::time::Instant;

use crate::tokens::{LEAST, NOTHING, shown};
use crate::{Error, Grant, Result, Tokens, named};
use figures::{Figures, Pair};
use line::Line;

pub use several::{take_all, take_all_within, try_take_all};

/// A bucket: its name, what it holds, and what comes back each second. Clones are the same handle, with one line.
///
/// Everybody who names it should say the same figures: it follows those of the last one who asked.
#[derive(Clone)]
pub struct Bucket {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    store: Arc<dyn Shared>,
    name: String,
    figures: Figures,
    line: Line,
}

/// Whether it was granted. To be told to wait is no error.
#[derive(Debug)]
#[must_use = "what was not granted must not be spent"]
pub enum Taken<T> {
    /// It was taken.
    Granted(T),
    /// Nothing was taken.
    Wait(Wait),
}

/// When it could be had.
#[derive(Clone, Debug, PartialEq)]
pub struct Wait {
    /// Until it could be had, if nobody else takes any; of several buckets the longest. Of those who waited in a line it
    /// is reckoned with all that stand before them.
    pub delay: Duration,
    /// What was left in each bucket, in tokens, in the order asked; nothing when patience ended in a line.
    pub remaining: Vec<f64>,
}

impl<T> Taken<T> {
    /// What was granted, if it was.
    #[must_use]
    pub fn granted(self) -> Option<T> {
        match self {
            Self::Granted(granted) => Some(granted),
            Self::Wait(_) => None,
        }
    }
}

impl Bucket {
    /// A handle on a bucket of `capacity` tokens of which `refill_per_s` come back each second, evenly. It starts full.
    ///
    /// On a Redis Cluster, buckets that are taken together must have the same name up to the first slash.
    ///
    /// # Errors
    /// `Invalid` when the name or a figure is out of bounds: 1 to 255 bytes on one line, and 0.000001 to 10¹² tokens.
    pub fn new(
        store: Arc<dyn Shared>,
        name: impl Into<String>,
        capacity: impl Into<Tokens>,
        refill_per_s: impl Into<Tokens>,
    ) -> Result<Self> {
        let (name, pair) = checked(name, capacity.into(), refill_per_s.into())?;
        let inner = Inner { store, name, figures: Figures::fixed(pair), line: Line::default() };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// A handle on a bucket whose figures are [learned](Bucket::learn) from the API behind it: these serve only until then,
    /// and not at all when somebody has learned better ones before. It asks the store for them once, with its first take.
    ///
    /// # Errors
    /// As for [`Bucket::new`].
    pub fn learning(
        store: Arc<dyn Shared>,
        name: impl Into<String>,
        capacity: impl Into<Tokens>,
        refill_per_s: impl Into<Tokens>,
    ) -> Result<Self> {
        let (name, pair) = checked(name, capacity.into(), refill_per_s.into())?;
        let inner = Inner { store, name, figures: Figures::bootstrap(pair), line: Line::default() };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The most it holds and what comes back each second, in tokens, as far as is known here.
    #[must_use]
    pub fn figures(&self) -> (f64, f64) {
        let Pair { capacity, refill_per_s } = self.inner.figures.now();
        (shown(capacity), shown(refill_per_s))
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// What is in it now, in tokens. One that nobody has used is full.
    ///
    /// # Errors
    /// The store's.
    pub async fn level(&self) -> Result<f64> {
        let level = self.inner.store.observe_bucket(self.name()).await?;
        Ok(shown(level.map_or(self.inner.figures.now().capacity, |level| level.tokens)))
    }

    /// Takes `cost`, or says when. Asks once, and looks at no line.
    ///
    /// # Errors
    /// `Invalid`, `TooCostly`, or the store's. Nothing is granted then.
    pub async fn try_take(&self, cost: impl Into<Tokens>) -> Result<Taken<Grant>> {
        let wanted = self.wanted(cost.into()).await?;
        let cost = wanted.cost;
        let reserved = self.inner.store.reserve(vec![wanted]).await?;
        self.single(reserved, cost)
    }

    /// Takes `cost`, and waits for it as long as it takes, behind those who wait at this handle already. It asks again when
    /// it was told to, never earlier. Dropped while it waits, it leaves the line and takes nothing.
    ///
    /// Handles in other processes have lines of their own: between lines whoever asks first is first, so one that wants
    /// nearly the whole capacity may wait long while others take little and often.
    ///
    /// # Errors
    /// `Invalid`, `TooCostly`, or the store's. Nothing is granted then.
    pub async fn take(&self, cost: impl Into<Tokens>) -> Result<Grant> {
        let wanted = self.wanted(cost.into()).await?;
        loop {
            let reserved = self.reserve(vec![wanted.clone()], None).await?;
            if let Taken::Granted(grant) = self.single(reserved, wanted.cost)? {
                return Ok(grant);
            }
        }
    }

    /// The same, waiting at most for `patience`. When it is told that this will not do, it says so at once and does not wait.
    /// A store that answers slowly is waited for all the same.
    ///
    /// # Errors
    /// As for [`Bucket::take`].
    pub async fn take_within(&self, cost: impl Into<Tokens>, patience: Duration) -> Result<Taken<Grant>> {
        let wanted = self.wanted(cost.into()).await?;
        let cost = wanted.cost;
        let reserved = self.reserve(vec![wanted], Instant::now().checked_add(patience)).await?;
        self.single(reserved, cost)
    }

    pub(crate) fn store(&self) -> &dyn Shared {
        &*self.inner.store
    }

    /// What is wanted of it, if it can ever be had.
    async fn wanted(&self, cost: Tokens) -> Result<Reserve> {
        self.inner.figures.look(self.store(), self.name()).await?;
        let Pair { capacity, refill_per_s } = self.inner.figures.now();
        let name = self.inner.name.clone();
        let cost = cost.checked("cost", &name, NOTHING)?;
        if cost > capacity {
            return Err(Error::TooCostly { bucket: name, cost: shown(cost), capacity: shown(capacity) });
        }
        Ok(Reserve { name, cost, capacity, refill_per_s })
    }

    /// Asks at once when nobody waits here; else, and when it was told to wait, it stands in line.
    async fn reserve(&self, wanted: Vec<Reserve>, until: Option<Instant>) -> Result<Reserved> {
        let mut not_before = Instant::now();
        if self.inner.line.is_empty() {
            match self.inner.store.reserve(wanted.clone()).await? {
                Reserved::Wait { delay, remaining } => {
                    let told = line::after(delay);
                    if until.is_some_and(|until| told > until) {
                        return Ok(Reserved::Wait { delay, remaining });
                    }
                    not_before = told;
                }
                decided => return Ok(decided),
            }
        }
        line::stand(&self.inner, wanted, not_before, until).await
    }

    fn single(&self, reserved: Reserved, cost: u64) -> Result<Taken<Grant>> {
        match reserved {
            Reserved::Granted { remaining } => {
                let remaining = remaining.first().copied().unwrap_or_default();
                Ok(Taken::Granted(Grant::new(self.clone(), cost, remaining)))
            }
            Reserved::Wait { delay, remaining } => Ok(Taken::Wait(Wait::new(delay, &remaining))),
            Reserved::Never { .. } => Err(never(self.name(), cost, self.inner.figures.now().capacity)),
        }
    }
}

impl Wait {
    fn new(delay: Duration, remaining: &[u64]) -> Self {
        Self { delay, remaining: remaining.iter().copied().map(shown).collect() }
    }
}

/// The name and both figures, if they are within bounds.
fn checked(name: impl Into<String>, capacity: Tokens, refill_per_s: Tokens) -> Result<(String, Pair)> {
    let name = named("bucket", name)?;
    let capacity = capacity.checked("capacity", &name, LEAST)?;
    let refill_per_s = refill_per_s.checked("refill", &name, LEAST)?;
    Ok((name, Pair { capacity, refill_per_s }))
}

/// It is checked before the store is asked, so a store that says so has figures of its own.
fn never(bucket: &str, cost: u64, capacity: u64) -> Error {
    Error::TooCostly { bucket: bucket.to_owned(), cost: shown(cost), capacity: shown(capacity) }
}

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, (capacity, refill_per_s)) = (&self.inner.name, self.figures());
        write!(f, "Bucket({name:?}, {capacity} tokens, {refill_per_s} each second)")
    }
}
