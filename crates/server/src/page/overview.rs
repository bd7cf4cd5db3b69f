//! The overview: is anything wrong, what waits for what, which limits run out, what happened last.
//! The same functions render the whole page and its live regions.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use tidegate::{Filter, GroupFilter, GroupPage, OperationPage};
use tidegate_core::fact::LimitShape;
use tidegate_core::model::{Counts, LimitView};
use tidegate_core::{State as OperationState, Time};

use super::deployments::{DeploymentRow, list_recent, panel};
use super::parts::{ago, count, group, operation, remaining_bar, state, within};
use super::request::request_line;
use super::{document, error_page};
use crate::edge::query::Query;
use crate::error::{Error, Result};
use crate::state::{PartitionState, SharedPartition};
use crate::wire::response::{TokenAmount, group_state, source_word};

const ROWS: usize = 25;
/// How many pages of operations are searched for one that is not empty.
const PAGES_MAX: usize = 8;
/// The maximum number of limits shown; the API lists the rest.
const LIMITS_SHOWN: usize = 50;

/// Everything on the page, read together.
struct OverviewData {
    now: Time,
    counts: Counts,
    stopped: GroupPage,
    groups: GroupPage,
    limits: Vec<LimitView>,
    operations: OperationPage,
    deployments: Vec<DeploymentRow>,
    only: Option<OperationState>,
}

pub(crate) async fn show(State(app): State<SharedPartition>, query: Query) -> Response {
    match read_overview(&app, query).await {
        Ok(snapshot) => document("Overview", true, &content(&snapshot)).into_response(),
        Err(error) => error_page(&error),
    }
}

pub(crate) async fn regions(State(app): State<SharedPartition>, query: Query) -> Response {
    match read_overview(&app, query).await {
        Ok(snapshot) => content(&snapshot).into_response(),
        Err(error) => error_page(&error),
    }
}

async fn read_overview(app: &PartitionState, mut query: Query) -> Result<OverviewData> {
    let only = query.take("state").and_then(|word| OperationState::parse(&word));
    let filter = Filter::default().with_states(only).with_limit(ROWS);
    let engine = async {
        tokio::try_join!(
            app.engine.counts(),
            app.engine.groups(GroupFilter::Stopped, None, ROWS),
            app.engine.groups(GroupFilter::All, None, ROWS),
            app.engine.limits(),
            first_page(app, filter),
        )
        .map_err(Error::from)
    };
    let ((counts, stopped, groups, limits, operations), deployments) =
        tokio::try_join!(engine, list_recent(&app.server))?;
    let now = app.server.clock.now();
    Ok(OverviewData { now, counts, stopped, groups, limits, operations, deployments, only })
}

/// The first page that is not empty, if one is found soon.
async fn first_page(app: &PartitionState, mut filter: Filter) -> tidegate::Result<OperationPage> {
    let mut page = app.engine.list(filter.clone()).await?;
    for _ in 1..PAGES_MAX {
        if !page.operations.is_empty() || page.next.is_none() {
            break;
        }
        filter.before = page.next;
        page = app.engine.list(filter.clone()).await?;
    }
    Ok(page)
}

fn content(snapshot: &OverviewData) -> Markup {
    html! {
        section #counts data-live aria-label="Counts" { (counts(&snapshot.counts)) }
        section #needs data-live { (attention_section(snapshot)) }
        section #limits data-live { (limits(snapshot)) }
        section #groups data-live { (groups(snapshot)) }
        section #deployments data-live { (panel(&snapshot.deployments, snapshot.now)) }
        section #operations data-live { (operations(snapshot)) }
    }
}

fn counts(counts: &Counts) -> Markup {
    let tiles = [
        ("queued", counts.queued),
        ("waiting", counts.waiting),
        ("running", counts.running),
        ("unknown", counts.unknown),
        ("failed", counts.failed),
        ("succeeded", counts.succeeded),
        ("canceled", counts.canceled),
    ];
    html! {
        ul.tiles {
            @for (word, number) in tiles {
                li { a href={ "/?state=" (word) "#operations" } { b { (count(number)) } " " (state(word)) } }
            }
        }
    }
}

fn attention_section(snapshot: &OverviewData) -> Markup {
    let stopped = &snapshot.stopped;
    html! {
        h2 { "Needs you" @if snapshot.counts.stopped > 0 { " (" (count(snapshot.counts.stopped)) ")" } }
        @if stopped.groups.is_empty() {
            p.quiet { "Nothing waits for an operator." }
        } @else {
            table.cards {
                caption.hidden { "Groups that wait for an operator" }
                thead { tr { th.c-state scope="col" { "State" } th.c-name scope="col" { "Group" } th scope="col" { "Why" } th.number scope="col" { "Depth" } } }
                tbody {
                    @for (view, why) in &stopped.groups {
                        tr {
                            td { (state(group_state(view))) }
                            th scope="row" { (group(&view.name)) }
                            td.why { @if let Some(why) = why { (why.because) } }
                            td.number data-label="Depth" { (count(view.depth.into())) }
                        }
                    }
                }
            }
        }
    }
}

fn limits(snapshot: &OverviewData) -> Markup {
    let mut limits: Vec<_> = snapshot.limits.iter().collect();
    limits.sort_unstable_by(|a, b| (b.waiting, &a.name).cmp(&(a.waiting, &b.name)));
    html! {
        h2 { "Limits" }
        @if limits.is_empty() {
            p.quiet { "There are no limits: no upstream is configured." }
        } @else {
            table {
                caption.hidden { "Limits and what is left of them" }
                thead {
                    tr {
                        th.c-name scope="col" { "Limit" }
                        th.c-left scope="col" { "Left" }
                        th.number scope="col" { "Refill" }
                        th.number scope="col" { "Waiting" }
                        th.number scope="col" { "Under way" }
                        th scope="col" { "Figure from" }
                        th scope="col" { "Closed" }
                    }
                }
                tbody { @for limit in limits.iter().take(LIMITS_SHOWN) { (limit_row(limit, snapshot.now)) } }
            }
            @if limits.len() > LIMITS_SHOWN { p.quiet { "Showing " (LIMITS_SHOWN) " of " (limits.len()) "." } }
        }
    }
}

fn limit_row(limit: &LimitView, now: Time) -> Markup {
    html! {
        tr {
            th scope="row" { (limit.name) }
            td { (remaining_bar(limit)) }
            td.number { @if let LimitShape::Drip { refill_per_s, .. } = limit.shape { (TokenAmount(refill_per_s)) "/s" } }
            td.number { (count(limit.waiting as u64)) }
            td.number { (limit.in_flight) }
            td { (source_word(limit.source)) }
            td { @if let Some(until) = limit.frozen_until { "opens " (within(until, now)) } }
        }
    }
}

fn groups(snapshot: &OverviewData) -> Markup {
    let groups = &snapshot.groups.groups;
    html! {
        h2 { "Groups" }
        @if groups.is_empty() {
            p.quiet { "No group has anything to do." }
        } @else {
            table.cards {
                caption.hidden { "Groups and what each waits for" }
                thead { tr { th.c-state scope="col" { "State" } th.c-name scope="col" { "Group" } th.number scope="col" { "Depth" } th scope="col" { "Why" } } }
                tbody {
                    @for (view, why) in groups {
                        tr {
                            td { (state(group_state(view))) }
                            th scope="row" { (group(&view.name)) }
                            td.number data-label="Depth" { (count(view.depth.into())) }
                            td.why { @if let Some(why) = why { (why.because) } }
                        }
                    }
                }
            }
            @if snapshot.groups.next.is_some() {
                p.quiet { "Showing " (groups.len()) " of " (count(snapshot.counts.groups)) ", by name." }
            }
        }
    }
}

fn operations(snapshot: &OverviewData) -> Markup {
    let operations = &snapshot.operations.operations;
    html! {
        h2 {
            "Operations" @if let Some(only) = snapshot.only { ", " (only) " only" } @else { ", newest first" }
        }
        @if snapshot.only.is_some() { p { a href="/#operations" { "Show all" } } }
        @if operations.is_empty() && snapshot.operations.next.is_some() {
            p.quiet {
                "None of the newest operations is " (snapshot.only.map_or("here", OperationState::as_str))
                ". To search all of them: "
                code { "tidegate op list" @if let Some(only) = snapshot.only { " --state " (only) } } "."
            }
        } @else if operations.is_empty() {
            p.quiet { "There are no operations. Submit one with " code { "tidegate op submit" } "." }
        } @else {
            table.cards {
                caption.hidden { "Operations" }
                thead { tr { th.c-state scope="col" { "State" } th.c-id scope="col" { "Operation" } th.c-name scope="col" { "Group" } th.c-name scope="col" { "Request" } th.number scope="col" { "Try" } th.number scope="col" { "Age" } th scope="col" { "Last fault" } } }
                tbody {
                    @for view in operations {
                        tr {
                            td { (state(view.state.as_str())) }
                            th scope="row" { (operation(view.id)) }
                            td { (group(&view.group)) }
                            td { @if let Some(line) = &view.request { (request_line(line)) } }
                            td.number data-label="Try" { (view.attempt) }
                            td.number data-label="Age" { (ago(view.created_at, snapshot.now)) }
                            td.why { @if let Some(fault) = &view.fault { (fault.message) } }
                        }
                    }
                }
            }
        }
    }
}
