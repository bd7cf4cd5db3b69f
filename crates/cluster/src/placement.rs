//! Maps keys to partitions. The rule never changes: an operation is found again by it.

use tidegate_core::fingerprint::Fingerprint;
use tidegate_core::id::Partition;

/// Returns the partition of a key.
#[must_use]
pub fn partition_of(key: &str, partitions: Partition) -> Partition {
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
        let places: Vec<_> =
            ["", "shop:acme", "shop:globex", "a", "b", "c"].map(|key| partition_of(key, 16)).into();
        assert_eq!(places, PLACES);
        assert_eq!(partition_of("anything", 1), 0);
        assert_eq!(partition_of("anything", 0), 0);
    }

    const PLACES: [Partition; 6] = [1, 9, 1, 3, 3, 9];

    #[test]
    fn places_are_spread() {
        let mut counts = [0_u32; 16];
        for key in 0..16_000 {
            counts[usize::from(partition_of(&format!("group-{key}"), 16))] += 1;
        }
        assert!(counts.iter().all(|count| (800..1_200).contains(count)), "{counts:?}");
    }
}
