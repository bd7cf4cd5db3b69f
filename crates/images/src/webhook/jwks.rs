//! Public keys as a JSON Web Key Set, and what verifies with them: fal's Ed25519 signatures and
//! Google's RS256 tokens.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::signature::{ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey};
use serde::Deserialize;
use tidegate_core::Time;
use tidegate_core::bounds::WEBHOOK_SKEW_MAX;

use super::WebhookError;

/// The most keys of one set.
const KEYS_MAX: usize = 32;
/// The longest token.
const TOKEN_LEN_MAX: usize = 8 * 1024;

/// A set of public keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JwkSet {
    ed25519: Vec<Vec<u8>>,
    rsa: Vec<RsaKey>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct RsaKey {
    id: Option<String>,
    modulus: Vec<u8>,
    exponent: Vec<u8>,
}

#[derive(Deserialize)]
struct WireSet {
    keys: Vec<WireKey>,
}

#[derive(Deserialize)]
struct WireKey {
    kty: Option<String>,
    kid: Option<String>,
    alg: Option<String>,
    x: Option<String>,
    n: Option<String>,
    e: Option<String>,
}

#[derive(Deserialize)]
struct TokenHead {
    alg: String,
    kid: Option<String>,
}

#[derive(Deserialize)]
struct TokenClaims {
    exp: Option<f64>,
    nbf: Option<f64>,
    iat: Option<f64>,
}

impl JwkSet {
    /// Reads a set. Keys of other kinds are left out; `None` when no key is left.
    #[must_use]
    pub fn parse(json: &[u8]) -> Option<Self> {
        let wire: WireSet = serde_json::from_slice(json).ok()?;
        let mut set = Self::default();
        for key in wire.keys.into_iter().take(KEYS_MAX) {
            match key.kty.as_deref() {
                // fal's keys are taken by their `x`, whatever else they say.
                Some("OKP") | None => set.ed25519.extend(key.x.as_deref().and_then(public_key)),
                Some("RSA") if key.alg.as_deref().is_none_or(|alg| alg == "RS256") => {
                    let part = |text: Option<String>| URL_SAFE_NO_PAD.decode(text?).ok();
                    if let (Some(modulus), Some(exponent)) = (part(key.n), part(key.e)) {
                        set.rsa.push(RsaKey { id: key.kid, modulus, exponent });
                    }
                }
                _ => {}
            }
        }
        (!set.ed25519.is_empty() || !set.rsa.is_empty()).then_some(set)
    }

    /// Whether one of the Ed25519 keys verifies a signature.
    pub(crate) fn verifies_ed25519(&self, message: &[u8], signature: &[u8]) -> bool {
        let is_valid =
            |key: &Vec<u8>| UnparsedPublicKey::new(&ED25519, key).verify(message, signature).is_ok();
        self.ed25519.iter().any(is_valid)
    }

    /// Verifies an RS256 token: its signature by the key that it names, and its times.
    pub(crate) fn verify_token(&self, token: &str, now: Time) -> Result<(), WebhookError> {
        let unreadable = WebhookError::Missing("token");
        if token.len() > TOKEN_LEN_MAX {
            return Err(unreadable);
        }
        let (signed, signature) = token.rsplit_once('.').ok_or(unreadable)?;
        let (head, claims) = signed.split_once('.').ok_or(unreadable)?;
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| unreadable);
        let head: TokenHead = serde_json::from_slice(&decode(head)?).map_err(|_| unreadable)?;
        let claims: TokenClaims = serde_json::from_slice(&decode(claims)?).map_err(|_| unreadable)?;
        let signature = decode(signature)?;
        let is_valid = |key: &RsaKey| {
            let parts = RsaPublicKeyComponents { n: &key.modulus, e: &key.exponent };
            parts.verify(&RSA_PKCS1_2048_8192_SHA256, signed.as_bytes(), &signature).is_ok()
        };
        let is_named = |key: &&RsaKey| head.kid.is_none() || key.id == head.kid;
        if head.alg != "RS256" || !self.rsa.iter().filter(is_named).any(is_valid) {
            return Err(WebhookError::Forged);
        }
        let now = now.as_millis() as f64 / 1_000.0;
        let skew = WEBHOOK_SKEW_MAX.as_secs_f64();
        let is_early = [claims.nbf, claims.iat].into_iter().flatten().any(|from| now + skew < from);
        let is_late = claims.exp.is_some_and(|until| now > until + skew)
            || (claims.exp.is_none() && claims.iat.is_none_or(|from| now > from + skew));
        if is_early || is_late { Err(WebhookError::Stale) } else { Ok(()) }
    }
}

/// An Ed25519 key, which a JWKS has in Base64url and some tools in plain Base64.
fn public_key(text: &str) -> Option<Vec<u8>> {
    let text = text.trim_end_matches('=');
    let plain = STANDARD.decode(format!("{text}{}", "=".repeat((4 - text.len() % 4) % 4)));
    URL_SAFE_NO_PAD.decode(text).or(plain).ok().filter(|key| key.len() == 32)
}
