//! A dialect extends plain HTTP for one upstream: the limits it defines, the charges of a request,
//! a small change before it is sent, and the meaning of a response beyond its status. It neither
//! sends nor retries anything.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidegate_core::fact::LimitShape;
use tidegate_core::{Charge, Hint, OnUnknown, ServerErrors, Verdict};

use super::response::{RequestSummary, UpstreamResponse};
use crate::port::{CallCost, FieldRefusal};
use crate::request::{HttpRequest, Method};

/// The full name of a limit, and its initial shape.
pub type LimitDefinition = (Arc<str>, LimitShape);

/// The dialect of one upstream.
pub trait Dialect: Send + Sync {
    /// The limits of the upstream, by their full names: its gate first, which has the upstream's
    /// own name.
    fn limits(&self) -> Vec<LimitDefinition>;

    /// The charges to grant before the request is sent. `cost` is given by the caller, by the short
    /// names of limits.
    ///
    /// # Errors
    /// Names the invalid field.
    fn charges(
        &self,
        request: &HttpRequest,
        cost: &BTreeMap<String, u64>,
    ) -> Result<Vec<Charge>, FieldRefusal>;

    /// Those of the charged limits that cannot be listed in advance, such as one for each route and
    /// channel: they are created with these shapes where no limit of that name exists.
    fn limits_to_open(&self, request: &HttpRequest, charges: &[Charge]) -> Vec<LimitDefinition> {
        let _ = (request, charges);
        Vec::new()
    }

    /// The default for what follows an unknown outcome of the request.
    fn on_unknown(&self, request: &HttpRequest) -> OnUnknown {
        request.on_unknown()
    }

    /// The default for what a server error means for a request that must not take effect twice.
    fn server_errors(&self) -> ServerErrors {
        ServerErrors::default()
    }

    /// Whether the request changes nothing, so that it may be submitted again by a caller who does
    /// not know its outcome.
    fn is_read_only(&self, request: &HttpRequest) -> bool {
        matches!(request.method, Method::Get | Method::Head | Method::Options)
    }

    /// Prepares a request to be sent for the operation with this id, and returns the interpreter of
    /// its response. Without one, the status alone decides.
    fn prepare_request<'a>(
        &'a self,
        request: &mut HttpRequest,
        operation: &str,
    ) -> Option<Box<dyn ResponseInterpreter + 'a>> {
        let _ = (request, operation);
        None
    }
}

/// The meaning of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meaning {
    /// The verdict on the operation.
    pub verdict: Verdict,
    /// What it says about limits.
    pub hints: Vec<Hint>,
    /// The costs of the call, for people who look later.
    pub spending: Vec<CallCost>,
}

/// Interprets the response to one request.
pub trait ResponseInterpreter: Send {
    /// Interprets the response. By its status alone it would be `verdict`.
    fn interpret(
        self: Box<Self>,
        answer: &UpstreamResponse,
        asked: &RequestSummary<'_>,
        verdict: Verdict,
    ) -> Meaning;
}
