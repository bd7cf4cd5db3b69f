//! Key administration for operators: list keys, show them without bodies, release and expire them,
//! and record a response that an operator found out. Every change is logged with the name of who
//! made it.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, StatusCode};
use tidegate_core::Time;
use tidegate_core::shared::record::{ForgetOutcome, ForgetTarget, OnLapse, Record, RecordStage};
use tidegate_store::{Error, Result, StoreErrorKind};

use crate::counters::HitCounts;
use crate::key::IdempotencyKey;
use crate::key_store::KeyStore;
use crate::name::RecordName;
use crate::saved_response::{BufferedResponse, SavedResponse, first_not_replayed, replayable_headers};
use crate::scope::CallerScope;

/// The records that one request scans, however few of them match.
const LOOKED_AT_MAX: usize = 100_000;
/// The records that are read at once.
const READ_AT_ONCE: usize = 1_000;

/// Administers the keys of a key store.
#[derive(Clone)]
pub struct KeyAdmin(KeyStore);

/// The state of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyState {
    /// A request is in flight, or was when its lease was last renewed.
    Processing {
        /// When the lease expires or expired.
        until: Time,
        /// What happens to the key then.
        on_lapse: OnLapse,
    },
    /// The key has a response of this many bytes, as stored.
    Completed(usize),
}

/// A key in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySummary {
    /// The name of the record.
    pub name: RecordName,
    /// The state of the key.
    pub state: KeyState,
    /// When it was first claimed.
    pub created: Time,
    /// When it expires.
    pub expires: Time,
}

/// The details of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyDetail {
    /// The summary that a list shows.
    pub summary: KeySummary,
    /// The fingerprint of its request.
    pub fingerprint: [u8; 32],
    /// The status of its response and, if it was saved whole, the length of the body.
    pub answer: Option<(u16, Option<usize>)>,
    /// Why its response cannot be served.
    pub damaged: Option<String>,
}

/// A page of keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyPage {
    /// The keys.
    pub keys: Vec<KeySummary>,
    /// The cursor of the next page.
    pub next: Option<String>,
}

/// A filter for keys.
#[derive(Clone, Debug, Default)]
pub struct KeyFilter {
    /// Only keys of this caller.
    pub scope: Option<CallerScope>,
    /// Only this key.
    pub key: Option<IdempotencyKey>,
}

/// The response that an operator records for a request whose outcome was unknown.
#[derive(Clone, Debug)]
pub struct RecordedAnswer {
    /// The status that retries get.
    pub status: StatusCode,
    /// The headers; those of one connection or one caller are left out.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

impl RecordedAnswer {
    /// The first of its headers that no replay would have: a cookie, what may be a credential, what
    /// belongs to one connection or one moment.
    #[must_use]
    pub fn header_not_replayed(&self) -> Option<&HeaderName> {
        first_not_replayed(&self.headers)
    }
}

/// The outcome of recording a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordingOutcome {
    /// Retries get the response.
    Recorded,
    /// There is no such key.
    Absent,
    /// A request is in flight.
    InWork,
    /// The key already has a response.
    HasAnswer,
}

impl KeyStore {
    /// Returns the administration of these keys.
    #[must_use]
    pub fn keys(&self) -> KeyAdmin {
        KeyAdmin(self.clone())
    }
}

impl KeyAdmin {
    /// How many requests with a key got a saved response since this process started, and how many
    /// ran.
    #[must_use]
    pub fn hit_counts(&self) -> HitCounts {
        self.0.hits().read()
    }

    /// Lists a page of at most `most` matching keys.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn list(&self, which: &KeyFilter, mut after: Option<String>, most: usize) -> Result<KeyPage> {
        let mut page = KeyPage::default();
        for _ in 0..LOOKED_AT_MAX / READ_AT_ONCE {
            let wanted = READ_AT_ONCE.min(most - page.keys.len());
            let found = self.0.store().list_records(after, wanted).await?;
            let keys = found.records.into_iter().filter_map(|(name, record)| summarize(&name, &record));
            page.keys.extend(keys.filter(|listed| matches_filter(which, &listed.name)));
            after = found.next;
            if after.is_none() || page.keys.len() >= most {
                break;
            }
        }
        page.next = after;
        Ok(page)
    }

    /// Shows one key, without its bodies.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn show(&self, name: &RecordName) -> Result<Option<KeyDetail>> {
        let kept_as = name.to_string();
        let Some(record) = self.0.store().get_record(&kept_as).await? else { return Ok(None) };
        let Some(listed) = summarize(&kept_as, &record.without_answer()) else { return Ok(None) };
        let mut shown =
            KeyDetail { summary: listed, fingerprint: record.fingerprint, answer: None, damaged: None };
        if let RecordStage::Completed(bytes) = record.stage {
            match self.0.read_kept(&kept_as, &record.fingerprint, bytes) {
                Ok(SavedResponse::Buffered(whole)) => {
                    shown.answer = Some((whole.status.as_u16(), Some(whole.body.len())));
                }
                Ok(SavedResponse::TooLarge(status)) => shown.answer = Some((status.as_u16(), None)),
                Err(damaged) => shown.damaged = Some(damaged.to_string()),
            }
        }
        Ok(Some(shown))
    }

    /// Frees a key whose request is in flight or has an unknown outcome. A handler that still runs
    /// loses it.
    ///
    /// # Errors
    /// When the store cannot be changed.
    pub async fn release(&self, name: &RecordName, who: &str) -> Result<ForgetOutcome> {
        self.forget(name, ForgetTarget::Claim, who).await
    }

    /// Expires a stored response now.
    ///
    /// # Errors
    /// When the store cannot be changed.
    pub async fn expire(&self, name: &RecordName, who: &str) -> Result<ForgetOutcome> {
        self.forget(name, ForgetTarget::Answer, who).await
    }

    /// Records the outcome of a request whose outcome is unknown, or whose process died: retries
    /// get this response until the key expires. `now` decides whether its lease has expired.
    ///
    /// # Errors
    /// When the store cannot be read or changed.
    pub async fn complete(
        &self,
        name: &RecordName,
        answer: RecordedAnswer,
        now: Time,
        who: &str,
    ) -> Result<RecordingOutcome> {
        let kept_as = name.to_string();
        let recording = match self.0.store().get_record(&kept_as).await? {
            None => RecordingOutcome::Absent,
            Some(Record { stage: RecordStage::Completed(_), .. }) => RecordingOutcome::HasAnswer,
            Some(Record { stage: RecordStage::Processing { until }, .. }) if until > now => {
                RecordingOutcome::InWork
            }
            Some(record) => {
                let RecordedAnswer { status, headers, body } = answer;
                let headers = replayable_headers(&headers);
                let kept =
                    SavedResponse::Buffered(BufferedResponse { status, headers, body, trailers: None });
                let bytes = self.0.write_kept(&kept_as, &record.fingerprint, &kept).ok_or_else(|| {
                    Error::new(
                        StoreErrorKind::Unavailable,
                        "this system provides no random numbers for sealing",
                    )
                })?;
                // By the token that was read: whoever has taken the key over meanwhile keeps it.
                match self.0.store().complete_record(&kept_as, record.token, bytes).await? {
                    true => RecordingOutcome::Recorded,
                    false => RecordingOutcome::InWork,
                }
            }
        };
        self.0.waiters().notify(&kept_as);
        audit(
            name,
            who,
            "complete",
            match recording {
                RecordingOutcome::Recorded => CHANGED,
                RecordingOutcome::Absent => ABSENT,
                RecordingOutcome::InWork | RecordingOutcome::HasAnswer => OTHERWISE,
            },
        );
        Ok(recording)
    }

    async fn forget(&self, name: &RecordName, what: ForgetTarget, who: &str) -> Result<ForgetOutcome> {
        let forgot = self.0.store().forget_record(&name.to_string(), what).await?;
        let did = match what {
            ForgetTarget::Claim => "release",
            ForgetTarget::Answer => "expire",
        };
        audit(
            name,
            who,
            did,
            match forgot {
                ForgetOutcome::Gone => CHANGED,
                ForgetOutcome::Absent => ABSENT,
                ForgetOutcome::Mismatch => OTHERWISE,
            },
        );
        Ok(forgot)
    }
}

const CHANGED: &str = "an idempotency key was changed by hand";
const ABSENT: &str = "an idempotency key was to be changed by hand; it does not exist";
const OTHERWISE: &str =
    "an idempotency key was to be changed by hand; its state does not allow it, and it was left unchanged";

fn audit(name: &RecordName, who: &str, did: &str, what: &str) {
    let RecordName { scope, method, path, key } = name;
    let (scope, key) = (scope.as_str(), key.redacted());
    tracing::info!(target: "audit", who, did, scope, method, path, key, "{what}");
}

fn matches_filter(which: &KeyFilter, name: &RecordName) -> bool {
    which.scope.as_ref().is_none_or(|scope| *scope == name.scope)
        && which.key.as_ref().is_none_or(|key| *key == name.key)
}

fn summarize(name: &str, record: &Record<usize>) -> Option<KeySummary> {
    let standing = match record.stage {
        RecordStage::Processing { until } => KeyState::Processing { until, on_lapse: record.on_lapse },
        RecordStage::Completed(len) => KeyState::Completed(len),
    };
    Some(KeySummary {
        name: RecordName::parse(name)?,
        state: standing,
        created: record.created,
        expires: record.expires,
    })
}
