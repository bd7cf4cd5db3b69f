//! Where idempotency keys are kept, for the server's own routes and for the proxy: in a store, their answers sealed when keys to
//! seal with are configured.

use std::sync::Arc;

use tidegate::{Error, ErrorCode, Result};
use tidegate_idempotency::{KeyStore, SealingKeys};
use tidegate_store::Store;

use crate::config::SealKeys;

/// # Errors
/// When there is no sealing with the keys that are configured.
pub(crate) fn open(sealing: Option<&SealKeys>, store: Arc<dyn Store>) -> Result<KeyStore> {
    let Some(SealKeys { variable, keys }) = sealing else { return Ok(KeyStore::new(store)) };
    let seal = SealingKeys::parse(variable, keys.reveal())
        .map_err(|bad| Error::new(ErrorCode::BadConfig, format!("Answers cannot be sealed: {bad}.")))?;
    Ok(KeyStore::sealed(store, seal))
}
