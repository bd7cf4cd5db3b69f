//! The privileges of a role that submits: those that the documentation names, and no others.

use sqlx::postgres::PgConnection;
use tidegate_fixture::postgres::PostgresServer;
use tidegate_store_postgres::outbox::enqueue;

use super::{begun, operation, waiting};
use crate::sample::{behind, execute, run};

async fn refused(sql: &mut PgConnection, what: &'static str) {
    let error = sqlx::raw_sql(what).execute(sql).await.expect_err(what);
    let code =
        error.as_database_error().and_then(sqlx::error::DatabaseError::code).expect("a code").into_owned();
    assert_eq!(code, "42501", "{what}: {error}");
}

/// A role with the documented privileges can submit and do nothing else; without them it cannot
/// even do that. Nothing that it can create interferes with the function.
#[test]
fn a_role_needs_the_documented_rights_and_gets_no_others() {
    run(async {
        let server = PostgresServer::start();
        let store = begun(&server).await;
        let (mut admin, mut sql) = (behind(&server).await, behind(&server).await);
        execute(&mut admin, "CREATE ROLE app; GRANT USAGE ON SCHEMA tidegate TO app").await;
        execute(&mut sql, "SET ROLE app; SET search_path = pg_temp, public, pg_catalog").await;
        refused(&mut sql, r#"SELECT tidegate.enqueue('{"upstream":"mail","group":"g","request":{"method":"GET","path":"/"}}')"#).await;
        execute(&mut admin, "GRANT EXECUTE ON FUNCTION tidegate.enqueue(json) TO app").await;
        enqueue(&mut sql, "tidegate", &operation("g")).await.expect("enqueue");
        for what in [
            "SELECT FROM tidegate.outbox",
            "SELECT FROM tidegate.outbox_refused",
            "SELECT FROM tidegate.operations",
            "DELETE FROM tidegate.outbox",
            "INSERT INTO tidegate.upstreams VALUES ('mine', true)",
            "SET search_path = tidegate; SELECT publish(ARRAY['mine'], ARRAY[true])",
            "CREATE TABLE tidegate.mine (id int)",
        ] {
            refused(&mut sql, what).await;
        }
        execute(
            &mut sql,
            "CREATE TEMP TABLE upstreams (name text, is_spread boolean); INSERT INTO upstreams VALUES ('mine', true);
            CREATE TEMP TABLE outbox (id bigint, partition int, at bigint, len int, operation json);
            CREATE FUNCTION pg_temp.problem_of(json) RETURNS text LANGUAGE sql AS $$ SELECT 'in the way' $$",
        )
        .await;
        let mine = operation("g").replace("mail", "mine");
        enqueue(&mut sql, "tidegate", &mine).await.expect_err("there is no such upstream");
        enqueue(&mut sql, "tidegate", &operation("g")).await.expect("enqueue");
        assert_eq!(waiting(&store).await.len(), 2);
    });
}
