//! What needs an operator: one card for each decision, with the call, what is known of it, and the
//! buttons. Unknown outcomes come first, then groups that are stopped, then recent failures.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use maud::{Markup, html};
use serde_json::Value;
use tidegate_dispatch::KIND as GENERATION;

use super::action::Action;
use super::actions::button;
use super::groups::main_button;
use super::operation::{actions_for, call_line};
use super::parts::{count, group as group_link, operation_link};
use super::view::{View, items, number, text, time_in};
use crate::error::{Error, Result};

/// The groups with failures that are shown.
const FAILURE_CARDS: usize = 9;

/// What the API says about each.
pub(super) struct NeedsData {
    pub unknown: Result<Value>,
    pub stopped: Result<Value>,
    pub failed: Result<Value>,
    /// The number of groups that wait for an operator.
    pub stopped_count: u64,
}

/// The recent failures of one group.
struct GroupFailures<'a> {
    count: u64,
    last: &'a Value,
}

pub(super) fn section(view: &View, data: &NeedsData) -> Markup {
    let words = view.words;
    let unknown = listed(&data.unknown, "operations");
    let stopped: Vec<&Value> =
        listed(&data.stopped, "groups").iter().filter(|group| group["held"]["unknown"] != true).collect();
    let failures = by_group(listed(&data.failed, "operations"));
    let hidden_failures = failures.len().saturating_sub(FAILURE_CARDS);
    let problems =
        [&data.unknown, &data.stopped, &data.failed].into_iter().filter_map(|part| part.as_ref().err());
    let is_quiet = unknown.is_empty() && stopped.is_empty() && failures.is_empty();
    html! {
        h2 { (words.needs_you) @if data.stopped_count > 0 { " (" (count(data.stopped_count)) ")" } }
        @for problem in problems { (not_known(view, problem)) }
        @if is_quiet { p.quiet { (words.nothing_needed) } }
        @else {
            ul.needs {
                @for operation in unknown { (unknown_card(view, operation)) }
                @for group in stopped { (stopped_card(view, group)) }
                @for (group, failures) in failures.iter().take(FAILURE_CARDS) { (failure_card(view, group, failures)) }
            }
        }
        @if has_more(&data.unknown) { p { a href="/operations?state=unknown" { (words.show_all) } } }
        @if has_more(&data.stopped) { p { a href="/groups?state=stopped" { (words.show_all) } } }
        @if hidden_failures > 0 { p { (words.groups) ": +" (count(hidden_failures as u64)) " · " a href="/operations?state=failed" { (words.show_all) } } }
    }
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

/// Failures by group, each with the latest; the groups with most of them first. Generations are not
/// among them: each has a group of its own, and whoever asked for it is told why it failed.
fn by_group(failed: &[Value]) -> Vec<(&str, GroupFailures<'_>)> {
    let mut groups: BTreeMap<&str, GroupFailures<'_>> = BTreeMap::new();
    for one in failed.iter().filter(|one| one["kind"] != GENERATION) {
        groups.entry(text(one, "group")).or_insert(GroupFailures { count: 0, last: one }).count += 1;
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, failures)| Reverse(failures.count));
    groups
}

/// A call of which no one knows whether it took effect.
fn unknown_card(view: &View, operation: &Value) -> Markup {
    let (words, id) = (view.words, text(operation, "id"));
    html! {
        li id={ "need-" (id) } {
            p.what { (view.state("unknown")) " " (operation_link(id)) " " (call_line(operation)) }
            p {
                @if let Some(upstream) = operation["upstream"].as_str() { (words.upstream) " " b { (upstream) } " · " }
                (words.group) " " (group_link(text(operation, "group")))
                @if let Some(at) = time_in(operation, "created_at") { " · " (words.accepted) " " (view.when(at)) }
                " · " (words.attempt) " " (number(operation, "attempt"))
            }
            p.why { (text(&operation["fault"], "message")) }
            p.buttons { @for action in actions_for("unknown") { (button(view, *action, id)) } }
        }
    }
}

/// A group that is paused, or held after a failure.
fn stopped_card(view: &View, group: &Value) -> Markup {
    let (words, name) = (view.words, text(group, "group"));
    let since = time_in(&group["paused"], "since").or_else(|| time_in(&group["held"], "since"));
    html! {
        li id={ "need-group-" (name) } {
            p.what { (view.state(text(group, "state"))) " " (group_link(name)) }
            p {
                (words.depth) ": " b { (count(number(group, "depth"))) }
                @if let Some(at) = since { " · " (words.since) " " (view.when(at)) }
            }
            p.why { (text(&group["why"], "because")) }
            @if let (Some(why), None) = (pause_note(group), group["why"]["because"].as_str()) { p.why { (why) } }
            p.buttons { (main_button(view, group)) }
        }
    }
}

/// Who paused a group, and why, where no operation waits in it.
fn pause_note(group: &Value) -> Option<String> {
    let by = group["paused"]["by"].as_str()?;
    Some(format!("{by}: {}", text(&group["paused"], "reason")))
}

fn failure_card(view: &View, group: &str, failures: &GroupFailures<'_>) -> Markup {
    let words = view.words;
    html! {
        li id={ "need-failed-" (group) } {
            p.what { (view.state("failed")) " " (group_link(group)) " · " (words.failed_lately) ": " b { (count(failures.count)) } }
            p { (operation_link(text(failures.last, "id"))) " " (call_line(failures.last)) @if let Some(at) = time_in(failures.last, "finished_at") { " · " (view.when(at)) } }
            p.why { (text(&failures.last["fault"], "message")) }
            p.buttons {
                (button(view, Action::RerunFailed, group))
                a.button href={ "/operations?state=failed&group=" (super::view::escape(group)) } { (words.show) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn failures_are_counted_by_group() {
        let failed = [
            json!({ "id": "op_2", "group": "a" }),
            json!({ "id": "op_3", "group": "b" }),
            json!({ "id": "op_1", "group": "b" }),
            json!({ "id": "op_0", "group": "generation:x", "kind": "generation" }),
        ];
        let groups = by_group(&failed);
        let shown: Vec<_> =
            groups.iter().map(|(group, all)| (*group, all.count, text(all.last, "id"))).collect();
        assert_eq!(shown, [("b", 2, "op_3"), ("a", 1, "op_2")], "each with its newest");
    }
}
