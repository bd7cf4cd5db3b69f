//! Deployments into guilds: begun where the upstream has its place, read from the journal by any node.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tidegate::{Code, Error};
use tidegate_core::journal::{Deployment, Step};
use tidegate_discord::deploy::{self, Planned, Wanted, group};
use tidegate_discord::template;

use super::Answer;
use crate::app::{House, Shared};
use crate::edge::content;
use crate::edge::query::Query;
use crate::wire::cursor;
use crate::wire::deployment::deployment;
use crate::wire::failure::{About, Failure, about};
use crate::wire::object::shown;
use crate::wire::problems::PROBLEMS_MAX;
use crate::wire::wanted;

/// Deployments that pages reach.
const LOOKED_AT_MAX: usize = 50_000;

pub(super) async fn begin(State(app): State<Shared>, body: Body) -> Answer {
    let body = content::read(body, content::ONE_MAX, app.house.read_timeout).await?;
    let asked = wanted::read(&body)?;
    drop(body);
    check_upstream(&app.house, &asked.wanted)?;
    let template = match asked.wanted.read() {
        Ok(template) => template,
        Err(problems) => return Ok(unusable(&problems)),
    };
    if asked.dry_run {
        let planned = match app.deploying.plan(&asked.wanted, &template).await {
            Ok(planned) => planned,
            Err(error) => return Ok(refused(error)),
        };
        return Ok(Json(shown_plan(&planned)).into_response());
    }
    match app.deploying.begin(asked.wanted).await {
        Ok(begun) => {
            let location = format!("/v1/deployments/{}", begun.id);
            Ok((StatusCode::ACCEPTED, [(LOCATION, location)], Json(deployment(&begun, None))).into_response())
        }
        Err(error) => Ok(refused(error)),
    }
}

/// A plan for scripts, and line by line for people.
fn shown_plan(planned: &Planned) -> Value {
    let plan = &planned.plan;
    let estimate = plan.estimate(&planned.limits);
    let lines: Vec<String> = plan.lines().iter().map(ToString::to_string).collect();
    let text = if plan.is_empty() { String::new() } else { estimate.to_string() };
    let notes: Vec<&str> = text.lines().collect();
    json!({ "plan": plan.to_json(), "estimate": estimate.to_json(), "lines": lines, "notes": notes })
}

fn check_upstream(house: &House, wanted: &Wanted) -> Result<(), Error> {
    if house.bots.contains(&wanted.upstream) {
        return Ok(());
    }
    let name = shown(&wanted.upstream);
    let message = format!("There is no upstream {name:?} with the dialect \"discord\".");
    Err(Error::new(Code::UnknownUpstream, message).field("upstream"))
}

/// All that is wrong with a template, with its places.
fn unusable(problems: &template::Problems) -> Response {
    let one = |problem: &template::Problem| {
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
        Error::new(Code::BadTemplate, message).field("template")
    });
    let message = format!("The template cannot be used: {first}{more}");
    let also = also.take(PROBLEMS_MAX - 1).collect();
    let error = Error { also, ..Error::new(Code::BadTemplate, message).field("template") };
    about(error, About { problems: Some(list.into()), ..About::default() })
}

/// Why a deployment did not begin, or a plan was not made.
fn refused(error: deploy::Error) -> Response {
    let message = error.to_string();
    match error {
        deploy::Error::Busy { deployment, .. } => {
            about(Error::new(Code::NotNow, message), About { deployment, ..About::default() })
        }
        deploy::Error::Engine(error) => Failure(error).into_response(),
        deploy::Error::Store(error) => Failure(error.into()).into_response(),
        deploy::Error::Lost | deploy::Error::Lease(_) => {
            Failure(Error::new(Code::StoreUnavailable, message)).into_response()
        }
        deploy::Error::Invalid(_) => Failure(Error::new(Code::Invalid, message)).into_response(),
        // What Discord said, or did not say.
        _ => Failure(Error::new(Code::NoAnswer, message)).into_response(),
    }
}

pub(super) async fn list(State(house): State<Arc<House>>, mut query: Query) -> Answer {
    let guild = query.read("guild", |text| wanted::id("guild", text));
    let limit = query.limit();
    let scope = guild.map(group);
    let list = format!("deployments {}", scope.as_deref().unwrap_or_default());
    let after = query.read("cursor", |text| cursor::read_text(text, &list));
    query.finish()?;
    let (found, is_last) = newest(&house, scope.as_deref(), after.as_deref(), limit).await?;
    let next_cursor = found.last().filter(|_| !is_last).map(|last| cursor::write_text(&last.id, &list));
    let deployments: Vec<Value> = found.iter().map(|one| deployment(one, None)).collect();
    Ok(Json(json!({ "deployments": deployments, "next_cursor": next_cursor })).into_response())
}

/// Deployments below one of them, newest first, and whether there are no more. The journal is read
/// from its end; a cursor that lies deeper than it is read is refused.
async fn newest(
    house: &House,
    scope: Option<&str>,
    after: Option<&str>,
    limit: usize,
) -> Result<(Vec<Deployment>, bool), Error> {
    // One more than fits says whether there are more.
    let mut most = limit + 1;
    loop {
        let mut found = house.store.deployments(scope, most).await?;
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
            return Err(cursor::strange());
        }
        most *= 4;
    }
}

pub(super) async fn show(State(house): State<Arc<House>>, Path(id): Path<String>) -> Answer {
    let (one, steps) = with_steps(&house, &id).await?;
    Ok(Json(deployment(&one, Some(&steps))).into_response())
}

/// A deployment and its steps, from the journal.
///
/// # Errors
/// When it is not there.
pub(crate) async fn with_steps(house: &House, id: &str) -> Result<(Deployment, Vec<Step>), Error> {
    let Some(one) = house.store.deployment(id).await? else {
        let message = format!("There is no deployment {:?}.", shown(id));
        return Err(Error::new(Code::NoDeployment, message).field("id"));
    };
    let steps = house.store.deployment_steps(&one.id).await?;
    Ok((one, steps))
}
