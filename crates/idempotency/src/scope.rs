//! The scope of a key: whose key it is. The choice is explicit: a scope for each request, or
//! `unscoped`. A scope that may be a secret is stored as a hash. Authentication is not done here
//! and happens before.

use std::fmt;
use std::sync::Arc;

use http::header::HeaderName;
use http::request::Parts;
use sha2::{Digest, Sha256};

/// The longest name that is stored as it is, in characters; a longer one is stored as a hash.
const NAME_LEN_MAX: usize = 100;

/// The bytes of a hash that are stored.
const SECRET_LEN: usize = 16;
const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// A caller: a tenant, an account, a credential. Two callers never see each other's responses.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct CallerScope(String);

impl CallerScope {
    /// A caller identified by a name that operators may see.
    #[must_use]
    pub fn named(name: &str) -> Self {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.:@/".contains(&byte);
        let begins_well = name.starts_with(|first: char| first.is_ascii_alphanumeric());
        if begins_well && name.len() <= NAME_LEN_MAX && name.bytes().all(plain) {
            return Self(name.to_owned());
        }
        Self::secret(name.as_bytes())
    }

    /// A caller identified by a secret, such as the value of `Authorization`: only its hash is
    /// stored.
    #[must_use]
    pub fn secret(secret: &[u8]) -> Self {
        let hash = Sha256::new().chain_update(b"tidegate scope\0").chain_update(secret).finalize();
        // Runs for each request: written digit by digit, since formatting every byte showed in
        // profiles.
        let mut kept = String::with_capacity(1 + 2 * SECRET_LEN);
        kept.push('~');
        for byte in hash.iter().take(SECRET_LEN) {
            kept.extend([byte >> 4, byte & 0xf].map(|digit| char::from(DIGITS[usize::from(digit)])));
        }
        Self(kept)
    }

    /// The one caller of a service that has only one.
    #[must_use]
    pub fn everybody() -> Self {
        Self("-".to_owned())
    }

    /// The stored form.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Parses a stored scope; `None` when the text is not one.
    pub(crate) fn from_stored(text: &str) -> Option<Self> {
        (!text.is_empty()).then(|| Self(text.to_owned()))
    }
}

impl fmt::Debug for CallerScope {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Scope({})", self.0)
    }
}

type ScopeFn = dyn Fn(&Parts) -> Option<CallerScope> + Send + Sync;

/// Finds the scope of a request.
#[derive(Clone)]
pub struct ScopeExtractor {
    find: Arc<ScopeFn>,
    /// The header that contains the scope, to name it to those who did not send it.
    header: Option<HeaderName>,
}

impl ScopeExtractor {
    /// Finds the scope by a function of the request's extensions and headers. Where it returns
    /// `None`, a request with a key is rejected.
    #[must_use]
    pub fn from_fn(find: impl Fn(&Parts) -> Option<CallerScope> + Send + Sync + 'static) -> Self {
        Self { find: Arc::new(find), header: None }
    }

    /// Uses the value of a header, treated as a secret. A request with a key is rejected if it has
    /// no such header or several lines of it.
    #[must_use]
    pub fn header(name: HeaderName) -> Self {
        let header = Some(name.clone());
        let scoping = Self::from_fn(move |parts| {
            let mut lines = parts.headers.get_all(&name).iter();
            let first = lines.next()?;
            (lines.next().is_none() && !first.is_empty()).then(|| CallerScope::secret(first.as_bytes()))
        });
        Self { header, ..scoping }
    }

    /// All callers share one key space: right for a service with one caller, wrong for any other.
    #[must_use]
    pub fn unscoped() -> Self {
        Self::from_fn(|_| Some(CallerScope::everybody()))
    }

    pub(crate) fn extract(&self, parts: &Parts) -> Option<CallerScope> {
        (self.find)(parts)
    }

    pub(crate) fn header_name(&self) -> Option<&HeaderName> {
        self.header.as_ref()
    }
}

impl fmt::Debug for ScopeExtractor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Scoping")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// IDM-2, IDM-10: a credential is distinguished from every other one and cannot be read
    /// anywhere.
    #[test]
    fn a_secret_scope_is_kept_as_a_hash() {
        let (one, other) = (CallerScope::secret(b"Bearer aaa"), CallerScope::secret(b"Bearer bbb"));
        assert_ne!(one, other);
        assert!(!one.as_str().contains("aaa"));
        assert_eq!(CallerScope::named("tenant-7").as_str(), "tenant-7");
    }

    /// IDM-2: what is stored under a scope is found again by the next version.
    #[test]
    fn a_hash_is_written_as_it_always_was() {
        let kept = CallerScope::secret(b"Bearer aaa");
        let hash = Sha256::digest(b"tidegate scope\0Bearer aaa");
        let hex: String = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(kept.as_str(), format!("~{hex}"));
    }

    /// A name never passes for a hash or for the unscoped caller, and never contains a space that
    /// would end it.
    #[test]
    fn odd_names_are_hashed() {
        for name in ["", "-x y", "~0123", "a b", "müller", &"n".repeat(NAME_LEN_MAX + 1)] {
            assert!(CallerScope::named(name).as_str().starts_with('~'), "{name:?}");
        }
        assert_ne!(CallerScope::named("-"), CallerScope::everybody(), "a tenant called `-` is not everybody");
    }
}
