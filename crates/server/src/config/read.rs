//! Reads the whole file, section by section.

use std::net::SocketAddr;
use std::time::Duration;

use tidegate_upstream::http::target::BaseUrl;

use super::problem::ConfigProblem;
use super::section::Section;
use super::value::LocatedValue;
use super::{
    Config, Overrides, ParseContext, auth, bus, cluster, exposure_message, failure, generations, hydration,
    idempotency, kind, pacing, server, source, telemetry, token, upstream,
};
use crate::backend::{can_archive, is_archive, is_shared};

const YEAR_S: u64 = 366 * 24 * 3_600;

pub(super) fn read(
    root: &mut Section<'_>,
    reading: &mut ParseContext<'_>,
    over: &Overrides,
) -> Option<Config> {
    let problems = &mut reading.problems;
    let server = server::read(root, problems);
    let mut store = root.section("store", problems);
    let url = store.text("url", problems);
    let archive = store.text("archive", problems);
    let retention = store.integer("retention_s", 1..=10 * YEAR_S, problems);
    let dedupe_window = store.integer("dedupe_window_s", 1..=YEAR_S, problems);
    check_retention(&store, retention, dedupe_window, problems);
    store.finish(problems);
    let cluster = cluster::read(root, reading);
    let idempotency = idempotency::read(root, reading);
    let pacing = pacing::read(root, reading);
    let (hydration, bus_url) = (hydration::read(root, reading), bus::read(root, reading));
    let [upstreams, kinds, tokens, rules] =
        ["upstream", "kind", "token", "on_failure"].map(|key| root.sections(key, &mut reading.problems));
    let is_remote = kind::leaves_generations(&kinds);
    let generations = generations::read(root, server.public_url.as_deref(), is_remote, reading);
    let problems = &mut reading.problems;
    let on_failure = rules.into_iter().filter_map(|section| failure::read(section, problems)).collect();
    let auth = auth::read(root, problems);
    let telemetry = telemetry::read(root, problems);
    let has_file = auth.as_ref().is_some_and(|auth| auth.tokens_file.is_some());
    let open_to_all = tokens.is_empty() && !has_file;
    let listen = server.listen.and_then(|found| read_listen(found, over, open_to_all, problems));
    let store_url = url.and_then(|found| read_store(found, over, problems));
    let archive_url = archive.and_then(|found| read_archive(found, store_url.as_deref(), problems));
    if let (Some(listen), Some(store_url), Some(cluster)) = (listen, &store_url, &cluster)
        && is_shared(store_url)
    {
        cluster::check(root, cluster, listen, problems);
    }
    reject_clashes(&upstreams, &kinds, &tokens, problems);
    let mut beside = upstream::UpstreamExtras::default();
    let upstreams: Vec<_> =
        upstreams.into_iter().filter_map(|section| upstream::read(section, &mut beside, reading)).collect();
    let sources = source::read_all(root, &upstreams, reading);
    let remote_kinds = kinds.into_iter().filter_map(|section| kind::read(section, reading)).collect();
    let tokens = tokens.into_iter().filter_map(|section| token::read(section, reading)).collect();
    Some(Config {
        listen: listen?,
        tls: server.tls,
        node: server.node?.value,
        workers: over.workers.or(usize::try_from(server.workers?).ok())?,
        drain: Duration::from_secs(server.drain_s?),
        connections_max: usize::try_from(server.connections_max?).ok()?,
        read_timeout: Duration::from_secs(server.read_timeout_s?),
        public_url: server.public_url,
        store_url: store_url?,
        archive_url,
        retention: Duration::from_secs(retention?),
        dedupe_window: Duration::from_secs(dedupe_window?),
        on_failure,
        upstreams,
        spread: beside.spread,
        shopify: beside.shopify,
        discord: beside.discord,
        remote_kinds,
        tokens,
        auth: auth?,
        cluster: cluster?,
        idempotency: idempotency?,
        pacing: pacing?,
        hydration: hydration?,
        bus_url: bus_url?,
        sources,
        generations: generations?,
        telemetry: telemetry?,
        file: None,
    })
}

/// Reports a retention that is shorter than the time for which keys are remembered.
fn check_retention(
    store: &Section<'_>,
    retention: Option<u64>,
    dedupe_window: Option<u64>,
    problems: &mut Vec<ConfigProblem>,
) {
    if let (Some(retention), Some(window)) = (retention, dedupe_window)
        && retention < window
    {
        let message =
            format!("It must be at least dedupe_window_s, which is {window}: a key must find its operation.");
        problems.push(store.problem_at("retention_s", message));
    }
}

/// Reports names that are used twice, or for two things.
fn reject_clashes(
    upstreams: &[Section<'_>],
    kinds: &[Section<'_>],
    tokens: &[Section<'_>],
    problems: &mut Vec<ConfigProblem>,
) {
    for sections in [upstreams, tokens, kinds] {
        reject_duplicates(sections, problems);
    }
    reject_shared_names(kinds, upstreams, problems);
}

/// Reports duplicate names, with their locations.
pub(super) fn reject_duplicates(sections: &[Section<'_>], problems: &mut Vec<ConfigProblem>) {
    for (index, section) in sections.iter().enumerate() {
        let Some(name) = section.peek("name") else { continue };
        if sections[..index].iter().any(|earlier| earlier.peek("name") == Some(name)) {
            let message = format!("There is another one called {name:?}.");
            problems.push(section.problem_at("name", message));
        }
    }
}

/// Reports kinds with the name of an upstream: their limits would have the same names.
fn reject_shared_names(kinds: &[Section<'_>], upstreams: &[Section<'_>], problems: &mut Vec<ConfigProblem>) {
    for kind in kinds {
        let Some(name) = kind.peek("name") else { continue };
        if upstreams.iter().any(|upstream| upstream.peek("name") == Some(name)) {
            problems.push(kind.problem_at("name", format!("There is an upstream called {name:?}.")));
        }
    }
}

/// Reads the URL at which services call back; an empty one means that they cannot.
pub(super) fn read_public_url(
    found: LocatedValue<String>,
    problems: &mut Vec<ConfigProblem>,
) -> Option<String> {
    if found.value.is_empty() {
        return None;
    }
    check_url(&found, problems).then_some(found.value)
}

/// Whether a text is a URL; reports what is not.
pub(super) fn check_url(found: &LocatedValue<String>, problems: &mut Vec<ConfigProblem>) -> bool {
    let is_usable = BaseUrl::parse(&found.value).is_ok();
    if !is_usable {
        problems.push(
            found.problem("It must be a URL without user and query, such as https://tidegate.example.com."),
        );
    }
    is_usable
}

fn read_listen(
    found: LocatedValue<String>,
    over: &Overrides,
    open_to_all: bool,
    problems: &mut Vec<ConfigProblem>,
) -> Option<SocketAddr> {
    let found = found.override_by_flag("--listen", over.listen.map(|listen| listen.to_string()));
    let Ok(listen) = found.value.parse::<SocketAddr>() else {
        problems.push(found.problem("It must be an address and a port, such as 127.0.0.1:7400."));
        return None;
    };
    if open_to_all && !listen.ip().is_loopback() {
        problems.push(found.problem(exposure_message(listen)));
    }
    Some(listen)
}

fn read_store(
    found: LocatedValue<String>,
    over: &Overrides,
    problems: &mut Vec<ConfigProblem>,
) -> Option<String> {
    check_store(found.override_by_flag("--store", over.store_url.clone()), problems)
}

/// Checks the URL of a store.
pub(super) fn check_store(found: LocatedValue<String>, problems: &mut Vec<ConfigProblem>) -> Option<String> {
    let scheme = found.value.split(':').next().unwrap_or_default();
    let message = match scheme {
        "file" if found.value.len() > "file:".len() => return Some(found.value),
        "memory" if found.value == "memory:" => return Some(found.value),
        _ if is_shared(&found.value) => return Some(found.value),
        // The message quotes only the part before a colon, and only if it is a valid scheme: the
        // rest may contain a password.
        _ if found.value.contains(':') && is_scheme(scheme) => {
            format!("It must be file:DIR, memory:, redis://… or postgres://…, not {scheme}:….")
        }
        _ => "It must be file:DIR, memory:, redis://… or postgres://….".to_owned(),
    };
    problems.push(found.problem(message));
    None
}

fn is_scheme(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte == b'+' || byte == b'-';
    (1..=20).contains(&text.len()) && text.bytes().all(is_letter) && !["file", "memory"].contains(&text)
}

/// Reads the archive, if one is named. It needs a store that records which operations ended.
fn read_archive(
    found: LocatedValue<String>,
    store: Option<&str>,
    problems: &mut Vec<ConfigProblem>,
) -> Option<String> {
    if found.value.is_empty() {
        return None;
    }
    if !is_archive(&found.value) {
        problems.push(found.problem("It must be postgres://…."));
        return None;
    }
    match store {
        Some(store) if is_archive(store) => {
            let message = "The store is PostgreSQL: what ended is in its tables already, for retention_s.";
            problems.push(found.problem(message));
            None
        }
        Some(store) if !can_archive(store) => {
            problems.push(found.problem("An archive needs a store on Redis: url must be redis://…."));
            None
        }
        _ => Some(found.value),
    }
}
