//! Lists that are longer than what one page may scan.

use std::sync::Arc;

use tidegate_core::{EndState, Seq, Time};
use tidegate_fixture::postgres::PostgresServer;
use tidegate_store::Log;
use tidegate_store::log::StoredQuery;

use crate::sample::{PARTITION, TTL, accepts, ends, run, store};

/// OPS-25: a page that finds nothing in what it may scan returns where to resume; failures are
/// found without scanning the rest.
#[test]
fn ops_25_a_long_list_is_looked_at_in_bounded_steps() {
    const ALL: u64 = 51_001;
    run(async {
        let server = PostgresServer::start();
        let store = store(&server).await;
        let owner = store.acquire_partition(PARTITION, "node", TTL).await.expect("own");
        for first in (1..ALL).step_by(3_000) {
            let mut batch = accepts(first..first + 3_000, Time::ZERO, 1);
            batch.results = ends(first..first + 3_000, Time::ZERO).results;
            if first == 1 {
                Arc::make_mut(&mut batch.operations[4]).group = "rare".into();
                batch.results[6].state = EndState::Failed;
            }
            store.append(owner, batch).await.expect("append");
        }
        let rare = StoredQuery { group: Some("rare".into()), limit: 10, ..StoredQuery::default() };
        let first = store.list(PARTITION, rare.clone()).await.expect("list");
        assert!(first.items.is_empty());
        let next = first.next.expect("there is more");
        assert_eq!(next, Seq(ALL - 50_000));
        let second = store.list(PARTITION, StoredQuery { before: Some(next), ..rare }).await.expect("list");
        assert_eq!(second.items.iter().map(|item| item.operation.seq).collect::<Vec<_>>(), [Seq(5)]);
        assert_eq!(second.next, None);
        let failed = StoredQuery { ended: Some(EndState::Failed), limit: 10, ..StoredQuery::default() };
        let found = store.list(PARTITION, failed).await.expect("list");
        assert_eq!(found.items.iter().map(|item| item.operation.seq).collect::<Vec<_>>(), [Seq(7)]);
        assert_eq!(found.next, None);
    });
}
