//! Completions that do not come in time: what follows, and whether `why` says so.

use super::*;
use crate::model::{Cause, OverdueEffect};
use crate::operation::OnUnknown;
use crate::state::State;

/// OPS-24: `why` says what follows when no completion comes, and that is what follows.
#[test]
fn ops_24_why_says_what_follows_an_overdue_completion() {
    let table = [
        (OnUnknown::Ask, 3, false, OverdueEffect::Unknown, State::Unknown),
        (OnUnknown::Repeat, 3, false, OverdueEffect::Repeat, State::Waiting),
        (OnUnknown::Reconcile, 3, false, OverdueEffect::Repeat, State::Waiting),
        (OnUnknown::Reconcile, 1, false, OverdueEffect::Unknown, State::Unknown),
        (OnUnknown::Repeat, 1, false, OverdueEffect::Fail, State::Failed),
        (OnUnknown::Repeat, 3, true, OverdueEffect::Cancel, State::Canceled),
        (OnUnknown::Ask, 3, true, OverdueEffect::Cancel, State::Canceled),
    ];
    for (on_unknown, max_attempts, is_canceled, effect, state) in table {
        let mut world = ModelHarness::new();
        world.accept(Draft { on_unknown, max_attempts, ..draft("g") });
        let claim = world.take(1).pop().unwrap();
        world.settle(&claim, accepted(None, 60));
        if is_canceled {
            world.model.cancel(world.now, claim.seq, &mut world.facts);
        }
        let why = world.model.why(claim.seq, world.now).unwrap();
        assert!(matches!(why.cause, Cause::Awaiting { then, .. } if then == effect), "{why:?}");
        world.wait_ms(60_000);
        let ended = world.take_outcome(0).ended.pop().map(|ended| State::from(ended.state));
        let active = world.model.active(claim.seq).map(|active| active.state);
        assert_eq!(ended.or(active), Some(state), "{on_unknown:?} {max_attempts} {is_canceled}");
    }
}
