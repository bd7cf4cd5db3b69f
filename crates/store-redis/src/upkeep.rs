//! Checks of a Redis server: whether it can be trusted with data at all, whether it accepts a write
//! now, and what it holds.

use futures_util::future::try_join_all;
use redis::{Value, cmd};
use tidegate_core::id::Partition;
use tidegate_store::upkeep::{SECRET_LEN, StoreStats};
use tidegate_store::{Error, Result, StatusBoard, StoreErrorKind, StoreFuture, Upkeep};

use crate::errors::{undecided, unreadable, unusable};
use crate::keys::RECORD_SHARDS;
use crate::scripts::{self, ScriptCall};
use crate::{RedisStore, checks, reply};

/// The format that is written, and the newest that is read.
const FORMAT: u64 = 3;
/// How long a health check's write stays, in milliseconds.
const TRIAL_MS: u64 = 60_000;

impl RedisStore {
    /// Rejects a server that evicts data when it is full: it cannot keep a promise.
    pub(crate) async fn check_server(&self) -> Result<()> {
        for info in self.info().await? {
            let field = |name: &str| field(&info, name);
            let policy = field("maxmemory_policy").unwrap_or("noeviction");
            let max = field("maxmemory").unwrap_or("0");
            if max != "0" && policy != "noeviction" {
                let message = format!(
                    "{} throws keys away when it is full (maxmemory-policy is {policy} at {max} bytes): set it to \
                     noeviction",
                    self.connection.name()
                );
                return Err(Error::new(StoreErrorKind::Invalid, message));
            }
            if field("aof_enabled") == Some("0") {
                tracing::warn!(
                    server = self.connection.name(),
                    "appendonly is off: what was accepted since the last save is lost when this Redis stops"
                );
            }
        }
        Ok(())
    }

    /// Writes the format to a fresh server and to one of an older format, and rejects one that a
    /// newer program wrote.
    pub(crate) async fn check_format(&self) -> Result<()> {
        let mut set = cmd("SET");
        set.arg(self.keys.format()).arg(FORMAT).arg("NX").arg("GET");
        let answer =
            self.connection.send(&set).await.map_err(|failed| unusable(self.connection.name(), failed))?;
        if self.check_not_newer(answer)?.is_some_and(|found| found < FORMAT) {
            let call = ScriptCall::new(&scripts::FORMAT, [self.keys.format()]).with_arg(FORMAT);
            call.send(&self.connection).await.map_err(|failed| unusable(self.connection.name(), failed))?;
        }
        Ok(())
    }

    /// Rejects a format that a newer program has written; writes nothing.
    pub(crate) async fn look_at_format(&self) -> Result<()> {
        let answer = self.connection.send(cmd("GET").arg(self.keys.format())).await;
        self.check_not_newer(answer.map_err(|failed| unusable(self.connection.name(), failed))?)?;
        Ok(())
    }

    fn check_not_newer(&self, format: Value) -> Result<Option<u64>> {
        match reply::parsed(format)? {
            Some(found) if found > FORMAT => Err(unreadable(format!(
                "{} holds data of format {found}; this program reads up to format {FORMAT}",
                self.connection.name()
            ))),
            found => Ok(found),
        }
    }

    /// The server's own information; in a cluster, of every node.
    async fn info(&self) -> Result<Vec<String>> {
        let mut ask = cmd("INFO");
        if !self.connection.is_cluster() {
            ask.arg("memory").arg("persistence");
        }
        let answer =
            self.connection.send(&ask).await.map_err(|failed| unusable(self.connection.name(), failed))?;
        match answer {
            Value::Map(nodes) => nodes.into_iter().map(|(_, info)| reply::parsed(info)).collect(),
            Value::Array(nodes) => nodes.into_iter().map(reply::parsed).collect(),
            info => Ok(vec![reply::parsed(info)?]),
        }
    }

    /// The version and settings of the server; in a cluster, those of one node. A hosting provider
    /// may forbid reading settings.
    async fn settings(&self) -> Result<Vec<(String, String)>> {
        let mut ask = cmd("INFO");
        ask.arg("server");
        let answer = self.connection.send_to(&self.keys.format(), ask).await;
        let info: String = reply::parsed(answer.map_err(|failed| unusable(self.connection.name(), failed))?)?;
        let told = |name: &str| Some((name.to_owned(), field(&info, name)?.to_owned()));
        let mut found: Vec<_> = ["redis_version", "valkey_version"].into_iter().filter_map(told).collect();
        let mut ask = cmd("CONFIG");
        ask.arg("GET").arg("appendonly").arg("appendfsync");
        if let Ok(answer) = self.connection.send_to(&self.keys.format(), ask).await {
            found.extend(reply::parsed::<Vec<(String, String)>>(answer)?);
        }
        Ok(found)
    }

    /// Every partition that was ever owned.
    pub(crate) async fn known_partitions(&self) -> Result<Vec<Partition>> {
        let answer = self.connection.send(cmd("SMEMBERS").arg(self.keys.partitions())).await;
        let mut known: Vec<Partition> =
            reply::parsed(answer.map_err(|failed| unusable(self.connection.name(), failed))?)?;
        known.sort_unstable();
        Ok(known)
    }

    async fn count_records(&self, shard: u64) -> Result<u64> {
        let answer = self.connection.send(cmd("ZCARD").arg(self.keys.record_index(shard))).await;
        reply::parsed(answer.map_err(|failed| unusable(self.connection.name(), failed))?)
    }

    async fn count(&self, partition: Partition, stats: &mut StoreStats) -> Result<()> {
        let mut ask = cmd("HMGET");
        ask.arg(self.keys.head(partition)).arg(&["operations", "last", "upto"]);
        let answer =
            self.connection.send(&ask).await.map_err(|failed| unusable(self.connection.name(), failed))?;
        let (operations, last, upto): (Option<u64>, Option<u64>, Option<u64>) = reply::parsed(answer)?;
        stats.operations += operations.unwrap_or(0);
        stats.appends += last.unwrap_or(0).saturating_sub(upto.unwrap_or(0));
        Ok(())
    }
}

fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    let of_line = |line: &'a str| line.split_once(':').filter(|(found, _)| *found == name);
    info.lines().find_map(of_line).map(|(_, value)| value.trim())
}

impl Upkeep for RedisStore {
    fn migrate(&self) -> StoreFuture<'_, ()> {
        Box::pin(self.check_format())
    }

    fn check_layout(&self) -> StoreFuture<'_, ()> {
        Box::pin(self.look_at_format())
    }

    fn ensure_partitions(&self, wanted: Partition) -> StoreFuture<'_, Partition> {
        Box::pin(async move {
            checks::check_partition_count(wanted)?;
            let mut set = cmd("SET");
            set.arg(self.keys.count()).arg(wanted).arg("NX").arg("GET");
            let answer = self.connection.send(&set).await;
            let answer = answer.map_err(|failed| {
                undecided(self.connection.name(), "store the number of partitions", failed)
            })?;
            Ok(reply::parsed::<Option<Partition>>(answer)?.unwrap_or(wanted))
        })
    }

    fn ensure_secret(&self, offered: [u8; SECRET_LEN]) -> StoreFuture<'_, [u8; SECRET_LEN]> {
        Box::pin(async move {
            let mut set = cmd("SET");
            let digits = format!("{:032x}", u128::from_be_bytes(offered));
            set.arg(self.keys.secret()).arg(digits).arg("NX").arg("GET");
            let answer = self.connection.send(&set).await;
            let answer =
                answer.map_err(|failed| undecided(self.connection.name(), "store the secret", failed))?;
            let Some(kept) = reply::parsed::<Option<String>>(answer)? else { return Ok(offered) };
            let kept = u128::from_str_radix(&kept, 16).map_err(|_| reply::unexpected_reply("a secret"))?;
            Ok(kept.to_be_bytes())
        })
    }

    fn status_board(&self) -> Option<&dyn StatusBoard> {
        Some(self)
    }

    fn health(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            // A replica, a full server, one that is loading and one whose disk is gone all refuse a
            // write.
            let mut set = cmd("SET");
            set.arg(self.keys.health()).arg(1).arg("PX").arg(TRIAL_MS);
            self.connection.send(&set).await.map_err(|failed| unusable(self.connection.name(), failed))?;
            self.look_at_format().await
        })
    }

    fn stats(&self) -> StoreFuture<'_, StoreStats> {
        Box::pin(async move {
            let mut stats = StoreStats::default();
            for partition in self.known_partitions().await? {
                self.count(partition, &mut stats).await?;
            }
            let counts = (0..RECORD_SHARDS).map(|shard| self.count_records(shard));
            stats.records = try_join_all(counts).await?.into_iter().sum();
            for info in self.info().await? {
                stats.bytes += field(&info, "used_memory").and_then(|bytes| bytes.parse().ok()).unwrap_or(0);
            }
            Ok(stats)
        })
    }

    fn server_settings(&self) -> StoreFuture<'_, Vec<(String, String)>> {
        Box::pin(self.settings())
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn describe(&self) -> String {
        self.address.to_string()
    }
}
