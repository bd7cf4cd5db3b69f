//! Where the files of a provider may be. Its answers name their URLs, and must not have requests
//! sent to services inside the network, unless the provider is there itself.

use tokio::net::lookup_host;
use url::{Host, Url};

use super::CopyError;
use crate::public_address::is_public;

/// Refuses the address of a file inside the network, when the provider is not there.
///
/// # Errors
/// Without the URL, which may be a secret.
pub(super) async fn check_address(base_url: &str, url: &str) -> Result<(), CopyError> {
    if is_inside(url).await? && !is_inside(base_url).await? {
        return Err(CopyError::lasting("its address is not on the public internet, but its provider's is"));
    }
    Ok(())
}

/// Whether a URL leads to an address that is not public.
async fn is_inside(url: &str) -> Result<bool, CopyError> {
    let url = Url::parse(url).map_err(|_| CopyError::lasting("its address is not a URL"))?;
    let port = url.port_or_known_default().unwrap_or_default();
    match url.host() {
        None => Err(CopyError::lasting("its address names no host")),
        Some(Host::Ipv4(v4)) => Ok(!is_public(v4.into())),
        Some(Host::Ipv6(v6)) => Ok(!is_public(v6.into())),
        Some(Host::Domain(name)) => {
            let found = lookup_host((name, port)).await;
            let mut found = found.map_err(|_| CopyError::transient("its host was not found"))?;
            Ok(found.any(|address| !is_public(address.ip())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// DSP-20: an answer of a provider on the internet reads nothing inside the network.
    #[tokio::test]
    async fn dsp_20_files_are_where_their_provider_is() {
        let outside = "https://8.8.8.8/v1";
        for url in [
            "http://127.0.0.1:7400/v1/ledger",
            "http://localhost:7400/v1/ledger",
            "http://169.254.169.254/latest/meta-data",
            "http://[::1]/",
            "http://2130706433/",
        ] {
            let refused = check_address(outside, url).await.unwrap_err();
            assert!(!refused.is_transient && !refused.to_string().contains("7400"), "{url}: {refused}");
            assert_eq!(check_address("http://127.0.0.1:1/v1", url).await, Ok(()), "{url}");
        }
        assert_eq!(check_address(outside, "https://1.1.1.1/a.png").await, Ok(()));
        assert!(!check_address(outside, "/a.png").await.unwrap_err().is_transient);
        assert!(check_address(outside, "https://a.invalid/a.png").await.unwrap_err().is_transient);
    }
}
