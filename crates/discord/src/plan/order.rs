//! Positions. A template defines the order of its own objects; where others are between them is not
//! its concern, so managed objects only swap positions among themselves, all in one call.

use std::borrow::Cow;

use super::call::{CallBody, GuildRoute, PlannedCall};
use super::field::FieldChange;
use super::fingerprint;
use super::matching::Matches;
use super::order_change::order_change;
use super::step::{Action, PlanStep, StepTarget};
use super::wire::ObjectRef;
use crate::guild::Guild;
use crate::template::{ChannelSpec, Template};
use crate::{Id, ObjectKey, ObjectKind};

/// Returns a step for the order of roles, when one is new or their order is wrong.
pub(super) fn roles(template: &Template, guild: &Guild, matches: &Matches) -> Option<PlanStep> {
    let handles: Vec<_> =
        template.roles.iter().map(|role| matches.handle(ObjectKind::Role, &role.key)).collect();
    let keys = template.roles.iter().map(|role| role.key.as_str());
    let fingerprint = fingerprint::order("discord order of roles", keys);
    let right = known_ids(&handles).is_some_and(|ids| role_moves(guild, &ids).is_empty());
    let wanted = template.roles.iter().map(|role| (&role.key, matches.id(ObjectKind::Role, &role.key)));
    let live: Vec<_> = guild.roles_in_order().iter().map(|role| role.id).collect();
    let changes = order_change("roles".into(), wanted, &live).into_iter().collect();
    let call = PlannedCall { route: GuildRoute::RolesMove, body: CallBody::Roles(handles) };
    (!right).then(|| step(StepTarget::RoleOrder, fingerprint, changes, call))
}

/// Returns a step for the order of categories and channels, likewise.
pub(super) fn channels(template: &Template, guild: &Guild, matches: &Matches) -> Option<PlanStep> {
    let categories =
        template.categories.iter().map(|category| matches.handle(ObjectKind::Category, &category.key));
    let mut lists = vec![categories.collect::<Vec<_>>()];
    let live: Vec<_> = guild.channels_in_order().iter().map(|channel| channel.id).collect();
    let wanted = template.categories.iter();
    let wanted = wanted.map(|own| (&own.key, matches.id(ObjectKind::Category, &own.key)));
    let mut changes: Vec<_> = order_change("categories".into(), wanted, &live).into_iter().collect();
    let places = template.categories.iter().map(|category| Some(&category.key)).chain([None]);
    for (place, heard) in places.flat_map(|place| [(place, false), (place, true)]) {
        let inside = template.channels.iter().filter(|channel| is_listed_in(channel, place, heard));
        let inside: Vec<_> = inside.collect();
        let wanted = inside.iter().map(|own| (&own.key, matches.id(ObjectKind::Channel, &own.key)));
        changes.extend(order_change(list_name(place, heard), wanted, &live));
        let handles = inside.iter().map(|channel| matches.handle(ObjectKind::Channel, &channel.key));
        lists.push(handles.collect());
    }
    let right =
        |list: &Vec<ObjectRef>| known_ids(list).is_some_and(|ids| channel_moves(guild, &ids).is_empty());
    let right = lists.iter().all(right);
    lists.retain(|list| list.len() > 1);
    let categories = template.categories.iter().map(|category| category.key.as_str());
    let keys = categories.chain(template.channels.iter().map(|channel| channel.key.as_str()));
    let fingerprint = fingerprint::order("discord order of channels", keys);
    let call = PlannedCall { route: GuildRoute::ChannelsMove, body: CallBody::Channels(lists) };
    (!right).then(|| step(StepTarget::ChannelOrder, fingerprint, changes, call))
}

/// Returns the name of a list of channels, for people.
fn list_name(category: Option<&ObjectKey>, heard: bool) -> Cow<'static, str> {
    let what = if heard { "voice channels" } else { "channels" };
    match category {
        Some(key) => format!("{what} in {key}").into(),
        None => format!("{what} outside categories").into(),
    }
}

/// Returns whether a channel is in this list. Inside a category, voice channels are listed below
/// the others.
fn is_listed_in(channel: &ChannelSpec, category: Option<&ObjectKey>, heard: bool) -> bool {
    channel.category.as_ref() == category && channel.channel_type.is_voice() == heard
}

/// Returns their ids; `None` when one is still to be created. A list of one needs no order.
fn known_ids(handles: &[ObjectRef]) -> Option<Vec<Id>> {
    if handles.len() < 2 {
        return Some(Vec::new());
    }
    let id = |handle: &ObjectRef| match handle {
        ObjectRef::Known(id) => Some(*id),
        ObjectRef::Planned(..) => None,
    };
    handles.iter().map(id).collect()
}

fn step(target: StepTarget, fingerprint: String, changes: Vec<FieldChange>, call: PlannedCall) -> PlanStep {
    PlanStep {
        target,
        action: Action::Order,
        id: None,
        adopted: false,
        fingerprint,
        drift: None,
        changes,
        call: Some(call),
    }
}

/// Returns the positions that put roles in this order, highest first. Empty when the order is
/// right.
pub(super) fn role_moves(guild: &Guild, wanted: &[Id]) -> Vec<(Id, i64)> {
    let order: Vec<_> = guild.roles_in_order().into_iter().filter(|role| role.id != guild.id).collect();
    let ours: Vec<_> = order.iter().filter(|role| wanted.contains(&role.id)).collect();
    if ours.iter().map(|role| role.id).eq(wanted.iter().copied()) || ours.len() != wanted.len() {
        return Vec::new();
    }
    if ours.windows(2).all(|pair| pair[0].position > pair[1].position) {
        let slots = ours.iter().map(|role| role.position);
        return changed_positions(wanted.iter().copied().zip(slots), |id| {
            guild.role(id).map(|role| role.position)
        });
    }
    // Two have the same position: then every role whose position differs from its index gets that
    // index.
    let mut next = wanted.iter().copied();
    let refilled = order
        .iter()
        .map(|role| if wanted.contains(&role.id) { next.next().unwrap_or(role.id) } else { role.id });
    let numbers = (1..=order.len() as i64).rev();
    changed_positions(refilled.zip(numbers), |id| guild.role(id).map(|role| role.position))
}

/// Returns the positions that put channels in this order, from top to bottom. Empty when the order
/// is right.
pub(super) fn channel_moves(guild: &Guild, wanted: &[Id]) -> Vec<(Id, i64)> {
    let order = guild.channels_in_order();
    let ours: Vec<_> = order.iter().filter(|channel| wanted.contains(&channel.id)).collect();
    if ours.iter().map(|channel| channel.id).eq(wanted.iter().copied()) || ours.len() != wanted.len() {
        return Vec::new();
    }
    let distinct = ours.windows(2).all(|pair| pair[0].position < pair[1].position);
    // Two have the same position: there is room after all others.
    let room = order.iter().map(|channel| channel.position).max().unwrap_or(0) + 1;
    let behind = room..room + ours.len() as i64;
    let slots =
        ours.iter().zip(behind).map(|(channel, behind)| if distinct { channel.position } else { behind });
    changed_positions(wanted.iter().copied().zip(slots), |id| {
        guild.channel(id).map(|channel| channel.position)
    })
}

fn changed_positions(
    moves: impl Iterator<Item = (Id, i64)>,
    position: impl Fn(Id) -> Option<i64>,
) -> Vec<(Id, i64)> {
    moves.filter(|(id, to)| position(*id) != Some(*to)).collect()
}
