//! Shared records on PostgreSQL: each verb is one statement, decided in the server like the pure
//! function of the same name in `core`. A verb that must not happen twice is never sent twice.

mod records;

use std::time::Duration;

use bytes::Bytes;
use sqlx::postgres::PgRow;
use tidegate_core::shared::bucket::{Level, ReservationRequest, ReserveOutcome, Settlement};
use tidegate_core::shared::lease::{self, AcquireOutcome, Lease, LeaseStatus};
use tidegate_core::shared::record::{
    ForgetOutcome, ForgetTarget, HolderToken, Record, RecordClaim, RecordClaimOutcome,
};
use tidegate_core::shared::window::{HydrationWindow, OpenWindowOutcome};
use tidegate_store::{NamedPage, RecordPage, Result, SharedState, StoreFuture};

use crate::errors::unreadable;
use crate::session::RetrySafety;
use crate::{PostgresStore, checks, rows};

/// How long windows stay after they closed, so that a clock that steps back a little finds them.
const WINDOW_GRACE: Duration = Duration::from_secs(60);

const ACQUIRE: &str = "SELECT is_held, fence, until FROM acquire_lease($1, $2, $3)";
const KEEP: &str = "SELECT keep_lease($1, $2, $3, $4)";
const RESERVE: &str = "SELECT verdict, number, remaining FROM reserve($1, $2, $3, $4, $5)";
const SETTLE: &str = "SELECT tokens, carry, at, capacity, refill_per_s FROM settle_bucket($1, $2, $3, $4)";
const OBSERVE: &str = "SELECT (now).tokens, (now).carry, (now).at, (now).capacity, (now).refill_per_s
    FROM (SELECT refreshed(b, moment($2)) AS now FROM buckets AS b WHERE b.name = $1 OFFSET 0) AS found";
const LOOK_LEASE: &str = "SELECT fence, until, bits(moment($2)) FROM leases WHERE name = $1";
const LIST_LEASES: &str = "SELECT fence, until, (SELECT bits(moment($3))), name FROM leases
    WHERE name > $1 ORDER BY name LIMIT $2";
const LIST_BUCKETS: &str =
    "SELECT (now).tokens, (now).carry, (now).at, (now).capacity, (now).refill_per_s, name
    FROM (SELECT refreshed(b, moment($3)) AS now, b.name FROM buckets AS b
        WHERE b.name > $1 ORDER BY b.name LIMIT $2) AS found ORDER BY name";
const FORGET_BUCKET: &str = "DELETE FROM buckets WHERE name = $1 RETURNING 1";
const OPEN: &str = "SELECT asks, level, until FROM open_window($1, $2, $3, $4, $5)";

impl PostgresStore {
    async fn update_lease(&self, name: &str, fence: u64, ttl: Option<Duration>) -> Result<Option<Lease>> {
        checks::name_can_be_kept(name)?;
        let (clock, ttl) = (self.clock(), ttl.map(rows::span));
        let row = self
            .sessions
            .row(RetrySafety::Unsafe, KEEP, |q| q.bind(name).bind(fence.cast_signed()).bind(ttl).bind(clock))
            .await?;
        let until: Option<i64> = self.sessions.column(&row, 0)?;
        Ok(until.map(|until| Lease { fence, until: rows::time(until) }))
    }

    async fn reserve_all(&self, wanted: &[ReservationRequest]) -> Result<ReserveOutcome> {
        checks::check_unique_names(wanted)?;
        for want in wanted {
            checks::name_can_be_kept(&want.name)?;
        }
        let clock = self.clock();
        let names: Vec<&str> = wanted.iter().map(|want| want.name.as_str()).collect();
        let figures = |of: fn(&ReservationRequest) -> u64| {
            wanted.iter().map(|want| of(want).cast_signed()).collect::<Vec<_>>()
        };
        let row = self
            .sessions
            .row(RetrySafety::Unsafe, RESERVE, |q| {
                let q = q.bind(names.clone()).bind(figures(|want| want.cost));
                q.bind(figures(|want| want.capacity)).bind(figures(|want| want.refill_per_s)).bind(clock)
            })
            .await?;
        let number = self.sessions.column::<i64>(&row, 1)?.cast_unsigned();
        let remaining: Vec<i64> = self.sessions.column(&row, 2)?;
        let remaining = remaining.into_iter().map(i64::cast_unsigned).collect();
        match self.sessions.column(&row, 0)? {
            "granted" => Ok(ReserveOutcome::Granted { remaining }),
            "wait" => Ok(ReserveOutcome::Wait { delay: Duration::from_micros(number), remaining }),
            "never" => Ok(ReserveOutcome::Never { which: usize::try_from(number).unwrap_or_default() }),
            _ => Err(self.unexpected_reply("a reservation")),
        }
    }

    /// Reads the level from five columns, if there is a row.
    fn level(&self, found: &[PgRow]) -> Result<Option<Level>> {
        found.first().map(|row| self.level_of(row)).transpose()
    }

    fn level_of(&self, row: &PgRow) -> Result<Level> {
        let number = |column| Ok(self.sessions.column::<i64>(row, column)?.cast_unsigned());
        Ok(Level {
            tokens: number(0)?,
            carry: number(1)?,
            at: rows::time(self.sessions.column(row, 2)?),
            capacity: number(3)?,
            refill_per_s: number(4)?,
        })
    }

    /// Reads the lease from three columns, the last of which is the time.
    fn lease_of(&self, row: &PgRow) -> Result<Option<LeaseStatus>> {
        let fence = self.sessions.column::<i64>(row, 0)?.cast_unsigned();
        let until = rows::time(self.sessions.column(row, 1)?);
        Ok(lease::status(lease::LeaseState { fence, until }, rows::time(self.sessions.column(row, 2)?)))
    }

    /// A page of rows by name. One row more than fits tells whether there are more.
    async fn named_page<T>(
        &self,
        statement: &'static str,
        name_column: usize,
        after: Option<String>,
        most: usize,
        read: impl Fn(&PgRow) -> Result<Option<T>> + Send + Sync,
    ) -> Result<NamedPage<T>> {
        let (after, clock) = (after.unwrap_or_default(), self.clock());
        checks::name_can_be_kept(&after)?;
        let limit = rows::count(most.saturating_add(1));
        let found = self
            .sessions
            .rows(RetrySafety::Harmless, statement, |q| q.bind(&after).bind(limit).bind(clock))
            .await?;
        let (mut page, mut last) = (NamedPage { items: Vec::new(), next: None }, None);
        for row in found.iter().take(most) {
            let name: String = self.sessions.column(row, name_column)?;
            page.items.extend(read(row)?.map(|item| (name.clone(), item)));
            last = Some(name);
        }
        page.next = last.filter(|_| found.len() > most);
        Ok(page)
    }

    /// Reads the window from the columns of `OPEN`.
    fn window(&self, row: &PgRow) -> Result<HydrationWindow> {
        let level: i32 = self.sessions.column(row, 1)?;
        let level = u8::try_from(level).map_err(|_| self.unexpected_reply("the level of a window"))?;
        Ok(HydrationWindow { level, until: rows::time(self.sessions.column(row, 2)?) })
    }

    fn unexpected_reply(&self, what: &str) -> tidegate_store::Error {
        unreadable(&self.sessions.place, &format!("returned an unexpected value for {what}"))
    }
}

impl SharedState for PostgresStore {
    fn claim_record<'a>(
        &'a self,
        key: &'a str,
        claim: RecordClaim,
    ) -> StoreFuture<'a, RecordClaimOutcome<Bytes>> {
        Box::pin(self.claim(key, claim))
    }

    fn complete_record<'a>(
        &'a self,
        key: &'a str,
        holder: HolderToken,
        answer: Bytes,
    ) -> StoreFuture<'a, bool> {
        Box::pin(async move { self.complete(key, holder, &answer).await })
    }

    fn release_record<'a>(&'a self, key: &'a str, holder: HolderToken) -> StoreFuture<'a, bool> {
        Box::pin(self.release_claim(key, holder))
    }

    fn renew_record<'a>(&'a self, key: &'a str, holder: HolderToken, ttl: Duration) -> StoreFuture<'a, bool> {
        Box::pin(self.renew_claim(key, holder, ttl))
    }

    fn get_record<'a>(&'a self, key: &'a str) -> StoreFuture<'a, Option<Record<Bytes>>> {
        Box::pin(self.look_at_record(key))
    }

    fn list_records(&self, after: Option<String>, most: usize) -> StoreFuture<'_, RecordPage> {
        Box::pin(async move { self.page_of_records(after.as_deref().unwrap_or_default(), most).await })
    }

    fn forget_record<'a>(&'a self, key: &'a str, what: ForgetTarget) -> StoreFuture<'a, ForgetOutcome> {
        Box::pin(self.forget(key, what))
    }

    fn sweep_records(&self, most: usize) -> StoreFuture<'_, usize> {
        Box::pin(self.sweep_expired(most))
    }

    fn acquire_lease<'a>(&'a self, name: &'a str, ttl: Duration) -> StoreFuture<'a, AcquireOutcome> {
        Box::pin(async move {
            checks::name_can_be_kept(name)?;
            let (ttl, clock) = (rows::span(ttl), self.clock());
            let row = self
                .sessions
                .row(RetrySafety::Unsafe, ACQUIRE, |q| q.bind(name).bind(ttl).bind(clock))
                .await?;
            let until = rows::time(self.sessions.column(&row, 2)?);
            if !self.sessions.column::<bool>(&row, 0)? {
                return Ok(AcquireOutcome::Busy { until });
            }
            let fence = self.sessions.column::<i64>(&row, 1)?.cast_unsigned();
            Ok(AcquireOutcome::Held(Lease { fence, until }))
        })
    }

    fn renew_lease<'a>(
        &'a self,
        name: &'a str,
        lease: Lease,
        ttl: Duration,
    ) -> StoreFuture<'a, Option<Lease>> {
        Box::pin(self.update_lease(name, lease.fence, Some(ttl)))
    }

    fn release_lease<'a>(&'a self, name: &'a str, lease: Lease) -> StoreFuture<'a, bool> {
        Box::pin(async move { Ok(self.update_lease(name, lease.fence, None).await?.is_some()) })
    }

    fn lease_status<'a>(&'a self, name: &'a str) -> StoreFuture<'a, Option<LeaseStatus>> {
        let clock = self.clock();
        Box::pin(async move {
            checks::name_can_be_kept(name)?;
            let found =
                self.sessions.rows(RetrySafety::Harmless, LOOK_LEASE, |q| q.bind(name).bind(clock)).await?;
            found.first().map_or(Ok(None), |row| self.lease_of(row))
        })
    }

    fn list_leases(&self, after: Option<String>, most: usize) -> StoreFuture<'_, NamedPage<LeaseStatus>> {
        Box::pin(self.named_page(LIST_LEASES, 3, after, most, |row| self.lease_of(row)))
    }

    fn reserve(&self, wanted: Vec<ReservationRequest>) -> StoreFuture<'_, ReserveOutcome> {
        Box::pin(async move { self.reserve_all(&wanted).await })
    }

    fn settle_bucket<'a>(&'a self, name: &'a str, settlement: Settlement) -> StoreFuture<'a, Option<Level>> {
        let clock = self.clock();
        let (reserved, actual) = (settlement.reserved.cast_signed(), settlement.actual.cast_signed());
        Box::pin(async move {
            let found = self
                .sessions
                .rows(RetrySafety::Unsafe, SETTLE, |q| q.bind(name).bind(reserved).bind(actual).bind(clock))
                .await?;
            self.level(&found)
        })
    }

    fn observe_bucket<'a>(&'a self, name: &'a str) -> StoreFuture<'a, Option<Level>> {
        let clock = self.clock();
        Box::pin(async move {
            let found =
                self.sessions.rows(RetrySafety::Harmless, OBSERVE, |q| q.bind(name).bind(clock)).await?;
            self.level(&found)
        })
    }

    fn list_buckets(&self, after: Option<String>, most: usize) -> StoreFuture<'_, NamedPage<Level>> {
        Box::pin(self.named_page(LIST_BUCKETS, 5, after, most, |row| self.level_of(row).map(Some)))
    }

    fn forget_bucket<'a>(&'a self, name: &'a str) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            checks::name_can_be_kept(name)?;
            let gone = self.sessions.rows(RetrySafety::Unsafe, FORGET_BUCKET, |q| q.bind(name)).await?;
            Ok(!gone.is_empty())
        })
    }

    fn open_window<'a>(
        &'a self,
        key: &'a str,
        level: u8,
        ttl: Duration,
    ) -> StoreFuture<'a, OpenWindowOutcome> {
        let (ttl, clock) = (rows::span(ttl), self.clock());
        Box::pin(async move {
            checks::name_can_be_kept(key)?;
            let row = self
                .sessions
                .row(RetrySafety::Unsafe, OPEN, |q| {
                    let q = q.bind(key).bind(i32::from(level)).bind(ttl);
                    q.bind(rows::span(WINDOW_GRACE)).bind(clock)
                })
                .await?;
            let window = self.window(&row)?;
            let asks: bool = self.sessions.column(&row, 0)?;
            Ok(if asks { OpenWindowOutcome::Ask(window) } else { OpenWindowOutcome::Wait(window) })
        })
    }
}
