//! Masks secrets in requests that are shown to people: in paths, headers, forms and plain text.
//! Credentials are refused or left out before a request is stored; this is for those that got in
//! all the same.

use std::borrow::Cow;

use crate::credential::is_credential_value;
use crate::header_storage::check_storable;
use crate::url_query::{is_secret_field, mask_urls};

/// What stands for a secret that is not stored or not shown.
pub const MASK: &str = "redacted";

/// The shortest segment of a path that may be a token.
const TOKEN_LEN_MIN: usize = 20;

/// Masks the value of a header, unless it may be stored.
#[must_use]
pub fn mask_header<'a>(name: &str, value: &'a str) -> Cow<'a, str> {
    match check_storable(name, value.as_bytes()) {
        Ok(()) => mask_urls(value),
        Err(_) => Cow::Borrowed(MASK),
    }
}

/// Masks the segments of a path that look like tokens, such as those of webhooks.
#[must_use]
pub fn mask_path(path: &str) -> Cow<'_, str> {
    if !path.split('/').any(is_token) {
        return Cow::Borrowed(path);
    }
    let segments = path.split('/').map(|segment| if is_token(segment) { MASK } else { segment });
    Cow::Owned(segments.collect::<Vec<_>>().join("/"))
}

/// Whether a segment has the length and the mixture of a token. Ids are shorter, or are numbers or
/// hexadecimal digits of one case.
fn is_token(segment: &str) -> bool {
    let has = |test: fn(&u8) -> bool| segment.as_bytes().iter().any(&test);
    segment.len() >= TOKEN_LEN_MIN
        && has(u8::is_ascii_digit)
        && has(u8::is_ascii_lowercase)
        && has(u8::is_ascii_uppercase)
        || is_credential_value(segment.as_bytes())
}

/// Masks the secrets of a form or a query, without the `?`.
#[must_use]
pub fn mask_form(form: &str) -> String {
    let masked = mask_urls(&format!("?{form}")).into_owned();
    masked.strip_prefix('?').unwrap_or(&masked).to_owned()
}

/// Masks secrets in plain text: what follows the name of a secret in its line, and words that are
/// secrets by themselves.
#[must_use]
pub fn mask_text(text: &str) -> String {
    text.split('\n').map(mask_line).collect::<Vec<_>>().join("\n")
}

fn mask_line(line: &str) -> String {
    if is_credential_value(line.as_bytes()) {
        return MASK.to_owned();
    }
    let is_form = line.contains('&') && !line.contains(['?', ' ']);
    if is_form {
        return mask_form(line);
    }
    if let Some(at) = line.find([':', '=']) {
        let (before, after) = line.split_at(at + 1);
        let name = before[..at].rsplit([' ', '\t', '"', '\'']).find(|word| !word.is_empty());
        if name.is_some_and(|name| is_secret_field(name, after.trim())) {
            return format!("{before} {MASK}");
        }
    }
    let words = mask_urls(line);
    let is_secret = |word: &str| is_credential_value(word.as_bytes());
    if !words.split(' ').any(is_secret) {
        return words.into_owned();
    }
    let words = words.split(' ').map(|word| if is_secret(word) { MASK } else { word });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OPS-22: tokens in paths are masked, and ids are not.
    #[test]
    fn ops_22_tokens_in_paths_are_masked() {
        for path in [
            "/",
            "/orders/7",
            "/v2/objects/507f1f77bcf86cd799439011",
            "/pages/550e8400-e29b-41d4-a716-446655440000",
            "/admin/api/2026-04/graphql.json",
            "/AVeryLongNameWithoutAnyDigit",
        ] {
            assert_eq!(mask_path(path), path);
        }
        assert_eq!(mask_path("/services/T0/B0/aB3dE5fG7hJ9kL1mN3pQ5r"), "/services/T0/B0/redacted");
        assert_eq!(mask_path("/bot110201543:AAHdqTcvCH1vGWJxfSe-iw/send"), "/redacted/send");
        assert_eq!(mask_path("/x/sk_live_1/y"), "/x/redacted/y");
    }

    /// OPS-22: headers, forms and text are shown without their secrets.
    #[test]
    fn ops_22_headers_forms_and_text_are_masked() {
        assert_eq!(mask_header("x-tag", "a"), "a");
        assert_eq!(mask_header("x-vault-token", "a"), MASK);
        assert_eq!(mask_header("x-tag", "Bearer a"), MASK);
        assert_eq!(mask_header("referer", "https://a/?token=x&n=1"), "https://a/?token=redacted&n=1");
        assert_eq!(mask_form("a=1&password=x&code=y"), "a=1&password=redacted&code=redacted");
        assert_eq!(mask_form("grant"), "grant");
        for (text, masked) in [
            ("one of a-1", "one of a-1"),
            ("at 12:30, for order 7", "at 12:30, for order 7"),
            ("my password: hunter2 and more\nnext", "my password: redacted\nnext"),
            ("api_key=hunter2", "api_key= redacted"),
            ("use sk_live_0123 now", "use redacted now"),
            ("Bearer hunter2", "redacted"),
            ("see https://a/?sig=1", "see https://a/?sig=redacted"),
            ("grant_type=x&client_secret=s", "grant_type=x&client_secret=redacted"),
            ("curl -H 'Authorization: Bearer s'", "curl -H 'Authorization: redacted"),
        ] {
            assert_eq!(mask_text(text), masked);
        }
    }
}
