//! Which of two states of an entity wins.

use std::cmp::Ordering;

use proptest::prelude::*;

use super::super::copy::{place_absence, place_stale, place_update};
use super::super::*;
use super::world::fields;
use crate::time::Time;
use HydrationMode::{Existence, Full};

fn version(version: u64) -> EntityStamp {
    EntityStamp { version: Some(version), as_of: None }
}

fn as_of(millis: u64) -> EntityStamp {
    EntityStamp { version: None, as_of: Some(Time::from_millis(millis)) }
}

const NO_STAMP: EntityStamp = EntityStamp { version: None, as_of: None };

fn present(fresh: HydrationMode, stamp: EntityStamp) -> CopyState {
    CopyState { fresh: Some(fresh), stamp, is_deleted: false }
}

fn tombstone(stamp: EntityStamp) -> CopyState {
    CopyState { fresh: None, stamp, is_deleted: true }
}

/// HYD-21: by version if both have one, otherwise by time, otherwise not at all.
#[test]
fn hyd_21_versions_go_before_times() {
    let both =
        |version, millis| EntityStamp { version: Some(version), as_of: Some(Time::from_millis(millis)) };
    assert_eq!(both(5, 1).compare(&both(4, 9)), Some(Ordering::Greater));
    assert_eq!(both(5, 1).compare(&as_of(9)), Some(Ordering::Less));
    assert_eq!(version(5).compare(&as_of(9)), None);
    // A newer version does not have the time of an older one.
    let newer = place_update(Some(&present(Full, both(5, 9))), &Full, version(6));
    assert_eq!(newer, CopyUpdate::Replace(present(Full, version(6))));
}

/// HYD-21: an older update changes nothing.
#[test]
fn hyd_21_an_older_update_is_ignored() {
    let stored = present(Full, version(5));
    assert_eq!(place_update(Some(&stored), &Full, version(3)), CopyUpdate::Ignore);
    assert_eq!(
        place_update(Some(&stored), &Full, version(6)),
        CopyUpdate::Replace(present(Full, version(6)))
    );
    assert_eq!(place_update(None, &Existence, NO_STAMP), CopyUpdate::Replace(present(Existence, NO_STAMP)));
}

/// HYD-1: what a newer update does not bring is stale from then on; of the same version both count.
#[test]
fn hyd_1_levels_of_a_copy() {
    let stored = present(Full, version(5));
    let newer = place_update(Some(&stored), &fields(&["name"]), version(6));
    assert_eq!(newer, CopyUpdate::Overlay(present(fields(&["name"]), version(6))));
    let same = place_update(Some(&stored), &Existence, version(5));
    assert_eq!(same, CopyUpdate::Overlay(present(Full, version(5))));
    let partial = present(fields(&["name"]), NO_STAMP);
    let more = place_update(Some(&partial), &fields(&["city"]), NO_STAMP);
    assert_eq!(more, CopyUpdate::Overlay(present(fields(&["city", "name"]), NO_STAMP)));
}

/// HYD-21: a tombstone yields to what is surely newer only; one without a stamp says nothing.
#[test]
fn hyd_21_a_tombstone_is_not_revived() {
    for old in [version(5), version(6), NO_STAMP, as_of(9)] {
        assert_eq!(place_update(Some(&tombstone(version(6))), &Full, old), CopyUpdate::Ignore, "{old:?}");
    }
    let newer = place_update(Some(&tombstone(version(6))), &Full, version(7));
    assert_eq!(newer, CopyUpdate::Replace(present(Full, version(7))));
    assert_ne!(place_update(Some(&tombstone(NO_STAMP)), &Full, NO_STAMP), CopyUpdate::Ignore);
}

/// HYD-21: a "not found" buries a copy if it is newer, or if it was asked for and is not older.
#[test]
fn hyd_21_a_not_found_must_be_newer_or_asked_for() {
    let stored = present(Full, version(5));
    let place = |stamp, is_asked| place_absence(Some(&stored), stamp, is_asked, true);
    assert_eq!(place(version(4), true), CopyUpdate::Ignore);
    assert_eq!(place(version(5), false), CopyUpdate::Ignore);
    assert_eq!(place(NO_STAMP, false), CopyUpdate::Ignore);
    assert_eq!(place(version(6), false), CopyUpdate::Replace(tombstone(version(6))));
    assert_eq!(place(NO_STAMP, true), CopyUpdate::Replace(tombstone(version(5))));
    assert_eq!(place_absence(Some(&stored), version(6), true, false), CopyUpdate::Remove);
    assert_eq!(place_absence(None, NO_STAMP, true, true), CopyUpdate::Ignore, "no tombstone for a random id");
    assert_eq!(place_absence(None, version(2), false, true), CopyUpdate::Replace(tombstone(version(2))));
}

#[test]
fn an_invalidated_copy_is_stale_and_keeps_its_version() {
    let stored = present(Full, version(5));
    let stale = CopyState { fresh: None, ..stored };
    assert_eq!(place_stale(Some(&stored)), CopyUpdate::Overlay(stale.clone()));
    assert_eq!(place_stale(Some(&stale)), CopyUpdate::Ignore);
    assert_eq!(place_stale(Some(&tombstone(version(5)))), CopyUpdate::Ignore);
    assert_eq!(place_update(Some(&stale), &Full, version(4)), CopyUpdate::Ignore);
}

proptest! {
    /// HYD-21: in whatever order versioned events arrive, the newest decides.
    #[test]
    fn hyd_21_the_newest_version_wins_in_any_order(events in prop::collection::vec((1_u64..9, any::<bool>()), 1..12)) {
        // Each version is one event only: an update, or a deletion.
        let events: std::collections::BTreeMap<_, _> = events.iter().copied().collect();
        let mut shuffled: Vec<_> = events.iter().collect();
        shuffled.sort_by_key(|(number, _)| (*number * 7) % 5);
        let mut stored: Option<CopyState> = None;
        for (number, is_update) in shuffled {
            let placed = if *is_update {
                place_update(stored.as_ref(), &Full, version(*number))
            } else {
                place_absence(stored.as_ref(), version(*number), false, true)
            };
            if let CopyUpdate::Replace(next) | CopyUpdate::Overlay(next) = placed {
                stored = Some(next);
            }
        }
        let (newest, is_update) = events.last_key_value().unwrap();
        let stored = stored.unwrap();
        prop_assert_eq!((stored.stamp.version, stored.is_deleted), (Some(*newest), !is_update));
    }
}
