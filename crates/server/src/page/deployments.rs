//! Deployments, from the journal: the latest ones on the overview, and one with the state of each
//! step and its last events. Templates are not shown.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use tidegate_core::journal::{Deployment, DeploymentStage, DeploymentStep, StepEvents, StepState};
use tidegate_core::{OperationId, Time};
use tidegate_discord::deploy::DeployRequest;

use super::parts::{ago, count, group, state};
use super::{document, error_page};
use crate::api::deployments::find_with_steps;
use crate::error::Result;
use crate::state::ServerState;
use crate::wire::time::Timestamp;

const ROWS: usize = 10;
/// The events shown of a deployment.
const EVENT_ROWS: usize = 100;

/// A deployment with the number of its steps by state.
pub(crate) struct DeploymentRow {
    one: Deployment,
    planned: usize,
    applied: usize,
    failed: usize,
}

/// The latest deployments; none if no upstream can be deployed to.
pub(crate) async fn list_recent(server: &ServerState) -> Result<Vec<DeploymentRow>> {
    if server.discord_upstreams.is_empty() {
        return Ok(Vec::new());
    }
    let mut rows = Vec::new();
    for one in server.store.deployments(None, ROWS).await? {
        let steps = server.store.deployment_steps(&one.id).await?;
        let of = |state| steps.iter().filter(|step| step.state == state).count();
        let (planned, applied, failed) =
            (of(StepState::Planned), of(StepState::Applied), of(StepState::Failed));
        rows.push(DeploymentRow { one, planned, applied, failed });
    }
    Ok(rows)
}

/// The panel of the overview; empty if there are no deployments.
pub(crate) fn panel(rows: &[DeploymentRow], now: Time) -> Markup {
    html! {
        @if !rows.is_empty() {
            h2 { "Deployments, newest first" }
            table.cards {
                caption.hidden { "Deployments to guilds" }
                thead { tr { th.c-state scope="col" { "Stage" } th.c-id scope="col" { "Deployment" } th.c-name scope="col" { "Guild" } th.number scope="col" { "Applied" } th.number scope="col" { "To do" } th.number scope="col" { "Failed" } th.number scope="col" { "Begun" } th scope="col" { "Note" } } }
                tbody {
                    @for DeploymentRow { one, planned, applied, failed } in rows {
                        tr {
                            td { (state(one.stage.as_str())) }
                            th scope="row" { (link(&one.id)) }
                            td { (group(&one.scope)) }
                            td.number data-label="Applied" { (number(*applied)) }
                            td.number data-label="To do" { (number(*planned)) }
                            td.number data-label="Failed" { (number(*failed)) }
                            td.number data-label="Begun" { (ago(one.started_at, now)) }
                            td.why { @if let Some(note) = &one.note { (note) } }
                        }
                    }
                }
            }
        }
    }
}

fn link(id: &str) -> Markup {
    html! { a.id href={ "/deployments/" (utf8_percent_encode(id, NON_ALPHANUMERIC)) } { (id) } }
}

fn number(number: usize) -> String {
    count(number as u64)
}

pub(crate) async fn show(State(server): State<Arc<ServerState>>, Path(id): Path<String>) -> Response {
    match find_with_events(&server, &id).await {
        Ok((one, steps, events)) => {
            document(&one.id, false, &content(&one, &steps, &events, server.clock.now())).into_response()
        }
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

fn content(one: &Deployment, steps: &[DeploymentStep], events: &StepEvents, now: Time) -> Markup {
    let happened = events.dropped + events.events.len() as u64;
    html! {
        h1 { (state(one.stage.as_str())) " " code { (one.id) } }
        @if let Some(note) = &one.note { p.sentence { (note) } }
        dl {
            dt { "Guild" } dd { (group(&one.scope)) }
            dt { "Begun" } dd { (Timestamp(one.started_at)) " (" (ago(one.started_at, now)) " ago)" }
            @if one.stage != DeploymentStage::Running {
                dt { "Ended" } dd { (Timestamp(one.updated_at)) " (" (ago(one.updated_at, now)) " ago)" }
            }
            dt { "Plans" } dd { (one.round) }
            @if let Some(warning) = warning(one) { dt { "Warning" } dd { (warning) } }
            dt { "Steps" } dd { (number(steps.len())) ", " a href={ "/v1/deployments/" (one.id) } { "as JSON" } }
            dt { "Events" } dd { (count(happened)) ", " a href={ "/v1/deployments/" (one.id) "/events" } { "as JSON" } }
        }
        @if !steps.is_empty() { section { (table(steps)) } }
        @if !events.events.is_empty() { section { (events_table(&events.events)) } }
    }
}

/// The warning to people who might rename something, by the names that the template asks for.
fn warning(one: &Deployment) -> Option<&'static str> {
    let template = DeployRequest::decode(&one.request).ok()?.read().ok()?;
    Some(template.names.warning())
}

fn table(steps: &[DeploymentStep]) -> Markup {
    html! {
        table.cards {
            caption { "The state of each step" }
            thead { tr { th.c-state scope="col" { "State" } th.c-name scope="col" { "Step" } th scope="col" { "Action" } th scope="col" { "Id" } th scope="col" { "Operation" } th scope="col" { "Note" } } }
            tbody {
                @for step in steps {
                    tr {
                        td { (state(step.state.as_str())) }
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

fn events_table(events: &[DeploymentStep]) -> Markup {
    html! {
        table.cards {
            caption { "What happened last, newest first" }
            thead { tr { th.c-state scope="col" { "Event" } th.c-name scope="col" { "Step" } th scope="col" { "Action" } th scope="col" { "At" } th scope="col" { "Note" } } }
            tbody {
                @for event in events.iter().rev().take(EVENT_ROWS) {
                    tr {
                        td { (state(event.state.as_str())) }
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
