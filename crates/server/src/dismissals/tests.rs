//! What a dismissal covers, how long it is kept, and what becomes of two for one source.

use tidegate_contract::ManualClock;
use tidegate_idempotency::RecordName;
use tidegate_store_embedded::MemoryStore;

use super::*;

const GROUP: FailureSource<'_> = FailureSource::Group("shop:1");

fn at(second: u64) -> Time {
    Time::from_millis(second * 1_000)
}

fn dismissal(through: u64, by: &str) -> Dismissal {
    Dismissal::new(at(through), by, None, at(through))
}

/// OPS-24: what failed by the time that the operator was shown is dismissed, and nothing newer.
#[test]
fn ops_24_a_dismissal_covers_what_was_shown() {
    let now = at(1_000);
    for (through, covered, newer) in [
        (at(900), at(900), at(901)),
        // The clock of another node may be a little ahead.
        (now.after(CLOCK_SKEW_MAX), now.after(CLOCK_SKEW_MAX), at(1_011)),
        (at(9_000), now, at(1_001)),
    ] {
        let dismissal = Dismissal::new(through, "anna", Some(String::new()), now);
        assert!(dismissal.covers(covered) && dismissal.covers(at(1)), "{through}: {dismissal:?}");
        assert!(!dismissal.covers(newer) && dismissal.reason.is_none(), "{through}: {dismissal:?}");
    }
}

/// No key of a caller is the name of a dismissal, whatever a group is called.
#[test]
fn a_dismissal_is_no_idempotency_key() {
    for group in ["g", "a b c", "a POST /x k-1", "generations", "g:lock", ""] {
        let name = FailureSource::Group(group).record_name();
        assert_eq!(RecordName::parse(&name), None, "{name}");
        assert!(!name.ends_with(":lock") && name != FailureSource::Generations.record_name(), "{name}");
    }
}

/// OPS-24: a later time replaces an earlier one and is never lowered; each source has its own, for
/// as long as its failures are recent.
#[tokio::test]
async fn ops_24_a_later_dismissal_replaces_an_earlier_one() {
    let clock = ManualClock::at(at(100));
    let store = MemoryStore::new(clock.clone());
    let first = dismissal(20, "anna");
    assert_eq!(dismiss(&store, GROUP, first.clone()).await.unwrap(), first);
    let second = dismissal(30, "bert");
    assert_eq!(dismiss(&store, GROUP, second.clone()).await.unwrap(), second);
    for earlier in [10, 30] {
        assert_eq!(dismiss(&store, GROUP, dismissal(earlier, "carl")).await.unwrap(), second, "{earlier}");
    }
    let all = [FailureSource::Generations, GROUP, FailureSource::Group("shop:2")];
    assert_eq!(read(&store, &all).await, [None, Some(second), None]);
    let many = vec![GROUP; SOURCES_MAX + 2];
    let found = read(&store, &many).await;
    assert_eq!((found.len(), found.iter().flatten().count()), (SOURCES_MAX + 2, SOURCES_MAX));
    assert!(undismiss(&store, GROUP).await.unwrap() && !undismiss(&store, GROUP).await.unwrap());
    assert_eq!(read(&store, &[GROUP]).await, [None]);
    dismiss(&store, GROUP, first.clone()).await.unwrap();
    clock.advance(FAILURE_LOOKBACK);
    assert_eq!(read(&store, &[GROUP]).await, [Some(first)]);
    clock.advance(Duration::from_millis(1));
    assert_eq!(read(&store, &[GROUP]).await, [None]);
}

/// OPS-24: of many at once the latest time stays, whichever comes first.
#[tokio::test(start_paused = true)]
async fn ops_24_of_several_at_once_the_latest_stays() {
    let store = MemoryStore::new(ManualClock::at(at(100)));
    let each = [30, 10, 50, 20, 40].map(|through| dismiss(&store, GROUP, dismissal(through, "anna")));
    for done in join_all(each).await {
        done.unwrap();
    }
    assert_eq!(read(&store, &[GROUP]).await, [Some(dismissal(50, "anna"))]);
}
