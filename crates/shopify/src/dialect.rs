//! The Shopify dialect of one upstream: one shop with one credential. It says which budgets a call takes from and how
//! much, puts idempotency keys on, and reads what answers say. It keeps no balance: that is the model's.

mod reading;
mod verdict;

use std::collections::BTreeMap;
use std::sync::Arc;

use tidegate_core::bucket::usual_margin;
use tidegate_core::fact::Shape as LimitShape;
use tidegate_core::operation::MICRO;
use tidegate_core::{Charge, OnUnknown};
use tidegate_upstream::http::{Dialect, MadeLimit, Reader};
use tidegate_upstream::{HttpRequest, Method, Refusal};

use crate::budget::{AT_ONCE, AtFirst, BULK, POINTS, POINTS_AT_FIRST, REQUESTS, REQUESTS_AT_FIRST};
use crate::cost::{Memory, SINGLE_MAX, Shape, UNREADABLE, Variables, estimate, rest_shape};
use crate::document::{Document, Does};
use crate::idempotent;
use crate::query::{self, Query};
use crate::site::Site;
use crate::telling::Telling;
use crate::version::ApiVersion;
use reading::{Reading, What};

/// The dialect of one shop.
#[derive(Debug)]
pub struct ShopifyDialect {
    site: Site,
    gate: Arc<str>,
    points: Arc<str>,
    requests: Arc<str>,
    bulk: Arc<str>,
    bulk_at_once: u32,
    /// The places for all calls but bulk operations, where there are any.
    at_once: Option<(Arc<str>, u32)>,
    memory: Memory,
    telling: Telling,
}

/// What is known of a GraphQL call before it is sent.
struct Known {
    shape: Option<Shape>,
    does: Option<Does>,
    repeatable: bool,
    /// What it is taken to cost, in micro-points.
    cost: u64,
    /// The text with keys in it, when it needed any.
    keyed: Option<String>,
}

impl ShopifyDialect {
    /// For an upstream of this name with so many places for bulk operations.
    #[must_use]
    pub fn new(upstream: &str, bulk_at_once: u32) -> Self {
        let named = |limit: &str| Arc::from(format!("{upstream}/{limit}"));
        Self {
            site: Site::default(),
            gate: Arc::from(upstream),
            points: named(POINTS),
            requests: named(REQUESTS),
            bulk: named(BULK),
            bulk_at_once: bulk_at_once.max(1),
            at_once: None,
            memory: Memory::default(),
            telling: Telling::default(),
        }
    }

    /// The same for a shop with this base URL, whose path is a part of what a request is.
    #[must_use]
    pub fn at(self, base_url: &str) -> Self {
        Self { site: Site::of(base_url), ..self }
    }

    /// The same with so many places for all its calls but bulk operations.
    #[must_use]
    pub fn at_most(self, at_once: Option<u32>) -> Self {
        let named = |places: u32| (Arc::from(format!("{}/{AT_ONCE}", self.gate)), places.max(1));
        Self { at_once: at_once.map(named), ..self }
    }

    /// Reads a GraphQL call. `key` is put on its mutations where that is wanted.
    fn know(&self, request: &HttpRequest, key: Option<&str>) -> Known {
        let version = self.site.version(request);
        self.read(request, version, key).unwrap_or_else(|| Known {
            shape: None,
            does: None,
            repeatable: false,
            cost: fitting(UNREADABLE * MICRO),
            keyed: None,
        })
    }

    fn read(&self, request: &HttpRequest, version: Option<ApiVersion>, key: Option<&str>) -> Option<Known> {
        let query = Query::read(request)?;
        let document = Document::parse(&query.text)?;
        let operation = document.operation(query.operation())?;
        let variables = Variables::read(query.variables);
        let shape = Shape::of(&document, operation, &variables, version);
        let estimated =
            || estimate(&document, operation, &variables).unwrap_or(UNREADABLE).saturating_mul(MICRO);
        let cost = self.memory.get(shape.hash).unwrap_or_else(estimated);
        Some(Known {
            cost: fitting(cost),
            does: Some(operation.does),
            repeatable: idempotent::is_repeatable(&document, operation, version),
            keyed: key.and_then(|key| idempotent::with_keys(&query.text, &document, operation, version, key)),
            shape: Some(shape),
        })
    }

    fn refuse_strange_costs(&self, charged: &str, cost: &BTreeMap<String, u64>) -> Result<(), Refusal> {
        // What is said of a cap counts for nothing, and harms nobody.
        let is_strange =
            |name: &&String| name.as_str() != charged && (self.at_once.is_none() || name.as_str() != AT_ONCE);
        let Some(stranger) = cost.keys().find(is_strange) else { return Ok(()) };
        let kind = if charged == POINTS { "A GraphQL call" } else { "A REST call" };
        let stranger: String = stranger.chars().take(64).collect();
        let message = format!("{kind} to {} charges {charged} and nothing called {stranger:?}.", self.gate);
        Err(Refusal::new(format!("cost.{stranger}"), message))
    }
}

/// A cost that was not said by the caller: at least a point, and at most what one query may cost.
fn fitting(cost: u64) -> u64 {
    cost.clamp(MICRO, SINGLE_MAX * MICRO)
}

impl Dialect for ShopifyDialect {
    fn limits(&self) -> Vec<MadeLimit> {
        let drip = |AtFirst { capacity, refill_per_s }| {
            let (capacity, refill_per_s) = (u64::from(capacity) * MICRO, u64::from(refill_per_s) * MICRO);
            LimitShape::Drip { capacity, refill_per_s, margin: usual_margin(capacity, refill_per_s) }
        };
        let mut limits = vec![
            (Arc::clone(&self.gate), LimitShape::Gate),
            (Arc::clone(&self.points), drip(POINTS_AT_FIRST)),
            (Arc::clone(&self.requests), drip(REQUESTS_AT_FIRST)),
            (Arc::clone(&self.bulk), LimitShape::Cap { at_once: self.bulk_at_once }),
        ];
        if let Some((name, at_once)) = &self.at_once {
            limits.push((Arc::clone(name), LimitShape::Cap { at_once: *at_once }));
        }
        limits
    }

    fn charges(&self, request: &HttpRequest, cost: &BTreeMap<String, u64>) -> Result<Vec<Charge>, Refusal> {
        let is_graphql = self.site.is_graphql(request);
        self.refuse_strange_costs(if is_graphql { POINTS } else { REQUESTS }, cost)?;
        let budget = match (is_graphql, cost.get(POINTS)) {
            (true, Some(points)) => Charge::tokens(Arc::clone(&self.points), *points),
            (true, None) => Charge::estimate(Arc::clone(&self.points), self.know(request, None).cost),
            (false, _) => {
                let calls = cost.get(REQUESTS).copied().unwrap_or(1);
                Charge::tokens(Arc::clone(&self.requests), calls)
            }
        };
        let place = self.at_once.as_ref().map(|(name, _)| Charge::tokens(Arc::clone(name), 1));
        let gate = Charge::tokens(Arc::clone(&self.gate), 1);
        Ok([gate, budget].into_iter().chain(place).collect())
    }

    /// What only reads may be sent again, and what has keys for its changes. A header says nothing here: Shopify
    /// knows none for this.
    fn on_unknown(&self, request: &HttpRequest) -> OnUnknown {
        let repeatable = match self.site.is_graphql(request) {
            true => self.know(request, None).repeatable,
            false => request.method.is_idempotent(),
        };
        if repeatable { OnUnknown::Repeat } else { OnUnknown::Ask }
    }

    fn only_reads(&self, request: &HttpRequest) -> bool {
        match self.site.is_graphql(request) {
            true => self.know(request, None).does == Some(Does::Query),
            false => matches!(request.method, Method::Get | Method::Head | Method::Options),
        }
    }

    fn ready<'a>(&'a self, request: &mut HttpRequest, operation: &str) -> Option<Box<dyn Reader + 'a>> {
        let asked = self.site.version(request);
        let what = if self.site.is_graphql(request) {
            let known = self.know(request, Some(operation));
            if let Some(body) = known.keyed.and_then(|text| query::with_text(request, text)) {
                request.body = body;
            }
            let reads = known.does == Some(Does::Query);
            What::Graphql { shape: known.shape, reads, estimated: known.cost }
        } else {
            let reads = self.only_reads(request);
            What::Rest { shape: rest_shape(request.method.as_str(), &self.site.path(request)), reads }
        };
        Some(Box::new(Reading { dialect: self, asked, what }))
    }
}

#[cfg(test)]
mod tests;
