//! Sends a client's own request, whose response the client itself awaits. Most responses are
//! relayed whole; a long one, or one that is incremental by design, is streamed, and nothing of it
//! is kept.

use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use tidegate_core::{Fault, FaultClass, Hint, Verdict};
use tokio::time::timeout;

use super::dialect::ResponseInterpreter;
use super::response::RequestSummary;
use super::response_relay::CompleteResponse;
use super::send::{BufferedBody, IncomingResponse, innermost};
use super::stream::BodySender;
use super::{ConfiguredUpstream, HttpUpstreams};
use crate::port::{Call, Outcome};
use crate::request::{HttpRequest, ProxyInfo};

/// Content types of incremental bodies: each chunk is meant to be read when it arrives.
const STREAMING_TYPES: [&str; 5] = [
    "text/event-stream",
    "application/x-ndjson",
    "application/ndjson",
    "application/jsonl",
    "application/stream+json",
];

impl HttpUpstreams {
    /// Sends a client's request and relays its response. Whatever comes back is a response,
    /// including a redirect.
    pub(super) async fn send_proxied(
        &self,
        upstream: &ConfiguredUpstream,
        request: HttpRequest,
        reader: Option<Box<dyn ResponseInterpreter + '_>>,
        proxied: &ProxyInfo,
        call: Call<'_>,
    ) -> Outcome {
        let (ticket, sender) = (proxied.ticket.as_str(), &upstream.sender);
        let body = match proxied.streamed.then(|| self.response_relay.take_body(ticket)) {
            Some(None) => return Outcome::unanswered(Verdict::Rejected(missing_body_fault())),
            body => body.flatten(),
        };
        self.response_relay.put(ticket, None);
        let asked = sender.summarize(&request, &call);
        let accept = request.header("accept-encoding").map(str::to_owned);
        let mut incoming = match sender.send_for_head(request, body, call).await {
            Ok(incoming) => incoming,
            Err(missed) => return missed.into_outcome(asked.retry_rule),
        };
        let can_stream = incoming.status().is_success() && incoming.is_readable_to(accept.as_deref());
        let gathered = match can_stream && is_streaming_type(incoming.headers()) {
            true => BufferedBody::More(Bytes::new()),
            false => incoming.gather(sender.response_max_bytes()).await,
        };
        let to_client = match &gathered {
            BufferedBody::More(_) if can_stream => self.response_relay.stream(
                ticket,
                incoming.status().as_u16(),
                incoming.headers(),
                incoming.content_length(),
            ),
            _ => None,
        };
        if let (BufferedBody::More(first), Some(to_client)) = (&gathered, to_client) {
            let broken = relay_body(&mut incoming, first.clone(), to_client).await.err();
            return streamed_outcome(incoming, &asked, reader, broken);
        }
        let received = incoming.into_response(gathered, sender.response_max_bytes());
        let as_it_came =
            received.is_readable_to(accept.as_deref()).then(|| CompleteResponse::from(&received));
        let answer = received.decoded(sender.response_max_bytes()).await;
        self.response_relay.put(ticket, Some(as_it_came.unwrap_or_else(|| CompleteResponse::from(&answer))));
        let mut outcome = answer.outcome(&asked, reader);
        if outcome.status.is_some_and(|status| (300..400).contains(&status)) {
            outcome.verdict = Verdict::Done;
        }
        if proxied.streamed { forbid_repeat(outcome, call) } else { outcome }
    }
}

/// Why a body was not relayed to its end.
enum RelayError {
    /// The client is gone.
    ClientGone,
    /// The upstream broke it off, for this reason.
    Interrupted(String),
}

async fn relay_body(
    incoming: &mut IncomingResponse,
    first: Bytes,
    to_client: BodySender,
) -> Result<(), RelayError> {
    let unread = |_| RelayError::ClientGone;
    to_client.send(first).await.map_err(unread)?;
    let idle = incoming.idle_max();
    loop {
        let piece = tokio::select! {
            piece = timeout(idle, incoming.piece()) => piece,
            () = to_client.closed() => return Err(RelayError::ClientGone),
        };
        match piece {
            Ok(Ok(Some(piece))) => to_client.send(piece).await.map_err(unread)?,
            Ok(Ok(None)) => return to_client.end().await.map_err(unread),
            Ok(Err(error)) => return Err(RelayError::Interrupted(innermost(&error))),
            Err(_) => {
                return Err(RelayError::Interrupted(format!("no data came within {} ms", idle.as_millis())));
            }
        }
    }
}

/// The outcome of a streamed response. It is never retried: the client has had its beginning.
fn streamed_outcome(
    incoming: IncomingResponse,
    asked: &RequestSummary<'_>,
    reader: Option<Box<dyn ResponseInterpreter + '_>>,
    broken: Option<RelayError>,
) -> Outcome {
    let status = incoming.status();
    let outcome = incoming.into_relayed_response().outcome(asked, reader);
    let verdict = match broken {
        None | Some(RelayError::ClientGone) => Verdict::Done,
        Some(RelayError::Interrupted(reason)) => {
            let message = format!("{asked} was answered {status}, and its body broke off: {reason}.");
            Verdict::Rejected(Fault::new(FaultClass::Transient, message).in_doubt())
        }
    };
    Outcome { verdict, ..outcome }
}

/// Forbids the retry of a request with a streamed body, which cannot be sent again: its client gets
/// whatever response came. What the response says about waiting still applies to all others.
fn forbid_repeat(mut outcome: Outcome, call: Call<'_>) -> Outcome {
    let (after, scope, fault) = match outcome.verdict {
        Verdict::Throttled { after, scope, fault } => (after, scope, fault),
        Verdict::Retry { fault, .. } => (None, None, fault),
        _ => return outcome,
    };
    if let Some(limit) = scope {
        let reset_at = Some(call.now.after(after.unwrap_or(Duration::from_secs(1))));
        outcome.hints.push(Hint { limit, reset_at, ..Hint::default() });
    }
    let message = format!("{} Its body was streamed, so it is not sent again.", fault.message);
    let may_have_happened = fault.may_have_happened;
    let fault = Fault { may_have_happened, ..Fault::new(FaultClass::Transient, message) };
    outcome.verdict = Verdict::Rejected(fault);
    outcome
}

fn missing_body_fault() -> Fault {
    let message = "It was not sent: its body was to be streamed, and its client is gone.";
    Fault::new(FaultClass::Transient, message)
}

fn is_streaming_type(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    STREAMING_TYPES.iter().any(|known| kind.eq_ignore_ascii_case(known))
}
