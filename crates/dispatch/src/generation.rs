//! A generation as its user sees it: its status, computed from its operation and its attempts, and
//! its files.

use serde_json::Value;
use tidegate::{OperationId, OperationView, State, Time};
use tidegate_store::attempt::{AttemptState, StoredAttempt};

use crate::executor::AttemptMemo;
use crate::generations::may_be_billed;
use crate::payload::GenerationPayload;
use crate::results::{GeneratedFiles, ResultFile};

/// The status of a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GenerationStatus {
    /// It is being accepted: what is not durable yet is shown to no one, so no generation that can
    /// be read has this status.
    Pending,
    /// It waits for a provider.
    Queued,
    /// It is submitted to a provider, or processed there, or its files are being copied.
    Processing,
    /// Its files are stored.
    Completed,
    /// It failed.
    Failed,
    /// It was canceled.
    Canceled,
}

impl GenerationStatus {
    /// All of them, in order.
    pub const ALL: [Self; 6] =
        [Self::Pending, Self::Queued, Self::Processing, Self::Completed, Self::Failed, Self::Canceled];

    /// The stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Queued => "queued",
            Self::Processing => "processing",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Canceled => "canceled",
        }
    }

    /// Parses a stable name.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }

    /// Whether nothing follows it.
    #[must_use]
    pub const fn is_ended(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Canceled)
    }

    /// The states of operations with this status.
    pub(crate) const fn states(self) -> &'static [State] {
        match self {
            Self::Pending => &[],
            Self::Queued => &[State::Queued, State::Waiting],
            Self::Processing => &[State::Running, State::Unknown],
            Self::Completed => &[State::Succeeded],
            Self::Failed => &[State::Failed],
            Self::Canceled => &[State::Canceled],
        }
    }
}

impl From<State> for GenerationStatus {
    fn from(state: State) -> Self {
        let is_of = |status: &Self| status.states().contains(&state);
        Self::ALL.into_iter().find(is_of).unwrap_or(Self::Processing)
    }
}

/// A generation.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Generation {
    /// Its id.
    pub id: OperationId,
    /// The user it is for.
    pub user: String,
    /// Its model.
    pub model: String,
    /// Its input; null in pages, and when only the archive has it.
    pub input: Value,
    /// Its status.
    pub status: GenerationStatus,
    /// When it was accepted.
    pub created_at: Time,
    /// When it was first submitted to a provider, once that is known.
    pub processing_since: Option<Time>,
    /// When it ended.
    pub finished_at: Option<Time>,
    /// The provider that has it, made it, or had it, or may have had it, when it ended without a
    /// result.
    pub provider: Option<String>,
    /// Its files, once it is completed. Omitted in pages.
    pub files: Vec<ResultFile>,
    /// Why it failed, or what went wrong last.
    pub error: Option<String>,
    /// Its position among those that wait; 1 is next. Omitted in pages.
    pub queue_position: Option<usize>,
    /// How much of it is done, in percent, if its provider says so.
    pub progress: Option<u8>,
    /// Whether a cancel was requested that has not ended it yet.
    pub cancel_requested: bool,
    /// Where its end is reported. Omitted in pages.
    pub notify_url: Option<String>,
}

impl Generation {
    /// The generation of an operation, without what only its payload and its attempts say.
    pub(crate) fn outline(view: &OperationView) -> Self {
        let status = GenerationStatus::from(view.state);
        let text = |label: &Option<std::sync::Arc<str>>| label.as_deref().unwrap_or_default().to_owned();
        let is_wrong = status != GenerationStatus::Completed;
        Self {
            id: view.id,
            user: text(&view.user),
            model: text(&view.upstream),
            input: Value::Null,
            status,
            created_at: view.created_at,
            processing_since: None,
            finished_at: view.finished_at,
            provider: None,
            files: Vec::new(),
            error: view.fault.as_ref().filter(|_| is_wrong).map(|fault| fault.message.clone()),
            queue_position: None,
            progress: None,
            cancel_requested: view.cancel_requested,
            notify_url: None,
        }
    }

    pub(crate) fn with_payload(mut self, payload: Option<&[u8]>) -> Self {
        if let Some(Ok(payload)) = payload.map(GenerationPayload::decode) {
            (self.user, self.model, self.input) = (payload.user, payload.model, payload.input);
            self.notify_url = payload.notify_url;
        }
        self
    }

    pub(crate) fn with_result(mut self, body: Option<&[u8]>) -> Self {
        if let Some(body) = body.filter(|_| self.status == GenerationStatus::Completed) {
            let result = GeneratedFiles::decode(body);
            self.provider = Some(result.provider).filter(|name| !name.is_empty());
            self.files = result.files;
        }
        self
    }

    pub(crate) fn with_attempts(mut self, attempts: &[StoredAttempt]) -> Self {
        let memos = attempts.iter().map(|attempt| (attempt, AttemptMemo::decode(&attempt.memo)));
        for (attempt, memo) in memos {
            let sent_at = memo.sent_at().unwrap_or(attempt.at);
            let earliest = self.processing_since.map_or(sent_at, |since| since.min(sent_at));
            self.processing_since = Some(earliest);
            if attempt.state == AttemptState::Awaiting {
                self.progress = memo.percent;
            }
            // Of what ended without a result, the one that had a job, or else may have had one.
            let may_have_had_it = self.provider.is_none() && may_be_billed(attempt, &memo);
            let had_it = self.status.is_ended() && (attempt.external_id.is_some() || may_have_had_it);
            if had_it || matches!(attempt.state, AttemptState::Awaiting | AttemptState::Succeeded) {
                self.provider = Some(memo.provider);
            }
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// DSP-2: every state of an operation has its status, and every status its name.
    #[test]
    fn dsp_2_every_state_has_a_status() {
        let table = [
            (State::Queued, "queued"),
            (State::Waiting, "queued"),
            (State::Running, "processing"),
            (State::Unknown, "processing"),
            (State::Succeeded, "completed"),
            (State::Failed, "failed"),
            (State::Canceled, "canceled"),
        ];
        for (state, name) in table {
            let status = GenerationStatus::from(state);
            assert_eq!((status.as_str(), GenerationStatus::parse(name)), (name, Some(status)));
            assert_eq!(status.is_ended(), state.is_ended());
        }
        assert_eq!(GenerationStatus::parse("unknown"), None);
    }
}
