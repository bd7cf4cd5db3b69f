//! Actions about the recent failures of a source: the source and the time in the URL of the confirm
//! step, what that step shows, and the call of the API. Which failures there are is not read here.

use axum::http::Method;
use maud::{Markup, html};
use serde_json::{Map, Value, json};
use tidegate_core::Time;
use tidegate_dispatch::KIND as GENERATION;

use super::action::{Action, ActionRequest};
use super::view::{View, escape, text, time_in};
use crate::api::local::{ApiCommand, LocalApi};
use crate::dismissals::{self, Dismissal, FailureSource};
use crate::edge::query::{Query, bad_parameter};
use crate::error::Result;
use crate::wire::time::Timestamp;

/// What a subject names: a group, or the kind of generations, and until when its failures were
/// shown.
struct FailureSubject {
    group: Option<String>,
    through: Option<String>,
}

impl FailureSubject {
    fn parse(subject: &str) -> Result<Self> {
        let mut query = Query::parse(subject);
        let [group, kind, through] = ["group", "kind", "through"].map(|name| query.take(name));
        query.finish()?;
        if group.is_some() == kind.is_some() || kind.is_some_and(|kind| kind != GENERATION) {
            let problem = format!("must name a group, or the kind {GENERATION}, and not both");
            return Err(bad_parameter("subject", &problem));
        }
        Ok(Self { group, through })
    }

    fn source(&self) -> FailureSource<'_> {
        self.group.as_deref().map_or(FailureSource::Generations, FailureSource::Group)
    }
}

/// The subject of an action about what failed in a source by this time.
pub(super) fn subject(source: FailureSource<'_>, through: Time) -> String {
    format!("{}&through={}", filter(source), escape(&Timestamp(through).to_string()))
}

/// The part of a filter that finds the operations of a source.
pub(super) fn filter(source: FailureSource<'_>) -> String {
    match source {
        FailureSource::Generations => format!("kind={GENERATION}"),
        FailureSource::Group(group) => format!("group={}", escape(group)),
    }
}

/// The page with what failed in the source of a subject.
pub(super) fn page(subject: &str) -> String {
    let parsed = FailureSubject::parse(subject);
    let filter = parsed.map_or_else(|_| String::new(), |parsed| format!("&{}", filter(parsed.source())));
    format!("/operations?state=failed{filter}")
}

/// The call of the API for an action about this subject.
pub(super) fn command(action: Action, subject: &str, reason: &str) -> Result<ApiCommand> {
    let FailureSubject { group, through } = FailureSubject::parse(subject)?;
    let mut body = Map::new();
    match group {
        Some(group) => body.insert("group".to_owned(), group.into()),
        None => body.insert("kind".to_owned(), GENERATION.into()),
    };
    let verb = if action == Action::RestoreFailures { "restore" } else { "dismiss" };
    if action == Action::Dismiss {
        body.insert("through".to_owned(), through.into());
        body.insert("reason".to_owned(), reason.into());
    }
    body.insert("strict".to_owned(), true.into());
    let target = format!("/v1/failures/{verb}");
    Ok(ApiCommand { method: Method::POST, target, body: Value::Object(body) })
}

/// Reads whether the failures of a subject are dismissed, and until when they were shown.
pub(super) async fn read_preview(api: &LocalApi, asked: &ActionRequest) -> Result<Value> {
    let subject = FailureSubject::parse(&asked.subject)?;
    if asked.action == Action::Dismiss && subject.through.is_none() {
        return Err(bad_parameter("subject", "must say until when, as through=TIME"));
    }
    let mut dismissals = dismissals::read(&*api.server.store, &[subject.source()]).await;
    let dismissed = dismissals.pop().flatten().map(|dismissal| {
        let Dismissal { through, by, at, reason } = dismissal;
        json!({ "through": Timestamp(through), "by": by, "at": Timestamp(at), "reason": reason })
    });
    Ok(json!({ "through": subject.through, "dismissed": dismissed }))
}

/// Whether the action changes anything.
pub(super) fn is_possible(action: Action, preview: &Value) -> bool {
    let dismissed = &preview["dismissed"];
    match action {
        Action::Dismiss => time_in(dismissed, "through") < time_in(preview, "through"),
        _ => dismissed.is_object(),
    }
}

/// The group of a subject, if it is about one.
pub(super) fn group(subject: &str) -> Option<String> {
    FailureSubject::parse(subject).ok()?.group
}

/// The source of a subject, in words.
pub(super) fn name(view: &View, subject: &str) -> String {
    group(subject).unwrap_or_else(|| view.language.words().generations.to_owned())
}

/// What a confirm step shows: until when failures are dismissed, who did so before, and a link to
/// them.
pub(super) fn show_preview(view: &View, asked: &ActionRequest, preview: &Value) -> Markup {
    let (words, dismissed) = (view.words, &preview["dismissed"]);
    let through = time_in(preview, "through").filter(|_| asked.action == Action::Dismiss);
    html! {
        @if let Some(at) = through { p { (words.failed_by) " " (view.ago(at)) " " (words.ago) "." } }
        @if let Some(at) = time_in(dismissed, "at") {
            p.quiet {
                (words.dismissed_by) " " b { (text(dismissed, "by")) } ", " (view.ago(at)) " " (words.ago)
                @if let Some(reason) = dismissed["reason"].as_str() { ": " (reason) }
            }
        }
        p { a href=(page(&asked.subject)) { (words.show) } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_names_a_source_and_a_time() {
        let at = Time::from_millis(7);
        let source = FailureSource::Group("a&b/c");
        let shop = subject(source, at);
        assert_eq!(shop, "group=a%26b%2Fc&through=1970-01-01T00%3A00%3A00.007Z");
        assert_eq!(FailureSubject::parse(&shop).unwrap().source(), source);
        assert_eq!(page(&shop), "/operations?state=failed&group=a%26b%2Fc");
        let all = subject(FailureSource::Generations, at);
        assert_eq!(page(&all), "/operations?state=failed&kind=generation");
        let command = |action| command(action, &all, "seen").unwrap();
        let (dismiss, restore) = (command(Action::Dismiss), command(Action::RestoreFailures));
        let body = json!({ "kind": "generation", "through": "1970-01-01T00:00:00.007Z", "reason": "seen", "strict": true });
        assert_eq!((&*dismiss.target, dismiss.body), ("/v1/failures/dismiss", body));
        let body = json!({ "kind": "generation", "strict": true });
        assert_eq!((&*restore.target, restore.body), ("/v1/failures/restore", body));
    }

    #[test]
    fn a_subject_without_one_source_is_refused() {
        for (wrong, field) in [
            ("through=x", "subject"),
            ("group=g&kind=generation", "subject"),
            ("kind=http", "subject"),
            ("group=", "group"),
            ("group=g&state=failed", "state"),
        ] {
            let error = FailureSubject::parse(wrong).err().and_then(|error| error.field);
            assert_eq!(error.as_deref(), Some(field), "{wrong}");
        }
    }
}
