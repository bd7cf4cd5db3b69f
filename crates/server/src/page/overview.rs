//! The overview: is anything wrong, what needs a decision, what waits for what, which limits run
//! out, what happened in the last hour. The same functions render the whole page and its live
//! regions, from any node.

use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::{IntoResponse, Response};
use maud::{Markup, PreEscaped, html};
use serde_json::Value;
use tidegate_core::State as OperationState;

use super::deployments::{DeploymentRow, list_recent, panel};
use super::needs::{NeedsData, not_known, read_failures, read_providers, read_stopped, section as needs};
use super::parts::count;
use super::view::{View, escape, items, number};
use super::{Frame, charts, framed, groups, limits, nodes, operations, request_query, without_controls};
use crate::api::local::{LocalApi, answered_in_time};
use crate::dismissals::FAILURE_LOOKBACK;
use crate::edge::query::Query;
use crate::error::Result;

/// The last operations that are shown.
const ROWS: usize = 25;
/// The cards of one kind of decision.
const CARDS: usize = 25;
/// The limits that are shown; their own page has the rest.
const LIMITS_SHOWN: usize = 10;

/// Everything on the page, read together. What cannot be read says so in its place.
struct OverviewData {
    summary: Result<Value>,
    needs: NeedsData,
    limits: Result<Value>,
    operations: Result<Value>,
    cluster: Result<Value>,
    deployments: Vec<DeploymentRow>,
    /// The state that the operations are filtered by.
    only: Option<String>,
}

pub(crate) async fn show(State(api): State<LocalApi>, headers: HeaderMap, uri: Uri) -> Response {
    let view = View::new(&headers, &api);
    let content = content(&view, &read(&api, &view, filtered_state(&uri)).await);
    let frame = Frame { title: view.words.overview, language: view.language, regions: Some("/page/live") };
    framed(&frame, &content).into_response()
}

pub(crate) async fn regions(State(api): State<LocalApi>, headers: HeaderMap, uri: Uri) -> Response {
    let (view, only) = (View::new(&headers, &api), filtered_state(&uri));
    let key = (view.language, only.clone());
    let render = async {
        let content = content(&view, &read(&api, &view, only).await);
        PreEscaped(without_controls(&content).0.into_owned())
    };
    Box::pin(api.server.page.live_regions.get(key, render)).await.into_response()
}

/// The state that the operations are filtered by.
fn filtered_state(uri: &Uri) -> Option<String> {
    Query::parse(request_query(uri)).take("state").filter(|word| OperationState::parse(word).is_some())
}

async fn read(api: &LocalApi, view: &View, only: Option<String>) -> OverviewData {
    let state = only.as_deref().map_or_else(String::new, |only| format!("&state={}", escape(only)));
    let targets = [
        format!("/v1/operations?state=unknown&limit={CARDS}"),
        format!("/v1/operations?limit={ROWS}{state}"),
    ];
    let [unknown, operations] = &targets;
    let models = api.server.generations.as_ref().map(|service| service.dispatch.models()).unwrap_or_default();
    let (summary, unknown, stopped, (failed, dismissed), providers, limits, operations, cluster, deployments) = tokio::join!(
        api.get("/v1/summary"),
        api.get(unknown),
        read_stopped(api),
        read_failures(api, view.now.before(FAILURE_LOOKBACK)),
        read_providers(api, &models),
        api.get(limits::WITH_HISTORY),
        api.get(operations),
        api.get("/v1/cluster"),
        answered_in_time(list_recent(&api.server)),
    );
    let stopped_count = summary.as_ref().map_or(0, |summary| number(&summary["counts"], "stopped"));
    let needs = NeedsData { unknown, stopped, failed, dismissed, stopped_count, models, providers };
    let deployments = deployments.flatten().unwrap_or_default();
    OverviewData { summary, needs, limits, operations, cluster, deployments, only }
}

fn content(view: &View, data: &OverviewData) -> Markup {
    let words = view.words;
    html! {
        h1.hidden { (words.overview) }
        section #counts data-live aria-label=(words.counts) { (part(view, &data.summary, counts)) }
        div.beside {
            (needs(view, &data.needs))
            div {
                section #hour data-live { (part(view, &data.summary, charts::strip)) }
                section #limits data-live {
                    h2 { (words.limits_nearest) }
                    (part(view, &data.limits, |view, page| limits::nearest_end(view, items(page, "limits"), LIMITS_SHOWN)))
                    p { a href="/limits" { (words.change_limits) } }
                }
                section #groups data-live="steady" data-slots=(words.queue_is_empty) { h2 { (words.groups_by_harm) } (part(view, &data.summary, ranked_groups)) }
                section #deployments data-live { (panel(view, &data.deployments)) }
                section #operations data-live="steady" { (last_operations(view, data)) }
                (part(view, &data.cluster, nodes::section))
            }
        }
    }
}

/// Renders a part, or says why it cannot be read.
fn part(view: &View, part: &Result<Value>, render: impl FnOnce(&View, &Value) -> Markup) -> Markup {
    match part {
        Ok(value) => render(view, value),
        Err(problem) => not_known(view, problem),
    }
}

fn counts(view: &View, summary: &Value) -> Markup {
    const NOW: [&str; 4] = ["queued", "waiting", "running", "unknown"];
    const ENDED: [&str; 3] = ["failed", "succeeded", "canceled"];
    let words = view.words;
    let tile = |word: &str, since: &str, about: Option<&str>| {
        html! {
            li {
                a href={ "/operations?state=" (word) } title=[about] {
                    b { (count(number(&summary["counts"], word))) } " " (view.state(word)) " " span.quiet { (since) }
                }
            }
        }
    };
    html! {
        ul.tiles {
            @for word in NOW { (tile(word, words.counts_now, None)) }
            @for word in ENDED { (tile(word, words.counts_in_total, Some(words.counts_in_total_about))) }
        }
    }
}

fn ranked_groups(view: &View, summary: &Value) -> Markup {
    let (shown, all) = (items(summary, "groups"), number(&summary["counts"], "groups"));
    html! {
        @if shown.is_empty() { p.quiet { (view.words.no_groups) } }
        @else { (groups::table(view, shown)) }
        // The script counts here what it keeps out of the table; the link loads the page anew.
        p.newcomers hidden { a href="" { (view.words.newcomers) } }
        @if all > shown.len() as u64 { p { a href="/groups" { (view.words.show_all) " (" (count(all)) ")" } } }
    }
}

fn last_operations(view: &View, data: &OverviewData) -> Markup {
    let words = view.words;
    let list = |view: &View, page: &Value| {
        let found = items(page, "operations");
        html! {
            @if found.is_empty() { p.quiet { (words.no_operations) " " code { "tidegate op submit" } } }
            @else { (operations::table(view, found)) }
        }
    };
    html! {
        h2 { (words.last_operations) @if let Some(only) = &data.only { " · " (words.state(only)) } }
        @if data.only.is_some() { p { a href="/#operations" { (words.show_all) } } }
        (part(view, &data.operations, list))
        p { a href="/operations" { (words.search_operations) } }
    }
}
