//! The confirm step of an action: what it will do, what is known of its subject, and the form with
//! the token. It does nothing itself.

use axum::response::Response;
use maud::{Markup, html};
use serde_json::{Value, json};
use tidegate_core::bounds::NOTE_LEN_MAX;
use tidegate_dispatch::KIND as GENERATION;

use super::action::{Action, ActionRequest, FIGURES, SubjectKind};
use super::bulk;
use super::closure;
use super::error_page;
use super::failure_actions;
use super::keys::actions_for as actions_for_key;
use super::last_command;
use super::operation::{actions_for, call_line, facts};
use super::parts::count;
use super::request::body;
use super::view::{View, escape, items, number, text};
use crate::api::local::LocalApi;
use crate::edge::auth::Caller;
use crate::error::{Error, ErrorCode, Result};
use crate::generations::providers::Availability;
use crate::wire::object::truncate_name;

/// Under this name a preview says that nothing is known of a group.
const UNKNOWN_GROUP: &str = "unknown_group";
/// And under this one, that there is no such key any more.
const GONE_KEY: &str = "gone_key";
/// The failed operations that are counted for a preview.
const COUNTED_MAX: usize = 200;

pub(super) async fn confirm_page(
    api: &LocalApi,
    view: &View,
    caller: &Caller,
    asked: &ActionRequest,
    note: Option<&Markup>,
) -> Response {
    let preview = match read_preview(api, asked).await {
        Ok(preview) => preview,
        Err(error) => return error_page(&error),
    };
    let Some(key) = api.server.confirmation_key.get() else {
        return error_page(&Error::new(ErrorCode::StoreUnavailable, "The store is not open yet."));
    };
    let asked = &ActionRequest { seen: seen(view, asked, &preview), ..asked.clone() };
    let token = key.issue(&asked.identity(), &caller.0, view.now);
    let words = view.words;
    let obstacle = obstacle(view, asked, &preview);
    let is_late = obstacle.is_some() || note.is_some();
    let last_command = if is_late { last_command::read(api, asked).await } else { None };
    let content = html! {
        h1 { (question(view, asked, &preview)) }
        @if let Some(note) = note { p.notice role="alert" { (note) } }
        @if let Some(last) = &last_command { (last_command::sentence(view, last)) }
        @if obstacle.is_none() {
            p.sentence { (words.action(asked.action).effect) }
            (warnings(view, asked, &preview))
        }
        (show_preview(view, asked, &preview))
        @if let Some(obstacle) = obstacle {
            p.notice role="alert" { (obstacle) }
            p.buttons { a.button href=(asked.subject_page()) { (words.show) } }
        } @else {
            form.confirm method="post" action={ "/actions/" (asked.action.name()) } {
                input type="hidden" name="subject" value=(asked.subject);
                @for (name, part) in [("scope", &asked.scope), ("method", &asked.method), ("path", &asked.path), ("seen", &asked.seen)] {
                    @if let Some(part) = part { input type="hidden" name=(name) value=(part); }
                }
                input type="hidden" name="token" value=(token);
                (more_fields(view, asked, &preview))
                label { (words.reason) " (" (words.optional) ")" input type="text" name="reason" maxlength=(NOTE_LEN_MAX) autocomplete="off" value=(asked.form.reason); }
                p.quiet { (words.recorded_as) " " b { (caller.0) } "." }
                p.buttons {
                    button.primary type="submit" { (button_text(view, asked, &preview)) }
                    a.button href=(asked.subject_page()) { (words.leave_it) }
                }
            }
        }
    };
    view.page(words.action(asked.action).label, &content)
}

/// What the operator sees of a subject that failed, or whose outcome is unknown: a decision is
/// about that only.
fn seen(view: &View, asked: &ActionRequest, preview: &Value) -> Option<String> {
    match asked.action {
        Action::Happened | Action::DidNotHappen | Action::SendAgain => {
            preview["attempt"].as_u64().map(|attempt| attempt.to_string())
        }
        Action::Rerun
        | Action::RerunFailed
        | Action::AllHappened
        | Action::NoneHappened
        | Action::SendAllAgain => Some(bulk::after(view.now)),
        Action::ReleaseKey | Action::ExpireKey | Action::CompleteKey => {
            preview["created_at"].as_str().map(str::to_owned)
        }
        _ => None,
    }
}

/// What a confirm step asks.
fn question(view: &View, asked: &ActionRequest, preview: &Value) -> Markup {
    if asked.action.subject_kind() == SubjectKind::Operations {
        return html! { (bulk::sentence(view, asked, preview)) "?" };
    }
    let question = view.words.action(asked.action).question;
    let (before, after) = question.split_once("{}").unwrap_or((question, ""));
    let subject = match asked.action.subject_kind() {
        SubjectKind::Failures => failure_actions::name(view, &asked.subject),
        _ => asked.subject.clone(),
    };
    html! { (before) code { (subject) } (after) }
}

/// Why the action cannot be done now, as far as that is known before it is tried.
fn obstacle(view: &View, asked: &ActionRequest, preview: &Value) -> Option<String> {
    let words = view.words;
    if preview[UNKNOWN_GROUP] == true {
        return Some(words.no_such_group.to_owned());
    }
    if preview[GONE_KEY] == true {
        return Some(words.key_is_gone.to_owned());
    }
    if is_possible(asked, preview) {
        return None;
    }
    let has_state = matches!(asked.action.subject_kind(), SubjectKind::Operation | SubjectKind::Group);
    let state = text(preview, "state");
    Some(match has_state && !state.is_empty() {
        true => words.not_possible_as.replace("{}", words.state(state)),
        false => words.not_possible.to_owned(),
    })
}

/// Whether the action can be done in the state that its subject has now.
fn is_possible(asked: &ActionRequest, preview: &Value) -> bool {
    let state = text(preview, "state");
    match asked.action.subject_kind() {
        // What is unknown may be canceled too, although deciding about it is better.
        SubjectKind::Operation => {
            actions_for(state).contains(&asked.action)
                || (asked.action == Action::Cancel && state == "unknown")
        }
        SubjectKind::Group if asked.action == Action::Resume => {
            state == "paused" || (state == "held" && preview["held"]["unknown"] != true)
        }
        // A second pause would replace who paused it, and why.
        SubjectKind::Group if asked.action == Action::Pause => !preview["paused"].is_object(),
        SubjectKind::Group if asked.action == Action::RerunFailed => !items(preview, "operations").is_empty(),
        SubjectKind::Operations => number(preview, "matched") > 0,
        SubjectKind::Limit if asked.action == Action::SetLimit => {
            FIGURES.iter().any(|(name, _)| preview[*name].is_number())
        }
        SubjectKind::Limit if asked.action == Action::OpenLimit => preview["closed_until"].is_string(),
        SubjectKind::Limit if asked.action == Action::ResetLimit => text(preview, "source") == "operator",
        SubjectKind::Key => actions_for_key(state).contains(&asked.action),
        SubjectKind::Provider => state == Availability::CoolingDown.as_str(),
        SubjectKind::Failures => failure_actions::is_possible(asked.action, preview),
        SubjectKind::Group | SubjectKind::Limit => true,
    }
}

/// What a rerun may do twice.
fn warnings(view: &View, asked: &ActionRequest, preview: &Value) -> Markup {
    let doubtful = |one: &Value| one["fault"]["may_have_happened"] == true;
    let paid = |one: &Value| text(one, "kind") == GENERATION;
    let listed = items(preview, "operations");
    if asked.action == Action::Resume && preview["held"]["unknown"] == true {
        return html! { p.notice role="alert" { (view.words.still_undecided) } };
    }
    let (doubtful, paid) = match asked.action {
        Action::Rerun => (doubtful(preview), paid(preview)),
        Action::RerunFailed => (listed.iter().any(doubtful), listed.iter().any(paid)),
        Action::RerunAll => (number(preview, bulk::DOUBTFUL) > 0, number(preview, bulk::GENERATIONS) > 0),
        _ => return html! {},
    };
    let lasting = number(preview, bulk::LASTING);
    html! {
        @if lasting > 0 { p.notice role="alert" { (view.words.of_which_fail_again.replace("{}", &count(lasting))) } }
        @if doubtful { p.notice role="alert" { (view.words.may_happen_twice) } }
        @if paid { p.notice role="alert" { (view.words.paid_again) } }
    }
}

/// What is known of the subject, before anything is done.
async fn read_preview(api: &LocalApi, asked: &ActionRequest) -> Result<Value> {
    match asked.action {
        Action::RerunFailed => {
            let group = escape(&asked.subject);
            let target = format!("/v1/operations?group={group}&state=failed&limit={COUNTED_MAX}");
            let mut failed = api.get(&target).await?;
            if items(&failed, "operations").is_empty() && !is_known_group(api, &asked.subject).await? {
                failed[UNKNOWN_GROUP] = true.into();
            }
            Ok(failed)
        }
        // A group that is idle now may be paused, if it has had an operation; it may have been
        // resumed by someone else.
        Action::Pause | Action::Resume => match api.get(&asked.subject_target()).await {
            Err(error) if error.code == ErrorCode::NoGroup => {
                Ok(json!({ UNKNOWN_GROUP: !is_known_group(api, &asked.subject).await? }))
            }
            found => found,
        },
        Action::OpenProvider => find_provider(api, &asked.subject).await,
        Action::Dismiss => {
            let mut preview = failure_actions::read_preview(api, asked).await?;
            if let Some(group) = failure_actions::group(&asked.subject)
                && !is_known_group(api, &group).await?
            {
                preview[UNKNOWN_GROUP] = true.into();
            }
            Ok(preview)
        }
        Action::RestoreFailures => failure_actions::read_preview(api, asked).await,
        _ if asked.action.subject_kind() == SubjectKind::Operations => bulk::read_preview(api, asked).await,
        _ => match api.get(&asked.subject_target()).await {
            Err(error) if error.code == ErrorCode::NoKey => Ok(json!({ GONE_KEY: true })),
            found => found,
        },
    }
}

async fn find_provider(api: &LocalApi, name: &str) -> Result<Value> {
    let all = api.get("/v1/providers").await?;
    let found = items(&all, "providers").iter().find(|one| text(one, "name") == name).cloned();
    found.ok_or_else(|| {
        let message = format!("There is no provider {:?}.", truncate_name(name));
        Error::new(ErrorCode::NoProvider, message)
    })
}

/// Whether the group has anything to do, or has an operation that is still known.
async fn is_known_group(api: &LocalApi, name: &str) -> Result<bool> {
    let name = escape(name);
    match api.get(&format!("/v1/groups/{name}")).await {
        Err(error) if error.code == ErrorCode::NoGroup => {}
        found => return found.map(|_| true),
    }
    let page = api.get(&format!("/v1/operations?group={name}&limit=1")).await?;
    // Where there is more than one page is searched, only the command itself finds out.
    Ok(!items(&page, "operations").is_empty() || page["next_cursor"].is_string())
}

fn show_preview(view: &View, asked: &ActionRequest, preview: &Value) -> Markup {
    let words = view.words;
    match asked.action.subject_kind() {
        SubjectKind::Operation => html! {
            dl {
                dt { (words.state_label) } dd { (view.state(text(preview, "state"))) }
                dt { (words.request) } dd { (call_line(preview)) }
                (facts(view, preview, 1))
            }
            // Which call it was can only be told by what it asked for.
            (body(view, &preview["request"]))
        },
        SubjectKind::Group if asked.action == Action::RerunFailed => html! {
            p { (words.failed_found) ": " b { (failed_count(preview)) } }
            @if let Some(fault) = items(preview, "operations").first().and_then(|one| one["fault"]["message"].as_str()) {
                p.quiet { (words.last_fault) ": " (fault) }
            }
        },
        SubjectKind::Group => html! {
            @if preview["state"].is_string() {
                p { (view.state(text(preview, "state"))) " · " (words.depth) ": " (count(number(preview, "depth"))) }
                @if let Some(why) = preview["why"]["because"].as_str() { p { (why) } }
            }
        },
        SubjectKind::Limit => closure::of_limit(view, preview),
        SubjectKind::Provider => closure::of_provider(view, preview),
        SubjectKind::Failures => failure_actions::show_preview(view, asked, preview),
        SubjectKind::Operations => html! {
            @if preview["more"] == true { p { (words.more_than_at_once) } }
            p { a href=(asked.subject_page()) { (words.show) } }
        },
        SubjectKind::Key => html! {
            @if preview["state"].is_string() {
                p { (view.state(text(preview, "state"))) " · " code { (text(preview, "method")) " " (text(preview, "path")) } }
            }
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
        _ => label.to_owned(),
    }
}

/// The fields of a limit's figures, or of a key's response.
fn more_fields(view: &View, asked: &ActionRequest, preview: &Value) -> Markup {
    let words = view.words;
    match asked.action {
        Action::SetLimit => html! {
            @for (name, least) in FIGURES.iter().filter(|(name, _)| preview[*name].is_number()) {
                @let shown = asked.form.figure(name).map_or_else(|| preview[*name].to_string(), str::to_owned);
                label { code { (name) } " " (view.words.figure_about(name)) input type="number" name=(name) min=(least) step="any" required value=(shown); }
            }
        },
        Action::CompleteKey => html! {
            label { (words.response_status) input type="number" name="status" min="200" max="599" required value=(asked.form.status.as_deref().unwrap_or("200")); }
            label { (words.response_body) textarea name="body" rows="4" { (asked.form.body.as_deref().unwrap_or_default()) } }
        },
        _ => html! {},
    }
}

#[cfg(test)]
mod tests {
    use tidegate_core::Time;

    use super::super::words::Language;
    use super::*;
    use crate::edge::query::Query;

    /// OPS-23: a rerun says that a call may happen twice, and that a generation is paid for again.
    #[test]
    fn ops_23_a_rerun_warns_of_what_it_may_repeat() {
        let view = View::at(Language::English, Time::ZERO);
        let said = |action, preview: Value| {
            let asked = ActionRequest::from_query(action, Query::parse("subject=state%3Dfailed")).unwrap();
            let html = warnings(&view, &asked, &preview).into_string();
            (html.contains("happens twice"), html.contains("charged again"))
        };
        let doubtful = json!({ "kind": "http", "fault": { "may_have_happened": true } });
        let generation = json!({ "kind": "generation", "fault": { "may_have_happened": false } });
        let plain = json!({ "kind": "http", "fault": null });
        let table = [
            (Action::Rerun, doubtful.clone(), (true, false)),
            (Action::Rerun, generation.clone(), (false, true)),
            (Action::Rerun, plain.clone(), (false, false)),
            (Action::Cancel, generation.clone(), (false, false)),
            (Action::RerunFailed, json!({ "operations": [plain, doubtful, generation] }), (true, true)),
            (Action::RerunAll, json!({ "matched": 3, "doubtful": 1, "generations": 0 }), (true, false)),
            (Action::RerunAll, json!({ "matched": 3, "doubtful": 0, "generations": 2 }), (false, true)),
        ];
        for (action, preview, expected) in table {
            assert_eq!(said(action, preview.clone()), expected, "{action:?} {preview}");
        }
        let asked =
            ActionRequest::from_query(Action::RerunAll, Query::parse("subject=state%3Dfailed")).unwrap();
        let html = warnings(&view, &asked, &json!({ "matched": 3, "lasting": 2 })).into_string();
        assert!(html.contains("Of these, 2 are likely to fail again"), "{html}");
    }
}
