//! Deployments to guilds: started on the node that has the upstream's partition, read from the
//! journal by any node.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tidegate_core::bounds::PROBLEMS_MAX;
use tidegate_core::journal::{Deployment, DeploymentStep};
use tidegate_discord::deploy::{self, DeployRequest, group};
use tidegate_discord::template;

use super::HandlerResult;
use crate::edge::content::RequestBody;
use crate::edge::query::Query;
use crate::error::{Error, ErrorCode};
use crate::state::{ServerState, SharedPartition};
use crate::wire::cursor;
use crate::wire::deployment::{deployment_json, events_json};
use crate::wire::deployment_request;
use crate::wire::error::{ApiError, ErrorContext, response_with_context};
use crate::wire::object::truncate_name;

/// How many deployments pages reach.
const LOOKED_AT_MAX: usize = 50_000;

pub(super) async fn begin(State(app): State<SharedPartition>, body: RequestBody) -> HandlerResult {
    let body = body.read().await?;
    let asked = deployment_request::read(&body)?;
    drop(body);
    check_upstream(&app.server, &asked.wanted)?;
    let template = match asked.wanted.read() {
        Ok(template) => template,
        Err(problems) => return Ok(template_problems_response(&problems)),
    };
    if asked.dry_run {
        let planned = match app.deployments.plan(&asked.wanted, &template).await {
            Ok(planned) => planned,
            Err(error) => return Ok(deploy_error_response(error)),
        };
        return Ok(Json(planned.to_json()).into_response());
    }
    match app.deployments.begin(asked.wanted).await {
        Ok(begun) => {
            let location = format!("/v1/deployments/{}", begun.id);
            Ok((StatusCode::ACCEPTED, [(LOCATION, location)], Json(deployment_json(&begun, None)))
                .into_response())
        }
        Err(error) => Ok(deploy_error_response(error)),
    }
}

fn check_upstream(server: &ServerState, wanted: &DeployRequest) -> Result<(), Error> {
    if server.discord_upstreams.contains(&wanted.upstream) {
        return Ok(());
    }
    let name = truncate_name(&wanted.upstream);
    let message = format!("There is no upstream {name:?} with the dialect \"discord\".");
    Err(Error::new(ErrorCode::UnknownUpstream, message).field("upstream"))
}

/// The response with all problems of a template and their locations.
fn template_problems_response(problems: &template::TemplateProblems) -> Response {
    let one = |problem: &template::TemplateProblem| {
        json!({
            "line": problem.at.line, "column": problem.at.column,
            "path": problem.path.to_string(), "message": problem.message,
        })
    };
    let list: Vec<Value> = problems.list.iter().map(one).collect();
    let first = problems.to_string().lines().next().unwrap_or_default().to_owned();
    let more = match list.len() {
        0 | 1 => String::new(),
        all => format!(" And {} more.", all - 1),
    };
    let also = problems.list.iter().skip(1).map(|problem| {
        let message = format!("Line {}, column {}: {}", problem.at.line, problem.at.column, problem.message);
        Error::new(ErrorCode::BadTemplate, message).field("template")
    });
    let message = format!("The template cannot be used: {first}{more}");
    let also = also.take(PROBLEMS_MAX - 1).collect();
    let mut error = Error::new(ErrorCode::BadTemplate, message).field("template");
    error.also = also;
    response_with_context(error, ErrorContext { problems: Some(list.into()), ..ErrorContext::default() })
}

/// The response when a deployment did not start or a plan was not made.
fn deploy_error_response(error: deploy::Error) -> Response {
    let (code, message) = (error.code(), error.to_string());
    match error {
        deploy::Error::Busy { deployment, .. } => response_with_context(
            Error::new(code, message),
            ErrorContext { deployment, ..ErrorContext::default() },
        ),
        deploy::Error::Engine(error) => ApiError(error.into()).into_response(),
        deploy::Error::Store(error) => ApiError(error.into()).into_response(),
        _ => ApiError(Error::new(code, message)).into_response(),
    }
}

pub(super) async fn list(State(server): State<Arc<ServerState>>, mut query: Query) -> HandlerResult {
    let guild = query.read("guild", |text| deployment_request::parse_discord_id("guild", text));
    let limit = query.limit();
    let scope = guild.map(group);
    let cursor = query.take("cursor");
    query.finish()?;
    let (found, next_cursor) = list_page(&server, scope.as_deref(), cursor.as_deref(), limit).await?;
    let deployments: Vec<Value> = found.iter().map(|one| deployment_json(one, None)).collect();
    Ok(Json(json!({ "deployments": deployments, "next_cursor": next_cursor })).into_response())
}

/// Lists a page of deployments, newest first, after a cursor; returns the cursor of the next page.
pub(crate) async fn list_page(
    server: &ServerState,
    scope: Option<&str>,
    after: Option<&str>,
    limit: usize,
) -> Result<(Vec<Deployment>, Option<String>), Error> {
    let list = format!("deployments {}", scope.unwrap_or_default());
    let after = after.map(|text| cursor::read_text(text, &list)).transpose()?;
    let (found, is_last) = list_newest(server, scope, after.as_deref(), limit).await?;
    let next = found.last().filter(|_| !is_last).map(|last| cursor::write_text(&last.id, &list));
    Ok((found, next))
}

/// Lists deployments older than one of them, newest first, and returns whether there are no more.
/// The journal is read from its end; a cursor that is deeper than that is refused.
async fn list_newest(
    server: &ServerState,
    scope: Option<&str>,
    after: Option<&str>,
    limit: usize,
) -> Result<(Vec<Deployment>, bool), Error> {
    // One more than fits shows whether there are more.
    let mut most = limit + 1;
    loop {
        let mut found = server.store.deployments(scope, most).await?;
        let is_whole = found.len() < most;
        let begin = match after {
            Some(after) => found.iter().position(|one| *one.id == *after).map(|place| place + 1),
            None => Some(0),
        };
        let enough = begin.filter(|begin| is_whole || found.len() > begin + limit);
        if let Some(begin) = enough {
            let is_last = found.len() <= begin + limit;
            found.truncate(begin + limit);
            return Ok((found.split_off(begin), is_last));
        }
        if is_whole || most >= LOOKED_AT_MAX {
            return Err(cursor::bad_cursor());
        }
        most *= 4;
    }
}

pub(super) async fn show(State(server): State<Arc<ServerState>>, Path(id): Path<String>) -> HandlerResult {
    let (one, steps) = find_with_steps(&server, &id).await?;
    Ok(Json(deployment_json(&one, Some(&steps))).into_response())
}

pub(super) async fn events(State(server): State<Arc<ServerState>>, Path(id): Path<String>) -> HandlerResult {
    let one = find(&server, &id).await?;
    let events = server.store.deployment_events(&one.id).await.map_err(Error::from)?;
    Ok(Json(events_json(&one.id, &events)).into_response())
}

/// Reads a deployment from the journal.
///
/// # Errors
/// When there is no such deployment.
pub(crate) async fn find(server: &ServerState, id: &str) -> Result<Deployment, Error> {
    server.store.deployment(id).await?.ok_or_else(|| {
        let message = format!("There is no deployment {:?}.", truncate_name(id));
        Error::new(ErrorCode::NoDeployment, message).field("id")
    })
}

/// Reads a deployment and its steps from the journal.
///
/// # Errors
/// When there is no such deployment.
pub(crate) async fn find_with_steps(
    server: &ServerState,
    id: &str,
) -> Result<(Deployment, Vec<DeploymentStep>), Error> {
    let one = find(server, id).await?;
    let steps = server.store.deployment_steps(&one.id).await?;
    Ok((one, steps))
}
