//! The tokens of the API: `[[token]]`. Only hashes are kept, so a memory dump or a log shows no
//! token.

use sha2::{Digest, Sha256};

use super::ParseContext;
use super::section::Section;
use super::value::LocatedValue;

/// The shortest token that is accepted from the environment: shorter ones can be guessed.
const TOKEN_LEN_MIN: usize = 16;

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

    fn parse(word: &str) -> Option<Self> {
        [Self::Read, Self::Write, Self::Work, Self::Operate].into_iter().find(|scope| scope.as_str() == word)
    }
}

/// One token, by its hash.
#[derive(Clone, Debug)]
pub struct ApiToken {
    /// The name, for the log.
    pub name: String,
    /// SHA-256 of the token.
    pub hash: [u8; 32],
    /// What it allows.
    pub scopes: Vec<TokenScope>,
}

impl ApiToken {
    /// Hashes a token.
    #[must_use]
    pub fn new(name: impl Into<String>, token: &str, scopes: Vec<TokenScope>) -> Self {
        Self { name: name.into(), hash: Sha256::digest(token.as_bytes()).into(), scopes }
    }
}

pub(super) fn read(mut section: Section<'_>, reading: &mut ParseContext<'_>) -> Option<ApiToken> {
    let problems = &mut reading.problems;
    let name = section.text("name", problems);
    let scopes = section.texts("scopes", problems);
    let hash = section.text("hash", problems);
    let variable = section.text("value_env", problems);
    for (key, missing) in [("name", name.is_none()), ("scopes", scopes.is_none())] {
        if missing && !section.has(key) {
            problems.push(section.problem(format!("The key {key} is missing.")));
        }
    }
    let hash = match (hash, variable) {
        (Some(hash), None) => parse_hash(&hash, reading),
        (None, Some(variable)) => from_environment(&variable, reading),
        _ => {
            reading.problems.push(section.problem("A token needs either hash or value_env."));
            None
        }
    };
    section.finish(&mut reading.problems);
    let scopes = read_scopes(&scopes?, reading);
    Some(ApiToken { name: name?.value, hash: hash?, scopes })
}

fn read_scopes(words: &LocatedValue<Vec<String>>, reading: &mut ParseContext<'_>) -> Vec<TokenScope> {
    let mut scopes = Vec::new();
    if words.value.is_empty() {
        reading
            .problems
            .push(words.problem("A token without scopes may do nothing; there are read, write, operate."));
    }
    for word in &words.value {
        match TokenScope::parse(word) {
            Some(scope) => scopes.push(scope),
            None => reading
                .problems
                .push(words.problem(format!("There is no scope {word:?}; there are read, write, operate."))),
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
