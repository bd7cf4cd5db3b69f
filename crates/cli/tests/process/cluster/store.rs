//! The store that nodes share: a real server that ends with the test.

use tidegate_fixture::postgres::Postgres;
use tidegate_fixture::redis::Redis;

/// One of the two.
pub(super) enum Store {
    Redis(Redis),
    Postgres(Postgres),
}

impl Store {
    /// A Redis that loses nothing when it is killed.
    pub(super) fn redis() -> Self {
        Self::Redis(Redis::start_with(&["--appendfsync", "always"]))
    }

    pub(super) fn postgres() -> Self {
        Self::Postgres(Postgres::start())
    }

    pub(super) fn url(&self) -> String {
        match self {
            Self::Redis(redis) => redis.url(),
            Self::Postgres(postgres) => postgres.url(),
        }
    }

    /// Its port.
    pub(super) const fn port(&self) -> u16 {
        match self {
            Self::Redis(redis) => redis.port(),
            Self::Postgres(postgres) => postgres.port(),
        }
    }

    /// The PostgreSQL that it is.
    pub(super) fn as_postgres(&mut self) -> &mut Postgres {
        match self {
            Self::Postgres(postgres) => postgres,
            Self::Redis(_) => panic!("it is a Redis"),
        }
    }

    /// Ends it at once. Its data stays.
    pub(super) fn kill(&mut self) {
        match self {
            Self::Redis(redis) => redis.kill(),
            Self::Postgres(postgres) => postgres.kill(),
        }
    }

    /// Starts it again at the same place with its data.
    pub(super) fn restart(&mut self) {
        match self {
            Self::Redis(redis) => redis.restart(),
            Self::Postgres(postgres) => postgres.restart(),
        }
    }
}
