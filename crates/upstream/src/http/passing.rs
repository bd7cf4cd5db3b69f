//! A client's own request, whose answer it waits for itself. Most answers are handed over whole;
//! one that is long, or that comes bit by bit on purpose, is passed on while it comes, and nothing
//! of it is kept.

use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use tidegate_core::{Fault, FaultClass, Hint, Verdict};
use tokio::time::timeout;

use super::answer::Asked;
use super::dialect::Reader;
use super::handover::Whole;
use super::send::{Gathered, IncomingAnswer, innermost};
use super::stream::BodySender;
use super::{Configured, HttpUpstreams};
use crate::port::{Call, Outcome};
use crate::request::{HttpRequest, Proxied};

/// Types of bodies that come bit by bit: each piece is meant to be read when it comes.
const BIT_BY_BIT: [&str; 5] = [
    "text/event-stream",
    "application/x-ndjson",
    "application/ndjson",
    "application/jsonl",
    "application/stream+json",
];

impl HttpUpstreams {
    /// Sends a client's request and hands its answer over. Whatever it gets is an answer, also
    /// where it is pointed elsewhere.
    pub(super) async fn pass(
        &self,
        upstream: &Configured,
        request: HttpRequest,
        reader: Option<Box<dyn Reader + '_>>,
        proxied: &Proxied,
        call: Call<'_>,
    ) -> Outcome {
        let (ticket, sender) = (proxied.ticket.as_str(), &upstream.sender);
        let body = match proxied.streamed.then(|| self.handover.take_body(ticket)) {
            Some(None) => return Outcome::unanswered(Verdict::Rejected(body_gone())),
            body => body.flatten(),
        };
        self.handover.put(ticket, None);
        let asked = sender.asked(request.method);
        let accept = request.header("accept-encoding").map(str::to_owned);
        let mut incoming = match sender.respond(request, body, call).await {
            Ok(incoming) => incoming,
            Err(missed) => return missed,
        };
        let can_stream = incoming.status().is_success() && incoming.is_readable_to(accept.as_deref());
        let gathered = match can_stream && is_bit_by_bit(incoming.headers()) {
            true => Gathered::More(Bytes::new()),
            false => incoming.gather(sender.response_max_bytes()).await,
        };
        let to_client = match &gathered {
            Gathered::More(_) if can_stream => self.handover.stream(
                ticket,
                incoming.status().as_u16(),
                incoming.headers(),
                incoming.content_length(),
            ),
            _ => None,
        };
        if let (Gathered::More(first), Some(to_client)) = (&gathered, to_client) {
            let broken = relay(&mut incoming, first.clone(), to_client).await.err();
            return streamed(incoming, &asked, reader, broken);
        }
        let received = incoming.answer(gathered, sender.response_max_bytes());
        let as_it_came = received.is_readable_to(accept.as_deref()).then(|| Whole::from(&received));
        let answer = received.decoded(sender.response_max_bytes()).await;
        self.handover.put(ticket, Some(as_it_came.unwrap_or_else(|| Whole::from(&answer))));
        let mut outcome = answer.outcome(&asked, reader);
        if outcome.status.is_some_and(|status| (300..400).contains(&status)) {
            outcome.verdict = Verdict::Done;
        }
        if proxied.streamed { made_once(outcome, call) } else { outcome }
    }
}

/// Why a body was not passed on to its end.
enum Broken {
    /// The client has gone.
    Unread,
    /// The upstream broke it off, for this reason.
    Off(String),
}

async fn relay(incoming: &mut IncomingAnswer, first: Bytes, to_client: BodySender) -> Result<(), Broken> {
    let unread = |_| Broken::Unread;
    to_client.send(first).await.map_err(unread)?;
    let idle = incoming.idle_max();
    loop {
        let piece = tokio::select! {
            piece = timeout(idle, incoming.piece()) => piece,
            () = to_client.unread() => return Err(Broken::Unread),
        };
        match piece {
            Ok(Ok(Some(piece))) => to_client.send(piece).await.map_err(unread)?,
            Ok(Ok(None)) => return to_client.end().await.map_err(unread),
            Ok(Err(error)) => return Err(Broken::Off(innermost(&error))),
            Err(_) => return Err(Broken::Off(format!("nothing came within {} ms", idle.as_millis()))),
        }
    }
}

/// What is settled of an answer that was passed on while it came. It is never made again: the
/// client has had its beginning.
fn streamed(
    incoming: IncomingAnswer,
    asked: &Asked<'_>,
    reader: Option<Box<dyn Reader + '_>>,
    broken: Option<Broken>,
) -> Outcome {
    let status = incoming.status();
    let outcome = incoming.passed_on().outcome(asked, reader);
    let verdict = match broken {
        None | Some(Broken::Unread) => Verdict::Done,
        Some(Broken::Off(reason)) => {
            let message = format!("{asked} was answered {status}, and its body broke off: {reason}.");
            Verdict::Rejected(Fault::new(FaultClass::Transient, message))
        }
    };
    Outcome { verdict, ..outcome }
}

/// A request whose body was passed on while it came cannot be sent again: its client gets whatever
/// it was answered. What the answer says about waiting counts for everybody else.
fn made_once(mut outcome: Outcome, call: Call<'_>) -> Outcome {
    let (after, scope, fault) = match outcome.verdict {
        Verdict::Throttled { after, scope, fault } => (after, scope, fault),
        Verdict::Retry { fault, .. } => (None, None, fault),
        _ => return outcome,
    };
    if let Some(limit) = scope {
        let reset_at = Some(call.now.after(after.unwrap_or(Duration::from_secs(1))));
        outcome.hints.push(Hint { limit, reset_at, ..Hint::default() });
    }
    let message = format!("{} Its body was passed on while it came, so it is not sent again.", fault.message);
    outcome.verdict = Verdict::Rejected(Fault::new(FaultClass::Transient, message));
    outcome
}

fn body_gone() -> Fault {
    let message = "It was not sent: its body was to be passed on while it came, and its client has gone.";
    Fault::new(FaultClass::Transient, message)
}

fn is_bit_by_bit(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    BIT_BY_BIT.iter().any(|known| kind.eq_ignore_ascii_case(known))
}
