//! Signs webhooks as the providers do: HMAC-SHA256 by the Standard Webhooks scheme, and Ed25519
//! over a hash of the body. The keys come from the seed: they are no secrets.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use ring::{digest, hmac};

use crate::rng::SeededRng;

/// The signing keys of a provider.
pub struct WebhookSigner {
    secret: [u8; 32],
    pair: Option<Ed25519KeyPair>,
}

impl std::fmt::Debug for WebhookSigner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WebhookSigner")
    }
}

impl WebhookSigner {
    /// Creates the keys of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut rng = SeededRng::new(seed ^ 0x7369_676e);
        let mut secret = [0; 32];
        for chunk in secret.chunks_mut(8) {
            chunk.copy_from_slice(&rng.next().to_be_bytes());
        }
        Self { secret, pair: Ed25519KeyPair::from_seed_unchecked(&secret).ok() }
    }

    /// The secret of Standard Webhooks, as a receiver configures it.
    #[must_use]
    pub fn secret(&self) -> String {
        format!("whsec_{}", STANDARD.encode(self.secret))
    }

    /// The public key, as a JWKS names it.
    #[must_use]
    pub fn public_key(&self) -> String {
        self.pair.as_ref().map_or_else(String::new, |pair| URL_SAFE_NO_PAD.encode(pair.public_key()))
    }

    /// Signs by the Standard Webhooks scheme: `{id}.{timestamp}.{body}`.
    #[must_use]
    pub fn standard(&self, id: &str, timestamp: u64, body: &[u8]) -> String {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &self.secret);
        let mut context = hmac::Context::with_key(&key);
        context.update(format!("{id}.{timestamp}.").as_bytes());
        context.update(body);
        format!("v1,{}", STANDARD.encode(context.sign()))
    }

    /// Signs with Ed25519: request, user, time and hash of the body, one per line; as hex.
    #[must_use]
    pub fn ed25519(&self, request_id: &str, user_id: &str, timestamp: u64, body: &[u8]) -> String {
        let hash = hex(digest::digest(&digest::SHA256, body).as_ref());
        let message = format!("{request_id}\n{user_id}\n{timestamp}\n{hash}");
        self.pair.as_ref().map_or_else(String::new, |pair| hex(pair.sign(message.as_bytes()).as_ref()))
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// DSP-26: the signature is the one that another implementation computes.
    #[test]
    fn dsp_26_a_known_standard_webhook_has_its_signature() {
        let mut signer = WebhookSigner::new(0);
        signer.secret = *b"0123456789abcdef0123456789abcdef";
        // openssl dgst -sha256 -hmac <secret> -binary, in Base64, of msg_1.1700000000.{"a":1}
        let signed = signer.standard("msg_1", 1_700_000_000, br#"{"a":1}"#);
        assert_eq!(signed, STANDARD_EXAMPLE);
    }

    const STANDARD_EXAMPLE: &str = "v1,rkwp5YuvdrMkcu0ZhuMsXoTg44mHAr1Q0+FFgFpXsjY=";

    /// DSP-26: the public key that is published verifies the signature.
    #[test]
    fn dsp_26_the_published_key_verifies() {
        let signer = WebhookSigner::new(3);
        let key = URL_SAFE_NO_PAD.decode(signer.public_key()).unwrap();
        let signature: Vec<u8> = signer
            .ed25519("r", "u", 5, b"{}")
            .as_bytes()
            .chunks(2)
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
            .collect();
        let hash = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";
        let public = ring::signature::UnparsedPublicKey::new(&ring::signature::ED25519, key);
        assert!(public.verify(format!("r\nu\n5\n{hash}").as_bytes(), &signature).is_ok());
        assert!(public.verify(format!("r\nu\n6\n{hash}").as_bytes(), &signature).is_err());
    }
}
