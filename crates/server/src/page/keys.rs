//! Idempotency keys, those with an unknown outcome first, each with what records the outcome:
//! buttons, or on the admin port of a proxy that runs on its own, which has no forms, commands. It
//! never shows a body.

mod words;

use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use tidegate_idempotency::{HitCounts, KeyAdmin, KeyFilter, KeyPage, KeySummary, RecordName};
use tidegate_store::{Clock, WallClock};

use super::action::{Action, KeyParts};
use super::actions::notice;
use super::parts::count;
use super::shell::{quoted, server_flag};
use super::view::View;
use super::words::Language;
use super::{Frame, PageSite, error_page_at, framed_at};
use crate::api::local::{LocalApi, answered_in_time};
use crate::edge::origin::host;
use crate::edge::query::Query;
use crate::error::Error;
use crate::wire::key::state as word;

/// How many keys are scanned for one page.
const LOOKED_AT: usize = 1_000;
/// How many of those are shown.
const ROWS: usize = 200;
/// How many requests it takes before a hit rate is judged.
const JUDGED_FROM: u64 = 20;

pub(crate) async fn show(State(api): State<LocalApi>, headers: HeaderMap, mut query: Query) -> Response {
    let view = View::at(Language::preferred(&headers), WallClock.now());
    let done = notice(&api, &view, &mut query);
    show_at(PageSite::Server, &view, &api.server.key_store.keys(), &done, "").await
}

/// The same page of a proxy. Its commands name the proxy, which is not where they look by default.
pub(crate) async fn show_in_proxy(State(keys): State<KeyAdmin>, headers: HeaderMap, uri: Uri) -> Response {
    let view = View::at(Language::preferred(&headers), WallClock.now());
    let flag = server_flag(host(&headers, &uri).as_deref(), "http");
    // A proxy has no forms, so there is nothing that was just done.
    show_at(PageSite::Proxy, &view, &keys, &html! {}, &flag).await
}

async fn show_at(site: PageSite, view: &View, keys: &KeyAdmin, done: &Markup, flag: &str) -> Response {
    let listed = answered_in_time(keys.list(&KeyFilter::default(), None, LOOKED_AT)).await;
    match listed.and_then(|listed| listed.map_err(Error::from)) {
        Ok(page) => {
            let content = html! { (done) (content(view, site, page, keys.hit_counts(), flag)) };
            // A proxy does not notify its pages of changes.
            let regions = (site == PageSite::Server).then_some("");
            let frame = Frame { title: view.language.words().keys, language: view.language, regions };
            framed_at(site, &frame, &content).into_response()
        }
        Err(error) => error_page_at(site, &error),
    }
}

/// The page; `flag` ends the commands that it names.
fn content(view: &View, site: PageSite, page: KeyPage, hits: HitCounts, flag: &str) -> Markup {
    let words = view.language.key_words();
    let (unknown, others): (Vec<_>, Vec<_>) =
        page.keys.into_iter().partition(|key| word(key.state, view.now) == "unknown");
    let is_more = page.next.is_some() || unknown.len() > ROWS || others.len() > ROWS;
    html! {
        h1 { (words.title) }
        section #hits data-live { (hit_rate(view, hits)) }
        section #unknown data-live="steady" {
            @if !unknown.is_empty() {
                h2 { (words.unknown) }
                p.sentence { (words.unknown_about) }
                (table(view, site, &unknown, (site == PageSite::Proxy).then_some(flag)))
            }
        }
        section #others data-live="steady" {
            h2 { (words.others) }
            @if others.is_empty() { p.quiet { (words.none) } } @else { (table(view, site, &others, None)) }
        }
        @if is_more { p { (words.more) " " code { "tidegate key list" (flag) } } }
    }
}

/// The hit rate of this process, with what it means.
fn hit_rate(view: &View, counts: HitCounts) -> Markup {
    let words = view.language.key_words();
    let Some(percent) = counts.percent() else {
        return html! { p.quiet { (words.no_requests) } };
    };
    let total = counts.hits.saturating_add(counts.misses);
    let [good, usual, low] = words.verdicts;
    let verdict = match percent {
        _ if total < JUDGED_FROM => None,
        81.. => Some(good),
        50..=80 => Some(usual),
        _ => Some(low),
    };
    html! {
        p {
            (words.hit_rate) ": " b { (percent) " %" } @if let Some(verdict) = verdict { ", " (verdict) } ". "
            (count(counts.hits)) " " (view.words.of) " " (count(total)) " " (words.answered_from_store)
        }
    }
}

/// A table of keys. With a flag, each row has the commands that record its outcome, which it ends.
fn table(view: &View, site: PageSite, keys: &[KeySummary], flag: Option<&str>) -> Markup {
    let (words, operator_words, now) = (view.language.key_words(), view.words, view.now);
    html! {
        table.cards {
            caption.hidden { (words.title) }
            thead {
                tr {
                    th.c-state scope="col" { (operator_words.state_label) }
                    th.c-name scope="col" { (operator_words.key) }
                    th scope="col" { (words.scope) }
                    th scope="col" { (operator_words.request) }
                    th.number scope="col" { (operator_words.age) }
                    th.number scope="col" { (words.expires) }
                    @if flag.is_some() { th scope="col" { (words.decision) } }
                    @if site == PageSite::Server { th.c-acts scope="col" { span.hidden { (operator_words.actions) } } }
                }
            }
            tbody {
                @for KeySummary { name, state: key_state, created, expires } in keys.iter().take(ROWS) {
                    tr {
                        td { (view.state(word(*key_state, now))) }
                        th scope="row" { (name.key.as_str()) }
                        td data-label=(words.scope) { (name.scope.as_str()) }
                        td { (name.method) " " (name.path) }
                        td.number data-label=(operator_words.age) { (view.ago(*created)) }
                        td.number data-label=(words.expires) { (view.within(*expires)) }
                        @if let Some(flag) = flag {
                            td.why {
                                code { "tidegate key complete " (quoted(name.key.as_str())) " --status 201 --body …" (flag) } " "
                                code { "tidegate key release " (quoted(name.key.as_str())) (flag) }
                            }
                        }
                        @if site == PageSite::Server { td.act { (buttons(view, name, word(*key_state, now))) } }
                    }
                }
            }
        }
    }
}

/// What an operator can do about a key in its state.
pub(super) fn actions_for(state: &str) -> &'static [Action] {
    match state {
        "unknown" => &[Action::CompleteKey, Action::ReleaseKey],
        "processing" => &[Action::ReleaseKey],
        _ => &[Action::ExpireKey],
    }
}

/// The links to what can be done about a key. A proxy has no forms.
fn buttons(view: &View, name: &RecordName, state: &str) -> Markup {
    let (key, scope) = (name.key.as_str(), name.scope.as_str());
    let parts = KeyParts { key, scope, method: &name.method, path: &name.path };
    html! {
        @for action in actions_for(state) {
            @let label = view.words.action(*action).label;
            a.button href=(action.key_href(&parts)) aria-label={ (label) " " (key) } { (label) } " "
        }
    }
}

#[cfg(test)]
mod tests {
    use tidegate_core::Time;
    use tidegate_core::shared::record::OnLapse;
    use tidegate_idempotency::KeyState;

    use super::*;

    /// IDM-9: the hit rate is on the page, and what it means: good above 80 %, worth a look below
    /// 50 %.
    #[test]
    fn idm_9_the_hit_rate_is_told_with_its_meaning() {
        let view = View::at(Language::English, Time::ZERO);
        let shown = |hits, misses| hit_rate(&view, HitCounts { hits, misses }).into_string();
        for (hits, misses, percent, verdict) in [
            (18, 2, "90 %", "good"),
            (16, 4, "80 %", "usual"),
            (10, 10, "50 %", "usual"),
            (49, 51, "49 %", "look"),
            (0, 19, "0 %", "0 %</b>. 0 of 19"),
        ] {
            let html = shown(hits, misses);
            assert!(html.contains(percent) && html.contains(verdict), "{html}");
        }
        assert!(shown(1_234, 0).contains("1,234 of 1,234"), "{}", shown(1_234, 0));
        assert!(shown(0, 0).contains("No request with a key"), "{}", shown(0, 0));
    }

    /// IDM-22: keys that wait for an operator come first, with what to do about them; a key is
    /// text, not markup.
    #[test]
    fn idm_22_unknown_outcomes_stand_first() {
        let (then, now, later) = (Time::from_millis(1), Time::from_millis(2), Time::from_millis(3));
        let key = |name: &str, standing| KeySummary {
            name: RecordName::parse(name).unwrap(),
            state: standing,
            created: then,
            expires: later,
        };
        let keys = vec![
            key("acme POST /pay done", KeyState::Completed(7)),
            key("acme POST /pay %3cb%3e%27", KeyState::Processing { until: then, on_lapse: OnLapse::Hold }),
        ];
        let view = View::at(Language::English, now);
        let html = content(&view, PageSite::Server, KeyPage { keys, next: None }, HitCounts::default(), "")
            .into_string();
        let at = |part: &str| html.find(part).unwrap_or_else(|| panic!("{part}: {html}"));
        assert!(at("&lt;b&gt;'") < at(">done<"), "{html}");
        at("/actions/complete-key?subject=%3Cb%3E%27&amp;");
        assert!(!html.contains("tidegate key"), "the buttons do it: {html}");
    }

    /// IDM-22: the commands on the page of a proxy name its admin port.
    #[test]
    fn idm_22_commands_name_the_proxy() {
        let (then, later) = (Time::from_millis(1), Time::from_millis(3));
        let state = KeyState::Processing { until: then, on_lapse: OnLapse::Hold };
        let key = |name: &str, state| KeySummary {
            name: RecordName::parse(name).unwrap(),
            state,
            created: then,
            expires: later,
        };
        let keys = vec![
            key("acme POST /pay order-7", state),
            key("acme POST /pay %3cb%3e%27", state),
            key("acme POST /pay done", KeyState::Completed(7)),
        ];
        let view = View::at(Language::English, Time::from_millis(2));
        let flag = " --server http://127.0.0.1:7401";
        let html = content(&view, PageSite::Proxy, KeyPage { keys, next: None }, HitCounts::default(), flag)
            .into_string();
        assert!(html.contains("tidegate key release order-7 --server http://127.0.0.1:7401<"), "{html}");
        assert!(html.contains("--body … --server http://127.0.0.1:7401<"), "{html}");
        assert!(html.contains("tidegate key complete '&lt;b&gt;'\\''' --status"), "{html}");
        assert_eq!(html.matches("key complete").count(), 2, "only where the outcome is unknown: {html}");
    }

    /// The page is in the language of its reader; what others named stays as it is.
    #[test]
    fn keys_are_shown_in_russian() {
        let (then, later) = (Time::from_millis(1), Time::from_millis(3));
        let name = RecordName::parse("acme POST /pay order-7").unwrap();
        let keys = vec![KeySummary { name, state: KeyState::Completed(7), created: then, expires: later }];
        let view = View::at(Language::Russian, Time::from_millis(2));
        let page = KeyPage { keys, next: None };
        let html = content(&view, PageSite::Server, page, HitCounts { hits: 1, misses: 1 }, "").into_string();
        for part in ["Ключи идемпотентности", "завершён", "1 из 2", "order-7", "POST /pay"]
        {
            assert!(html.contains(part), "{part}: {html}");
        }
        assert!(!html.contains("Scope") && !html.contains("Expire<"), "{html}");
    }
}
