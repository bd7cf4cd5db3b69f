//! Groups: all of them by name, and one with the head of its queue. A group without operations has
//! a page too.

use axum::extract::{Path, State};
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use maud::{Markup, html};
use serde_json::{Value, json};
use tidegate_core::Time;

use super::action::Action;
use super::actions::{button, notice};
use super::operations::table as operation_table;
use super::parts::{count, group as group_link, operation_link, why_cell};
use super::view::{View, escape, filled_in, items, number, text, time_in};
use super::{error_page, request_query};
use crate::api::local::LocalApi;
use crate::edge::query::Query;
use crate::error::{Error, ErrorCode, Result};
use crate::wire::time::Timestamp;

/// The groups of a page.
const ROWS: usize = 50;
/// The last operations of a group that are shown.
const LAST: usize = 20;
/// The states that groups can be filtered by.
const STATES: [&str; 3] = ["stopped", "held", "paused"];

pub(crate) async fn list(State(api): State<LocalApi>, headers: HeaderMap, uri: Uri) -> Response {
    let view = View::new(&headers, &api);
    let mut query = Query::parse(&filled_in(request_query(&uri)));
    let asked = GroupsRequest {
        state: query.take("state"),
        prefix: query.take("prefix"),
        cursor: query.take("cursor"),
    };
    let read = async {
        query.finish()?;
        let mut page = api.get(&asked.target()).await?;
        asked.keep_prefix(&mut page);
        Ok::<_, Error>(page)
    };
    match read.await {
        Ok(page) => view.live_page(view.words.groups, &list_content(&view, &asked, &page)),
        Err(error) => error_page(&error),
    }
}

/// What is asked for.
struct GroupsRequest {
    state: Option<String>,
    /// What the names begin with.
    prefix: Option<String>,
    cursor: Option<String>,
}

impl GroupsRequest {
    /// The URL of the API's list, which is sorted by name: the names with this beginning follow it.
    /// The search leads to the group that has exactly this name.
    fn target(&self) -> String {
        let after = self.prefix.as_ref().filter(|_| self.cursor.is_none());
        let pairs = [("state", self.state.as_ref()), ("after", after), ("cursor", self.cursor.as_ref())];
        let pairs = pairs.into_iter().filter_map(|(name, value)| Some(format!("&{name}={}", escape(value?))));
        format!("/v1/groups?limit={ROWS}{}", pairs.collect::<String>())
    }

    /// Removes the groups whose names begin with something else, which are the last.
    fn keep_prefix(&self, page: &mut Value) {
        let Some(prefix) = &self.prefix else { return };
        let Some(groups) = page["groups"].as_array_mut() else { return };
        let found = groups.len();
        groups.retain(|group| text(group, "group").starts_with(prefix.as_str()));
        if groups.len() < found {
            page["next_cursor"] = Value::Null;
        }
    }

    /// The URL of the next page.
    fn page_href(&self, cursor: &str) -> String {
        let pairs = [("state", self.state.as_deref()), ("prefix", self.prefix.as_deref())];
        let pairs = pairs.into_iter().filter_map(|(name, value)| Some(format!("&{name}={}", escape(value?))));
        format!("/groups?cursor={}{}", escape(cursor), pairs.collect::<String>())
    }
}

fn list_content(view: &View, asked: &GroupsRequest, page: &Value) -> Markup {
    let (words, only) = (view.words, asked.state.as_deref());
    let nothing = match (only, &asked.prefix) {
        (_, Some(_)) => words.no_groups_named,
        (Some(_), None) => words.no_groups_in_state,
        (None, None) => words.no_groups,
    };
    html! {
        h1 { (words.groups) }
        p.filters {
            a href="/groups" aria-current=[only.is_none().then_some("page")] { (words.any) }
            @for word in STATES {
                a href={ "/groups?state=" (word) } aria-current=[(only == Some(word)).then_some("page")] { (words.state(word)) }
            }
        }
        section #groups data-live="steady" {
            @if let Some(prefix) = &asked.prefix {
                p { (words.names_begin_with) " " code { (prefix) } " · " a href="/groups" { (words.show_all) } }
            }
            @if items(page, "groups").is_empty() { p.quiet { (nothing) } }
            @else { (table_with(view, items(page, "groups"), false)) }
        }
        @if let Some(next) = page["next_cursor"].as_str() {
            p { a href=(asked.page_href(next)) { (words.next) } }
        }
    }
}

/// A table of groups with what each waits for, and when it is expected to be empty.
pub(super) fn table(view: &View, groups: &[Value]) -> Markup {
    table_with(view, groups, true)
}

/// The same; `has_drains` where it is known when each is empty. Only the summary knows it.
fn table_with(view: &View, groups: &[Value], has_drains: bool) -> Markup {
    let words = view.words;
    html! {
        table.cards.rows {
            caption.hidden { (words.groups) }
            thead {
                tr {
                    th.c-state scope="col" { (words.state_label) }
                    th.c-name scope="col" { (words.group) }
                    th.number scope="col" { (words.depth) }
                    th.number scope="col" { (words.age) }
                    th scope="col" { (words.why) }
                    @if has_drains { th.c-id scope="col" { (words.drains) } }
                    th.c-act scope="col" { span.hidden { (words.actions) } }
                }
            }
            tbody {
                @for group in groups {
                    @if group["alike"].is_object() { (alike_row(view, group, has_drains)) }
                    @else { (row(view, group, has_drains)) }
                }
            }
        }
    }
}

fn row(view: &View, group: &Value, has_drains: bool) -> Markup {
    let (words, name) = (view.words, text(group, "group"));
    html! {
        tr id={ "group-" (escape(name)) } {
            td { (view.state(text(group, "state"))) }
            th scope="row" { (group_link(name)) }
            td.number data-label=(words.depth) { (count(number(group, "depth"))) }
            td.number data-label=(words.age) { @if let Some(at) = time_in(&group["head"], "created_at") { (view.ago(at)) } }
            (why_cell(text(&group["why"], "because")))
            @if has_drains { td.wrap { @if let Some(at) = time_in(group, "drains_at") { (drains(view, group, at)) } } }
            td.act { (main_button(view, group)) }
        }
    }
}

/// Generations that wait for the same: each has a group of its own, and one row stands for all.
fn alike_row(view: &View, group: &Value, has_drains: bool) -> Markup {
    let (words, alike) = (view.words, &group["alike"]);
    let state = text(group, "state");
    let status = if state == "running" { "processing" } else { "queued" };
    let list = format!("/generations?status={status}");
    html! {
        tr id={ "alike-" (text(alike, "cause")) } {
            td { (view.state(state)) }
            th scope="row" { a.group href=(list) { (view.language.words().generations) " (" (count(number(alike, "operations"))) ")" } }
            td.number data-label=(words.depth) { (count(number(alike, "operations"))) }
            td.number data-label=(words.age) { @if let Some(at) = time_in(&group["head"], "created_at") { (view.ago(at)) } }
            (why_cell(text(&group["why"], "because")))
            @if has_drains { td {} }
            td.act { a.button href=(list) { (words.show) } }
        }
    }
}

/// When a group is expected to be empty. Behind a head that failed, this is not sooner: the next
/// attempt may fail too. A head that was throttled waits for a time that is known.
fn drains(view: &View, group: &Value, at: Time) -> Markup {
    let fault = &group["head"]["fault"];
    let has_failed = fault.is_object() && text(fault, "class") != "rate_limited";
    let words = view.words;
    view.until(at, if has_failed { words.at_earliest_in } else { words.in_about })
}

/// What can be done about a group in its state.
pub(super) fn main_button(view: &View, group: &Value) -> Markup {
    let name = text(group, "group");
    html! {
        @match text(group, "state") {
            "paused" => (button(view, Action::Resume, name)),
            // What is unknown has to be decided first.
            "held" if group["held"]["unknown"] == true => (decide_button(view, group)),
            "held" => (button(view, Action::Resume, name)),
            _ => (button(view, Action::Pause, name)),
        }
    }
}

/// Leads to the unknown outcome that holds a group.
fn decide_button(view: &View, group: &Value) -> Markup {
    html! {
        @if let Some(id) = group["head"]["id"].as_str() {
            a.button href={ "/operations/" (id) } aria-label={ (view.words.decide) " " (id) } { (view.words.decide) }
        }
    }
}

pub(crate) async fn show(
    State(api): State<LocalApi>,
    Path(name): Path<String>,
    headers: HeaderMap,
    mut query: Query,
) -> Response {
    let view = View::new(&headers, &api);
    match read(&api, &name).await {
        Ok((group, last)) => {
            let content = html! { (notice(&api, &view, &mut query)) (content(&view, &group, &last)) };
            view.live_page(&name, &content)
        }
        Err(error) => error_page(&error),
    }
}

/// A group and its last operations. One that has nothing to do is idle.
async fn read(api: &LocalApi, name: &str) -> Result<(Value, Value)> {
    let group = match api.get(&format!("/v1/groups/{}", escape(name))).await {
        Err(error) if error.code == ErrorCode::NoGroup => {
            json!({ "group": name, "state": "idle", "depth": 0 })
        }
        found => found?,
    };
    let last = api.get(&format!("/v1/operations?group={}&limit={LAST}", escape(name))).await?;
    Ok((group, last))
}

fn content(view: &View, group: &Value, last: &Value) -> Markup {
    let (words, name) = (view.words, text(group, "group"));
    let is_idle = text(group, "state") == "idle";
    let has_failed = items(last, "operations").iter().any(|one| text(one, "state") == "failed");
    let is_unknown = is_idle && items(last, "operations").is_empty();
    html! {
        section #group data-live {
            h1 { (view.state(text(group, "state"))) " " (name) }
            // Before what changes its height: they stay under the pointer.
            p.buttons {
                @if !is_unknown { (main_button(view, group)) }
                @if text(group, "state") == "paused" && group["held"]["unknown"] == true { (decide_button(view, group)) }
                @if has_failed { (button(view, Action::RerunFailed, name)) }
                a.button href={ "/operations?group=" (escape(name)) } { (words.operations) }
            }
            @if let Some(why) = group["why"]["because"].as_str() { p.sentence { (why) } }
            @if let Some(id) = group["held"]["operation"].as_str() { p { (words.operation) " " (operation_link(id)) } }
            @if is_unknown { p.sentence { (words.no_such_group) } }
            @else if is_idle { p.sentence { (words.idle_group) } }
            @if let Some(at) = time_in(&group["paused"], "since") {
                p { (words.paused_by) " " b { (text(&group["paused"], "by")) } ", " (Timestamp(at)) @if !text(&group["paused"], "reason").is_empty() { ": " (text(&group["paused"], "reason")) } }
            }
            p { (words.depth) ": " (count(number(group, "depth"))) " · " a href={ "/v1/groups/" (escape(name)) } { (words.as_json) } }
        }
        // Empty ones too: on an open page they are filled, and emptied.
        section #line data-live="steady" {
            @if !items(group, "line").is_empty() { h2 { (words.head_of_queue) } (operation_table(view, items(group, "line"))) }
        }
        section #last data-live="steady" {
            @if !items(last, "operations").is_empty() { h2 { (words.last_operations) } (operation_table(view, items(last, "operations"))) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::words::Language;
    use super::*;

    /// The list does not know when a group is empty, and has no column that says so.
    #[test]
    fn only_the_overview_says_when_a_group_is_empty() {
        let view = View::at(Language::English, Time::ZERO);
        let groups = [json!({ "group": "g", "state": "waiting", "depth": 1 })];
        assert!(table(&view, &groups).into_string().contains(">Will be empty</th>"));
        assert!(!table_with(&view, &groups, false).into_string().contains(">Will be empty</th>"));
    }

    /// OPS-24: generations that wait for the same are one row, with their number and their list.
    #[test]
    fn ops_24_generations_that_wait_for_the_same_are_one_row() {
        let row = |state: &str| {
            let alike = json!({ "cause": "alternatives-3", "groups": 1_200, "operations": 1_201 });
            let why = json!({ "because": "Waiting for one of its alternatives." });
            let group =
                json!({ "group": "generation:x", "state": state, "depth": 1, "alike": alike, "why": why });
            table(&View::at(Language::English, Time::ZERO), &[group]).into_string()
        };
        let html = row("waiting");
        for part in
            ["id=\"alike-alternatives-3\"", "Generations (1,201)", ">1,201<", "one of its alternatives"]
        {
            assert!(html.contains(part), "{part}: {html}");
        }
        assert!(html.contains("/generations?status=queued") && !html.contains("generation:x"), "{html}");
        assert!(row("running").contains("/generations?status=processing"));
    }

    #[test]
    fn behind_a_failing_head_the_time_is_the_earliest() {
        let shown = |language, at: &str, fault: Value| {
            let group = json!({ "group": "g", "drains_at": at, "head": { "fault": fault } });
            table(&View::at(language, Time::ZERO), &[group]).into_string()
        };
        let (soon, later) = ("1970-01-01T00:00:00.400Z", "1970-01-01T00:00:18Z");
        let failed = || json!({ "class": "transient", "message": "No." });
        let throttled = json!({ "class": "rate_limited", "message": "Wait." });
        let table = [
            (Language::English, later, Value::Null, ">in about 18 s<"),
            (Language::English, later, throttled, ">in about 18 s<"),
            (Language::English, later, failed(), ">at the earliest in 18 s<"),
            (Language::Russian, later, failed(), ">не раньше чем через 18 с<"),
            (Language::English, soon, Value::Null, ">now<"),
        ];
        for (language, at, fault, expected) in table {
            let html = shown(language, at, fault);
            assert!(html.contains(expected), "{expected}: {html}");
        }
    }
}
