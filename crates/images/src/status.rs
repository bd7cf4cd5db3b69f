//! What a provider says about a job: accepted, running, succeeded with files, or failed.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::fault::{CallKind, ProviderFault};
use crate::response::{ProviderReply, ProviderResponse};

/// The most files of one job.
const FILES_MAX: usize = 64;
/// The deepest place of a file in an output.
const DEPTH_MAX: usize = 8;

/// A job at a provider: what to keep between its submit and its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderJob {
    /// The provider's id.
    pub id: String,
    /// The provider's name of the model.
    pub model: String,
    /// Where its status is, if the response named it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_url: Option<String>,
    /// Where its result is, if the response named it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_url: Option<String>,
    /// Where it is canceled, if the response named it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel_url: Option<String>,
}

impl ProviderJob {
    /// Creates a job that is known by its id alone.
    #[must_use]
    pub fn new(id: impl Into<String>, model: impl Into<String>) -> Self {
        Self { id: id.into(), model: model.into(), status_url: None, result_url: None, cancel_url: None }
    }
}

/// How far a job is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobProgress {
    /// Whether it runs; otherwise it waits in the provider's queue.
    pub is_running: bool,
    /// How many jobs wait before it, if the provider says so.
    pub queue_position: Option<u64>,
    /// How much of it is done, from 0 to 100, if the provider says so.
    pub percent: Option<u8>,
}

impl JobProgress {
    /// A job in the provider's queue.
    pub const QUEUED: Self = Self { is_running: false, queue_position: None, percent: None };
    /// A job that runs.
    pub const RUNNING: Self = Self { is_running: true, queue_position: None, percent: None };
}

/// A file that a job made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputFile {
    /// At a URL, from which the provider deletes it in time.
    Url(String),
    /// In the response itself.
    Inline {
        /// Its media type.
        media_type: String,
        /// Its content.
        data: Bytes,
    },
}

/// The state of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JobStatus {
    /// It is not finished.
    Running(JobProgress),
    /// It is finished, and its result is read by another poll ([`PollStep::Result`]).
    ResultReady,
    /// It succeeded with these files.
    Succeeded(Vec<OutputFile>),
    /// It failed.
    Failed(ProviderFault),
    /// It was canceled.
    Canceled,
    /// The provider does not know it, or not any more.
    Missing,
}

/// Which of a job's two addresses a poll reads. Only fal has two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PollStep {
    /// Its status.
    Status,
    /// Its result, after [`JobStatus::ResultReady`].
    Result,
}

/// What a submit led to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SubmitOutcome {
    /// The provider accepted the job and finishes it later.
    Accepted {
        /// The job.
        job: ProviderJob,
        /// How far it is.
        progress: JobProgress,
    },
    /// The job succeeded at once.
    Finished {
        /// The job, if it has an id.
        job: Option<ProviderJob>,
        /// Its files.
        files: Vec<OutputFile>,
    },
    /// It failed: the cause says whether a job may exist.
    Failed(ProviderFault),
}

impl JobStatus {
    /// Reads the response to a poll of a provider that answers 404 for a job that it does not know.
    /// `fault` reads any other response that is no success, `status` the body of one that is.
    pub(crate) fn read<'a>(
        reply: &ProviderReply<'a>,
        fault: impl FnOnce(CallKind, &ProviderResponse<'a>) -> ProviderFault,
        status: impl FnOnce(&Value) -> Option<Self>,
    ) -> Result<Self, ProviderFault> {
        let response = CallKind::Read.response(reply)?;
        match response.status {
            200..300 => status(&response.json()).ok_or_else(|| ProviderFault::unreadable(&response)),
            404 => Ok(Self::Missing),
            _ => Err(fault(CallKind::Read, &response)),
        }
    }
}

impl SubmitOutcome {
    /// Reads the response to a submit. `fault` reads one that is no success, `outcome` the body of
    /// one that is; a body without an outcome is unreadable.
    pub(crate) fn read<'a>(
        reply: &ProviderReply<'a>,
        fault: impl FnOnce(CallKind, &ProviderResponse<'a>) -> ProviderFault,
        outcome: impl FnOnce(&Value) -> Option<Self>,
    ) -> Self {
        match CallKind::Submit.response(reply) {
            Err(fault) => Self::Failed(fault),
            Ok(response) if !response.is_success() => Self::Failed(fault(CallKind::Submit, &response)),
            Ok(response) => outcome(&response.json())
                .unwrap_or_else(|| Self::Failed(ProviderFault::unreadable(&response))),
        }
    }

    /// Joins a job with the state that the response to its submit gave.
    pub(crate) fn of(job: ProviderJob, status: JobStatus) -> Self {
        match status {
            JobStatus::Running(progress) => Self::Accepted { job, progress },
            JobStatus::Succeeded(files) => Self::Finished { job: Some(job), files },
            JobStatus::Failed(fault) => Self::Failed(fault),
            // The next poll finds out.
            JobStatus::ResultReady | JobStatus::Canceled | JobStatus::Missing => {
                Self::Accepted { job, progress: JobProgress::QUEUED }
            }
        }
    }
}

/// What a look-up of a lost submit found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LookUpOutcome {
    /// Jobs with this model and input on this page, the newest first, and the URL of the next page.
    /// More than one is ambiguous.
    Page {
        /// The jobs, with their states.
        jobs: Vec<(ProviderJob, JobStatus)>,
        /// Whether the other jobs of the page are certainly of other submits, and the next page,
        /// if there is one, can be read.
        is_conclusive: bool,
        /// The next page.
        next: Option<String>,
    },
    /// The look-up failed and found out nothing.
    Failed(ProviderFault),
}

/// The URLs in an output of any shape: every text for which `is_file` holds, by the key it has.
pub(crate) fn collect_urls(output: &Value, is_file: fn(Option<&str>, &str) -> bool) -> Vec<OutputFile> {
    fn walk(
        value: &Value,
        key: Option<&str>,
        depth: usize,
        is_file: fn(Option<&str>, &str) -> bool,
        files: &mut Vec<OutputFile>,
    ) {
        if depth > DEPTH_MAX || files.len() >= FILES_MAX {
            return;
        }
        match value {
            Value::String(text) if is_url(text) && is_file(key, text) => {
                files.push(OutputFile::Url(text.clone()));
            }
            Value::Array(items) => {
                items.iter().for_each(|item| walk(item, key, depth + 1, is_file, files));
            }
            Value::Object(fields) => {
                fields.iter().for_each(|(key, item)| walk(item, Some(key), depth + 1, is_file, files));
            }
            _ => {}
        }
    }
    let mut files = Vec::new();
    walk(output, None, 0, is_file, &mut files);
    files
}

/// Whether a text is a URL of a file: over HTTP, or with the data in it.
pub(crate) fn is_url(text: &str) -> bool {
    ["https://", "http://", "data:"].iter().any(|scheme| text.starts_with(scheme))
}
