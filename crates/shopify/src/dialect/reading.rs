//! The answer to one call: what it says about budgets, as hints, and what the call cost, for those who look later.

use std::sync::Arc;

use tidegate_core::operation::MICRO;
use tidegate_core::{Hint, Verdict};
use tidegate_upstream::Spending;
use tidegate_upstream::http::answer::{Answer, Asked, Content};
use tidegate_upstream::http::{Meaning, Reader};

use super::ShopifyDialect;
use super::verdict;
use crate::cost::Shape;
use crate::said::{CallLimit, Said};
use crate::version::ApiVersion;

/// What was called.
pub(super) enum What {
    Graphql {
        shape: Option<Shape>,
        reads: bool,
        /// What it was taken to cost, in micro-points.
        estimated: u64,
    },
    Rest {
        shape: String,
        reads: bool,
    },
}

/// One call under way.
pub(super) struct Reading<'a> {
    pub dialect: &'a ShopifyDialect,
    /// The version that was asked for.
    pub asked: Option<ApiVersion>,
    pub what: What,
}

impl Reader for Reading<'_> {
    fn read(self: Box<Self>, answer: &Answer, asked: &Asked<'_>, verdict: Verdict) -> Meaning {
        let body: &[u8] = match &answer.content {
            Content::Whole(body) => body,
            Content::TooLarge { .. } | Content::Cut(_) | Content::PassedOn => b"",
        };
        let said = match &self.what {
            What::Graphql { .. } => Said::in_graphql(&answer.headers, body),
            What::Rest { .. } => Said::in_headers(&answer.headers),
        };
        self.dialect.telling.tell(&self.dialect.gate, &said, self.asked);
        let call = verdict::Call { asked, answer, body, said: &said };
        match &self.what {
            What::Graphql { shape, reads, estimated } => {
                let verdict = verdict::of_graphql(&call, &self.dialect.points, *reads, verdict);
                self.graphql(&said, answer, verdict, shape.as_ref(), *estimated)
            }
            What::Rest { shape, reads } => {
                let verdict = verdict::of_rest(&call, &self.dialect.requests, *reads, verdict);
                self.rest(&said, answer, verdict, shape)
            }
        }
    }
}

impl Reading<'_> {
    fn graphql(
        &self,
        said: &Said,
        answer: &Answer,
        verdict: Verdict,
        shape: Option<&Shape>,
        estimated: u64,
    ) -> Meaning {
        let cost = &said.cost;
        if let (Some(requested), Some(shape)) = (cost.requested, shape) {
            self.dialect.memory.put(shape.hash, requested);
        }
        // What was turned away took nothing; what went wrong may have taken all of it.
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
        let spending = shape.map(|shape| Spending {
            limit: Arc::clone(&self.dialect.points),
            shape: Arc::from(shape.label.as_str()),
            requested: cost.requested.unwrap_or(estimated),
            actual: spent,
        });
        Meaning { verdict, hints: vec![hint], spending: spending.into_iter().collect() }
    }

    fn rest(&self, said: &Said, answer: &Answer, verdict: Verdict, shape: &str) -> Meaning {
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
        let spending = Spending {
            limit: Arc::clone(&self.dialect.requests),
            shape: Arc::from(shape),
            requested: MICRO,
            actual: Some(spent.unwrap_or(MICRO)),
        };
        Meaning { verdict, hints: vec![hint], spending: vec![spending] }
    }
}

/// The wait that a throttled answer asks for ends when there is enough again: what is left now is in it already, and
/// would be waited for twice.
const fn is_throttled(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Throttled { .. })
}
