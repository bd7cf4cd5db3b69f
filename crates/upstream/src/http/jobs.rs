//! Jobs of an HTTP service that end elsewhere: the submission says how the service calls back and
//! how it is polled.

use std::time::Duration;

use bytes::Bytes;
use tidegate_core::bounds::MEMO_LEN_MAX;
use tidegate_core::{Fault, FaultClass, OnUnknown, Verdict};

use super::dialect::ResponseInterpreter;
use super::response::Content;
use super::{ConfiguredUpstream, HttpUpstreams};
use crate::port::{AcceptedJob, Call, CallbackMeaning, FieldRefusal, JobNote, Outcome};
use crate::request::completion::{CompletionRules, EndConditions, PollRules};
use crate::request::{Envelope, HttpRequest, Method};

impl HttpUpstreams {
    /// Lets services call back below this base URL of the server.
    #[must_use]
    pub fn with_callback_base(self, base: Option<String>) -> Self {
        let callback_base = base.map(|base| base.trim_end_matches('/').to_owned());
        Self { callback_base, ..self }
    }

    /// Checks that a service can call back where a submission asks for it.
    pub(super) fn check_callback(&self, envelope: &Envelope) -> Result<(), FieldRefusal> {
        let Some(places) = envelope.completion_rules()?.and_then(|rules| rules.callback_places()) else {
            return Ok(());
        };
        let refuse = |message: &str| Err(FieldRefusal::new("completion.callback", message));
        if self.callback_base.is_none() {
            return refuse("No service can call back: the configuration has no server.public_url.");
        }
        let sender = &self.find(&envelope.upstream)?.sender;
        let mut headers = std::iter::once(&places.url).chain(&places.token);
        if headers.any(|name| sender.sets_header(name)) {
            return refuse("Its header is set by the upstream's token_env; name another place.");
        }
        Ok(())
    }

    /// Submits a job.
    pub(super) async fn submit_job(
        &self,
        upstream: &ConfiguredUpstream,
        mut request: HttpRequest,
        rules: &CompletionRules,
        reader: Option<Box<dyn ResponseInterpreter + '_>>,
        call: Call<'_>,
    ) -> Outcome {
        if rules.callback_places().is_some() {
            let placed = match (&self.callback_base, call.completion_token) {
                (Some(base), Some(token)) => {
                    let url = format!("{base}/v1/operations/{}/complete", call.operation);
                    rules.place_callback(&mut request, &url, token)
                }
                _ => Err("no service can call back".to_owned()),
            };
            if let Err(problem) = placed {
                let fault = Fault::new(FaultClass::Validation, format!("It was not sent: {problem}"));
                return Outcome::unanswered(Verdict::Rejected(fault));
            }
        }
        let asked = upstream.sender.summarize(&request, &call);
        let answer = match upstream.sender.exchange(request, call).await {
            Ok(answer) => answer,
            Err(missed) => return missed.into_outcome(asked.retry_rule),
        };
        let content = whole(&answer.content);
        let outcome = answer.outcome(&asked, reader);
        if outcome.verdict == Verdict::Done { accept(rules, text(&content), outcome) } else { outcome }
    }

    /// Asks how a job stands.
    pub(super) async fn poll_job(&self, call: Call<'_>, job: AcceptedJob<'_>) -> Outcome {
        if job.cancel_requested {
            // There is no common way to cancel a job.
            return Outcome::unanswered(Verdict::Canceled { may_have_happened: true });
        }
        let unseen = |message: String| {
            Outcome::unanswered(Verdict::Unknown(Fault::new(FaultClass::Transient, message)))
        };
        let (envelope, upstream) = match self.read(call.payload) {
            Ok(found) => found,
            Err(refusal) => return unseen(format!("The job cannot be polled: {refusal}")),
        };
        let rules = envelope.completion_rules().ok().flatten().and_then(|rules| rules.poll);
        let path = JobMemo::decode(job.memo).path;
        let Some(rules) = rules.filter(|_| !path.is_empty()) else {
            return unseen("The job cannot be polled: its submission does not say how.".to_owned());
        };
        let every = rules.every();
        let mut request = HttpRequest::new(Method::Get, path);
        if let Err(refusal) = upstream.sender.check(&request) {
            return unseen(format!("The job cannot be polled: {refusal}"));
        }
        let reader = upstream.dialect.prepare_request(&mut request, call.operation);
        // A poll only reads.
        let asked = upstream.sender.summarize(&request, &call.with_on_unknown(OnUnknown::Repeat));
        let answer = match upstream.sender.exchange(request, call).await {
            Ok(answer) => answer,
            Err(missed) => {
                let missed = missed.into_outcome(asked.retry_rule);
                return Outcome { verdict: still_awaited(missed.verdict, every), ..missed };
            }
        };
        let content = whole(&answer.content);
        let outcome = answer.outcome(&asked, reader);
        match outcome.verdict {
            Verdict::Done => polled(&rules, text(&content), outcome),
            verdict => Outcome { verdict: still_awaited(verdict, every), ..outcome },
        }
    }
}

/// What is kept of a job: where to poll it, empty where it is not polled, and the response that
/// accepted it, for people.
pub(super) struct JobMemo<'a> {
    path: &'a str,
    pub(super) response: &'a [u8],
}

impl<'a> JobMemo<'a> {
    /// Encodes it as two lines; a path holds no line feed. A response that is too long is left out.
    fn encode(&self) -> Bytes {
        let mut memo = self.path.as_bytes().to_vec();
        if !self.response.is_empty() && memo.len() + 1 + self.response.len() <= MEMO_LEN_MAX {
            memo.push(b'\n');
            memo.extend_from_slice(self.response);
        }
        Bytes::from(memo)
    }

    pub(super) fn decode(memo: &'a [u8]) -> Self {
        let end = memo.iter().position(|byte| *byte == b'\n');
        let (path, response) = end.map_or((memo, &[][..]), |end| (&memo[..end], &memo[end + 1..]));
        Self { path: std::str::from_utf8(path).unwrap_or_default(), response }
    }
}

/// A poll that failed says nothing about the job; one that was throttled closes the limit.
fn still_awaited(verdict: Verdict, every: Duration) -> Verdict {
    match verdict {
        Verdict::Retry { fault, .. } | Verdict::Rejected(fault) | Verdict::Unknown(fault) => {
            Verdict::PollFailed { every, fault }
        }
        verdict => verdict,
    }
}

/// The body of a response, if all of it came.
fn whole(content: &Content) -> Bytes {
    match content {
        Content::Whole(body) => body.clone(),
        Content::TooLarge { .. } | Content::Cut(_) | Content::Relayed => Bytes::new(),
    }
}

fn text(content: &[u8]) -> &str {
    std::str::from_utf8(content).unwrap_or_default()
}

/// The outcome of a submission that the service took: finished at once, or awaited.
fn accept(rules: &CompletionRules, json: &str, outcome: Outcome) -> Outcome {
    let unpolled = |outcome: Outcome| {
        let verdict = Verdict::Accepted { poll_after: None, timeout: rules.timeout() };
        let memo = JobMemo { path: "", response: &outcome.body }.encode();
        Outcome { verdict, job: Some(JobNote { memo, ..JobNote::default() }), ..outcome }
    };
    let Some(poll) = &rules.poll else { return unpolled(outcome) };
    if poll.ends().verdict(json).is_some() {
        return polled(poll, json, outcome);
    }
    let Some((path, id)) = poll.resolve(json) else {
        if rules.callback_places().is_some() {
            return unpolled(outcome);
        }
        let message = format!("It was accepted, but the response has no values for {:?}.", poll.path);
        let verdict = Verdict::Unknown(Fault::new(FaultClass::Transient, message));
        return Outcome { verdict, ..outcome };
    };
    let memo = JobMemo { path: &path, response: &outcome.body }.encode();
    let job = JobNote { external_id: id.map(Into::into), memo, cost: None };
    let verdict = Verdict::Accepted { poll_after: Some(poll.every()), timeout: rules.timeout() };
    Outcome { verdict, job: Some(job), ..outcome }
}

/// The outcome of a response that says how the job stands.
fn polled(poll: &PollRules, json: &str, outcome: Outcome) -> Outcome {
    let verdict = match poll.ends().verdict(json) {
        Some(true) => Verdict::Done,
        Some(false) => Verdict::Rejected(job_fault(poll.ends(), "response")),
        None => Verdict::Accepted { poll_after: Some(poll.every()), timeout: Duration::ZERO },
    };
    Outcome { verdict, ..outcome }
}

fn job_fault(ends: EndConditions<'_>, place: &str) -> Fault {
    let pointers: Vec<_> = ends.failed.keys().map(String::as_str).collect();
    let message = format!("The job failed, by {} of the {place}.", pointers.join(", "));
    Fault::new(FaultClass::Validation, message)
}

/// Reads a callback in the service's own format.
pub(super) fn read_callback(payload: &[u8], content: &[u8]) -> Option<CallbackMeaning> {
    let rules = Envelope::decode(payload).ok()?.completion_rules().ok()??;
    let ends = rules.callback_ends()?;
    Some(match ends.verdict(text(content)) {
        Some(true) => CallbackMeaning::Succeeded,
        Some(false) => CallbackMeaning::Failed(job_fault(ends, "callback")),
        None => CallbackMeaning::NotFinished,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(completion: &str, content: &str) -> Option<CallbackMeaning> {
        let request = r#"{"method":"POST","path":"/jobs","body":{}}"#;
        let payload = format!(r#"{{"upstream":"a","request":{request},"completion":{completion}}}"#);
        read_callback(payload.as_bytes(), content.as_bytes())
    }

    /// A callback in the service's own format is read by the rules of the callback, or else by
    /// those of the poll; without either nothing is known.
    #[test]
    fn a_callback_is_read_by_the_rules_of_the_submission() {
        let poll = r#""poll":{"path":"/j","done":{"/status":["succeeded"]},"failed":{"/status":["failed"]}}"#;
        let both = format!(r#"{{"callback":true,{poll}}}"#);
        let own = r#"{"callback":{"url":"/hook","done":{"/event":["end"]}}}"#;
        let own_first = format!(r#"{{"callback":{{"url":"/hook","done":{{"/event":["end"]}}}},{poll}}}"#);
        let done = r#"{"id":1,"status":"succeeded"}"#;
        assert_eq!(read(&both, done), Some(CallbackMeaning::Succeeded));
        assert!(matches!(read(&both, r#"{"status":"failed"}"#), Some(CallbackMeaning::Failed(_))));
        assert_eq!(read(&both, "status=succeeded"), Some(CallbackMeaning::NotFinished));
        assert_eq!(read(own, r#"{"event":"end"}"#), Some(CallbackMeaning::Succeeded));
        assert_eq!(read(&own_first, done), Some(CallbackMeaning::NotFinished));
        assert_eq!(read(r#"{"callback":true}"#, done), None);
    }
}
