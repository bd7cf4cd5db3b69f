//! Parses the URL of a Redis server. A password in it never appears in a message.

use std::fmt;

use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo, ProtocolVersion};
use tidegate_store::{Error, Result, StoreErrorKind};

/// The default prefix of keys.
const PREFIX_DEFAULT: &str = "tg";
/// The longest prefix, in bytes.
const PREFIX_LEN_MAX: usize = 64;
/// The most replicas that an append may wait for.
const WAIT_MAX: u32 = 16;

/// A server or the nodes of a cluster, and how they are used.
pub(crate) struct Address {
    /// One server, or some nodes of a cluster.
    pub(crate) nodes: Vec<ConnectionInfo>,
    pub(crate) is_cluster: bool,
    pub(crate) prefix: String,
    /// The replicas that must have an append before it is acknowledged.
    pub(crate) wait: u32,
}

/// The query parameters of a URL.
struct UrlQuery {
    is_cluster: bool,
    prefix: String,
    wait: u32,
}

impl Address {
    pub(crate) fn parse(url: &str) -> Result<Self> {
        let (start, rest) = url.split_once("://").ok_or_else(no_redis)?;
        let (scheme, named_cluster) = match start {
            "redis" | "rediss" => (start, false),
            "redis+cluster" => ("redis", true),
            "rediss+cluster" => ("rediss", true),
            _ => return Err(no_redis()),
        };
        let (body, query) = rest.split_once('?').unwrap_or((rest, ""));
        let query = UrlQuery::parse(query)?;
        let (login, hosts) = match body.rsplit_once('@') {
            Some((login, hosts)) => (format!("{login}@"), hosts),
            None => (String::new(), body),
        };
        let (hosts, path) = hosts.split_once('/').unwrap_or((hosts, ""));
        let is_cluster = named_cluster || query.is_cluster;
        let mut nodes = Vec::new();
        for host in hosts.split(',') {
            let node = format!("{scheme}://{login}{host}/{path}");
            nodes.push(node_of(&node)?);
        }
        if !is_cluster && nodes.len() > 1 {
            return Err(invalid("a Redis URL with several servers must begin with redis+cluster://"));
        }
        if is_cluster && nodes.iter().any(|node| node.redis_settings().db() != 0) {
            return Err(invalid("a Redis Cluster has no database but 0"));
        }
        Ok(Self { nodes, is_cluster, prefix: query.prefix, wait: query.wait })
    }

    pub(crate) fn is_tls(&self) -> bool {
        self.nodes.iter().any(|node| matches!(node.addr(), ConnectionAddr::TcpTls { .. }))
    }
}

impl UrlQuery {
    fn parse(query: &str) -> Result<Self> {
        let mut found = Self { is_cluster: false, prefix: PREFIX_DEFAULT.into(), wait: 0 };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=').unwrap_or((pair, "")) {
                ("cluster", "true") => found.is_cluster = true,
                ("cluster", "false") => found.is_cluster = false,
                ("cluster", _) => return Err(invalid("cluster in a Redis URL is true or false")),
                ("prefix", prefix) => found.prefix = prefix_of(prefix)?,
                ("wait", wait) => found.wait = wait_of(wait)?,
                ("protocol", _) => {}
                // A misspelt name must not lead into another store.
                _ => {
                    return Err(invalid(
                        "a Redis URL has the query parameters prefix, wait and cluster, and no others",
                    ));
                }
            }
        }
        Ok(found)
    }
}

/// Shows the address without secrets.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_tls() { "rediss" } else { "redis" })?;
        f.write_str(if self.is_cluster { "+cluster://" } else { "://" })?;
        for (place, node) in self.nodes.iter().enumerate() {
            let comma = if place == 0 { "" } else { "," };
            match node.addr() {
                ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
                    write!(f, "{comma}{host}:{port}")?;
                }
                other => write!(f, "{comma}{other}")?,
            }
        }
        match self.nodes.first().map_or(0, |node| node.redis_settings().db()) {
            0 => Ok(()),
            db => write!(f, "/{db}"),
        }
    }
}

/// The driver's own error may repeat the URL, so it is not passed on.
fn node_of(url: &str) -> Result<ConnectionInfo> {
    let info = url.into_connection_info().map_err(|_| no_redis())?;
    let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
    Ok(info.set_redis_settings(settings))
}

fn prefix_of(prefix: &str) -> Result<String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.:".contains(&byte);
    if prefix.is_empty() || prefix.len() > PREFIX_LEN_MAX || !prefix.bytes().all(is_plain) {
        let message = format!("prefix in a Redis URL is 1 to {PREFIX_LEN_MAX} letters, digits and _ - . :");
        return Err(Error::new(StoreErrorKind::Invalid, message));
    }
    Ok(prefix.to_owned())
}

fn wait_of(wait: &str) -> Result<u32> {
    wait.parse().ok().filter(|replicas| *replicas <= WAIT_MAX).ok_or_else(|| {
        Error::new(
            StoreErrorKind::Invalid,
            format!("wait in a Redis URL is a number of replicas, at most {WAIT_MAX}"),
        )
    })
}

fn no_redis() -> Error {
    invalid(
        "a Redis URL has the form redis://HOST:PORT/DB, rediss://… or redis+cluster://HOST:PORT,HOST:PORT",
    )
}

fn invalid(message: &str) -> Error {
    Error::new(StoreErrorKind::Invalid, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(url: &str) -> Address {
        Address::parse(url).unwrap()
    }

    #[test]
    fn urls_name_servers_clusters_prefixes_and_replicas() {
        let plain = parsed("redis://127.0.0.1:7000/2?prefix=shop&wait=1");
        assert_eq!((plain.to_string().as_str(), plain.wait), ("redis://127.0.0.1:7000/2", 1));
        assert_eq!((plain.prefix.as_str(), plain.is_cluster), ("shop", false));
        let cluster = parsed("redis+cluster://a:1,b:2");
        assert_eq!((cluster.nodes.len(), cluster.to_string().as_str()), (2, "redis+cluster://a:1,b:2"));
        assert!(parsed("redis://a:1?cluster=true").is_cluster);
        assert_eq!(parsed("rediss://a").to_string(), "rediss://a:6379");
    }

    #[test]
    fn a_password_is_in_no_words() {
        let secret = "s3cr3t!";
        assert!(!parsed(&format!("redis://user:{secret}@a:1,b:2?cluster=true")).to_string().contains(secret));
        for bad in [
            "redis://u:s3cr3t!@a:x",
            "redis://u:s3cr3t!@a:1,b:2",
            "http://u:s3cr3t!@a:1",
            "redis://u:s3cr3t!@a:1?wait=x",
        ] {
            let error = Address::parse(bad).err().unwrap();
            assert_eq!(error.kind(), StoreErrorKind::Invalid, "{bad}");
            assert!(!error.to_string().contains(secret), "{error}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for bad in [
            "redis://a:1?prefix={x}",
            "redis://a:1?prefix=",
            "redis+cluster://a:1/3",
            "redis://a?cluster=perhaps",
            "redis://a?prefx=tg",
            "a:1",
        ] {
            assert!(Address::parse(bad).is_err(), "{bad}");
        }
    }
}
