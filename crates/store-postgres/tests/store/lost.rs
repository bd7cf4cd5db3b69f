//! Broken connections and servers that go away: an unknown outcome is reported as such, nothing is
//! lost, and the store recovers by itself.

use std::sync::Arc;
use std::time::Duration;

use tidegate_core::Time;
use tidegate_core::operation::MICRO;
use tidegate_core::shared::bucket::ReservationRequest;
use tidegate_fixture::postgres::PostgresServer;
use tidegate_store::log::{Batch, Lsn};
use tidegate_store::nodes::NodeRecord;
use tidegate_store::{Hints, Log, Nodes, SharedState, StoreErrorKind, Upkeep};

use crate::sample::{PARTITION, TTL, accepts, behind, execute, kept, last, run, store, waiting_append};

/// The connections that a store keeps.
const POOL_MAX: usize = 8;

/// OPS-8: the outcome of an append whose connection was cut is unknown; reading again tells, and
/// the next append succeeds.
#[test]
fn ops_8_a_cut_in_the_middle_of_an_append_is_unsure() {
    run(async {
        let server = PostgresServer::start();
        let store = Arc::new(store(&server).await);
        let owner = store.acquire_partition(PARTITION, "node", TTL).await.expect("own");
        store.append(owner, accepts(1..3, Time::ZERO, 10)).await.expect("append");
        let (mut sql, mut stop) = (behind(&server).await, behind(&server).await);
        execute(&mut stop, "BEGIN; LOCK TABLE operations IN EXCLUSIVE MODE").await;
        let cut = {
            let store = Arc::clone(&store);
            tokio::spawn(async move { store.append(owner, accepts(3..5, Time::ZERO, 10)).await })
        };
        let connection = waiting_append(&mut sql).await;
        sqlx::query("SELECT pg_terminate_backend($1)").bind(connection).execute(&mut sql).await.expect("cut");
        let answer = cut.await.expect("join").map_err(|error| error.kind());
        assert_eq!(answer, Err(StoreErrorKind::Unsure));
        execute(&mut stop, "ROLLBACK").await;
        assert_eq!((last(&*store).await, kept(&*store, 1..9).await), (Lsn(1), 2));
        let again = Batch { follows: Some(Lsn(1)), ..accepts(3..5, Time::ZERO, 10) };
        assert_eq!(store.append(owner, again).await.expect("append again"), Lsn(2));
        assert_eq!(kept(&*store, 1..9).await, 4);
    });
}

/// OPS-8: everything acknowledged is there after the server was killed, and the same store recovers
/// when it is back.
#[test]
fn ops_8_a_server_that_was_killed_has_everything_answered() {
    run(async {
        let mut server = PostgresServer::start();
        let store = store(&server).await;
        let owner = store.acquire_partition(PARTITION, "node", TTL).await.expect("own");
        let mut answered = 0;
        for round in 0..3 {
            for _ in 0..20 {
                let next = answered * 5 + 1;
                let batch =
                    Batch { follows: Some(Lsn(answered)), ..accepts(next..next + 5, Time::ZERO, 500) };
                assert_eq!(store.append(owner, batch).await.expect("append"), Lsn(answered + 1));
                answered += 1;
            }
            server.kill();
            let next = answered * 5 + 1;
            let refused = store.append(owner, accepts(next..next + 5, Time::ZERO, 500)).await;
            let kind = refused.expect_err("there is no server").kind();
            assert!(matches!(kind, StoreErrorKind::Unsure | StoreErrorKind::Unavailable), "{kind:?}");
            assert_eq!(
                store.health().await.expect_err("there is no server").kind(),
                StoreErrorKind::Unavailable
            );
            server.restart();
            store.health().await.expect("be well again");
            assert_eq!(last(&store).await, Lsn(answered), "round {round}");
            assert_eq!(kept(&store, 1..answered * 5 + 100).await as u64, answered * 5, "round {round}");
        }
        store.renew(owner, TTL).await.expect("the owner is still the owner");
    });
}

/// A restart between two calls is hardly noticed: reads and idempotent statements are retried.
#[test]
fn a_server_that_was_restarted_is_used_again() {
    run(async {
        let mut server = PostgresServer::start();
        let store = store(&server).await;
        let mut hints = store.listen("topic").await.expect("listen");
        let owner = store.acquire_partition(PARTITION, "node", TTL).await.expect("own");
        store.append(owner, accepts(1..3, Time::ZERO, 10)).await.expect("append");
        // Several connections of the pool, all of which die.
        let looks = (0..6).map(|_| store.list_nodes());
        for look in looks.map(|look| async { look.await.expect("look") }).collect::<Vec<_>>() {
            look.await;
        }
        server.restart();
        assert_eq!(last(&store).await, Lsn(1));
        assert_eq!(kept(&store, 1..9).await, 2);
        store.renew(owner, TTL).await.expect("renew");
        store.register("node", &NodeRecord::default(), TTL).await.expect("register");
        let first = store.append(owner, accepts(3..5, Time::ZERO, 10)).await.map_err(|error| error.kind());
        assert!(matches!(first, Ok(Lsn(2)) | Err(StoreErrorKind::Unsure)), "{first:?}");
        let follows = Batch { follows: Some(last(&store).await), ..accepts(5..7, Time::ZERO, 10) };
        store.append(owner, follows).await.expect("append");
        let heard = async {
            loop {
                store.notify("topic", "again").await.expect("notify");
                if let Ok(heard) = tokio::time::timeout(Duration::from_millis(100), hints.recv()).await {
                    return heard;
                }
            }
        };
        assert_eq!(heard.await.as_deref(), Some("again"), "hints come again");
    });
}

/// LIM-30: while the store is unavailable nothing is granted, claimed or held: every verb fails.
#[test]
fn lim_30_nothing_is_granted_out_of_reach() {
    run(async {
        let mut server = PostgresServer::start();
        let store = store(&server).await;
        let want = || ReservationRequest {
            name: "requests".into(),
            cost: MICRO,
            capacity: 5 * MICRO,
            refill_per_s: MICRO,
        };
        store.reserve(vec![want()]).await.expect("reserve");
        server.stop();
        // Each connection of the pool that is believed to be intact makes one of them unsure.
        for _ in 0..POOL_MAX {
            let kind = store.reserve(vec![want()]).await.expect_err("there is no server").kind();
            if kind == StoreErrorKind::Unavailable {
                break;
            }
            assert_eq!(kind, StoreErrorKind::Unsure);
        }
        let kinds = [
            store.reserve(vec![want()]).await.map(drop),
            store.acquire_lease("bulk", TTL).await.map(drop),
            store.acquire_partition(PARTITION, "node", TTL).await.map(drop),
        ];
        for (place, answer) in kinds.into_iter().enumerate() {
            assert_eq!(
                answer.expect_err("there is no server").kind(),
                StoreErrorKind::Unavailable,
                "{place}"
            );
        }
        server.restart();
        store.reserve(vec![want()]).await.expect("reserve again");
    });
}
