//! Versions of the Admin API: which one a path asks for, which one responded, and whether they
//! differ. A newer version silently responds for a retired one; only the response header shows it.

use std::fmt;
use std::str::FromStr;

/// A version: `2026-04`, or `unstable`, which is later than all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ApiVersion {
    /// A quarter's version.
    Quarter {
        /// Its year.
        year: u16,
        /// The first month of its quarter.
        month: u8,
    },
    /// The version that changes at any time.
    Unstable,
}

/// The first version that supports `@idempotent`.
pub const IDEMPOTENT_SINCE: ApiVersion = ApiVersion::Quarter { year: 2026, month: 1 };

/// A text that is not a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("A version of the API is written as 2026-04, or unstable.")]
pub struct InvalidApiVersion;

impl FromStr for ApiVersion {
    type Err = InvalidApiVersion;

    fn from_str(text: &str) -> Result<Self, InvalidApiVersion> {
        if text == "unstable" {
            return Ok(Self::Unstable);
        }
        let digits = |part: &str, len: usize| part.len() == len && part.bytes().all(|b| b.is_ascii_digit());
        let (year, month) = text.split_once('-').ok_or(InvalidApiVersion)?;
        if !digits(year, 4) || !digits(month, 2) {
            return Err(InvalidApiVersion);
        }
        let (year, month) =
            (year.parse().map_err(|_| InvalidApiVersion)?, month.parse().map_err(|_| InvalidApiVersion)?);
        if (1..=12).contains(&month) { Ok(Self::Quarter { year, month }) } else { Err(InvalidApiVersion) }
    }
}

impl fmt::Display for ApiVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Quarter { year, month } => write!(f, "{year:04}-{month:02}"),
            Self::Unstable => f.write_str("unstable"),
        }
    }
}

/// Returns the version that a path asks for: `/admin/api/2026-04/graphql.json`.
///
/// ```
/// use tidegate_shopify::version::of_path;
///
/// assert_eq!(of_path("/admin/api/2026-04/graphql.json").unwrap().to_string(), "2026-04");
/// assert_eq!(of_path("/admin/oauth/access_scopes.json"), None);
/// ```
#[must_use]
pub fn of_path(path: &str) -> Option<ApiVersion> {
    let (_, rest) = path.split(['?', '#']).next()?.split_once("/admin/api/")?;
    rest.split('/').next()?.parse().ok()
}

/// Returns whether a path is GraphQL: `…/graphql.json` below `/admin/api/`.
#[must_use]
pub fn is_graphql(path: &str) -> bool {
    let path = path.split(['?', '#']).next().unwrap_or_default();
    path.split_once("/admin/api/").is_some_and(|(_, rest)| rest.ends_with("graphql.json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_and_ordered() {
        let read = |text: &str| text.parse::<ApiVersion>();
        assert!(read("2025-10").unwrap() < IDEMPOTENT_SINCE);
        assert!(read("2026-01").unwrap() >= IDEMPOTENT_SINCE && read("unstable").unwrap() > IDEMPOTENT_SINCE);
        for text in ["", "2026", "2026-1", "2026-13", "2026-00", "26-04", "+026-04", "2026-04-01", "Unstable"]
        {
            assert_eq!(read(text), Err(InvalidApiVersion), "{text}");
        }
    }

    #[test]
    fn a_path_is_graphql_or_not() {
        assert!(is_graphql("/admin/api/2026-04/graphql.json?x=1"));
        assert!(is_graphql("/admin/api/graphql.json"));
        assert!(!is_graphql("/admin/api/2026-04/products.json?next=/graphql.json"));
        assert_eq!(of_path("/admin/api/graphql.json"), None);
        assert_eq!(of_path("/base/admin/api/unstable/shop.json"), Some(ApiVersion::Unstable));
    }
}
