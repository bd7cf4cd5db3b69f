//! Positions. A template says in which order its own objects stand; where others stand between them is not its
//! business, so managed objects only change places among themselves, all in one call.

use super::call::{Body, Call, Route};
use super::fingerprint;
use super::matching::Matches;
use super::step::{Action, Step, Target};
use super::wire::Handle;
use crate::guild::Guild;
use crate::template::{Channel, Template};
use crate::{Id, Key, Kind};

/// A step for the order of roles, when one is new or they stand wrong.
pub(super) fn roles(template: &Template, guild: &Guild, matches: &Matches) -> Option<Step> {
    let handles: Vec<_> = template.roles.iter().map(|role| matches.handle(Kind::Role, &role.key)).collect();
    let keys = template.roles.iter().map(|role| role.key.as_str());
    let fingerprint = fingerprint::order("discord order of roles", keys);
    let right = known(&handles).is_some_and(|ids| role_moves(guild, &ids).is_empty());
    let call = Call { route: Route::RolesMove, body: Body::Roles(handles) };
    (!right).then(|| step(Target::RoleOrder, fingerprint, call))
}

/// A step for the order of categories and channels, likewise.
pub(super) fn channels(template: &Template, guild: &Guild, matches: &Matches) -> Option<Step> {
    let categories = template.categories.iter().map(|category| matches.handle(Kind::Category, &category.key));
    let mut lists = vec![categories.collect::<Vec<_>>()];
    let places = template.categories.iter().map(|category| Some(&category.key)).chain([None]);
    for (place, heard) in places.flat_map(|place| [(place, false), (place, true)]) {
        let inside = template.channels.iter().filter(|channel| stands(channel, place, heard));
        lists.push(inside.map(|channel| matches.handle(Kind::Channel, &channel.key)).collect());
    }
    let right = |list: &Vec<Handle>| known(list).is_some_and(|ids| channel_moves(guild, &ids).is_empty());
    let right = lists.iter().all(right);
    lists.retain(|list| list.len() > 1);
    let categories = template.categories.iter().map(|category| category.key.as_str());
    let keys = categories.chain(template.channels.iter().map(|channel| channel.key.as_str()));
    let fingerprint = fingerprint::order("discord order of channels", keys);
    let call = Call { route: Route::ChannelsMove, body: Body::Channels(lists) };
    (!right).then(|| step(Target::ChannelOrder, fingerprint, call))
}

/// Whether a channel is listed there. Inside a category those that are heard are listed below the others.
fn stands(channel: &Channel, category: Option<&Key>, heard: bool) -> bool {
    channel.category.as_ref() == category && channel.shape.is_heard() == heard
}

/// Their ids; none when one is still to be made. A list of one needs no order.
fn known(handles: &[Handle]) -> Option<Vec<Id>> {
    if handles.len() < 2 {
        return Some(Vec::new());
    }
    let id = |handle: &Handle| match handle {
        Handle::Known(id) => Some(*id),
        Handle::Made(..) => None,
    };
    handles.iter().map(id).collect()
}

fn step(target: Target, fingerprint: String, call: Call) -> Step {
    Step {
        target,
        action: Action::Order,
        id: None,
        adopted: false,
        fingerprint,
        drift: None,
        changes: Vec::new(),
        call: Some(call),
    }
}

/// The positions that put roles in this order, the highest first. Empty when they are.
pub(super) fn role_moves(guild: &Guild, wanted: &[Id]) -> Vec<(Id, i64)> {
    let order: Vec<_> = guild.roles_in_order().into_iter().filter(|role| role.id != guild.id).collect();
    let ours: Vec<_> = order.iter().filter(|role| wanted.contains(&role.id)).collect();
    if ours.iter().map(|role| role.id).eq(wanted.iter().copied()) || ours.len() != wanted.len() {
        return Vec::new();
    }
    if ours.windows(2).all(|pair| pair[0].position > pair[1].position) {
        let slots = ours.iter().map(|role| role.position);
        return changed(wanted.iter().copied().zip(slots), |id| guild.role(id).map(|role| role.position));
    }
    // Two stand on one position: then everything that is not where it is counted gets its number.
    let mut next = wanted.iter().copied();
    let refilled = order
        .iter()
        .map(|role| if wanted.contains(&role.id) { next.next().unwrap_or(role.id) } else { role.id });
    let numbers = (1..=order.len() as i64).rev();
    changed(refilled.zip(numbers), |id| guild.role(id).map(|role| role.position))
}

/// The positions that put channels in this order, from top to bottom. Empty when they are.
pub(super) fn channel_moves(guild: &Guild, wanted: &[Id]) -> Vec<(Id, i64)> {
    let order = guild.channels_in_order();
    let ours: Vec<_> = order.iter().filter(|channel| wanted.contains(&channel.id)).collect();
    if ours.iter().map(|channel| channel.id).eq(wanted.iter().copied()) || ours.len() != wanted.len() {
        return Vec::new();
    }
    let distinct = ours.windows(2).all(|pair| pair[0].position < pair[1].position);
    // Two stand on one position: behind all others there is room.
    let room = order.iter().map(|channel| channel.position).max().unwrap_or(0) + 1;
    let behind = room..room + ours.len() as i64;
    let slots =
        ours.iter().zip(behind).map(|(channel, behind)| if distinct { channel.position } else { behind });
    changed(wanted.iter().copied().zip(slots), |id| guild.channel(id).map(|channel| channel.position))
}

fn changed(moves: impl Iterator<Item = (Id, i64)>, position: impl Fn(Id) -> Option<i64>) -> Vec<(Id, i64)> {
    moves.filter(|(id, to)| position(*id) != Some(*to)).collect()
}
