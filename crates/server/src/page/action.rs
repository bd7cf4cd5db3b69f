//! What an operator can do from a page: the name of each action in the URL, what it is about, and
//! the call of the API that does it.

use axum::http::Method;
use serde_json::{Map, Value, json};

use super::bulk;
use super::failure_actions;
use super::view::{escape, items};
use crate::api::local::ApiCommand;
use crate::edge::query::{Query, bad_parameter};
use crate::error::{Error, ErrorCode, Result};
use crate::wire::object::truncate_name;

/// An action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Pause,
    Resume,
    RerunFailed,
    Cancel,
    Rerun,
    Happened,
    DidNotHappen,
    SendAgain,
    OpenLimit,
    ResetLimit,
    SetLimit,
    ReleaseKey,
    ExpireKey,
    CompleteKey,
    CancelAll,
    RerunAll,
    AllHappened,
    NoneHappened,
    SendAllAgain,
    OpenProvider,
    Dismiss,
    RestoreFailures,
}

/// The most changed operations that a page names after an action about several.
const NAMED_MAX: usize = 20;

/// What an action is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SubjectKind {
    Operation,
    Group,
    Limit,
    Key,
    Provider,
    /// All operations that a filter finds.
    Operations,
    /// The recent failures of a group, or of all generations.
    Failures,
}

/// The number of actions.
pub(super) const ACTION_COUNT: usize = 22;

const ACTIONS: [(&str, Action, SubjectKind); ACTION_COUNT] = [
    ("pause", Action::Pause, SubjectKind::Group),
    ("resume", Action::Resume, SubjectKind::Group),
    ("rerun-failed", Action::RerunFailed, SubjectKind::Group),
    ("cancel", Action::Cancel, SubjectKind::Operation),
    ("rerun", Action::Rerun, SubjectKind::Operation),
    ("happened", Action::Happened, SubjectKind::Operation),
    ("did-not-happen", Action::DidNotHappen, SubjectKind::Operation),
    ("send-again", Action::SendAgain, SubjectKind::Operation),
    ("open-limit", Action::OpenLimit, SubjectKind::Limit),
    ("reset-limit", Action::ResetLimit, SubjectKind::Limit),
    ("set-limit", Action::SetLimit, SubjectKind::Limit),
    ("release-key", Action::ReleaseKey, SubjectKind::Key),
    ("expire-key", Action::ExpireKey, SubjectKind::Key),
    ("complete-key", Action::CompleteKey, SubjectKind::Key),
    ("cancel-all", Action::CancelAll, SubjectKind::Operations),
    ("rerun-all", Action::RerunAll, SubjectKind::Operations),
    ("all-happened", Action::AllHappened, SubjectKind::Operations),
    ("none-happened", Action::NoneHappened, SubjectKind::Operations),
    ("send-all-again", Action::SendAllAgain, SubjectKind::Operations),
    ("open-provider", Action::OpenProvider, SubjectKind::Provider),
    ("dismiss", Action::Dismiss, SubjectKind::Failures),
    ("restore", Action::RestoreFailures, SubjectKind::Failures),
];

/// The figures of a limit that an operator may set, and the least of each that a form offers. The
/// words about them are in this order.
pub(super) const FIGURES: [(&str, &str); 4] =
    [("capacity", "1"), ("refill_per_s", "0.000001"), ("period_ms", "1"), ("at_once", "1")];

impl Action {
    /// The action of this name in a URL.
    pub(super) fn parse(name: &str) -> Result<Self> {
        let found = ACTIONS.iter().find(|(known, ..)| *known == name).map(|(_, action, _)| *action);
        found.ok_or_else(|| {
            let message = format!("There is no action {:?}.", truncate_name(name));
            Error::new(ErrorCode::NoRoute, message)
        })
    }

    /// Its name in a URL.
    pub(super) const fn name(self) -> &'static str {
        ACTIONS[self as usize].0
    }

    pub(super) const fn subject_kind(self) -> SubjectKind {
        ACTIONS[self as usize].2
    }

    /// The URL of its confirm step.
    pub(super) fn href(self, subject: &str) -> String {
        format!("/actions/{}?subject={}", self.name(), escape(subject))
    }

    /// The same for a key, which is named by the request that used it.
    pub(super) fn key_href(self, key: &KeyParts<'_>) -> String {
        let KeyParts { key, scope, method, path } = key;
        let [scope, method, path] = [scope, method, path].map(|part| escape(part));
        format!("{}&scope={scope}&method={method}&path={path}", self.href(key))
    }
}

/// The name of a key.
pub(super) struct KeyParts<'a> {
    pub key: &'a str,
    pub scope: &'a str,
    pub method: &'a str,
    pub path: &'a str,
}

/// An action as it is asked for: in the URL of its confirm step, and in the form.
#[derive(Clone, Debug)]
pub(super) struct ActionRequest {
    pub action: Action,
    pub subject: String,
    /// The rest of a key's name.
    pub scope: Option<String>,
    pub method: Option<String>,
    pub path: Option<String>,
    /// What the operator has seen: the attempt of an operation of unknown outcome, the time at
    /// which failures, or several operations, were seen, or that at which the use of a key began.
    pub seen: Option<String>,
    /// What only the form has.
    pub form: ActionForm,
}

/// The fields that an operator fills in, and the token.
#[derive(Clone, Debug, Default)]
pub(super) struct ActionForm {
    pub token: String,
    pub reason: String,
    /// The figures of a limit, by their place in [`FIGURES`].
    figures: [Option<String>; FIGURES.len()],
    /// The response of a key.
    pub status: Option<String>,
    pub body: Option<String>,
}

impl ActionForm {
    /// What was filled in for a figure.
    pub(super) fn figure(&self, name: &str) -> Option<&str> {
        let place = FIGURES.iter().position(|(known, _)| *known == name)?;
        self.figures[place].as_deref()
    }
}

impl ActionRequest {
    /// Reads the URL of a confirm step.
    pub(super) fn from_query(action: Action, mut query: Query) -> Result<Self> {
        let read = Self::read(action, &mut query);
        query.finish()?;
        read
    }

    /// Reads a form.
    pub(super) fn from_form(action: Action, form: &str) -> Result<Self> {
        let mut query = Query::parse(form);
        let read = Self::read(action, &mut query);
        let form = ActionForm {
            token: query.take("token").unwrap_or_default(),
            reason: query.take("reason").unwrap_or_default(),
            figures: FIGURES.map(|(name, _)| query.take(name)),
            status: query.take("status"),
            body: query.take("body"),
        };
        query.finish()?;
        Ok(Self { form, ..read? })
    }

    fn read(action: Action, query: &mut Query) -> Result<Self> {
        let subject = query.take("subject");
        let [scope, method, path, seen] = ["scope", "method", "path", "seen"].map(|name| query.take(name));
        let subject = subject.ok_or_else(|| bad_parameter("subject", "is missing"))?;
        Ok(Self { action, subject, scope, method, path, seen, form: ActionForm::default() })
    }

    /// What a confirmation is about: all that identifies the action, its subject, and what was seen
    /// of it.
    pub(super) fn identity(&self) -> String {
        let parts = [&self.scope, &self.method, &self.path, &self.seen]
            .map(|part| part.as_deref().unwrap_or_default());
        let parts = [self.action.name(), &self.subject].into_iter().chain(parts).map(escape);
        parts.collect::<Vec<_>>().join(" ")
    }

    /// Where the API shows the subject.
    pub(super) fn subject_target(&self) -> String {
        let name = escape(&self.subject);
        match self.action.subject_kind() {
            SubjectKind::Operation => format!("/v1/operations/{name}"),
            SubjectKind::Group => format!("/v1/groups/{name}"),
            SubjectKind::Limit => {
                format!("/v1/limits/{}", self.subject.split('/').map(escape).collect::<Vec<_>>().join("/"))
            }
            SubjectKind::Key => format!("/v1/keys/{name}{}", self.key_query()),
            SubjectKind::Provider => format!("/v1/providers/{name}"),
            SubjectKind::Operations => format!("/v1/operations?{}", self.subject),
            SubjectKind::Failures => format!("/v1{}", failure_actions::page(&self.subject)),
        }
    }

    /// The page that shows the subject.
    pub(super) fn subject_page(&self) -> String {
        let name = escape(&self.subject);
        match self.action.subject_kind() {
            SubjectKind::Operation => format!("/operations/{name}"),
            SubjectKind::Group => format!("/groups/{name}"),
            SubjectKind::Limit => "/limits".to_owned(),
            SubjectKind::Key => "/keys".to_owned(),
            SubjectKind::Provider => "/providers".to_owned(),
            SubjectKind::Operations => format!("/operations?{}", self.subject),
            SubjectKind::Failures => failure_actions::page(&self.subject),
        }
    }

    /// The page that is shown once it is done, with the API's answer. A list then has what came in
    /// the meantime too.
    pub(super) fn done_page(&self, done: &Value) -> String {
        let mut page = self.subject_page();
        if self.action.subject_kind() == SubjectKind::Operations {
            page = format!("/operations?{}", bulk::without_bounds(&self.subject));
        }
        if self.action.subject_kind() == SubjectKind::Limit {
            page = format!("{page}?limit={}", escape(&self.subject));
        }
        let count = done["rerun"].as_u64().or_else(|| done["changed"].as_u64());
        let count = count.map_or_else(String::new, |count| format!("&count={count}"));
        let ids: Vec<&str> = items(done, "ids").iter().filter_map(Value::as_str).take(NAMED_MAX).collect();
        let ids = if ids.is_empty() { String::new() } else { format!("ids={}&", ids.join(",")) };
        let separator = if page.contains('?') { '&' } else { '?' };
        format!("{page}{separator}{ids}done={}{count}", self.action.name())
    }

    fn key_query(&self) -> String {
        let parts = [("scope", &self.scope), ("method", &self.method), ("path", &self.path)];
        let pairs =
            parts.into_iter().filter_map(|(name, part)| Some(format!("{name}={}", escape(part.as_deref()?))));
        let pairs: Vec<String> = pairs.collect();
        if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) }
    }

    /// The same with the use of the key that was seen: it may be used again meanwhile.
    fn seen_key_query(&self) -> String {
        let query = self.key_query();
        let separator = if query.is_empty() { '?' } else { '&' };
        let seen = self.seen.as_deref().map(|seen| format!("{separator}created_at={}", escape(seen)));
        query + &seen.unwrap_or_default()
    }

    /// The call of the API that does it, by this operator.
    pub(super) fn command(&self, by: &str) -> Result<ApiCommand> {
        let name = escape(&self.subject);
        let post = |target: String, body: Value| ApiCommand { method: Method::POST, target, body };
        let operation = |verb: &str, body| post(format!("/v1/operations/{name}/{verb}"), body);
        let group = |verb: &str, body| post(format!("/v1/groups/{name}/{verb}"), body);
        let key = |verb: &str, body| post(format!("/v1/keys/{name}/{verb}{}", self.seen_key_query()), body);
        let attempt = self.seen.as_deref().and_then(|seen| seen.parse::<u16>().ok());
        let resolve = |outcome| operation("resolve", json!({ "as": outcome, "attempt": attempt }));
        let limit = |body| ApiCommand { method: Method::PUT, target: self.subject_target(), body };
        Ok(match self.action {
            Action::Pause => group("pause", json!({ "by": by, "reason": self.form.reason, "strict": true })),
            Action::Resume => group("resume", json!({ "strict": true })),
            Action::RerunFailed => group("rerun", json!({ "finished_before": self.seen })),
            Action::Cancel => operation("cancel", Value::Null),
            Action::Rerun => operation("rerun", json!({ "finished_before": self.seen })),
            Action::Happened => resolve("succeeded"),
            Action::DidNotHappen => resolve("failed"),
            Action::SendAgain => resolve("repeat"),
            Action::OpenLimit => limit(json!({ "open": true, "strict": true })),
            Action::ResetLimit => limit(json!({ "reset": true })),
            Action::SetLimit => limit(self.figures()?),
            Action::ReleaseKey => key("release", Value::Null),
            Action::ExpireKey => key("expire", Value::Null),
            Action::CompleteKey => key("complete", self.response()?),
            Action::OpenProvider => {
                let target = self.subject_target();
                ApiCommand { method: Method::PATCH, target, body: json!({ "open": true }) }
            }
            Action::CancelAll
            | Action::RerunAll
            | Action::AllHappened
            | Action::NoneHappened
            | Action::SendAllAgain => bulk::command(self.action, &self.subject, self.seen.as_deref())?,
            Action::Dismiss | Action::RestoreFailures => {
                failure_actions::command(self.action, &self.subject, &self.form.reason)?
            }
        })
    }

    fn figures(&self) -> Result<Value> {
        let mut figures = Map::new();
        for ((name, _), text) in FIGURES.iter().zip(&self.form.figures) {
            let Some(text) = text else { continue };
            let number: Value = serde_json::from_str(text.trim()).unwrap_or_default();
            if !number.is_number() {
                return Err(bad_parameter(name, "must be a number"));
            }
            figures.insert((*name).to_owned(), number);
        }
        Ok(Value::Object(figures))
    }

    fn response(&self) -> Result<Value> {
        let status = self.form.status.as_deref().and_then(|status| status.trim().parse::<u16>().ok());
        let status = status.ok_or_else(|| bad_parameter("status", "must be an HTTP status"))?;
        let body = self.form.body.as_deref().unwrap_or_default();
        let body = serde_json::from_str(body).unwrap_or_else(|_| Value::from(body));
        Ok(json!({ "status": status, "body": body }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_action_has_its_name_and_call() {
        for (place, (name, action, _)) in ACTIONS.iter().enumerate() {
            assert_eq!(
                (*action as usize, Action::parse(name).unwrap(), action.name()),
                (place, *action, *name)
            );
            let name = match action.subject_kind() {
                SubjectKind::Operations | SubjectKind::Failures => "group%3Da%252Fb",
                _ => "a%2Fb",
            };
            let form = format!(
                "subject={name}&reason=why&capacity=4&refill_per_s=0.5&status=201&body=%7B%22a%22%3A1%7D"
            );
            let request = ActionRequest::from_form(*action, &form).unwrap();
            let command = request.command("anna").unwrap();
            assert!(command.target.starts_with("/v1/"), "{name}: {command:?}");
            let slashes = usize::from(action.subject_kind() == SubjectKind::Limit);
            assert_eq!(command.target.matches("a/b").count(), slashes, "{name}: {command:?}");
        }
        assert_eq!(Action::parse("delete").unwrap_err().code, ErrorCode::NoRoute);
    }

    #[test]
    fn a_form_is_read_strictly() {
        let request = ActionRequest::from_form(Action::SetLimit, "subject=a&at_once=3").unwrap();
        assert_eq!(request.command("anna").unwrap().body, json!({ "at_once": 3 }));
        for (action, form, field) in [
            (Action::Rerun, "reason=x", "subject"),
            (Action::Rerun, "subject=a&x=1", "x"),
            (Action::SetLimit, "subject=a&at_once=many", "at_once"),
            (Action::CompleteKey, "subject=a&body=x", "status"),
        ] {
            let error = ActionRequest::from_form(action, form).and_then(|request| request.command("anna"));
            assert_eq!(error.unwrap_err().field.as_deref(), Some(field), "{form}");
        }
    }

    #[test]
    fn a_confirmation_is_about_all_parts_of_a_name() {
        let read = |form| ActionRequest::from_form(Action::ReleaseKey, form).unwrap().identity();
        assert_ne!(read("subject=k&scope=a"), read("subject=k&scope=b"));
        assert_ne!(read("subject=k+a"), read("subject=k&scope=a"));
        assert_ne!(read("subject=k&seen=1"), read("subject=k&seen=2"));
    }

    /// What an operator decides is about the attempt that they have seen, or about what was unknown
    /// by then.
    #[test]
    fn a_decision_is_about_what_was_seen() {
        let body = |action, form: &str| {
            let asked = ActionRequest::from_form(action, form).unwrap();
            asked.command("anna").unwrap().body
        };
        let decided = body(Action::DidNotHappen, "subject=op_1&seen=2");
        assert_eq!(decided, json!({ "as": "failed", "attempt": 2 }));
        let at = "2031-05-06T07:08:09.010Z";
        let decided = body(Action::AllHappened, &format!("subject=upstream%3Decho&seen={at}"));
        assert_eq!(decided, json!({ "as": "succeeded", "upstream": "echo", "unknown_before": at }));
        assert_eq!(body(Action::RerunAll, "subject=upstream%3Decho"), json!({ "upstream": "echo" }));
    }
}
