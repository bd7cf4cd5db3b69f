//! How connections to upstreams are encrypted: by one provider of cryptography, and with the
//! certificates that the system trusts. Nothing here opens a connection.

use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt as _;

/// The configuration for `https`, or for connections that are never encrypted: those need no
/// certificates, so none are looked for on machines that have none.
pub(super) fn config(is_plain: bool) -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(if is_plain {
        builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth()
    } else {
        builder.with_platform_verifier()?.with_no_client_auth()
    })
}
