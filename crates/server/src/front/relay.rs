//! A call to one partition: into the room here, or to the node that owns it. While nobody does, and while it changes
//! hands, it is held for a moment and tried again, as far as that is safe.

mod story;

use std::sync::Arc;
use std::time::Duration;

use axum::http::{Request, StatusCode};
use axum::response::{IntoResponse, Response};
use tidegate::{Code, Error};
use tidegate_cluster::Route;
use tidegate_core::id::Partition;
use tokio::time::Instant;
use tower::ServiceExt;

use super::courier::Passed;
use super::reach::{self, Head};
use super::{Call, Front};
use crate::edge::auth::Caller;
use crate::edge::request_id::RequestId;
use crate::pacing::answer::{OPERATION, bodiless};
use crate::wire::failure::Failure;
use story::Story;

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

pub(super) async fn by_guild(front: &Front, call: Call) -> Response {
    let partition = Head::of_deployment(&call.body).place(front);
    to(front, partition, &call, Again::No).await
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
    let begun = Instant::now();
    let mut end = begun + PATIENCE;
    let mut story = Story::default();
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
        story.note(&route, &passed);
        match passed {
            Passed::Answered(response) if !has_moved(&response) => return response,
            // It went with a body that nobody has kept.
            _ if call.is_spent() => return story.end(partition, call, Again::No),
            Passed::Lost if again == Again::No => return story.end(partition, call, again),
            // It may have waited there for long, and still has time.
            Passed::Answered(_) | Passed::Lost => end = renewed(call, begun).unwrap_or(end),
            Passed::NotSent | Passed::Refused => {}
        }
        if Instant::now() >= end {
            return story.end(partition, call, again);
        }
        front.cluster.route_after(partition, &route, LOOK).await;
    }
}

/// Until when a call that waits for an upstream is tried elsewhere.
fn renewed(call: &Call, begun: Instant) -> Option<Instant> {
    call.passing.as_ref().map(|passing| (Instant::now() + PATIENCE).min(begun + passing.within))
}

/// Into the room, if it is here.
pub(super) async fn here(front: &Front, partition: Partition, call: &Call) -> Passed {
    let Some(router) = front.rooms.router(partition) else { return Passed::NotSent };
    let mut request = Request::builder().method(call.method.clone()).uri(&call.target);
    if let Some(kind) = &call.content_type {
        request = request.header(axum::http::header::CONTENT_TYPE, kind.clone());
    }
    let Ok(mut request) = request.body(call.take_body()) else { return Passed::NotSent };
    if let Some(passing) = &call.passing {
        request.headers_mut().clone_from(&passing.headers);
    }
    request.extensions_mut().insert(Caller(Arc::clone(&call.caller)));
    request.extensions_mut().insert(RequestId(Arc::clone(&call.request_id)));
    match router.oneshot(request).await {
        // What leaves a room is only known to have no body there.
        Ok(response) if call.passing.is_some() => Passed::Answered(bodiless(&call.method, response)),
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
    // An upstream may answer so too, and then it has an operation.
    (response.status() == StatusCode::MISDIRECTED_REQUEST && !response.headers().contains_key(OPERATION))
        || response.extensions().get::<Code>() == Some(&Code::Stopping)
}
