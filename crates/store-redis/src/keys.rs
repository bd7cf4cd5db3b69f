//! The names of all keys. Keys of one step share a hash tag in braces, so that a cluster keeps them
//! in one slot.

use tidegate_core::id::Partition;

/// The shards of idempotency records; each has an index of what may be swept.
pub(crate) const RECORD_SHARDS: u64 = 16;

/// Builds the names of keys.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    prefix: String,
}

impl Keys {
    pub(crate) fn new(prefix: &str) -> Self {
        Self { prefix: prefix.to_owned() }
    }

    /// The format of the data.
    pub(crate) fn format(&self) -> String {
        format!("{}:format", self.prefix)
    }

    /// The partitions that were ever owned.
    pub(crate) fn partitions(&self) -> String {
        format!("{}:partitions", self.prefix)
    }

    /// The number of partitions.
    pub(crate) fn count(&self) -> String {
        format!("{}:count", self.prefix)
    }

    /// The secret that nodes share.
    pub(crate) fn secret(&self) -> String {
        format!("{}:secret", self.prefix)
    }

    /// Written by health checks.
    pub(crate) fn health(&self) -> String {
        format!("{}:health", self.prefix)
    }

    /// The nodes.
    pub(crate) fn nodes(&self) -> String {
        format!("{}:nodes", self.prefix)
    }

    /// The channel of a topic.
    pub(crate) fn channel(&self, topic: &str) -> String {
        format!("{}:hint:{topic}", self.prefix)
    }

    /// Owner, last append, snapshot and counts of a partition.
    pub(crate) fn head(&self, partition: Partition) -> String {
        self.of(partition, "head")
    }

    /// Batches by their first operation.
    pub(crate) fn ops(&self, partition: Partition) -> String {
        self.of(partition, "ops")
    }

    /// The locations of results.
    pub(crate) fn res(&self, partition: Partition) -> String {
        self.of(partition, "res")
    }

    /// Ended operations that are not archived yet.
    pub(crate) fn trail(&self, partition: Partition) -> String {
        self.of(partition, "trail")
    }

    /// Costs of calls that are not archived yet.
    pub(crate) fn spent(&self, partition: Partition) -> String {
        self.of(partition, "spent")
    }

    /// The prefix of the names of batches; the number of the append follows.
    pub(crate) fn batches(&self, partition: Partition) -> String {
        self.of(partition, "b:")
    }

    /// The prefix of the names of operations' attempts; the seq follows.
    pub(crate) fn attempts(&self, partition: Partition) -> String {
        self.of(partition, "att:")
    }

    /// The prefix of the names of snapshots.
    pub(crate) fn snapshots(&self, partition: Partition) -> String {
        self.of(partition, "snap:")
    }

    fn of(&self, partition: Partition, what: &str) -> String {
        format!("{}:{{{partition}}}:{what}", self.prefix)
    }

    /// The prefix of the names of one shard's records.
    pub(crate) fn records(&self, shard: u64) -> String {
        format!("{}:{{record:{shard}}}:r:", self.prefix)
    }

    /// The records of one shard by the time a sweep looks at them.
    pub(crate) fn record_index(&self, shard: u64) -> String {
        format!("{}:{{record:{shard}}}:due", self.prefix)
    }

    /// The prefix of the names of deployments. The whole journal is in one slot.
    pub(crate) fn deployments(&self) -> String {
        self.of_journal("d:")
    }

    /// The prefix of the names of deployments' steps.
    pub(crate) fn deployment_steps(&self) -> String {
        self.of_journal("s:")
    }

    /// The prefix of the names of deployments' events.
    pub(crate) fn deployment_events(&self) -> String {
        self.of_journal("e:")
    }

    /// The prefix of the names of scopes' objects.
    pub(crate) fn objects(&self) -> String {
        self.of_journal("o:")
    }

    /// The list of all deployments.
    pub(crate) fn all_deployments(&self) -> String {
        self.of_journal("all")
    }

    /// The prefix of the names of the lists of a scope's deployments.
    pub(crate) fn deployments_in(&self) -> String {
        self.of_journal("in:")
    }

    fn of_journal(&self, what: &str) -> String {
        format!("{}:{{journal}}:{what}", self.prefix)
    }

    /// The audit log.
    pub(crate) fn audit(&self) -> String {
        format!("{}:audit", self.prefix)
    }

    /// A named lease.
    pub(crate) fn lease(&self, name: &str) -> String {
        format!("{}:{{lease:{name}}}", self.prefix)
    }

    /// The keys of all leases.
    pub(crate) fn leases(&self) -> KeyPattern {
        KeyPattern { pattern: format!("{}:{{lease:*}}", escaped(&self.prefix)), name_of: name_of_lease }
    }

    /// The keys of all buckets.
    pub(crate) fn buckets(&self) -> KeyPattern {
        KeyPattern { pattern: format!("{}:{{bucket:*}}:*", escaped(&self.prefix)), name_of: name_of_bucket }
    }

    /// Extracts the name from a key of a family.
    pub(crate) fn name_in(&self, family: &KeyPattern, key: &str) -> Option<String> {
        let rest = key.strip_prefix(&self.prefix)?.strip_prefix(':')?;
        (family.name_of)(rest).map(str::to_owned)
    }

    /// What people can read of one thing; all of it is in one slot.
    pub(crate) fn status(&self, kind: &str, name: &str, key: &str) -> String {
        format!("{}:{kind}:{{{name}}}:{key}", self.prefix)
    }

    /// A hydration window.
    pub(crate) fn window(&self, key: &str) -> String {
        format!("{}:{{window:{key}}}", self.prefix)
    }

    /// A bucket: those of one family are in one slot.
    pub(crate) fn bucket(&self, name: &str) -> String {
        format!("{}:{{bucket:{}}}:{name}", self.prefix, family(name))
    }
}

/// The keys of one kind: the pattern that finds them, and how to extract the name from each.
pub(crate) struct KeyPattern {
    pub(crate) pattern: String,
    name_of: fn(&str) -> Option<&str>,
}

fn name_of_lease(rest: &str) -> Option<&str> {
    rest.strip_prefix("{lease:")?.strip_suffix('}')
}

/// A name may contain braces too, so the key is recognised by rebuilding it from the name.
fn name_of_bucket(rest: &str) -> Option<&str> {
    let rest = rest.strip_prefix("{bucket:")?;
    let splits = rest.match_indices("}:").map(|(at, _)| (&rest[..at], &rest[at + 2..]));
    splits.into_iter().find(|(tag, name)| family(name) == *tag).map(|(_, name)| name)
}

/// Escapes a prefix for use in a pattern.
fn escaped(prefix: &str) -> String {
    let escape = |c: char| if "\\*?[]^".contains(c) { vec!['\\', c] } else { vec![c] };
    prefix.chars().flat_map(escape).collect()
}

/// The part of a bucket's name before the first `/`; empty when there is none. Buckets of one
/// family can be reserved together on a cluster.
pub(crate) fn family(bucket: &str) -> &str {
    bucket.split_once('/').map_or("", |(family, _)| family)
}

/// The shard of a record (FNV-1a).
pub(crate) fn shard(record: &str) -> u64 {
    let hash = record.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash % RECORD_SHARDS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_partition_and_one_family_have_one_tag() {
        let keys = Keys::new("tg");
        assert_eq!(keys.head(7), "tg:{7}:head");
        assert_eq!(keys.batches(7), "tg:{7}:b:");
        assert_eq!(keys.bucket("shop/points"), "tg:{bucket:shop}:shop/points");
        assert_eq!(keys.bucket("plain"), "tg:{bucket:}:plain");
        assert_eq!(keys.records(3), "tg:{record:3}:r:");
        assert_eq!(keys.record_index(3), "tg:{record:3}:due");
        assert_eq!(keys.deployments(), "tg:{journal}:d:");
        assert_eq!(keys.status("provider", "fal", "active"), "tg:provider:{fal}:active");
        assert_eq!(family("a/b/c"), "a");
        for name in ["plain", "shop/points", "a}:b/c", "{x}/}:"] {
            assert_eq!(keys.name_in(&keys.buckets(), &keys.bucket(name)).as_deref(), Some(name));
            assert_eq!(keys.name_in(&keys.leases(), &keys.lease(name)).as_deref(), Some(name));
        }
        assert_eq!(Keys::new("a*[b").leases().pattern, "a\\*\\[b:{lease:*}");
        assert!((0..RECORD_SHARDS).contains(&shard("schlüssel")));
    }
}
