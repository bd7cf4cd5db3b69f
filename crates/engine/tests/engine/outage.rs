//! What is logged when the archive is unavailable to a node with several partitions: on a real
//! Redis.

use std::fmt::{Debug, Write as _};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidegate::{Engine, Options, SharedArchive};
use tidegate_core::id::Partition;
use tidegate_core::{OperationId, Time};
use tidegate_fixture::redis::RedisServer;
use tidegate_store::costs::{Cost, CostQuery, CostReport, LimitSnapshot};
use tidegate_store::log::StoredEntry;
use tidegate_store::{Archive, Error, Store, StoreErrorKind, StoreFuture};
use tidegate_store_redis::RedisStore;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

const BOUND: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(20);

/// An archive that is unavailable until told otherwise, and counts its callers.
#[derive(Default)]
struct UnavailableArchive {
    is_back: AtomicBool,
    refused: AtomicUsize,
    answered: AtomicUsize,
}

impl Archive for UnavailableArchive {
    fn migrate(&self) -> StoreFuture<'_, ()> {
        let is_back = self.is_back.load(Ordering::SeqCst);
        let asked = if is_back { &self.answered } else { &self.refused };
        asked.fetch_add(1, Ordering::SeqCst);
        let away = Error::new(StoreErrorKind::Unavailable, "it is away");
        Box::pin(async move { if is_back { Ok(()) } else { Err(away) } })
    }

    fn save(&self, _: Partition, _: Vec<StoredEntry>) -> StoreFuture<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    fn read(&self, ids: Vec<OperationId>) -> StoreFuture<'_, Vec<Option<StoredEntry>>> {
        Box::pin(async move { Ok(vec![None; ids.len()]) })
    }

    fn save_costs(&self, _: Vec<Cost>) -> StoreFuture<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    fn save_limit_snapshots(&self, _: Partition, _: Vec<LimitSnapshot>) -> StoreFuture<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    fn remove_limit_snapshots(&self, _: Partition, _: Vec<Arc<str>>, _: Time) -> StoreFuture<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    fn cost_report(&self, _: CostQuery) -> StoreFuture<'_, CostReport> {
        Box::pin(async { Ok(CostReport::default()) })
    }

    fn describe(&self) -> String {
        "an archive".into()
    }
}

/// Captures everything that is logged on this thread.
#[derive(Clone, Default)]
struct CapturedLog(Arc<Mutex<String>>);

impl CapturedLog {
    fn count(&self, words: &str) -> usize {
        self.0.lock().unwrap().matches(words).count()
    }
}

impl Visit for CapturedLog {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0.lock().unwrap(), "{field}={value:?} ").unwrap();
    }
}

impl Subscriber for CapturedLog {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Waits until there were this many calls.
async fn wait_for_count(count: &AtomicUsize, many: usize) {
    let waited = async {
        while count.load(Ordering::SeqCst) < many {
            tokio::time::sleep(LOOK).await;
        }
        // The outcome of the last one is logged in between.
        tokio::time::sleep(LOOK).await;
    };
    tokio::time::timeout(BOUND, waited).await.unwrap();
}

/// OPS-8: two partitions that cannot be archived for the same reason are one outage: it is logged
/// once when it begins, and once when it is over.
#[tokio::test]
async fn ops_8_an_outage_of_the_archive_is_said_once_for_a_node() {
    let log = CapturedLog::default();
    let _logging = tracing::subscriber::set_default(log.clone());
    let redis = RedisServer::start();
    let store: Arc<dyn Store> = Arc::new(RedisStore::open(&redis.url()).await.unwrap().with_archive_queue());
    let archive = Arc::new(UnavailableArchive::default());
    let archiving = SharedArchive::new(Arc::clone(&archive) as Arc<dyn Archive>);
    let mut engines = Vec::new();
    for partition in [0, 1] {
        let options = Options::default().with_partition(partition).with_node("node");
        let archiving = Some(archiving.clone());
        let engine = Engine::builder(Arc::clone(&store)).options(options).archive(archiving).open();
        engines.push(engine.await.unwrap());
    }
    // Each tries at once, and again after a second.
    wait_for_count(&archive.refused, 4).await;
    assert_eq!((log.count("archiving fails"), log.count("archiving works again")), (1, 0));
    archive.is_back.store(true, Ordering::SeqCst);
    wait_for_count(&archive.answered, 2).await;
    for engine in engines {
        engine.drain().await;
    }
    assert_eq!((log.count("archiving fails"), log.count("archiving works again")), (1, 1));
}
