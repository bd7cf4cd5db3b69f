//! The order in which steps are carried. Calls of one guild go one after the other, and each route has a limit of its own:
//! taken in turns, one route's limit comes back while another is used. What a step needs always comes before it.

use std::collections::BTreeSet;

use super::call::{Body, Call, Route};
use super::step::{Action, Step, Target};
use super::wire::{Handle, Wire};
use crate::{Key, Kind};

/// Who takes turns. Removals come last: nothing is taken away before what replaces it is there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lane {
    Roles,
    Channels,
    Edits,
    Messages,
    Removals,
}

const IN_TURNS: [Lane; 4] = [Lane::Roles, Lane::Channels, Lane::Edits, Lane::Messages];

fn lane(step: &Step) -> Lane {
    match (step.action, step.target.kind()) {
        (Action::Remove, _) => Lane::Removals,
        (_, Some(Kind::Message)) => Lane::Messages,
        (Action::Create, Some(Kind::Role)) => Lane::Roles,
        (Action::Create, _) => Lane::Channels,
        _ => Lane::Edits,
    }
}

/// Places in the list of steps, of those that make a call, without the orders: these come when all is there.
pub(super) fn order(steps: &[Step]) -> Vec<usize> {
    let carried = |step: &Step| step.call.is_some() && step.action != Action::Order;
    let mut waiting: Vec<usize> = (0..steps.len()).filter(|at| carried(&steps[*at])).collect();
    // What no step makes is there already, or will never be: neither is waited for.
    let mut unmade: BTreeSet<(Kind, &Key)> = waiting.iter().filter_map(|at| made(&steps[*at])).collect();
    let mut order = Vec::with_capacity(waiting.len());
    while !waiting.is_empty() {
        let before = order.len();
        for turn in IN_TURNS {
            let ready = |at: &usize| {
                let call = steps[*at].call.as_ref();
                lane(&steps[*at]) == turn
                    && call.is_none_or(|call| needs(call).all(|need| !unmade.contains(&need)))
            };
            if let Some(next) = waiting.iter().position(ready) {
                let at = waiting.remove(next);
                if let Some(made) = made(&steps[at]) {
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

/// What a step makes.
fn made(step: &Step) -> Option<(Kind, &Key)> {
    match (&step.target, step.action) {
        (Target::Object(kind, key), Action::Create) => Some((*kind, key)),
        _ => None,
    }
}

/// What must be there before a call.
fn needs(call: &Call) -> impl Iterator<Item = (Kind, &Key)> {
    let mut handles = Vec::new();
    if let Route::MessageCreate(channel) = &call.route {
        handles.push(channel);
    }
    if let Body::Fields(wire) = &call.body {
        collect(wire, &mut handles);
    }
    handles.into_iter().filter_map(|handle| match handle {
        Handle::Known(_) => None,
        Handle::Made(kind, key) => Some((*kind, key)),
    })
}

fn collect<'a>(wire: &'a Wire, handles: &mut Vec<&'a Handle>) {
    match wire {
        Wire::Plain(_) => {}
        Wire::Id(handle) => handles.push(handle),
        Wire::List(items) => items.iter().for_each(|item| collect(item, handles)),
        Wire::Object(fields) => fields.iter().for_each(|(_, value)| collect(value, handles)),
    }
}
