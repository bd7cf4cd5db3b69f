//! What the server forbids. It says so in an error that names the subject but not the call, after
//! the call: so denials are remembered for a while, and later calls on the subject fail at once.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

/// How long a denial is remembered; permissions may change.
const DENIAL_TTL: Duration = Duration::from_secs(10);
/// How many denials are remembered.
const DENIALS_MAX: usize = 1_024;

/// What a denial is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum DeniedUse {
    Publish,
    Subscribe,
}

/// The denials of a connection.
#[derive(Default)]
pub(crate) struct Denials {
    until: Mutex<HashMap<(DeniedUse, String), Instant>>,
    arrived: Notify,
}

impl Denials {
    /// Remembers a denial.
    pub(crate) fn insert(&self, used: DeniedUse, subject: &str) {
        let now = Instant::now();
        let mut until = self.until();
        until.retain(|_, until| *until > now);
        if until.len() < DENIALS_MAX {
            until.insert((used, subject.to_owned()), now + DENIAL_TTL);
        }
        drop(until);
        self.arrived.notify_waiters();
    }

    pub(crate) fn contains(&self, used: DeniedUse, subject: &str) -> bool {
        let until = self.until();
        !until.is_empty()
            && until.get(&(used, subject.to_owned())).is_some_and(|until| *until > Instant::now())
    }

    /// Waits for a denial that is on its way, or until none has arrived in time.
    pub(crate) async fn wait_for(&self, used: DeniedUse, subject: &str, grace: Duration) {
        let denied = async {
            loop {
                let arrived = self.arrived.notified();
                if self.contains(used, subject) {
                    return;
                }
                arrived.await;
            }
        };
        // Otherwise there is none, or it comes late and ends the subscription.
        let _ = timeout(grace, denied).await;
    }

    fn until(&self) -> MutexGuard<'_, HashMap<(DeniedUse, String), Instant>> {
        self.until.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Finds what a server's error forbids: `Permissions Violation for Publish to "subject"`.
pub(crate) fn parse_denial(error: &str) -> Option<(DeniedUse, &str)> {
    let about = error.split_once("Permissions Violation for ")?.1;
    let (used, rest) = match about.strip_prefix("Publish") {
        Some(rest) => (DeniedUse::Publish, rest),
        None => (DeniedUse::Subscribe, about.strip_prefix("Subscription")?),
    };
    Some((used, rest.split('"').nth(1)?))
}

impl fmt::Display for DeniedUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Publish => "publish on",
            Self::Subscribe => "subscribe to",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_what_it_forbids() {
        let cases = [
            (r#"Permissions Violation for Publish to "a.b""#, Some((DeniedUse::Publish, "a.b"))),
            (r#"nats: Permissions Violation for Subscription to "a.*""#, Some((DeniedUse::Subscribe, "a.*"))),
            (
                r#"Permissions Violation for Subscription to "a" using queue "q""#,
                Some((DeniedUse::Subscribe, "a")),
            ),
            ("Slow Consumer", None),
            ("Permissions Violation for Publish", None),
        ];
        for (error, expected) in cases {
            assert_eq!(parse_denial(error), expected, "{error}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_denial_is_forgotten_after_a_while() {
        let denials = Denials::default();
        denials.insert(DeniedUse::Publish, "a");
        assert!(denials.contains(DeniedUse::Publish, "a"));
        assert!(!denials.contains(DeniedUse::Subscribe, "a"));
        tokio::time::advance(DENIAL_TTL).await;
        assert!(!denials.contains(DeniedUse::Publish, "a"));
    }
}
