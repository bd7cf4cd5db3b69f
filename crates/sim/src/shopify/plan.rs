//! The limits of a shop: the figures of its plan, and figures that are set for one shop while calls
//! run.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ShopPlan {
    /// 100 points per second, 2,000 at most; 2 REST calls per second, 40 at once.
    #[default]
    Standard,
    /// Twice that.
    Advanced,
    /// Ten times that.
    Plus,
    /// Twenty times that.
    Enterprise,
}

/// The limits of one shop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ShopLimits {
    /// Points restored per second.
    pub restore_per_s: u64,
    /// The capacity in points.
    pub maximum: u64,
    /// REST calls that leak out of the bucket per second.
    pub rest_per_s: u64,
    /// REST calls that the bucket holds.
    pub rest_bucket: u64,
    /// Bulk operations of one kind at once; `None` for as many as the version of the call allows.
    pub bulk_at_once: Option<u64>,
}

/// New figures for some limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShopLimitsChange {
    restore_per_s: Option<u64>,
    maximum: Option<u64>,
    rest_per_s: Option<u64>,
    rest_bucket: Option<u64>,
    bulk_at_once: Option<u64>,
}

/// The largest figure accepted.
const FIGURE_MAX: u64 = 1_000_000_000;

impl ShopPlan {
    /// Returns its limits.
    #[must_use]
    pub const fn limits(self) -> ShopLimits {
        let times = match self {
            Self::Standard => 1,
            Self::Advanced => 2,
            Self::Plus => 10,
            Self::Enterprise => 20,
        };
        ShopLimits {
            restore_per_s: 100 * times,
            maximum: 2_000 * times,
            rest_per_s: 2 * times,
            rest_bucket: 40 * times,
            bulk_at_once: None,
        }
    }
}

impl FromStr for ShopPlan {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "standard" => Ok(Self::Standard),
            "advanced" => Ok(Self::Advanced),
            "plus" => Ok(Self::Plus),
            "enterprise" => Ok(Self::Enterprise),
            _ => Err(format!("{text:?} is not a plan: use standard, advanced, plus or enterprise")),
        }
    }
}

impl ShopLimitsChange {
    /// Applies the change to these figures; `None` when one of them is out of range.
    #[must_use]
    pub fn apply_to(self, figures: ShopLimits) -> Option<ShopLimits> {
        let changed = ShopLimits {
            restore_per_s: self.restore_per_s.unwrap_or(figures.restore_per_s),
            maximum: self.maximum.unwrap_or(figures.maximum),
            rest_per_s: self.rest_per_s.unwrap_or(figures.rest_per_s),
            rest_bucket: self.rest_bucket.unwrap_or(figures.rest_bucket),
            bulk_at_once: self.bulk_at_once.or(figures.bulk_at_once),
        };
        let all = [changed.restore_per_s, changed.maximum, changed.rest_per_s, changed.rest_bucket];
        all.iter().all(|figure| *figure <= FIGURE_MAX).then_some(changed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_have_their_figures() {
        let of = |plan: &str| {
            let figures = plan.parse::<ShopPlan>().unwrap().limits();
            [figures.restore_per_s, figures.maximum, figures.rest_per_s, figures.rest_bucket]
        };
        assert_eq!(of("standard"), [100, 2_000, 2, 40]);
        assert_eq!(of("advanced"), [200, 4_000, 4, 80]);
        assert_eq!(of("plus"), [1_000, 20_000, 20, 400]);
        assert_eq!(of("enterprise"), [2_000, 40_000, 40, 800]);
        assert!("basic".parse::<ShopPlan>().is_err());
    }

    #[test]
    fn a_change_leaves_the_rest_alone() {
        let change: ShopLimitsChange = serde_json::from_str(r#"{"maximum":1000,"bulk_at_once":2}"#).unwrap();
        let expected = ShopLimits { maximum: 1_000, bulk_at_once: Some(2), ..ShopPlan::Standard.limits() };
        assert_eq!(change.apply_to(ShopPlan::Standard.limits()), Some(expected));
        assert!(serde_json::from_str::<ShopLimitsChange>(r#"{"maximun":1000}"#).is_err());
        let absurd: ShopLimitsChange = serde_json::from_str(r#"{"restore_per_s":1000000001}"#).unwrap();
        assert_eq!(absurd.apply_to(ShopPlan::Standard.limits()), None);
    }
}
