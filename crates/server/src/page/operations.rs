//! The list of operations: filters in the URL, so that every list is a link, and a search in the
//! texts of errors.

mod age;

use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;
use tidegate_core::Time;

use super::actions::{button, notice};
use super::bulk;
use super::error_page;
use super::operation::{actions_for, call_line};
use super::parts::{group, operation_link, why_cell};
use super::view::{View, escape, filled_in, number, text, time_in};
use crate::api::local::LocalApi;
use crate::edge::query::Query;
use crate::error::{Error, Result};
use crate::page::request_query;
use age::LeastAge;

/// The operations of a page.
const ROWS: usize = 50;
/// How many pages of the API are searched for one page here.
const PAGES_MAX: usize = 20;

/// The states that can be filtered by.
pub(super) const STATES: [&str; 7] =
    ["queued", "waiting", "running", "unknown", "succeeded", "failed", "canceled"];
/// The filters that are texts, by the name of the API's parameter.
pub(super) const FILTERS: [&str; 4] = ["group", "upstream", "kind", "dedupe_key"];

/// The filters of links, by the name of the API's parameter.
const CREATED_BEFORE: &str = "created_before";
pub(super) const LINKED: [&str; 6] =
    [CREATED_BEFORE, "finished_after", "finished_before", "fault_class", "fault_message", "id_end"];
/// The filters that name few operations.
const NAMES_FEW: [&str; 2] = ["dedupe_key", "id_end"];

/// What is asked for.
#[derive(Debug, Default)]
struct ListRequest {
    state: Option<String>,
    filters: [Option<String>; FILTERS.len()],
    /// A text that the last fault has to contain.
    error: Option<String>,
    /// How old they are at least; then the filter of links by that time is set.
    age: Option<LeastAge>,
    /// The filters that links have and the form shows only if they are given.
    linked: [Option<String>; LINKED.len()],
    cursor: Option<String>,
}

/// What was found.
#[derive(Default)]
struct FoundOperations {
    operations: Vec<Value>,
    next: Option<String>,
}

impl ListRequest {
    fn read(mut query: Query, now: Time) -> Result<Self> {
        let mut request = Self {
            state: query.take("state"),
            filters: FILTERS.map(|name| query.take(name)),
            error: query.take("error"),
            age: query.read("age", LeastAge::parse),
            linked: LINKED.map(|name| query.take(name)),
            cursor: query.take("cursor"),
        };
        query.finish()?;
        if let Some(age) = request.age {
            let created_before = LINKED.iter().position(|name| *name == CREATED_BEFORE);
            created_before
                .into_iter()
                .for_each(|place| request.linked[place] = Some(age.accepted_before(now)));
        }
        Ok(request)
    }

    /// The URL of the same list from a cursor, below a path.
    fn target(&self, path: &str, cursor: Option<&str>) -> String {
        let filters = FILTERS.iter().zip(&self.filters).map(|(name, value)| (*name, value.as_deref()));
        let linked = LINKED.iter().zip(&self.linked).map(|(name, value)| (*name, value.as_deref()));
        let others = [("state", self.state.as_deref()), ("error", self.error.as_deref()), ("cursor", cursor)];
        let pairs = filters.chain(linked).chain(others);
        let pairs = pairs.filter_map(|(name, value)| Some(format!("&{name}={}", escape(value?))));
        format!("{path}?limit={ROWS}{}", pairs.collect::<String>())
    }

    /// The URL of the next page here.
    fn page_href(&self, cursor: &str) -> String {
        self.target("/operations", Some(cursor)).replacen(&format!("limit={ROWS}&"), "", 1)
    }

    /// Whether anything is left out.
    fn is_filtered(&self) -> bool {
        self.state.is_some()
            || self.error.is_some()
            || self.filters.iter().chain(&self.linked).any(Option::is_some)
    }

    /// The other parts of the filter of an action about all of this list. A key, or the end of an
    /// id, names few operations, and needs no such action.
    fn bulk_parts(&self) -> Option<String> {
        let filters = FILTERS.into_iter().zip(&self.filters).chain(LINKED.into_iter().zip(&self.linked));
        let given =
            filters.chain([("error", &self.error)]).filter_map(|(name, value)| Some((name, value.as_ref()?)));
        let given: Vec<_> = given.collect();
        let names_few = given.iter().any(|(name, _)| NAMES_FEW.contains(name));
        (!names_few)
            .then(|| given.into_iter().map(|(name, value)| format!("&{name}={}", escape(value))).collect())
    }
}

pub(crate) async fn list(State(api): State<LocalApi>, headers: HeaderMap, uri: Uri) -> Response {
    let view = View::new(&headers, &api);
    let read = async {
        let mut query = Query::parse(&filled_in(request_query(&uri)));
        let done = notice(&api, &view, &mut query);
        let request = ListRequest::read(query, view.now)?;
        let found = find(&api, &request).await?;
        Ok::<_, Error>((done, request, found))
    };
    match read.await {
        Ok((done, request, found)) => {
            let content = html! { (done) (content(&view, &request, &found, !done.0.is_empty())) };
            view.live_page(view.words.operations, &content)
        }
        Err(error) => error_page(&error),
    }
}

/// Reads pages until one page here is full. A page of the API can be empty although more follow.
async fn find(api: &LocalApi, request: &ListRequest) -> Result<FoundOperations> {
    let mut found = FoundOperations { next: request.cursor.clone(), ..FoundOperations::default() };
    for _ in 0..PAGES_MAX {
        let mut page = api.get(&request.target("/v1/operations", found.next.as_deref())).await?;
        found.next = page["next_cursor"].as_str().map(str::to_owned);
        let operations = page["operations"].as_array_mut().map(std::mem::take).unwrap_or_default();
        found.operations.extend(operations);
        if found.next.is_none() || found.operations.len() >= ROWS {
            break;
        }
    }
    Ok(found)
}

/// The list; after an action, what it was about may not be in it any more.
fn content(view: &View, request: &ListRequest, found: &FoundOperations, is_done: bool) -> Markup {
    let words = view.words;
    let state = request.state.as_deref().unwrap_or_default();
    let others = request.bulk_parts().filter(|_| !found.operations.is_empty());
    html! {
        h1 { (words.operations) }
        (filter_form(view, request))
        section #found data-live="steady" {
            @if let Some(others) = others { (bulk::buttons(view, state, &others)) }
            @if found.operations.is_empty() {
                p.quiet {
                    @if found.next.is_some() { (words.nothing_matches_yet) }
                    @else if is_done { (words.nothing_left) }
                    @else if request.is_filtered() { (words.nothing_matches) @if request.error.is_some() { " " (words.search_by_field) } }
                    @else { (words.no_operations) " " code { "tidegate op submit" } }
                }
            } @else {
                (table(view, &found.operations))
            }
        }
        @if let Some(next) = &found.next { p { a href=(request.page_href(next)) { (words.older) } } }
    }
}

fn filter_form(view: &View, request: &ListRequest) -> Markup {
    let words = view.words;
    html! {
        form.filter method="get" action="/operations" role="search" aria-label=(words.search_operations) {
            label {
                (words.state_label)
                select name="state" {
                    option value="" { (words.any) }
                    @for word in STATES {
                        option value=(word) selected[request.state.as_deref() == Some(word)] { (words.state(word)) }
                    }
                }
            }
            @for ((name, label), value) in FILTERS.iter().zip(words.filters).zip(&request.filters) {
                label { (label) input type="search" name=(name) value=[value.as_deref()]; }
            }
            label { (words.error_text) input type="search" name="error" value=[request.error.as_deref()]; }
            (age::field(view, request.age))
            @for ((name, label), value) in LINKED.iter().zip(words.linked_filters).zip(&request.linked) {
                @if let Some(value) = value.as_ref().filter(|_| *name != CREATED_BEFORE || request.age.is_none()) { label { (label) input type="search" name=(name) value=(value); } }
            }
            button type="submit" { (words.filter) }
            @if request.is_filtered() { a.button href="/operations" { (words.show_all) } }
        }
    }
}

/// A table of operations with what can be done about each.
pub(super) fn table(view: &View, operations: &[Value]) -> Markup {
    let words = view.words;
    html! {
        table.cards.rows {
            caption.hidden { (words.operations) }
            thead {
                tr {
                    th.c-state scope="col" { (words.state_label) }
                    th.c-id scope="col" { (words.operation) }
                    th.c-name scope="col" { (words.group) }
                    th.c-call scope="col" { (words.request) }
                    th.number scope="col" { (words.attempt) }
                    th.number scope="col" { (words.age) }
                    th scope="col" { (words.last_fault) }
                    th.c-act scope="col" { span.hidden { (words.actions) } }
                }
            }
            tbody { @for operation in operations { (row(view, operation)) } }
        }
    }
}

fn row(view: &View, operation: &Value) -> Markup {
    let (words, id, state) = (view.words, text(operation, "id"), text(operation, "state"));
    // What needs a look first is one click away; the rest is on the page of the operation.
    let action = actions_for(state).first().filter(|_| state != "unknown");
    html! {
        tr id=(id) {
            td { (view.state(state)) }
            th scope="row" { (operation_link(id)) }
            td { (group(text(operation, "group"))) }
            td { (call_line(operation)) }
            td.number data-label=(words.attempt) { (number(operation, "attempt")) }
            td.number data-label=(words.age) { @if let Some(at) = time_in(operation, "created_at") { (view.ago(at)) } }
            (fault_cell(view, operation))
            td.act {
                @match action {
                    Some(action) => (button(view, *action, id)),
                    None if state == "unknown" => a.button href={ "/operations/" (id) } { (words.decide) },
                    None => "",
                }
            }
        }
    }
}

/// Why it failed last, and if that was the end, when.
fn fault_cell(view: &View, operation: &Value) -> Markup {
    let message = text(&operation["fault"], "message");
    match time_in(operation, "finished_at").filter(|_| !message.is_empty()) {
        Some(at) => {
            html! { td.why title=(message) { span { (view.ago(at)) " " (view.words.ago) ": " (message) } } }
        }
        None => why_cell(message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::words::Language;

    fn read(query: &str) -> Result<ListRequest> {
        ListRequest::read(Query::parse(&filled_in(query)), Time::from_millis(7_200_000))
    }

    #[test]
    fn every_list_is_a_link() {
        let request = read("state=failed&group=a%26b&upstream=&error=No+Entry&kind=").unwrap();
        assert_eq!(
            request.target("/v1/operations", None),
            "/v1/operations?limit=50&group=a%26b&state=failed&error=No%20Entry"
        );
        let href = request.page_href("c=1");
        assert_eq!(href, "/operations?group=a%26b&state=failed&error=No%20Entry&cursor=c%3D1");
        let again = read(href.split_once('?').unwrap().1).unwrap();
        assert_eq!((again.error.as_deref(), again.cursor.as_deref()), (Some("No Entry"), Some("c=1")));
        assert_eq!(read("sate=failed").unwrap_err().field.as_deref(), Some("sate"));
    }

    /// OPS-24: a list of what is older than a time moves with the clock, and the links from it have
    /// the time.
    #[test]
    fn ops_24_a_list_is_filtered_by_age() {
        let request = read("age=1h&state=queued").unwrap();
        let since = "created_before=1970-01-01T01%3A00%3A00.000Z";
        assert_eq!(request.page_href("c"), format!("/operations?{since}&state=queued&cursor=c"));
        let view = View::at(Language::English, Time::from_millis(7_200_000));
        let html = filter_form(&view, &request).into_string();
        assert!(html.contains("<option value=\"1h\" selected>1 h</option>"), "{html}");
        assert!(!html.contains("name=\"created_before\""), "it is said once: {html}");
        let html = filter_form(&view, &read(since).unwrap()).into_string();
        assert!(html.contains("name=\"created_before\""), "{html}");
        assert_eq!(read("age=2h").unwrap_err().field.as_deref(), Some("age"));
    }
}
