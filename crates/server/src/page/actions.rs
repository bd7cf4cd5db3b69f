//! Actions of an operator, as plain forms: a confirm step, and the form that carries its token, who
//! and why. They work without a script. What an action means is decided by the API, which they
//! call.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, State};
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use tidegate_core::OperationId;
use tidegate_core::bounds::NOTE_LEN_MAX;
use tidegate_core::fingerprint::Fingerprint;
use tidegate_core::text::is_control;

use super::action::{Action, ActionRequest, SubjectKind};
use super::bulk;
use super::confirm_page::confirm_page;
use super::error_page;
use super::parts::{count, operation_link};
use super::repeated_form::FormFingerprint;
use super::view::{View, escape, filled_in};
use crate::api::local::LocalApi;
use crate::edge::auth::Caller;
use crate::edge::content::RequestBody;
use crate::edge::query::{Query, bad_parameter};
use crate::error::{Error, ErrorCode, Result};
use crate::wire::error::{PAGES, status};

/// Whose tokens prove that an action was done.
const DONE: &str = "done";
/// The name of an operator on this machine.
const OPERATOR: &str = "operator";

pub(crate) async fn confirm(
    State(api): State<LocalApi>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    headers: HeaderMap,
    query: Query,
) -> Response {
    let view = View::new(&headers, &api);
    let asked = Action::parse(&name).and_then(|action| ActionRequest::from_query(action, query));
    match asked {
        Ok(mut asked) => {
            if asked.action.subject_kind() == SubjectKind::Operations {
                asked.subject = bulk::until_now(asked.action, &asked.subject, view.now);
            }
            confirm_page(&api, &view, &operator(&caller), &asked, None).await
        }
        Err(error) => error_page(&error),
    }
}

pub(crate) async fn perform(
    State(api): State<LocalApi>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: RequestBody,
) -> Response {
    let view = View::new(&headers, &api);
    let (read, caller) = (read_form(&name, body).await, operator(&caller));
    let (asked, form) = match read {
        Ok((asked, form)) => (Arc::new(asked), form),
        Err(error) => return error_page(&error),
    };
    if !is_confirmed(&api, &asked, &caller) {
        let note = html! { (view.words.confirm_again) };
        return show_again(&api, &view, &caller, &asked, &note, StatusCode::CONFLICT).await;
    }
    let sent = match check_reason(&asked.form.reason) {
        Ok(()) => send_once(&api, &asked, &form, &caller).await,
        Err(error) => Err(error),
    };
    match sent {
        Ok(target) => (StatusCode::SEE_OTHER, [(LOCATION, target)]).into_response(),
        Err(error) => {
            let note = html! { (error.message) " " a href={ (PAGES) "/" (error.code) } { (error.code) } };
            show_again(&api, &view, &caller, &asked, &note, status(error.code)).await
        }
    }
}

/// The confirm step again, with what was filled in, a note why, and a status; or the page that
/// says why it cannot be shown.
async fn show_again(
    api: &LocalApi,
    view: &View,
    caller: &Caller,
    asked: &ActionRequest,
    note: &Markup,
    status: StatusCode,
) -> Response {
    let mut page = confirm_page(api, view, caller, asked, Some(note)).await;
    if page.status().is_success() {
        *page.status_mut() = status;
    }
    page
}

/// Carries out an action, once for all repeats of its form; returns where the form leads.
async fn send_once(
    api: &LocalApi,
    asked: &Arc<ActionRequest>,
    form: &FormFingerprint,
    caller: &Caller,
) -> Result<String> {
    let outcome = api.server.page.recent_forms.outcome_of(form);
    let (api, asked, caller) = (api.clone(), Arc::clone(asked), caller.clone());
    // A browser hangs up on the first click when it sends the second.
    let sent = tokio::spawn(async move { outcome.get_or_init(|| send(&api, &asked, &caller)).await.clone() });
    sent.await.unwrap_or_else(|_| Err(Error::new(ErrorCode::Internal, "The action was not finished.")))
}

/// Who acts: by the name of the token, if there are tokens.
fn operator(caller: &Caller) -> Caller {
    if &*caller.0 == Caller::LOCAL { Caller::named(OPERATOR) } else { caller.clone() }
}

async fn read_form(name: &str, body: RequestBody) -> Result<(ActionRequest, FormFingerprint)> {
    let action = Action::parse(name)?;
    let body = body.read().await?;
    let form = std::str::from_utf8(&body)
        .map_err(|_| Error::new(ErrorCode::Malformed, "The form is not UTF-8.").field("body"))?;
    let asked = ActionRequest::from_form(action, &filled_in(form))?;
    Ok((asked, Fingerprint::of("form").part(name.as_bytes()).part(&body).finish()))
}

fn check_reason(reason: &str) -> Result<()> {
    if reason.chars().any(is_control) {
        let problem = "must have no control characters, and none that turn the direction of text";
        return Err(bad_parameter("reason", problem));
    }
    if reason.len() > NOTE_LEN_MAX {
        let len = reason.len();
        let problem = format!("is {len} bytes long; at most {NOTE_LEN_MAX}, and a Cyrillic letter has two");
        return Err(bad_parameter("reason", &problem));
    }
    Ok(())
}

fn is_confirmed(api: &LocalApi, asked: &ActionRequest, caller: &Caller) -> bool {
    let now = api.server.clock.now();
    let key = api.server.confirmation_key.get();
    key.is_some_and(|key| key.accepts(&asked.form.token, &asked.identity(), &caller.0, now))
}

async fn send(api: &LocalApi, asked: &ActionRequest, caller: &Caller) -> Result<String> {
    let done = api.send(caller, &asked.form.reason, &asked.command(&caller.0)?).await?;
    Ok(with_proof(api, asked.done_page(&done)))
}

/// A page that says what was done, with the proof that it was: anyone can write such an address.
fn with_proof(api: &LocalApi, page: String) -> String {
    let Some((before, done)) = page.rsplit_once("done=") else { return page };
    let ids = before.rsplit_once("ids=").map_or("", |(_, ids)| ids.trim_end_matches('&'));
    let key = api.server.confirmation_key.get();
    let proof = key.map(|key| key.issue(&what_was_done(done, ids), DONE, api.server.clock.now()));
    proof.map(|proof| format!("{page}&proof={}", escape(&proof))).unwrap_or(page)
}

/// What a proof is about: what was done how often, and to which operations.
fn what_was_done(done: &str, ids: &str) -> String {
    format!("{done} {ids}")
}

/// A link to the confirm step of an action about this subject. Its name says what it is about, for
/// those who do not see the row.
pub(super) fn button(view: &View, action: Action, subject: &str) -> Markup {
    let label = view.words.action(action).label;
    html! { a.button href=(action.href(subject)) aria-label={ (label) " " (subject) } { (label) } }
}

/// What was just done, on the page that the form leads to.
pub(super) fn notice(api: &LocalApi, view: &View, query: &mut Query) -> Markup {
    notice_with(api, view, query, None)
}

/// The same, with a sentence that says what it is like now.
pub(super) fn notice_with(api: &LocalApi, view: &View, query: &mut Query, now: Option<&str>) -> Markup {
    let (done, counted) = (query.take("done"), query.integer("count", 0..=u64::MAX));
    let proof = query.take("proof").unwrap_or_default();
    let ids = query.take("ids").unwrap_or_default();
    let changed = ids.split(',').filter(|id| id.parse::<OperationId>().is_ok());
    let Some(action) = done.and_then(|name| Action::parse(&name).ok()) else { return html! {} };
    let count_given = counted.map_or_else(String::new, |counted| format!("&count={counted}"));
    let key = api.server.confirmation_key.get();
    let said = what_was_done(&format!("{}{count_given}", action.name()), &ids);
    if !key.is_some_and(|key| key.accepts(&proof, &said, DONE, view.now)) {
        return html! {};
    }
    html! {
        p.notice role="status" {
            @if counted == Some(0) { (view.words.nothing_changed) " (" (view.words.action(action).label) ")" }
            @else { (view.words.done) ": " (view.words.action(action).label) }
            @if let Some(counted) = counted.filter(|counted| *counted > 0) { " (" (count(counted)) ")" } ". "
            @if let Some(now) = now { (now) " " }
            @for id in changed { (operation_link(id)) " " }
            a href="/audit" { (view.words.audit) }
        }
    }
}
