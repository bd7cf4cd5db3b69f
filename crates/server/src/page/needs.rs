//! What needs an operator: one card for each decision, with the call, what is known of it, and the
//! buttons. What stops everything comes first, then unknown outcomes, groups that are stopped, and
//! recent failures.

mod cards;
mod failures;
mod outage;

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};
use serde_json::Value;
use tidegate_core::Time;
use tidegate_dispatch::ModelConfig;

use super::decision::is_decided_failure;
use super::parts::count;
use super::view::{View, escape, items, text};
use crate::api::local::LocalApi;
use crate::dismissals::FailureSource;
use crate::error::{Error, Result};
use crate::wire::time::Timestamp;
use cards::{stopped_card, unknown_card};
use failures::{
    DismissedFailures, Failures, by_source, dismissed_list, failure_card, source_of, take_dismissed,
};
use outage::{Outage, failing_providers, provider_card};

/// The groups with failures that are shown.
const FAILURE_CARDS: usize = 9;

/// The stopped groups that are shown.
const STOPPED_CARDS: usize = 25;

/// The groups with failures that are looked for: some of them may have been dismissed.
const SOURCES_WANTED: usize = 25;

/// The entries of one page of the API, and the most pages that are read.
const PAGE_LEN: usize = 200;
const PAGES_MAX: usize = 5;

/// What the API says about each.
pub(super) struct NeedsData {
    pub unknown: Result<Value>,
    pub stopped: Result<Value>,
    /// Recent failures, without those that an operator dismissed.
    pub failed: Result<Value>,
    pub dismissed: Vec<DismissedFailures>,
    /// The number of groups that wait for an operator.
    pub stopped_count: u64,
    /// The models of generations, and the state of their providers, if there are any.
    pub models: Vec<ModelConfig>,
    pub providers: Result<Value>,
}

/// The recent failures of groups that are held after one, by the names of the groups.
type HeldFailures<'a> = BTreeMap<&'a str, Failures<'a>>;

pub(super) fn section(view: &View, data: &NeedsData) -> Markup {
    let words = view.words;
    let unknown = listed(&data.unknown, "operations");
    let all_stopped = listed(&data.stopped, "groups");
    // An unknown outcome has a card of its own.
    let stopped: Vec<&Value> = all_stopped.iter().filter(|group| has_own_card(group)).collect();
    let hidden_stopped = stopped.len() > STOPPED_CARDS || has_more(&data.stopped);
    let failed = listed(&data.failed, "operations");
    let of_held = of_held_groups(failed, &stopped);
    let mut failures = by_source(failed.iter().filter(|one| !is_decided_failure(one)));
    let more_failed = has_more(&data.failed);
    failures.iter_mut().for_each(|(_, failures)| failures.is_cut = more_failed);
    failures
        .retain(|(source, _)| !matches!(source, FailureSource::Group(group) if of_held.contains_key(group)));
    let hidden_failures = failures.len().saturating_sub(FAILURE_CARDS);
    let providers = listed(&data.providers, "providers");
    let outage = Outage::of(&data.models, providers, view.now);
    let failing = failing_providers(providers, outage.as_ref(), view.now);
    let parts = [&data.unknown, &data.stopped, &data.failed, &data.providers].into_iter();
    let problems: Vec<&Error> = parts.filter_map(|part| part.as_ref().err()).collect();
    let needed = needed(data, unknown.len() + stopped.len())
        + (failures.len() + outage.iter().len() + failing.len()) as u64;
    let hidden_unknown = has_more(&data.unknown);
    let is_cut = hidden_unknown || hidden_stopped || hidden_failures > 0 || more_failed;
    let gone = match (problems.is_empty(), is_cut) {
        (true, false) => words.nothing_to_decide,
        (true, true) => words.no_longer_shown,
        (false, _) => words.not_known_now,
    };
    html! {
        section #needs data-live="steady" data-slots=(gone) {
            h2 data-needed=(needed) {
                // What cannot be read may need someone too.
                (words.needs_you) @if needed > 0 { " (" (count(needed)) @if !problems.is_empty() { "+" } ")" } " "
                // While the page is open, what is urgent may have come last.
                @if let Some(first) = unknown.first() {
                    a.jump href={ "#need-" (text(first, "id")) } { (count(unknown.len() as u64)) " " (view.state("unknown")) }
                }
                // The script counts here what it keeps out while someone points at the cards.
                span.newcomers hidden { a href="" { (words.newcomers) } }
            }
            // What cannot be read is no reason to lose the places of the cards, or to move them.
            @if needed == 0 && problems.is_empty() { p.quiet { (words.nothing_needed) } }
            @else {
                ul.needs {
                    @if let Some(outage) = &outage { (outage.card(view)) }
                    @for operation in unknown { (unknown_card(view, operation, all_stopped)) }
                    @for provider in failing { (provider_card(view, provider)) }
                    @for group in stopped.iter().take(STOPPED_CARDS) { (stopped_card(view, group, of_held.get(text(group, "group")))) }
                    @for (source, failures) in failures.iter().take(FAILURE_CARDS) { (failure_card(view, *source, failures)) }
                }
            }
            @for problem in &problems { (not_known(view, problem)) }
            @if hidden_unknown { p { (view.state("unknown")) ": " a href="/operations?state=unknown" { (words.show_all) } } }
            @if hidden_stopped { p { (words.groups) ": " a href="/groups?state=stopped" { (words.show_all) } } }
            @if hidden_failures > 0 || more_failed {
                p {
                    (view.state("failed")) ": "
                    @if hidden_failures > 0 { (words.groups) " +" (count(hidden_failures as u64)) " · " }
                    a href="/operations?state=failed" { (words.show_all) }
                }
            }
            (dismissed_list(view, &data.dismissed))
        }
    }
}

/// How many decisions there are. An unknown outcome holds its group, so that it is among the
/// stopped ones that did not fit.
fn needed(data: &NeedsData, cards: usize) -> u64 {
    let cards = cards as u64;
    if has_more(&data.stopped) { cards.max(data.stopped_count) } else { cards }
}

/// Reads the failures since a time, of many groups or as far back as is read; and apart from them
/// what an operator dismissed.
pub(super) async fn read_failures(api: &LocalApi, since: Time) -> (Result<Value>, Vec<DismissedFailures>) {
    let since = escape(&Timestamp(since).to_string());
    let target = format!("/v1/operations?state=failed&limit={PAGE_LEN}&finished_after={since}");
    // However many failed in one group, those of the others are looked for.
    let is_enough = |found: &[Value]| {
        let undecided = found.iter().filter(|one| !is_decided_failure(one));
        undecided.map(source_of).collect::<BTreeSet<_>>().len() >= SOURCES_WANTED
    };
    let mut read = read_enough(api, &target, "operations", is_enough).await;
    let failed = read.as_mut().ok().and_then(|page| page["operations"].as_array_mut());
    let dismissed = match failed {
        Some(failed) => take_dismissed(&*api.server.store, failed).await,
        None => Vec::new(),
    };
    (read, dismissed)
}

/// Reads the state of the providers, if there are models that need one.
pub(super) async fn read_providers(api: &LocalApi, models: &[ModelConfig]) -> Result<Value> {
    if models.is_empty() { Ok(Value::Null) } else { api.get("/v1/providers").await }
}

/// Reads the groups that are stopped, past those that only wait for an unknown outcome, which has a
/// card of its own.
pub(super) async fn read_stopped(api: &LocalApi) -> Result<Value> {
    let target = format!("/v1/groups?state=stopped&limit={PAGE_LEN}");
    let is_enough = |found: &[Value]| found.iter().filter(|one| has_own_card(one)).count() >= STOPPED_CARDS;
    read_enough(api, &target, "groups", is_enough).await
}

fn has_own_card(group: &Value) -> bool {
    group["held"]["unknown"] != true || group["paused"].is_object()
}

/// Reads a list until that is enough, or a page has nothing: an empty page has searched many
/// entries that do not match, and older ones hardly do.
async fn read_enough(
    api: &LocalApi,
    target: &str,
    name: &str,
    is_enough: impl Fn(&[Value]) -> bool,
) -> Result<Value> {
    let mut found = api.get(target).await?;
    let mut is_empty = items(&found, name).is_empty();
    for _ in 1..PAGES_MAX {
        let goes_on = !is_empty && !is_enough(items(&found, name));
        let Some(next) = found["next_cursor"].as_str().filter(|_| goes_on) else { break };
        let mut page = api.get(&format!("{target}&cursor={}", escape(next))).await?;
        found["next_cursor"] = page["next_cursor"].take();
        if let (Some(all), Some(more)) = (found[name].as_array_mut(), page[name].as_array_mut()) {
            is_empty = more.is_empty();
            all.append(more);
        }
    }
    Ok(found)
}

/// Says that a part cannot be read now.
pub(super) fn not_known(view: &View, problem: &Error) -> Markup {
    html! { p.notice role="alert" { (view.words.not_known_now) " " (problem.message) } }
}

fn listed<'a>(part: &'a Result<Value>, name: &str) -> &'a [Value] {
    part.as_ref().map_or(&[], |page| items(page, name))
}

fn has_more(part: &Result<Value>) -> bool {
    part.as_ref().is_ok_and(|page| page["next_cursor"].is_string())
}

/// The failures of groups that are held after one: whether such a group continues without it, or
/// with it again, is one decision, and the card of the group has both.
fn of_held_groups<'a>(failed: &'a [Value], stopped: &[&'a Value]) -> HeldFailures<'a> {
    let held = stopped.iter().filter(|group| group["held"].is_object());
    let held: BTreeSet<&str> = held.map(|group| text(group, "group")).collect();
    let groups = by_source(failed).into_iter().filter_map(|(source, failures)| match source {
        FailureSource::Group(group) => Some((group, failures)),
        FailureSource::Generations => None,
    });
    groups.filter(|(group, _)| held.contains(group)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tidegate_core::fault::RESOLVED_AS_FAILED;

    use super::*;
    use crate::page::words::Language;

    /// OPS-24: every card is counted, and so are the stopped groups that did not fit.
    #[test]
    fn ops_24_the_number_of_decisions_is_that_of_the_cards() {
        let view = View::at(Language::English, Time::from_millis(1));
        let unknown = json!({ "operations": [{ "id": "op_1", "group": "u" }] });
        let groups = json!([
            { "group": "u", "depth": 3, "held": { "unknown": true, "since": "1970-01-01T00:00:00Z" } },
            { "group": "p", "state": "paused", "depth": 1, "paused": { "by": "anna" } },
        ]);
        let failed = json!({ "operations": [{ "id": "op_2", "group": "f" }] });
        let mut data = NeedsData {
            unknown: Ok(unknown),
            stopped: Ok(json!({ "groups": groups })),
            failed: Ok(failed),
            dismissed: Vec::new(),
            stopped_count: 2,
            models: Vec::new(),
            providers: Ok(json!({})),
        };
        let html = section(&view, &data).into_string();
        assert!(html.contains("Needs you (3)") && html.matches("<li ").count() == 3, "{html}");
        assert!(
            html.contains("In its queue: <b>3</b>")
                && html.contains("unknown for <time")
                && html.matches("</time>").count() == 1,
            "{html}"
        );
        data.stopped = Ok(json!({ "groups": groups, "next_cursor": "more" }));
        data.stopped_count = 40;
        assert!(html.contains("data-slots=\"Nothing to decide here any more.\""), "{html}");
        let html = section(&view, &data).into_string();
        assert!(html.contains("Needs you (41)"), "{html}");
        assert!(html.contains("href=\"#need-op_1\">1 <span class=\"state unknown\""), "{html}");
        assert!(html.contains(">Re-run 1</a>"), "{html}");
        data.failed = Ok(json!({ "operations": [{ "id": "op_2", "group": "f" }], "next_cursor": "more" }));
        let html = section(&view, &data).into_string();
        assert!(html.contains("<b>1+</b>") && html.contains(">Re-run 1+</a>"), "there may be more: {html}");
        assert!(html.contains("data-slots=\"No longer among the decisions shown here.\""), "{html}");
    }

    /// OPS-24: a group that is held after a failure is one decision with one card, whatever failed
    /// in it; what failed in other groups keeps its own.
    #[test]
    fn ops_24_a_held_group_and_its_failure_are_one_card() {
        let view = View::at(Language::English, Time::from_millis(1));
        let held = |operation: &str| json!({ "operation": operation, "unknown": false });
        let groups = json!([
            { "group": "h", "state": "held", "depth": 2, "held": held("op_1") },
            { "group": "old", "state": "held", "depth": 1, "held": held("op_9") },
            { "group": "p", "state": "paused", "depth": 1, "paused": { "by": "anna" } },
        ]);
        let request = json!({ "method": "POST", "path": "/pay/7" });
        let failed = json!([
            { "id": "op_1", "group": "h", "request": request }, { "id": "op_2", "group": "p" },
        ]);
        let data = NeedsData {
            unknown: Ok(json!({})),
            stopped: Ok(json!({ "groups": groups })),
            failed: Ok(json!({ "operations": failed })),
            dismissed: Vec::new(),
            stopped_count: 3,
            models: Vec::new(),
            providers: Ok(json!({})),
        };
        let html = section(&view, &data).into_string();
        assert!(html.contains("Needs you (4)") && html.matches("<li ").count() == 4, "{html}");
        let card = html.split("<li ").find(|card| card.starts_with("id=\"need-group-h\"")).unwrap();
        for part in ["POST /pay/7", "/actions/resume?subject=h", "/actions/rerun-failed?subject=h"] {
            assert!(card.contains(part), "{part}: {card}");
        }
        let card = html.split("<li ").find(|card| card.starts_with("id=\"need-group-old\"")).unwrap();
        assert!(card.contains("/actions/rerun?subject=op_9"), "it failed long ago: {card}");
        assert!(!html.contains("need-failed-h") && html.contains("need-failed-p"), "{html}");
    }

    /// OPS-24: what an operator decided is not asked for again, unless its group is held by it.
    #[test]
    fn ops_24_a_failure_that_an_operator_decided_has_no_card() {
        let view = View::at(Language::English, Time::from_millis(1));
        let decided = json!({ "message": format!("{RESOLVED_AS_FAILED}; before that: the answer was lost") });
        let failed = json!([
            { "id": "op_1", "group": "g", "fault": decided }, { "id": "op_2", "group": "h", "fault": decided },
            { "id": "op_3", "group": "i", "fault": decided }, { "id": "op_4", "group": "i" },
        ]);
        let held = json!({ "operation": "op_2", "unknown": false });
        let data = NeedsData {
            unknown: Ok(json!({})),
            stopped: Ok(json!({ "groups": [{ "group": "h", "state": "held", "depth": 1, "held": held }] })),
            failed: Ok(json!({ "operations": failed })),
            dismissed: Vec::new(),
            stopped_count: 1,
            models: Vec::new(),
            providers: Ok(json!({})),
        };
        let html = section(&view, &data).into_string();
        assert!(html.contains("Needs you (2)") && !html.contains("op_1") && !html.contains("op_3"), "{html}");
        assert!(html.contains("need-group-h") && html.contains("need-failed-i"), "{html}");
    }

    /// OPS-24: a part that cannot be read is not one in which nothing waits.
    #[test]
    fn ops_24_what_cannot_be_read_is_not_nothing() {
        let view = View::at(Language::English, Time::from_millis(1));
        let nothing = || Ok(json!({}));
        let away = Err(Error::new(crate::error::ErrorCode::StoreUnavailable, "The store is away."));
        let data = NeedsData {
            unknown: away,
            stopped: nothing(),
            failed: nothing(),
            dismissed: Vec::new(),
            stopped_count: 0,
            models: Vec::new(),
            providers: nothing(),
        };
        let html = section(&view, &data).into_string();
        assert!(html.contains("The store is away.") && !html.contains(view.words.nothing_needed), "{html}");
        let kept =
            html.contains("<ul class=\"needs\">") && html.contains("data-slots=\"This cannot be shown");
        assert!(kept, "the cards of an open page keep their places: {html}");
        let data = NeedsData { unknown: nothing(), ..data };
        assert!(section(&view, &data).into_string().contains(view.words.nothing_needed));
    }
}
