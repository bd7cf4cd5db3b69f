//! The consumer: it looks at the local copy, asks the owner once for what is missing, and wakes all
//! who wait. The decisions are those of `FlightTable`; here are the lock, the tasks and the bus.

mod defer;
mod flight_task;
mod get;
mod options;
mod receive;
mod shared_memory;
mod waiter;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tidegate_bus::Bus;
use tidegate_core::Time;
use tidegate_core::hydration::{EntityKey, FlightRules, FlightTable, FlightView};
use tokio::sync::Notify;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use crate::clock::FlightClock;
use crate::copies::{EntityChange, LocalCopies};
use crate::counters::report_levels;
use crate::event::EntityQuestion;
use crate::outcome::HydrationError;
use crate::subjects;

pub(crate) use get::Read;
pub use options::{FailureMode, GetOptions, HydratorBuilder};
use shared_memory::SharedMemory;
use waiter::{FlightAnswer, WaiterHandle};

/// A consumer of other modules' entities. Clones are the same consumer; it stops when the last one
/// is dropped.
#[derive(Clone)]
pub struct Hydrator {
    inner: Arc<Inner>,
    _stop: Arc<DropGuard>,
}

struct Inner {
    module: String,
    owned_types: Vec<String>,
    bus: Arc<dyn Bus>,
    copies: Arc<dyn LocalCopies>,
    shared: Option<SharedMemory>,
    table: Mutex<FlightTable<WaiterHandle>>,
    clock: FlightClock,
    /// Notified when the next timer is earlier than it was.
    earlier: Notify,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Hydrator {
    /// Begins a consumer for the module `module` that asks on `bus` and keeps what it learns in
    /// `copies`.
    #[must_use]
    pub fn builder(module: &str, bus: Arc<dyn Bus>, copies: Arc<dyn LocalCopies>) -> HydratorBuilder {
        HydratorBuilder::new(module, bus, copies)
    }

    async fn start(builder: HydratorBuilder) -> Result<Self, HydrationError> {
        let filter = subjects::answers(builder.only_type.as_deref())?;
        // Confirmed: no question leaves before its answer can be received.
        let subscription = builder.bus.subscribe(&filter).await?;
        let stop = CancellationToken::new();
        let FlightRules { retry_backoff, negative_ttl, .. } = builder.rules;
        let inner = Arc::new(Inner {
            module: builder.module,
            owned_types: builder.owned_types,
            bus: builder.bus,
            copies: builder.copies,
            shared: builder.shared.map(|store| SharedMemory::new(store, retry_backoff, negative_ttl)),
            table: Mutex::new(FlightTable::new(builder.rules)),
            clock: FlightClock::start(),
            earlier: Notify::new(),
            tasks: TaskTracker::new(),
            stop: stop.clone(),
        });
        inner.tasks.spawn(receive::receive_answers(Arc::clone(&inner), subscription));
        inner.tasks.spawn(flight_task::keep_time(Arc::clone(&inner)));
        Ok(Self { inner, _stop: Arc::new(stop.drop_guard()) })
    }

    /// Forgets what is known about an entity: its copy is stale, and "not found" is no longer
    /// remembered. Its next reader asks.
    ///
    /// # Errors
    /// `Copies` when the local copy could not be written.
    pub async fn invalidate(&self, key: &EntityKey) -> Result<(), HydrationError> {
        self.inner.copies.update(key, &EntityChange::Stale).await.map_err(HydrationError::Copies)?;
        let now = self.inner.clock.now();
        self.inner.with_table(|table| table.invalidate(key, now));
        Ok(())
    }

    /// Tells whoever waits for the answer to this question that its source, in this process, could
    /// not look. Over the bus an error is no answer, and they wait until their time is up.
    pub fn source_failed(&self, question: &EntityQuestion) {
        self.inner.report_source_failure(question);
    }

    /// Whether anyone in this process waits for an entity.
    #[must_use]
    pub fn is_awaited(&self, key: &EntityKey) -> bool {
        self.inner.with_table(|table| table.is_awaited(key))
    }

    /// Asks for an entity again, if anyone waits for it: whoever was to answer has ended without an
    /// answer that counts here.
    pub fn ask_again(&self, key: &EntityKey) {
        let now = self.inner.clock.now();
        self.inner.with_table(|table| table.ask_again(key, now));
    }

    /// Removes what is known about an entity, its version included, and returns whether there was
    /// anything: for a copy that was published by mistake and that no answer of its owner is newer
    /// than.
    ///
    /// # Errors
    /// `Copies` when the local copy could not be read or written.
    pub async fn forget(&self, key: &EntityKey) -> Result<bool, HydrationError> {
        let copies = &self.inner.copies;
        let was_known = copies.load(key).await.map_err(HydrationError::Copies)?.is_some();
        copies.update(key, &EntityChange::Forgotten).await.map_err(HydrationError::Copies)?;
        let now = self.inner.clock.now();
        self.inner.with_table(|table| table.invalidate(key, now));
        Ok(was_known)
    }

    /// A source of this type is there now: what was not answered for lack of one is asked again at
    /// once, instead of after a while.
    pub fn source_started(&self, entity_type: &str) {
        let now = self.inner.clock.now();
        self.inner.with_table(|table| table.source_started(entity_type, now));
    }

    /// At most `most` of the flights behind this entity, or from the first on: what is asked, who
    /// waits and until when.
    #[must_use]
    pub fn flights(&self, after: Option<&EntityKey>, most: usize) -> Vec<FlightView> {
        let now = self.inner.clock.now();
        self.inner.with_table(|table| table.views(after, most, now))
    }

    /// Stops: who waits fails with `Closed`, deferred work is resumed with it, and this returns
    /// when all of it has ended.
    pub async fn close(&self) {
        self.inner.shut();
        self.inner.tasks.close();
        self.inner.tasks.wait().await;
    }
}

impl Inner {
    /// One step on the table. Wakes the timekeeper when there is an earlier timer.
    fn with_table<T>(&self, step: impl FnOnce(&mut FlightTable<WaiterHandle>) -> T) -> T {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let before = table.next_timer().unwrap_or(Time::MAX);
        let result = step(&mut table);
        let is_earlier = table.next_timer().is_some_and(|next| next < before);
        drop(table);
        if is_earlier {
            self.earlier.notify_one();
        }
        result
    }

    /// Ends all flights; nothing is asked any more.
    fn shut(self: &Arc<Self>) {
        let waiters = self.with_table(FlightTable::close);
        self.stop.cancel();
        self.wake(waiters, &FlightAnswer::Closed);
        self.report();
    }

    fn report(&self) {
        let (flights, (waiters, deferred), negatives) =
            self.with_table(|table| (table.flights(), table.waiters(), table.negatives()));
        report_levels(flights, waiters, deferred, negatives);
    }
}

impl fmt::Debug for Hydrator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hydrator({:?})", self.inner.module)
    }
}
