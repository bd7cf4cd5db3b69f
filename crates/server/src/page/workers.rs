//! Work by kind: what waits for a worker, what workers hold, what awaits its completion elsewhere,
//! and when a remote worker last asked.

use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;

use super::error_page;
use super::parts::count;
use super::view::{View, escape, items, number, text, time_in};
use crate::api::local::LocalApi;

/// For how long no worker has asked for a kind when it is worth a look.
const QUIET: Duration = Duration::from_secs(60);

pub(crate) async fn show(State(api): State<LocalApi>, headers: HeaderMap) -> Response {
    let view = View::new(&headers, &api);
    match api.get("/v1/summary").await {
        Ok(summary) => view.live_page(view.words.workers, &content(&view, items(&summary, "kinds"))),
        Err(error) => error_page(&error),
    }
}

fn content(view: &View, kinds: &[Value]) -> Markup {
    let words = view.words;
    html! {
        h1 { (words.workers) }
        section #workers data-live {
            @if kinds.is_empty() { p.quiet { (words.no_work) } } @else {
                table.cards {
                    caption.hidden { (words.workers) }
                    thead {
                        tr {
                            th.c-name scope="col" { (words.kind) }
                            th.c-state scope="col" { (words.executed_by) }
                            th.number scope="col" { (words.for_a_worker) }
                            th.number scope="col" { (words.state("running")) }
                            th.number scope="col" { (words.awaiting) }
                            th scope="col" { (words.last_asked) }
                        }
                    }
                    tbody { @for kind in kinds { (row(view, kind)) } }
                }
            }
        }
    }
}

fn row(view: &View, kind: &Value) -> Markup {
    let (words, name) = (view.words, text(kind, "kind"));
    let is_remote = kind["remote"] == true;
    html! {
        tr {
            th scope="row" { a href={ "/operations?kind=" (escape(name)) } { (name) } }
            td data-label=(words.executed_by) { @if is_remote { (words.remote_workers) } @else { (words.this_server) } }
            td.number data-label=(words.for_a_worker) { (count(number(kind, "ready"))) }
            td.number data-label=(words.state("running")) { a href={ "/operations?state=running&kind=" (escape(name)) } { (count(number(kind, "running"))) } }
            td.number data-label=(words.awaiting) { (count(number(kind, "awaiting"))) }
            td.why data-label=[is_remote.then_some(words.last_asked)] {
                @if is_remote {
                    @match time_in(kind, "asked_at") {
                        Some(at) => { (view.ago(at)) " " (words.ago) },
                        None => (words.never_asked),
                    }
                    @if lacks_workers(view, kind) { " · " b { (words.no_worker_asks) } }
                }
            }
        }
    }
}

/// Whether operations of a remote kind wait, and no worker has asked for them lately.
fn lacks_workers(view: &View, kind: &Value) -> bool {
    let is_quiet = time_in(kind, "asked_at").is_none_or(|at| view.now.since(at) > QUIET);
    number(kind, "ready") > 0 && is_quiet
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tidegate_core::Time;

    use super::*;
    use crate::page::words::Language;

    /// OPS-24: a kind that no worker asks for is seen.
    #[test]
    fn ops_24_a_kind_without_workers_is_seen() {
        let view = View::at(Language::English, Time::from_millis(100_000));
        let kind = |name: &str, remote: bool, ready: u64, asked_at: Option<&str>| {
            let counts = json!({ "ready": ready, "running": 1, "awaiting": 2 });
            let mut kind = json!({ "kind": name, "remote": remote, "asked_at": asked_at });
            kind.as_object_mut().unwrap().extend(counts.as_object().unwrap().clone());
            kind
        };
        let kinds = [
            kind("http", false, 9, None),
            kind("resize", true, 3, Some("1970-01-01T00:00:10.000Z")),
            kind("render", true, 3, Some("1970-01-01T00:01:39.000Z")),
            kind("scale", true, 1, None),
            kind("idle", true, 0, None),
        ];
        let html = content(&view, &kinds).into_string();
        assert_eq!(html.matches("no worker asks for it").count(), 2, "{html}");
        for label in ["Executed by", "Wait for a worker", "Last asked by a worker"] {
            assert!(html.contains(&format!("data-label=\"{label}\"")), "{label}: {html}");
        }
        assert!(html.contains("this server") && html.contains("1 min</time> ago"), "{html}");
    }
}
