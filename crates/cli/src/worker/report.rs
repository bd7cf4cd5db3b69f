//! The outcome of an attempt, as a worker reports it.

use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tidegate::{Fault, Hint, Time, Verdict};
use tidegate_core::bounds::{AWAIT_MAX, EXTERNAL_ID_LEN_MAX};
use tidegate_core::operation::MICRO;
use tidegate_core::{Blame, ErrorCode};
use tidegate_upstream::Outcome;

use super::active::HeldClaim;

/// The longest body of reports, in bytes: well under what the server reads.
const REPORTS_LEN_MAX: usize = 16 * 1024 * 1024;
/// The errors after which a report is sent again: its partition was not to be reached.
const UNAVAILABLE: [ErrorCode; 5] = [
    ErrorCode::StoreUnavailable,
    ErrorCode::Stopping,
    ErrorCode::StoreRefused,
    ErrorCode::Internal,
    ErrorCode::NotInTime,
];

/// A report on one claim, as JSON.
pub(super) struct Report {
    pub(super) json: String,
    /// Keeps the claim extended until the report is answered.
    #[expect(dead_code, reason = "it counts until it is dropped")]
    held: Option<HeldClaim>,
}

#[derive(Deserialize)]
struct SettledWork {
    settlements: Vec<Value>,
}

impl Report {
    pub(super) fn new(id: &str, fence: u64, outcome: Outcome, now: Time) -> Self {
        let Outcome { verdict, hints, body, job, blame, .. } = outcome;
        let mut memo = Bytes::new();
        let mut json = json!({ "id": id, "fence": fence });
        if !hints.is_empty() {
            json["hints"] = hints.iter().map(|hint| hint_json(hint, now)).collect();
        }
        if let Some(job) = job {
            let id = job.external_id.as_deref();
            json["external_id"] = json!(id.map(|id| &id[..id.floor_char_boundary(EXTERNAL_ID_LEN_MAX)]));
            if let Some(cost) = job.cost {
                json["cost"] = json!(cost);
            }
            memo = job.memo;
        }
        match blame {
            Blame::ByClass => {}
            Blame::NoOne => json["blame"] = json!([]),
            Blame::Limit(limit) => json["blame"] = json!([&*limit]),
        }
        if serde_json::from_slice::<&RawValue>(&memo).is_err() && !memo.is_empty() {
            json["memo"] = json!(String::from_utf8_lossy(&memo));
        }
        describe(&mut json, verdict);
        let mut json = json.to_string();
        // What the executor wrote as JSON is kept as it is.
        for (field, written) in [("memo", &memo), ("response", &body)] {
            if let Ok(written) = serde_json::from_slice::<&RawValue>(written) {
                json.pop();
                for text in [",\"", field, "\":", written.get(), "}"] {
                    json.push_str(text);
                }
            }
        }
        Self { json, held: None }
    }

    /// A claim that was lost, or canceled, while it was executed.
    pub(super) fn stopped(id: &str, fence: u64) -> Self {
        let json = json!({ "id": id, "fence": fence, "outcome": "canceled", "may_have_happened": true });
        Self { json: json.to_string(), held: None }
    }

    /// A claim that is to be handed out again as it was.
    pub(super) fn returned(id: &str, fence: u64) -> Self {
        let json = json!({ "id": id, "fence": fence, "outcome": "returned" });
        Self { json: json.to_string(), held: None }
    }

    /// Holds the claim until the report is answered, however long that takes.
    pub(super) fn holding(self, held: HeldClaim) -> Self {
        Self { held: Some(held), ..self }
    }
}

fn describe(json: &mut Value, verdict: Verdict) {
    let (outcome, fault, after) = match verdict {
        Verdict::Done => ("succeeded", None, None),
        Verdict::Accepted { poll_after, timeout } => {
            let timeout = timeout.clamp(Duration::from_millis(1), AWAIT_MAX);
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
        Verdict::Unavailable(fault) => ("returned", Some(fault), None),
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
        "capacity": tokens(hint.capacity.filter(|capacity| *capacity > 0)),
        "refill_per_s": tokens(hint.refill_per_s),
        "reset_ms": hint.reset_at.map(|at| u64::try_from(at.since(now).as_millis()).unwrap_or(0)),
        "spent": tokens(hint.spent),
    })
}

/// A memo as its executor wrote it: a string is what it says, and anything else is its own text.
pub(super) fn memo_text(memo: &RawValue) -> String {
    serde_json::from_str(memo.get()).unwrap_or_else(|_| memo.get().to_owned())
}

/// Splits reports into requests that are not too long for the server.
pub(super) fn split(reports: impl Iterator<Item = Report>) -> Vec<Vec<Report>> {
    let mut parts: Vec<Vec<Report>> = Vec::new();
    let mut len = 0;
    for report in reports {
        len += report.json.len();
        match parts.last_mut() {
            Some(part) if len <= REPORTS_LEN_MAX => part.push(report),
            _ => {
                len = report.json.len();
                parts.push(vec![report]);
            }
        }
    }
    parts
}

/// The reports that the server has not answered: their partitions were not to be reached.
pub(super) fn unanswered<T>(answer: &[u8], reports: Vec<T>) -> Vec<T> {
    let settled = serde_json::from_slice::<SettledWork>(answer).map(|settled| settled.settlements);
    let settled = settled.unwrap_or_default();
    let is_answered = |place: usize| match settled.get(place) {
        None | Some(Value::Null) => false,
        Some(one) => one["error"]["code"]
            .as_str()
            .is_none_or(|code| !UNAVAILABLE.iter().any(|known| known.to_string() == code)),
    };
    let places = reports.into_iter().enumerate();
    places.filter(|(place, _)| !is_answered(*place)).map(|(_, report)| report).collect()
}

/// Logs reports that came too late, and those that the server refused.
pub(super) fn log_refused(answer: &[u8]) {
    let Ok(settled) = serde_json::from_slice::<SettledWork>(answer) else { return };
    for one in &settled.settlements {
        if one["applied"] == false {
            let id = one["id"].as_str().unwrap_or_default();
            let state = one["state"].as_str().unwrap_or_default();
            tracing::warn!(operation_id = id, state, "a report came too late and changed nothing");
        } else if let Some(error) = one["error"]["message"].as_str() {
            tracing::warn!(error, "a report was not accepted");
        }
    }
}

#[cfg(test)]
mod tests {
    use tidegate::FaultClass;
    use tidegate_upstream::JobNote;

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
        let fault = json!({ "class": "rate_limited", "message": "slow down", "may_have_happened": false });
        assert_eq!(report["fault"], fault);
    }

    /// What no partition answered is sent again; what was answered or refused is not.
    #[test]
    fn unanswered_reports_are_sent_again() {
        let reports = || ["a", "b", "c", "d", "e"].map(str::to_owned).to_vec();
        let answer = br#"{"settlements":[{"id":"a","applied":true},{"error":{"code":"TG0017"}},null,
            {"error":{"code":"TG0002"}},{"id":"e","applied":false}]}"#;
        assert_eq!(unanswered(answer, reports()), ["b", "c"]);
        assert_eq!(unanswered(b"cut", reports()), reports());
    }

    /// Large results are reported in several requests; one report always goes.
    #[test]
    fn reports_are_split_by_length() {
        let report = |len: usize| Report { json: "x".repeat(len), held: None };
        let half = REPORTS_LEN_MAX / 2;
        let lens = [1, half, half, 1, REPORTS_LEN_MAX + 1, 1];
        let parts: Vec<usize> = split(lens.map(report).into_iter()).iter().map(Vec::len).collect();
        assert_eq!(parts, [2, 2, 1, 1]);
        assert!(split(std::iter::empty()).is_empty());
    }

    /// A claim is extended until its report is answered: it may wait behind others for long.
    #[test]
    fn a_claim_is_held_until_its_report_is_answered() {
        let active = super::super::ActiveClaims::default();
        let report = |id: &str| Report::returned(id, 1).holding(active.hold(id, 1, false).1);
        let reports = split([report("a"), report("b")].into_iter()).pop().unwrap_or_default();
        let left = unanswered(br#"{"settlements":[{"id":"a","applied":true},null]}"#, reports);
        assert_eq!(active.claims(), [("b".to_owned(), 1)]);
        drop(left);
        assert!(active.claims().is_empty());
    }

    /// A memo is reported as the JSON that it is, or as a string.
    #[test]
    fn a_memo_is_reported_as_it_was_written() {
        for (memo, reported) in [(r#"{"spent":1.10}"#, r#"{"spent":1.10}"#), ("/jobs/7", r#""/jobs/7""#)] {
            let job = JobNote { external_id: None, memo: memo.into(), cost: None };
            let verdict = Verdict::Accepted { poll_after: None, timeout: Duration::ZERO };
            let text =
                Report::new("op_1", 7, Outcome::unanswered(verdict).with_job(Some(job)), Time::ZERO).json;
            assert!(text.contains(&format!("\"memo\":{reported}")), "{text}");
            assert!(serde_json::from_str::<Value>(&text).is_ok(), "{text}");
        }
    }

    /// DSP-17: of an attempt that failed it is reported whom that counts against, and what is known
    /// of its job.
    #[test]
    fn dsp_17_a_failure_is_reported_with_whom_it_counts_against() {
        let report = |blame: Blame| -> Value {
            let fault = Fault::new(FaultClass::Transient, "it is full");
            let job = JobNote { external_id: Some("j-1".into()), memo: "{}".into(), cost: Some(3_000) };
            let outcome = Outcome::unanswered(Verdict::Retry { after: None, fault });
            let outcome = outcome.with_blame(blame).with_job(job);
            serde_json::from_str(&Report::new("op_1", 7, outcome, Time::ZERO).json).unwrap()
        };
        assert_eq!(report(Blame::ByClass).get("blame"), None);
        assert_eq!(report(Blame::NoOne)["blame"], json!([]));
        let blamed = report(Blame::Limit("acme/health".into()));
        assert_eq!(blamed["blame"], json!(["acme/health"]));
        assert_eq!((&blamed["external_id"], &blamed["cost"]), (&json!("j-1"), &json!(3_000)));
        assert_eq!((&blamed["outcome"], &blamed["memo"]), (&json!("retry"), &json!({})));
    }

    #[test]
    fn a_memo_of_any_json_is_read() {
        let read = |json: &str| memo_text(&RawValue::from_string(json.to_owned()).unwrap());
        assert_eq!(read(r#""/jobs/7\n{}""#), "/jobs/7\n{}");
        assert_eq!(read(r#"{"spent":1}"#), r#"{"spent":1}"#);
    }
}
