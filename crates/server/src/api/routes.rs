//! The table of all routes, one record each. The routers of a single node and of a node of a
//! cluster are built from it, the guard enforces it, and a test compares the description of the API
//! with it.

use crate::config::TokenScope::{Operate, Read, Work, Write};
use crate::edge::content::BodyBound::{Batch, Operation, Proxied, Small};
use crate::edge::login;
use crate::page;
use crate::routing::{
    RoutingRule, events as peer_events, flights as peer_flights, handshake, node_routes, peer_call,
    work as peer_work,
};

use super::route::Access::{Nodes, Open, Webhook};
use super::route::Idempotence::{Always, ByRequest, Never};
use super::route::QueryPolicy::{AnyQuery, NoQuery};
use super::route::{Route, RouteSpec, delete, get, page as html, patch, post, proxied, put};
use super::{
    audit, buckets, bulk_commands, cluster, commands, complete, costs, deployments, entities, events,
    failures, flights, generations, group_rerun, groups, health, keys, leases, limits, openapi, operations,
    outbox, proxy, submit, summary, work,
};

/// The paths of the paced proxy: everything below an upstream's name, and the name alone.
pub(crate) const PROXY: [&str; 3] = ["/proxy/{upstream}/{*path}", "/proxy/{upstream}/", "/proxy/{upstream}"];

/// All routes.
pub(crate) fn routes() -> Vec<Route> {
    let mut routes = operation_routes();
    routes.extend(work_routes());
    routes.extend(shared_state_routes());
    routes.extend(entity_routes());
    routes.extend(generation_routes());
    routes.extend(key_routes());
    routes.extend(server_routes());
    routes.extend(page_routes());
    routes
}

/// Operations, and the groups and limits that they wait for.
fn operation_routes() -> Vec<Route> {
    use RoutingRule as Rule;
    let mut routes = vec![
        get("/v1/operations", Read, AnyQuery).partition(Rule::Operations, operations::list),
        post("/v1/operations", Write, AnyQuery, Operation, ByRequest)
            .partition(Rule::Submission, submit::submit_one),
        post("/v1/operations/batch", Write, NoQuery, Batch, ByRequest)
            .partition(Rule::Batch, submit::submit_batch),
        post("/v1/operations/cancel", Operate, NoQuery, Small, Never)
            .audited_as("cancel_all")
            .partition(Rule::Bulk, bulk_commands::cancel),
        post("/v1/operations/rerun", Operate, NoQuery, Small, Never)
            .audited_as("rerun_all")
            .partition(Rule::Bulk, bulk_commands::rerun),
        post("/v1/operations/resolve", Operate, NoQuery, Small, Never)
            .audited_as("resolve_all")
            .partition(Rule::Bulk, bulk_commands::resolve),
        get("/v1/operations/{id}", Read, AnyQuery).partition(Rule::Operation, operations::show),
        get("/v1/operations/{id}/why", Read, AnyQuery).partition(Rule::Operation, operations::why),
        post("/v1/operations/{id}/cancel", Operate, NoQuery, Small, Never)
            .audited_as("cancel")
            .partition(Rule::Operation, commands::cancel),
        post("/v1/operations/{id}/rerun", Operate, NoQuery, Small, Never)
            .audited_as("rerun")
            .partition(Rule::Operation, commands::rerun),
        post("/v1/operations/{id}/resolve", Operate, NoQuery, Small, Never)
            .audited_as("resolve")
            .partition(Rule::Operation, commands::resolve),
        post("/v1/operations/{id}/complete", Operate, AnyQuery, Operation, Always)
            .or_completion_token()
            .partition(Rule::Completion, complete::complete),
        post("/v1/deployments", Write, NoQuery, Operation, Never)
            .partition(Rule::Deployment, deployments::begin),
        get("/v1/groups", Read, AnyQuery).partition(Rule::Groups, groups::list),
        get("/v1/groups/{group}", Read, AnyQuery).partition(Rule::Group, groups::show),
        post("/v1/groups/{group}/pause", Operate, NoQuery, Small, Always)
            .audited_as("pause")
            .partition(Rule::Pause, groups::pause),
        post("/v1/groups/{group}/resume", Operate, NoQuery, Small, Always)
            .audited_as("resume")
            .partition(Rule::Group, groups::resume),
        post("/v1/groups/{group}/rerun", Operate, NoQuery, Small, Never)
            .audited_as("rerun_failed")
            .partition(Rule::GroupRerun, group_rerun::rerun_failed),
        get("/v1/summary", Read, NoQuery).partition(Rule::Summary, summary::show),
        get("/v1/limits", Read, AnyQuery).partition(Rule::Limits, limits::list),
        get("/v1/limits/{*name}", Read, NoQuery).partition(Rule::Limit, limits::show),
        put("/v1/limits/{*name}", Operate, NoQuery, Small)
            .audited_as("set")
            .partition(Rule::Limit, limits::change),
    ];
    routes.extend(
        PROXY.map(|path| RouteSpec { path, ..proxy_spec() }.partition(Rule::Proxy, proxy::proxy_request)),
    );
    routes
}

/// The route of the paced proxy.
pub(crate) fn proxy_spec() -> RouteSpec {
    proxied(PROXY[0], Write, Proxied, ByRequest)
}

/// Remote workers: operations of any partition, taken at any node, and their claims.
fn work_routes() -> Vec<Route> {
    vec![
        post("/v1/work/take", Work, NoQuery, Small, Never).store(work::take),
        post("/v1/work/extend", Work, NoQuery, Batch, Always)
            .partition(RoutingRule::Extensions, work::extend),
        post("/v1/work/settle", Work, NoQuery, Batch, Always)
            .partition(RoutingRule::Settlements, work::settle),
    ]
}

/// What belongs to no partition and is read from the store.
fn shared_state_routes() -> Vec<Route> {
    vec![
        get("/v1/buckets", Read, AnyQuery).store(buckets::list),
        get("/v1/buckets/{*name}", Read, AnyQuery).store(buckets::show),
        delete("/v1/buckets/{*name}", Operate, NoQuery, Never).audited_as("delete").store(buckets::delete),
        post("/v1/buckets/{*name}", Write, NoQuery, Small, Never).store(buckets::post),
        post("/v1/limits/{*name}", Write, NoQuery, Small, Never).store(buckets::post_to_limit),
        get("/v1/leases", Read, AnyQuery).store(leases::list),
        get("/v1/leases/{name}", Read, AnyQuery).store(leases::show),
        post("/v1/leases/{name}/acquire", Write, NoQuery, Small, Never).store(leases::acquire),
        post("/v1/leases/{name}/renew", Write, NoQuery, Small, Always).store(leases::renew),
        post("/v1/leases/{name}/release", Write, NoQuery, Small, Always).store(leases::release),
        post("/v1/failures/dismiss", Operate, NoQuery, Small, Always)
            .audited_as("dismiss")
            .store(failures::dismiss),
        post("/v1/failures/restore", Operate, NoQuery, Small, Always)
            .audited_as("restore")
            .store(failures::restore),
        get("/v1/outbox", Read, AnyQuery).store(outbox::show),
        get("/v1/audit", Read, AnyQuery).store(audit::list),
        get("/v1/costs", Read, AnyQuery).store(costs::show),
        get("/v1/deployments", Read, AnyQuery).store(deployments::list),
        get("/v1/deployments/{id}", Read, NoQuery).store(deployments::show),
        get("/v1/deployments/{id}/events", Read, NoQuery).store(deployments::events),
    ]
}

/// Entities of other modules, on this node's bus.
fn entity_routes() -> Vec<Route> {
    vec![
        get("/v1/entities/{type}/{id}", Read, AnyQuery).store(entities::show),
        delete("/v1/entities/{type}/{id}", Operate, AnyQuery, Always).store(entities::forget),
        post("/v1/entities/events", Operate, NoQuery, Operation, Always).store(entities::publish),
        get("/v1/sources", Read, NoQuery).store(entities::sources),
        put("/v1/sources/{type}", Operate, NoQuery, Small).store(entities::register),
        delete("/v1/sources/{type}", Operate, NoQuery, Always).store(entities::unregister),
        get("/v1/flights", Read, AnyQuery).each_node(flights::list, peer_flights::list),
        get("/schemas/{name}", Open, NoQuery).stateless(entities::schema),
    ]
}

/// Generations, and the providers that make them.
fn generation_routes() -> Vec<Route> {
    use RoutingRule as Rule;
    use generations::{events as stream, ledger, models, providers, webhooks};
    vec![
        post("/api/generations/create", Write, NoQuery, Operation, ByRequest)
            .partition(Rule::Generations, generations::create),
        get("/api/generations", Read, AnyQuery).partition(Rule::Generations, generations::list),
        get("/api/generations/{id}", Read, NoQuery).partition(Rule::Generation, generations::show),
        get("/api/generations/{id}/events", Read, AnyQuery).partition(Rule::Generation, stream::stream),
        get("/api/generations/{id}/why", Read, NoQuery).partition(Rule::Generation, generations::why),
        get("/api/generations/{id}/result/{index}", Read, NoQuery)
            .partition(Rule::Generation, generations::result),
        post("/api/generations/{id}/cancel", Write, NoQuery, Small, Always)
            .partition(Rule::Generation, generations::cancel),
        post("/api/webhooks/{provider}/{token}", Webhook, AnyQuery, Operation, Always)
            .partition(Rule::Webhook, webhooks::receive),
        get("/v1/ledger", Read, AnyQuery).partition(Rule::Generations, ledger::list),
        get("/v1/models", Read, NoQuery).partition(Rule::Generations, models::list),
        get("/v1/providers", Read, NoQuery).partition(Rule::Generations, providers::list),
        patch("/v1/providers/{name}", Operate, NoQuery, Small)
            .audited_as("change")
            .partition(Rule::Generations, providers::change),
    ]
}

/// The operators' routes about idempotency keys.
pub(super) fn key_routes() -> Vec<Route> {
    vec![
        get("/v1/keys", Read, AnyQuery).keys(keys::list),
        get("/v1/keys/{key}", Read, AnyQuery).keys(keys::show),
        post("/v1/keys/{key}/release", Operate, AnyQuery, Small, Never)
            .audited_as("release")
            .keys(keys::release),
        post("/v1/keys/{key}/expire", Operate, AnyQuery, Small, Never)
            .audited_as("expire")
            .keys(keys::expire),
        post("/v1/keys/{key}/complete", Operate, AnyQuery, Small, Never)
            .audited_as("complete")
            .keys(keys::complete),
    ]
}

/// The server and its cluster.
fn server_routes() -> Vec<Route> {
    vec![
        get("/v1/events", Read, AnyQuery).each_node(events::stream, peer_events::stream),
        get("/v1/cluster", Read, NoQuery).each_node(cluster::show_single_node, node_routes::cluster),
        get("/metrics", Read, NoQuery).each_node(health::metrics, node_routes::metrics),
        get("/readyz", Open, NoQuery).each_node(health::ready, node_routes::ready),
        get("/healthz", Open, NoQuery).stateless(health::live),
        html(login::PATH, Open).store(login::show),
        post(login::PATH, Open, NoQuery, Small, Always).store(login::enter),
        post("/logout", Open, NoQuery, Small, Always).stateless(login::leave),
        get("/openapi.json", Open, NoQuery).store(openapi::document),
        get(handshake::PATH, Nodes, AnyQuery).peers(handshake::answer),
        get(peer_flights::PATH, Nodes, AnyQuery).peers(peer_flights::of_this_node),
        get(peer_events::PATH, Nodes, AnyQuery).peers(peer_events::of_this_node),
        post(peer_work::READY_PATH, Nodes, NoQuery, Operation, Never).peers(peer_work::ready),
        post(peer_work::TAKE_PATH, Nodes, NoQuery, Operation, Never).peers(peer_work::take),
        proxied("/internal/{partition}/{*rest}", Nodes, Batch, Never).peers(peer_call::handle_peer_call),
    ]
}

/// The page and what it loads.
fn page_routes() -> Vec<Route> {
    vec![
        html("/", Read).page(page::overview::show),
        get("/page/live", Read, AnyQuery).page(page::overview::regions),
        get("/page/ticks", Read, AnyQuery).each_node(page::live::ticks, page::live::ticks_of_node),
        html("/search", Read).page(page::search::find),
        html("/operations", Read).page(page::operations::list),
        html("/operations/{id}", Read).page(page::operation::show),
        html("/groups", Read).page(page::groups::list),
        html("/groups/{group}", Read).page(page::groups::show),
        html("/limits", Read).page(page::limits::list),
        html("/workers", Read).page(page::workers::show),
        html("/awaiting", Read).stateless(page::shortened::awaiting),
        html("/nodes", Read).page(page::nodes::list),
        html("/audit", Read).page(page::audit::list),
        html("/actions", Read).stateless(page::shortened::actions),
        html("/actions/{action}", Operate).page(page::actions::confirm),
        post("/actions/{action}", Operate, NoQuery, Small, Never).page(page::actions::perform),
        html("/deployments", Read).store(page::deployments::list),
        html("/deployments/{id}", Read).store(page::deployments::show),
        html("/keys", Read).page(page::keys::show),
        html("/flights", Read).page(page::flights::show),
        html("/generations", Read).partition(RoutingRule::Generations, page::generations::list),
        html("/generations/{id}", Read).partition(RoutingRule::Generation, page::generations::detail::show),
        html("/ledger", Read).partition(RoutingRule::Generations, page::ledger::show),
        html("/providers", Read).page(page::providers::show),
        html("/docs", Open).stateless(page::reference::show),
        html("/docs/errors", Open).stateless(page::errors::list),
        html("/docs/errors/{code}", Open).stateless(page::errors::show),
        get("/assets/page.css", Open, AnyQuery).stateless(page::assets::style),
        get("/assets/page.js", Open, AnyQuery).stateless(page::assets::script),
        get("/assets/icon.svg", Open, AnyQuery).stateless(page::assets::icon),
        get("/favicon.ico", Open, AnyQuery).stateless(page::assets::icon),
    ]
}
