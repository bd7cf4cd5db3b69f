//! The claims that this process holds, and how to stop those that it has lost.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Deserialize;
use tokio_util::sync::CancellationToken;

type Tokens = BTreeMap<(String, u64), StopToken>;

/// How to stop a claim.
struct StopToken {
    stop: CancellationToken,
    /// Whether it passes a cancel on, or lets someone do so, and continues in spite of it.
    is_canceling: bool,
}

/// The claims in progress.
#[derive(Clone, Default)]
pub(super) struct ActiveClaims(Arc<Mutex<Tokens>>);

/// Removes a claim when it is dropped.
pub(super) struct HeldClaim {
    claims: ActiveClaims,
    key: (String, u64),
}

#[derive(Deserialize)]
struct ExtendedClaims {
    claims: Vec<ExtendedClaim>,
}

#[derive(Deserialize)]
struct ExtendedClaim {
    #[serde(default)]
    id: String,
    #[serde(default)]
    fence: u64,
    /// An error says nothing about it.
    #[serde(default = "still_held")]
    held: bool,
    #[serde(default)]
    cancel_requested: bool,
}

const fn still_held() -> bool {
    true
}

impl ActiveClaims {
    fn tokens(&self) -> MutexGuard<'_, Tokens> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds a claim until the guard is dropped; the token tells when to stop.
    pub(super) fn hold(&self, id: &str, fence: u64, is_canceling: bool) -> (CancellationToken, HeldClaim) {
        let (key, stop) = ((id.to_owned(), fence), CancellationToken::new());
        self.tokens().insert(key.clone(), StopToken { stop: stop.clone(), is_canceling });
        (stop, HeldClaim { claims: self.clone(), key })
    }

    /// All claims in progress.
    pub(super) fn claims(&self) -> Vec<(String, u64)> {
        self.tokens().keys().cloned().collect()
    }

    /// Stops what the server's answer says is lost or canceled.
    pub(super) fn stop_lost(&self, answer: &[u8]) {
        let Ok(extended) = serde_json::from_slice::<ExtendedClaims>(answer) else { return };
        let tokens = self.tokens();
        for claim in extended.claims.into_iter().filter(|claim| !claim.held || claim.cancel_requested) {
            let token = tokens.get(&(claim.id, claim.fence));
            if let Some(token) = token.filter(|token| !claim.held || !token.is_canceling) {
                token.stop.cancel();
            }
        }
    }
}

impl Drop for HeldClaim {
    fn drop(&mut self) {
        self.claims.tokens().remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A claim that is lost or canceled is stopped, and no other; one that has ended is forgotten.
    #[test]
    fn lost_and_canceled_claims_are_stopped() {
        let active = ActiveClaims::default();
        let held: Vec<_> = ["a", "b", "c", "d"].iter().map(|id| active.hold(id, 1, *id == "d")).collect();
        let answer = br#"{"claims":[
            {"id":"a","fence":1,"held":false,"cancel_requested":false},
            {"id":"b","fence":1,"held":true,"cancel_requested":true},
            {"id":"c","fence":1,"held":true,"cancel_requested":false},
            {"id":"d","fence":1,"held":true,"cancel_requested":true},
            {"id":"c","fence":1,"error":{"code":"TG0017"}},{"error":{}}]}"#;
        active.stop_lost(answer);
        let stopped: Vec<bool> = held.iter().map(|(stop, _)| stop.is_cancelled()).collect();
        assert_eq!(stopped, [true, true, false, false], "d passes its cancel on");
        drop(held);
        assert!(active.claims().is_empty());
    }
}
