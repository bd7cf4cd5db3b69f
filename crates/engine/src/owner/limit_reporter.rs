//! Writes the state of limits to the store or the archive, for people to read: every few seconds,
//! only what changed, concurrently with everything else; what is gone is removed. Nothing waits for
//! it, and what could not be written is written again later.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustc_hash::FxHashMap;
use tidegate_core::Time;
use tidegate_core::fact::{LimitShape, LimitSource};
use tidegate_core::model::LimitView;
use tidegate_core::operation::MICRO;
use tidegate_store::costs::LimitSnapshot;
use tidegate_store::log::Ownership;
use tidegate_store::{Archive, Clock, Store};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::Owner;

/// The delay of the first report, and the interval of those that follow.
const FIRST: Duration = Duration::from_secs(1);
const EVERY: Duration = Duration::from_secs(5);
/// Limits examined for each report, so that no one waits long; the next report continues from
/// there.
const LIMITS_PER_REPORT: usize = 2_000;

/// Where limits are reported, and what was reported last.
pub(crate) struct LimitReporter {
    sink: LimitSink,
    pub(super) next_at: Instant,
    from: usize,
    reported: FxHashMap<Arc<str>, LimitSnapshot>,
    /// When the first report, or the first one after one was lost, began, until all limits have
    /// been reported: what was last saved before then is gone.
    all_since: Option<Time>,
    under_way: Arc<AtomicBool>,
    is_lost: Arc<AtomicBool>,
}

#[derive(Clone)]
enum LimitSink {
    Store(Arc<dyn Store>),
    Archive(Arc<dyn Archive>),
}

impl LimitSink {
    async fn save(&self, owner: Ownership, standings: Vec<LimitSnapshot>) -> tidegate_store::Result<()> {
        match self {
            Self::Store(store) => match store.costs() {
                Some(costs) => costs.save_limit_snapshots(owner, standings).await,
                None => Ok(()),
            },
            Self::Archive(archive) => archive.save_limit_snapshots(owner.partition, standings).await,
        }
    }

    async fn remove(&self, owner: Ownership, gone: GoneLimits) -> tidegate_store::Result<()> {
        let GoneLimits { names, before } = gone;
        match self {
            Self::Store(store) => match store.costs() {
                Some(costs) => costs.remove_limit_snapshots(owner, names, before).await,
                None => Ok(()),
            },
            Self::Archive(archive) => archive.remove_limit_snapshots(owner.partition, names, before).await,
        }
    }
}

/// Limits whose saved state is removed: by name, and all that was last saved before a time.
struct GoneLimits {
    names: Vec<Arc<str>>,
    before: Time,
}

impl LimitReporter {
    /// Creates a reporter for a store that keeps limits, or for its archive; `None` without either.
    pub(crate) fn new(store: &Arc<dyn Store>, archive: Option<&Arc<dyn Archive>>) -> Option<Self> {
        let keeper = match archive {
            _ if store.costs().is_some() => LimitSink::Store(Arc::clone(store)),
            archive => LimitSink::Archive(Arc::clone(archive?)),
        };
        Some(Self {
            sink: keeper,
            next_at: Instant::now() + FIRST,
            from: 0,
            reported: FxHashMap::default(),
            all_since: None,
            under_way: Arc::default(),
            // What earlier owners reported is not known.
            is_lost: Arc::new(AtomicBool::new(true)),
        })
    }

    /// Returns the snapshots that differ from those last reported.
    fn changed_snapshots(&mut self, standings: Vec<LimitSnapshot>) -> Vec<LimitSnapshot> {
        let mut news = standings;
        news.retain(|standing| {
            let before = self.reported.get(&standing.name);
            before.is_none_or(|before| {
                LimitSnapshot { updated_at: standing.updated_at, ..before.clone() } != *standing
            })
        });
        self.reported.extend(news.iter().map(|standing| (Arc::clone(&standing.name), standing.clone())));
        news
    }

    /// Forgets the limits that are gone, and returns what to remove of them, once all limits were
    /// reported.
    fn forget_gone(&mut self, is_there: impl Fn(&str) -> bool) -> Option<GoneLimits> {
        let gone = self.reported.extract_if(|name, _| !is_there(name));
        let names: Vec<Arc<str>> = gone.map(|(name, _)| name).collect();
        let all_since = self.all_since.take();
        let is_any = all_since.is_some() || !names.is_empty();
        is_any.then(|| GoneLimits { names, before: all_since.unwrap_or(Time::ZERO) })
    }

    fn save_in_background(
        &self,
        tasks: &TaskTracker,
        owner: Ownership,
        news: Vec<LimitSnapshot>,
        gone: Option<GoneLimits>,
    ) {
        let (keeper, under_way, is_lost) =
            (self.sink.clone(), Arc::clone(&self.under_way), Arc::clone(&self.is_lost));
        under_way.store(true, Ordering::Release);
        tasks.spawn(async move {
            let save = async {
                if !news.is_empty() {
                    keeper.save(owner, news).await?;
                }
                match gone {
                    Some(gone) => keeper.remove(owner, gone).await,
                    None => Ok(()),
                }
            };
            if let Err(error) = save.await {
                tracing::debug!(%error, "the state of limits was not saved; it is reported again");
                is_lost.store(true, Ordering::Release);
            }
            under_way.store(false, Ordering::Release);
        });
    }
}

impl Owner {
    /// Reports the state of limits, when it is time to.
    pub(super) fn report_limits(&mut self) {
        let owner = *self.ownership.borrow();
        let Some(books) = &mut self.limit_reporter else { return };
        let instant = Instant::now();
        if instant < books.next_at {
            return;
        }
        books.next_at = instant + EVERY;
        if books.under_way.load(Ordering::Acquire) {
            return;
        }
        let now = self.clock.now();
        if books.is_lost.swap(false, Ordering::AcqRel) {
            books.reported.clear();
            (books.from, books.all_since) = (0, Some(now));
        }
        let looked: Vec<LimitSnapshot> = self
            .model
            .limits(now)
            .skip(books.from)
            .take(LIMITS_PER_REPORT)
            .map(|view| limit_snapshot(&view, now))
            .collect();
        books.from = if looked.len() < LIMITS_PER_REPORT { 0 } else { books.from + LIMITS_PER_REPORT };
        let news = books.changed_snapshots(looked);
        let is_pass_over = books.from == 0;
        let gone = is_pass_over.then(|| books.forget_gone(|name| self.model.limit(name, now).is_some()));
        let gone = gone.flatten();
        if !news.is_empty() || gone.is_some() {
            books.save_in_background(&self.tasks, owner, news, gone);
        }
    }
}

fn limit_snapshot(view: &LimitView, now: Time) -> LimitSnapshot {
    let (kind, capacity, refill_per_s, level) = match view.shape {
        LimitShape::Drip { capacity, refill_per_s, .. } => {
            ("drip", Some(capacity), Some(refill_per_s), Some(view.level))
        }
        LimitShape::Window { limit, .. } => ("window", Some(limit), None, Some(view.level)),
        LimitShape::Gate => ("gate", None, None, None),
        LimitShape::Breaker { .. } => ("breaker", None, None, None),
        LimitShape::Cap { at_once } => {
            ("cap", Some(u64::from(at_once) * MICRO), None, Some(view.level.saturating_mul(MICRO)))
        }
    };
    let source = match view.source {
        LimitSource::Config => "config",
        LimitSource::Operator => "operator",
        LimitSource::Learned => "learned",
    };
    LimitSnapshot {
        name: Arc::clone(&view.name),
        kind: Cow::Borrowed(kind),
        capacity,
        refill_per_s,
        level,
        source: Cow::Borrowed(source),
        closed_until: view.frozen_until,
        updated_at: now,
    }
}
