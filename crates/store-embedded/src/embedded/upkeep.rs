//! Looking after a directory.

use tidegate_core::id::Partition;
use tidegate_store::upkeep::{SECRET_LEN, Stats};
use tidegate_store::{Answer, Upkeep};

use super::lock::unusable;
use super::{Embedded, SHARED_IN, blocking, schema};
use crate::checks;

/// What a health check writes, to see whether there is room for it. It is gone again before it is committed.
const TRIAL_LEN: i64 = 64 * 1024;

/// How long a health check waits for what could not be written a moment ago.
const RECOVERY: std::time::Duration = std::time::Duration::from_millis(500);

impl Upkeep for Embedded {
    fn migrate(&self) -> Answer<'_, ()> {
        // Opening has brought every file up to date, or refused it.
        Box::pin(async { Ok(()) })
    }

    fn layout(&self) -> Answer<'_, ()> {
        // Nobody else changes what is open here.
        Box::pin(async { Ok(()) })
    }

    fn partitions(&self, wanted: Partition) -> Answer<'_, Partition> {
        Box::pin(async move {
            checks::some_partitions(wanted)?;
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

    fn secret(&self, offered: [u8; SECRET_LEN]) -> Answer<'_, [u8; SECRET_LEN]> {
        Box::pin(async move {
            let file = self.partition(SHARED_IN).await?;
            file.write(1, move |desk| Ok(Ok(schema::kept_secret(desk.sql, offered)?))).await
        })
    }

    fn health(&self) -> Answer<'_, ()> {
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
            file.front.wake();
            file.front.tail.recover(RECOVERY).await
        })
    }

    fn stats(&self) -> Answer<'_, Stats> {
        Box::pin(async move {
            let mut stats = Stats::default();
            let open: Vec<_> = self.files.map().values().cloned().collect();
            for file in &open {
                // A list that is not filled in yet is only a little behind.
                let _ = file.front.settle().await;
                stats.operations += file.counts.operations();
                stats.appends += file.counts.appends();
            }
            let dir = self.files.lock.dir().to_owned();
            stats.bytes = blocking::run(move || {
                let entries = std::fs::read_dir(&dir).map_err(|cause| unusable(&dir, cause))?;
                // A file that goes while it is counted takes no room.
                let lens = entries.flatten().filter_map(|entry| entry.metadata().ok());
                Ok(lens.map(|found| found.len()).sum())
            })
            .await?;
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
