//! The pages of one operation and one group: what it is, why it waits, what happened. The body of a
//! response is not shown; the API returns it.

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use tidegate::{OperationDetails, OperationView, Reason};
use tidegate_core::Time;
use tidegate_core::model::GroupView;

use super::parts::{ago, count, group as group_link, operation as operation_link, state};
use super::request::{attempts, request};
use super::{document, error_page};
use crate::api::parse_id;
use crate::error::Result;
use crate::state::{PartitionState, SharedPartition};
use crate::wire::response::group_state;
use crate::wire::time::Timestamp;

pub(crate) async fn operation(State(app): State<SharedPartition>, Path(text): Path<String>) -> Response {
    match read_operation(&app, &text).await {
        Ok((view, details, why)) => {
            let content = show_operation(&view, &details, &why, app.server.clock.now());
            document(&view.id.to_string(), false, &content).into_response()
        }
        Err(error) => error_page(&error),
    }
}

async fn read_operation(
    app: &PartitionState,
    text: &str,
) -> Result<(OperationView, OperationDetails, Reason)> {
    let id = parse_id(text)?;
    app.engine.record_demand(app.server.work.demand()).await?;
    let (view, why) = tokio::try_join!(app.engine.get(id), app.engine.why(id))?;
    let details = app.engine.details(&view).await?;
    Ok((view, details, why))
}

fn show_operation(view: &OperationView, details: &OperationDetails, why: &Reason, now: Time) -> Markup {
    let id = view.id.to_string();
    html! {
        h1 { (state(view.state.as_str())) " " code { (id) } }
        p.sentence { (why.because) }
        dl {
            dt { "Group" } dd { (group_link(&view.group)) }
            dt { "Kind" } dd { (view.kind) }
            @if let Some(upstream) = &view.upstream { dt { "Upstream" } dd { (upstream) } }
            @if let Some(job) = &view.job_id { dt { "Job" } dd { code { (job) } } }
            dt { "Attempt" } dd { (view.attempt) " of " (view.max_attempts) }
            dt { "Accepted" } dd { (Timestamp(view.created_at)) " (" (ago(view.created_at, now)) " ago)" }
            @if let Some(at) = view.finished_at { dt { "Ended" } dd { (Timestamp(at)) " (" (ago(at, now)) " ago)" } }
            @if let Some(behind) = why.behind { dt { "Behind" } dd { (operation_link(behind)) } }
            @if let Some(key) = &view.dedupe_key { dt { "Key" } dd { code { (key) } } }
            @if let Some(trace) = &view.request_id { dt { "Request id" } dd { code { (trace) } } }
            @if let Some(trace) = &view.deployment_id { dt { "Deployment" } dd { a href={ "/deployments/" (utf8_percent_encode(trace, NON_ALPHANUMERIC)) } { code { (trace) } } } }
            @if let Some(fault) = &view.fault { dt { "Last fault" } dd { (fault.class) ": " (fault.message) @if fault.may_have_happened { " (it may have happened)" } } }
            @if let Some(result) = &view.result { dt { "Result" } dd { (result.len()) " bytes, " a href={ "/v1/operations/" (id) } { "as JSON" } } }
        }
        @if let Some(asked) = &details.request { (request(asked)) }
        @if !details.attempts.is_empty() { (attempts(&details.attempts, now)) }
        @if view.state == tidegate_core::State::Unknown {
            p {
                "Find out whether it happened, then record it: "
                code { "tidegate op resolve " (id) " --as succeeded" } ", " code { "failed" } " or "
                code { "repeat" } " (send it again)."
            }
        } @else {
            p { "On the command line: " code { "tidegate op why " (id) } }
        }
    }
}

pub(crate) async fn group(State(app): State<SharedPartition>, Path(name): Path<String>) -> Response {
    match app.engine.group(&name).await {
        Ok((view, why, line)) => {
            let content = show_group(&view, why.as_ref(), &line, app.server.clock.now());
            document(&view.name, false, &content).into_response()
        }
        Err(error) => error_page(&error.into()),
    }
}

fn show_group(view: &GroupView, why: Option<&Reason>, line: &[OperationView], now: Time) -> Markup {
    html! {
        h1 { (state(group_state(view))) " " (view.name) }
        @if let Some(why) = why { p.sentence { (why.because) } }
        p { (count(view.depth.into())) " in its queue · " a href={ "/v1/groups/" (utf8_percent_encode(&view.name, NON_ALPHANUMERIC)) } { "as JSON" } }
        @if !line.is_empty() {
            section { table {
                caption { "The head of its queue" }
                thead { tr { th.c-state scope="col" { "State" } th.c-id scope="col" { "Operation" } th.number scope="col" { "Try" } th.number scope="col" { "Age" } th scope="col" { "Last fault" } } }
                tbody {
                    @for one in line {
                        tr {
                            td { (state(one.state.as_str())) }
                            th scope="row" { (operation_link(one.id)) }
                            td.number { (one.attempt) }
                            td.number { (ago(one.created_at, now)) }
                            td.why { @if let Some(fault) = &one.fault { (fault.message) } }
                        }
                    }
                }
            } }
        }
    }
}
