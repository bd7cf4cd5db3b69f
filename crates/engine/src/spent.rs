//! The cost of a call as its executor reports it, in the bounded form that is stored with its
//! operation. No decision depends on it.

use std::sync::Arc;

use tidegate_core::bounds::{CHARGES_MAX, LIMIT_LEN_MAX, SHAPE_LEN_MAX};
use tidegate_core::{Fence, OperationId, Time};
use tidegate_store::costs::Cost;
use tidegate_upstream::CallCost;

/// Converts the reported costs of one call.
pub(crate) fn costs(spending: Vec<CallCost>, operation: OperationId, claim: Fence, at: Time) -> Vec<Cost> {
    let cost = |(nth, spent): (u8, CallCost)| Cost {
        at,
        operation,
        claim,
        nth,
        limit: cut(spent.limit, LIMIT_LEN_MAX),
        shape: cut(spent.shape, SHAPE_LEN_MAX),
        requested: spent.requested,
        actual: spent.actual,
        restore_rate: spent.restore_rate,
    };
    (0..).zip(spending.into_iter().take(CHARGES_MAX)).map(cost).collect()
}

fn cut(text: Arc<str>, len_max: usize) -> Arc<str> {
    if text.len() <= len_max { text } else { text[..text.floor_char_boundary(len_max)].into() }
}

#[cfg(test)]
mod tests {
    use tidegate_core::Seq;

    use super::*;

    /// LIM-10: whatever an executor reports, what is stored of one call is bounded.
    #[test]
    fn lim_10_what_is_kept_of_a_call_is_bounded() {
        let shape: Arc<str> = format!("x{}", "é".repeat(200)).into();
        let one =
            CallCost { limit: "acme/points".into(), shape, requested: 1, actual: None, restore_rate: None };
        let id = OperationId::new(Time::ZERO, 0, Seq(1));
        let kept = costs(vec![one; CHARGES_MAX + 3], id, Fence(2), Time::ZERO);
        assert_eq!(kept.len(), CHARGES_MAX);
        assert_eq!(kept[0].shape.len(), 255, "whole letters");
        assert!(kept.iter().enumerate().all(|(nth, cost)| usize::from(cost.nth) == nth));
    }

    /// LIM-10: what is stored of a call is what its executor reported, the learned rate included.
    #[test]
    fn lim_10_what_was_reported_is_kept() {
        let (requested, actual, restore_rate) = (10, Some(3), Some(100));
        let reported =
            CallCost { limit: "acme/points".into(), shape: "Get#1".into(), requested, actual, restore_rate };
        let (at, claim) = (Time::from_millis(5), Fence(2));
        let operation = OperationId::new(Time::ZERO, 0, Seq(1));
        let (limit, shape) = ("acme/points".into(), "Get#1".into());
        let kept = Cost { at, operation, claim, nth: 0, limit, shape, requested, actual, restore_rate };
        assert_eq!(costs(vec![reported], operation, claim, at), [kept]);
    }
}
