//! Applies calls to the simulated API: a plain state machine. The same calls at the same times from
//! the same seed have the same results.

use std::collections::BTreeMap;

use bytes::Bytes;
use hyper::{Method, Request};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use tidegate_core::Time;

use super::HttpSimOptions;
use super::log::{LoggedWrite, WriteLog};
use crate::effect_history::EffectHistory;
use crate::rng::SeededRng;
use crate::stats::Stats;
use crate::token_bucket::{BucketDecision, TokenBucket};

/// Longest key or path that is kept, in bytes.
const KEPT_LEN_MAX: usize = 1_024;

/// An incoming call.
#[derive(Debug)]
pub struct HttpSimRequest {
    method: Method,
    path: String,
    /// The idempotency key, or else the body's `id`.
    key: Option<String>,
    body: Option<Box<RawValue>>,
}

/// The response to a call that succeeded.
#[derive(Debug, Serialize)]
pub struct EchoBody<'a> {
    call: u64,
    method: &'a str,
    path: &'a str,
    id: Option<&'a str>,
    body: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct IdBody {
    id: Value,
}

impl HttpSimRequest {
    /// Reads the relevant parts of a request.
    #[must_use]
    pub fn of(request: &Request<Bytes>) -> Self {
        let header = request.headers().get("idempotency-key").and_then(|key| key.to_str().ok());
        let id = || match serde_json::from_slice::<IdBody>(request.body()).ok()?.id {
            Value::String(id) => Some(id),
            Value::Number(id) => Some(id.to_string()),
            _ => None,
        };
        Self {
            method: request.method().clone(),
            path: truncate(request.uri().path()),
            key: header.map(str::to_owned).or_else(id).map(|key| truncate(&key)),
            body: serde_json::from_slice(request.body()).ok(),
        }
    }

    /// Returns the response to it.
    #[must_use]
    pub fn echo(&self, call: u64) -> EchoBody<'_> {
        let (method, path) = (self.method.as_str(), self.path.as_str());
        EchoBody { call, method, path, id: self.key.as_deref(), body: self.body.as_deref() }
    }

    /// The path.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    fn is_write(&self) -> bool {
        [Method::POST, Method::PUT, Method::PATCH, Method::DELETE].contains(&self.method)
    }
}

/// The outcome of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpSimOutcome {
    /// It was beyond the limit: no effect.
    Throttled,
    /// It failed: no effect.
    Failed,
    /// It had its effect, but the connection is cut.
    Cut,
    /// It succeeded.
    Done {
        /// Its number.
        call: u64,
    },
}

/// The state of the API.
#[derive(Debug)]
pub struct HttpSimState {
    stats: Stats,
    log: WriteLog,
    history: EffectHistory,
    /// The number of calls in progress, by path.
    in_progress: BTreeMap<String, u32>,
    bucket: Option<TokenBucket>,
    rng: SeededRng,
    fail_rate: f64,
    cut_rate: f64,
}

impl HttpSimState {
    /// Creates a fresh state.
    #[must_use]
    pub fn new(options: &HttpSimOptions) -> Self {
        Self {
            stats: Stats::default(),
            log: WriteLog::default(),
            history: EffectHistory::default(),
            in_progress: BTreeMap::new(),
            bucket: options.refill_per_s.map(|refill| TokenBucket::new(options.capacity, refill)),
            rng: SeededRng::new(options.seed),
            fail_rate: options.fail_rate,
            cut_rate: options.cut_rate,
        }
    }

    /// Starts a call, and counts it if it overlaps another one to the same path. It must be
    /// [ended](Self::end).
    pub fn begin(&mut self, path: &str) {
        let in_progress = self.in_progress.entry(path.to_owned()).or_default();
        self.stats.overlapping += u64::from(*in_progress > 0);
        *in_progress += 1;
    }

    /// Ends a call that was started.
    pub fn end(&mut self, path: &str) {
        if let Some(in_progress) = self.in_progress.get_mut(path) {
            *in_progress -= 1;
            if *in_progress == 0 {
                self.in_progress.remove(path);
            }
        }
    }

    /// Handles a call and applies its effect, if it has one.
    pub fn handle(
        &mut self,
        arrival: &HttpSimRequest,
        now: Time,
    ) -> (Option<BucketDecision>, HttpSimOutcome) {
        self.stats.calls += 1;
        let ruling = self.bucket.as_mut().map(|rate| rate.take(now));
        if ruling.is_some_and(|ruling| ruling.wait.is_some()) {
            self.stats.throttled += 1;
            self.stats.overstepped += 1;
            return (ruling, HttpSimOutcome::Throttled);
        }
        // Both are drawn each time, so that one rate does not shift what the other one hits.
        let (fails, cuts) = (self.rng.happens(self.fail_rate), self.rng.happens(self.cut_rate));
        if fails {
            return (ruling, HttpSimOutcome::Failed);
        }
        if arrival.is_write() {
            self.write(arrival);
        }
        (ruling, if cuts { HttpSimOutcome::Cut } else { HttpSimOutcome::Done { call: self.stats.calls } })
    }

    fn write(&mut self, arrival: &HttpSimRequest) {
        self.stats.writes += 1;
        let duplicate = match &arrival.key {
            Some(key) if arrival.method == Method::POST => self.history.record(&arrival.path, key),
            _ => false,
        };
        self.stats.duplicates += u64::from(duplicate);
        self.log.push(LoggedWrite {
            n: self.stats.writes,
            method: arrival.method.to_string(),
            path: arrival.path.clone(),
            id: arrival.key.clone(),
            duplicate,
        });
    }

    /// Returns the counts.
    #[must_use]
    pub const fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Returns the log of writes.
    #[must_use]
    pub const fn log(&self) -> &WriteLog {
        &self.log
    }
}

fn truncate(text: &str) -> String {
    let mut end = text.len().min(KEPT_LEN_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(method: Method, path: &str, body: &str) -> HttpSimRequest {
        let body = Bytes::from(body.to_owned());
        HttpSimRequest::of(&Request::builder().method(method).uri(path).body(body).unwrap())
    }

    fn outcomes(options: &HttpSimOptions) -> Vec<HttpSimOutcome> {
        let mut world = HttpSimState::new(options);
        let post = arrival(Method::POST, "/", "");
        (0..200).map(|_| world.handle(&post, Time::ZERO).1).collect()
    }

    #[test]
    fn the_same_seed_gives_the_same_outcomes() {
        let with = |seed| HttpSimOptions { seed, fail_rate: 0.2, cut_rate: 0.2, ..HttpSimOptions::default() };
        assert_eq!(outcomes(&with(1)), outcomes(&with(1)));
        assert_ne!(outcomes(&with(1)), outcomes(&with(2)));
        for outcome in [HttpSimOutcome::Failed, HttpSimOutcome::Cut] {
            assert!(outcomes(&with(1)).contains(&outcome), "{outcome:?}");
        }
    }

    #[test]
    fn an_effect_happens_unless_the_call_fails_or_is_throttled() {
        let writes = |options: HttpSimOptions| {
            let mut world = HttpSimState::new(&options);
            for _ in 0..10 {
                world.handle(&arrival(Method::POST, "/", ""), Time::ZERO);
            }
            (world.stats().calls, world.stats().writes)
        };
        let quiet = HttpSimOptions::default;
        assert_eq!(writes(quiet()), (10, 10));
        assert_eq!(writes(HttpSimOptions { cut_rate: 1.0, ..quiet() }), (10, 10));
        assert_eq!(writes(HttpSimOptions { fail_rate: 1.0, ..quiet() }), (10, 0));
        assert_eq!(writes(HttpSimOptions { capacity: 4, refill_per_s: Some(1.0), ..quiet() }), (10, 4));
    }

    #[test]
    fn only_a_post_with_a_known_key_at_the_same_path_is_a_duplicate() {
        let mut world = HttpSimState::new(&HttpSimOptions::default());
        let calls = [
            (Method::POST, "/a", r#"{"id":"1"}"#),
            (Method::POST, "/b", r#"{"id":"1"}"#),
            (Method::POST, "/a", r#"{"id":1,"x":[]}"#),
            (Method::POST, "/a", "{}"),
            (Method::POST, "/a", "{}"),
            (Method::PUT, "/a", r#"{"id":"1"}"#),
            (Method::GET, "/a", r#"{"id":"1"}"#),
        ];
        for (method, path, body) in calls {
            world.handle(&arrival(method, path, body), Time::ZERO);
        }
        assert_eq!(
            (world.stats().writes, world.stats().duplicates),
            (6, 1),
            "the third: 1 and \"1\" are one key"
        );
    }
}
