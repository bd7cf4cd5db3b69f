//! Connecting and laying out: once, by whoever comes first; never over what is newer or somebody else's; and nobody
//! ever sees a password.

use sqlx::AssertSqlSafe;
use tidegate_fixture::postgres::Postgres as Server;
use tidegate_store::{Kind, Log, Shared, Upkeep};
use tidegate_store_postgres::Postgres;

use crate::sample::{PARTITION, TTL, behind, execute, run, store};

#[test]
fn many_may_lay_out_at_once() {
    run(async {
        let server = Server::start();
        let url = server.url();
        let laying = (0..6).map(|_| {
            let url = url.clone();
            tokio::spawn(async move {
                let store = Postgres::connect(&url).await?;
                store.migrate().await?;
                store.migrate().await?;
                store.acquire_lease("bulk", TTL).await
            })
        });
        let mut held = 0;
        for laid in laying.collect::<Vec<_>>() {
            let lease = laid.await.expect("join").expect("migrate");
            held += usize::from(matches!(lease, tidegate_core::shared::lease::Acquired::Held(_)));
        }
        assert_eq!(held, 1, "all of them share one layout");
    });
}

#[test]
fn what_is_newer_or_not_ours_is_not_touched() {
    run(async {
        let server = Server::start();
        let store = store(&server).await;
        let owner = store.own(PARTITION, "node", TTL).await.expect("own");
        let mut sql = behind(&server).await;
        execute(&mut sql, "UPDATE meta SET value = 7 WHERE name = 'format'").await;
        let error = store.migrate().await.expect_err("it is newer");
        assert_eq!(error.kind(), Kind::Unreadable);
        assert!(error.to_string().ends_with("has format 7; this program reads format 1"), "{error}");
        // An owner that was there before notices too.
        assert_eq!(store.renew(owner, TTL).await.expect_err("it is newer").kind(), Kind::Unreadable);
        assert_eq!(store.health().await.expect_err("it is newer").kind(), Kind::Unreadable);
        assert_eq!(store.layout().await.expect_err("it is newer").kind(), Kind::Unreadable);
        execute(&mut sql, "CREATE SCHEMA theirs; CREATE TABLE theirs.orders (id int)").await;
        let theirs = Postgres::connect(&format!("{}?schema=theirs", server.url())).await.expect("connect");
        assert_eq!(theirs.migrate().await.expect_err("it is not ours").kind(), Kind::Unreadable);
        let missing = Postgres::connect(&format!("{}?schema=nowhere", server.url())).await.expect("connect");
        let error = missing.health().await.expect_err("nothing is laid out");
        assert_eq!(error.kind(), Kind::Unreadable, "{error}");
    });
}

/// What the server grants to anybody is told, not what our own connections insist on.
#[test]
fn a_server_tells_its_version_and_settings() {
    run(async {
        let server = Server::start();
        let mut sql = behind(&server).await;
        execute(&mut sql, "ALTER ROLE CURRENT_USER SET synchronous_commit = off").await;
        let store = Postgres::connect(&server.url()).await.expect("connect");
        let told = store.server().await.expect("settings");
        let value = |name: &str| told.iter().find(|(found, _)| found == name).map(|(_, value)| &**value);
        assert_eq!(value("synchronous_commit"), Some("off"), "{told:?}");
        assert_eq!(value("shared_buffers"), Some("64 MB"), "{told:?}");
        assert!(value("fsync").is_some() && value("server_version").is_some(), "{told:?}");
    });
}

#[test]
fn schemas_are_apart() {
    run(async {
        let server = Server::start();
        let first = store(&server).await;
        let second = Postgres::connect(&format!("{}?schema=second", server.url())).await.expect("connect");
        second.migrate().await.expect("migrate");
        for store in [&first, &second] {
            let lease = store.acquire_lease("bulk", TTL).await.expect("acquire");
            assert!(matches!(lease, tidegate_core::shared::lease::Acquired::Held(_)));
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
        let mut server = Server::start();
        let mut sql = behind(&server).await;
        let role = format!(
            "CREATE ROLE guarded LOGIN PASSWORD '{RIGHT}'; GRANT CREATE ON DATABASE postgres TO guarded"
        );
        sqlx::raw_sql(AssertSqlSafe(role)).execute(&mut sql).await.expect("make a role");
        let let_in = Postgres::connect(&server.guarded_url(RIGHT)).await.expect("connect with a password");
        let_in.migrate().await.expect("a role that is not the superuser lays out");
        let mut said = vec![let_in.describe()];
        let Err(error) = Postgres::connect(&server.guarded_url(WRONG)).await else { panic!("let in") };
        assert_eq!(error.kind(), Kind::Unavailable);
        said.extend([error.to_string(), format!("{error:?}")]);
        server.stop();
        let error = let_in.health().await.expect_err("there is no server");
        said.extend([error.to_string(), format!("{error:?}")]);
        let Err(error) = Postgres::connect(&server.guarded_url(RIGHT)).await else { panic!("no server") };
        assert_eq!(error.kind(), Kind::Unavailable);
        said.extend([error.to_string(), format!("{error:?}")]);
        for said in said {
            assert!(!said.contains(RIGHT) && !said.contains(WRONG), "{said}");
        }
    });
}
