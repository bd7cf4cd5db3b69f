//! An invalid operation is reported on submission, so that the caller's transaction fails there.

use sqlx::postgres::PgConnection;
use tidegate_fixture::postgres::PostgresServer;
use tidegate_store::{Hints, Upkeep};
use tidegate_store_postgres::outbox::enqueue;

use super::{PARTITION, begun, operation, publish, waiting};
use crate::sample::{behind, execute, run, store};

/// The code and the message with which an operation is rejected.
async fn refused(sql: &mut PgConnection, operation: &str) -> (String, String) {
    let error = enqueue(sql, "tidegate", operation).await.expect_err(operation);
    let said = error.as_database_error().expect("the server said it");
    (said.code().expect("a code").into_owned(), said.message().to_owned())
}

/// A mistake is reported by its field, with a message and an SQL error code; nothing is left
/// behind.
#[test]
fn mistakes_fail_the_callers_transaction() {
    let with = |more: &str| format!(r#"{{"upstream":"mail","group":"g","request":{{}}{more}}}"#);
    let table = [
        ("[1]".to_owned(), "22023", "An operation is an object in braces, not of the type array."),
        ("null".to_owned(), "22023", "An operation is an object in braces, not of the type null."),
        (with(r#","key":"k""#), "22023", "There is no field \"key\" in an operation."),
        (with(r#","group":"h""#), "22023", "The field \"group\" is there twice."),
        (r#"{"upstream":"mail","request":{}}"#.into(), "22023", "The field \"group\" is missing."),
        (r#"{"upstream":"mail","group":"g"}"#.into(), "22023", "The field \"request\" is missing."),
        (
            r#"{"upstream":"mail","group":null,"request":{}}"#.into(),
            "22023",
            "The field \"group\" is missing.",
        ),
        (
            r#"{"upstream":7,"group":"g","request":{}}"#.into(),
            "22023",
            "The field \"upstream\" must be a text.",
        ),
        (
            r#"{"upstream":"mail","group":"g","request":[]}"#.into(),
            "22023",
            "The field \"request\" must be an object.",
        ),
        (
            r#"{"upstream":"mail","group":"","request":{}}"#.into(),
            "22023",
            "The field \"group\" must be 1 to 255 bytes long.",
        ),
        (with(r#","dedupe_key":"""#), "22023", "The field \"dedupe_key\" must be 1 to 512 bytes long."),
        (
            r#"{"upstream":"mial","group":"g","request":{}}"#.into(),
            "22023",
            "There is no upstream \"mial\": no node was started with it.",
        ),
        (
            r#"{"upstream":"mail","group":"g","request":{"body":"a\\\u0000b"}}"#.into(),
            "22P05",
            "An operation that is handed in here cannot hold the character \\u0000.",
        ),
        (
            with(&format!(r#","dedupe_key":"{}""#, "x".repeat(1_114_112))),
            "54000",
            "The operation is 1114172 bytes long; the most is 1114112.",
        ),
    ];
    run(async {
        let server = PostgresServer::start();
        let store = begun(&server).await;
        let mut sql = behind(&server).await;
        for (operation, code, sentence) in &table {
            assert_eq!(refused(&mut sql, operation).await, ((*code).to_owned(), (*sentence).to_owned()));
        }
        assert_eq!(refused(&mut sql, "{").await.0, "22P02", "no JSON at all");
        assert_eq!(waiting(&store).await, []);
        let fits = format!(r#"{{"upstream":"mail","group":"{}é","request":{{}}}}"#, "g".repeat(253));
        enqueue(&mut sql, "tidegate", &fits).await.expect("255 bytes are no mistake");
        let escaped = r#"{"upstream":"mail","group":"g","request":{"body":"\\u0000"}}"#;
        enqueue(&mut sql, "tidegate", escaped).await.expect("a backslash before u0000 is no zero");
        enqueue(&mut sql, "tidegate", &with(r#","dedupe_key":null"#)).await.expect("no key is no mistake");
        assert_eq!(waiting(&store).await.len(), 3);
        let error = enqueue(&mut sql, "tide\"gate", &operation("g")).await.expect_err("no such name");
        assert!(matches!(error, sqlx::Error::Configuration(_)), "{error}");
    });
}

/// Before a node was started, no operation has a partition.
#[test]
fn nothing_is_taken_before_a_node_was_started() {
    run(async {
        let server = PostgresServer::start();
        let store = store(&server).await;
        let mut sql = behind(&server).await;
        let (code, sentence) = refused(&mut sql, &operation("g")).await;
        assert_eq!(
            (&*code, &*sentence),
            ("55000", "No Tidegate node has been started on the schema tidegate yet.")
        );
        store.ensure_partitions(super::PARTITIONS).await.expect("set the number of partitions");
        publish(&store, false).await;
        enqueue(&mut sql, "tidegate", &operation("g")).await.expect("enqueue");
    });
}

/// Plain SQL is enough, from any search path and whatever the session's settings are; listeners are
/// notified after the commit.
#[test]
fn plain_sql_hands_in_and_gives_a_hint() {
    run(async {
        let server = PostgresServer::start();
        let store = begun(&server).await;
        let mut hints = store.listen(tidegate_store::outbox::TOPIC).await.expect("listen");
        let mut sql = behind(&server).await;
        execute(
            &mut sql,
            r#"SET search_path = public; SET standard_conforming_strings = off; SET DateStyle = 'German';
            CREATE TABLE orders (id int);
            BEGIN;
            INSERT INTO orders VALUES (7);
            SELECT tidegate.enqueue('{"upstream":"mail","group":"shop:1","request":{"method":"GET","path":"/"}}');
            SELECT tidegate.enqueue(json_build_object('upstream', 'mail', 'group', 'shop:' || id,
                'dedupe_key', 'order-' || id, 'request', json_build_object('method', 'GET', 'path', '/'))) FROM orders;
            SELECT tidegate.enqueue(jsonb_build_object('upstream', 'mail', 'group', 'g', 'request', '{}'::jsonb)::json);
            COMMIT"#,
        )
        .await;
        assert_eq!(hints.recv().await, Some(PARTITION.to_string()));
        assert_eq!(waiting(&store).await.len(), 3);
    });
}
