//! Tests of the codec: everything round-trips, nothing else is accepted, and the bytes never
//! change.

use proptest::collection::vec;
use proptest::prelude::*;
use tidegate_core::Fact;
use tidegate_core::fingerprint::hex;

use super::samples::{breaker_facts, fact, one_of_each, settled_as_awaiting, settled_as_failed_over};
use super::{decode, encode, encode_iter};
use crate::StoreErrorKind;

/// The bytes of one fact of every variant, each as a list of its own. Entries may be added, never
/// changed.
const FROZEN: [&str; 29] = [
    "010101078180f9c0c1c482030973686f703a61636d6504687474700106706f696e747380eae51801ac02000801\
     03010101000000000000000000000000000000ffffffffffffffffffffffffffffffff8180f9c0c1c4820300",
    "01010207ac028180f9c0c1c48203ffffffffffffffffff01",
    "01010307ac028180f9c0c1c48203",
    "01010407ac028180f9c0c1c48203038180f9c0c1c482030106706f696e747301050572657365740106706f696e\
     747301050000000100",
    "010105078180f9c0c1c482030301",
    "01010607",
    "010107078180f9c0c1c48203",
    "01010801678180f9c0c1c4820303616e6e02c3a9",
    "01010901678180f9c0c1c48203",
    "01010a016c03028180f9c0c1c48203",
    "01010b016c8180f9c0c1c48203",
    "01010c016c8180f9c0c1c48203",
    "01010d07ac028180f9c0c1c48203",
    "01010e07ac028180f9c0c1c48203ffffffffffffffffff01",
    "01010f07ac028180f9c0c1c48203016c048180f9c0c1c48203",
    "01011007020461636d65010461636d65c0843dac020506676c6f62657800010002013c00",
    "010111070461636d658180f9c0c1c48203",
    "010112078180f9c0c1c48203",
    "01011307020461636d65010461636d65c0843dac020506676c6f62657800010002013c00",
    "01011407051b72657365743b206974206d617920686176652068617070656e6564",
    "01012007ac02098180f9c0c1c48203010203",
    "010121016c012802010102050180cab5ee0103038180f9c0c1c482030400018180f9c0c1c48203ffffffffffff\
     ffffff0106018180f9c0c1c482030708",
    "010122016709000103616e6e8180f9c0c1c482030377687901078180f9c0c1c48203010001ac028180f9c0c1c4\
     8203020102",
    "0101258180f9c0c1c48203ac02018180f9c0c1c48203020100",
    "010127ac02",
    "010123078180f9c0c1c482030973686f703a61636d6504687474700106706f696e747380eae51801ac02000801\
     03010101000000000000000000000000000000ffffffffffffffffffffffffffffffff8180f9c0c1c482030002\
     01000105057265736574",
    "010128016c008180f9c0c1c48203078180f9c0c1c482030105057265736574",
    "0101240702000000000000000000000000000000030000000000000000000000000000008180f9c0c1c48203",
    "01012607020461636d65010461636d65c0843dac020506676c6f62657800010002013c00010461636d658180f9\
     c0c1c482030107696e697465636805057265736574",
];

/// OPS-8: every later version reads what an earlier one wrote.
#[test]
fn ops_8_the_format_is_frozen() {
    let written: Vec<String> =
        one_of_each().iter().map(|fact| hex(&encode(std::slice::from_ref(fact)))).collect();
    assert_eq!(written, FROZEN);
    let awaiting = "01010407ac028180f9c0c1c4820306018180f9c0c1c48203ac020000";
    assert_eq!(hex(&encode(&[settled_as_awaiting()])), awaiting);
    let next = "01010407ac028180f9c0c1c48203070000";
    assert_eq!(hex(&encode(&[settled_as_failed_over()])), next);
    let breaker = "01040a016c050a001e003c007800018180f9c0c1c48203\
                   0f07ac028180f9c0c1c48203016c010f07ac028180f9c0c1c48203016c02\
                   0f07ac028180f9c0c1c48203016c03";
    assert_eq!(hex(&encode(&breaker_facts())), breaker);
}

#[test]
fn the_samples_hold_every_variant() {
    let tags: std::collections::BTreeSet<u8> =
        one_of_each().iter().map(|fact| encode(std::slice::from_ref(fact))[2]).collect();
    assert_eq!(tags.len(), FROZEN.len());
}

#[test]
fn another_version_and_what_is_cut_or_too_long_are_refused() {
    let whole = encode(&one_of_each());
    for len in 0..whole.len() {
        assert_eq!(
            decode(&whole[..len]).map_err(|e| e.kind()),
            Err(StoreErrorKind::Unreadable),
            "cut at {len}"
        );
    }
    let longer = [&whole[..], &[0]].concat();
    assert_eq!(decode(&longer).map_err(|e| e.kind()), Err(StoreErrorKind::Unreadable));
    let newer = decode(&[&[2], &whole[1..]].concat()).expect_err("format 2 is not known");
    assert_eq!(newer.to_string(), "the facts are of format 2; this program reads format 1");
    assert_eq!(decode(&encode(&[])).expect("an empty list"), []);
}

#[test]
fn lengths_that_lie_ask_for_no_memory() {
    let huge = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
    let lies: [&[u8]; 4] = [&[1], &[1, 1, 9], &[1, 1, 1, 7, 7], &[1, 1, 4, 7, 7, 7, 3, 7]];
    for start in lies {
        let error = decode(&[start, &huge].concat()).expect_err("a length that lies");
        assert_eq!(error.kind(), StoreErrorKind::Unreadable);
    }
}

proptest! {
    /// OPS-8: facts round-trip exactly.
    #[test]
    fn ops_8_facts_round_trip(facts in vec(fact(), 0..20)) {
        prop_assert_eq!(decode(&encode(&facts)).expect("it was just written"), facts);
    }

    #[test]
    fn parts_are_read_alone_and_in_order(facts in vec(fact(), 0..40), part_len in 0_usize..300) {
        let parts = encode_iter(facts.iter().cloned(), part_len);
        let read: Vec<Fact> = parts.iter().flat_map(|part| decode(part).expect("a part")).collect();
        prop_assert_eq!(read, facts);
        prop_assert!(parts.iter().all(|part| part.len() > 2));
    }

    #[test]
    fn any_bytes_are_read_or_refused(mut bytes in vec(any::<u8>(), 0..300), known in any::<bool>()) {
        if known && !bytes.is_empty() {
            bytes[0] = 1;
        }
        if let Err(error) = decode(&bytes) {
            prop_assert_eq!(error.kind(), StoreErrorKind::Unreadable);
        }
    }

    #[test]
    fn a_flipped_bit_is_read_or_refused(facts in vec(fact(), 1..5), place in any::<prop::sample::Index>(), bit in 0..8) {
        let mut bytes = encode(&facts).to_vec();
        let place = place.index(bytes.len());
        bytes[place] ^= 1_u8 << bit;
        if let Err(error) = decode(&bytes) {
            prop_assert_eq!(error.kind(), StoreErrorKind::Unreadable);
        }
    }
}
