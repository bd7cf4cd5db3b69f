//! The cost of an append, printed as a figure, and in transactions.

use tidegate_core::Time;
use tidegate_fixture::postgres::PostgresServer;
use tidegate_store::Log;

use crate::sample::{PARTITION, TTL, accepts, behind, run, store};

/// OPS-8: a batch of 128 is one transaction. Its duration is printed.
#[test]
fn ops_8_a_batch_is_one_transaction() {
    const BATCHES: u64 = 300;
    /// The transactions that the server may run by itself meanwhile.
    const OTHERS_MAX: i64 = 50;
    run(async {
        let server = PostgresServer::start();
        let store = store(&server).await;
        let owner = store.acquire_partition(PARTITION, "node", TTL).await.expect("own");
        let mut sql = behind(&server).await;
        let count = "SELECT pg_current_xact_id()::text::bigint";
        let before: i64 = sqlx::query_scalar(count).fetch_one(&mut sql).await.expect("count");
        let mut took = Vec::new();
        for batch in 0..BATCHES {
            let batch = accepts(1 + batch * 128..1 + (batch + 1) * 128, Time::ZERO, 512);
            let start = tokio::time::Instant::now();
            store.append(owner, batch).await.expect("append");
            took.push(start.elapsed());
        }
        let after: i64 = sqlx::query_scalar(count).fetch_one(&mut sql).await.expect("count");
        took.sort_unstable();
        let (median, worst) = (took[took.len() / 2], took[took.len() - 1]);
        println!("an append of 128 operations of 512 bytes: median {median:?}, slowest {worst:?}");
        let spent = after - before - 1;
        assert!((BATCHES as i64..BATCHES as i64 + OTHERS_MAX).contains(&spent), "{spent} transactions");
    });
}
