//! The configuration of an upstream. Validated before anything is sent.

use std::time::Duration;

use http::header::{HeaderName, HeaderValue};
use tidegate_core::ServerErrors;
use tidegate_core::bounds::{CHARGES_MAX, RESULT_LEN_MAX, TOKENS_MAX, UPSTREAM_NAME_LEN_MAX};
use tidegate_core::operation::MICRO;

use crate::port::FieldRefusal;
use crate::request::header;
use crate::secret::Secret;

/// The default time to wait for a response.
pub const TIMEOUT_DEFAULT: Duration = Duration::from_secs(30);
/// The default time to wait for a connection.
pub const CONNECT_TIMEOUT_DEFAULT: Duration = Duration::from_secs(5);

/// The configuration of one upstream.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct UpstreamConfig {
    /// The name used by callers, limits and messages.
    pub name: String,
    /// The base URL: every request goes to this host, below this path.
    pub base_url: String,
    /// The credential to send.
    pub token: Option<Secret>,
    /// The header that carries the credential.
    pub token_header: TokenHeader,
    /// Headers, in lower case, that are named like credentials and may be stored with requests all
    /// the same.
    pub stored_headers: Vec<String>,
    /// How long one attempt may take in total.
    pub timeout: Duration,
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// The maximum size of a body; of a larger response only the status is kept.
    pub response_max_bytes: usize,
    /// What a server error means for a request that must not take effect twice; `None` for the
    /// default of its dialect.
    pub server_errors: Option<ServerErrors>,
    /// The limits that every call charges, besides the gate.
    pub limits: Vec<LimitConfig>,
}

/// The header for a credential: its name, and the prefix of the token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenHeader {
    /// The name, in lower case.
    pub name: String,
    /// The prefix of the token, with its space: `Bearer `.
    pub prefix: String,
}

/// One limit of an upstream.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LimitConfig {
    /// Its name in `cost`; the model knows it as `<upstream>/<name>`.
    pub name: String,
    /// Its kind and figures.
    pub kind: LimitKind,
}

/// The kind of a limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LimitKind {
    /// A budget that refills evenly, in tokens.
    Drip {
        /// The capacity.
        capacity: f64,
        /// The refill per second.
        refill_per_s: f64,
    },
    /// A maximum number of concurrent calls.
    AtOnce {
        /// The number of slots.
        at_once: u32,
    },
}

impl LimitConfig {
    /// Creates a limit of an upstream.
    #[must_use]
    pub fn new(name: impl Into<String>, kind: LimitKind) -> Self {
        Self { name: name.into(), kind }
    }
}

impl LimitKind {
    /// Capacity and refill in micro-tokens; zeros for a limit that is no budget.
    #[must_use]
    pub fn micro_tokens(self) -> (u64, u64) {
        match self {
            // A cast from a float saturates, and `validate` has checked both.
            Self::Drip { capacity, refill_per_s } => {
                ((capacity * MICRO as f64).round() as u64, (refill_per_s * MICRO as f64).round() as u64)
            }
            Self::AtOnce { .. } => (0, 0),
        }
    }

    fn problem(self) -> Option<String> {
        let most = TOKENS_MAX as f64;
        match self {
            Self::Drip { capacity, .. } if !(1.0..=most).contains(&capacity) => {
                Some(format!("Its capacity must be 1 to {TOKENS_MAX}."))
            }
            Self::Drip { refill_per_s, .. } if !(1e-6..=most).contains(&refill_per_s) => {
                Some(format!("Its refill_per_s must be 0.000001 to {TOKENS_MAX}."))
            }
            Self::AtOnce { at_once: 0 } => Some("It must allow at least one concurrent call.".into()),
            _ => None,
        }
    }
}

impl Default for TokenHeader {
    fn default() -> Self {
        Self { name: "authorization".into(), prefix: "Bearer ".into() }
    }
}

impl TokenHeader {
    /// Parses `name` or `name: prefix`, as in `authorization: Bot` or `x-api-key`.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let (name, prefix) = text.split_once(':').unwrap_or((text, ""));
        let prefix = prefix.trim();
        let prefix = if prefix.is_empty() { String::new() } else { format!("{prefix} ") };
        Self { name: name.trim().to_ascii_lowercase(), prefix }
    }

    /// The header to send, marked as sensitive so that nothing prints it.
    pub(crate) fn with(&self, token: &Secret) -> Option<(HeaderName, HeaderValue)> {
        let name = HeaderName::from_bytes(self.name.as_bytes()).ok()?;
        let mut value = HeaderValue::from_str(&format!("{}{}", self.prefix, token.reveal())).ok()?;
        value.set_sensitive(true);
        Some((name, value))
    }
}

impl UpstreamConfig {
    /// Creates a configuration with every default: no credential and no limits.
    #[must_use]
    pub fn new(name: impl Into<String>, base_url: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            base_url: base_url.into(),
            token: None,
            token_header: TokenHeader::default(),
            stored_headers: Vec::new(),
            timeout: TIMEOUT_DEFAULT,
            connect_timeout: CONNECT_TIMEOUT_DEFAULT,
            response_max_bytes: RESULT_LEN_MAX,
            server_errors: None,
            limits: Vec::new(),
        }
    }

    /// Adds a limit that every call charges.
    #[must_use]
    pub fn with_limit(mut self, name: impl Into<String>, kind: LimitKind) -> Self {
        self.limits.push(LimitConfig::new(name, kind));
        self
    }

    /// Sets the credential to send.
    #[must_use]
    pub fn with_token(mut self, token: impl Into<Option<Secret>>) -> Self {
        self.token = token.into();
        self
    }

    /// Sets the header that carries the credential.
    #[must_use]
    pub fn with_token_header(mut self, token_header: TokenHeader) -> Self {
        self.token_header = token_header;
        self
    }

    /// Sets the headers that are named like credentials and may be stored.
    #[must_use]
    pub fn with_stored_headers(mut self, stored_headers: Vec<String>) -> Self {
        self.stored_headers = stored_headers;
        self
    }

    /// Sets how long one attempt may take in total; 30 s by default.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets how long connecting may take; 5 s by default.
    #[must_use]
    pub fn with_connect_timeout(mut self, connect_timeout: Duration) -> Self {
        self.connect_timeout = connect_timeout;
        self
    }

    /// Sets the maximum size of a response body.
    #[must_use]
    pub fn with_response_max_bytes(mut self, response_max_bytes: usize) -> Self {
        self.response_max_bytes = response_max_bytes;
        self
    }

    /// Sets what a server error means for a request that must not take effect twice; the dialect
    /// decides by default.
    #[must_use]
    pub fn with_server_errors(mut self, server_errors: impl Into<Option<ServerErrors>>) -> Self {
        self.server_errors = server_errors.into();
        self
    }

    /// Sets the limits that every call charges.
    #[must_use]
    pub fn with_limits(mut self, limits: Vec<LimitConfig>) -> Self {
        self.limits = limits;
        self
    }

    /// Refuses one of its fields.
    pub(crate) fn refuse(&self, field: &str, message: impl Into<String>) -> FieldRefusal {
        let name: String = self.name.chars().take(UPSTREAM_NAME_LEN_MAX).collect();
        FieldRefusal::new(format!("upstream.{name}.{field}"), message)
    }

    /// Validates the configuration.
    ///
    /// # Errors
    /// Names the upstream and the field.
    pub fn validate(&self) -> Result<(), FieldRefusal> {
        if !is_name(&self.name) {
            return Err(self.refuse("name", NAME_RULE));
        }
        if self.timeout.is_zero() || self.connect_timeout.is_zero() {
            return Err(self.refuse("timeout", "A zero timeout lets no call through."));
        }
        if self.response_max_bytes == 0 || self.response_max_bytes > RESULT_LEN_MAX {
            let message = format!("It must be 1 to {RESULT_LEN_MAX} bytes.");
            return Err(self.refuse("response_max_bytes", message));
        }
        if let Some(token) = &self.token
            && self.token_header.with(token).is_none()
        {
            return Err(self.refuse("token_header", "HTTP does not allow this header, or the token in it."));
        }
        if let Some(name) = self.stored_headers.iter().find(|name| !header::may_be_stored(name)) {
            let name: String = name.chars().take(UPSTREAM_NAME_LEN_MAX).collect();
            let message = format!(
                "{name:?} cannot be stored with a request: names are in lower case, and authorization, cookies and \
                 headers of the connection are never stored."
            );
            return Err(self.refuse("stored_headers", message));
        }
        self.validate_limits()
    }

    fn validate_limits(&self) -> Result<(), FieldRefusal> {
        let most = CHARGES_MAX - 1;
        if self.limits.len() > most {
            return Err(
                self.refuse("limit", format!("It has {} limits; the most is {most}.", self.limits.len()))
            );
        }
        for (index, limit) in self.limits.iter().enumerate() {
            if !is_name(&limit.name) {
                return Err(self.refuse("limit.name", NAME_RULE));
            }
            if self.limits[..index].iter().any(|earlier| earlier.name == limit.name) {
                return Err(self.refuse("limit.name", format!("Two limits are named {}.", limit.name)));
            }
            if let Some(problem) = limit.kind.problem() {
                return Err(self.refuse(&format!("limit.{}", limit.name), problem));
            }
        }
        Ok(())
    }
}

const NAME_RULE: &str = "A name is 1 to 64 letters, digits, '-', '_' or '.'.";

fn is_name(name: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    (1..=UPSTREAM_NAME_LEN_MAX).contains(&name.len()) && name.bytes().all(allowed)
}
