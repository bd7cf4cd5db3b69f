//! Where peers would run, derived from a store's URL. The URL itself may contain a password and is
//! never shown here.

use std::fmt;

/// The kind of server a store is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StoreSite {
    Disk,
    Memory,
    Redis,
    RedisCluster,
    Postgres,
}

impl StoreSite {
    pub(super) fn of(store: &str) -> Self {
        let (place, params) = store.split_once('?').unwrap_or((store, ""));
        match place.split(':').next().unwrap_or_default() {
            "redis" | "rediss" if !params.split('&').any(|param| param == "cluster=true") => Self::Redis,
            "redis" | "rediss" | "redis+cluster" | "rediss+cluster" => Self::RedisCluster,
            "postgres" | "postgresql" => Self::Postgres,
            "memory" => Self::Memory,
            _ => Self::Disk,
        }
    }

    /// Returns the URL form of such a store.
    pub(super) const fn url(self) -> &'static str {
        match self {
            Self::Disk => "file:DIR",
            Self::Memory => "memory:",
            Self::Redis => "redis://…",
            Self::RedisCluster => "redis+cluster://…",
            Self::Postgres => "postgres://…",
        }
    }
}

impl fmt::Display for StoreSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Disk => "a directory",
            Self::Memory => "memory",
            Self::Redis => "one Redis server",
            Self::RedisCluster => "a Redis Cluster",
            Self::Postgres => "PostgreSQL",
        })
    }
}

/// Returns a store's URL without our own parameters, which a peer's driver would reject.
pub(crate) fn url_for_peers(store: &str) -> String {
    let (place, params) = store.split_once('?').unwrap_or((store, ""));
    let ours = ["schema", "prefix", "wait", "cluster", "protocol"];
    let is_theirs =
        |param: &&str| !param.is_empty() && !ours.contains(&param.split('=').next().unwrap_or_default());
    let theirs: Vec<_> = params.split('&').filter(is_theirs).collect();
    if theirs.is_empty() { place.to_owned() } else { format!("{place}?{}", theirs.join("&")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_not_told_what_is_ours() {
        let table = [
            ("redis://h:1/2?prefix=x&wait=1", "redis://h:1/2"),
            ("postgres://me:a@h/d?schema=x&sslmode=disable", "postgres://me:a@h/d?sslmode=disable"),
            ("postgres://me@h/d?schema=x", "postgres://me@h/d"),
            ("redis://h", "redis://h"),
        ];
        for (store, expected) in table {
            assert_eq!(url_for_peers(store), expected);
        }
    }
}
