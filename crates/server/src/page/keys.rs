//! Idempotency keys, those with an unknown outcome first, each with the commands that record the
//! outcome. It never shows a body. The server serves it, and so does the admin
//! port of a proxy that runs on its own.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::HOST;
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use tidegate_core::Time;
use tidegate_idempotency::{HitCounts, KeyAdmin, KeyFilter, KeyPage, KeySummary, RecordName};
use tidegate_store::{Clock, WallClock};

use super::action::{Action, KeyParts};
use super::parts::{ago, count, state, within};
use super::words::Language;
use super::{PageSite, document_at, error_page_at};
use crate::error::Error;
use crate::wire::key::state as word;

/// How many keys are scanned for one page.
const LOOKED_AT: usize = 1_000;
/// How many of those are shown.
const ROWS: usize = 200;

pub(crate) async fn show(State(keys): State<KeyAdmin>) -> Response {
    show_at(PageSite::Server, &keys, "").await
}

/// The same page of a proxy. Its commands name the proxy, which is not where they look by default.
pub(crate) async fn show_in_proxy(State(keys): State<KeyAdmin>, headers: HeaderMap) -> Response {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let flag =
        host.map_or_else(String::new, |host| format!(" --server {}", quoted(&format!("http://{host}"))));
    show_at(PageSite::Proxy, &keys, &flag).await
}

async fn show_at(site: PageSite, keys: &KeyAdmin, flag: &str) -> Response {
    match keys.list(&KeyFilter::default(), None, LOOKED_AT).await {
        Ok(page) => {
            let content = content(site, page, keys.hit_counts(), WallClock.now(), flag);
            document_at(site, "Keys", &content).into_response()
        }
        Err(error) => error_page_at(site, &Error::from(error)),
    }
}

/// The page; `flag` ends the commands that it names.
fn content(site: PageSite, page: KeyPage, hits: HitCounts, now: Time, flag: &str) -> Markup {
    let (unknown, others): (Vec<_>, Vec<_>) =
        page.keys.into_iter().partition(|key| word(key.state, now) == "unknown");
    let is_more = page.next.is_some() || unknown.len() > ROWS || others.len() > ROWS;
    html! {
        h1 { "Idempotency keys" }
        (hit_rate(hits))
        @if !unknown.is_empty() {
            section {
                h2 { "Outcome unknown" }
                p.sentence { "Each of these requests may have been done. Check in the service, then record the outcome." }
                (table(site, &unknown, now, Some(flag)))
            }
        }
        section {
            h2 { "In work and answered" }
            @if others.is_empty() { p.quiet { "There are none." } } @else { (table(site, &others, now, None)) }
        }
        @if is_more { p { "There are more: " code { "tidegate key list" (flag) } " shows all of them." } }
    }
}

/// The hit rate of this process, with what it means.
fn hit_rate(counts: HitCounts) -> Markup {
    let Some(percent) = counts.percent() else {
        return html! { p.quiet { "No request with a key has come to this node since it started." } };
    };
    let total = counts.hits.saturating_add(counts.misses);
    let verdict = match percent {
        81.. => "good",
        50..=80 => "usual",
        _ => "worth a look: clients may make a new key for each try",
    };
    html! {
        p {
            "Hit rate: " b { (percent) " %" } ", " (verdict) ". "
            (count(counts.hits)) " of " (count(total)) " requests with a key got a stored response, at this node since it started."
        }
    }
}

/// A table of keys. With a flag, each row has the commands that record its outcome, which it ends.
fn table(site: PageSite, keys: &[KeySummary], now: Time, flag: Option<&str>) -> Markup {
    html! {
        table.cards {
            caption.hidden { "Idempotency keys" }
            thead { tr { th.c-state scope="col" { "State" } th.c-name scope="col" { "Key" } th scope="col" { "Scope" } th scope="col" { "Request" } th.number scope="col" { "Age" } th.number scope="col" { "Expires" } @if flag.is_some() { th scope="col" { "It happened, or it did not" } } @if site == PageSite::Server { th.c-acts scope="col" { span.hidden { "Actions" } } } } }
            tbody {
                @for KeySummary { name, state: key_state, created, expires } in keys.iter().take(ROWS) {
                    tr {
                        td { (state(word(*key_state, now))) }
                        th scope="row" { (name.key.as_str()) }
                        td data-label="Scope" { (name.scope.as_str()) }
                        td { (name.method) " " (name.path) }
                        td.number data-label="Age" { (ago(*created, now)) }
                        td.number data-label="Expires" { (within(*expires, now)) }
                        @if let Some(flag) = flag {
                            td.why {
                                code { "tidegate key complete " (quoted(name.key.as_str())) " --status 201 --body …" (flag) } " "
                                code { "tidegate key release " (quoted(name.key.as_str())) (flag) }
                            }
                        }
                        @if site == PageSite::Server { td.act { (buttons(name, word(*key_state, now))) } }
                    }
                }
            }
        }
    }
}

/// What an operator can do about a key in its state. A proxy has no forms.
fn buttons(name: &RecordName, state: &str) -> Markup {
    let actions: &[Action] = match state {
        "unknown" => &[Action::CompleteKey, Action::ReleaseKey],
        "processing" => &[Action::ReleaseKey],
        _ => &[Action::ExpireKey],
    };
    let (key, scope) = (name.key.as_str(), name.scope.as_str());
    let parts = KeyParts { key, scope, method: &name.method, path: &name.path };
    let words = Language::English.operator_words();
    html! {
        @for action in actions {
            @let label = words.action(*action).label;
            a.button href=(action.key_href(&parts)) aria-label={ (label) " " (key) } { (label) } " "
        }
    }
}

/// Quotes a text for a shell.
fn quoted(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.:/".contains(&byte);
    if text.bytes().all(is_plain) && !text.starts_with('-') {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use tidegate_core::shared::record::OnLapse;
    use tidegate_idempotency::KeyState;

    use super::*;

    /// IDM-9: the hit rate is on the page, and what it means: good above 80 %, worth a look below
    /// 50 %.
    #[test]
    fn idm_9_the_hit_rate_is_told_with_its_meaning() {
        let shown = |hits, misses| hit_rate(HitCounts { hits, misses }).into_string();
        for (hits, misses, percent, verdict) in [
            (9, 1, "90 %", "good"),
            (8, 2, "80 %", "usual"),
            (1, 1, "50 %", "usual"),
            (49, 51, "49 %", "look"),
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
        let html = content(PageSite::Server, KeyPage { keys, next: None }, HitCounts::default(), now, "")
            .into_string();
        let at = |part: &str| html.find(part).unwrap_or_else(|| panic!("{part}: {html}"));
        assert!(at("&lt;b&gt;'") < at(">done<"), "{html}");
        at("tidegate key complete '&lt;b&gt;'\\'''");
        assert_eq!(html.matches("key complete").count(), 1, "{html}");
        assert!(!html.contains("--server"), "{html}");
        assert_eq!([quoted("order:7"), quoted("a b"), quoted("-x")], ["order:7", "'a b'", "'-x'"]);
    }

    /// IDM-22: the commands on the page of a proxy name its admin port.
    #[test]
    fn idm_22_commands_name_the_proxy() {
        let (then, later) = (Time::from_millis(1), Time::from_millis(3));
        let state = KeyState::Processing { until: then, on_lapse: OnLapse::Hold };
        let name = RecordName::parse("acme POST /pay order-7").unwrap();
        let keys = vec![KeySummary { name, state, created: then, expires: later }];
        let now = Time::from_millis(2);
        let flag = " --server http://127.0.0.1:7401";
        let html = content(PageSite::Proxy, KeyPage { keys, next: None }, HitCounts::default(), now, flag)
            .into_string();
        assert!(html.contains("tidegate key release order-7 --server http://127.0.0.1:7401<"), "{html}");
        assert!(html.contains("--body … --server http://127.0.0.1:7401<"), "{html}");
    }
}
