//! Opens the store of idempotency keys, for the server's own routes and for the proxy. Responses
//! are sealed if sealing keys are configured.

use std::sync::Arc;

use tidegate_idempotency::{KeyStore, SealingKeys};
use tidegate_store::Store;

use crate::config::SealKeys;
use crate::error::{Error, ErrorCode, Result};

/// # Errors
/// When the configured sealing keys cannot be used.
pub(crate) fn open(sealing: Option<&SealKeys>, store: Arc<dyn Store>) -> Result<KeyStore> {
    let Some(SealKeys { variable, keys }) = sealing else { return Ok(KeyStore::new(store)) };
    let seal = SealingKeys::parse(variable, keys.reveal())
        .map_err(|bad| Error::new(ErrorCode::BadConfig, format!("Responses cannot be sealed: {bad}.")))?;
    Ok(KeyStore::sealed(store, seal))
}
