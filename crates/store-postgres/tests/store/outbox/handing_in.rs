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
    let with = |more: &str| {
        format!(r#"{{"upstream":"mail","group":"g","request":{{"method":"GET","path":"/"}}{more}}}"#)
    };
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
            "The field \"upstream\" must be a string.",
        ),
        (
            r#"{"upstream":"mail","group":"g","request":[]}"#.into(),
            "22023",
            "The field \"request\" must be an object.",
        ),
        (
            r#"{"upstream":"mail","group":"","request":{"method":"GET","path":"/"}}"#.into(),
            "22023",
            "The field \"group\" must be 1 to 255 bytes long.",
        ),
        (with(r#","dedupe_key":"""#), "22023", "The field \"dedupe_key\" must be 1 to 512 bytes long."),
        (
            r#"{"upstream":"mial","group":"g","request":{"method":"GET","path":"/"}}"#.into(),
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
            "The operation is 1114197 bytes long; the most is 1114112.",
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
        let fits = format!(
            r#"{{"upstream":"mail","group":"{}é","request":{{"method":"GET","path":"/"}}}}"#,
            "g".repeat(253)
        );
        enqueue(&mut sql, "tidegate", &fits).await.expect("255 bytes are no mistake");
        let escaped =
            r#"{"upstream":"mail","group":"g","request":{"method":"POST","path":"/","body":"\\u0000"}}"#;
        enqueue(&mut sql, "tidegate", escaped).await.expect("a backslash before u0000 is no zero");
        enqueue(&mut sql, "tidegate", &with(r#","dedupe_key":null"#)).await.expect("no key is no mistake");
        assert_eq!(waiting(&store).await.len(), 3);
        let error = enqueue(&mut sql, "tide\"gate", &operation("g")).await.expect_err("no such name");
        assert!(matches!(error, sqlx::Error::Configuration(_)), "{error}");
    });
}

/// A field of the wrong type fails the caller's transaction and is named, also inside the request;
/// what the node would accept passes.
#[test]
fn wrong_types_fail_the_callers_transaction() {
    let with = |request: &str, more: &str| {
        let request = format!(r#"{{"method":"POST","path":"/x"{request}}}"#);
        format!(r#"{{"upstream":"mail","group":"g","request":{request}{more}}}"#)
    };
    let bare = |request: &str| format!(r#"{{"upstream":"mail","group":"g","request":{request}}}"#);
    let wrong = [
        (with("", r#","kind":7"#), "The field \"kind\" must be a string."),
        (with("", r#","dedupe_key":7"#), "The field \"dedupe_key\" must be a string."),
        (with("", r#","deployment_id":{}"#), "The field \"deployment_id\" must be a string."),
        (with("", r#","deadline_at":7"#), "The field \"deadline_at\" must be a string."),
        (
            with("", r#","max_attempts":"8""#),
            "The field \"max_attempts\" must be a whole number of at least 0.",
        ),
        (
            with("", r#","deadline_ms":1.5"#),
            "The field \"deadline_ms\" must be a whole number of at least 0.",
        ),
        (with("", r#","delay_ms":-1"#), "The field \"delay_ms\" must be a whole number of at least 0."),
        (with("", r#","priority":true"#), "The field \"priority\" must be a whole number of at least 0."),
        (with("", r#","cost":[1]"#), "The field \"cost\" must be an object of limits and whole numbers."),
        (
            with("", r#","cost":{"points":"3"}"#),
            "The field \"cost.points\" must be a whole number of at least 0.",
        ),
        (
            with("", r#","on_unknown":"maybe""#),
            "The field \"on_unknown\" must be one of repeat, reconcile, ask.",
        ),
        (with("", r#","on_failure":1"#), "The field \"on_failure\" must be one of skip, hold."),
        (with("", r#","completion":true"#), "The field \"completion\" must be an object."),
        (bare("{}"), "The field \"request.method\" is missing."),
        (
            bare(r#"{"method":"post","path":"/"}"#),
            "The field \"request.method\" must be one of GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS.",
        ),
        (bare(r#"{"method":"GET"}"#), "The field \"request.path\" is missing."),
        (bare(r#"{"method":"GET","path":["/"]}"#), "The field \"request.path\" must be a string."),
        (with(r#","verb":1"#, ""), "There is no field \"request.verb\" in an operation."),
        (with(r#","path":"/y""#, ""), "The field \"request.path\" is there twice."),
        (
            with(r#","headers":["x"]"#, ""),
            "The field \"request.headers\" must be an object of names and strings.",
        ),
        (with(r#","headers":{"x-n":7}"#, ""), "The field \"request.headers.x-n\" must be a string."),
    ];
    let right = [
        with("", r#","cost":{"points":3,"calls":1.0},"max_attempts":8e0,"delay_ms":7.00,"priority":0"#),
        with("", r#","cost":null,"deadline_ms":1e3,"on_unknown":"ask","on_failure":"skip""#),
        with("", r#","kind":"http","deployment_id":"d","completion":{"callback":true}"#),
        with(r#","headers":{"x-n":"7"},"body":[1]"#, r#","deadline_at":"2031-05-06T07:08:09Z""#),
        with(r#","headers":null,"body":null"#, r#","completion":null,"dedupe_key":"k""#),
    ];
    run(async {
        let server = PostgresServer::start();
        let store = begun(&server).await;
        let mut sql = behind(&server).await;
        for (operation, sentence) in &wrong {
            let expected = ("22023".to_owned(), (*sentence).to_owned());
            assert_eq!(refused(&mut sql, operation).await, expected, "{operation}");
        }
        assert_eq!(waiting(&store).await, []);
        for operation in &right {
            enqueue(&mut sql, "tidegate", operation).await.expect(operation);
        }
        assert_eq!(waiting(&store).await.len(), right.len());
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
            SELECT tidegate.enqueue(jsonb_build_object('upstream', 'mail', 'group', 'g', 'max_attempts', 12,
                'request', '{"method":"GET","path":"/"}'::jsonb)::json);
            COMMIT"#,
        )
        .await;
        assert_eq!(hints.recv().await, Some(PARTITION.to_string()));
        assert_eq!(waiting(&store).await.len(), 3);
    });
}
