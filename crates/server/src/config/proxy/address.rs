//! The two addresses that the proxy listens on, which must differ from each other and from the
//! upstream's.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use tidegate_idempotency::proxy::ProxyUpstream;

use crate::config::problem::ConfigProblem;
use crate::config::section::Section;
use crate::config::value::LocatedValue;

/// Parses an address and a port: `127.0.0.1:7402`, `[::1]:7402` or `localhost:7402`, which means
/// the first of the two.
///
/// # Errors
/// A message that describes the syntax.
pub fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let local = || {
        let (host, port) = text.rsplit_once(':')?;
        let port = port.parse().ok().filter(|_| host.eq_ignore_ascii_case("localhost"))?;
        Some(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port))
    };
    let wrong = || "It must be an address and a port, such as 127.0.0.1:7402 or localhost:7402.".to_owned();
    text.parse().ok().or_else(local).ok_or_else(wrong)
}

pub(super) fn read(
    section: &mut Section<'_>,
    key: &'static str,
    (flag, said): (&str, Option<SocketAddr>),
    problems: &mut Vec<ConfigProblem>,
) -> Option<LocatedValue<SocketAddr>> {
    let found = section.text(key, problems)?;
    let found = found.override_by_flag(flag, said.map(|said| said.to_string()));
    match parse_address(&found.value) {
        Ok(value) => Some(LocatedValue { value, at: found.at, key_path: found.key_path }),
        Err(message) => {
            problems.push(found.problem(message));
            None
        }
    }
}

/// Reports addresses that are used for two things.
pub(super) fn check(
    listen: Option<&LocatedValue<SocketAddr>>,
    admin: Option<&LocatedValue<SocketAddr>>,
    upstream: Option<&LocatedValue<ProxyUpstream>>,
    problems: &mut Vec<ConfigProblem>,
) {
    if let (Some(listen), Some(admin)) = (listen, admin)
        && is_same(listen.value, admin.value)
    {
        let message = format!(
            "Requests and operators need an address each: --listen (listen in the file) is {} and --admin \
             (admin_listen) is {}.",
            listen.value, admin.value
        );
        problems.push(admin.problem(message));
    }
    let Some(upstream) = upstream else { return };
    for (found, what) in [(listen, "takes requests (--listen)"), (admin, "is looked after (--admin)")] {
        if let Some(found) = found.filter(|found| upstream.value.is_at(found.value)) {
            let message = format!(
                "{} leads to the proxy itself, which {what} at {}. Name the service behind it.",
                upstream.value, found.value
            );
            problems.push(upstream.problem(message));
        }
    }
}

/// Whether two addresses are the same. Port 0 is another port each time.
fn is_same(one: SocketAddr, other: SocketAddr) -> bool {
    let is_any = |addr: SocketAddr| addr.ip().is_unspecified();
    let meet = one.ip() == other.ip() || one.is_ipv4() == other.is_ipv4() && (is_any(one) || is_any(other));
    one.port() != 0 && one.port() == other.port() && meet
}
