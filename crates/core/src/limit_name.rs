//! The names of limits: `upstream/limit`, or the upstream's name alone for its gate.

use std::fmt;
use std::sync::Arc;

/// The name of a limit, in its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitName<'a> {
    upstream: &'a str,
    limit: Option<&'a str>,
}

impl<'a> LimitName<'a> {
    /// The name of an upstream's limit.
    #[must_use]
    pub const fn new(upstream: &'a str, limit: &'a str) -> Self {
        Self { upstream, limit: Some(limit) }
    }

    /// Parses a name. The name of an upstream has no slash, so everything behind the first one
    /// belongs to the limit.
    #[must_use]
    pub fn parse(name: &'a str) -> Self {
        match name.split_once('/') {
            Some((upstream, limit)) => Self { upstream, limit: Some(limit) },
            None => Self { upstream: name, limit: None },
        }
    }

    /// The upstream that it belongs to.
    #[must_use]
    pub const fn upstream(self) -> &'a str {
        self.upstream
    }

    /// The name within its upstream; `None` for the gate.
    #[must_use]
    pub const fn limit(self) -> Option<&'a str> {
        self.limit
    }
}

impl fmt::Display for LimitName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.upstream)?;
        self.limit.map_or(Ok(()), |limit| write!(f, "/{limit}"))
    }
}

impl From<LimitName<'_>> for Arc<str> {
    fn from(name: LimitName<'_>) -> Self {
        name.to_string().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_parsed_as_it_was_built() {
        for (upstream, limit) in [("echo", "requests"), ("bot", "GET /channels/{id}/messages 7"), ("a", "")] {
            let name = LimitName::new(upstream, limit);
            assert_eq!(LimitName::parse(&name.to_string()), name);
            assert_eq!(name.to_string(), format!("{upstream}/{limit}"));
        }
        let gate = LimitName::parse("echo");
        assert_eq!((gate.upstream(), gate.limit(), gate.to_string()), ("echo", None, "echo".to_owned()));
    }
}
