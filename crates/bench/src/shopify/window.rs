//! What the simulator counted between two samples: points that were restored and points that were
//! used. The balance from before is no part of either.

use serde::Serialize;
use tidegate_sim::shopify::shop::ShopStats;
use tidegate_sim::shopify::sim_state::ShopifyStats;

use super::shops::Shop;
use crate::goal::to_thousandths;

/// Usage of all shops that had work.
#[derive(Debug, Serialize)]
pub(super) struct PointUsage {
    /// The used share of what was restored.
    pub used: f64,
    points_used: u64,
    points_restorable: u64,
    /// What the shops of a plan held at the beginning beyond what they held at the end. It was used
    /// but not restored meanwhile, so it is subtracted before `used` is computed.
    points_drawn_down: u64,
    calls: u64,
    by_plan: Vec<PlanUsage>,
}

#[derive(Debug, Serialize)]
struct PlanUsage {
    restore_per_s: u64,
    shops: usize,
    used: f64,
    /// Average balance of a shop, in seconds of its restore rate, at the beginning and at the end.
    held_s: [f64; 2],
}

/// Sums over some shops.
#[derive(Clone, Copy, Debug, Default)]
struct PointSums {
    granted: u64,
    restorable: u64,
    before: u64,
    after: u64,
    calls: u64,
    shops: usize,
}

impl PointSums {
    fn between<'a>(shops: impl Iterator<Item = &'a Shop>, start: &ShopifyStats, end: &ShopifyStats) -> Self {
        let nothing = ShopStats::default();
        shops.fold(Self::default(), |sums, shop| {
            let start = start.shops.get(&shop.name).unwrap_or(&nothing);
            let end = end.shops.get(&shop.name).unwrap_or(&nothing);
            let restorable = end.points_restorable_since_first - start.points_restorable_since_first;
            Self {
                granted: sums.granted + end.points_granted - start.points_granted,
                restorable: sums.restorable + restorable,
                before: sums.before + start.available,
                after: sums.after + end.available,
                calls: sums.calls + end.calls - start.calls,
                shops: sums.shops + 1,
            }
        })
    }

    const fn drawn_down(&self) -> u64 {
        self.before.saturating_sub(self.after)
    }
}

fn share(granted: u64, drawn_down: u64, restorable: u64) -> f64 {
    granted.saturating_sub(drawn_down) as f64 / restorable.max(1) as f64
}

/// Computes the usage of these shops, which had work all the time.
pub(super) fn measure_usage(shops: &[&Shop], start: &ShopifyStats, end: &ShopifyStats) -> PointUsage {
    let mut plans: Vec<u64> = shops.iter().map(|shop| shop.restore_per_s).collect();
    plans.sort_unstable();
    plans.dedup();
    let of_plan = |restore_per_s: &u64| {
        let of = shops.iter().copied().filter(|shop| shop.restore_per_s == *restore_per_s);
        (*restore_per_s, PointSums::between(of, start, end))
    };
    let plans: Vec<(u64, PointSums)> = plans.iter().map(of_plan).collect();
    let all = PointSums::between(shops.iter().copied(), start, end);
    let points_drawn_down = plans.iter().map(|(_, sums)| sums.drawn_down()).sum();
    PointUsage {
        used: (share(all.granted, points_drawn_down, all.restorable) * 10_000.0).round() / 10_000.0,
        points_used: all.granted,
        points_restorable: all.restorable,
        points_drawn_down,
        calls: all.calls,
        by_plan: plans.iter().map(|(restore_per_s, sums)| PlanUsage::of(*restore_per_s, sums)).collect(),
    }
}

impl PlanUsage {
    fn of(restore_per_s: u64, sums: &PointSums) -> Self {
        let each = (restore_per_s * sums.shops as u64) as f64;
        Self {
            restore_per_s,
            shops: sums.shops,
            used: to_thousandths(share(sums.granted, sums.drawn_down(), sums.restorable)),
            held_s: [sums.before, sums.after].map(|held| to_thousandths(held as f64 / each)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::shops::make_shops;
    use super::*;

    fn stats(granted: u64, restorable: u64, available: u64) -> ShopifyStats {
        let shop = ShopStats {
            points_granted: granted,
            points_restorable_since_first: restorable,
            available,
            ..ShopStats::default()
        };
        ShopifyStats { shops: [("shop-0".to_owned(), shop)].into(), ..ShopifyStats::default() }
    }

    /// Points saved up before and spent meanwhile do not hide that what was restored was not used.
    #[test]
    fn what_a_shop_held_before_is_no_use_of_what_came_back() {
        let shops = make_shops(1);
        let one = [&shops[0]];
        assert_eq!(measure_usage(&one, &stats(50, 100, 2_000), &stats(1_050, 1_100, 2_000)).used, 1.0);
        assert_eq!(measure_usage(&one, &stats(50, 100, 2_000), &stats(1_050, 1_100, 1_500)).used, 0.5);
        assert_eq!(
            measure_usage(&one, &stats(50, 100, 0), &stats(550, 1_100, 500)).used,
            0.5,
            "what is left is not used"
        );
    }
}
