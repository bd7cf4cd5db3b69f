//! Pages of operations that match a filter, newest first. Each state has its own list, from the
//! model or the store; this module merges them. A rare match is searched among a bounded number of
//! operations at a time, and the page says where to continue.

use std::sync::Arc;

use tidegate_core::{OperationId, Seq, Time};
use tidegate_store::Clock;
use tidegate_store::log::StoredQuery;

use crate::engine::Engine;
use crate::error::{ErrorKind, Result};
use crate::prepare::key_hash;
use crate::query::without_result;
use crate::view::{Filter, OperationPage, OperationView};

/// Operations read at once when only some of them may match.
const CHUNK: usize = 200;
/// The maximum number of such reads for one page.
const CHUNKS_MAX: usize = 10;

impl Engine {
    /// Returns a page of operations. Operations that are only in the archive are not listed.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn list(&self, filter: Filter) -> Result<OperationPage> {
        let mut page = self.list_without_requests(filter).await?;
        self.add_request_lines(&mut page.operations).await?;
        Ok(page)
    }

    /// Returns the same page without the request lines, which have to be read separately.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn list_without_requests(&self, mut filter: Filter) -> Result<OperationPage> {
        if let Some(key) = filter.dedupe_key.clone() {
            return self.list_keyed(&key, &filter).await;
        }
        if let Some(seq) = filter.seq {
            return self.list_one(seq, &filter).await;
        }
        if let (Some(time), None) = (filter.created_before, filter.before) {
            let first = self.first_seq_since(time).await?;
            filter.before = Some(OperationId::new(Time::ZERO, self.options.partition, first));
        }
        let is_rare = filter.upstream.is_some() || filter.user.is_some() || !filter.outcome.is_empty();
        let chunks = if is_rare { CHUNKS_MAX } else { 1 };
        let chunk = if is_rare { CHUNK.max(filter.limit) } else { filter.limit };
        let mut page = OperationPage { operations: Vec::new(), next: filter.before };
        for _ in 0..chunks {
            let found = self.chunk(Filter { before: page.next, limit: chunk, ..filter.clone() }).await?;
            page.next = found.next;
            for view in found.operations {
                if page.operations.len() == filter.limit {
                    page.next = page.operations.last().map(|last| last.id);
                    return Ok(page);
                }
                if filter.created_after.is_some_and(|after| view.created_at < after) {
                    page.next = None;
                    return Ok(page);
                }
                if matches_filter(&view, &filter) {
                    page.operations.push(view);
                }
            }
            if page.next.is_none() {
                break;
            }
        }
        Ok(page)
    }

    async fn chunk(&self, filter: Filter) -> Result<OperationPage> {
        let mut pages = Vec::with_capacity(filter.states.len());
        for state in &filter.states {
            let filter = filter.clone();
            pages.push(match state.end_state() {
                Some(ended) => self.list_stored(filter, Some(ended)).await?,
                None => self.list_active(filter, *state).await?,
            });
        }
        if pages.is_empty() { self.list_stored(filter, None).await } else { Ok(merge(pages, filter.limit)) }
    }

    async fn list_keyed(&self, key: &Arc<str>, filter: &Filter) -> Result<OperationPage> {
        let hash = key_hash(key);
        let seq = self.query_owner(move |owner| owner.model.find_by_key(hash, owner.clock.now())).await?;
        match seq {
            Some(seq) => self.list_one(seq, filter).await,
            None => Ok(OperationPage::default()),
        }
    }

    /// A page of at most one operation.
    async fn list_one(&self, seq: Seq, filter: &Filter) -> Result<OperationPage> {
        if filter.before.is_some_and(|before| seq >= before.seq()) {
            return Ok(OperationPage::default());
        }
        match self.view(seq).await {
            Ok(view) if matches_filter(&view, filter) => {
                Ok(OperationPage { operations: vec![without_result(view)], next: None })
            }
            Err(error) if error.kind != ErrorKind::NoOperation => Err(error),
            _ => Ok(OperationPage::default()),
        }
    }

    /// Finds the first sequence number accepted at `time` or later. Sequence numbers are ordered by
    /// time, so a binary search needs only a few reads.
    async fn first_seq_since(&self, time: Time) -> Result<Seq> {
        let last = self.query_owner(|owner| owner.model.last_seq()).await?;
        let (mut low, mut high) = (1, last.0 + 1);
        while low < high {
            let middle = low + (high - low) / 2;
            let query = StoredQuery { before: Some(Seq(middle + 1)), limit: 1, ..StoredQuery::default() };
            let found = self.store.list(self.options.partition, query).await?.items.pop();
            match found.map(|stored| stored.operation) {
                Some(operation) if operation.at >= time => high = operation.seq.0,
                _ => low = middle + 1,
            }
        }
        Ok(Seq(low))
    }
}

/// Whether an operation matches a filter, except for `created_before`, which its list already
/// applied.
fn matches_filter(view: &OperationView, filter: &Filter) -> bool {
    let is = |wanted: &Option<Arc<str>>, own: &str| wanted.as_ref().is_none_or(|wanted| **wanted == *own);
    is(&filter.group, &view.group)
        && is(&filter.kind, &view.kind)
        && filter.upstream.as_ref().is_none_or(|upstream| view.upstream.as_ref() == Some(upstream))
        && filter.user.as_ref().is_none_or(|user| view.user.as_ref() == Some(user))
        && filter.outcome.matches(view)
        && (filter.states.is_empty() || filter.states.contains(&view.state))
        && filter.created_after.is_none_or(|after| view.created_at >= after)
        && filter.created_before.is_none_or(|before| view.created_at < before)
}

/// Merges several lists into one page, newest first: as far down as all of them have scanned.
fn merge(pages: Vec<OperationPage>, limit: usize) -> OperationPage {
    let looked_down_to = pages.iter().filter_map(|page| page.next).map(OperationId::seq).max();
    let mut next = pages.iter().filter_map(|page| page.next).max_by_key(|id| id.seq());
    let mut operations: Vec<OperationView> = pages.into_iter().flat_map(|page| page.operations).collect();
    operations.retain(|view| looked_down_to.is_none_or(|lowest| view.id.seq() >= lowest));
    operations.sort_by_key(|view| std::cmp::Reverse(view.id.seq()));
    // An operation that changed state between two reads occurs twice.
    operations.dedup_by_key(|view| view.id);
    if operations.len() > limit {
        operations.truncate(limit);
        next = operations.last().map(|view| view.id);
    }
    OperationPage { operations, next }
}
