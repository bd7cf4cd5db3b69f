//! Connecting and migrating: once, by the first process; never over a newer schema or another
//! program's tables; and no password is ever shown.

use sqlx::AssertSqlSafe;
use tidegate_core::Time;
use tidegate_core::shared::record::{HolderToken, OnLapse, RecordClaim, RecordClaimOutcome};
use tidegate_fixture::postgres::PostgresServer;
use tidegate_store::nodes::NodeRecord;
use tidegate_store::{Log, Nodes, SharedState, StoreErrorKind, Upkeep};
use tidegate_store_postgres::PostgresStore;

use crate::sample::{FORMAT_7, PARTITION, TTL, accepts, behind, execute, kept, run, store};

/// What differs in format 1.
const FORMAT_1: &str = r#"DROP TABLE records;
    CREATE TABLE records (
        key text COLLATE "C" PRIMARY KEY, fingerprint bytea NOT NULL, fence bigint NOT NULL, created bigint NOT NULL,
        expires bigint NOT NULL, until bigint, answer bytea
    );
    CREATE INDEX records_completed ON records (expires) WHERE answer IS NOT NULL AND expires >= 0;
    CREATE FUNCTION claim_record(_key text, _fingerprint bytea, _lease bigint, _ttl bigint, _clock bigint)
        RETURNS TABLE (verdict text, number bigint, answer bytea) LANGUAGE sql
        AS $$ SELECT 'yours', 1::bigint, NULL::bytea $$;
    UPDATE meta SET value = 1 WHERE name = 'format'"#;

/// Removes what formats 1 and 2 did not have yet.
const FORMAT_2: &str = "ALTER TABLE nodes DROP COLUMN leaving, DROP COLUMN unreadable, DROP COLUMN placement_hash;
    DROP FUNCTION append_with_attempts;
    DROP TABLE attempts;
    DROP FUNCTION keep_deployment, write_journal, hold_journal;
    DROP TABLE deployments, deployment_steps, deployment_objects;
    DROP FUNCTION append_with_costs, sweep_costs, keep_standings;
    DROP TABLE api_cost_tracking, rate_limit_buckets;
    ALTER TABLE buckets RENAME TO rate_limit_buckets; ALTER INDEX buckets_pkey RENAME TO rate_limit_buckets_pkey";

/// A node as it registered itself before format 8.
const NODE: &str = "INSERT INTO nodes
    VALUES ('ben', '10.0.0.2:7400 leaving without=3,12 placing=7f', 9000000000000000000)";

#[test]
fn many_may_lay_out_at_once() {
    run(async {
        let server = PostgresServer::start();
        let url = server.url();
        let laying = (0..6).map(|_| {
            let url = url.clone();
            tokio::spawn(async move {
                let store = PostgresStore::connect(&url).await?;
                store.migrate().await?;
                store.migrate().await?;
                store.acquire_lease("bulk", TTL).await
            })
        });
        let mut held = 0;
        for laid in laying.collect::<Vec<_>>() {
            let lease = laid.await.expect("join").expect("migrate");
            held += usize::from(matches!(lease, tidegate_core::shared::lease::AcquireOutcome::Held(_)));
        }
        assert_eq!(held, 1, "all of them share one layout");
    });
}

#[test]
fn what_is_newer_or_not_ours_is_not_touched() {
    run(async {
        let server = PostgresServer::start();
        let store = store(&server).await;
        let owner = store.acquire_partition(PARTITION, "node", TTL).await.expect("own");
        let mut sql = behind(&server).await;
        execute(&mut sql, "UPDATE meta SET value = 13 WHERE name = 'format'").await;
        let error = store.migrate().await.expect_err("it is newer");
        assert_eq!(error.kind(), StoreErrorKind::Unreadable);
        assert!(error.to_string().ends_with("has format 13; this program reads format 12"), "{error}");
        // An existing owner notices too.
        assert_eq!(
            store.renew(owner, TTL).await.expect_err("it is newer").kind(),
            StoreErrorKind::Unreadable
        );
        assert_eq!(store.health().await.expect_err("it is newer").kind(), StoreErrorKind::Unreadable);
        assert_eq!(store.check_layout().await.expect_err("it is newer").kind(), StoreErrorKind::Unreadable);
        execute(&mut sql, "CREATE SCHEMA theirs; CREATE TABLE theirs.orders (id int)").await;
        let theirs =
            PostgresStore::connect(&format!("{}?schema=theirs", server.url())).await.expect("connect");
        assert_eq!(theirs.migrate().await.expect_err("it is not ours").kind(), StoreErrorKind::Unreadable);
        let missing =
            PostgresStore::connect(&format!("{}?schema=nowhere", server.url())).await.expect("connect");
        let error = missing.health().await.expect_err("nothing is laid out");
        assert_eq!(error.kind(), StoreErrorKind::Unreadable, "{error}");
    });
}

/// A store of format 1 is migrated in place: its contents stay, its records, which were never
/// filled, are created anew, and nodes that registered are known as before.
#[test]
fn a_store_of_format_1_is_brought_up_to_date() {
    run(async {
        let server = PostgresServer::start();
        let store = store(&server).await;
        let owner = store.acquire_partition(PARTITION, "node", TTL).await.expect("own");
        store.append(owner, accepts(1..4, Time::ZERO, 10)).await.expect("append");
        let mut sql = behind(&server).await;
        execute(&mut sql, FORMAT_7).await;
        execute(&mut sql, FORMAT_2).await;
        execute(&mut sql, "DROP FUNCTION claim_record, forget_record, is_live").await;
        execute(&mut sql, FORMAT_1).await;
        execute(&mut sql, NODE).await;
        let again = PostgresStore::connect(&server.url()).await.expect("connect");
        again.migrate().await.expect("migrate");
        let claim = RecordClaim {
            fingerprint: [7; 32],
            token: HolderToken([1; 16]),
            lease: TTL,
            ttl: TTL,
            on_lapse: OnLapse::Hold,
        };
        let claimed = again.claim_record("key", claim).await.expect("claim");
        assert_eq!(claimed, RecordClaimOutcome::Granted { taken_over: false });
        assert_eq!(kept(&again, 1..4).await, 3);
        // A node of the previous version continues with what it had until it notices.
        store.append(owner, accepts(4..5, Time::ZERO, 10)).await.expect("append");
        let format: i64 = sqlx::query_scalar("SELECT value FROM meta WHERE name = 'format'")
            .fetch_one(&mut sql)
            .await
            .expect("ask");
        assert_eq!(format, 12);
        let record = NodeRecord {
            leaving: true,
            unreadable: [3, 12].into(),
            placement_hash: Some("7f".into()),
            ..NodeRecord::at("10.0.0.2:7400")
        };
        assert_eq!(again.list_nodes().await.expect("list")[0].record, record);
    });
}

/// The server's defaults for any connection are reported, not what our own connections insist on.
#[test]
fn a_server_tells_its_version_and_settings() {
    run(async {
        let server = PostgresServer::start();
        let mut sql = behind(&server).await;
        execute(&mut sql, "ALTER ROLE CURRENT_USER SET synchronous_commit = off").await;
        let store = PostgresStore::connect(&server.url()).await.expect("connect");
        let told = store.server_settings().await.expect("settings");
        let value = |name: &str| told.iter().find(|(found, _)| found == name).map(|(_, value)| &**value);
        assert_eq!(value("synchronous_commit"), Some("off"), "{told:?}");
        assert_eq!(value("shared_buffers"), Some("64 MB"), "{told:?}");
        assert!(value("fsync").is_some() && value("server_version").is_some(), "{told:?}");
    });
}

#[test]
fn schemas_are_apart() {
    run(async {
        let server = PostgresServer::start();
        let first = store(&server).await;
        let second =
            PostgresStore::connect(&format!("{}?schema=second", server.url())).await.expect("connect");
        second.migrate().await.expect("migrate");
        for store in [&first, &second] {
            let lease = store.acquire_lease("bulk", TTL).await.expect("acquire");
            assert!(matches!(lease, tidegate_core::shared::lease::AcquireOutcome::Held(_)));
        }
        assert!(second.describe().ends_with("/postgres?schema=second"), "{}", second.describe());
    });
}

/// OPS-22: a password is in no error and in no description, whether it is right or wrong.
#[test]
fn ops_22_a_password_is_never_told() {
    const RIGHT: &str = "correct-horse";
    const WRONG: &str = "battery-staple";
    run(async {
        let mut server = PostgresServer::start();
        let mut sql = behind(&server).await;
        let role = format!(
            "CREATE ROLE guarded LOGIN PASSWORD '{RIGHT}'; GRANT CREATE ON DATABASE postgres TO guarded"
        );
        sqlx::raw_sql(AssertSqlSafe(role)).execute(&mut sql).await.expect("make a role");
        let let_in =
            PostgresStore::connect(&server.guarded_url(RIGHT)).await.expect("connect with a password");
        let_in.migrate().await.expect("a role that is not the superuser lays out");
        let mut said = vec![let_in.describe()];
        let Err(error) = PostgresStore::connect(&server.guarded_url(WRONG)).await else { panic!("let in") };
        assert_eq!(error.kind(), StoreErrorKind::Unavailable);
        said.extend([error.to_string(), format!("{error:?}")]);
        server.stop();
        let error = let_in.health().await.expect_err("there is no server");
        said.extend([error.to_string(), format!("{error:?}")]);
        let Err(error) = PostgresStore::connect(&server.guarded_url(RIGHT)).await else {
            panic!("no server")
        };
        assert_eq!(error.kind(), StoreErrorKind::Unavailable);
        said.extend([error.to_string(), format!("{error:?}")]);
        for said in said {
            assert!(!said.contains(RIGHT) && !said.contains(WRONG), "{said}");
        }
    });
}
