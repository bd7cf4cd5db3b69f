//! The URL that a user names for notifications: `http` or `https`, a host on the internet, and no
//! credential, which would be stored and shown with it.

use std::net::IpAddr;

use tidegate_upstream::FieldRefusal;
use url::{Host, Url};

use crate::public_address::is_public;

/// Longest URL, in bytes.
const URL_LEN_MAX: usize = 2_048;

/// Parses the URL of a receiver. Names are resolved only when something is sent, and checked again
/// then.
///
/// # Errors
/// Names the field `notify_url`. The message does not repeat the URL.
pub fn check_target(url: &str, allows_private: bool) -> Result<Url, FieldRefusal> {
    let refuse = |message: &str| FieldRefusal::new("notify_url", message);
    if url.len() > URL_LEN_MAX {
        return Err(refuse("It is longer than 2048 bytes."));
    }
    let url = Url::parse(url).map_err(|error| refuse(&format!("It is not a URL: {error}.")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(refuse("It must start with http:// or https://."));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(refuse("It holds a user or a password; verify the signature of notifications instead."));
    }
    if url.fragment().is_some() {
        return Err(refuse("It has a fragment, which is never sent."));
    }
    let is_usable = match url.host() {
        None => return Err(refuse("It names no host.")),
        Some(_) if allows_private => true,
        Some(Host::Ipv4(v4)) => is_public(IpAddr::V4(v4)),
        Some(Host::Ipv6(v6)) => is_public(IpAddr::V6(v6)),
        Some(Host::Domain(name)) => !is_local_name(name),
    };
    if is_usable { Ok(url) } else { Err(refuse("Its host is not on the public internet.")) }
}

/// Whether a name means this machine.
fn is_local_name(name: &str) -> bool {
    let name = name.trim_end_matches('.');
    name == "localhost" || name.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_public_url_without_a_credential() {
        for url in
            ["https://app.example/hook?a=1", "http://app.example:8080", "https://8.8.8.8/", "HTTPS://A.b"]
        {
            assert!(check_target(url, false).is_ok(), "{url}");
        }
        let long = format!("https://app.example/{}", "x".repeat(URL_LEN_MAX));
        for url in [
            "",
            "app.example",
            "/hook",
            "ftp://app.example",
            "file:///etc/passwd",
            "gopher://a",
            "https://",
            "https://u@app.example",
            "https://u:hunter2@app.example",
            "https://app.example/#a",
            &long,
        ] {
            let refused = check_target(url, true).unwrap_err();
            assert!(refused.field == "notify_url" && !refused.message.contains("hunter2"), "{refused}");
        }
    }

    /// Every spelling of a private address is one.
    #[test]
    fn a_private_target_must_be_allowed() {
        for url in [
            "http://127.0.0.1:9",
            "http://2130706433/",
            "http://0x7f.1/",
            "http://0177.0.0.1/",
            "http://127.1",
            "http://[::1]/",
            "http://[::ffff:10.0.0.1]/",
            "http://localhost",
            "http://LOCALHOST.",
            "http://0/",
            "http://a.localhost",
            "http://169.254.169.254/latest/meta-data",
            "http://192.168.0.1",
        ] {
            assert!(check_target(url, false).is_err(), "{url}");
            assert!(check_target(url, true).is_ok(), "{url}");
        }
    }
}
