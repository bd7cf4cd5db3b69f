//! What one user may do: generations that have not ended, and generations created in a minute. The
//! rate is counted in the store, so it holds across nodes. Those that have not ended are counted in
//! this engine's partition, which has all of them: creations of one user go one after the other, so
//! each counts the one before it.

use tidegate::{Filter, State};
use tidegate_core::fingerprint::{Fingerprint, hex};
use tidegate_limits::{SharedBucket, TokenTakeOutcome, Tokens};
use tokio::sync::{Mutex, MutexGuard};

use super::Generations;
use crate::config::UserLimits;
use crate::dispatch::KIND;
use crate::error::{DispatchError, DispatchErrorKind};

/// The seconds of the period that `per_minute` counts in.
const MINUTE_S: f64 = 60.0;
/// How many users at most create at once. Two with the same place wait for each other.
const TURNS: usize = 256;

/// The turns of users who create generations.
pub(crate) struct UserTurns([Mutex<()>; TURNS]);

impl Default for UserTurns {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Mutex::default()))
    }
}

impl UserTurns {
    /// Waits until no one else creates a generation of this user.
    async fn of(&self, user: &str) -> MutexGuard<'_, ()> {
        let place = user_hash(user) % TURNS as u128;
        self.0[usize::try_from(place).unwrap_or(0)].lock().await
    }
}

fn user_hash(user: &str) -> u128 {
    Fingerprint::of("generations of a user").part(user.as_bytes()).short()
}

impl Generations {
    /// Waits for the user's turn, if their unfinished generations are limited. It ends when what it
    /// returns is dropped: once the generation is durable, or refused.
    pub(super) async fn turn_of(&self, user: &str) -> Option<MutexGuard<'_, ()>> {
        match self.state.config.per_user.max_active {
            Some(_) => Some(self.state.turns.of(user).await),
            None => None,
        }
    }

    /// Refuses a user who has, or creates, too many.
    pub(super) async fn check_user(&self, user: &str) -> Result<(), DispatchError> {
        let UserLimits { max_active, per_minute } = self.state.config.per_user;
        if let Some(most) = max_active {
            let limit = usize::try_from(most).unwrap_or(usize::MAX);
            let states = [State::Queued, State::Waiting, State::Running];
            let filter = Filter::default().with_kind(KIND).with_states(states).with_user(user);
            let active = self.engine.list(filter.with_limit(limit)).await?.operations.len();
            if active >= limit {
                let message =
                    format!("the user has {active} generations that have not ended, the most is {most}");
                return Err(DispatchError::new(DispatchErrorKind::TooManyActive, message));
            }
        }
        match per_minute {
            Some(most) => self.take_from_rate(user, most).await,
            None => Ok(()),
        }
    }

    async fn take_from_rate(&self, user: &str, most: u32) -> Result<(), DispatchError> {
        let unavailable = |error: tidegate_limits::Error| {
            let kind = DispatchErrorKind::Engine(tidegate::ErrorKind::StoreUnavailable);
            DispatchError::new(kind, error.to_string())
        };
        let name = format!("{KIND}/user/{}", hex(&user_hash(user).to_be_bytes()));
        let (capacity, refill) = (f64::from(most), f64::from(most) / MINUTE_S);
        let bucket = SharedBucket::new(self.engine.shared_state(), name, capacity, refill);
        let taken = bucket.map_err(unavailable)?.try_take(Tokens::from(1)).await;
        match taken.map_err(unavailable)? {
            TokenTakeOutcome::Granted(_) => Ok(()),
            TokenTakeOutcome::Wait(wait) => {
                let message = format!("the user creates more than {most} generations a minute");
                let error = DispatchError::new(DispatchErrorKind::TooFast, message);
                Err(error.with_retry_after(wait.delay))
            }
        }
    }
}
