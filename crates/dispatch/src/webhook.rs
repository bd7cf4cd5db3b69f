//! Webhooks of providers. The URL of each attempt has a token that only its provider learns; a
//! message that proves to be from the provider has the job polled at once, and the poll decides:
//! by what a signed message says of a success, and otherwise by asking the provider. So a forged,
//! stale, repeated or late message changes nothing, and an early one is not lost.

mod key_cache;
mod receive;

use tidegate_core::OperationId;
use tidegate_upstream::Call;

pub(crate) use key_cache::WebhookKeyCache;
pub use receive::{WebhookReceipt, WebhookRefusal};

/// The URL to which a provider reports the end of an attempt; `None` where it cannot.
pub(crate) fn webhook_url(public_url: Option<&str>, provider: &str, call: Call<'_>) -> Option<String> {
    let (base, token) = (public_url?.trim_end_matches('/'), call.completion_token?);
    Some(format!("{base}/api/webhooks/{provider}/{}.{token}", call.operation))
}

/// The operation and the completion token that a webhook's token consists of.
pub(crate) fn split_token(token: &str) -> Option<(OperationId, &str)> {
    let (id, token) = token.split_once('.')?;
    Some((id.parse().ok()?, token))
}

#[cfg(test)]
mod tests {
    use tidegate_core::{Seq, Time};

    use super::*;

    #[test]
    fn a_token_names_its_operation() {
        let id = OperationId::new(Time::from_millis(7), 3, Seq(9));
        let name = id.to_string();
        let call = Call::new(&name, b"", Time::ZERO).with_completion_token("5.abc");
        let url = webhook_url(Some("https://app.example/"), "acme", call).unwrap();
        let token = url.strip_prefix("https://app.example/api/webhooks/acme/").unwrap();
        assert_eq!(split_token(token), Some((id, "5.abc")));
        assert_eq!(webhook_url(None, "acme", call), None);
        assert_eq!(webhook_url(Some("https://app.example"), "acme", call.with_completion_token(None)), None);
        for wrong in ["", "op", "5.abc", "op_1.5.abc"] {
            assert_eq!(split_token(wrong), None, "{wrong}");
        }
    }
}
