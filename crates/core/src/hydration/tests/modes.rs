//! Levels of detail.

use proptest::prelude::*;

use super::super::*;
use super::world::fields;
use crate::bounds::ENTITY_FIELDS_MAX;
use HydrationMode::{Existence, Full};

fn any_mode() -> impl Strategy<Value = HydrationMode> {
    prop_oneof![
        Just(Existence),
        Just(Full),
        prop::collection::btree_set("[a-d]", 1..4).prop_map(HydrationMode::Partial)
    ]
}

/// HYD-1: three levels, by the names that events use.
#[test]
fn hyd_1_levels_have_names() {
    let some = || Some(vec!["name".to_owned()]);
    assert_eq!(HydrationMode::named("existence", None), Ok(Existence));
    assert_eq!(HydrationMode::named("partial", some()), Ok(fields(&["name"])));
    assert_eq!(HydrationMode::named("full", None), Ok(Full));
    assert_eq!(HydrationMode::named("partial", None), Err(ModeError::NoFields));
    assert_eq!(HydrationMode::named("full", some()), Err(ModeError::FieldsNotPartial));
    assert_eq!(HydrationMode::named("all", None), Err(ModeError::Unknown));
    let many = (0..=ENTITY_FIELDS_MAX).map(|n| n.to_string());
    assert_eq!(HydrationMode::partial(many), Err(ModeError::TooManyFields));
    assert_eq!(HydrationMode::partial([""]), Err(ModeError::FieldName));
}

proptest! {
    /// HYD-1: the union covers both and is not more than needed; covering is an order.
    #[test]
    fn hyd_1_a_union_is_the_least_that_covers_both(a in any_mode(), b in any_mode(), c in any_mode()) {
        let both = a.union(&b);
        prop_assert!(both.covers(&a) && both.covers(&b));
        prop_assert!(!(c.covers(&a) && c.covers(&b)) || c.covers(&both));
        prop_assert_eq!(both, b.union(&a));
        prop_assert!(a.covers(&a) && a.covers(&Existence) && Full.covers(&a));
        prop_assert!(!(a.covers(&b) && b.covers(&c)) || a.covers(&c));
        prop_assert_eq!(a.covers(&b) && b.covers(&a), a == b);
    }
}
