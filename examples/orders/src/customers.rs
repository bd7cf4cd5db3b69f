//! The service that owns customers: its database is a map.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value, json};
use tidegate_bus::Bus;
use tidegate_hydration::{
    AbsenceReason, EntityKey, EntityQuestion, EntitySource, HydrationError, SourceAnswer, SourceFuture,
    SourceServer,
};

/// A customer and its version.
type Row = (Map<String, Value>, u64);

#[derive(Default)]
struct Database {
    rows: Mutex<BTreeMap<String, Row>>,
    questions: AtomicUsize,
}

impl EntitySource for Database {
    fn load<'a>(&'a self, question: &'a EntityQuestion) -> SourceFuture<'a> {
        self.questions.fetch_add(1, Ordering::SeqCst);
        let rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = match rows.get(question.key.id()) {
            Some((data, version)) => SourceAnswer::Found { data: data.clone(), version: Some(*version) },
            None => SourceAnswer::NotFound { reason: AbsenceReason::DeletedOrNeverExisted, version: None },
        };
        Box::pin(async { Ok(answer) })
    }
}

/// The service.
pub struct Customers {
    database: Arc<Database>,
    source: SourceServer,
}

impl Customers {
    /// Starts the service on a bus.
    ///
    /// # Errors
    /// When the bus cannot be subscribed to.
    pub async fn start(bus: Arc<dyn Bus>) -> Result<Self, HydrationError> {
        let database = Arc::new(Database::default());
        let source = SourceServer::start("customers", "customer", bus, database.clone()).await?;
        Ok(Self { database, source })
    }

    /// Saves a customer without telling anyone: as if the announcement was lost.
    pub fn save(&self, key: &EntityKey, name: &str, city: &str) -> (Map<String, Value>, u64) {
        let mut rows = self.database.rows.lock().unwrap_or_else(PoisonError::into_inner);
        let version = rows.get(key.id()).map_or(1, |(_, version)| version + 1);
        let data = json!({ "name": name, "city": city }).as_object().cloned().unwrap_or_default();
        rows.insert(key.id().to_owned(), (data.clone(), version));
        (data, version)
    }

    /// Saves a customer and announces it.
    pub async fn save_and_announce(&self, key: &EntityKey, name: &str, city: &str) {
        let (data, version) = self.save(key, name, city);
        // Whoever misses it asks.
        let _ = self.source.announce(key, data, Some(version)).await;
    }

    /// How many times someone asked.
    #[must_use]
    pub fn questions(&self) -> usize {
        self.database.questions.load(Ordering::SeqCst)
    }
}
