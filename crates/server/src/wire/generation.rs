//! Generations as JSON: a generation, pages of them, why one waits, and the ledger of attempts.

use serde::Serialize;
use serde_json::Value;
use tidegate_core::OperationId;
use tidegate_dispatch::{
    Generation, GenerationReason, GenerationStatus, LedgerEntry, ProviderReason, ResultFile,
};

use super::time::Timestamp;

/// A generation.
#[derive(Serialize)]
pub(crate) struct GenerationOut<'a> {
    id: String,
    status: &'static str,
    model_id: &'a str,
    user_id: &'a str,
    created_at: Timestamp,
    finished_at: Option<Timestamp>,
    error: Option<&'a str>,
    cancel_requested: bool,
    #[serde(flatten)]
    details: Option<DetailsOut<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deduplicated: Option<bool>,
}

/// What pages do not know of a generation.
#[derive(Serialize)]
struct DetailsOut<'a> {
    input: &'a Value,
    processing_since: Option<Timestamp>,
    #[serde(flatten)]
    progress: ProgressOut<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    notify_url: Option<&'a str>,
}

/// How far a generation is.
#[derive(Serialize)]
struct ProgressOut<'a> {
    provider: Option<&'a str>,
    queue_position: Option<usize>,
    progress: Option<u8>,
    results: Vec<ResultOut<'a>>,
}

/// A file of a result.
#[derive(Serialize)]
struct ResultOut<'a> {
    url: String,
    content_type: &'a str,
    bytes: u64,
}

/// Where a file of a result is served.
pub(crate) fn result_path(id: OperationId, index: usize) -> String {
    format!("/api/generations/{id}/result/{index}")
}

impl<'a> ProgressOut<'a> {
    fn new(one: &'a Generation) -> Self {
        let result = |(index, file): (usize, &'a ResultFile)| ResultOut {
            url: result_path(one.id, index),
            content_type: &file.content_type,
            bytes: file.bytes,
        };
        Self {
            provider: one.provider.as_deref(),
            queue_position: one.queue_position,
            progress: one.progress,
            results: one.files.iter().enumerate().map(result).collect(),
        }
    }
}

impl<'a> GenerationOut<'a> {
    /// A generation of a page.
    pub(crate) fn line(one: &'a Generation) -> Self {
        Self {
            id: one.id.to_string(),
            status: one.status.as_str(),
            model_id: &one.model,
            user_id: &one.user,
            created_at: Timestamp(one.created_at),
            finished_at: one.finished_at.map(Timestamp),
            error: one.error.as_deref(),
            cancel_requested: one.cancel_requested,
            details: None,
            deduplicated: None,
        }
    }

    /// All of a generation.
    pub(crate) fn whole(one: &'a Generation) -> Self {
        let details = DetailsOut {
            input: &one.input,
            processing_since: one.processing_since.map(Timestamp),
            progress: ProgressOut::new(one),
            notify_url: one.notify_url.as_deref(),
        };
        Self { details: Some(details), ..Self::line(one) }
    }

    /// The same with the whole URLs of its results, for readers who do not know this server.
    pub(crate) fn with_base(mut self, base: &str) -> Self {
        for result in self.details.iter_mut().flat_map(|details| &mut details.progress.results) {
            result.url.insert_str(0, base.trim_end_matches('/'));
        }
        self
    }

    /// The same as the response to its creation.
    pub(crate) const fn created(mut self, deduplicated: bool) -> Self {
        self.deduplicated = Some(deduplicated);
        self
    }
}

#[derive(Serialize)]
pub(crate) struct GenerationPageOut<'a> {
    pub generations: Vec<GenerationOut<'a>>,
    pub next_cursor: Option<String>,
}

/// A change of a generation, with what is known of it if that is still its status.
#[derive(Serialize)]
pub(crate) struct GenerationEventOut<'a> {
    pub id: String,
    pub status: &'static str,
    pub at: Timestamp,
    #[serde(flatten)]
    pub details: Option<EventDetailsOut<'a>>,
}

/// What an event says of a generation in addition to its status.
#[derive(Serialize)]
pub(crate) struct EventDetailsOut<'a> {
    #[serde(flatten)]
    progress: ProgressOut<'a>,
    error: Option<&'a str>,
}

impl<'a> EventDetailsOut<'a> {
    pub(crate) fn new(one: &'a Generation) -> Self {
        Self { progress: ProgressOut::new(one), error: one.error.as_deref() }
    }
}

#[derive(Serialize)]
pub(crate) struct GenerationReasonOut<'a> {
    status: &'static str,
    because: &'a str,
    until: Option<Timestamp>,
    queue_position: Option<usize>,
    providers: Vec<ProviderReasonOut<'a>>,
}

#[derive(Serialize)]
struct ProviderReasonOut<'a> {
    provider: &'a str,
    key: &'a str,
    state: &'static str,
    because: &'a str,
    until: Option<Timestamp>,
}

impl<'a> GenerationReasonOut<'a> {
    pub(crate) fn new(reason: &'a GenerationReason) -> Self {
        let provider = |one: &'a ProviderReason| ProviderReasonOut {
            provider: &one.provider,
            key: &one.key,
            state: one.state.as_str(),
            because: &one.because,
            until: one.until.map(Timestamp),
        };
        Self {
            status: reason.status.as_str(),
            because: &reason.because,
            until: reason.until.map(Timestamp),
            queue_position: reason.queue_position,
            providers: reason.providers.iter().map(provider).collect(),
        }
    }
}

/// An attempt at a provider.
#[derive(Serialize)]
pub(crate) struct LedgerEntryOut<'a> {
    generation: String,
    user_id: Option<&'a str>,
    model_id: Option<&'a str>,
    attempt: u16,
    provider: &'a str,
    key: &'a str,
    external_id: Option<&'a str>,
    submitted_at: Timestamp,
    ended_at: Option<Timestamp>,
    outcome: &'static str,
    reason: Option<&'a str>,
    cost: Option<u64>,
    may_be_billed_twice: bool,
}

impl<'a> LedgerEntryOut<'a> {
    pub(crate) fn new(entry: &'a LedgerEntry) -> Self {
        Self {
            generation: entry.generation.to_string(),
            user_id: entry.user.as_deref(),
            model_id: entry.model.as_deref(),
            attempt: entry.attempt,
            provider: &entry.provider,
            key: &entry.key,
            external_id: entry.external_id.as_deref(),
            submitted_at: Timestamp(entry.submitted_at),
            ended_at: entry.ended_at.map(Timestamp),
            outcome: entry.outcome.as_str(),
            reason: entry.reason.as_deref(),
            cost: entry.cost,
            may_be_billed_twice: entry.may_be_billed_twice,
        }
    }
}

#[derive(Serialize)]
pub(crate) struct LedgerOut<'a> {
    pub entries: Vec<LedgerEntryOut<'a>>,
    pub next_cursor: Option<String>,
}

/// Parses a status in a query.
pub(crate) fn parse_status(text: &str) -> crate::error::Result<GenerationStatus> {
    GenerationStatus::parse(text).ok_or_else(|| {
        let known: Vec<_> = GenerationStatus::ALL.into_iter().map(GenerationStatus::as_str).collect();
        crate::edge::query::bad_parameter("status", &format!("must be one of {}", known.join(", ")))
    })
}
