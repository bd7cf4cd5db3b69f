//! What a dialect adds to plain HTTP for one upstream: the limits it makes, what a request charges, a small change
//! before it is sent, what an answer means beyond its status. It neither sends nor repeats anything.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidegate_core::fact::LimitShape;
use tidegate_core::{Charge, Hint, OnUnknown, Verdict};

use super::response::{RequestSummary, UpstreamResponse};
use crate::port::{CallCost, FieldRefusal};
use crate::request::{HttpRequest, Method};

/// A limit by its full name, and what it is at first.
pub type LimitDefinition = (Arc<str>, LimitShape);

/// The dialect of one upstream.
pub trait Dialect: Send + Sync {
    /// The limits of the upstream, by their full names: its gate first, which has the upstream's own name.
    fn limits(&self) -> Vec<LimitDefinition>;

    /// What must be granted before the request is sent. `cost` is what the caller says, by the short names of limits.
    ///
    /// # Errors
    /// Names the field that cannot be accepted.
    fn charges(
        &self,
        request: &HttpRequest,
        cost: &BTreeMap<String, u64>,
    ) -> Result<Vec<Charge>, FieldRefusal>;

    /// Those of the charged limits that nobody can list in advance, such as one for each route and channel: they are made
    /// like this when there are none of these names.
    fn limits_to_open(&self, request: &HttpRequest, charges: &[Charge]) -> Vec<LimitDefinition> {
        let _ = (request, charges);
        Vec::new()
    }

    /// What follows an unknown outcome of the request, when the caller does not say.
    fn on_unknown(&self, request: &HttpRequest) -> OnUnknown {
        request.on_unknown()
    }

    /// Whether the request changes nothing, so that it may be handed in anew by somebody who does not know what became of it.
    fn is_read_only(&self, request: &HttpRequest) -> bool {
        matches!(request.method, Method::Get | Method::Head | Method::Options)
    }

    /// Makes a request ready to leave for the operation of this id, and says who reads the answer to it. With nobody,
    /// the status decides alone.
    fn prepare_request<'a>(
        &'a self,
        request: &mut HttpRequest,
        operation: &str,
    ) -> Option<Box<dyn ResponseInterpreter + 'a>> {
        let _ = (request, operation);
        None
    }
}

/// What an answer means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meaning {
    /// For the operation.
    pub verdict: Verdict,
    /// For limits.
    pub hints: Vec<Hint>,
    /// For people who look later at what calls cost.
    pub spending: Vec<CallCost>,
}

/// Who reads the answer to one request.
pub trait ResponseInterpreter: Send {
    /// What the answer means. By its status alone it would be `verdict`.
    fn interpret(
        self: Box<Self>,
        answer: &UpstreamResponse,
        asked: &RequestSummary<'_>,
        verdict: Verdict,
    ) -> Meaning;
}
