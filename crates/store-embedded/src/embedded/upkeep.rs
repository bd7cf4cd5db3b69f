//! Health checks, migration and statistics of a directory.

use tidegate_core::id::Partition;
use tidegate_store::upkeep::{SECRET_LEN, StoreStats};
use tidegate_store::{StoreFuture, Upkeep};

use super::lock::unusable;
use super::{EmbeddedStore, SHARED_IN, blocking, record_rows, schema};
use crate::checks;

/// The size of a health check's trial write, which tests whether there is room for it. It is rolled
/// back.
const TRIAL_LEN: i64 = 64 * 1024;

/// How long a health check waits for a recent write failure to recover.
const RECOVERY: std::time::Duration = std::time::Duration::from_millis(500);

impl Upkeep for EmbeddedStore {
    fn migrate(&self) -> StoreFuture<'_, ()> {
        // Opening has migrated every file, or rejected it.
        Box::pin(async { Ok(()) })
    }

    fn check_layout(&self) -> StoreFuture<'_, ()> {
        // No other process changes open files.
        Box::pin(async { Ok(()) })
    }

    fn ensure_partitions(&self, wanted: Partition) -> StoreFuture<'_, Partition> {
        Box::pin(async move {
            checks::check_partition_count(wanted)?;
            let file = self.partition(SHARED_IN).await?;
            file.write(1, move |desk| {
                let known = schema::meta(desk.sql, "partitions")?;
                if known.is_none() {
                    schema::set_meta(desk.sql, "partitions", i64::from(wanted))?;
                }
                Ok(Ok(known.and_then(|known| Partition::try_from(known).ok()).unwrap_or(wanted)))
            })
            .await
        })
    }

    fn ensure_secret(&self, offered: [u8; SECRET_LEN]) -> StoreFuture<'_, [u8; SECRET_LEN]> {
        Box::pin(async move {
            let file = self.partition(SHARED_IN).await?;
            file.write(1, move |desk| Ok(Ok(schema::keep_secret(desk.sql, offered)?))).await
        })
    }

    fn health(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let file = self.partition(SHARED_IN).await?;
            file.write(1, |desk| {
                desk.sql
                    .prepare_cached(
                        "INSERT OR REPLACE INTO meta (name, value) VALUES ('trial', zeroblob(?1))",
                    )?
                    .execute([TRIAL_LEN])?;
                desk.sql.prepare_cached("DELETE FROM meta WHERE name = 'trial'")?.execute([])?;
                Ok(Ok(()))
            })
            .await?;
            file.wal.wake();
            file.wal.tail.recover(RECOVERY).await
        })
    }

    fn stats(&self) -> StoreFuture<'_, StoreStats> {
        Box::pin(async move {
            let mut stats = StoreStats::default();
            let open: Vec<_> = self.files.map().values().cloned().collect();
            for file in &open {
                // A list that is not fully applied is only slightly stale.
                let _ = file.wal.wait_until_applied().await;
                stats.operations += file.counts.operations();
                stats.appends += file.counts.appends();
            }
            let dir = self.files.lock.dir().to_owned();
            stats.bytes = blocking::run(move || {
                let entries = std::fs::read_dir(&dir).map_err(|cause| unusable(&dir, cause))?;
                // A file that disappears while it is counted takes no room.
                let lens = entries.flatten().filter_map(|entry| entry.metadata().ok());
                Ok(lens.map(|found| found.len()).sum())
            })
            .await?;
            stats.records = self.partition(SHARED_IN).await?.read(record_rows::count_records).await?;
            Ok(stats)
        })
    }

    fn is_shared(&self) -> bool {
        false
    }

    fn describe(&self) -> String {
        format!("file:{}", self.files.lock.dir().display())
    }
}
