//! The outcome of an attempt, as a worker reports it.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tidegate::{Fault, Hint, Time, Verdict};
use tidegate_core::operation::MICRO;
use tidegate_upstream::Outcome;

/// A report on one claim, as JSON.
pub(super) struct Report {
    pub(super) json: String,
}

#[derive(Deserialize)]
struct SettledWork {
    settlements: Vec<Value>,
}

impl Report {
    pub(super) fn new(id: &str, fence: u64, outcome: Outcome, now: Time) -> Self {
        let Outcome { verdict, hints, body, job, .. } = outcome;
        let mut json = json!({ "id": id, "fence": fence });
        if !hints.is_empty() {
            json["hints"] = hints.iter().map(|hint| hint_json(hint, now)).collect();
        }
        if let Some(job) = job {
            json["external_id"] = json!(job.external_id.as_deref());
            json["memo"] = json!(String::from_utf8_lossy(&job.memo));
        }
        describe(&mut json, verdict);
        let mut json = json.to_string();
        // The response is kept as the executor wrote it.
        if let Ok(response) = serde_json::from_slice::<&RawValue>(&body) {
            json.pop();
            json.push_str(",\"response\":");
            json.push_str(response.get());
            json.push('}');
        }
        Self { json }
    }

    /// A claim that was lost, or canceled, while it was executed.
    pub(super) fn stopped(id: &str, fence: u64) -> Self {
        let json = json!({ "id": id, "fence": fence, "outcome": "canceled", "may_have_happened": true });
        Self { json: json.to_string() }
    }
}

fn describe(json: &mut Value, verdict: Verdict) {
    let (outcome, fault, after) = match verdict {
        Verdict::Done => ("succeeded", None, None),
        Verdict::Accepted { poll_after, timeout } => {
            json["timeout_ms"] = json!(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX));
            ("awaiting", None, poll_after)
        }
        Verdict::Throttled { after, scope, fault } => {
            json["limit"] = json!(scope.as_deref());
            ("throttled", Some(fault), after)
        }
        Verdict::Retry { after, fault } => ("retry", Some(fault), after),
        Verdict::Rejected(fault) => ("failed", Some(fault), None),
        Verdict::Unknown(fault) | Verdict::Lost(fault) => ("unknown", Some(fault), None),
        Verdict::PollFailed { every, fault } => ("unknown", Some(fault), Some(every)),
        Verdict::Returned => ("returned", None, None),
        Verdict::Canceled { may_have_happened } => {
            json["may_have_happened"] = json!(may_have_happened);
            ("canceled", None, None)
        }
    };
    json["outcome"] = json!(outcome);
    if let Some(fault) = fault {
        let Fault { class, message, may_have_happened } = fault;
        json["fault"] =
            json!({ "class": class.as_str(), "message": message, "may_have_happened": may_have_happened });
    }
    if let Some(after) = after {
        json["after_ms"] = json!(u64::try_from(after.as_millis()).unwrap_or(u64::MAX));
    }
}

fn hint_json(hint: &Hint, now: Time) -> Value {
    let tokens = |micro: Option<u64>| micro.map(|micro| micro as f64 / MICRO as f64);
    json!({
        "limit": &*hint.limit,
        "remaining": tokens(hint.remaining),
        "capacity": tokens(hint.capacity),
        "refill_per_s": tokens(hint.refill_per_s),
        "reset_ms": hint.reset_at.map(|at| u64::try_from(at.since(now).as_millis()).unwrap_or(0)),
        "spent": tokens(hint.spent),
    })
}

/// Logs reports that came too late.
pub(super) fn log_stale(answer: &[u8]) {
    let Ok(settled) = serde_json::from_slice::<SettledWork>(answer) else { return };
    for one in settled.settlements.iter().filter(|one| one["applied"] != true) {
        let id = one["id"].as_str().unwrap_or_default();
        let state = one["state"].as_str().unwrap_or("unknown to the server");
        tracing::warn!(operation_id = id, state, "a report came too late and changed nothing");
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;
    use tidegate::FaultClass;

    use super::*;

    #[test]
    fn an_outcome_is_reported_with_all_it_says() {
        let fault = Fault::new(FaultClass::RateLimited, "slow down");
        let after = Some(Duration::from_millis(1_500));
        let verdict = Verdict::Throttled { after, scope: Some("echo/requests".into()), fault };
        let hint = Hint { limit: "echo/requests".into(), remaining: Some(2_500_000), ..Hint::default() };
        let body = Bytes::from_static(br#"{"status":429,"body":1.10}"#);
        let outcome = Outcome::unanswered(verdict).with_hints(vec![hint]).with_body(body);
        let text = Report::new("op_1", 7, outcome, Time::ZERO).json;
        assert!(text.ends_with(r#""response":{"status":429,"body":1.10}}"#), "{text}");
        let report: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&report["outcome"], &report["after_ms"]), (&json!("throttled"), &json!(1_500)));
        assert_eq!(report["limit"], "echo/requests");
        assert_eq!(report["hints"][0]["remaining"], 2.5);
        assert_eq!(report["response"]["status"], 429);
        assert_eq!(report["fault"], json!({ "class": "rate_limited", "message": "slow down" }));
    }
}
