//! The figures of hydration: times, counts and bounds, with their defaults.

use std::time::Duration;

use crate::bounds::{
    DEFERRED_MAX, DEFERRED_OF_ENTITY_MAX, FLIGHT_WAITERS_MAX, FLIGHTS_MAX, NEGATIVES_MAX,
    QUESTIONS_PER_S_DEFAULT, WAITERS_MAX,
};

/// Times, counts and bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlightRules {
    /// How long a caller waits in total, unless it says otherwise.
    pub wait_timeout: Duration,
    /// The longest time that "not found" is remembered.
    pub negative_ttl: Duration,
    /// How long no second question leaves for an entity, unless it is answered.
    pub in_flight_window: Duration,
    /// How many times a question is repeated.
    pub max_retries: u8,
    /// The time between a question and its repetition.
    pub retry_backoff: Duration,
    /// Most flights at once, unanswered ones included.
    pub flights_max: usize,
    /// Most waiters at once.
    pub waiters_max: usize,
    /// Most waiters for one entity.
    pub flight_waiters_max: usize,
    /// Most entities that are remembered as not found.
    pub negatives_max: usize,
    /// Most deferred pieces of work at once.
    pub deferred_max: usize,
    /// Most deferred pieces of work for one entity.
    pub deferred_of_entity_max: usize,
    /// Most questions of one tenant in a second, and at once.
    pub questions_per_s: u32,
}

impl Default for FlightRules {
    fn default() -> Self {
        Self {
            wait_timeout: Duration::from_millis(500),
            negative_ttl: Duration::from_secs(300),
            in_flight_window: Duration::from_secs(5),
            max_retries: 1,
            retry_backoff: Duration::from_millis(200),
            flights_max: FLIGHTS_MAX,
            waiters_max: WAITERS_MAX,
            flight_waiters_max: FLIGHT_WAITERS_MAX,
            negatives_max: NEGATIVES_MAX,
            deferred_max: DEFERRED_MAX,
            deferred_of_entity_max: DEFERRED_OF_ENTITY_MAX,
            questions_per_s: QUESTIONS_PER_S_DEFAULT,
        }
    }
}
