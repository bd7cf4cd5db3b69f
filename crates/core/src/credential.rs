//! Detects credentials, by the name and by the value of a header or a parameter. Nothing that is
//! detected is written to a store in clear text.

/// Words that, in a name split at dashes, only occur for a credential.
const CREDENTIAL_WORDS: [&str; 40] = [
    "accesskey",
    "apikey",
    "appkey",
    "assertion",
    "auth",
    "authentication",
    "authkey",
    "authn",
    "authorization",
    "authz",
    "bearer",
    "creds",
    "csrf",
    "cvc",
    "cvv",
    "dpop",
    "jwt",
    "key",
    "keys",
    "licence",
    "license",
    "masterkey",
    "oauth",
    "oauth2",
    "otp",
    "passcode",
    "passphrase",
    "passwd",
    "pat",
    "pin",
    "privatekey",
    "pwd",
    "secretkey",
    "session",
    "sessionid",
    "sessions",
    "sharedkey",
    "sid",
    "totp",
    "xsrf",
];

/// Substrings that mark a word as a credential: `clientsecret`, `cookies`, `xapikey`.
const CREDENTIAL_SUBSTRINGS: [&str; 6] = ["apikey", "cookie", "credential", "password", "passwort", "secret"];

/// A suffix that marks a word as a credential: `csrftoken`. The plural
/// (`x-ratelimit-remaining-tokens`) is a number.
const CREDENTIAL_SUFFIX: &str = "token";

/// Words before `key` that make it harmless: such a key only says which of several things is meant.
const HARMLESS_KEYS: [&str; 10] = [
    "cache",
    "correlation",
    "dedupe",
    "deduplication",
    "idempotency",
    "partition",
    "public",
    "routing",
    "sort",
    "surrogate",
];

/// Names with such words that hold no credential all the same.
const HARMLESS_HEADERS: [&str; 1] = ["access-control-allow-credentials"];

/// Prefixes that mark a value as a credential under any name: schemes of `Authorization`.
const SCHEMES: [&str; 10] = [
    "apikey ",
    "aws4-hmac-sha256 ",
    "basic ",
    "bearer ",
    "digest ",
    "dpop ",
    "hawk ",
    "negotiate ",
    "ntlm ",
    "token ",
];

/// How the secrets of some issuers begin, so that they can be found where they should not be.
const ISSUED_SECRETS: [&str; 16] = [
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "github_pat_",
    "glpat-",
    "rk_live_",
    "rk_test_",
    "shpat_",
    "shpca_",
    "shppa_",
    "sk_live_",
    "sk_test_",
    "whsec_",
    "xoxb-",
    "xoxp-",
];

/// Whether a header of this name is treated as a credential.
pub(crate) fn is_credential_name(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    if HARMLESS_HEADERS.contains(&lower.as_str()) {
        return false;
    }
    let mut before = "";
    lower.split(['-', '_', '.']).any(|word| {
        let is_harmless = matches!(word, "key" | "keys") && HARMLESS_KEYS.contains(&before);
        before = word;
        !is_harmless && is_credential_word(word)
    }) || has_credential_substring(&lower.replace(['-', '_', '.'], ""))
}

fn is_credential_word(word: &str) -> bool {
    CREDENTIAL_WORDS.contains(&word) || has_credential_substring(word) || word.ends_with(CREDENTIAL_SUFFIX)
}

fn has_credential_substring(word: &str) -> bool {
    CREDENTIAL_SUBSTRINGS.iter().any(|part| word.contains(part))
}

/// Whether a value is a credential under any name: it starts with a scheme or as an issuer's
/// secrets do, or it is a JSON Web Token.
pub(crate) fn is_credential_value(value: &[u8]) -> bool {
    let value = value.trim_ascii();
    let starts = |scheme: &&str| {
        value.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme.as_bytes()))
    };
    let is_issued = |start: &&str| value.starts_with(start.as_bytes());
    SCHEMES.iter().any(starts) || ISSUED_SECRETS.iter().any(is_issued) || is_json_web_token(value)
}

/// Whether a value has three base64url parts, the first of which begins a JSON object.
fn is_json_web_token(value: &[u8]) -> bool {
    let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    value.starts_with(b"eyJ")
        && value.split(|byte| *byte == b'.').count() == 3
        && value.split(|byte| *byte == b'.').all(|part| part.iter().all(is_base64))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OPS-22: credentials are recognized by the words in their names, for any vendor.
    #[test]
    fn ops_22_credentials_are_known_by_their_names() {
        for name in [
            "Authorization",
            "proxy-authorization",
            "x-forwarded-authorization",
            "authentication-info",
            "Cookie",
            "set-cookie",
            "set-cookie2",
            "x-vault-token",
            "X-RapidAPI-Key",
            "x-api-key",
            "api_key",
            "apikey",
            "ocp-apim-subscription-key",
            "x-amz-security-token",
            "x-shopify-access-token",
            "private-token",
            "x-goog-iam-authorization-token",
            "x-auth",
            "x-auth-user",
            "x-csrftoken",
            "x-xsrf-token",
            "x-client-secret",
            "x-clientsecret",
            "x-db-password",
            "pass-word",
            "Passwort",
            "x-session-id",
            "x-functions-key",
            "dd-application-key",
            "x-jwt-assertion",
            "x-parse-rest-api-key",
            "cf-access-client-secret",
            "x-aws-credentials",
            "xapikey",
            "x-pin",
            "x-sid",
            "x-gitlab-pat",
            "x-passcode",
            "x-license",
            "DPoP",
        ] {
            assert!(is_credential_name(name), "{name}");
        }
    }

    /// Ordinary headers are not mistaken for credentials.
    #[test]
    fn usual_headers_are_no_credentials() {
        for name in [
            "accept",
            "content-type",
            "content-md5",
            "user-agent",
            "idempotency-key",
            "x-idempotency-key",
            "x-dedupe-key",
            "x-partition-key",
            "surrogate-key",
            "x-group",
            "x-request-id",
            "x-author",
            "x-authority",
            "x-monkey",
            "if-match",
            "x-api-version",
            "x-audit-log-reason",
            "x-ratelimit-precision",
            "traceparent",
            "x-hub-signature-256",
            "signature-input",
            "access-control-allow-credentials",
            "www-authenticate",
            "x-ratelimit-remaining-tokens",
            "x-keyword",
            "x-inside",
            "x-path",
        ] {
            assert!(!is_credential_name(name), "{name}");
        }
    }

    /// OPS-22: credentials are also recognized by their values.
    #[test]
    fn ops_22_credentials_are_known_by_their_values() {
        for value in [
            "Bearer abc",
            "bearer abc",
            " Basic dTpw",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.x-_1",
            "Token 0123",
            "ApiKey 0123",
            "Digest username=\"u\"",
            "AWS4-HMAC-SHA256 Credential=x",
            "sk_live_0123",
            "ghp_0123",
        ] {
            assert!(is_credential_value(value.as_bytes()), "{value}");
        }
        for value in [
            "",
            "bear",
            "bearer",
            "basically",
            "eyJ",
            "eyJ.a",
            "eyJ.a.b c",
            "application/json",
            "tokens",
            "sk-SK",
        ] {
            assert!(!is_credential_value(value.as_bytes()), "{value}");
        }
    }
}
