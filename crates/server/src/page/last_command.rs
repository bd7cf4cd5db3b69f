//! The last command about the subject of an action, on a confirm step that can no longer be done:
//! someone else was faster, and this says who, what, when and why.

use maud::{Markup, html};
use serde_json::Value;
use tidegate_idempotency::IdempotencyKey;

use super::action::{ActionRequest, SubjectKind};
use super::audit::{action_of, is_done, read_about};
use super::failure_actions;
use super::view::{View, items, text, time_in};
use crate::api::local::LocalApi;

/// The commands that are searched for the last one about a subject.
const SEARCHED: usize = 100;

/// Reads the last command about the subject of an action that was carried out; `None` if it is not
/// among the last ones, or cannot be read.
pub(super) async fn read(api: &LocalApi, asked: &ActionRequest) -> Option<Value> {
    let page = match asked.action.subject_kind() {
        SubjectKind::Operation => read_about(api, &asked.subject).await,
        // What a filter finds has no name.
        SubjectKind::Operations => return None,
        _ => api.get(&format!("/v1/audit?limit={SEARCHED}")).await,
    };
    let page = page.ok()?;
    let is_it = |entry: &&Value| is_done(entry) && is_about(entry, asked);
    items(&page, "entries").iter().find(is_it).cloned()
}

/// Whether a command is about the same subject.
fn is_about(entry: &Value, asked: &ActionRequest) -> bool {
    let (Some(action), kind) = (action_of(entry), asked.action.subject_kind()) else { return false };
    let name = text(entry, "subject");
    match kind {
        // Those about an operation are read apart, and those about several of them are among them.
        SubjectKind::Operation => true,
        // A key is a secret of its callers.
        SubjectKind::Key => {
            let key = IdempotencyKey::printable(&asked.subject);
            action.subject_kind() == kind && key.is_some_and(|key| name == key.redacted())
        }
        SubjectKind::Failures => {
            action.subject_kind() == kind
                && name == failure_actions::group(&asked.subject).unwrap_or_default()
        }
        _ => action.subject_kind() == kind && name == asked.subject,
    }
}

/// Who commanded what, when and why.
pub(super) fn sentence(view: &View, entry: &Value) -> Markup {
    let words = view.words;
    html! {
        p {
            (words.last_command) ": "
            @if let Some(action) = action_of(entry) { b { (words.action(action).label) } }
            ", " (words.decided_by) " " b { (text(entry, "by")) }
            @if let Some(at) = time_in(entry, "at") { ", " (view.ago(at)) " " (words.ago) }
            @if let Some(reason) = entry["reason"].as_str() { ": " (reason) }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tidegate_core::Time;

    use super::*;
    use crate::edge::query::Query;
    use crate::page::action::Action;
    use crate::page::words::Language;

    /// OPS-24: who comes too late is told who was faster: the last command about the same subject.
    #[test]
    fn ops_24_the_last_command_is_about_the_same_subject() {
        let entry = |kind: &str, action: &str, subject: &str, detail: &str| {
            json!({
                "kind": kind, "action": action, "subject": subject, "detail": detail, "status": 200, "by": "anna",
                "reason": "seen in the shop", "at": "1970-01-01T00:01:00Z",
            })
        };
        let asked = |action, subject: &str| {
            let query = format!("subject={}", crate::page::view::escape(subject));
            ActionRequest::from_query(action, Query::parse(&query)).unwrap()
        };
        let dismissed = entry("groups", "dismiss", "g", "group g");
        let resumed = entry("groups", "resume", "g", "");
        let opened = entry("providers", "change", "fal", "open true");
        let all = entry("generations", "restore", "", "kind generation");
        let expired = entry("keys", "expire", "a4d451ec2346", "");
        for (action, subject, about) in [
            (Action::Resume, "g", &resumed),
            (Action::Dismiss, "group=g&through=x", &dismissed),
            (Action::RestoreFailures, "kind=generation", &all),
            (Action::OpenProvider, "fal", &opened),
            (Action::ExpireKey, "release", &expired),
        ] {
            let asked = asked(action, subject);
            let entries = [&dismissed, &resumed, &opened, &all, &expired];
            let found = entries.map(|one| is_about(one, &asked));
            let expected = entries.map(|one| one == about);
            assert_eq!(found, expected, "{subject}");
        }
        assert!(!is_about(&resumed, &asked(Action::Resume, "h")));
        let view = View::at(Language::English, Time::from_millis(180_000));
        let html = sentence(&view, &resumed).into_string();
        for part in ["Last command: <b>Resume</b>, by <b>anna</b>", "2 min</time> ago: seen in the shop"] {
            assert!(html.contains(part), "{part}: {html}");
        }
    }
}
