//! Where idempotency keys are kept, for the server's own routes and for the proxy: in a store, their answers sealed when keys to
//! seal with are configured.

use std::sync::Arc;

use tidegate::{Code, Error, Result};
use tidegate_idempotency::{Gate, Seal};
use tidegate_store::Store;

use crate::config::Sealing;

/// # Errors
/// When there is no sealing with the keys that are configured.
pub(crate) fn open(sealing: Option<&Sealing>, store: Arc<dyn Store>) -> Result<Gate> {
    let Some(Sealing { variable, keys }) = sealing else { return Ok(Gate::new(store)) };
    let seal = Seal::read(variable, keys.reveal())
        .map_err(|bad| Error::new(Code::BadConfig, format!("Answers cannot be sealed: {bad}.")))?;
    Ok(Gate::sealed(store, seal))
}
