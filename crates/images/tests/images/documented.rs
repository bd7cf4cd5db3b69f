//! Responses as the providers document them, written by hand, and short names for what adapters
//! read in them. None was recorded from a live API.

use std::path::Path;

use http::{HeaderMap, HeaderName};
use serde::Deserialize;
use serde_json::Value;
use tidegate_images::fault::FaultCause;
use tidegate_images::{
    Fal, Generic, Google, Heat, Higgsfield, JobProgress, JobStatus, OutputFile, Provider, ProviderFault,
    ProviderReply, ProviderResponse, Replicate, SubmitOutcome, Time, fal, google, higgsfield, replicate,
};

/// When all responses came: noon in London, four in the morning in California.
pub(crate) const RECEIVED_AT: &str = "2026-01-15T12:00:00Z";

/// One response, and what it means.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Example {
    pub name: String,
    pub call: String,
    pub status: u16,
    #[serde(default)]
    pub headers: std::collections::BTreeMap<String, String>,
    pub body: Value,
    pub model: Option<String>,
    pub expect: String,
}

pub(crate) fn fixture<T: serde::de::DeserializeOwned>(path: &str) -> T {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(path);
    let text = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The built-in adapters at their documented addresses, with a model of each.
pub(crate) fn providers() -> Vec<(Box<dyn Provider>, &'static str)> {
    vec![
        (Box::new(Replicate::new(replicate::BASE_URL)), "black-forest-labs/flux-schnell"),
        (Box::new(Google::new(google::BASE_URL, google::JWKS_URL)), "veo-3.1-generate-preview"),
        (Box::new(Fal::new(fal::BASE_URL, fal::JWKS_URL)), "fal-ai/flux/dev"),
        (Box::new(Higgsfield::new(higgsfield::BASE_URL)), "higgsfield-ai/soul/standard"),
        (Box::new(generic()), "flux"),
    ]
}

pub(crate) fn generic() -> Generic {
    Generic::new(fixture("generic/provider.json")).unwrap()
}

pub(crate) fn time(text: &str) -> Time {
    Time::parse_rfc_3339(text).unwrap()
}

pub(crate) fn headers<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> HeaderMap {
    let pairs = pairs.into_iter();
    pairs.map(|(name, value)| (name.parse::<HeaderName>().unwrap(), value.parse().unwrap())).collect()
}

/// A body: a text as it is, anything else as JSON.
pub(crate) fn bytes(body: &Value) -> Vec<u8> {
    body.as_str().map_or_else(|| body.to_string(), str::to_owned).into_bytes()
}

pub(crate) fn reply<'a>(status: u16, headers: &'a HeaderMap, body: &'a [u8]) -> ProviderReply<'a> {
    let received_at = time(RECEIVED_AT);
    ProviderReply::Response(ProviderResponse { status, headers, body, is_complete: true, received_at })
}

fn progress(progress: JobProgress) -> String {
    let mut text = if progress.is_running { "running".to_owned() } else { "queued".to_owned() };
    for detail in [
        progress.queue_position.map(|position| position.to_string()),
        progress.percent.map(|percent| format!("{percent}%")),
    ] {
        text.extend(detail.map(|detail| format!(" {detail}")));
    }
    text
}

fn files(files: &[OutputFile]) -> String {
    let file = |file: &OutputFile| match file {
        OutputFile::Url(url) => format!(" {url}"),
        OutputFile::Inline { media_type, data } => format!(" {media_type} {} bytes", data.len()),
    };
    files.iter().map(file).collect()
}

pub(crate) fn fault(fault: &ProviderFault) -> String {
    assert!(!fault.message.is_empty());
    let wait = match fault.cause {
        FaultCause::Throttled { after: None, .. } => " ?".to_owned(),
        FaultCause::Throttled { after: Some(after), .. } => format!(" {}s", after.as_secs_f64()),
        _ => String::new(),
    };
    let heat = match fault.cause.heat() {
        Heat::Nobody => "nobody",
        Heat::Key => "key",
        Heat::Account => "account",
        Heat::Provider => "provider",
    };
    format!("failed {}{wait} {heat}", fault.cause.as_str())
}

pub(crate) fn submitted(outcome: &SubmitOutcome) -> String {
    match outcome {
        SubmitOutcome::Accepted { job, progress: at } => format!("accepted {} {}", job.id, progress(*at)),
        SubmitOutcome::Finished { files: made, .. } => format!("finished{}", files(made)),
        SubmitOutcome::Failed(why) => fault(why),
        other => panic!("{other:?}"),
    }
}

pub(crate) fn polled(status: &Result<JobStatus, ProviderFault>) -> String {
    match status {
        Ok(JobStatus::Running(at)) if at.is_running => progress(*at),
        Ok(JobStatus::Running(at)) => format!("running {}", progress(*at)),
        Ok(JobStatus::ResultReady) => "result ready".into(),
        Ok(JobStatus::Succeeded(made)) => format!("succeeded{}", files(made)),
        Ok(JobStatus::Failed(why)) => fault(why),
        Ok(JobStatus::Canceled) => "canceled".into(),
        Ok(JobStatus::Missing) => "missing".into(),
        Ok(other) => panic!("{other:?}"),
        Err(why) => format!("poll {}", fault(why)),
    }
}
