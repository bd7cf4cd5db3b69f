//! Limits: what is left of each, now and in the last hour, when it comes back, and what an operator
//! can change. The overview has one row for each upstream or provider, with the limit that is
//! nearest its end; the others are behind it.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use maud::{Markup, PreEscaped, html};
use serde_json::Value;
use tidegate_core::LimitName;

use super::action::{Action, FIGURES};
use super::actions::{button, notice_with};
use super::error_page;
use super::parts::{LOW, count, filled, level_bar};
use super::spark;
use super::view::{View, escape, items, number, text, time_in};
use crate::api::local::LocalApi;
use crate::edge::query::Query;

/// The least urgent of what [`nearness`] returns.
const FAR: u8 = 3;
/// The minutes that are lately.
const LATELY_MIN: usize = 5;
/// The most limits of a page; the API lists the rest.
const SHOWN_MAX: usize = 500;
/// The most other limits of an upstream that the overview lists.
const OTHERS_MAX: usize = 20;
/// Where the API lists them with their last hour.
pub(super) const WITH_HISTORY: &str = "/v1/limits?history=true";

pub(crate) async fn list(State(api): State<LocalApi>, headers: HeaderMap, mut query: Query) -> Response {
    let view = View::new(&headers, &api);
    match api.get(WITH_HISTORY).await {
        Ok(page) => {
            let changed = query.take("limit").and_then(|name| {
                let found = items(&page, "limits").iter().find(|limit| text(limit, "name") == name);
                found.map(|limit| now_sentence(&view, limit))
            });
            let name = query.take("name");
            let shown = named(items(&page, "limits"), name.as_deref());
            let content = html! {
                (notice_with(&api, &view, &mut query, changed.as_deref()))
                h1 { (view.words.limits) }
                @if let Some(name) = &name { p { (view.words.names_contain) " " code { (name) } " · " a href="/limits" { (view.words.show_all) } } }
                section #limits data-live="steady" {
                    @if shown.is_empty() && name.is_some() { p.quiet { (view.words.nothing_matches) } }
                    @else { (all(&view, &shown)) }
                }
            };
            view.live_page(view.words.limits, &content)
        }
        Err(error) => error_page(&error),
    }
}

/// The limits whose names contain a text, whatever the case; all of them without one.
pub(super) fn named(limits: &[Value], wanted: Option<&str>) -> Vec<Value> {
    let wanted = wanted.unwrap_or_default().to_lowercase();
    limits.iter().filter(|limit| text(limit, "name").to_lowercase().contains(&wanted)).cloned().collect()
}

/// What the figures of a limit are now, by the names that they have in its form.
fn now_sentence(view: &View, limit: &Value) -> String {
    let figures = FIGURES.iter().filter(|(name, _)| limit[*name].is_number());
    let figures: Vec<String> = figures.map(|(name, _)| format!("{name} {}", limit[*name])).collect();
    let shown = figures.into_iter().chain([gate_word(view, limit).to_owned()]).collect::<Vec<_>>().join(", ");
    filled(view.words.limit_is_now, [text(limit, "name"), &shown])
}

/// What is left of a limit, as a share of what it can hold; `None` for a gate or a breaker.
fn share(limit: &Value) -> Option<f64> {
    let most = limit["capacity"].as_f64().or_else(|| limit["at_once"].as_f64())?;
    Some(limit["level"].as_f64()? / most.max(f64::MIN_POSITIVE))
}

/// How near its end a limit is, without what changes all the time: rows that keep their places can
/// be read.
fn nearness(limit: &Value) -> u8 {
    let is_low = share(limit).is_some_and(|share| share <= LOW);
    match (limit["closed_until"].is_string(), number(limit, "waiting") > 0) {
        (true, _) => 0,
        (false, true) => 1,
        (false, false) if is_low || limit["failing_since"].is_string() => 2,
        (false, false) => FAR,
    }
}

/// How often calls of these limits were throttled in the last minutes.
fn throttled_lately<'a>(limits: impl Iterator<Item = &'a Value>) -> u64 {
    let minutes = limits.flat_map(|limit| items(&limit["hour"], "closed").iter().rev().take(LATELY_MIN));
    minutes.filter_map(Value::as_u64).sum()
}

/// Orders limits: those that are closed, then those that groups wait for, then by what is left.
fn nearer_its_end(a: &Value, b: &Value) -> Ordering {
    let closed = |limit: &Value| limit["closed_until"].is_string();
    let level = |limit: &Value| share(limit).unwrap_or(f64::INFINITY);
    closed(b)
        .cmp(&closed(a))
        .then_with(|| number(b, "waiting").cmp(&number(a, "waiting")))
        .then_with(|| level(a).total_cmp(&level(b)))
        .then_with(|| text(a, "name").cmp(text(b, "name")))
}

/// A limit and others of the same upstream or provider.
type LimitFamily<'a> = (&'a Value, Vec<&'a Value>);

/// One row for each upstream or provider, those nearest their end first; at most `most`.
pub(super) fn nearest_end(view: &View, limits: &[Value], most: usize) -> Markup {
    let mut families: Vec<LimitFamily<'_>> = Vec::new();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for limit in sorted(limits) {
        match places.get(owner(limit)) {
            Some(place) => families[*place].1.push(limit),
            None => {
                places.insert(owner(limit), families.len());
                families.push((limit, Vec::new()));
            }
        }
    }
    // What has no level, and is open, is near no end.
    families.retain(|(limit, _)| share(limit).is_some() || nearness(limit) < FAR);
    let found = families.len();
    families.sort_by_key(|(limit, _)| (nearness(limit), owner(limit)));
    families.truncate(most);
    html! {
        (table(view, &families, false))
        @if found > most { p { a href="/limits" { (view.words.show_all) " (" (count(limits.len() as u64)) ")" } } }
    }
}

/// Every limit, with buttons, by name: a row does not move while someone reads it.
fn all(view: &View, limits: &[Value]) -> Markup {
    let mut rows: Vec<LimitFamily<'_>> =
        sorted(limits).into_iter().take(SHOWN_MAX).map(|limit| (limit, Vec::new())).collect();
    rows.sort_by_key(|(limit, _)| text(limit, "name"));
    table(view, &rows, true)
}

fn sorted(limits: &[Value]) -> Vec<&Value> {
    let mut sorted: Vec<&Value> = limits.iter().collect();
    sorted.sort_by(|a, b| nearer_its_end(a, b));
    sorted
}

/// The upstream or provider in the name of a limit.
fn owner(limit: &Value) -> &str {
    LimitName::parse(text(limit, "name")).upstream()
}

/// The table of these rows; in full, with where the figures are from and every button.
fn table(view: &View, rows: &[LimitFamily<'_>], is_full: bool) -> Markup {
    let words = view.words;
    html! {
        @if rows.is_empty() {
            p.quiet { (words.no_limits) }
        } @else {
            table.cards.limits {
                caption.hidden { (words.limits) }
                thead {
                    tr {
                        th.c-name scope="col" { (words.limit) }
                        th.c-left scope="col" { (words.left) }
                        th.number scope="col" { (words.waiting) }
                        th.number scope="col" { (words.in_flight) }
                        @if is_full { th.c-word scope="col" { (words.source) } }
                        th scope="col" { (words.next) }
                        th class=(if is_full { "c-acts" } else { "c-act" }) scope="col" { span.hidden { (words.actions) } }
                    }
                }
                tbody { @for family in rows { (row(view, family, is_full)) } }
            }
        }
    }
}

fn row(view: &View, (limit, others): &LimitFamily<'_>, is_full: bool) -> Markup {
    let (words, name) = (view.words, text(limit, "name"));
    let is_set = text(limit, "source") == "operator";
    html! {
        tr {
            th scope="row" title=(name) {
                @if is_full { (name) } @else { a href={ "/limits?name=" (escape(name)) } { (name) } }
                (others_of(view, others))
            }
            td.left title=(level_words(view, limit)) { (level(view, limit)) (spark::of_limit(view, &limit["hour"])) }
            td.number data-label=(words.waiting) { (count(number(limit, "waiting"))) }
            td.number data-label=(words.in_flight) { (number(limit, "in_flight")) }
            @if is_full { td data-label=(words.source) { (words.source_of(text(limit, "source"))) } }
            (why(view, limit, others, is_full))
            td.act {
                @if limit["closed_until"].is_string() { (button(view, Action::OpenLimit, name)) }
                @if is_full && share(limit).is_some() { (button(view, Action::SetLimit, name)) }
                @if is_full && is_set { (button(view, Action::ResetLimit, name)) }
            }
        }
    }
}

/// When a limit has room again; since when it is closed, and why; how often calls were throttled
/// lately, and whether an operator changed it.
fn why(view: &View, limit: &Value, others: &[&Value], is_full: bool) -> Markup {
    let (words, message) = (view.words, text(&limit["last_fault"], "message"));
    let opens = time_in(limit, "closed_until").map(|at| html! { (words.opens) " " (view.within(at)) });
    let full = || time_in(limit, "reset_at").map(|at| html! { (words.full_again) " " (view.within(at)) });
    let refill = limit["refill_per_s"].as_f64().map(|rate| html! { (words.refill) " " (figure(rate)) "/s" });
    let failing = time_in(limit, "failing_since");
    let failing = failing.map(|since| html! { (words.failing) " " (view.lasting(since)) });
    let message = (!message.is_empty()).then(|| html! { (message) });
    let family = || others.iter().copied().chain([limit]);
    let throttled = throttled_lately(family());
    let throttled =
        (throttled > 0).then(|| html! { b { (words.throttled_lately.replace("{}", &count(throttled))) } });
    let is_changed = !is_full && family().any(|one| text(one, "source") == "operator");
    let changed = is_changed.then(|| html! { (words.changed_by_operator) });
    let parts = [opens.or_else(full), refill, throttled, changed, failing, message];
    let parts = parts.into_iter().flatten().map(Markup::into_string).collect::<Vec<_>>().join(" · ");
    html! { td.why title=[limit["last_fault"]["message"].as_str()] { span { (PreEscaped(parts)) } } }
}

/// The other limits of an upstream, for those who ask.
fn others_of(view: &View, others: &[&Value]) -> Markup {
    html! {
        @if !others.is_empty() {
            details {
                summary { "+" (count(others.len() as u64)) }
                ul.plain {
                    @for limit in others.iter().take(OTHERS_MAX) { li { (text(limit, "name")) " " span.quiet { (level_words(view, limit)) } } }
                    @if others.len() > OTHERS_MAX { li { a href="/limits" { (view.words.show_all) } } }
                }
            }
        }
    }
}

fn level(view: &View, limit: &Value) -> Markup {
    let label = level_words(view, limit);
    match share(limit) {
        Some(share) => level_bar(share, &label),
        None if limit["closed_until"].is_string() => html! { span.closed { (label) } },
        None => html! { span.quiet { (label) } },
    }
}

/// What is left of a limit, such as "4 of 10 left"; whether it is open, for a gate or a breaker.
pub(super) fn level_words(view: &View, limit: &Value) -> String {
    let words = view.words;
    let most = limit["capacity"].as_f64().or_else(|| limit["at_once"].as_f64());
    match (limit["level"].as_f64(), most) {
        (Some(level), Some(most)) => filled(words.left_of, [&figure(level.floor()), &figure(most)]),
        _ => gate_word(view, limit).to_owned(),
    }
}

/// Whether calls may pass a limit, whatever is left of it.
fn gate_word(view: &View, limit: &Value) -> &'static str {
    match (limit["closed_until"].is_string(), limit["failing_since"].is_string()) {
        (true, _) => view.words.closed,
        (false, true) => view.words.half_open,
        (false, false) => view.words.open,
    }
}

/// A figure without needless digits.
fn figure(number: f64) -> String {
    if number.fract() == 0.0 { format!("{number:.0}") } else { format!("{number:.1}") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::page::words::Language;

    #[test]
    fn limits_are_sorted_by_how_near_their_end_is() {
        let mut limits = [
            json!({ "name": "full", "capacity": 10, "level": 10, "waiting": 0 }),
            json!({ "name": "gate", "level": null, "waiting": 0 }),
            json!({ "name": "low", "capacity": 10, "level": 1, "waiting": 0 }),
            json!({ "name": "awaited", "at_once": 2, "level": 2, "waiting": 3 }),
            json!({ "name": "closed", "level": null, "waiting": 0, "closed_until": "2030-01-01T00:00:00Z" }),
        ];
        limits.sort_by(nearer_its_end);
        let names: Vec<_> = limits.iter().map(|limit| text(limit, "name")).collect();
        assert_eq!(names, ["closed", "awaited", "low", "full", "gate"]);
        assert_eq!([figure(4.0), figure(0.25)], ["4", "0.2"]);
    }

    /// What is said of a limit after a change is what it is now.
    #[test]
    fn what_a_limit_is_now_is_said_in_the_words_of_its_form() {
        let budget = json!({ "name": "acme/{}", "capacity": 4, "refill_per_s": 0.5, "at_once": null });
        let gate = json!({ "name": "acme", "closed_until": "2030-01-01T00:00:00Z" });
        let tried = json!({ "name": "acme", "closed_until": null, "failing_since": "2030-01-01T00:00:00Z" });
        let said = now_sentence(&View::at(Language::English, tidegate_core::Time::ZERO), &tried);
        assert_eq!(said, "Limit acme is now: one call is tried.");
        for (language, of_budget, of_gate) in [
            (
                Language::English,
                "Limit acme/{} is now: capacity 4, refill_per_s 0.5, open.",
                "Limit acme is now: closed.",
            ),
            (
                Language::Russian,
                "Лимит acme/{} теперь: capacity 4, refill_per_s 0.5, открыт.",
                "Лимит acme теперь: закрыт.",
            ),
        ] {
            let view = View::at(language, tidegate_core::Time::ZERO);
            assert_eq!([now_sentence(&view, &budget), now_sentence(&view, &gate)], [of_budget, of_gate]);
        }
    }

    /// OPS-24: a limit that is closed says until when, since when and why, and has its button, also
    /// on the overview; one that is tried with one call is not called open.
    #[test]
    fn ops_24_a_closed_limit_says_why_and_since_when() {
        let view = View::at(Language::English, tidegate_core::Time::from_millis(60_000));
        let mut limit = json!({
            "name": "acme", "level": null, "waiting": 0, "closed_until": "1970-01-01T00:01:09Z",
            "failing_since": "1970-01-01T00:00:57Z", "last_fault": { "message": "HTTP 503 & more" },
        });
        let rows = |limit: &Value| {
            [nearest_end(&view, std::slice::from_ref(limit), 5), all(&view, std::slice::from_ref(limit))]
        };
        for html in rows(&limit).map(Markup::into_string) {
            for part in [
                "closed",
                "opens <time datetime=\"1970-01-01T00:01:09.000Z\"",
                " · failing for <time",
                " · HTTP 503 &amp; more</span>",
                "/actions/open-limit?subject=acme",
            ] {
                assert!(html.contains(part), "{part}: {html}");
            }
        }
        limit["closed_until"] = Value::Null;
        for html in rows(&limit).map(Markup::into_string) {
            assert!(html.contains("<span>failing for") && html.contains("one call is tried"), "{html}");
            assert!(!html.contains("open"), "{html}");
        }
    }

    /// OPS-24: after a change that an upstream does not follow, the overview says that it refuses
    /// calls, and that an operator changed the limit.
    #[test]
    fn ops_24_a_limit_that_is_too_high_is_seen() {
        let view = View::at(Language::English, tidegate_core::Time::ZERO);
        let closed = json!({ "closed": [7, 0, 2, 0, 0, 3] });
        let limits = [
            json!({ "name": "echo/requests", "capacity": 10, "level": 1, "source": "operator" }),
            json!({ "name": "echo", "hour": closed }),
            json!({ "name": "idle" }),
        ];
        let html = nearest_end(&view, &limits, 5).into_string();
        assert!(html.contains("<b>5 × 429 in 5 min</b> · changed by an operator"), "{html}");
        let mut closed = limits;
        closed[1]["closed_until"] = "1970-01-01T00:00:09Z".into();
        let closed = nearest_end(&view, &closed, 5).into_string();
        assert!(closed.contains("closed") && closed.contains("changed by an operator"), "{closed}");
        assert!(!html.contains("idle"), "what is open and has no level is near no end: {html}");
    }

    /// OPS-24: the overview has one row for each upstream, and the rest behind it.
    #[test]
    fn ops_24_an_upstream_is_one_row() {
        let limit =
            |name: &str, level: u64| json!({ "name": name, "capacity": 10, "level": level, "waiting": 0 });
        let limits =
            [limit("acme/points", 9), limit("acme/rest", 2), limit("echo/requests", 5), limit("x", 7)];
        let view = View::at(Language::English, tidegate_core::Time::ZERO);
        let html = nearest_end(&view, &limits, 2).into_string();
        assert_eq!(html.matches("<th scope=\"row\"").count(), 2, "{html}");
        assert!(html.contains("title=\"acme/rest\"") && html.contains("<summary>+1</summary>"), "{html}");
        assert!(html.contains("acme/points <span class=\"quiet\">9 of 10 left</span>"), "{html}");
        assert!(html.contains("echo/requests") && html.contains("Show all (4)"), "{html}");
    }

    /// OPS-24: rows keep their places while levels go up and down; what is closed, waited for or
    /// low comes first.
    #[test]
    fn ops_24_limits_keep_their_places() {
        let limit =
            |name: &str, level: u64| json!({ "name": name, "capacity": 10, "level": level, "waiting": 0 });
        let view = View::at(Language::English, tidegate_core::Time::ZERO);
        let order = |html: &str| {
            let names = html.split("<th scope=\"row\" title=\"").skip(1);
            names.map(|rest| rest.split('"').next().unwrap_or_default().to_owned()).collect::<Vec<_>>()
        };
        for [a, b] in [[9, 4], [4, 9]] {
            let limits = [limit("b/x", b), limit("a/x", a), limit("c/x", 1)];
            let nearest = nearest_end(&view, &limits, 9).into_string();
            assert_eq!(order(&nearest), ["c/x", "a/x", "b/x"], "{nearest}");
            let all = all(&view, &limits).into_string();
            assert_eq!(order(&all), ["a/x", "b/x", "c/x"], "{all}");
        }
    }
}
