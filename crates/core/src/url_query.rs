//! Secrets in URLs, in their queries and before their hosts, which are masked before a URL is
//! stored.

use std::borrow::Cow;

use crate::credential::{is_credential_name, is_credential_value};
use crate::masking::MASK;

/// Words in the name of a query parameter that mark a secret there, besides those of headers.
const SECRET_PARAMETER_WORDS: [&str; 5] = ["code", "hmac", "sig", "signature", "ticket"];

/// Parameters of paging, which a later request needs.
const PAGING_PARAMETERS: [&str; 9] = [
    "continuation-token",
    "continuation_token",
    "continuationtoken",
    "next_token",
    "nexttoken",
    "page_token",
    "pagetoken",
    "skiptoken",
    "sync_token",
];

/// Replaces the secrets in the URLs that a text has, such as the value of `Location` or `Link`.
#[must_use]
pub fn mask_urls(text: &str) -> Cow<'_, str> {
    match mask_passwords(text) {
        Cow::Borrowed(text) => mask_queries(text),
        Cow::Owned(text) => Cow::Owned(mask_queries(&text).into_owned()),
    }
}

/// Replaces passwords before a host, as in `https://user:password@host`.
fn mask_passwords(text: &str) -> Cow<'_, str> {
    if !text.contains('@') || !text.contains("://") {
        return Cow::Borrowed(text);
    }
    let mut masked = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        masked.push_str(before);
        let end = after.find(|c: char| c.is_whitespace() || "/?#<>\"'\\".contains(c)).unwrap_or(after.len());
        let (authority, later) = after.split_at(end);
        match authority.rsplit_once('@') {
            Some((user, host)) => masked.extend([&*mask_user(user), "@", host]),
            None => masked.push_str(authority),
        }
        rest = later;
    }
    masked.push_str(rest);
    Cow::Owned(masked)
}

/// A user without a password. One alone may be a token.
fn mask_user(user: &str) -> Cow<'_, str> {
    match user.split_once(':') {
        Some((name, _)) if !is_credential_value(name.as_bytes()) => format!("{name}:{MASK}").into(),
        None if user == "git" => user.into(),
        _ => MASK.into(),
    }
}

fn mask_queries(text: &str) -> Cow<'_, str> {
    if !text.contains(['?', '#']) {
        return Cow::Borrowed(text);
    }
    let mut masked = String::with_capacity(text.len());
    let mut rest = text;
    // A parameter begins after one of the first and ends before one of the second.
    while let Some(at) = rest.find(['?', '&', '#']) {
        let (before, after) = rest.split_at(at + 1);
        masked.push_str(before);
        let end = after.find(['?', '&', '#', '>', '"', ',', ' ']).unwrap_or(after.len());
        let (parameter, later) = after.split_at(end);
        match parameter.split_once('=') {
            Some((name, value)) if is_secret_field(name, value) => {
                masked.extend([name, "=", MASK]);
            }
            _ => masked.push_str(parameter),
        }
        rest = later;
    }
    masked.push_str(rest);
    Cow::Owned(masked)
}

/// Whether the value of a parameter or a field is a secret, by its name or by itself. A name may be
/// percent-encoded, and may have its last part in brackets.
#[must_use]
pub fn is_secret_field(name: &str, value: &str) -> bool {
    let lower = decoded(name).to_ascii_lowercase();
    let lower = lower.replace(['[', ']'], ".");
    let is_secret_word = |word: &str| SECRET_PARAMETER_WORDS.contains(&word);
    let plain = lower.trim_matches(['$', '.']).replace('.', "_");
    let is_paging = PAGING_PARAMETERS.contains(&plain.as_str());
    !is_paging && is_credential_name(&lower)
        || lower.split(['-', '_', '.']).any(is_secret_word)
        || is_credential_value(value.as_bytes())
}

/// A name without percent-encoding; what is not ASCII stays encoded, since no name of a secret has
/// it.
fn decoded(name: &str) -> Cow<'_, str> {
    let mut parts = name.split('%');
    let first = parts.next().unwrap_or_default();
    let mut decoded = Cow::Borrowed(first);
    for part in parts {
        let byte = part.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match byte.filter(u8::is_ascii) {
            Some(byte) => {
                decoded.to_mut().push(char::from(byte));
                decoded.to_mut().push_str(&part[2..]);
            }
            None => decoded.to_mut().extend(["%", part]),
        }
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OPS-22: a URL is stored without its secrets.
    #[test]
    fn ops_22_secrets_in_a_url_are_masked() {
        for (text, masked) in [
            ("/orders/7", "/orders/7"),
            ("/x?page=2&limit=5", "/x?page=2&limit=5"),
            ("https://a/x?token=abc&id=7#top", "https://a/x?token=redacted&id=7#top"),
            ("/x?id=7&X-Amz-Signature=0f&X-Amz-Date=1", "/x?id=7&X-Amz-Signature=redacted&X-Amz-Date=1"),
            ("/cb#access_token=abc", "/cb#access_token=redacted"),
            ("/cb?a=1#access_token=abc", "/cb?a=1#access_token=redacted"),
            ("/cb?code=abc&state=open", "/cb?code=redacted&state=open"),
            ("/x?pageToken=abc&$skiptoken=d", "/x?pageToken=abc&$skiptoken=d"),
            ("/x?v=sk_live_0123", "/x?v=redacted"),
            ("postgres://me:s3c@ret@db:5432/x?a=1", "postgres://me:redacted@db:5432/x?a=1"),
            ("two: ftp://a:b@h, ssh://git@h and a@b", "two: ftp://a:redacted@h, ssh://git@h and a@b"),
            ("https://s3cret@host/x https://ghp_0:x@h", "https://redacted@host/x https://redacted@h"),
            ("/x?page[token]=abc", "/x?page[token]=abc"),
            ("/x?%74oken=a&auth[token]=b&%zz=c&a=%", "/x?%74oken=redacted&auth[token]=redacted&%zz=c&a=%"),
            ("https://host/a:b@c", "https://host/a:b@c"),
            (
                "<https://a/x?page_info=9&api_key=k>; rel=\"next\", <https://a/y?sig=1>; rel=\"last\"",
                "<https://a/x?page_info=9&api_key=redacted>; rel=\"next\", <https://a/y?sig=redacted>; rel=\"last\"",
            ),
        ] {
            assert_eq!(mask_urls(text), masked);
        }
    }
}
