//! The queries, drawn once and the same in every run and for the peer: from 1 to 500 points, as
//! many up to 125 as above.

use serde::Serialize;
use tidegate_sim::rng::SeededRng;

/// The most expensive query.
pub(super) const COST_MAX: u64 = 500;
/// How many are drawn before they repeat.
const CARDS: usize = 1_000;
const SEED: u64 = 5;
/// The cost of a connection besides its objects.
const CONNECTION: u64 = 2;
/// The average share of its objects that a connection of the simulator returns.
const RETURNED: f64 = 0.65;
/// A stride that is coprime with the number of queries, so that shops do not begin with the same
/// ones.
const STRIDE: usize = 7_919;

/// A query.
#[derive(Clone, Debug, Serialize)]
pub(super) struct SampleQuery {
    pub text: String,
    /// Its expected cost, in points.
    pub expected: f64,
}

/// All queries, which repeat in a cycle.
#[derive(Clone, Debug, Serialize)]
pub(super) struct QuerySet(Vec<SampleQuery>);

impl QuerySet {
    pub(super) fn draw() -> Self {
        let mut chance = SeededRng::new(SEED);
        Self((0..CARDS).map(|_| SampleQuery::of(cost(&mut chance))).collect())
    }

    /// Returns where a shop's own order begins.
    pub(super) const fn first(&self, shop: usize) -> usize {
        shop.wrapping_mul(STRIDE) % self.0.len()
    }

    /// Returns the query with this number in a shop's own order.
    pub(super) fn query(&self, shop: usize, number: usize) -> &SampleQuery {
        &self.0[(self.first(shop) + number) % self.0.len()]
    }
}

/// Returns a cost, the square of a uniform draw: cheap ones are more likely than expensive ones.
fn cost(chance: &mut SeededRng) -> u64 {
    // A float keeps the upper 53 bits.
    let drawn = (chance.next() >> 11) as f64 / (1_u64 << 53) as f64;
    ((COST_MAX as f64 * drawn * drawn).ceil() as u64).clamp(1, COST_MAX)
}

impl SampleQuery {
    /// Creates a query that asks for this many points.
    fn of(cost: u64) -> Self {
        let text = match cost {
            0 | 1 => "{ shop { name } }".to_owned(),
            2 => "{ shop { name primaryDomain { url } } }".to_owned(),
            3..=252 => format!("{{ products(first: {}) {{ nodes {{ id }} }} }}", cost - CONNECTION),
            // A page has at most 250.
            _ => {
                let (one, two) = (cost / 2 - CONNECTION, cost - cost / 2 - CONNECTION);
                format!(
                    "{{ a: products(first: {one}) {{ nodes {{ id }} }} b: orders(first: {two}) {{ nodes {{ id }} }} }}"
                )
            }
        };
        let expected = if cost <= 2 { cost as f64 } else { cost as f64 * RETURNED };
        Self { text, expected }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Map;
    use tidegate_sim::shopify::cost::{ReturnedShare, cost as asked};
    use tidegate_sim::shopify::document::Document;

    use super::*;

    #[test]
    fn a_query_asks_for_the_points_it_was_made_for() {
        for cost in 1..=COST_MAX {
            let document = Document::parse(&SampleQuery::of(cost).text, None, &Map::new()).unwrap();
            assert_eq!(asked(&document, ReturnedShare::ALL), cost);
        }
    }

    #[test]
    fn cheap_and_dear_ones_are_drawn_and_every_shop_has_an_order_of_its_own() {
        let mut chance = SeededRng::new(SEED);
        let costs: Vec<u64> = (0..CARDS).map(|_| cost(&mut chance)).collect();
        let cheap = costs.iter().filter(|cost| **cost <= 125).count();
        assert!((450..550).contains(&cheap), "{cheap} of {CARDS}");
        assert!(costs.contains(&1) && costs.iter().any(|cost| *cost > 490));
        let deck = QuerySet::draw();
        let first: BTreeSet<_> = (0..50).map(|shop| std::ptr::from_ref(deck.query(shop, 0))).collect();
        assert_eq!(first.len(), 50);
    }
}
