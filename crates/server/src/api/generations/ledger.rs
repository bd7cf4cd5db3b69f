//! The ledger: every attempt at a provider, newest first, and which of them may be billed twice.

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use tidegate_core::OperationId;
use tidegate_dispatch::LedgerPage;

use super::super::HandlerResult;
use super::read_cursor;
use crate::edge::query::{Query, bad_parameter};
use crate::error::{Error, Result};
use crate::state::{PartitionState, SharedPartition};
use crate::wire::cursor;
use crate::wire::generation::{LedgerEntryOut, LedgerOut};

/// What a page of the ledger shows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LedgerQuery {
    only_doubtful: bool,
    before: Option<OperationId>,
    limit: usize,
}

impl LedgerQuery {
    pub(crate) fn read(query: &mut Query) -> Self {
        let only_doubtful = query.read("may_be_double", |word| match word {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(bad_parameter("may_be_double", "must be true or false")),
        });
        let mut wanted = Self { only_doubtful: only_doubtful.unwrap_or(false), before: None, limit: 0 };
        wanted.before = query.read("cursor", |text| read_cursor(text, wanted.list_name()));
        wanted.limit = query.limit();
        wanted
    }

    pub(crate) const fn only_doubtful(self) -> bool {
        self.only_doubtful
    }

    const fn list_name(self) -> &'static str {
        if self.only_doubtful { "ledger of doubtful attempts" } else { "ledger" }
    }

    /// Reads the page. A page of doubtful attempts looks at as many generations as one of all, so
    /// it can be empty before the end.
    pub(crate) async fn page(self, app: &PartitionState) -> Result<(LedgerPage, Option<String>)> {
        self.first_page(app, 1).await
    }

    /// Reads the first page that is not empty, among at most so many; the last of them if all are.
    pub(crate) async fn first_page(
        mut self,
        app: &PartitionState,
        pages_max: usize,
    ) -> Result<(LedgerPage, Option<String>)> {
        let mut pages = 1;
        loop {
            let mut page = app.generations()?.ledger(self.before, self.limit).await.map_err(Error::from)?;
            if self.only_doubtful {
                page.entries.retain(|entry| entry.may_be_billed_twice);
            }
            if page.entries.is_empty() && page.next.is_some() && pages < pages_max {
                (self.before, pages) = (page.next, pages + 1);
                continue;
            }
            let next = page.next.map(|id| cursor::write_text(&id.to_string(), self.list_name()));
            return Ok((page, next));
        }
    }
}

pub(crate) async fn list(State(app): State<SharedPartition>, mut query: Query) -> HandlerResult {
    let wanted = LedgerQuery::read(&mut query);
    query.finish()?;
    let (page, next_cursor) = wanted.page(&app).await?;
    let entries = page.entries.iter().map(LedgerEntryOut::new).collect();
    Ok(Json(LedgerOut { entries, next_cursor }).into_response())
}
