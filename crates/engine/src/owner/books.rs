//! How limits stand, told to whoever keeps it for people: every few seconds, what changed, beside everything else. Nothing
//! waits for it, and what could not be kept is told again.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustc_hash::FxHashMap;
use tidegate_core::Time;
use tidegate_core::fact::{Shape, Source};
use tidegate_core::model::LimitView;
use tidegate_core::operation::MICRO;
use tidegate_store::costs::Standing;
use tidegate_store::log::Ownership;
use tidegate_store::{Archive, Clock, Store};
use tokio::time::Instant;

use super::Owner;

/// How soon after the start, and how often then.
const FIRST: Duration = Duration::from_secs(1);
const EVERY: Duration = Duration::from_secs(5);
/// Limits that are looked at each time, so that nobody waits long; the next time it goes on from there.
const LOOKED_AT: usize = 2_000;

/// Who keeps it, and what they were told.
pub(crate) struct Books {
    keeper: Keeper,
    pub(super) next_at: Instant,
    from: usize,
    told: FxHashMap<Arc<str>, Standing>,
    under_way: Arc<AtomicBool>,
    is_lost: Arc<AtomicBool>,
}

#[derive(Clone)]
enum Keeper {
    Store(Arc<dyn Store>),
    Archive(Arc<dyn Archive>),
}

impl Keeper {
    async fn keep(&self, owner: Ownership, standings: Vec<Standing>) -> tidegate_store::Result<()> {
        match self {
            Self::Store(store) => match store.costs() {
                Some(costs) => costs.keep_standings(owner, standings).await,
                None => Ok(()),
            },
            Self::Archive(archive) => archive.keep_standings(owner.partition, standings).await,
        }
    }
}

impl Books {
    /// Books of a store that has them, or of its archive; none where there are neither.
    pub(crate) fn of(store: &Arc<dyn Store>, archive: Option<&Arc<dyn Archive>>) -> Option<Self> {
        let keeper = match archive {
            _ if store.costs().is_some() => Keeper::Store(Arc::clone(store)),
            archive => Keeper::Archive(Arc::clone(archive?)),
        };
        Some(Self {
            keeper,
            next_at: Instant::now() + FIRST,
            from: 0,
            told: FxHashMap::default(),
            under_way: Arc::default(),
            is_lost: Arc::default(),
        })
    }

    /// What is to be told of these: what was not told so before.
    fn news(&mut self, standings: Vec<Standing>) -> Vec<Standing> {
        let mut news = standings;
        news.retain(|standing| {
            let before = self.told.get(&standing.name);
            before.is_none_or(|before| {
                Standing { updated_at: standing.updated_at, ..before.clone() } != *standing
            })
        });
        self.told.extend(news.iter().map(|standing| (Arc::clone(&standing.name), standing.clone())));
        news
    }

    fn tell(&self, owner: Ownership, news: Vec<Standing>) {
        let (keeper, under_way, is_lost) =
            (self.keeper.clone(), Arc::clone(&self.under_way), Arc::clone(&self.is_lost));
        under_way.store(true, Ordering::Release);
        tokio::spawn(async move {
            if let Err(error) = keeper.keep(owner, news).await {
                tracing::debug!(%error, "how limits stand was not kept; it is told again");
                is_lost.store(true, Ordering::Release);
            }
            under_way.store(false, Ordering::Release);
        });
    }
}

impl Owner {
    /// Tells how limits stand, when it is time to.
    pub(super) fn keep_books(&mut self) {
        let owner = *self.tenure.borrow();
        let Some(books) = &mut self.books else { return };
        let instant = Instant::now();
        if instant < books.next_at {
            return;
        }
        books.next_at = instant + EVERY;
        if books.under_way.load(Ordering::Acquire) {
            return;
        }
        if books.is_lost.swap(false, Ordering::AcqRel) {
            books.told.clear();
        }
        let now = self.clock.now();
        let looked: Vec<Standing> = self
            .model
            .limits(now)
            .skip(books.from)
            .take(LOOKED_AT)
            .map(|view| standing(&view, now))
            .collect();
        books.from = if looked.len() < LOOKED_AT { 0 } else { books.from + LOOKED_AT };
        if books.from == 0 {
            // A limit that has gone is not remembered; what was told of it stands.
            books.told.retain(|name, _| self.model.limit(name, now).is_some());
        }
        let news = books.news(looked);
        if !news.is_empty() {
            books.tell(owner, news);
        }
    }
}

fn standing(view: &LimitView, now: Time) -> Standing {
    let (kind, capacity, refill_per_s, level) = match view.shape {
        Shape::Drip { capacity, refill_per_s, .. } => {
            ("drip", Some(capacity), Some(refill_per_s), Some(view.level))
        }
        Shape::Window { limit, .. } => ("window", Some(limit), None, Some(view.level)),
        Shape::Gate => ("gate", None, None, None),
        Shape::Cap { at_once } => {
            ("cap", Some(u64::from(at_once) * MICRO), None, Some(view.level.saturating_mul(MICRO)))
        }
    };
    let source = match view.source {
        Source::Config => "config",
        Source::Operator => "operator",
        Source::Learned => "learned",
    };
    Standing {
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
