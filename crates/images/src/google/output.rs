//! What Google's three methods return: pictures in the response, or the state of an operation. A
//! refusal of the content is a success without a picture.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::Value;

use crate::fault::{FaultCause, ProviderFault};
use crate::status::{JobProgress, JobStatus, OutputFile};

fn items<'a>(body: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    body.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

fn text<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer)?.as_str()
}

fn inline(data: Option<&str>, media_type: Option<&str>) -> Option<OutputFile> {
    let data = Bytes::from(STANDARD.decode(data?).ok()?);
    Some(OutputFile::Inline { media_type: media_type.unwrap_or("image/png").to_owned(), data })
}

fn content(message: impl Into<String>) -> JobStatus {
    JobStatus::Failed(ProviderFault::new(FaultCause::Content, message))
}

fn unexplained(message: &str) -> JobStatus {
    JobStatus::Failed(ProviderFault::new(FaultCause::Unexplained, message))
}

/// Reads the response to `generateContent`; `None` when it is none.
pub(super) fn generated_content(body: &Value) -> Option<JobStatus> {
    let parts = items(body, "/candidates").flat_map(|candidate| items(candidate, "/content/parts"));
    let files: Vec<OutputFile> = parts
        .filter_map(|part| inline(text(part, "/inlineData/data"), text(part, "/inlineData/mimeType")))
        .collect();
    if !files.is_empty() {
        return Some(JobStatus::Succeeded(files));
    }
    if let Some(reason) = text(body, "/promptFeedback/blockReason") {
        return Some(content(format!("the prompt was blocked: {reason}")));
    }
    let candidate = items(body, "/candidates").next()?;
    Some(match text(candidate, "/finishReason") {
        // The model answered with words instead of a picture.
        None | Some("STOP" | "MAX_TOKENS" | "OTHER" | "NO_IMAGE") => {
            unexplained("the response has no picture")
        }
        Some(reason) => content(format!("the picture was blocked: {reason}")),
    })
}

/// Reads the response to `predict`; `None` when it is none. Where everything was filtered, Google
/// may leave out the predictions.
pub(super) fn predicted(body: &Value) -> Option<JobStatus> {
    let fields = body.as_object()?;
    let predictions: Vec<&Value> = items(body, "/predictions").collect();
    let files: Vec<OutputFile> = predictions
        .iter()
        .filter_map(|one| inline(text(one, "/bytesBase64Encoded"), text(one, "/mimeType")))
        .collect();
    if !files.is_empty() {
        return Some(JobStatus::Succeeded(files));
    }
    match predictions.iter().find_map(|one| text(one, "/raiFilteredReason")) {
        Some(reason) => Some(content(reason)),
        None if fields.is_empty() || fields.contains_key("predictions") => {
            Some(content("every picture was filtered"))
        }
        None => None,
    }
}

/// Reads the state of an operation; `None` when it is none.
pub(super) fn operation(body: &Value) -> Option<JobStatus> {
    body.get("name")?.as_str()?;
    if body.get("done").and_then(Value::as_bool) != Some(true) {
        let percent = body.pointer("/metadata/progressPercent").and_then(Value::as_u64);
        let percent =
            percent.and_then(|percent| u8::try_from(percent).ok()).filter(|percent| *percent <= 100);
        return Some(JobStatus::Running(JobProgress { percent, ..JobProgress::RUNNING }));
    }
    if let Some(error) = body.get("error") {
        return Some(operation_error(error));
    }
    let response = body.pointer("/response/generateVideoResponse")?;
    let files: Vec<OutputFile> = items(response, "/generatedSamples")
        .filter_map(|sample| Some(OutputFile::Url(text(sample, "/video/uri")?.to_owned())))
        .collect();
    if !files.is_empty() {
        return Some(JobStatus::Succeeded(files));
    }
    let reasons: Vec<&str> = items(response, "/raiMediaFilteredReasons").filter_map(Value::as_str).collect();
    let is_filtered = response.get("raiMediaFilteredCount").and_then(Value::as_u64).is_some_and(|n| n > 0);
    Some(match (is_filtered, reasons.is_empty()) {
        (true, true) => content("every video was filtered"),
        (_, false) => content(reasons.join("; ")),
        (false, true) => unexplained("the operation has no video"),
    })
}

/// The error of an operation, by its code of `google.rpc.Code`.
fn operation_error(error: &Value) -> JobStatus {
    let message = text(error, "/message").unwrap_or("the operation failed");
    let cause = match error.get("code").and_then(Value::as_u64) {
        Some(1) => return JobStatus::Canceled,
        // INVALID_ARGUMENT, OUT_OF_RANGE
        Some(3 | 11) => FaultCause::Input,
        // DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED, ABORTED, INTERNAL, UNAVAILABLE
        Some(4 | 8 | 10 | 13 | 14) => FaultCause::Provider,
        _ => FaultCause::Unexplained,
    };
    JobStatus::Failed(ProviderFault::new(cause, message))
}
