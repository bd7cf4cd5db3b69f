//! The nodes of the server and their partitions: on a page of their own, and on the overview of a
//! server that has several.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::{Value, json};

use super::error_page;
use super::view::{View, items, text};
use crate::api::local::LocalApi;

pub(crate) async fn list(State(api): State<LocalApi>, headers: HeaderMap) -> Response {
    let view = View::new(&headers, &api);
    match api.get("/v1/cluster").await {
        Ok(cluster) => {
            let content = html! {
                h1 { (view.words.nodes) }
                section #nodes data-live { (table(&view, &cluster, &listed(&cluster))) }
            };
            view.live_page(view.words.nodes, &content)
        }
        Err(error) => error_page(&error),
    }
}

/// The nodes; the one that there is, of a server that shares its store with no other.
fn listed(cluster: &Value) -> Vec<Value> {
    let nodes = items(cluster, "nodes");
    if !nodes.is_empty() {
        return nodes.to_vec();
    }
    let partitions: Vec<&Value> = items(cluster, "partitions").iter().map(|one| &one["partition"]).collect();
    vec![json!({ "name": text(cluster, "node"), "partitions": partitions })]
}

/// The section of the overview, if there are several.
pub(super) fn section(view: &View, cluster: &Value) -> Markup {
    let nodes = items(cluster, "nodes");
    html! {
        @if !nodes.is_empty() && nodes[0]["address"].is_string() {
            section #nodes data-live { h2 { (view.words.nodes) } (table(view, cluster, nodes)) }
        }
    }
}

fn table(view: &View, cluster: &Value, nodes: &[Value]) -> Markup {
    let words = view.words;
    html! {
        p.quiet { (words.this_node) " " b { (text(cluster, "node")) } }
        table.cards {
            caption.hidden { (words.nodes) }
            thead { tr { th scope="col" { (words.node) } th scope="col" { (words.address) } th scope="col" { (words.partitions) } } }
            tbody { @for node in nodes { (row(view, node)) } }
        }
    }
}

fn row(view: &View, node: &Value) -> Markup {
    let words = view.words;
    let partitions: Vec<String> =
        items(node, "partitions").iter().map(|number| format!("#{number}")).collect();
    let address = text(node, "address");
    html! {
        tr {
            th scope="row" { (text(node, "name")) }
            td data-label=[(!address.is_empty()).then_some(words.address)] { @if !address.is_empty() { a href={ "http://" (address) "/" } { (address) } } }
            td.why data-label=(words.partitions) { (partitions.join(" ")) }
        }
    }
}

#[cfg(test)]
mod tests {
    use tidegate_core::Time;

    use super::super::words::Language;
    use super::*;

    #[test]
    fn a_server_without_others_is_one_node() {
        let view = View::at(Language::English, Time::ZERO);
        let alone = json!({ "node": "n", "nodes": [], "partitions": [{ "partition": 0, "node": "n" }] });
        assert!(section(&view, &alone).into_string().is_empty());
        let html = table(&view, &alone, &listed(&alone)).into_string();
        assert!(
            html.contains("<th scope=\"row\">n</th>")
                && html.contains("<td class=\"why\" data-label=\"Partitions\">#0</td>"),
            "{html}"
        );
        let two = json!({ "node": "a", "nodes": [
            { "name": "a", "address": "10.0.0.1:7400", "partitions": [0, 1] },
            { "name": "b", "address": "10.0.0.2:7400", "partitions": [2] },
        ] });
        let html = section(&view, &two).into_string();
        assert!(html.contains("href=\"http://10.0.0.2:7400/\"") && html.contains("#0 #1"), "{html}");
        assert_eq!(listed(&two).len(), 2);
    }
}
