//! What is kept of each attempt: which provider and key it used, when, the job at the provider, and
//! why it failed. It is the executor's memory between submit and poll, and the source of the
//! ledger. Never a key, never a token.

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tidegate_core::Time;
use tidegate_core::bounds::{EXTERNAL_ID_LEN_MAX, MEMO_LEN_MAX};
use tidegate_images::{ProviderFault, ProviderJob};
use tidegate_upstream::JobNote;

use crate::payload::to_json;
use crate::provider_set::{PickedProvider, split_alternative};

/// The memo of an attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct AttemptMemo {
    pub provider: String,
    pub key: String,
    /// The provider's name of the model that was submitted; empty when that is not known.
    #[serde(skip_serializing_if = "String::is_empty")]
    model: String,
    /// When it was submitted, in microseconds since the epoch.
    sent_at: u64,
    /// When its submit ended.
    answered_at: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<ProviderJob>,
    /// The cause of a failure, and the provider's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How much of the job is done, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percent: Option<u8>,
    /// What it may cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<u64>,
    /// The addresses of its files, once a signed webhook reported its success.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reported: Vec<String>,
}

impl AttemptMemo {
    pub(crate) fn new(picked: PickedProvider<'_>, sent_at: Time, answered_at: Time) -> Self {
        Self {
            provider: picked.provider.config.name.clone(),
            key: picked.key.name.clone(),
            model: picked.link.model.clone(),
            sent_at: sent_at.as_micros(),
            answered_at: answered_at.as_micros(),
            ..Self::default()
        }
        .with_cost_of(picked)
    }

    /// Sets what it may cost, if the chain still says so.
    pub(crate) fn with_cost_of(mut self, picked: PickedProvider<'_>) -> Self {
        self.cost = Some(picked.link.cost).filter(|cost| *cost > 0).or(self.cost);
        self
    }

    /// The provider's name of the model that was submitted: the chain may have another one now.
    pub(crate) fn model<'a>(&'a self, picked: PickedProvider<'a>) -> &'a str {
        if self.model.is_empty() { &picked.link.model } else { &self.model }
    }

    /// Reads a memo. Of an attempt without a note of its executor it is the name of the
    /// alternative.
    pub(crate) fn decode(memo: &[u8]) -> Self {
        serde_json::from_slice(memo).unwrap_or_else(|_| {
            let text = String::from_utf8_lossy(memo);
            let (provider, key) = split_alternative(&text).unwrap_or((&text, ""));
            Self { provider: provider.to_owned(), key: key.to_owned(), ..Self::default() }
        })
    }

    /// When it was submitted, if that is known.
    pub(crate) fn sent_at(&self) -> Option<Time> {
        (self.sent_at > 0).then(|| Time::from_micros(self.sent_at))
    }

    /// When its submit ended, if that is known.
    pub(crate) fn answered_at(&self) -> Option<Time> {
        (self.answered_at > 0).then(|| Time::from_micros(self.answered_at))
    }

    pub(crate) fn with_job(mut self, job: Option<ProviderJob>) -> Self {
        // An id that was cut would name another job.
        self.job = job.filter(|job| job.id.len() <= EXTERNAL_ID_LEN_MAX);
        self
    }

    pub(crate) const fn with_percent(mut self, percent: Option<u8>) -> Self {
        self.percent = percent;
        self
    }

    /// Keeps the files that a signed webhook reported.
    pub(crate) fn with_reported(mut self, files: Vec<String>) -> Self {
        self.reported = files;
        self
    }

    /// Says why its result is lost.
    pub(crate) fn with_reason(mut self, reason: &str) -> Self {
        self.reason = Some(reason.to_owned());
        self
    }

    pub(crate) fn with_fault(mut self, fault: &ProviderFault) -> Self {
        self.cause = Some(fault.cause.as_str().to_owned());
        self.reason = Some(fault.message.clone());
        self
    }

    /// Says that a job may exist. What the submit itself left is kept.
    pub(crate) fn with_doubt(self, fault: &ProviderFault) -> Self {
        if self.cause.is_some() { self } else { self.with_fault(fault) }
    }

    /// What the engine keeps of the attempt.
    pub(crate) fn to_note(&self) -> JobNote {
        let external_id = self.job.as_ref().map(|job| Arc::from(job.id.as_str()));
        let mut memo = to_json(self);
        if memo.len() > MEMO_LEN_MAX {
            // Its addresses can be built from its id, and a poll reads its files.
            let job = self.job.as_ref().map(|job| ProviderJob::new(&job.id, &job.model));
            memo = to_json(&Self { job, reported: Vec::new(), ..self.clone() });
        }
        JobNote { external_id, memo: Bytes::from(memo), cost: self.cost }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memo_reads_back_and_a_bare_name_is_one_too() {
        let job = ProviderJob::new("p-1", "acme/flux");
        let memo = AttemptMemo { provider: "acme".into(), key: "main".into(), ..AttemptMemo::default() };
        let memo = memo.with_job(Some(job));
        let note = memo.to_note();
        assert_eq!((AttemptMemo::decode(&note.memo), note.external_id.as_deref()), (memo, Some("p-1")));
        let bare = AttemptMemo::decode(b"acme/main");
        assert_eq!((bare.provider.as_str(), bare.key.as_str(), bare.sent_at()), ("acme", "main", None));
    }

    #[test]
    fn a_memo_fits_whatever_a_provider_returns() {
        let mut job = ProviderJob::new("p-1", "acme/flux");
        job.status_url = Some("https://acme.example/".repeat(MEMO_LEN_MAX));
        let files = vec!["https://acme.example/1.png".repeat(MEMO_LEN_MAX)];
        let note = AttemptMemo::default().with_job(Some(job)).with_reported(files).to_note();
        assert!(note.memo.len() <= MEMO_LEN_MAX);
        assert_eq!(AttemptMemo::decode(&note.memo).job, Some(ProviderJob::new("p-1", "acme/flux")));
        let long = ProviderJob::new("x".repeat(EXTERNAL_ID_LEN_MAX + 1), "m");
        assert_eq!(AttemptMemo::default().with_job(Some(long)).job, None);
    }
}
