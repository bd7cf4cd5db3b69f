//! Interprets the response to one call: what it reports about budgets, as hints, and what the call
//! cost, for cost reports.

use std::sync::Arc;

use tidegate_core::operation::MICRO;
use tidegate_core::{Hint, Verdict};
use tidegate_upstream::CallCost;
use tidegate_upstream::http::response::{Content, RequestSummary, UpstreamResponse};
use tidegate_upstream::http::{Meaning, ResponseInterpreter};

use super::ShopifyDialect;
use super::verdict;
use crate::cost::CallShape;
use crate::response_meta::{CallLimit, ResponseMeta};
use crate::version::ApiVersion;

/// The API that was called.
pub(super) enum CallKind {
    Graphql {
        shape: Option<CallShape>,
        /// Its assumed cost, in micro-points.
        estimated: u64,
    },
    Rest {
        shape: String,
    },
}

/// Reads the response to one call in flight.
pub(super) struct ResponseReader<'a> {
    pub dialect: &'a ShopifyDialect,
    /// The requested version.
    pub asked: Option<ApiVersion>,
    pub call: CallKind,
}

impl ResponseInterpreter for ResponseReader<'_> {
    fn interpret(
        self: Box<Self>,
        answer: &UpstreamResponse,
        asked: &RequestSummary<'_>,
        verdict: Verdict,
    ) -> Meaning {
        let body: &[u8] = match &answer.content {
            Content::Whole(body) => body,
            Content::TooLarge { .. } | Content::Cut(_) | Content::Relayed => b"",
        };
        let said = match &self.call {
            CallKind::Graphql { .. } => ResponseMeta::from_graphql(&answer.headers, body),
            CallKind::Rest { .. } => ResponseMeta::from_headers(&answer.headers),
        };
        self.dialect.once_logger.log(&self.dialect.gate, &said, self.asked);
        let call = verdict::AnsweredCall { asked, answer, body, meta: &said };
        match &self.call {
            CallKind::Graphql { shape, estimated } => {
                let verdict = verdict::graphql_verdict(&call, &self.dialect.points, verdict);
                self.graphql(&said, answer, verdict, shape.as_ref(), *estimated)
            }
            CallKind::Rest { shape } => {
                let verdict = verdict::rest_verdict(&call, &self.dialect.requests, verdict);
                self.rest(&said, answer, verdict, shape)
            }
        }
    }
}

impl ResponseReader<'_> {
    fn graphql(
        &self,
        said: &ResponseMeta,
        answer: &UpstreamResponse,
        verdict: Verdict,
        shape: Option<&CallShape>,
        estimated: u64,
    ) -> Meaning {
        let cost = &said.cost;
        if let (Some(requested), Some(shape)) = (cost.requested, shape) {
            self.dialect.cost_cache.put(shape.hash, requested);
        }
        // A refused call took nothing; a failed one may have taken all of it.
        let turned_away = match &verdict {
            Verdict::Throttled { .. } => true,
            Verdict::Rejected(_) => answer.status.is_success() || answer.status.is_client_error(),
            _ => false,
        };
        let spent = cost.actual.or(turned_away.then_some(0));
        let hint = Hint {
            limit: Arc::clone(&self.dialect.points),
            remaining: cost.available.filter(|_| !is_throttled(&verdict)),
            capacity: cost.maximum,
            refill_per_s: cost.restore_per_s,
            reset_at: None,
            spent,
        };
        let spending = shape.map(|shape| CallCost {
            limit: Arc::clone(&self.dialect.points),
            shape: Arc::from(shape.label.as_str()),
            requested: cost.requested.unwrap_or(estimated),
            actual: spent,
            restore_rate: cost.restore_per_s,
        });
        Meaning { verdict, hints: vec![hint], spending: spending.into_iter().collect() }
    }

    fn rest(&self, said: &ResponseMeta, answer: &UpstreamResponse, verdict: Verdict, shape: &str) -> Meaning {
        let spent = (answer.status.as_u16() == 429).then_some(0);
        let calls = said.calls;
        let hint = Hint {
            limit: Arc::clone(&self.dialect.requests),
            remaining: calls.map(CallLimit::remaining).filter(|_| !is_throttled(&verdict)),
            capacity: calls.map(CallLimit::capacity),
            refill_per_s: calls.map(CallLimit::refill_per_s),
            reset_at: None,
            spent,
        };
        let spending = CallCost {
            limit: Arc::clone(&self.dialect.requests),
            shape: Arc::from(shape),
            requested: MICRO,
            actual: Some(spent.unwrap_or(MICRO)),
            restore_rate: calls.map(CallLimit::refill_per_s),
        };
        Meaning { verdict, hints: vec![hint], spending: vec![spending] }
    }
}

/// Returns whether a response was throttled. The wait it asks for ends when there is enough again:
/// it already accounts for what is left now, which would otherwise be waited for twice.
const fn is_throttled(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Throttled { .. })
}
