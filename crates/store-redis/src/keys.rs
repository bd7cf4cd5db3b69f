//! The names of all keys. What belongs to one step has one tag in braces, so that a cluster keeps it in one place.

use tidegate_core::id::Partition;

/// Groups that idempotency records are spread over; each has an index of what may be swept.
pub(crate) const RECORD_SHARDS: u64 = 16;

/// Makes the names of keys.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    prefix: String,
}

impl Keys {
    pub(crate) fn new(prefix: &str) -> Self {
        Self { prefix: prefix.to_owned() }
    }

    /// Which layout is written.
    pub(crate) fn format(&self) -> String {
        format!("{}:format", self.prefix)
    }

    /// Which partitions were ever owned.
    pub(crate) fn partitions(&self) -> String {
        format!("{}:partitions", self.prefix)
    }

    /// How many partitions there are.
    pub(crate) fn count(&self) -> String {
        format!("{}:count", self.prefix)
    }

    /// The secret that nodes know each other by.
    pub(crate) fn secret(&self) -> String {
        format!("{}:secret", self.prefix)
    }

    /// Written by health checks.
    pub(crate) fn health(&self) -> String {
        format!("{}:health", self.prefix)
    }

    /// Who is there.
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

    /// Where results are.
    pub(crate) fn res(&self, partition: Partition) -> String {
        self.of(partition, "res")
    }

    /// What ended and is not archived yet.
    pub(crate) fn trail(&self, partition: Partition) -> String {
        self.of(partition, "trail")
    }

    /// What calls cost and is not archived yet.
    pub(crate) fn spent(&self, partition: Partition) -> String {
        self.of(partition, "spent")
    }

    /// What the names of batches begin with; the number of the append follows.
    pub(crate) fn batches(&self, partition: Partition) -> String {
        self.of(partition, "b:")
    }

    /// What the names of snapshots begin with.
    pub(crate) fn snapshots(&self, partition: Partition) -> String {
        self.of(partition, "snap:")
    }

    fn of(&self, partition: Partition, what: &str) -> String {
        format!("{}:{{{partition}}}:{what}", self.prefix)
    }

    /// What the names of records of one shard begin with.
    pub(crate) fn records(&self, shard: u64) -> String {
        format!("{}:{{record:{shard}}}:r:", self.prefix)
    }

    /// Records of one shard by the time a sweep looks at them.
    pub(crate) fn record_index(&self, shard: u64) -> String {
        format!("{}:{{record:{shard}}}:due", self.prefix)
    }

    /// What the names of deployments begin with. The whole journal lies together.
    pub(crate) fn deployments(&self) -> String {
        self.of_journal("d:")
    }

    /// What the names of deployments' steps begin with.
    pub(crate) fn deployment_steps(&self) -> String {
        self.of_journal("s:")
    }

    /// What the names of scopes' objects begin with.
    pub(crate) fn objects(&self) -> String {
        self.of_journal("o:")
    }

    /// Which deployments there are.
    pub(crate) fn all_deployments(&self) -> String {
        self.of_journal("all")
    }

    /// What the names of the lists of a scope's deployments begin with.
    pub(crate) fn deployments_in(&self) -> String {
        self.of_journal("in:")
    }

    fn of_journal(&self, what: &str) -> String {
        format!("{}:{{journal}}:{what}", self.prefix)
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

    /// What is named by a key of a family.
    pub(crate) fn name_in(&self, family: &KeyPattern, key: &str) -> Option<String> {
        let rest = key.strip_prefix(&self.prefix)?.strip_prefix(':')?;
        (family.name_of)(rest).map(str::to_owned)
    }

    /// A hydration window.
    pub(crate) fn window(&self, key: &str) -> String {
        format!("{}:{{window:{key}}}", self.prefix)
    }

    /// A bucket: those of one family lie together.
    pub(crate) fn bucket(&self, name: &str) -> String {
        format!("{}:{{bucket:{}}}:{name}", self.prefix, family(name))
    }
}

/// Keys of one kind: how a server finds them, and what each names.
pub(crate) struct KeyPattern {
    pub(crate) pattern: String,
    name_of: fn(&str) -> Option<&str>,
}

fn name_of_lease(rest: &str) -> Option<&str> {
    rest.strip_prefix("{lease:")?.strip_suffix('}')
}

/// A name may hold braces too, so the key is known by the name that makes it.
fn name_of_bucket(rest: &str) -> Option<&str> {
    let rest = rest.strip_prefix("{bucket:")?;
    let splits = rest.match_indices("}:").map(|(at, _)| (&rest[..at], &rest[at + 2..]));
    splits.into_iter().find(|(tag, name)| family(name) == *tag).map(|(_, name)| name)
}

/// A prefix in a pattern that stands for itself.
fn escaped(prefix: &str) -> String {
    let escape = |c: char| if "\\*?[]^".contains(c) { vec!['\\', c] } else { vec![c] };
    prefix.chars().flat_map(escape).collect()
}

/// The part of a bucket's name before the first `/`; nothing when there is none. Buckets of one family can be
/// reserved together on a cluster.
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
        assert_eq!(family("a/b/c"), "a");
        for name in ["plain", "shop/points", "a}:b/c", "{x}/}:"] {
            assert_eq!(keys.name_in(&keys.buckets(), &keys.bucket(name)).as_deref(), Some(name));
            assert_eq!(keys.name_in(&keys.leases(), &keys.lease(name)).as_deref(), Some(name));
        }
        assert_eq!(Keys::new("a*[b").leases().pattern, "a\\*\\[b:{lease:*}");
        assert!((0..RECORD_SHARDS).contains(&shard("schlüssel")));
    }
}
