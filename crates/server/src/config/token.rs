//! The tokens of the API: `[[token]]`. Only hashes are kept, so a memory dump or a log shows no
//! token.

use sha2::{Digest, Sha256};
use tidegate_core::fingerprint::hex;
use tidegate_core::text::is_plain_text;
use tidegate_core::{Time, bounds};

use super::ParseContext;
use super::problem::ConfigProblem;
use super::section::Section;
use super::value::LocatedValue;

/// The shortest token that is accepted from the environment: shorter ones can be guessed.
const TOKEN_LEN_MIN: usize = 16;
/// What the scope of a tenant's idempotency keys starts with; no token has such a name.
pub(crate) const TENANT_SCOPE: &str = "tenant:";
/// How a token starts that was made here, so that a leak is recognized as what it is.
const TOKEN_START: &str = "tg_";

/// What a token allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TokenScope {
    /// Read everything.
    Read,
    /// Submit operations.
    Write,
    /// Take, extend and settle operations of remote kinds.
    Work,
    /// Cancel, re-run, resolve, pause, set limits.
    Operate,
}

impl TokenScope {
    /// All scopes, in a sentence.
    pub const WORDS: &str = "read, write, work, operate";

    /// The word in the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Work => "work",
            Self::Operate => "operate",
        }
    }

    /// Finds the scope of a word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Read, Self::Write, Self::Work, Self::Operate].into_iter().find(|scope| scope.as_str() == word)
    }
}

/// One token, by its hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiToken {
    /// The name, for the log.
    pub name: String,
    /// SHA-256 of the token.
    pub hash: [u8; 32],
    /// What it allows.
    pub scopes: Vec<TokenScope>,
    /// The tenant that its calls belong to; without one they may name any.
    pub tenant: Option<String>,
    /// When it expires; never without one.
    pub expires_at: Option<Time>,
}

impl ApiToken {
    /// Hashes a token that belongs to no tenant and does not expire.
    #[must_use]
    pub fn new(name: impl Into<String>, token: &str, scopes: Vec<TokenScope>) -> Self {
        let (hash, tenant, expires_at) = (Sha256::digest(token.as_bytes()).into(), None, None);
        Self { name: name.into(), hash, scopes, tenant, expires_at }
    }

    /// Returns the text of a new token, of 256 random bits; `None` when the system has none.
    #[must_use]
    pub fn random_text() -> Option<String> {
        let mut random = [0; 32];
        getrandom::fill(&mut random).ok()?;
        Some(format!("{TOKEN_START}{}", hex(&random)))
    }

    /// Whether it has expired.
    #[must_use]
    pub fn is_expired(&self, now: Time) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }
}

/// Reads a token of the configuration: its hash, or the variable that holds the token itself.
pub(super) fn read(mut section: Section<'_>, reading: &mut ParseContext<'_>) -> Option<ApiToken> {
    let problems = &mut reading.problems;
    let hash = section.text("hash", problems);
    let variable = section.text("value_env", problems);
    let hash = match (hash, variable) {
        (Some(hash), None) => parse_hash(&hash, reading),
        (None, Some(variable)) => from_environment(&variable, reading),
        _ => {
            reading.problems.push(section.problem("A token needs either hash or value_env."));
            None
        }
    };
    read_rest(section, hash, reading)
}

/// Reads a token of which only the hash is known.
pub(super) fn read_hashed(mut section: Section<'_>, reading: &mut ParseContext<'_>) -> Option<ApiToken> {
    let hash = match section.text("hash", &mut reading.problems) {
        Some(hash) => parse_hash(&hash, reading),
        None => {
            reading.problems.push(section.problem("The key hash is missing."));
            None
        }
    };
    read_rest(section, hash, reading)
}

fn read_rest(
    mut section: Section<'_>,
    hash: Option<[u8; 32]>,
    reading: &mut ParseContext<'_>,
) -> Option<ApiToken> {
    let problems = &mut reading.problems;
    let name = section.text("name", problems);
    let scopes = section.texts("scopes", problems);
    let tenant = section.text("tenant", problems);
    let expires_at = read_time(&mut section, "expires_at", problems);
    for (key, missing) in [("name", name.is_none()), ("scopes", scopes.is_none())] {
        if missing && !section.has(key) {
            problems.push(section.problem(format!("The key {key} is missing.")));
        }
    }
    if let Some(name) = name.as_ref().filter(|name| name.value.starts_with(TENANT_SCOPE)) {
        problems.push(name.problem(format!("A name must not start with {TENANT_SCOPE}")));
    }
    if let Some(tenant) = &tenant
        && !is_tenant(&tenant.value)
    {
        let most = bounds::TENANT_LEN_MAX;
        problems.push(tenant.problem(format!("A tenant is 1 to {most} bytes on one line.")));
    }
    section.finish(problems);
    let scopes = read_scopes(&scopes?, reading);
    let tenant = tenant.map(|tenant| tenant.value);
    Some(ApiToken { name: name?.value, hash: hash?, scopes, tenant, expires_at })
}

fn is_tenant(text: &str) -> bool {
    is_plain_text(text, 1..=bounds::TENANT_LEN_MAX)
}

/// Reads a time, if there is one.
pub(super) fn read_time(
    section: &mut Section<'_>,
    key: &'static str,
    problems: &mut Vec<ConfigProblem>,
) -> Option<Time> {
    let found = section.text(key, problems)?;
    let time = Time::parse_rfc_3339(&found.value);
    if time.is_none() {
        problems.push(found.problem("It must be a time such as 2031-05-06T07:08:09Z."));
    }
    time
}

fn read_scopes(words: &LocatedValue<Vec<String>>, reading: &mut ParseContext<'_>) -> Vec<TokenScope> {
    let mut scopes = Vec::new();
    if words.value.is_empty() {
        reading.problems.push(
            words.problem(format!("A token without scopes may do nothing; there are {}.", TokenScope::WORDS)),
        );
    }
    for word in &words.value {
        match TokenScope::parse(word) {
            Some(scope) => scopes.push(scope),
            None => {
                let message = format!("There is no scope {word:?}; there are {}.", TokenScope::WORDS);
                reading.problems.push(words.problem(message));
            }
        }
    }
    scopes
}

fn from_environment(variable: &LocatedValue<String>, reading: &mut ParseContext<'_>) -> Option<[u8; 32]> {
    let text = reading.secret(variable)?;
    if text.len() < TOKEN_LEN_MIN {
        let message = format!("The token in {} is shorter than {TOKEN_LEN_MIN} bytes.", variable.value);
        reading.problems.push(variable.problem(message));
    }
    Some(Sha256::digest(text.as_bytes()).into())
}

fn parse_hash(text: &LocatedValue<String>, reading: &mut ParseContext<'_>) -> Option<[u8; 32]> {
    let hash = text.value.strip_prefix("sha256:").and_then(unhex);
    if hash.is_none() {
        reading.problems.push(text.problem("It must be sha256: and 64 hexadecimal digits."));
    }
    hash
}

fn unhex(digits: &str) -> Option<[u8; 32]> {
    if digits.len() != 64 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let mut hash = [0; 32];
    for (byte, place) in hash.iter_mut().zip((0..64).step_by(2)) {
        *byte = u8::from_str_radix(digits.get(place..place + 2)?, 16).ok()?;
    }
    Some(hash)
}
