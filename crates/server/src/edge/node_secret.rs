//! The shared secret of the nodes: the configured one, or one that the first node generates and the
//! store keeps. So only a process that can read the configuration or the store can call as a node.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, HeaderValue};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tidegate_core::fingerprint::hex;
use tidegate_store::Store;
use tidegate_store::upkeep::SECRET_LEN;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::error::{Error, ErrorCode, Result};

/// The shortest time between two reads of the store, however many calls with a wrong secret come.
const LOOK_GAP: Duration = Duration::from_secs(1);

/// The secret that a node sends and checks.
pub(crate) struct NodeSecret {
    header: RwLock<HeaderValue>,
    /// The stored secret; `None` if it is configured.
    stored: Option<StoredSecret>,
}

struct StoredSecret {
    store: Arc<dyn Store>,
    cached: Mutex<CachedSecret>,
}

/// The secret in the store when it was last read, and when that was.
struct CachedSecret {
    secret: [u8; SECRET_LEN],
    at: Instant,
}

impl NodeSecret {
    /// Uses the configured secret.
    ///
    /// # Errors
    /// When it cannot be sent in a header.
    pub(crate) fn configured(secret: &str) -> Result<Self> {
        Ok(Self { header: RwLock::new(bearer_header(secret)?), stored: None })
    }

    /// Uses the secret in the store; generates one if there is none yet.
    ///
    /// # Errors
    /// When the store cannot be used, or the system has no randomness.
    pub(crate) async fn from_store(store: Arc<dyn Store>) -> Result<Self> {
        let secret = store.ensure_secret(random()?).await?;
        let seen = Mutex::new(CachedSecret { secret, at: Instant::now() });
        Ok(Self {
            header: RwLock::new(bearer_header(&hex(&secret))?),
            stored: Some(StoredSecret { store, cached: seen }),
        })
    }

    /// The header that a node sends.
    pub(crate) fn header(&self) -> HeaderValue {
        self.header.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether it is configured. Only a configured secret is valid for calls from other machines.
    pub(crate) const fn is_configured(&self) -> bool {
        self.stored.is_none()
    }

    /// Whether a caller sent it. A store that came back empty may have another secret by now, so on
    /// a mismatch this node reads the store again.
    pub(crate) async fn is_presented_in(&self, headers: &HeaderMap) -> bool {
        let Some(given) = headers.get(AUTHORIZATION) else { return false };
        is_same(given, &self.header()) || {
            self.refresh().await;
            is_same(given, &self.header())
        }
    }

    /// Reads the secret from the store, and stores this node's if there is none.
    pub(crate) async fn refresh(&self) {
        let Some(kept) = &self.stored else { return };
        // Another task is reading already.
        let Ok(mut seen) = kept.cached.try_lock() else { return };
        if seen.at.elapsed() < LOOK_GAP {
            return;
        }
        seen.at = Instant::now();
        match kept.store.ensure_secret(seen.secret).await {
            Ok(secret) if secret != seen.secret => {
                if let Ok(header) = bearer_header(&hex(&secret)) {
                    tracing::warn!("the store has another node secret; using it from now on");
                    *self.header.write().unwrap_or_else(PoisonError::into_inner) = header;
                    seen.secret = secret;
                }
            }
            Ok(_) => {}
            Err(error) => tracing::debug!(%error, "cannot read the node secret"),
        }
    }
}

/// A secret to offer to a store that has none yet.
///
/// # Errors
/// When the system has no randomness.
pub(crate) fn random() -> Result<[u8; SECRET_LEN]> {
    let mut offered = [0; SECRET_LEN];
    getrandom::fill(&mut offered).map_err(|error| {
        Error::new(ErrorCode::Internal, format!("The system has no randomness: {error}."))
    })?;
    Ok(offered)
}

fn bearer_header(secret: &str) -> Result<HeaderValue> {
    let wrong = |_| Error::new(ErrorCode::BadConfig, "The secret of the nodes must be plain ASCII.");
    let mut value = HeaderValue::from_str(&format!("Bearer {secret}")).map_err(wrong)?;
    value.set_sensitive(true);
    Ok(value)
}

/// Compares in constant time, by hash.
fn is_same(given: &HeaderValue, kept: &HeaderValue) -> bool {
    let hash = |value: &HeaderValue| <[u8; 32]>::from(Sha256::digest(value.as_bytes()));
    hash(given).ct_eq(&hash(kept)).into()
}

#[cfg(test)]
mod tests;
