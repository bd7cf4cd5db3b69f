//! The three loads, and their request as this program sends it where `wrk` cannot: while keys are
//! filled in, and at a steady rate. load.lua sends the same bytes.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

use crate::client::Client;

/// Keys that replays use. Coprime with the stride that visits them.
pub(super) const KEYS: u64 = 1_000;
/// Connections that fill them in.
const FILLERS: u64 = 32;
const BODY: &str = r#"{"sku":"LMP-2041","title":"Desk lamp, brass"}"#;

/// The kind of key that requests have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Load {
    /// No key.
    NoKey,
    /// A key that was never used.
    NewKeys,
    /// A key whose response is stored.
    Replays,
}

impl Load {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::NoKey => "no key",
            Self::NewKeys => "new keys",
            Self::Replays => "replays",
        }
    }

    /// Returns the header with the key; without a key, one of the same length that means nothing.
    pub(super) const fn header(self) -> &'static str {
        match self {
            Self::NoKey => "X-Numbered-Call",
            Self::NewKeys | Self::Replays => "Idempotency-Key",
        }
    }

    /// Returns the number of keys; 0 for a new one each time.
    pub(super) const fn keys(self) -> u64 {
        match self {
            Self::NoKey | Self::NewKeys => 0,
            Self::Replays => KEYS,
        }
    }

    /// Returns the prefix of the next run's keys. Replays share theirs.
    pub(super) fn next_run(self) -> String {
        static RUNS: AtomicU64 = AtomicU64::new(1);
        match self {
            Self::NoKey | Self::NewKeys => {
                format!("n{:08}", RUNS.fetch_add(1, Ordering::Relaxed) % 100_000_000)
            }
            Self::Replays => "r00000000".to_owned(),
        }
    }

    /// Returns a request of a run.
    pub(super) fn request(self, to: SocketAddr, run: &str, number: u64) -> Vec<u8> {
        let number = if self.keys() > 0 { number % self.keys() } else { number };
        // 22 characters that end in one that a session's cookie may end in.
        let key = format!("{run}00{number:010}A");
        let (header, len) = (self.header(), BODY.len());
        format!(
            "POST /api/v1/items HTTP/1.1\r\nHost: {to}\r\nContent-Type: application/json\r\nX-Api-Key: bench-caller\r\n{header}: {key}\r\nCookie: session={key}\r\nContent-Length: {len}\r\n\r\n{BODY}"
        )
        .into_bytes()
    }

    /// Sends one request for each key of replays.
    pub(super) async fn fill(self, to: SocketAddr) -> Result<(), String> {
        let run = self.next_run();
        let mut fillers = tokio::task::JoinSet::new();
        for filler in 0..FILLERS.min(self.keys()) {
            let run = run.clone();
            fillers.spawn(async move {
                let mut client = Client::connect(to).await?;
                for number in (filler..self.keys()).step_by(FILLERS as usize) {
                    send_checked(&mut client, &self.request(to, &run, number)).await?;
                }
                Ok::<_, String>(())
            });
        }
        while let Some(filled) = fillers.join_next().await {
            filled.map_err(|error| error.to_string())??;
        }
        Ok(())
    }
}

/// Sends a request, which must succeed.
pub(super) async fn send_checked(client: &mut Client, request: &[u8]) -> Result<(), String> {
    match client.send(request).await? {
        (200..=299, _) => Ok(()),
        (status, _) => Err(format!("a request failed with {status}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_is_as_long_as_every_other() {
        let to = SocketAddr::from(([127, 0, 0, 1], 80));
        let sent = [Load::NoKey, Load::NewKeys, Load::Replays].map(|load| {
            let run = load.next_run();
            (load.request(to, &run, 7).len(), load.request(to, &run, 123_456).len())
        });
        assert!(sent.iter().all(|lens| *lens == (sent[0].0, sent[0].0)), "{sent:?}");
    }

    #[test]
    fn new_keys_are_new_in_every_run_and_replays_stay() {
        assert_ne!(Load::NewKeys.next_run(), Load::NewKeys.next_run());
        let to = SocketAddr::from(([127, 0, 0, 1], 80));
        let run = Load::Replays.next_run();
        assert_eq!(run, Load::Replays.next_run());
        assert_eq!(Load::Replays.request(to, &run, 3), Load::Replays.request(to, &run, KEYS + 3));
    }

    /// Both have to be the same, or the filled keys are not those that `wrk` repeats.
    #[test]
    fn the_script_sends_the_same_bytes() {
        let script = include_str!("load.lua");
        for part in [BODY, "POST /api/v1/items HTTP/1.1", "X-Api-Key: bench-caller", "%s00%010dA", "session="]
        {
            assert!(script.contains(part), "{part}");
        }
    }
}
