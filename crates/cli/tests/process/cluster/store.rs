//! The store that nodes share: a real server that ends with the test.

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use tidegate_fixture::postgres::PostgresServer;
use tidegate_fixture::redis::{RedisCluster, RedisServer};

/// One of the three.
pub(super) enum Store {
    Redis(RedisServer),
    Cluster(RedisCluster),
    Postgres(PostgresServer),
}

impl Store {
    /// A Redis that loses nothing when it is killed.
    pub(super) fn redis() -> Self {
        Self::Redis(RedisServer::start_with(&["--appendfsync", "always"]))
    }

    /// A Redis Cluster of three without replicas, whose nodes lose nothing and go on without each
    /// other.
    pub(super) fn cluster() -> Self {
        let alone = ["--appendfsync", "always", "--cluster-require-full-coverage", "no"];
        Self::Cluster(RedisCluster::start_with(&alone))
    }

    pub(super) fn postgres() -> Self {
        Self::Postgres(PostgresServer::start())
    }

    pub(super) fn url(&self) -> String {
        match self {
            Self::Redis(redis) => redis.url(),
            Self::Cluster(cluster) => cluster.url(),
            Self::Postgres(postgres) => postgres.url(),
        }
    }

    /// Its port.
    pub(super) fn port(&self) -> u16 {
        match self {
            Self::Redis(redis) => redis.port(),
            Self::Cluster(cluster) => cluster.ports()[0],
            Self::Postgres(postgres) => postgres.port(),
        }
    }

    /// The secret that nodes without a configured one know each other by, as they send it.
    pub(super) async fn node_secret(&mut self) -> String {
        const SQL: &str = "SELECT string_agg(lpad(to_hex(value), 16, '0'), '' ORDER BY name)
            FROM tidegate.meta WHERE name IN ('secret high', 'secret low')";
        let digits = match self {
            Self::Postgres(postgres) => tokio::task::block_in_place(|| postgres.session().query(SQL)),
            _ => {
                let script = "return redis.status_reply(redis.call('GET', KEYS[1]))";
                ask_redis(self.port(), &format!("EVAL \"{script}\" 1 tg:secret")).await
            }
        };
        let digits = digits.trim().to_owned();
        assert!(digits.len() == 32 && digits.bytes().all(|digit| digit.is_ascii_hexdigit()), "{digits:?}");
        format!("Bearer {digits}")
    }

    /// The PostgreSQL that it is.
    pub(super) fn as_postgres(&mut self) -> &mut PostgresServer {
        match self {
            Self::Postgres(postgres) => postgres,
            _ => panic!("it is no PostgreSQL"),
        }
    }

    /// The Redis Cluster that it is.
    pub(super) fn as_cluster(&mut self) -> &mut RedisCluster {
        match self {
            Self::Cluster(cluster) => cluster,
            _ => panic!("it is no cluster"),
        }
    }

    /// Ends it at once. Its data stays.
    pub(super) fn kill(&mut self) {
        match self {
            Self::Redis(redis) => redis.kill(),
            Self::Cluster(cluster) => (0..cluster.ports().len()).for_each(|node| cluster.kill(node)),
            Self::Postgres(postgres) => postgres.kill(),
        }
    }

    /// Starts it again at the same place with its data.
    pub(super) fn restart(&mut self) {
        match self {
            Self::Redis(redis) => redis.restart(),
            Self::Cluster(cluster) => (0..cluster.ports().len()).for_each(|node| cluster.restart(node)),
            Self::Postgres(postgres) => postgres.restart(),
        }
    }
}

/// What the Redis on this port answers to a command of one line, without the sign of its kind.
pub(super) async fn ask_redis(port: u16, command: &str) -> String {
    let mut line = BufReader::new(TcpStream::connect(("127.0.0.1", port)).await.unwrap());
    line.write_all(format!("{command}\r\n").as_bytes()).await.unwrap();
    let mut answer = String::new();
    line.read_line(&mut answer).await.unwrap();
    assert!(answer.starts_with(['+', ':']), "{command}: {answer}");
    answer[1..].trim().to_owned()
}
