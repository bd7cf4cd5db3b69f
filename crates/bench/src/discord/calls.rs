//! The calls that lead from an empty guild to a template, as in its plan: the dependencies of each,
//! and the limit it counts against. Objects that no call has created yet are named, as in a plan.

use std::collections::HashMap;

use axum::http::Method;
use serde::Serialize;
use serde_json::{Value, json};
use tidegate_discord::Id;
use tidegate_discord::guild::Guild;
use tidegate_discord::journal::GuildJournal;
use tidegate_discord::plan::{Action, CallBody, ObjectRef, Options, Plan, PlanStep};
use tidegate_discord::template::Template;
use tidegate_sim::discord::route::RouteTarget;

/// One call, as a peer receives it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Call {
    method: &'static str,
    path: String,
    body: Value,
    /// The name of the object it creates.
    makes: Option<String>,
    /// The names of the objects that must exist before.
    needs: Vec<String>,
    /// Its method and route, as the simulator counts it.
    #[serde(skip)]
    pub route: String,
    /// The limit of its route, and the resource it is counted by.
    #[serde(skip)]
    pub limit: Option<(&'static str, String)>,
    /// The indices of the calls that must come before.
    #[serde(skip)]
    pub after: Vec<usize>,
}

impl Call {
    pub(super) const fn makes_something(&self) -> bool {
        self.makes.is_some()
    }
}

/// Returns the calls, each after those that it needs.
pub(super) fn plan_calls(template: &Template, guild: Id) -> Result<Vec<Call>, String> {
    let everyone = json!([{ "id": guild, "name": "@everyone", "permissions": "0" }]).to_string();
    let empty = Guild::decode(guild, everyone.as_bytes(), b"[]").map_err(|error| error.to_string())?;
    let plan = Plan::make(template, &empty, &GuildJournal::default(), Options::default());
    if let Some(conflict) = plan.conflicts.first() {
        return Err(conflict.to_string());
    }
    let (mut calls, mut made) = (Vec::new(), HashMap::new());
    for step in plan.writes() {
        let call = call(step, guild, &made)?;
        if let Some(name) = &call.makes {
            made.insert(name.clone(), calls.len());
        }
        calls.push(call);
    }
    if calls.is_empty() {
        return Err("the template makes nothing".into());
    }
    Ok(calls)
}

fn call(step: &PlanStep, guild: Id, made: &HashMap<String, usize>) -> Result<Call, String> {
    let call = step.call.as_ref().ok_or("a step that writes has no call")?;
    let (method, template) = (call.route.method().as_str(), call.route.template());
    let channel = call.route.channel().map(|handle| handle.describe());
    let path = template
        .replace("{guild}", &guild.to_string())
        .replace("{channel}", channel.as_deref().unwrap_or("{channel}"));
    let body = match &call.body {
        CallBody::Roles(roles) => Value::Array(places(roles.iter().rev(), 1).collect()),
        CallBody::Channels(lists) => {
            Value::Array(lists.iter().flat_map(|list| places(list.iter(), 0)).collect())
        }
        CallBody::None | CallBody::Fields(_) => call.to_display_json(),
    };
    let mut needs = Vec::new();
    path.split('/').for_each(|part| needs.extend(made.get_key_value(part)));
    collect(&body, made, &mut needs);
    needs.sort_unstable_by_key(|(_, at)| **at);
    needs.dedup();
    Ok(Call {
        method,
        route: format!("{method} {template}"),
        limit: limit(method, template, channel.unwrap_or_else(|| guild.to_string()))?,
        makes: (step.action == Action::Create).then(|| format!("<{}>", step.target)),
        after: needs.iter().map(|(_, at)| **at).collect(),
        needs: needs.into_iter().map(|(name, _)| name.clone()).collect(),
        path,
        body,
    })
}

/// Returns positions from `first` up.
fn places<'a>(handles: impl Iterator<Item = &'a ObjectRef>, first: u64) -> impl Iterator<Item = Value> {
    (first..).zip(handles).map(|(position, handle)| json!({ "id": handle.describe(), "position": position }))
}

/// Returns the limit that the simulator counts a route by.
fn limit(method: &str, template: &str, whose: String) -> Result<Option<(&'static str, String)>, String> {
    let path = template.replace("{guild}", "1").replace("{channel}", "1");
    let method: Method = method.parse().map_err(|_| format!("{method} is not a method"))?;
    let target = RouteTarget::of(&method, &path).map_err(|_| {
        format!("{method} {template} is not for an empty guild, or the simulator has no such route")
    })?;
    Ok(target.route.limit.map(|limit| (limit, whose)))
}

fn collect<'a>(value: &Value, made: &'a HashMap<String, usize>, needs: &mut Vec<(&'a String, &'a usize)>) {
    match value {
        Value::String(text) => needs.extend(made.get_key_value(text)),
        Value::Array(items) => items.iter().for_each(|item| collect(item, made, needs)),
        Value::Object(fields) => fields.values().for_each(|item| collect(item, made, needs)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
