//! Snapshots: written in full under a name of their own, then made current by one script. What they
//! replace is removed after that in small steps; a marker records how far.

use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use redis::{Pipeline, cmd, pipe};
use tidegate_core::id::Partition;
use tidegate_store::log::{Lsn, Ownership};
use tidegate_store::{Error, Result, StoreErrorKind};

use crate::errors::{check_answers, undecided, unusable};
use crate::scripts::{self, ScriptCall};
use crate::{RedisStore, checks, log, reply};

/// The approximate bytes that are sent at once.
const SENT_LEN: usize = 4 * 1024 * 1024;
/// The appends whose facts are removed at once.
const TRIMMED_AT_ONCE: u64 = 256;

/// The number of snapshots that this process has started, to tell them apart.
static BEGUN: AtomicU64 = AtomicU64::new(0);

impl RedisStore {
    pub(crate) async fn keep_snapshot(&self, owner: Ownership, upto: Lsn, parts: &[Bytes]) -> Result<()> {
        checks::check_snapshot_parts(parts)?;
        let count = BEGUN.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}.{}.{}.{count}", upto.0, owner.epoch.0, std::process::id());
        self.begin_snapshot(owner, upto, &name).await?;
        let list = format!("{}{name}", self.keys.snapshots(owner.partition));
        self.fill_snapshot(&list, parts).await?;
        self.end_snapshot(owner, upto, &name, list, parts.len()).await?;
        if let Err(error) = self.trim(owner.partition, upto).await {
            tracing::warn!(partition = owner.partition, %error, "could not remove what a snapshot replaced; the next snapshot retries");
        }
        Ok(())
    }

    async fn begin_snapshot(&self, owner: Ownership, upto: Lsn, name: &str) -> Result<()> {
        let call = ScriptCall::new(&scripts::SNAPSHOT_BEGIN, [self.keys.head(owner.partition)])
            .with_arg(owner.epoch.0)
            .with_arg(self.keys.snapshots(owner.partition))
            .with_arg(name)
            .with_arg(upto.0);
        let answer =
            call.send(&self.connection).await.map_err(|failed| unusable(self.connection.name(), failed))?;
        let (word, mut parts) = reply::split_verdict(answer)?;
        match word.as_str() {
            "ok" => Ok(()),
            "ahead" => Err(checks::snapshot_ahead_error(upto, Lsn(reply::part_at(&mut parts, 0)?))),
            "older" => Err(checks::snapshot_older_error(upto, Lsn(reply::part_at(&mut parts, 0)?))),
            _ => Err(log::fenced(owner, &reply::part_at::<String>(&mut parts, 0)?)),
        }
    }

    async fn fill_snapshot(&self, list: &str, parts: &[Bytes]) -> Result<()> {
        let (mut ask, mut len) = (pipe(), 0);
        for part in parts {
            ask.cmd("RPUSH").arg(list).arg(&**part);
            len += part.len();
            if len > SENT_LEN {
                self.send_parts(&std::mem::replace(&mut ask, pipe())).await?;
                len = 0;
            }
        }
        if ask.is_empty() { Ok(()) } else { self.send_parts(&ask).await }
    }

    async fn send_parts(&self, parts: &Pipeline) -> Result<()> {
        let answers = self
            .connection
            .send_all(parts)
            .await
            .map_err(|failed| unusable(self.connection.name(), failed))?;
        check_answers(self.connection.name(), answers).map(drop)
    }

    async fn end_snapshot(
        &self,
        owner: Ownership,
        upto: Lsn,
        name: &str,
        list: String,
        parts: usize,
    ) -> Result<()> {
        let call = ScriptCall::new(&scripts::SNAPSHOT_END, [self.keys.head(owner.partition), list])
            .with_arg(owner.epoch.0)
            .with_arg(self.keys.snapshots(owner.partition))
            .with_arg(name)
            .with_arg(upto.0)
            .with_arg(parts);
        let doing = format!("take the snapshot of partition {}", owner.partition);
        let answer = call.send(&self.connection).await;
        let answer = answer.map_err(|failed| undecided(self.connection.name(), &doing, failed))?;
        let (word, mut parts) = reply::split_verdict(answer)?;
        match word.as_str() {
            "ok" => Ok(()),
            "unstaged" => {
                let message = format!(
                    "the snapshot of partition {} was incomplete; the log is unchanged",
                    owner.partition
                );
                Err(Error::new(StoreErrorKind::Unavailable, message))
            }
            _ => Err(log::fenced(owner, &reply::part_at::<String>(&mut parts, 0)?)),
        }
    }

    /// Removes the facts that a snapshot has replaced. This is idempotent and any process may do
    /// it.
    async fn trim(&self, partition: Partition, upto: Lsn) -> Result<()> {
        let head = self.keys.head(partition);
        let answer = self.connection.send(cmd("HGET").arg(&head).arg("trimmed")).await;
        let trimmed: Option<u64> =
            reply::parsed(answer.map_err(|failed| unusable(self.connection.name(), failed))?)?;
        let (mut trimmed, batches) = (trimmed.unwrap_or(0), self.keys.batches(partition));
        while trimmed < upto.0 {
            let next = upto.0.min(trimmed + TRIMMED_AT_ONCE);
            let mut ask = pipe();
            for lsn in trimmed + 1..=next {
                ask.cmd("HDEL").arg(format!("{batches}{lsn}")).arg("f").arg("t");
            }
            ask.cmd("HSET").arg(&head).arg("trimmed").arg(next);
            self.send_parts(&ask).await?;
            trimmed = next;
        }
        Ok(())
    }
}
