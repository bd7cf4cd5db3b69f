//! The Discord dialect of one upstream: one bot with one token. It decides which limits a call
//! takes from (its route's, the global one, hidden ones, the brake on refused calls, the slots for
//! groups that run at once), and reads what responses report. It keeps no counts: the model does.

mod api_error;
mod buckets;
mod hidden_limit;
mod path_words;
mod rate_limit_headers;
mod response_reader;
mod route;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tidegate_core::bounds::LIMIT_LEN_MAX;
use tidegate_core::fact::LimitShape;
use tidegate_core::fingerprint::{Fingerprint, hex};
use tidegate_core::operation::MICRO;
use tidegate_core::{Charge, LimitName, OnUnknown, ServerErrors};
use tidegate_upstream::http::plain::refuse_unknown_limits;
use tidegate_upstream::http::{Dialect, LimitDefinition, ResponseInterpreter};
use tidegate_upstream::{FieldRefusal, HttpRequest, Method};

pub use crate::bounds::INVALID_MAX;
use buckets::BucketHashes;
use hidden_limit::HiddenLimit;
use response_reader::ResponseReader;
pub(crate) use response_reader::UNKNOWN_TOKEN;
use route::{Route, is_version, split_version};

/// The base URL of Discord's API.
pub const BASE_URL: &str = "https://discord.com/api/v10";
/// Calls of one bot per second, unless Discord has raised it.
pub const GLOBAL_PER_S_DEFAULT: u32 = 50;

/// Groups of one bot that run at once, by default.
pub const AT_ONCE_DEFAULT: u32 = 3;

/// The period over which they are counted.
const INVALID_WINDOW: Duration = Duration::from_secs(600);
/// A limit whose figures come with the first response.
const UNKNOWN_WINDOW: LimitShape = LimitShape::Window { limit: 0, period: Duration::ZERO };
/// The user agent that Discord asks for, sent where a request has none.
const USER_AGENT: &str = concat!("DiscordBot (tidegate, ", env!("CARGO_PKG_VERSION"), ")");

/// Settings of one bot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiscordSettings {
    /// Calls per second that Discord allows it.
    pub global_per_s: u32,
    /// Its share of the refused calls allowed in ten minutes; the shares of all who call from one
    /// address add up to [`INVALID_MAX`].
    pub invalid_max: u64,
    /// Groups that run at once, each with one call in flight.
    pub at_once: u32,
}

impl Default for DiscordSettings {
    fn default() -> Self {
        let (global_per_s, invalid_max) = (GLOBAL_PER_S_DEFAULT, INVALID_MAX);
        Self { global_per_s, invalid_max, at_once: AT_ONCE_DEFAULT }
    }
}

impl DiscordSettings {
    /// Sets the calls per second that Discord allows it; 50 by default.
    #[must_use]
    pub fn with_global_per_s(mut self, global_per_s: u32) -> Self {
        self.global_per_s = global_per_s;
        self
    }

    /// Sets its share of the refused calls allowed in ten minutes.
    #[must_use]
    pub fn with_invalid_max(mut self, invalid_max: u64) -> Self {
        self.invalid_max = invalid_max;
        self
    }

    /// Sets how many groups run at once, each with one call in flight.
    #[must_use]
    pub fn with_at_once(mut self, at_once: u32) -> Self {
        self.at_once = at_once;
        self
    }
}

/// The dialect of one bot.
#[derive(Debug)]
pub struct DiscordDialect {
    gate: Arc<str>,
    global: Arc<str>,
    invalid: Arc<str>,
    at_once: Arc<str>,
    settings: DiscordSettings,
    /// The version at the end of the base URL, which must not be sent twice.
    version: Option<String>,
    buckets: BucketHashes,
}

impl DiscordDialect {
    /// Creates the dialect of an upstream with this name and base URL.
    #[must_use]
    pub fn new(upstream: &str, base_url: &str, settings: DiscordSettings) -> Self {
        let version = base_url.trim_end_matches('/').rsplit('/').next().filter(|last| is_version(last));
        Self {
            gate: Arc::from(upstream),
            global: LimitName::new(upstream, "global").into(),
            invalid: LimitName::new(upstream, "invalid").into(),
            at_once: LimitName::new(upstream, "at_once").into(),
            settings,
            version: version.map(str::to_owned),
            buckets: BucketHashes::default(),
        }
    }

    /// Returns the limit of a route in its guild, channel or webhook.
    fn route_limit(&self, route: &Route) -> Arc<str> {
        self.limit_name(&route.key(), &route.major)
    }

    /// Returns the limit shared by routes with one hash.
    fn bucket_limit(&self, hash: &str, major: &str) -> Arc<str> {
        self.limit_name(&format!("bucket {hash}"), major)
    }

    fn hidden_limit(&self, hidden: HiddenLimit, route: &Route) -> Arc<str> {
        self.limit_name(hidden.name(), &route.major)
    }

    fn limit_name(&self, what: &str, major: &str) -> Arc<str> {
        let limit = format!("{what} {major}");
        let name: Arc<str> = LimitName::new(&self.gate, limit.trim_end()).into();
        if name.len() <= LIMIT_LEN_MAX {
            return name;
        }
        // Longer than any route of Discord's: a hash still keeps it apart from others.
        let hash = hex(&Fingerprint::of("discord limit").part(name.as_bytes()).finish()[..16]);
        LimitName::new(&self.gate, &format!("long {hash}")).into()
    }

    /// Refuses a version other than the base URL's: the path is appended to it.
    fn refuse_other_version(&self, request: &HttpRequest) -> Result<(), FieldRefusal> {
        let (Some(ours), Some((theirs, _))) = (&self.version, split_version(&request.path)) else {
            return Ok(());
        };
        if ours == theirs {
            return Ok(());
        }
        let message = format!("It asks for {theirs}, but the base_url of {} is for {ours}.", self.gate);
        Err(FieldRefusal::new("request.path", message))
    }

    /// Returns the brake: a burst at first and the rest evenly, so that no ten minutes ever have
    /// more, wherever they begin.
    fn invalid_request_limit(&self) -> LimitShape {
        let share = self.settings.invalid_max.clamp(2, INVALID_MAX) * MICRO;
        let (capacity, refill_per_s) = (share / 2, share / 2 / INVALID_WINDOW.as_secs());
        LimitShape::Drip { capacity, refill_per_s, margin: 0 }
    }

    /// Returns the limit on all calls. Discord counts by its own seconds, so a small burst at first
    /// and nine tenths evenly.
    fn global_limit(&self) -> LimitShape {
        let whole = u64::from(self.settings.global_per_s.max(1)) * MICRO;
        LimitShape::Drip { capacity: (whole * 8 / 100).max(MICRO), refill_per_s: whole * 9 / 10, margin: 0 }
    }
}

impl Dialect for DiscordDialect {
    fn limits(&self) -> Vec<LimitDefinition> {
        vec![
            (Arc::clone(&self.gate), LimitShape::Gate),
            (Arc::clone(&self.global), self.global_limit()),
            (Arc::clone(&self.invalid), self.invalid_request_limit()),
            (Arc::clone(&self.at_once), LimitShape::Cap { at_once: self.settings.at_once.max(1) }),
        ]
    }

    fn charges(
        &self,
        request: &HttpRequest,
        cost: &BTreeMap<String, u64>,
    ) -> Result<Vec<Charge>, FieldRefusal> {
        refuse_unknown_limits(&self.gate, &[], cost)?;
        self.refuse_other_version(request)?;
        let route = Route::of(request.method, &request.path);
        let mut limits = vec![Arc::clone(&self.gate), Arc::clone(&self.invalid), self.route_limit(&route)];
        // An interaction has to be answered within seconds: it waits for no other group's turn.
        if !route.is_interaction {
            limits.extend([&self.global, &self.at_once].map(Arc::clone));
        }
        limits.extend(self.buckets.get(&route.key()).map(|hash| self.bucket_limit(&hash, &route.major)));
        limits.extend(HiddenLimit::of(&route, request).map(|hidden| self.hidden_limit(hidden, &route)));
        Ok(limits.into_iter().map(|limit| Charge::tokens(limit, 1)).collect())
    }

    fn limits_to_open(&self, request: &HttpRequest, charges: &[Charge]) -> Vec<LimitDefinition> {
        let made = [&self.gate, &self.global, &self.invalid, &self.at_once];
        let route = Route::of(request.method, &request.path);
        let hidden = HiddenLimit::of(&route, request);
        let hidden = hidden.map(|hidden| (self.hidden_limit(hidden, &route), hidden.shape()));
        let open = |charge: &Charge| match &hidden {
            Some((name, shape)) if *name == charge.limit => (Arc::clone(name), *shape),
            _ => (Arc::clone(&charge.limit), UNKNOWN_WINDOW),
        };
        charges.iter().filter(|charge| !made.contains(&&charge.limit)).map(open).collect()
    }

    /// A request that creates something must not be repeated; every other request describes a final
    /// state. No header matters here: Discord has none for this.
    fn on_unknown(&self, request: &HttpRequest) -> OnUnknown {
        if request.method == Method::Post { OnUnknown::Ask } else { OnUnknown::Repeat }
    }

    /// What a request creates may exist after a server error.
    fn server_errors(&self) -> ServerErrors {
        ServerErrors::Unknown
    }

    fn prepare_request<'a>(
        &'a self,
        request: &mut HttpRequest,
        _: &str,
    ) -> Option<Box<dyn ResponseInterpreter + 'a>> {
        let route = Route::of(request.method, &request.path);
        let hidden = HiddenLimit::of(&route, request).map(|hidden| self.hidden_limit(hidden, &route));
        let limit = self.route_limit(&route);
        if self.version.is_some()
            && let Some((_, rest)) = split_version(&request.path)
        {
            request.path = rest.to_owned();
        }
        if request.header("user-agent").is_none() {
            request.headers.push(("user-agent".to_owned(), USER_AGENT.to_owned()));
        }
        Some(Box::new(ResponseReader { dialect: self, route, limit, hidden }))
    }
}

#[cfg(test)]
mod tests;
