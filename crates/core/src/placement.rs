//! The partition of an operation. The rule never changes, because operations are found again by it;
//! a store with an outbox restates it in SQL.

use crate::fingerprint::Fingerprint;
use crate::id::Partition;

/// What an operation is placed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement<'a> {
    /// By its upstream: all operations of an upstream with limits are in one partition, because
    /// limits are granted in one step.
    Upstream(&'a str),
    /// By its group: operations without limits are spread over all partitions.
    Group(&'a str),
}

impl<'a> Placement<'a> {
    /// The placement of an operation of `group`. `is_spread` says whether the upstream is spread by
    /// group; an operation without an upstream is.
    #[must_use]
    pub fn new(upstream: Option<&'a str>, group: &'a str, is_spread: impl FnOnce(&str) -> bool) -> Self {
        match upstream {
            Some(upstream) if !is_spread(upstream) => Self::Upstream(upstream),
            _ => Self::Group(group),
        }
    }

    /// The partition, of this many.
    #[must_use]
    pub fn partition(self, partitions: Partition) -> Partition {
        let key = match self {
            Self::Upstream(upstream) => format!("upstream {upstream}"),
            Self::Group(group) => format!("group {group}"),
        };
        hash(&key, partitions)
    }
}

fn hash(key: &str, partitions: Partition) -> Partition {
    let hash = Fingerprint::of("partition").part(key.as_bytes()).finish();
    let mut number = [0; 8];
    number.copy_from_slice(&hash[..8]);
    let place = u64::from_be_bytes(number) % u64::from(partitions.max(1));
    Partition::try_from(place).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A key placed once is found in the same partition by every later version.
    #[test]
    fn places_never_change() {
        let places: Vec<_> = ["", "shop:acme", "shop:globex", "a", "b", "c"].map(|key| hash(key, 16)).into();
        assert_eq!(places, [1, 9, 1, 3, 3, 9]);
        let (upstream, group) = (Placement::Upstream("echo"), Placement::Group("g"));
        assert_eq!((upstream.partition(16), group.partition(16)), (8, 13));
        assert_eq!((upstream.partition(1), group.partition(0)), (0, 0));
    }

    /// Operations of an upstream with limits stay together, others are spread by group.
    #[test]
    fn an_upstream_is_in_one_partition_unless_it_is_spread() {
        let spread = |name: &str| name == "wide";
        assert_eq!(Placement::new(Some("echo"), "g", spread), Placement::Upstream("echo"));
        assert_eq!(Placement::new(Some("wide"), "g", spread), Placement::Group("g"));
        assert_eq!(Placement::new(None, "g", spread), Placement::Group("g"));
    }

    #[test]
    fn places_are_spread() {
        let mut counts = [0_u32; 16];
        for key in 0..16_000 {
            counts[usize::from(Placement::Group(&format!("group-{key}")).partition(16))] += 1;
        }
        assert!(counts.iter().all(|count| (800..1_200).contains(count)), "{counts:?}");
    }
}
