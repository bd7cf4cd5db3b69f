//! The secret that nodes know each other by: the configured one, or else one that the first node makes and the store
//! keeps. So nobody calls as a node who can neither read the configuration nor the store.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, HeaderValue};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tidegate::{Error, ErrorCode, Result};
use tidegate_core::fingerprint::hex;
use tidegate_store::Store;
use tidegate_store::upkeep::SECRET_LEN;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// Looks at the store are no closer together than this, however many strangers ask for one.
const LOOK_GAP: Duration = Duration::from_secs(1);

/// What a node says to be let in, and is asked for.
pub(crate) struct NodeSecret {
    header: RwLock<HeaderValue>,
    /// Where it is kept; nowhere when it is configured.
    stored: Option<StoredSecret>,
}

struct StoredSecret {
    store: Arc<dyn Store>,
    cached: Mutex<CachedSecret>,
}

/// What the store kept, and when.
struct CachedSecret {
    secret: [u8; SECRET_LEN],
    at: Instant,
}

impl NodeSecret {
    /// The configured one.
    ///
    /// # Errors
    /// When it cannot be sent.
    pub(crate) fn configured(secret: &str) -> Result<Self> {
        Ok(Self { header: RwLock::new(bearer_header(secret)?), stored: None })
    }

    /// The one that the store keeps; a new one when it keeps none yet.
    ///
    /// # Errors
    /// When the store cannot be used, or the system has no randomness to give.
    pub(crate) async fn from_store(store: Arc<dyn Store>) -> Result<Self> {
        let mut offered = [0; SECRET_LEN];
        getrandom::fill(&mut offered)
            .map_err(|error| Error::new(ErrorCode::Internal, format!("There is no randomness: {error}.")))?;
        let secret = store.ensure_secret(offered).await?;
        let seen = Mutex::new(CachedSecret { secret, at: Instant::now() });
        Ok(Self {
            header: RwLock::new(bearer_header(&hex(&secret))?),
            stored: Some(StoredSecret { store, cached: seen }),
        })
    }

    /// What a node sends.
    pub(crate) fn header(&self) -> HeaderValue {
        self.header.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether it is a configured one. Only such a secret is good for calls from other machines.
    pub(crate) const fn is_configured(&self) -> bool {
        self.stored.is_none()
    }

    /// Whether a caller knows it. A store that came back empty may keep another one by now, so a stranger has this node
    /// look there.
    pub(crate) async fn is_presented_in(&self, headers: &HeaderMap) -> bool {
        let Some(given) = headers.get(AUTHORIZATION) else { return false };
        is_same(given, &self.header()) || {
            self.refresh().await;
            is_same(given, &self.header())
        }
    }

    /// Looks what the store keeps now, and gives it this node's where it keeps none.
    pub(crate) async fn refresh(&self) {
        let Some(kept) = &self.stored else { return };
        // Somebody is looking already.
        let Ok(mut seen) = kept.cached.try_lock() else { return };
        if seen.at.elapsed() < LOOK_GAP {
            return;
        }
        seen.at = Instant::now();
        match kept.store.ensure_secret(seen.secret).await {
            Ok(secret) if secret != seen.secret => {
                if let Ok(header) = bearer_header(&hex(&secret)) {
                    tracing::warn!("the store keeps another secret of the nodes; it is used from now on");
                    *self.header.write().unwrap_or_else(PoisonError::into_inner) = header;
                    seen.secret = secret;
                }
            }
            Ok(_) => {}
            Err(error) => tracing::debug!(%error, "the secret of the nodes cannot be looked up"),
        }
    }
}

fn bearer_header(secret: &str) -> Result<HeaderValue> {
    let wrong = |_| Error::new(ErrorCode::BadConfig, "The secret of the nodes must be plain ASCII.");
    let mut value = HeaderValue::from_str(&format!("Bearer {secret}")).map_err(wrong)?;
    value.set_sensitive(true);
    Ok(value)
}

/// In constant time, by hash.
fn is_same(given: &HeaderValue, kept: &HeaderValue) -> bool {
    let hash = |value: &HeaderValue| <[u8; 32]>::from(Sha256::digest(value.as_bytes()));
    hash(given).ct_eq(&hash(kept)).into()
}

#[cfg(test)]
mod tests;
