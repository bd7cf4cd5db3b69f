//! The cards of what needs an operator: each begins with why, and ends with the buttons that decide
//! it.

use maud::{Markup, html};
use serde_json::Value;

use super::failures::Failures;
use crate::page::action::Action;
use crate::page::actions::button;
use crate::page::groups::main_button;
use crate::page::operation::{actions_for, call_line};
use crate::page::parts::{count, group as group_link, operation_link};
use crate::page::view::{View, number, text, time_in};

/// A call of which no one knows whether it took effect, and how many wait behind it.
pub(super) fn unknown_card(view: &View, operation: &Value, stopped: &[Value]) -> Markup {
    let (words, id, name) = (view.words, text(operation, "id"), text(operation, "group"));
    let group = stopped.iter().find(|group| text(group, "group") == name);
    let since = group.and_then(|group| time_in(&group["held"], "since"));
    html! {
        li id={ "need-" (id) } {
            p.why { (view.state("unknown")) " " (text(&operation["fault"], "message")) }
            p { (operation_link(id)) " " (call_line(operation)) }
            p {
                @if let Some(upstream) = operation["upstream"].as_str() { (words.upstream) " " b { (upstream) } " · " }
                (words.group) " " (group_link(name))
                @if let Some(group) = group { " · " (words.depth) ": " b { (count(number(group, "depth"))) } }
                " · " (words.attempt) " " (number(operation, "attempt")) " · "
                @if let Some(at) = since { (words.state("unknown")) " " (view.lasting(at)) }
                @else if let Some(at) = time_in(operation, "created_at") { (words.accepted) " " (view.ago(at)) " " (words.ago) }
            }
            p.buttons { @for action in actions_for("unknown") { (button(view, *action, id)) } }
        }
    }
}

/// A group that is paused, or held after a failure, with what failed in it lately. Since when is in
/// the sentence that says why.
pub(super) fn stopped_card(view: &View, group: &Value, failures: Option<&Failures<'_>>) -> Markup {
    let (words, name) = (view.words, text(group, "group"));
    let held = group["held"]["operation"].as_str();
    html! {
        li id={ "need-group-" (name) } {
            p.why { (view.state(text(group, "state"))) " " (text(&group["why"], "because")) }
            p { (words.group) " " (group_link(name)) " · " (words.depth) ": " b { (count(number(group, "depth"))) } }
            @if let Some(id) = held {
                p {
                    (operation_link(id)) " "
                    @if let Some(last) = failures.map(|all| all.last).filter(|last| text(last, "id") == id) { (call_line(last)) }
                    @if let Some(failures) = failures { " · " (words.failed_lately) ": " b { (count(failures.count)) } }
                }
            }
            p.buttons {
                (main_button(view, group))
                @match (failures, held) {
                    (Some(_), _) => (button(view, Action::RerunFailed, name)),
                    (None, Some(id)) => (button(view, Action::Rerun, id)),
                    (None, None) => "",
                }
            }
        }
    }
}
