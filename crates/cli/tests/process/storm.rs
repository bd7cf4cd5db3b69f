//! Four proxies on one Redis, and a crowd in front of them that says the same thing at once, over
//! and over.

mod client_pool;

use std::time::Duration;

use tidegate_fixture::redis::RedisServer;
use tidegate_sim::{HttpSim, HttpSimOptions};
use tokio::time::Instant;

use crate::ALONE;
use crate::arrivals::arrivals;
use crate::child::{RunningServer, StartingServer, proxy};
use client_pool::{ClientPool, ReceivedResponse};

const PROXIES: usize = 4;
/// Equal requests at once, spread over the proxies.
const AT_ONCE: usize = 200;
/// Each one has a key of its own.
const ROUNDS: usize = 200;
/// The same when every run draws anew.
const ROUNDS_LONG: usize = 1_000;
const PATH: &str = "/orders";
/// Long enough that some repeats come while the first one is in work, short enough that some come
/// after it.
const LATENCY: Duration = Duration::from_millis(5);

/// What a crowd was told in one round or in all of them.
#[derive(Debug, Default)]
struct OutcomeCounts {
    handled: usize,
    replayed: usize,
    in_work: usize,
}

impl OutcomeCounts {
    /// Everything else that can be said is wrong.
    fn count(round: usize, said: &[ReceivedResponse]) -> Self {
        let mut told = Self::default();
        let answer = said.iter().find(|said| said.status == 200).map(|said| &said.body);
        for said in said {
            match (said.status, said.is_replay) {
                (200, false) => told.handled += 1,
                (200, true) => told.replayed += 1,
                (409, false) if said.body.contains("\"IDEMPOTENCY_KEY_PROCESSING\"") => told.in_work += 1,
                _ => panic!("round {round}: {said:?}"),
            }
            assert!(
                said.status != 200 || Some(&said.body) == answer,
                "round {round}: two answers to one key"
            );
        }
        told
    }
}

/// IDM-8: of 200 equal requests at once at four proxies one is handled, in each of 200 rounds;
/// everybody else gets its answer or is told that it is in work.
#[tokio::test(flavor = "multi_thread")]
async fn idm_8_a_storm_of_equal_requests_is_one_request() {
    let _alone = ALONE.lock().await;
    let redis = tokio::task::block_in_place(RedisServer::start);
    let sim = HttpSim::start(HttpSimOptions { latency: LATENCY, ..HttpSimOptions::default() }).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let upstream = format!("http://{}", sim.addr());
    let proxies: Vec<_> = (0..PROXIES)
        .map(|_| StartingServer::of(proxy(dir.path(), &upstream, &redis.url())))
        .map(|started| tokio::task::block_in_place(|| RunningServer::of(started)))
        .collect();
    let mut crowd = ClientPool::connect(proxies.iter().map(|proxy| proxy.address.as_str()), AT_ONCE).await;
    let (since, mut all) = (Instant::now(), OutcomeCounts::default());
    let rounds = if std::env::var_os("TIDEGATE_SEED").is_some() { ROUNDS_LONG } else { ROUNDS };
    for round in 0..rounds {
        let told =
            OutcomeCounts::count(round, &crowd.post_all(PATH, &round.to_string(), "{\"sku\":\"a-1\"}").await);
        assert_eq!(told.handled, 1, "round {round}: {told:?}");
        all.handled += told.handled;
        all.replayed += told.replayed;
        all.in_work += told.in_work;
    }
    println!("{rounds} rounds of {AT_ONCE} in {:?}: {all:?}", since.elapsed());
    assert!(all.replayed > 0 && all.in_work > 0, "only half of it was tried: {all:?}");
    let mut arrived = arrivals(&sim).await.remove(PATH).unwrap_or_default();
    arrived.sort_unstable();
    assert_eq!(arrived, (0..rounds).collect::<Vec<_>>(), "each key reached the service once");
}
