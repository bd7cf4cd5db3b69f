//! Opens the bus that a URL names.

use std::sync::Arc;

use tidegate_backend::redis::RedisBus;
use tidegate_bus::{Bus, BusError, BusErrorKind, InProcessBus};
use tidegate_bus_nats::NatsBus;

use crate::error::{Error, ErrorCode, Result};

/// A kind of bus, as a URL names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BusScheme {
    /// Within this process.
    InProcess,
    Redis,
    Nats,
}

impl BusScheme {
    /// The kind of bus that a URL names; `None` for another URL.
    pub(crate) fn of(url: &str) -> Option<Self> {
        if url == "in-process" {
            return Some(Self::InProcess);
        }
        match url.split_once("://")?.0 {
            "redis" | "rediss" | "redis+cluster" | "rediss+cluster" => Some(Self::Redis),
            "nats" | "tls" => Some(Self::Nats),
            _ => None,
        }
    }

    /// Whether it reaches other processes.
    pub(crate) const fn is_shared(self) -> bool {
        !matches!(self, Self::InProcess)
    }
}

/// Connects to the bus that a URL names.
///
/// # Errors
/// `BadConfig` when the URL is invalid or the server does not let this process in,
/// `StoreUnavailable` when it is unreachable.
pub(crate) async fn open(url: &str) -> Result<Arc<dyn Bus>> {
    let opened: std::result::Result<Arc<dyn Bus>, BusError> = match BusScheme::of(url) {
        Some(BusScheme::InProcess) => Ok(Arc::new(InProcessBus::new())),
        Some(BusScheme::Redis) => RedisBus::connect(url).await.map(|bus| Arc::new(bus) as Arc<dyn Bus>),
        Some(BusScheme::Nats) => NatsBus::connect(url).await.map(|bus| Arc::new(bus) as Arc<dyn Bus>),
        None => Err(BusError::new(BusErrorKind::Invalid, "the URL names no bus")),
    };
    opened.map_err(|error| {
        let code = match error.kind() {
            BusErrorKind::Unavailable => ErrorCode::StoreUnavailable,
            _ => ErrorCode::BadConfig,
        };
        Error::new(code, format!("The bus cannot be opened: {error}.")).with_source(error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HYD-12: what cannot be used is an error of the configuration, and no password is shown.
    #[tokio::test]
    async fn hyd_12_a_bus_that_cannot_be_opened_is_told_without_its_secret() {
        for (url, code) in [
            ("redis://me:s3cret@127.0.0.1:1", ErrorCode::StoreUnavailable),
            ("nats://me:s3cret@127.0.0.1:1", ErrorCode::StoreUnavailable),
            ("redis://127.0.0.1:1?prefx=s3cret", ErrorCode::BadConfig),
            ("amqp://me:s3cret@host", ErrorCode::BadConfig),
        ] {
            let error = open(url).await.err().unwrap();
            assert_eq!(error.code, code, "{url}: {}", error.message);
            assert!(!error.message.contains("s3cret"), "{}", error.message);
        }
    }
}
