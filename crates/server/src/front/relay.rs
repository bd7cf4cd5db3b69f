//! A call to one partition: into the room here, or to the node that owns it. While nobody does, and while it changes
//! hands, it is held for a moment and tried again, as far as that is safe.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use axum::response::{IntoResponse, Response};
use tidegate::{Code, Error};
use tidegate_cluster::Route;
use tidegate_core::id::Partition;
use tidegate_idempotency::Outcome;
use tokio::time::Instant;
use tower::ServiceExt;

use super::courier::Passed;
use super::reach::{self, Head};
use super::{Call, Front};
use crate::edge::auth::Caller;
use crate::edge::request_id::RequestId;
use crate::wire::failure::Failure;

/// How long a call is held while its partition changes hands. A take-over after a crash is shorter.
const PATIENCE: Duration = Duration::from_secs(12);
/// Largest answer of a partition that is put together with others.
pub(super) const ANSWER_LEN_MAX: usize = 32 * 1024 * 1024;
/// How long one look at who owns it is waited for.
const LOOK: Duration = Duration::from_millis(250);

/// How long the answer of a node that has gone may be on its way.
const LAST_WORD: Duration = Duration::from_secs(1);

/// Whether a call may be made again when it is not known whether it arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Again {
    Yes,
    No,
}

pub(super) async fn by_id(front: &Front, call: Call) -> Response {
    match reach::id_in(&call.target) {
        Some(id) if id.partition() < front.cluster.partitions() => {
            let again = if call.method == axum::http::Method::GET { Again::Yes } else { Again::No };
            to(front, id.partition(), &call, again).await
        }
        // Where it is told that there is no such operation.
        _ => to(front, 0, &call, Again::Yes).await,
    }
}

pub(super) async fn by_place(front: &Front, call: Call) -> Response {
    let head = Head::read(&call.body);
    let again = if head.may_be_repeated() { Again::Yes } else { Again::No };
    let partition = head.place(front);
    to(front, partition, &call, again).await
}

pub(super) async fn by_limit(front: &Front, call: Call) -> Response {
    let upstream = reach::upstream_in(&call.target);
    if front.spread.contains(&upstream) {
        let message =
            format!("The upstream {upstream} is spread by group; its limits are not kept in one place.");
        return Failure(Error::new(Code::NotNow, message)).into_response();
    }
    let partition = reach::upstream_place(&upstream, front.cluster.partitions());
    to(front, partition, &call, Again::Yes).await
}

/// Makes a call to the partition, wherever it is.
pub(super) async fn to(front: &Front, partition: Partition, call: &Call, again: Again) -> Response {
    let end = Instant::now() + PATIENCE;
    loop {
        let route = front.cluster.route(partition);
        let passed = match &route {
            Route::Here => here(front, partition, call).await,
            Route::At(node) => tokio::select! {
                passed = front.courier.send(node, partition, call) => passed,
                () = gone(front, node) => Passed::Lost,
            },
            Route::Nobody => Passed::NotSent,
        };
        match passed {
            Passed::Answered(response) if !has_moved(&response) => return response,
            Passed::Lost if again == Again::No => return lost(partition, call),
            Passed::Answered(_) | Passed::NotSent | Passed::Lost => {}
        }
        if Instant::now() >= end {
            return nobody(partition, &route);
        }
        front.cluster.route_after(partition, &route, LOOK).await;
    }
}

/// Into the room, if it is here.
pub(super) async fn here(front: &Front, partition: Partition, call: &Call) -> Passed {
    let Some(router) = front.rooms.router(partition) else { return Passed::NotSent };
    let mut request = Request::builder().method(call.method.clone()).uri(&call.target);
    if let Some(kind) = &call.content_type {
        request = request.header(axum::http::header::CONTENT_TYPE, kind.clone());
    }
    let Ok(mut request) = request.body(Body::from(call.body.clone())) else { return Passed::NotSent };
    request.extensions_mut().insert(Caller(Arc::clone(&call.caller)));
    request.extensions_mut().insert(RequestId(Arc::clone(&call.request_id)));
    match router.oneshot(request).await {
        Ok(response) => Passed::Answered(response),
        Err(never) => match never {},
    }
}

/// Resolves when a node is gone and has not answered for a moment after that. One that has only handed the partition
/// over is still there, and answers.
async fn gone(front: &Front, node: &tidegate_store::nodes::Node) {
    let mut cluster = front.cluster.clone();
    while cluster.view().nodes.iter().any(|there| there.name == node.name) {
        cluster.changed().await;
    }
    tokio::time::sleep(LAST_WORD).await;
}

/// Whether nothing was done because the partition is not there any more.
pub(super) fn has_moved(response: &Response) -> bool {
    response.status() == StatusCode::MISDIRECTED_REQUEST
        || response.extensions().get::<Code>() == Some(&Code::Stopping)
}

fn lost(partition: Partition, call: &Call) -> Response {
    let hands_in = matches!(call.target.as_str(), "/v1/operations" | "/v1/operations/batch");
    let advice = if hands_in {
        "whether this was accepted. Repeated without a dedupe_key it may be accepted twice"
    } else {
        "whether this was done. Look before it is repeated"
    };
    let message =
        format!("The node that owns partition {partition} did not answer; it is not known {advice}.");
    let mut response = Failure(Error::new(Code::StoreUnavailable, message)).into_response();
    // An idempotency key is freed or held, as was chosen for outcomes that nobody knows.
    response.extensions_mut().insert(Outcome::Unknown);
    response
}

fn nobody(partition: Partition, route: &Route) -> Response {
    let why = match route {
        Route::At(node) => {
            format!("its owner {} does not take calls from this node at {}", node.name, node.address)
        }
        Route::Here | Route::Nobody => "its owner is gone or changes".to_owned(),
    };
    let message = format!("Partition {partition} cannot be reached now: {why}; try again in a moment.");
    Failure(Error::new(Code::StoreUnavailable, message)).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// IDM-18: what was lost on its way has an unknown outcome, and what never left has none.
    #[test]
    fn idm_18_a_call_that_was_lost_has_an_unknown_outcome() {
        let call = Call {
            method: axum::http::Method::POST,
            target: "/v1/operations".into(),
            content_type: None,
            body: "{}".into(),
            caller: "c".into(),
            request_id: "r".into(),
        };
        let outcome = |response: Response| response.extensions().get::<Outcome>().copied();
        assert_eq!(outcome(lost(3, &call)), Some(Outcome::Unknown));
        assert_eq!(outcome(nobody(3, &Route::Nobody)), None);
    }
}
