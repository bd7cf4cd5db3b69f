//! The keys that verify a provider's webhooks: configured, or fetched from the provider and kept
//! for a day. A signature that they do not verify may have been made with newer ones, so they are
//! fetched again, at most every few minutes, however many forged messages come.

use std::collections::BTreeMap;
use std::time::Duration;

use http::HeaderValue;
use tidegate_core::Time;
use tidegate_images::webhook::standard::StandardSecret;
use tidegate_images::{Provider, Secret, WebhookKeys};
use tokio::sync::Mutex;

use crate::config::{ConfigError, KeyConfig, ProviderConfig};
use crate::http_client::HttpClient;

/// How long fetched keys are used.
const KEPT: Duration = Duration::from_secs(24 * 3_600);
/// The shortest time between two fetches.
const FETCH_AGAIN_AFTER: Duration = Duration::from_secs(120);
/// The longest that a fetch may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The keys of one provider.
#[derive(Debug)]
pub(crate) struct WebhookKeyCache {
    configured: Vec<StandardSecret>,
    /// By the name of the provider's key: each account has its own secret.
    fetched: Mutex<BTreeMap<String, FetchedKeys>>,
}

#[derive(Clone, Debug)]
struct FetchedKeys {
    tried_at: Time,
    keys: Option<(Time, WebhookKeys)>,
}

impl WebhookKeyCache {
    pub(crate) fn new(config: &ProviderConfig) -> Result<Self, ConfigError> {
        let parse = |(index, secret): (usize, &Secret)| {
            StandardSecret::parse(secret.reveal()).map_err(|error| {
                let place = format!("providers.{}.webhook_secrets[{index}]", config.name);
                ConfigError::new(place, format!("{error}."))
            })
        };
        let configured = config.webhook_secrets.iter().enumerate().map(parse).collect::<Result<_, _>>()?;
        Ok(Self { configured, fetched: Mutex::default() })
    }

    /// The keys of a webhook whose attempt used this key of the provider. Those of a provider that
    /// signs nothing are the token itself, which was verified before.
    ///
    /// # Errors
    /// When they cannot be fetched now.
    pub(crate) async fn keys(
        &self,
        (adapter, client): (&dyn Provider, &HttpClient),
        key: &KeyConfig,
        token: &str,
        now: Time,
    ) -> Result<WebhookKeys, String> {
        if !self.configured.is_empty() {
            return Ok(WebhookKeys::Standard(self.configured.clone()));
        }
        let Ok(Some(request)) = adapter.webhook_keys(&key.key) else {
            return Ok(WebhookKeys::Token(Secret::new(token)));
        };
        // Remote workers have the key.
        if key.key.reveal().is_empty() && request.headers.values().any(HeaderValue::is_sensitive) {
            return Err("the secret of webhooks is not configured, and not to be had without a key".into());
        }
        // One fetch at a time; the others wait for it.
        let mut fetched = self.fetched.lock().await;
        let entry = fetched.get(&key.name).cloned();
        let current = entry.as_ref().and_then(|entry| entry.keys.as_ref());
        if let Some((_, keys)) = current.filter(|(at, _)| now.since(*at) < KEPT) {
            return Ok(keys.clone());
        }
        if entry.as_ref().is_some_and(|entry| now.since(entry.tried_at) < FETCH_AGAIN_AFTER) {
            return Err("the keys that verify webhooks could not be fetched a moment ago".into());
        }
        let finished = client.send(request, TIMEOUT, now).await;
        let read = finished.success().and_then(|body| {
            adapter.read_webhook_keys(body).ok_or_else(|| "the response holds no key".to_owned())
        });
        let keys = read.as_ref().ok().map(|keys| (now, keys.clone()));
        fetched.insert(key.name.clone(), FetchedKeys { tried_at: now, keys });
        read.map_err(|reason| format!("the keys that verify webhooks cannot be fetched: {reason}"))
    }

    /// Has the keys fetched again because they did not verify a message; returns whether that may
    /// help.
    pub(crate) async fn refresh(&self, key: &KeyConfig, now: Time) -> bool {
        let mut fetched = self.fetched.lock().await;
        let is_old = |entry: &FetchedKeys| now.since(entry.tried_at) >= FETCH_AGAIN_AFTER;
        let is_due = fetched.get(&key.name).is_some_and(is_old);
        if is_due {
            fetched.remove(&key.name);
        }
        is_due
    }
}
