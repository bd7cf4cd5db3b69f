//! The order of execution. Calls of one guild run one after the other, and each route has its own
//! limit: when routes take turns, one route's limit recovers while another is used. What a step
//! needs always comes before it.

use std::collections::BTreeSet;

use super::call::{CallBody, GuildRoute, PlannedCall};
use super::step::{Action, PlanStep, StepTarget};
use super::wire::{ObjectRef, UnresolvedJson};
use crate::{ObjectKey, ObjectKind};

/// The lanes that take turns. Removals come last: nothing is removed before its replacement exists,
/// unless there is no room for it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lane {
    Roles,
    Channels,
    Edits,
    Messages,
    Removals,
}

const IN_TURNS: [Lane; 4] = [Lane::Roles, Lane::Channels, Lane::Edits, Lane::Messages];

fn lane(step: &PlanStep) -> Lane {
    match (step.action, step.target.kind()) {
        (Action::Remove, _) => Lane::Removals,
        (_, Some(ObjectKind::Message)) => Lane::Messages,
        (Action::Create, Some(ObjectKind::Role)) => Lane::Roles,
        (Action::Create, _) => Lane::Channels,
        _ => Lane::Edits,
    }
}

/// Returns the indices of the steps that make a call, without order steps: those run once every
/// object exists.
pub(super) fn order(steps: &[PlanStep], prunes_first: bool) -> Vec<usize> {
    let carried = |step: &PlanStep| step.call.is_some() && step.action != Action::Order;
    let mut waiting: Vec<usize> = (0..steps.len()).filter(|at| carried(&steps[*at])).collect();
    // An object that no step creates exists already, or never will: neither is waited for.
    let mut unmade: BTreeSet<(ObjectKind, &ObjectKey)> =
        waiting.iter().filter_map(|at| created_object(&steps[*at])).collect();
    let mut order = Vec::with_capacity(waiting.len());
    if prunes_first {
        let is_removal = |at: &usize| lane(&steps[*at]) == Lane::Removals;
        let (removals, others) = waiting.into_iter().partition(is_removal);
        (order, waiting) = (removals, others);
    }
    while !waiting.is_empty() {
        let before = order.len();
        for turn in IN_TURNS {
            let ready = |at: &usize| {
                let call = steps[*at].call.as_ref();
                lane(&steps[*at]) == turn
                    && call.is_none_or(|call| dependencies(call).all(|need| !unmade.contains(&need)))
            };
            if let Some(next) = waiting.iter().position(ready) {
                let at = waiting.remove(next);
                if let Some(made) = created_object(&steps[at]) {
                    unmade.remove(&made);
                }
                order.push(at);
            }
        }
        if order.len() == before {
            order.append(&mut waiting);
        }
    }
    order
}

/// Returns the object that a step creates.
fn created_object(step: &PlanStep) -> Option<(ObjectKind, &ObjectKey)> {
    match (&step.target, step.action) {
        (StepTarget::Object(kind, key), Action::Create) => Some((*kind, key)),
        _ => None,
    }
}

/// Yields the objects that must exist before a call.
pub(super) fn dependencies(call: &PlannedCall) -> impl Iterator<Item = (ObjectKind, &ObjectKey)> {
    let mut handles = Vec::new();
    if let GuildRoute::MessageCreate(channel) = &call.route {
        handles.push(channel);
    }
    match &call.body {
        CallBody::None => {}
        CallBody::Fields(wire) => collect_refs(wire, &mut handles),
        CallBody::Roles(roles) => handles.extend(roles),
        CallBody::Channels(lists) => handles.extend(lists.iter().flatten()),
    }
    handles.into_iter().filter_map(|handle| match handle {
        ObjectRef::Known(_) => None,
        ObjectRef::Planned(kind, key) => Some((*kind, key)),
    })
}

fn collect_refs<'a>(wire: &'a UnresolvedJson, handles: &mut Vec<&'a ObjectRef>) {
    match wire {
        UnresolvedJson::Plain(_) => {}
        UnresolvedJson::Id(handle) => handles.push(handle),
        UnresolvedJson::List(items) => items.iter().for_each(|item| collect_refs(item, handles)),
        UnresolvedJson::Object(fields) => fields.iter().for_each(|(_, value)| collect_refs(value, handles)),
    }
}
