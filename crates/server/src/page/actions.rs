//! Actions of an operator, as plain forms: a confirm step that shows what will happen and issues a
//! token, and the form that carries the token, who and why. They work without a script. What an
//! action means is decided by the API, which they call.

use axum::Extension;
use axum::extract::{Path, State};
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use serde_json::Value;
use tidegate_core::bounds::NOTE_LEN_MAX;

use super::action::{Action, ActionRequest, FIGURES, SubjectKind};
use super::bulk;
use super::error_page;
use super::operation::{call_line, facts};
use super::parts::count;
use super::view::{View, escape, filled_in, items, number, text};
use crate::api::local::LocalApi;
use crate::edge::auth::Caller;
use crate::edge::content::RequestBody;
use crate::edge::query::{Query, bad_parameter};
use crate::error::{Error, ErrorCode, Result};

/// The failed operations that are counted for a preview.
const COUNTED_MAX: usize = 200;

/// The caller where no tokens tell callers apart.
const LOCAL: &str = "local";
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
                asked.subject = bulk::until_now(&asked.subject, view.now);
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
    let (asked, caller) = (read_form(&name, body).await, operator(&caller));
    let asked = match asked {
        Ok(asked) => asked,
        Err(error) => return error_page(&error),
    };
    if !is_confirmed(&api, &asked, &caller) {
        let again = confirm_page(&api, &view, &caller, &asked, Some(view.words.confirm_again)).await;
        return if again.status().is_success() {
            (StatusCode::CONFLICT, again).into_response()
        } else {
            again
        };
    }
    match send(&api, &asked, &caller).await {
        Ok(done) => {
            let count = done["rerun"].as_u64().or_else(|| done["changed"].as_u64());
            let count = count.map_or_else(String::new, |count| format!("&count={count}"));
            let page = asked.subject_page();
            let separator = if page.contains('?') { '&' } else { '?' };
            let target = format!("{page}{separator}done={}{count}", asked.action.name());
            (StatusCode::SEE_OTHER, [(LOCATION, target)]).into_response()
        }
        Err(error) => error_page(&error),
    }
}

/// Who acts: by the name of the token, if there are tokens.
fn operator(caller: &Caller) -> Caller {
    if &*caller.0 == LOCAL { Caller::named(OPERATOR) } else { caller.clone() }
}

async fn read_form(name: &str, body: RequestBody) -> Result<ActionRequest> {
    let action = Action::parse(name)?;
    let body = body.read().await?;
    let form = std::str::from_utf8(&body)
        .map_err(|_| Error::new(ErrorCode::Malformed, "The form is not UTF-8.").field("body"))?;
    let asked = ActionRequest::from_form(action, &filled_in(form))?;
    if asked.form.reason.len() > NOTE_LEN_MAX || asked.form.reason.chars().any(char::is_control) {
        return Err(bad_parameter("reason", &format!("must be at most {NOTE_LEN_MAX} bytes on one line")));
    }
    Ok(asked)
}

fn is_confirmed(api: &LocalApi, asked: &ActionRequest, caller: &Caller) -> bool {
    let now = api.server.clock.now();
    let key = api.server.confirmation_key.get();
    key.is_some_and(|key| key.accepts(&asked.form.token, &asked.identity(), &caller.0, now))
}

async fn send(api: &LocalApi, asked: &ActionRequest, caller: &Caller) -> Result<Value> {
    api.send(caller, &asked.form.reason, &asked.command(&caller.0)?).await
}

async fn confirm_page(
    api: &LocalApi,
    view: &View,
    caller: &Caller,
    asked: &ActionRequest,
    note: Option<&str>,
) -> Response {
    let preview = match read_preview(api, asked).await {
        Ok(preview) => preview,
        Err(error) => return error_page(&error),
    };
    let Some(key) = api.server.confirmation_key.get() else {
        return error_page(&Error::new(ErrorCode::StoreUnavailable, "The store is not open yet."));
    };
    let token = key.issue(&asked.identity(), &caller.0, view.now);
    let words = view.words;
    let label = words.action(asked.action).label;
    let content = html! {
        @if asked.action.subject_kind() == SubjectKind::Operations {
            h1 { (bulk::sentence(view, asked, &preview)) "?" }
        } @else {
            h1 { (label) " " code { (asked.subject) } "?" }
        }
        @if let Some(note) = note { p.notice role="alert" { (note) } }
        p.sentence { (words.action(asked.action).effect) }
        (show_preview(view, asked, &preview))
        form.confirm method="post" action={ "/actions/" (asked.action.name()) } {
            input type="hidden" name="subject" value=(asked.subject);
            @for (name, part) in [("scope", &asked.scope), ("method", &asked.method), ("path", &asked.path)] {
                @if let Some(part) = part { input type="hidden" name=(name) value=(part); }
            }
            input type="hidden" name="token" value=(token);
            (more_fields(view, asked, &preview))
            label { (words.reason) input type="text" name="reason" maxlength=(NOTE_LEN_MAX) autocomplete="off" value=(asked.form.reason); }
            p.quiet { (words.recorded_as) " " b { (caller.0) } "." }
            p.buttons {
                button.primary type="submit" { (button_text(view, asked, &preview)) }
                a.button href=(asked.subject_page()) { (words.back) }
            }
        }
    };
    view.page(label, &content)
}

/// What is known of the subject, before anything is done.
async fn read_preview(api: &LocalApi, asked: &ActionRequest) -> Result<Value> {
    match asked.action {
        Action::RerunFailed => {
            let group = escape(&asked.subject);
            api.get(&format!("/v1/operations?group={group}&state=failed&limit={COUNTED_MAX}")).await
        }
        // A group that is idle now may be paused, if it has had an operation.
        Action::Pause => match api.get(&asked.subject_target()).await {
            Err(error) if error.code == ErrorCode::NoGroup => Ok(Value::Null),
            found => found,
        },
        _ if asked.action.subject_kind() == SubjectKind::Operations => bulk::read_preview(api, asked).await,
        _ => api.get(&asked.subject_target()).await,
    }
}

fn show_preview(view: &View, asked: &ActionRequest, preview: &Value) -> Markup {
    let words = view.words;
    match asked.action.subject_kind() {
        SubjectKind::Operation => html! {
            dl {
                dt { (words.request) } dd { (call_line(preview)) }
                (facts(view, preview))
            }
        },
        SubjectKind::Group if asked.action == Action::RerunFailed => html! {
            p { (words.failed_found) ": " b { (failed_count(preview)) } }
            @if let Some(fault) = items(preview, "operations").first().and_then(|one| one["fault"]["message"].as_str()) {
                p.quiet { (words.last_fault) ": " (fault) }
            }
        },
        SubjectKind::Group => html! {
            @if preview.is_object() {
                p { (view.state(text(preview, "state"))) " · " (words.depth) ": " (count(number(preview, "depth"))) }
                @if let Some(why) = preview["why"]["because"].as_str() { p { (why) } }
            }
        },
        SubjectKind::Limit => html! {},
        SubjectKind::Operations => html! {
            @if preview["more"] == true { p { (words.more_than_at_once) } }
            p { a href=(asked.subject_page()) { (words.show) } }
        },
        SubjectKind::Key => html! {
            p { (view.state(text(preview, "state"))) " · " code { (text(preview, "method")) " " (text(preview, "path")) } }
        },
    }
}

fn failed_count(preview: &Value) -> String {
    let found = items(preview, "operations").len() as u64;
    let more = if preview["next_cursor"].is_string() { "+" } else { "" };
    format!("{}{more}", count(found))
}

fn button_text(view: &View, asked: &ActionRequest, preview: &Value) -> String {
    let label = view.words.action(asked.action).label;
    match asked.action {
        Action::RerunFailed => format!("{label}: {}", failed_count(preview)),
        _ if asked.action.subject_kind() == SubjectKind::Operations => bulk::sentence(view, asked, preview),
        _ => format!("{label} {}", asked.subject),
    }
}

/// The fields of a limit's figures, or of a key's response.
fn more_fields(view: &View, asked: &ActionRequest, preview: &Value) -> Markup {
    let words = view.words;
    match asked.action {
        Action::SetLimit => html! {
            @for name in FIGURES.iter().filter(|name| preview[**name].is_number()) {
                label { code { (name) } input type="number" name=(name) min="0" step="any" required value=(preview[*name]); }
            }
        },
        Action::CompleteKey => html! {
            label { (words.response_status) input type="number" name="status" min="200" max="599" required value="200"; }
            label { (words.response_body) textarea name="body" rows="4" {} }
        },
        _ => html! {},
    }
}

/// A link to the confirm step of an action about this subject. Its name says what it is about, for
/// those who do not see the row.
pub(super) fn button(view: &View, action: Action, subject: &str) -> Markup {
    let label = view.words.action(action).label;
    html! { a.button href=(action.href(subject)) aria-label={ (label) " " (subject) } { (label) } }
}

/// What was just done, on the page that the form leads to.
pub(super) fn notice(view: &View, query: &mut Query) -> Markup {
    let (done, counted) = (query.take("done"), query.integer("count", 0..=u64::MAX));
    let Some(action) = done.and_then(|name| Action::parse(&name).ok()) else { return html! {} };
    html! {
        p.notice role="status" {
            (view.words.done) ": " (view.words.action(action).label)
            @if let Some(counted) = counted { " (" (count(counted)) ")" } ". "
            a href="/audit" { (view.words.audit) }
        }
    }
}
