//! Parses the URL of NATS servers and connects to them. A password in it never appears in a
//! message.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use async_nats::{Client, ConnectErrorKind, ConnectOptions, ServerAddr};
use percent_encoding::percent_decode_str;
use tidegate_bus::{BusError, BusErrorKind};
use tidegate_core::backoff::Backoff;
use tidegate_core::bounds::BUS_QUEUE_LEN_MAX;

use crate::link::Link;

/// How often a connection is checked; the driver drops it when two checks are unanswered.
const PING_INTERVAL: Duration = Duration::from_secs(5);
/// The timeout for establishing a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The waits between attempts to reconnect.
const RECONNECT: Backoff =
    Backoff { base: Duration::from_millis(50), ceiling: Duration::from_secs(2), jitter_percent: 50 };

/// Connects, and reconnects from then on. What happens to the connection is reported to the link.
pub(crate) async fn connect(url: &str, link: &Arc<Link>) -> Result<Client, BusError> {
    let servers = servers(url)?;
    provide_cryptography();
    let events = Arc::clone(link);
    let options = credentials(&servers)?
        .name("tidegate")
        .connection_timeout(CONNECT_TIMEOUT)
        .ping_interval(PING_INTERVAL)
        .subscription_capacity(BUS_QUEUE_LEN_MAX)
        .reconnect_delay_callback(reconnect_delay)
        .event_callback(move |event| {
            events.handle(event);
            std::future::ready(())
        });
    async_nats::connect_with_options(servers, options).await.map_err(|error| {
        let kind = match error.kind() {
            ConnectErrorKind::ServerParse => BusErrorKind::Invalid,
            ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => {
                BusErrorKind::Denied
            }
            _ => BusErrorKind::Unavailable,
        };
        BusError::new(kind, format!("could not connect to NATS: {error}"))
    })
}

/// The driver's own error may repeat the URL, so it is not passed on.
fn servers(url: &str) -> Result<Vec<ServerAddr>, BusError> {
    let invalid = || {
        BusError::new(
            BusErrorKind::Invalid,
            "a NATS URL has the form nats://HOST:PORT or tls://…, also several with commas",
        )
    };
    let parse = |url: &str| {
        let has_scheme = url.starts_with("nats://") || url.starts_with("tls://");
        url.parse::<ServerAddr>().ok().filter(|_| has_scheme).ok_or_else(invalid)
    };
    url.split(',').map(parse).collect()
}

/// The credentials of the first server that has some: the driver ignores those of a URL.
fn credentials(servers: &[ServerAddr]) -> Result<ConnectOptions, BusError> {
    let decoded = |text: &str| {
        let plain = percent_decode_str(text).decode_utf8();
        plain.map(std::borrow::Cow::into_owned).map_err(|_| {
            BusError::new(BusErrorKind::Invalid, "the user or password in a NATS URL is not UTF-8")
        })
    };
    let options = ConnectOptions::new();
    let Some((user, password)) =
        servers.iter().find_map(|server| Some((server.username()?, server.password())))
    else {
        return Ok(options);
    };
    Ok(match password {
        Some(password) => options.user_and_password(decoded(user)?, decoded(password)?),
        None => options.token(decoded(user)?),
    })
}

fn reconnect_delay(attempt: usize) -> Duration {
    let chance = RandomState::new().build_hasher().finish() as u32;
    match u32::try_from(attempt).unwrap_or(u32::MAX) {
        0 | 1 => Duration::ZERO,
        failures => RECONNECT.delay(failures - 1, chance),
    }
}

/// Installs a cryptography provider: the driver uses that of the process, and panics when there is
/// none or more than one.
fn provide_cryptography() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Another caller may have been quicker: then theirs is used.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_one_server_or_several() {
        assert_eq!(servers("nats://a:1,tls://b").unwrap().len(), 2);
        for bad in ["", "a:1", "http://s3cr3t@a", "nats://u:s3cr3t@a:x", "redis://a"] {
            let error = servers(bad).unwrap_err();
            assert_eq!(error.kind(), BusErrorKind::Invalid, "{bad}");
            assert!(!error.to_string().contains("s3cr3t"), "{error}");
        }
    }

    #[test]
    fn waits_between_attempts_grow_to_a_ceiling() {
        assert_eq!(reconnect_delay(1), Duration::ZERO);
        assert!(reconnect_delay(2) <= Duration::from_millis(75));
        let longest = reconnect_delay(1_000);
        assert!(longest >= Duration::from_secs(1) && longest <= Duration::from_secs(3), "{longest:?}");
    }
}
