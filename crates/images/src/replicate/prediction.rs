//! What a prediction says: its state, why it failed, and whether a submit made it.

use serde_json::Value;

use crate::fault::{FaultCause, ProviderFault};
use crate::request::JobRequest;
use crate::status::{JobProgress, JobStatus, collect_urls, is_url};

/// Words by which the text of a failed prediction shows a content filter. Replicate has no code
/// for it.
const CONTENT_WORDS: [&str; 4] = ["nsfw", "safety", "sensitive", "content policy"];
/// Words by which it shows a fault of Replicate itself.
const FAULT_WORDS: [&str; 6] =
    ["please retry", "interrupted", "director", "out of memory", "failed to start", "internal error"];

/// The state of a prediction.
pub(super) fn status(prediction: &Value) -> Option<JobStatus> {
    let error = || prediction.get("error").and_then(Value::as_str).unwrap_or("the prediction failed");
    Some(match prediction.get("status")?.as_str()? {
        "starting" => JobStatus::Running(JobProgress::QUEUED),
        "processing" => JobStatus::Running(JobProgress::RUNNING),
        "succeeded" => match prediction.get("output") {
            None | Some(Value::Null) => {
                let message = "the prediction succeeded without an output, or it was deleted";
                JobStatus::Failed(ProviderFault::new(FaultCause::Unexplained, message))
            }
            Some(output) => JobStatus::Succeeded(collect_urls(output, |_, _| true)),
        },
        "failed" => JobStatus::Failed(ProviderFault::new(failed_cause(error()), error())),
        "canceled" => JobStatus::Canceled,
        // Not started by its deadline; public models are not charged.
        "aborted" => JobStatus::Failed(ProviderFault::new(FaultCause::Deadline, "it did not start in time")),
        _ => return None,
    })
}

/// A failed prediction has a text and no code, and most failures come from the input.
fn failed_cause(error: &str) -> FaultCause {
    let error = error.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| error.contains(word));
    if has(&CONTENT_WORDS) {
        FaultCause::Content
    } else if has(&FAULT_WORDS) {
        FaultCause::Provider
    } else {
        FaultCause::Unexplained
    }
}

/// Whether a prediction has this model and every field of this input. Replicate may have added
/// defaults to the input.
pub(super) fn is_made_by(prediction: &Value, job: &JobRequest<'_>) -> bool {
    let text = |name: &str| prediction.get(name).and_then(Value::as_str).unwrap_or_default();
    let model = job.model.strip_prefix("deployments/");
    let (name, version) = job.model.split_once(':').unwrap_or((job.model, ""));
    let is_model = model.is_some()
        || text("version") == job.model
        || (text("model") == name && (version.is_empty() || text("version") == version));
    let given = prediction.get("input").and_then(Value::as_object);
    let is_input = given.zip(job.input.as_object()).is_some_and(|(given, sent)| {
        sent.iter().all(|(name, value)| given.get(name).is_some_and(|given| given == value))
    });
    is_model && is_input
}

/// Whether a prediction is certainly of another submit: it has another model, or another value of
/// a field that Replicate keeps as it was sent. Inputs are deleted after an hour, files in them are
/// replaced by addresses, and numbers may be written in another way.
pub(super) fn is_of_another(prediction: &Value, job: &JobRequest<'_>) -> bool {
    let text = |name: &str| prediction.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let name = job.model.split_once(':').map_or(job.model, |(name, _)| name);
    let is_other_model = match (job.model.starts_with("deployments/"), job.model.contains('/')) {
        (true, _) => false,
        (false, true) => text("model").is_some_and(|model| model != name),
        (false, false) => text("version").is_some_and(|version| !["hidden", job.model].contains(&version)),
    };
    let is_kept = |value: &Value| value.is_boolean() || value.as_str().is_some_and(|text| !is_url(text));
    let given = prediction.get("input").and_then(Value::as_object);
    let is_other_input = given.zip(job.input.as_object()).is_some_and(|(given, sent)| {
        let mut kept = sent.iter().filter(|(_, value)| is_kept(value));
        kept.any(|(name, value)| given.get(name).is_some_and(|given| is_kept(given) && given != value))
    });
    is_other_model || is_other_input
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// DSP-18: only what a prediction still says proves that another submit made it.
    #[test]
    fn dsp_18_what_is_certainly_of_another_submit() {
        let sent = json!({ "prompt": "a cat", "seed": 7, "image": "data:image/png;base64,AA==" });
        let with = |input: Value| json!({ "model": "acme/flux", "version": "hidden", "input": input });
        let table = [
            (with(json!({ "prompt": "a dog", "seed": 7 })), true),
            (json!({ "model": "acme/soul", "input": {} }), true),
            (with(sent.clone()), false),
            (with(json!({})), false),
            (json!({}), false),
            (with(json!({ "prompt": "a cat", "seed": 7.0, "image": "https://acme.example/1" })), false),
        ];
        for (prediction, is_another) in table {
            let job = JobRequest { model: "acme/flux", input: &sent, webhook: None, attempt: "" };
            assert_eq!(is_of_another(&prediction, &job), is_another, "{prediction}");
        }
    }
}
