//! The Shopify dialect of one upstream: one shop with one credential. It decides which budgets a
//! call takes from and how much, adds idempotency keys, and reads what responses report. It keeps
//! no balance: the model does.

mod response_reader;
mod verdict;

use std::collections::BTreeMap;
use std::sync::Arc;

use tidegate_core::bucket::default_margin;
use tidegate_core::fact::LimitShape;
use tidegate_core::operation::MICRO;
use tidegate_core::{Charge, OnUnknown, ServerErrors};
use tidegate_upstream::http::{Dialect, LimitDefinition, ResponseInterpreter};
use tidegate_upstream::{FieldRefusal, HttpRequest, Method};

use crate::budget::{AT_ONCE, BULK, InitialBudget, POINTS, POINTS_INITIAL, REQUESTS, REQUESTS_INITIAL};
use crate::cost::{CallShape, CostCache, SINGLE_MAX, UNREADABLE_COST, Variables, estimate, rest_shape};
use crate::document::{Document, OperationType};
use crate::endpoint::Endpoint;
use crate::idempotent;
use crate::once_logger::OnceLogger;
use crate::query::{self, GraphqlRequest};
use crate::version::ApiVersion;
use response_reader::{CallKind, ResponseReader};

/// What a server error of Shopify means by default for a change: it may have been made.
pub(crate) const SERVER_ERRORS: ServerErrors = ServerErrors::Unknown;

/// The dialect of one shop.
#[derive(Debug)]
pub struct ShopifyDialect {
    endpoint: Endpoint,
    gate: Arc<str>,
    points: Arc<str>,
    requests: Arc<str>,
    bulk: Arc<str>,
    bulk_at_once: u32,
    /// The slots for all calls but bulk operations, if configured.
    at_once: Option<(Arc<str>, u32)>,
    cost_cache: CostCache,
    once_logger: OnceLogger,
}

/// What is known of a GraphQL call before it is sent.
struct GraphqlCallInfo {
    shape: Option<CallShape>,
    operation_type: Option<OperationType>,
    repeatable: bool,
    /// Its assumed cost, in micro-points.
    cost: u64,
    /// The text with keys in it, when it needed any.
    keyed: Option<String>,
}

impl ShopifyDialect {
    /// Creates the dialect of an upstream with this name and number of slots for bulk operations.
    #[must_use]
    pub fn new(upstream: &str, bulk_at_once: u32) -> Self {
        let named = |limit: &str| Arc::from(format!("{upstream}/{limit}"));
        Self {
            endpoint: Endpoint::default(),
            gate: Arc::from(upstream),
            points: named(POINTS),
            requests: named(REQUESTS),
            bulk: named(BULK),
            bulk_at_once: bulk_at_once.max(1),
            at_once: None,
            cost_cache: CostCache::default(),
            once_logger: OnceLogger::default(),
        }
    }

    /// Sets the base URL of the shop, whose path is part of every request's path.
    #[must_use]
    pub fn with_base_url(self, base_url: &str) -> Self {
        Self { endpoint: Endpoint::from_base_url(base_url), ..self }
    }

    /// Sets the number of slots for all calls but bulk operations.
    #[must_use]
    pub fn with_at_once(self, at_once: Option<u32>) -> Self {
        let named = |places: u32| (Arc::from(format!("{}/{AT_ONCE}", self.gate)), places.max(1));
        Self { at_once: at_once.map(named), ..self }
    }

    /// Reads a GraphQL call. Adds `key` to its mutations where that is wanted.
    fn inspect(&self, request: &HttpRequest, key: Option<&str>) -> GraphqlCallInfo {
        let version = self.endpoint.version(request);
        self.try_inspect(request, version, key).unwrap_or_else(|| GraphqlCallInfo {
            shape: None,
            operation_type: None,
            repeatable: false,
            cost: clamp_cost(UNREADABLE_COST * MICRO),
            keyed: None,
        })
    }

    fn try_inspect(
        &self,
        request: &HttpRequest,
        version: Option<ApiVersion>,
        key: Option<&str>,
    ) -> Option<GraphqlCallInfo> {
        let query = GraphqlRequest::read(request)?;
        let document = Document::parse(&query.text)?;
        let operation = document.operation(query.operation())?;
        let variables = Variables::read(query.variables);
        let shape = CallShape::of(&document, operation, &variables, version);
        let estimated =
            || estimate(&document, operation, &variables).unwrap_or(UNREADABLE_COST).saturating_mul(MICRO);
        let cost = self.cost_cache.get(shape.hash).unwrap_or_else(estimated);
        Some(GraphqlCallInfo {
            cost: clamp_cost(cost),
            operation_type: Some(operation.operation_type),
            repeatable: idempotent::is_repeatable(&document, operation, version),
            keyed: key.and_then(|key| idempotent::add_keys(&query.text, &document, operation, version, key)),
            shape: Some(shape),
        })
    }

    fn check_costs(&self, charged: &str, cost: &BTreeMap<String, u64>) -> Result<(), FieldRefusal> {
        // A cost given for a cap is ignored, and does no harm.
        let is_strange =
            |name: &&String| name.as_str() != charged && (self.at_once.is_none() || name.as_str() != AT_ONCE);
        let Some(stranger) = cost.keys().find(is_strange) else { return Ok(()) };
        let kind = if charged == POINTS { "A GraphQL call" } else { "A REST call" };
        let stranger: String = stranger.chars().take(64).collect();
        let message = format!("{kind} to {} charges {charged} and nothing called {stranger:?}.", self.gate);
        Err(FieldRefusal::new(format!("cost.{stranger}"), message))
    }
}

/// Clamps a cost that the caller did not give: at least a point, and at most what one query may
/// cost.
fn clamp_cost(cost: u64) -> u64 {
    cost.clamp(MICRO, SINGLE_MAX * MICRO)
}

impl Dialect for ShopifyDialect {
    fn limits(&self) -> Vec<LimitDefinition> {
        let drip = |InitialBudget { capacity, refill_per_s }| {
            let (capacity, refill_per_s) = (u64::from(capacity) * MICRO, u64::from(refill_per_s) * MICRO);
            LimitShape::Drip { capacity, refill_per_s, margin: default_margin(capacity, refill_per_s) }
        };
        let mut limits = vec![
            (Arc::clone(&self.gate), LimitShape::Gate),
            (Arc::clone(&self.points), drip(POINTS_INITIAL)),
            (Arc::clone(&self.requests), drip(REQUESTS_INITIAL)),
            (Arc::clone(&self.bulk), LimitShape::Cap { at_once: self.bulk_at_once }),
        ];
        if let Some((name, at_once)) = &self.at_once {
            limits.push((Arc::clone(name), LimitShape::Cap { at_once: *at_once }));
        }
        limits
    }

    fn charges(
        &self,
        request: &HttpRequest,
        cost: &BTreeMap<String, u64>,
    ) -> Result<Vec<Charge>, FieldRefusal> {
        let is_graphql = self.endpoint.is_graphql(request);
        self.check_costs(if is_graphql { POINTS } else { REQUESTS }, cost)?;
        let budget = match (is_graphql, cost.get(POINTS)) {
            (true, Some(points)) => Charge::tokens(Arc::clone(&self.points), *points),
            (true, None) => Charge::estimate(Arc::clone(&self.points), self.inspect(request, None).cost),
            (false, _) => {
                let calls = cost.get(REQUESTS).copied().unwrap_or(1);
                Charge::tokens(Arc::clone(&self.requests), calls)
            }
        };
        let place = self.at_once.as_ref().map(|(name, _)| Charge::tokens(Arc::clone(name), 1));
        let gate = Charge::tokens(Arc::clone(&self.gate), 1);
        Ok([gate, budget].into_iter().chain(place).collect())
    }

    /// Only reads may be sent again, and mutations with keys. No header matters here: Shopify has
    /// none for this.
    fn on_unknown(&self, request: &HttpRequest) -> OnUnknown {
        let repeatable = match self.endpoint.is_graphql(request) {
            true => self.inspect(request, None).repeatable,
            false => request.method.is_idempotent(),
        };
        if repeatable { OnUnknown::Repeat } else { OnUnknown::Ask }
    }

    fn server_errors(&self) -> ServerErrors {
        SERVER_ERRORS
    }

    fn is_read_only(&self, request: &HttpRequest) -> bool {
        match self.endpoint.is_graphql(request) {
            true => self.inspect(request, None).operation_type == Some(OperationType::Query),
            false => matches!(request.method, Method::Get | Method::Head | Method::Options),
        }
    }

    fn prepare_request<'a>(
        &'a self,
        request: &mut HttpRequest,
        operation: &str,
    ) -> Option<Box<dyn ResponseInterpreter + 'a>> {
        let asked = self.endpoint.version(request);
        let what = if self.endpoint.is_graphql(request) {
            let known = self.inspect(request, Some(operation));
            if let Some(body) = known.keyed.and_then(|text| query::replace_text(request, text)) {
                request.body = body;
            }
            CallKind::Graphql { shape: known.shape, estimated: known.cost }
        } else {
            CallKind::Rest { shape: rest_shape(request.method.as_str(), &self.endpoint.path(request)) }
        };
        Some(Box::new(ResponseReader { dialect: self, asked, call: what }))
    }
}

#[cfg(test)]
mod tests;
