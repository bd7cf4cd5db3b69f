//! Deployments, from the journal: the latest ones on the overview, and one with its progress, the
//! state of each step and its last events. Templates are not shown.

mod words;

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use maud::{Markup, html};
use tidegate_core::OperationId;
use tidegate_core::journal::{Deployment, DeploymentStage, DeploymentStep, StepEvents, StepState};
use tidegate_discord::deploy::DeployRequest;

use super::error_page;
use super::parts::{count, filled, group};
use super::view::{View, escape};
use super::words::Language;
use crate::api::deployments::{find_with_steps, list_page};
use crate::edge::query::Query;
use crate::error::{Error, Result};
use crate::state::ServerState;
use crate::wire::time::Timestamp;

/// The latest deployments on the overview, and those of a page of the list.
const ROWS: usize = 10;
const LISTED: usize = 50;
/// The events shown of a deployment.
const EVENT_ROWS: usize = 100;

/// A deployment with the number of its steps by state.
pub(crate) struct DeploymentRow {
    one: Deployment,
    progress: StepCounts,
}

/// The number of steps by state.
#[derive(Clone, Copy)]
struct StepCounts {
    planned: usize,
    applied: usize,
    failed: usize,
}

impl StepCounts {
    fn of(steps: &[DeploymentStep]) -> Self {
        let of = |state| steps.iter().filter(|step| step.state == state).count();
        let [planned, applied, failed] = [StepState::Planned, StepState::Applied, StepState::Failed].map(of);
        Self { planned, applied, failed }
    }

    const fn all(self) -> usize {
        self.planned + self.applied + self.failed
    }
}

/// The name of the list.
pub(super) const fn title(language: Language) -> &'static str {
    language.deployment_words().deployments
}

/// The latest deployments; none if no upstream can be deployed to.
pub(crate) async fn list_recent(server: &ServerState) -> Result<Vec<DeploymentRow>> {
    if server.discord_upstreams.is_empty() {
        return Ok(Vec::new());
    }
    count_steps(server, server.store.deployments(None, ROWS).await?).await
}

async fn count_steps(server: &ServerState, deployments: Vec<Deployment>) -> Result<Vec<DeploymentRow>> {
    let mut rows = Vec::new();
    for one in deployments {
        let steps = server.store.deployment_steps(&one.id).await?;
        rows.push(DeploymentRow { one, progress: StepCounts::of(&steps) });
    }
    Ok(rows)
}

/// The panel of the overview; empty if there are no deployments.
pub(super) fn panel(view: &View, rows: &[DeploymentRow]) -> Markup {
    let words = view.language.deployment_words();
    html! {
        @if !rows.is_empty() {
            h2 { (words.newest_first) }
            (deployments_table(view, rows))
            @if rows.len() == ROWS { p { a href="/deployments" { (view.words.show_all) } } }
        }
    }
}

pub(crate) async fn list(
    State(server): State<Arc<ServerState>>,
    headers: HeaderMap,
    mut query: Query,
) -> Response {
    let view = View::at(Language::preferred(&headers), server.clock.now());
    let cursor = query.take("cursor");
    let read = async {
        query.finish()?;
        let (found, next) = list_page(&server, None, cursor.as_deref(), LISTED).await?;
        Ok::<_, Error>((count_steps(&server, found).await?, next))
    };
    let words = view.language.deployment_words();
    match read.await {
        Ok((rows, next)) => {
            let content = html! {
                h1 { (words.deployments) }
                @if rows.is_empty() { p.quiet { (words.none) } }
                @else { section #deployments data-live { (deployments_table(&view, &rows)) } }
                @if let Some(next) = next {
                    p { a href={ "/deployments?cursor=" (escape(&next)) } { (view.words.older) } }
                }
            };
            view.live_page(words.deployments, &content)
        }
        Err(error) => error_page(&error),
    }
}

fn deployments_table(view: &View, rows: &[DeploymentRow]) -> Markup {
    let words = view.language.deployment_words();
    html! {
        table.cards {
            caption.hidden { (words.newest_first) }
            thead {
                tr {
                    th.c-state scope="col" { (words.stage) }
                    th.c-id scope="col" { (view.words.deployment) }
                    th.c-name scope="col" { (words.guild) }
                    th scope="col" { (words.progress) }
                    th.number scope="col" { (words.begun) }
                    th scope="col" { (words.note) }
                }
            }
            tbody {
                @for DeploymentRow { one, progress } in rows {
                    tr {
                        td { (view.state(one.stage.as_str())) }
                        th scope="row" { (link(&one.id)) }
                        td { (group(&one.scope)) }
                        td.wrap { (progress_bar(view, *progress)) }
                        td.number data-label=(words.begun) { (view.ago(one.started_at)) }
                        td.why { @if let Some(note) = &one.note { (note) } }
                    }
                }
            }
        }
    }
}

fn link(id: &str) -> Markup {
    html! { a.id href={ "/deployments/" (escape(id)) } { (id) } }
}

fn number(number: usize) -> String {
    count(number as u64)
}

/// How many steps are applied, as a bar and in words.
fn progress_bar(view: &View, progress: StepCounts) -> Markup {
    let words = view.language.deployment_words();
    let applied = filled(words.applied_of, [&number(progress.applied), &number(progress.all())]);
    let failed = format!("{}: {}", words.failed, number(progress.failed));
    let label = if progress.failed > 0 { format!("{applied}, {failed}") } else { applied };
    super::parts::progress_bar([progress.applied, progress.failed, progress.planned], &label)
}

pub(crate) async fn show(
    State(server): State<Arc<ServerState>>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response {
    let view = View::at(Language::preferred(&headers), server.clock.now());
    match find_with_events(&server, &id).await {
        Ok((one, steps, events)) => view.live_page(&one.id, &content(&view, &one, &steps, &events)),
        Err(error) => error_page(&error),
    }
}

async fn find_with_events(
    server: &ServerState,
    id: &str,
) -> Result<(Deployment, Vec<DeploymentStep>, StepEvents)> {
    let (one, steps) = find_with_steps(server, id).await?;
    let events = server.store.deployment_events(&one.id).await?;
    Ok((one, steps, events))
}

fn content(view: &View, one: &Deployment, steps: &[DeploymentStep], events: &StepEvents) -> Markup {
    let words = view.language.deployment_words();
    let as_json = view.words.as_json;
    let happened = events.dropped + events.events.len() as u64;
    html! {
        section #deployment data-live {
            h1 { (view.state(one.stage.as_str())) " " code { (one.id) } }
            @if let Some(note) = &one.note { p.sentence { (note) } }
            @if !steps.is_empty() { p.progress { (progress_bar(view, StepCounts::of(steps))) } }
            dl {
                dt { (words.guild) } dd { (group(&one.scope)) }
                dt { (words.begun) } dd { (view.when(one.started_at)) }
                @if one.stage != DeploymentStage::Running {
                    dt { (words.ended) } dd { (view.when(one.updated_at)) }
            }
            dt { (words.plans) } dd { (one.round) }
            @if let Some(warning) = warning(one) { dt { (words.warning) } dd { (warning) } }
            dt { (words.steps) } dd { (number(steps.len())) ", " a href={ "/v1/deployments/" (one.id) } { (as_json) } }
            dt { (words.events) } dd { (count(happened)) ", " a href={ "/v1/deployments/" (one.id) "/events" } { (as_json) } }
            }
        }
        section #steps data-live { @if !steps.is_empty() { (table(view, steps)) } }
        section #step-events data-live { @if !events.events.is_empty() { (events_table(view, &events.events)) } }
    }
}

/// The warning to people who might rename something, by the names that the template asks for.
fn warning(one: &Deployment) -> Option<&'static str> {
    let template = DeployRequest::decode(&one.request).ok()?.read().ok()?;
    Some(template.names.warning())
}

fn table(view: &View, steps: &[DeploymentStep]) -> Markup {
    let words = view.language.deployment_words();
    html! {
        table.cards {
            caption { (words.state_of_steps) }
            thead {
                tr {
                    th.c-state scope="col" { (view.words.state_label) }
                    th.c-name scope="col" { (words.step) }
                    th scope="col" { (words.action) }
                    th scope="col" { "Id" }
                    th scope="col" { (view.words.operation) }
                    th scope="col" { (words.note) }
                }
            }
            tbody {
                @for step in steps {
                    tr {
                        td { (view.state(step.state.as_str())) }
                        th scope="row" { (step.kind) " " (step.key) }
                        td { (step.action) }
                        td { @if let Some(id) = &step.foreign_id { (id) } }
                        td { @if let Some(operation) = &step.operation { (operation_link(operation)) } }
                        td.why { @if let Some(note) = &step.note { (note) } }
                    }
                }
            }
        }
    }
}

fn events_table(view: &View, events: &[DeploymentStep]) -> Markup {
    let words = view.language.deployment_words();
    html! {
        table.cards {
            caption { (words.last_events) }
            thead {
                tr {
                    th.c-state scope="col" { (words.event) }
                    th.c-name scope="col" { (words.step) }
                    th scope="col" { (words.action) }
                    th scope="col" { (view.words.when) }
                    th scope="col" { (words.note) }
                }
            }
            tbody {
                @for event in events.iter().rev().take(EVENT_ROWS) {
                    tr {
                        td { (view.state(event.state.as_str())) }
                        td { (event.kind) " " (event.key) }
                        td { (event.action) }
                        td { (Timestamp(event.at)) }
                        td.why { @if let Some(note) = &event.note { (note) } }
                    }
                }
            }
        }
    }
}

fn operation_link(operation: &str) -> Markup {
    match operation.parse::<OperationId>() {
        Ok(_) => super::parts::operation_link(operation),
        Err(_) => html! { (operation) },
    }
}
