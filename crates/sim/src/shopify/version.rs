//! Versions of the API: which one serves a call, and its rules. No version is ever refused for its
//! age: one that is too old silently falls forward, as at Shopify.

use std::fmt;
use std::str::FromStr;

/// A version, `2026-04`, or `unstable`, which is newer than all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    year: u16,
    month: u8,
}

/// The role of `@idempotent` in a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdempotencyRule {
    /// The directive does not exist.
    Unknown,
    /// It is honored where it is used.
    Optional,
    /// Some mutations are refused without it.
    Required,
}

/// The first version that has `@idempotent` and runs five bulk operations at once.
const JANUARY_2026: Version = Version { year: 2026, month: 1 };
/// The first version that requires `@idempotent`.
const APRIL_2026: Version = Version { year: 2026, month: 4 };
const UNSTABLE: Version = Version { year: u16::MAX, month: 12 };

impl Version {
    /// The version that serves anything older, by default.
    pub const OLDEST: Self = Self { year: 2025, month: 1 };

    /// Returns the version that responds when this one is requested.
    #[must_use]
    pub fn served(self, oldest: Self) -> Self {
        self.max(oldest)
    }

    /// Returns the role of `@idempotent` in this version.
    #[must_use]
    pub fn idempotency(self) -> IdempotencyRule {
        if self >= APRIL_2026 {
            IdempotencyRule::Required
        } else if self >= JANUARY_2026 {
            IdempotencyRule::Optional
        } else {
            IdempotencyRule::Unknown
        }
    }

    /// Returns how many bulk operations of one kind a shop runs at once.
    #[must_use]
    pub fn bulk_at_once(self) -> u64 {
        if self >= JANUARY_2026 { 5 } else { 1 }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == UNSTABLE {
            return f.write_str("unstable");
        }
        write!(f, "{:04}-{:02}", self.year, self.month)
    }
}

impl FromStr for Version {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not a version: use a quarter such as 2026-04, or unstable");
        if text == "unstable" {
            return Ok(UNSTABLE);
        }
        let (year, month) = text.split_once('-').ok_or_else(wrong)?;
        let digits = |text: &str, len| text.len() == len && text.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(year, 4) || !digits(month, 2) || !["01", "04", "07", "10"].contains(&month) {
            return Err(wrong());
        }
        Ok(Self { year: year.parse().map_err(|_| wrong())?, month: month.parse().map_err(|_| wrong())? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quarters_are_versions_and_nothing_else_is() {
        for text in ["2025-01", "2026-04", "2026-10", "unstable"] {
            assert_eq!(text.parse::<Version>().unwrap().to_string(), text);
        }
        for text in ["", "2026", "2026-4", "2026-02", "26-04", "2026-004", "+026-04", "latest"] {
            assert!(text.parse::<Version>().is_err(), "{text}");
        }
    }

    #[test]
    fn rules_come_with_their_version() {
        let of = |text: &str| {
            let version: Version = text.parse().unwrap();
            (version.idempotency(), version.bulk_at_once())
        };
        assert_eq!(of("2025-10"), (IdempotencyRule::Unknown, 1));
        assert_eq!(of("2026-01"), (IdempotencyRule::Optional, 5));
        assert_eq!(of("2026-04"), (IdempotencyRule::Required, 5));
        assert_eq!(of("unstable"), (IdempotencyRule::Required, 5));
    }

    #[test]
    fn what_is_too_old_falls_forward() {
        let served = |text: &str| text.parse::<Version>().unwrap().served(Version::OLDEST).to_string();
        assert_eq!(served("2023-07"), "2025-01");
        assert_eq!(served("2026-04"), "2026-04");
    }
}
