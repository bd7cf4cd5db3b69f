//! The error of a request that could not be forwarded: what its attempts found, and whether it may
//! have arrived. It says that the outcome is unknown only if the request may have been sent.

use axum::http::Method;
use axum::response::{IntoResponse, Response};
use tidegate_cluster::PartitionRoute;
use tidegate_core::id::Partition;
use tidegate_idempotency::OutcomeClass;

use super::ForwardRetry;
use crate::error::{Error, ErrorCode};
use crate::routing::RoutedCall;
use crate::routing::peer_client::ForwardOutcome;
use crate::wire::error::ApiError;

/// The attempts of a request so far.
#[derive(Debug, Default)]
pub(super) struct ForwardTrace {
    /// What the last attempt found.
    found: Option<String>,
    may_have_arrived: bool,
}

impl ForwardTrace {
    /// Records an attempt.
    pub(super) fn record(&mut self, route: &PartitionRoute, passed: &ForwardOutcome) {
        self.may_have_arrived |= matches!(passed, ForwardOutcome::Lost);
        self.found = match (route, passed) {
            (PartitionRoute::OtherNode(node), ForwardOutcome::NotSent | ForwardOutcome::Lost) => {
                Some(format!("its owner {} does not answer this node at {}", node.name, node.record.address))
            }
            (PartitionRoute::OtherNode(node), ForwardOutcome::Refused) => Some(format!(
                "its owner {} at {} does not take calls from this node, because their secrets differ",
                node.name, node.record.address
            )),
            _ => None,
        };
    }

    /// The response when there are no more attempts.
    pub(super) fn failure_response(
        self,
        partition: Partition,
        call: &RoutedCall,
        again: ForwardRetry,
    ) -> Response {
        let message = self.message(partition, call, again);
        let mut response = ApiError(Error::new(ErrorCode::StoreUnavailable, message)).into_response();
        // An idempotency key is released or held, as configured for unknown outcomes.
        let outcome = if self.may_have_arrived { OutcomeClass::Unknown } else { OutcomeClass::NotStarted };
        response.extensions_mut().insert(outcome);
        response
    }

    fn message(&self, partition: Partition, call: &RoutedCall, again: ForwardRetry) -> String {
        let found = self.found.as_deref().unwrap_or("its owner is gone or changes");
        let done = if is_submission(call) { "accepted" } else { "done" };
        let rest = match (self.may_have_arrived, again) {
            _ if call.method == Method::GET => "Try again in a moment.".to_owned(),
            (false, _) => format!("Nothing was {done}; it can be repeated safely, in a moment."),
            (true, ForwardRetry::Allowed) => {
                format!("It is not known whether this was {done}; repeated as it is, it is {done} once.")
            }
            (true, ForwardRetry::Forbidden) if is_submission(call) => {
                "It is not known whether this was accepted. Repeated without a \
                 dedupe_key it may be accepted twice."
                    .to_owned()
            }
            (true, ForwardRetry::Forbidden) if call.proxy.is_some() => format!(
                "It is not known whether this was done. Check before you repeat it: if it was accepted, its operation has the request id {}.",
                call.request_id
            ),
            (true, ForwardRetry::Forbidden) => {
                "It is not known whether this was done. Check before you repeat it.".to_owned()
            }
        };
        format!("Partition {partition} cannot be reached now: {found}. {rest}")
    }
}

fn is_submission(call: &RoutedCall) -> bool {
    matches!(call.target.as_str(), "/v1/operations" | "/v1/operations/batch")
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderMap;
    use tidegate_core::Time;
    use tidegate_store::nodes::{Node, NodeRecord};

    use super::*;
    use crate::api::route::Idempotence;
    use crate::routing::proxy_call::ProxyContext;

    fn message(tries: &[ForwardOutcome], method: Method, target: &str, again: ForwardRetry) -> String {
        let (trace, call) = after(tries, method, target);
        trace.message(3, &call, again)
    }

    fn after(tries: &[ForwardOutcome], method: Method, target: &str) -> (ForwardTrace, RoutedCall) {
        let node = Node { name: "ben".into(), record: NodeRecord::at("10.0.0.2:7400"), until: Time::ZERO };
        let mut trace = ForwardTrace::default();
        for passed in tries {
            trace.record(&PartitionRoute::OtherNode(node.clone()), passed);
        }
        let call = RoutedCall {
            method,
            target: target.into(),
            content_type: None,
            body: axum::body::Bytes::new(),
            idempotence: Idempotence::Never,
            caller: "ann".into(),
            request_id: "".into(),
            key: None,
            proxy: None,
            streamed: None,
        };
        (trace, call)
    }

    /// IDM-18: a request that may have arrived has an unknown outcome; one that was not sent was
    /// not started.
    #[test]
    fn idm_18_a_call_that_was_lost_has_an_unknown_outcome() {
        for (tries, outcome) in [
            (&[ForwardOutcome::Lost, ForwardOutcome::NotSent][..], OutcomeClass::Unknown),
            (&[ForwardOutcome::NotSent, ForwardOutcome::Refused], OutcomeClass::NotStarted),
        ] {
            let (trace, call) = after(tries, Method::POST, "/v1/operations");
            let response = trace.failure_response(3, &call, ForwardRetry::Forbidden);
            assert_eq!(response.extensions().get::<OutcomeClass>(), Some(&outcome));
        }
    }

    /// OPS-7: the error of a submission says whether it was not sent or its outcome is unknown.
    #[test]
    fn ops_7_nobody_knows_only_where_it_may_have_been_sent() {
        let post = |tries: &[ForwardOutcome], again| message(tries, Method::POST, "/v1/operations", again);
        let silent =
            "Partition 3 cannot be reached now: its owner ben does not answer this node at 10.0.0.2:7400. ";
        let nothing = "Nothing was accepted; it can be repeated safely, in a moment.";
        for again in [ForwardRetry::Allowed, ForwardRetry::Forbidden] {
            assert_eq!(post(&[ForwardOutcome::NotSent], again), format!("{silent}{nothing}"));
            let refused = post(&[ForwardOutcome::Refused], again);
            assert!(refused.contains("their secrets differ") && refused.ends_with(nothing), "{refused}");
        }
        let lost = post(&[ForwardOutcome::NotSent, ForwardOutcome::Lost], ForwardRetry::Forbidden);
        assert!(lost.starts_with(silent) && lost.contains("not known whether this was accepted"), "{lost}");
        assert!(lost.ends_with("without a dedupe_key it may be accepted twice."), "{lost}");
        // It was lost once, and a later attempt does not change that.
        let keyed = post(&[ForwardOutcome::Lost, ForwardOutcome::NotSent], ForwardRetry::Allowed);
        assert!(
            keyed.ends_with("not known whether this was accepted; repeated as it is, it is accepted once.")
        );
    }

    /// OPS-24: the error of a proxied call that may have been made names the request id of its
    /// operation.
    #[test]
    fn ops_24_a_lost_call_of_a_client_has_an_id_to_look_at() {
        let (trace, call) = after(&[ForwardOutcome::Lost], Method::POST, "/proxy/acme/x");
        let passing = ProxyContext { headers: HeaderMap::new(), within: std::time::Duration::ZERO };
        let call =
            RoutedCall { proxy: Some(std::sync::Arc::new(passing)), request_id: "req_7".into(), ..call };
        let message = trace.message(3, &call, ForwardRetry::Forbidden);
        assert!(
            message.ends_with("if it was accepted, its operation has the request id req_7."),
            "{message}"
        );
    }

    #[test]
    fn other_calls_are_told_what_they_need() {
        let id = "/v1/operations/op_1/cancel";
        let order = |tries: &[ForwardOutcome]| message(tries, Method::POST, id, ForwardRetry::Forbidden);
        assert!(order(&[ForwardOutcome::Lost]).ends_with("Check before you repeat it."));
        assert!(order(&[ForwardOutcome::NotSent]).contains("Nothing was done;"));
        let read = message(&[ForwardOutcome::Lost], Method::GET, "/v1/operations", ForwardRetry::Allowed);
        assert!(read.ends_with(":7400. Try again in a moment."), "{read}");
        let mut trace = ForwardTrace::default();
        trace.record(&PartitionRoute::Unowned, &ForwardOutcome::NotSent);
        assert_eq!(trace.found, None);
    }
}
