//! Opens an engine: acquires the partition, replays its log, sets the configured limits, and starts
//! the owner, the retention sweep and the archiver.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rustc_hash::FxHashMap;
use tidegate_core::Time;
use tidegate_core::fact::LimitShape;
use tidegate_store::log::{Lsn, Ownership, Retention};
use tidegate_store::{Clock, Store, StoreErrorKind, WallClock};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::{ArchiveLink, Engine, EngineBuilder};
use crate::archiver::{Archiver, Backlog};
use crate::calls::Calls;
use crate::carry::Carrier;
use crate::clock::{EngineClock, StoreClockReading};
use crate::error::{Error, ErrorKind, Result};
use crate::events::Events;
use crate::figures::AttemptSeries;
use crate::journey::Journeys;
use crate::load::LimitClosings;
use crate::options::Options;
use crate::owner::{LimitReporter, Owner, ReadAhead, ReplayedPartition, replay};
use crate::payloads::Payloads;
use crate::rng::JitterRng;
use crate::work::ReadyKinds;

/// How often operations past their retention are removed.
const SWEEP_EVERY: Duration = Duration::from_secs(60);
/// Operations removed in one step.
const SWEEP_MOST: usize = 500;
/// Call costs removed in one step.
const SWEEP_COSTS_MOST: usize = 1_000;
/// How far the wall clock may be behind the log before a warning is logged.
const CLOCK_BEHIND: Duration = Duration::from_secs(1);

impl Engine {
    pub(super) async fn open(parts: EngineBuilder) -> Result<Self> {
        let EngineBuilder { store, options, executors, remote_kinds, limits, archive: archiving } = parts;
        check(&options)?;
        check_archive(&*store, archiving.is_some())?;
        let started = Instant::now();
        store.migrate().await?;
        let asked = Instant::now();
        let ownership =
            store.acquire_partition(options.partition, &options.node, options.partition_lease).await?;
        let granted = StoreClockReading {
            at: ownership.until.before(options.partition_lease),
            asked,
            owned: Instant::now(),
        };
        let ReplayedPartition { model, facts_read, last } =
            match replay(&store, options.partition, &executors, &remote_kinds).await {
                Ok(replayed) => replayed,
                Err(error) => return Err(release_unreadable(&store, ownership, error).await),
            };
        let now = starting_time(store.is_shared(), &granted, model.clock());
        let clock = EngineClock::starting_at(now.max(model.clock()));
        let (commands, inbox) = mpsc::channel(options.backlog_max);
        let (stop, stopped) = watch::channel(None);
        let (tenure, tenures) = watch::channel(ownership);
        let (backlog, seen) = watch::channel(Backlog::default());
        let (ready, ready_kinds) = watch::channel(ReadyKinds::default());
        let mut calls = options.in_flight.take();
        calls.begin_epoch(ownership.epoch);
        let engine = Self {
            store: Arc::clone(&store),
            clock,
            executors: Arc::new(executors),
            // Event ids must not restart below an id that a listener has already seen.
            events: Arc::new(Events::new(now.as_micros(), options.event_sink.clone())),
            options: Arc::new(options),
            commands,
            stopped,
            ownership: tenures.clone(),
            give_up: calls.give_up.clone(),
            tasks: TaskTracker::new(),
            rerun_locks: Arc::new(std::array::from_fn(|_| tokio::sync::Mutex::default())),
            ready_kinds,
            archived: archiving.map(|archiving| ArchiveLink { archiving, backlog: seen }),
        };
        let owned_until = asked + engine.options.partition_lease;
        let parts = Parts {
            model,
            calls,
            facts_read,
            last,
            ownership: tenure,
            owned_until,
            limits,
            inbox,
            stop,
            remote_kinds: remote_kinds.into(),
            ready_kinds: ready,
        };
        let mut owner = engine.owner(parts);
        owner.restore_state();
        log_opened(&*store, &owner, facts_read, started);
        engine.start_archiver(&owner, tenures.clone(), backlog);
        engine.follow_early_starts();
        engine.tasks.spawn(owner.work());
        engine.start_sweeping(tenures);
        Ok(engine)
    }

    fn start_sweeping(&self, tenure: watch::Receiver<Ownership>) {
        let (store, stopped) = (Arc::clone(&self.store), self.stopped.clone());
        self.tasks.spawn(sweep(store, tenure, self.options.retention, self.clock, stopped));
    }

    fn start_archiver(
        &self,
        owner: &Owner,
        tenure: watch::Receiver<Ownership>,
        backlog: watch::Sender<Backlog>,
    ) {
        let Some(archived) = &self.archived else { return };
        let archiver = Archiver {
            store: Arc::clone(&self.store),
            archiving: archived.archiving.clone(),
            partition: self.options.partition,
            ownership: tenure,
            stopped: self.stopped.clone(),
            ended: Arc::clone(&owner.ended),
            backlog,
        };
        self.tasks.spawn(archiver.work());
    }

    fn owner(&self, parts: Parts) -> Owner {
        let carrier = Carrier {
            executors: Arc::clone(&self.executors),
            partition: self.options.partition,
            clock: self.clock,
            give_up: self.give_up.clone(),
            completion_key: self.options.completion_key.clone(),
        };
        Owner {
            ahead: ReadAhead::for_model(&parts.model),
            model: parts.model,
            building: crate::owner::OpenBatch::default(),
            share: crate::owner::BatchShare::new(1),
            spare: Vec::new(),
            clock: self.clock,
            events: Arc::clone(&self.events),
            journeys: Journeys::new(self.clock.now()),
            waiters: FxHashMap::default(),
            ended: Arc::default(),
            calls: parts.calls,
            held_back: Vec::new(),
            held_back_work: Vec::new(),
            handing_out: 0,
            asked: FxHashMap::default(),
            remote_kinds: parts.remote_kinds,
            ready_kinds: parts.ready_kinds,
            throttled: 0,
            series: AttemptSeries::default(),
            closings: LimitClosings::default(),
            owner_since: self.clock.now(),
            store: Arc::clone(&self.store),
            ownership: parts.ownership,
            owned_until: parts.owned_until,
            limits: parts.limits,
            limit_reporter: LimitReporter::new(
                &self.store,
                self.archived.as_ref().map(|to| &to.archiving.archive),
            ),
            carrier: Arc::new(carrier),
            payloads: Payloads::new(self.options.payload_cache_bytes),
            options: self.options.as_ref().clone(),
            chance: JitterRng::from_system(),
            commands: parts.inbox,
            draining: None,
            abandoned: false,
            last_sent: parts.last,
            facts_since_snapshot: parts.facts_read,
            snapshot_under_way: Arc::new(AtomicBool::new(false)),
            tasks: self.tasks.clone(),
            stopped: parts.stop,
        }
    }
}

/// The time at which an engine starts: that of the store if others share it.
fn starting_time(is_shared: bool, granted: &StoreClockReading, log: Time) -> Time {
    let now = if is_shared { granted.check_wall_clock(WallClock.now()) } else { WallClock.now() };
    if log > now.after(CLOCK_BEHIND) {
        let behind = log.since(now);
        tracing::warn!(?behind, "the clock is behind the log; continuing from the log's last time");
    }
    now
}

fn log_opened(store: &dyn Store, owner: &Owner, facts_read: u64, started: Instant) {
    let counts = owner.model.counts();
    let pending = counts.queued + counts.waiting + counts.unknown;
    let took = started.elapsed();
    tracing::info!(store = %store.describe(), facts_read, pending, ?took, "opened");
    owner.warn_of_unconfigured_upstreams();
    owner.warn_of_missing_kinds();
}

/// Releases a partition that this node cannot read, for a node that can.
async fn release_unreadable(store: &Arc<dyn Store>, owner: Ownership, error: tidegate_store::Error) -> Error {
    if error.kind() == StoreErrorKind::Unreadable
        && let Err(error) = store.release(owner).await
    {
        tracing::warn!(%error, "the partition could not be released");
    }
    error.into()
}

/// What an owner starts with.
struct Parts {
    model: tidegate_core::Model,
    calls: Calls,
    facts_read: u64,
    last: Lsn,
    ownership: watch::Sender<Ownership>,
    owned_until: Instant,
    limits: Vec<(Arc<str>, LimitShape)>,
    inbox: mpsc::Receiver<crate::owner::Command>,
    stop: watch::Sender<Option<Error>>,
    remote_kinds: Arc<[Arc<str>]>,
    ready_kinds: watch::Sender<ReadyKinds>,
}

fn check(options: &Options) -> Result<()> {
    let wrong = |message: &str| Err(Error::new(ErrorKind::BadConfig, message));
    if options.workers == 0 || options.batch_max == 0 || options.backlog_max == 0 {
        return wrong("workers, batch_max and backlog_max must be at least 1");
    }
    if options.lease.min(options.partition_lease) < Duration::from_secs(1) {
        return wrong("a lease must be at least a second long");
    }
    if options.retention < options.dedupe_window {
        return wrong(
            "retention must be at least as long as the dedupe window: a key must find its operation",
        );
    }
    Ok(())
}

fn check_archive(store: &dyn Store, is_archived: bool) -> Result<()> {
    if is_archived && store.archive_queue().is_none() {
        let message = format!("{} has no archive queue", store.describe());
        return Err(Error::new(ErrorKind::BadConfig, message));
    }
    Ok(())
}

/// Removes operations past their retention, a few at a time, until the engine stops.
async fn sweep(
    store: Arc<dyn Store>,
    tenure: watch::Receiver<Ownership>,
    retention: Duration,
    clock: EngineClock,
    mut stopped: watch::Receiver<Option<Error>>,
) {
    loop {
        tokio::select! {
            _ = stopped.wait_for(Option::is_some) => return,
            () = tokio::time::sleep(SWEEP_EVERY) => {}
        }
        let mut gone = 0;
        loop {
            let what = Retention { ended_before: clock.now().before(retention), most: SWEEP_MOST };
            let owner = *tenure.borrow();
            match store.sweep(owner, what).await {
                Ok(0) => break,
                Ok(some) => gone += some,
                Err(error) => {
                    tracing::warn!(%error, "clean-up stopped; it resumes in a minute");
                    break;
                }
            }
        }
        sweep_costs(&*store, &tenure, || clock.now().before(retention)).await;
        if gone > 0 {
            tracing::info!(operations = gone, "clean-up removed operations past their retention");
        }
    }
}

/// Does the same for call costs.
async fn sweep_costs(store: &dyn Store, tenure: &watch::Receiver<Ownership>, cut: impl Fn() -> Time) {
    let Some(costs) = store.costs() else { return };
    loop {
        let what = Retention { ended_before: cut(), most: SWEEP_COSTS_MOST };
        let owner = *tenure.borrow();
        match costs.sweep_costs(owner, what).await {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(%error, "clean-up of costs stopped; it resumes in a minute");
                return;
            }
        }
    }
}
