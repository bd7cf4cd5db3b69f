//! Node membership: a row for each node, by the server's clock. Hints go through the server and may
//! be lost.

use std::time::Duration;

use sqlx::postgres::PgRow;
use tidegate_store::nodes::{Node, NodeRecord};
use tidegate_store::{Error, Hints, Nodes, Result, StoreErrorKind, StoreFuture};
use tokio::sync::mpsc;

use crate::session::{RetrySafety, Statement};
use crate::{PostgresStore, checks, hints, rows};

const REGISTER: &str = "INSERT INTO nodes (name, address, leaving, unreadable, placement_hash, until)
    VALUES ($1, $2, $3, $4, $5, bits(later(moment($7), $6)))
    ON CONFLICT (name) DO UPDATE SET address = excluded.address, leaving = excluded.leaving,
        unreadable = excluded.unreadable, placement_hash = excluded.placement_hash, until = excluded.until
    RETURNING name, address, leaving, unreadable, placement_hash, until";
const HEARTBEAT: &str = "UPDATE nodes SET until = bits(later(moment($3), $2))
    WHERE name = $1 AND unsigned(until) > moment($3)
    RETURNING name, address, leaving, unreadable, placement_hash, until";
const LIST: &str = "SELECT name, address, leaving, unreadable, placement_hash, until FROM nodes
    WHERE unsigned(until) > moment($1) ORDER BY name";
/// Removes nodes that have long been gone, whenever a node registers.
const FORGET: &str = "DELETE FROM nodes WHERE name IN (
    SELECT name FROM nodes WHERE unsigned(until) + unsigned($2) < moment($1) FOR UPDATE SKIP LOCKED)";
/// How long a dead node stays in the table, for people who look.
const REMEMBERED_FOR: Duration = Duration::from_secs(24 * 3_600);

impl PostgresStore {
    fn node(&self, row: &PgRow) -> Result<Node> {
        let unreadable: Vec<i32> = self.sessions.column(row, 3)?;
        let record = NodeRecord {
            address: self.sessions.column(row, 1)?,
            leaving: self.sessions.column(row, 2)?,
            unreadable: unreadable.into_iter().filter_map(|number| number.try_into().ok()).collect(),
            placement_hash: self.sessions.column(row, 4)?,
        };
        Ok(Node {
            name: self.sessions.column(row, 0)?,
            record,
            until: rows::time(self.sessions.column(row, 5)?),
        })
    }
}

impl Nodes for PostgresStore {
    fn register(&self, name: &str, record: &NodeRecord, ttl: Duration) -> StoreFuture<'_, Node> {
        let (name, record) = (name.to_owned(), record.clone());
        Box::pin(async move {
            checks::name_can_be_kept(&name)?;
            checks::name_can_be_kept(&record.address)?;
            checks::name_can_be_kept(record.placement_hash.as_deref().unwrap_or_default())?;
            let clock = self.clock();
            let forget = |q: Statement<'static>| q.bind(clock).bind(rows::span(REMEMBERED_FOR));
            self.sessions.rows(RetrySafety::Harmless, FORGET, forget).await?;
            let unreadable: Vec<i32> = record.unreadable.iter().copied().map(i32::from).collect();
            let row = self
                .sessions
                .row(RetrySafety::Harmless, REGISTER, |q| {
                    let record = q
                        .bind(&name)
                        .bind(&record.address)
                        .bind(record.leaving)
                        .bind(&unreadable)
                        .bind(record.placement_hash.as_deref());
                    record.bind(rows::span(ttl)).bind(clock)
                })
                .await?;
            self.node(&row)
        })
    }

    fn heartbeat(&self, name: &str, ttl: Duration) -> StoreFuture<'_, Node> {
        let name = name.to_owned();
        Box::pin(async move {
            let clock = self.clock();
            let found = self
                .sessions
                .rows(RetrySafety::Harmless, HEARTBEAT, |q| q.bind(&name).bind(rows::span(ttl)).bind(clock))
                .await?;
            match found.first() {
                Some(row) => self.node(row),
                None => {
                    Err(Error::new(StoreErrorKind::Invalid, format!("the node {name} is not registered")))
                }
            }
        })
    }

    fn list_nodes(&self) -> StoreFuture<'_, Vec<Node>> {
        Box::pin(async move {
            let clock = self.clock();
            let found = self.sessions.rows(RetrySafety::Harmless, LIST, |q| q.bind(clock)).await?;
            found.iter().map(|row| self.node(row)).collect()
        })
    }
}

impl Hints for PostgresStore {
    fn notify(&self, topic: &str, hint: &str) -> StoreFuture<'_, usize> {
        let (channel, hint) = (hints::channel(&self.sessions.schema, topic), hint.to_owned());
        Box::pin(async move {
            hints::check_hint(&hint)?;
            self.sessions
                .rows(RetrySafety::Harmless, hints::NOTIFY, |q| q.bind(&channel).bind(&hint))
                .await?;
            // The server does not report who listens.
            Ok(0)
        })
    }

    fn listen(&self, topic: &str) -> StoreFuture<'_, mpsc::Receiver<String>> {
        let channel = hints::channel(&self.sessions.schema, topic);
        Box::pin(self.subscriber.listen(channel))
    }
}
