//! Actions about all operations that a filter finds: the filter in the URL of the confirm step, how
//! many it finds, and the sentence that says what will happen to them.

use axum::http::Method;
use maud::{Markup, html};
use serde_json::{Map, Value, json};
use tidegate_core::{FaultClass, Time};
use tidegate_dispatch::KIND as GENERATION;

use super::action::{Action, ActionRequest};
use super::actions::button;
use super::parts::count;
use super::view::{View, escape, number, text};
use super::words::Language;
use crate::api::local::{ApiCommand, LocalApi};
use crate::edge::auth::Caller;
use crate::edge::query::Query;
use crate::error::Result;
use crate::wire::outcome_filter::OUTCOME_PARTS;
use crate::wire::time::Timestamp;

/// Under these names a preview says how many calls may have taken effect, and how many generations
/// there are.
pub(super) const DOUBTFUL: &str = "doubtful";
pub(super) const GENERATIONS: &str = "generations";
/// The same for how many failed in a way that is no passing one.
pub(super) const LASTING: &str = "lasting";

/// The parts that keep an action to what the operator has seen.
const BOUNDS: &[&str] = &["created_before", "finished_before"];

/// The parts of a filter, by the names of the API, past those about faults and ends.
const PARTS: [&str; 6] = ["group", "state", "upstream", "kind", "created_after", "created_before"];

/// The filter in the subject of an action, as the API reads it.
pub(super) fn filter(subject: &str) -> Result<Map<String, Value>> {
    let mut query = Query::parse(subject);
    // It comes from a link of a page, which has no flags.
    let names = PARTS.into_iter().chain(OUTCOME_PARTS);
    let filter = names.filter_map(|name| Some((name.to_owned(), query.take(name)?.into()))).collect();
    query.finish()?;
    Ok(filter)
}

/// The call of the API for an action about all that a filter finds, and if it is about unknown
/// outcomes, that was unknown when it was counted.
pub(super) fn command(action: Action, subject: &str, counted_at: Option<&str>) -> Result<ApiCommand> {
    let mut body = filter(subject)?;
    let (verb, outcome) = match action {
        Action::RerunAll => ("rerun", None),
        Action::AllHappened => ("resolve", Some("succeeded")),
        Action::NoneHappened => ("resolve", Some("failed")),
        Action::SendAllAgain => ("resolve", Some("repeat")),
        _ => ("cancel", None),
    };
    if let Some(outcome) = outcome {
        body.insert("as".to_owned(), outcome.into());
        if let Some(at) = counted_at {
            body.insert("unknown_before".to_owned(), at.into());
        }
    }
    let target = format!("/v1/operations/{verb}");
    Ok(ApiCommand { method: Method::POST, target, body: Value::Object(body) })
}

/// Counts what an action would change.
pub(super) async fn read_preview(api: &LocalApi, asked: &ActionRequest) -> Result<Value> {
    let mut command = command(asked.action, &asked.subject, None)?;
    command.body["dry_run"] = json!(true);
    let mut preview = api.send(&Caller::named("page"), "", &command).await?;
    if asked.action == Action::RerunAll {
        // What would be done twice is asked for apart.
        let (doubtful, generations) = (json!({ "may_have_happened": true }), json!({ "kind": GENERATION }));
        for (name, only) in [(DOUBTFUL, doubtful), (GENERATIONS, generations)] {
            preview[name] = count_only(api, &command, &only).await?.into();
        }
        preview[LASTING] = count_lasting(api, &command, &preview).await?.into();
    }
    Ok(preview)
}

/// How many of those that a command would run again would most likely fail in the same way; zero if
/// there are too many to count them all.
async fn count_lasting(api: &LocalApi, command: &ApiCommand, preview: &Value) -> Result<u64> {
    if preview["more"] == true {
        return Ok(0);
    }
    let mut lasting = 0;
    for class in FaultClass::ALL.into_iter().filter(|class| !class.is_repeatable()) {
        lasting += count_only(api, command, &json!({ "fault_class": class.as_str() })).await?;
    }
    Ok(lasting)
}

/// How many of those that a command would change are also of this sort.
async fn count_only(api: &LocalApi, command: &ApiCommand, only: &Value) -> Result<u64> {
    let mut body = command.body.clone();
    for (name, value) in only.as_object().into_iter().flatten() {
        if body.get(name).is_some_and(|asked| asked != value) {
            return Ok(0);
        }
        body[name] = value.clone();
    }
    let command = ApiCommand { method: command.method.clone(), target: command.target.clone(), body };
    let found = api.send(&Caller::named("page"), "", &command).await?;
    Ok(number(&found, "matched"))
}

/// The same filter, only for what was accepted before now, and if it is run again, had ended: the
/// action changes what the operator has seen, and nothing that arrives or fails while the confirm
/// step is open.
pub(super) fn until_now(action: Action, subject: &str, now: Time) -> String {
    let mut subject = subject.to_owned();
    let ends = if action == Action::RerunAll { BOUNDS } else { &BOUNDS[..1] };
    for name in ends {
        if !subject.split('&').any(|pair| pair.split('=').next() == Some(name)) {
            subject = format!("{subject}&{name}={}", escape(&after(now)));
        }
    }
    subject
}

/// A filter without what `until_now` adds.
pub(super) fn without_bounds(subject: &str) -> String {
    let is_bound = |pair: &&str| pair.split('=').next().is_some_and(|name| BOUNDS.contains(&name));
    subject.split('&').filter(|pair| !is_bound(pair)).collect::<Vec<_>>().join("&")
}

/// The time before which everything is that an operator sees now. Times on the wire have
/// milliseconds: what was accepted within this one is included.
pub(super) fn after(now: Time) -> String {
    Timestamp(Time::from_millis(now.as_millis() + 1)).to_string()
}

/// The states of operations, as an action about them is named.
pub(super) const fn actions_for(state: &str) -> &'static [Action] {
    match state.as_bytes() {
        b"unknown" => &[Action::AllHappened, Action::NoneHappened, Action::SendAllAgain],
        b"failed" | b"canceled" => &[Action::RerunAll],
        b"queued" | b"waiting" | b"running" => &[Action::CancelAll],
        _ => &[],
    }
}

/// The buttons below a list with this state and these other parts of a filter.
pub(super) fn buttons(view: &View, state: &str, others: &str) -> Markup {
    let actions = actions_for(state);
    html! {
        @if !actions.is_empty() {
            p.buttons { @for action in actions { (button(view, *action, &format!("state={state}{others}"))) } }
        }
    }
}

/// What a confirm step asks, such as "Cancel 17 waiting operations of group shop:1".
pub(super) fn sentence(view: &View, asked: &ActionRequest, preview: &Value) -> String {
    let filter = Value::Object(filter(&asked.subject).unwrap_or_default());
    let (label, found) = (view.words.action(asked.action).label, found(preview));
    let state = view.words.state(text(&filter, "state"));
    let (intro, known) = match view.language {
        Language::English => {
            let noun = if number(preview, "matched") == 1 { "operation" } else { "operations" };
            let names = [("group", " of group "), ("upstream", " for "), ("kind", " of kind ")];
            let verb = match asked.action {
                Action::CancelAll => "Cancel".to_owned(),
                Action::RerunAll => "Re-run".to_owned(),
                _ => format!("{label}:"),
            };
            (format!("{verb} {found} {state} {noun}"), names)
        }
        Language::Russian => {
            let names = [("group", ", группа "), ("upstream", ", сервис "), ("kind", ", вид ")];
            (format!("{label}: {found} ({state})"), names)
        }
    };
    let parts =
        known.into_iter().filter_map(|(name, word)| Some(format!("{word}{}", filter[name].as_str()?)));
    let quoted = |name: &str| Some(format!(", \"{}\"", filter[name].as_str()?));
    let faults: String = ["error", "fault_message"].into_iter().filter_map(quoted).collect();
    format!("{intro}{}{faults}", parts.collect::<String>())
}

/// How many it would change at once.
fn found(preview: &Value) -> String {
    let more = if preview["more"] == true { "+" } else { "" };
    format!("{}{more}", count(number(preview, "matched")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_is_a_filter_and_stays_one() {
        let asked = "state=waiting&group=a%26b";
        let subject = until_now(Action::CancelAll, asked, Time::from_millis(7));
        assert_eq!(subject, "state=waiting&group=a%26b&created_before=1970-01-01T00%3A00%3A00.008Z");
        assert_eq!(until_now(Action::CancelAll, &subject, Time::from_millis(9)), subject);
        let ended = until_now(Action::RerunAll, &subject, Time::from_millis(9));
        assert_eq!(ended, format!("{subject}&finished_before=1970-01-01T00%3A00%3A00.010Z"));
        assert_eq!(without_bounds(&ended), asked);
        let command = command(Action::CancelAll, &subject, None).unwrap();
        let body =
            json!({ "state": "waiting", "group": "a&b", "created_before": "1970-01-01T00:00:00.008Z" });
        assert_eq!((&*command.target, command.body), ("/v1/operations/cancel", body));
        assert_eq!(filter("sate=waiting").unwrap_err().field.as_deref(), Some("sate"));
    }
}
