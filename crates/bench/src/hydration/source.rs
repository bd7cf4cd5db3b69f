//! The owner of the entities: it answers at once, slowly, or never, and counts how often it was
//! asked.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tidegate_hydration::{AbsenceReason, EntityQuestion, EntitySource, SourceAnswer, SourceFuture};
use tokio::time::Instant;

/// The prefix of ids that there is an entity for.
const KNOWN: &str = "c-";

/// What a source does with a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SourceBehavior {
    Answers,
    /// It answers after this time.
    Slow(Duration),
    Silent,
}

impl SourceBehavior {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Answers => "answers",
            Self::Slow(_) => "slow",
            Self::Silent => "silent",
        }
    }
}

/// A source.
pub(super) struct CountingSource {
    behavior: SourceBehavior,
    asked: AtomicUsize,
    answered_at: Mutex<Option<Instant>>,
}

impl CountingSource {
    pub(super) fn new(behavior: SourceBehavior) -> Arc<Self> {
        Arc::new(Self { behavior, asked: AtomicUsize::new(0), answered_at: Mutex::default() })
    }

    /// Looks for an entity.
    pub(super) async fn look(&self, id: &str) -> Option<Map<String, Value>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        match self.behavior {
            SourceBehavior::Answers => {}
            SourceBehavior::Slow(delay) => tokio::time::sleep(delay).await,
            SourceBehavior::Silent => std::future::pending().await,
        }
        *self.answered_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        id.starts_with(KNOWN).then(|| json!({ "name": "Ada", "city": "London" }))?.as_object().cloned()
    }

    /// How often it was asked.
    pub(super) fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }

    /// When it answered last.
    pub(super) fn answered_at(&self) -> Option<Instant> {
        *self.answered_at.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The id of an entity that is there.
pub(super) fn known_id(number: usize) -> String {
    format!("{KNOWN}{number}")
}

impl EntitySource for CountingSource {
    fn load<'a>(&'a self, question: &'a EntityQuestion) -> SourceFuture<'a> {
        Box::pin(async {
            Ok(match self.look(question.key.id()).await {
                Some(data) => SourceAnswer::Found { data, version: Some(1) },
                None => {
                    SourceAnswer::NotFound { reason: AbsenceReason::DeletedOrNeverExisted, version: Some(1) }
                }
            })
        })
    }
}
