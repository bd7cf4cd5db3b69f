//! Checks before the first write whether the bot may do what a plan needs: its permissions, the
//! position of its role, and the features of the guild. All problems are found at once.

use std::collections::BTreeMap;

use super::bot_access::{held_with, planned_overwrites};
use super::conflict::Conflict;
use super::step::{Action, PlanStep, StepTarget};
use super::{CallBody, Plan, UnresolvedJson};
use crate::guild::{BotStanding, Guild};
use crate::permission::{NAMES, Permissions};
use crate::template::{ChannelSpec, ChannelType, OverwriteSpec, Template};
use crate::{ObjectKey, ObjectKind};

/// What an administrator has: everything.
const ADMINISTRATOR: Permissions = Permissions(1 << 3);
const MANAGE_CHANNELS: Permissions = Permissions(1 << 4);
const VIEW_CHANNEL: Permissions = Permissions(1 << 10);
const MANAGE_ROLES: Permissions = Permissions(1 << 28);
/// Reading a channel and posting to it.
const POST: Permissions = Permissions((1 << 10) | (1 << 11) | (1 << 16));

/// Returns everything that would keep the bot from applying a plan.
#[must_use]
pub fn check_standing(template: &Template, plan: &Plan, guild: &Guild, bot: &BotStanding) -> Vec<Conflict> {
    let check = Preflight { template, plan, guild, bot };
    let mut conflicts = check.permissions();
    conflicts.extend(check.positions());
    conflicts.extend(check.features());
    conflicts
}

/// Returns a remark if a plan takes from the bot what it needs to change objects later.
#[must_use]
pub fn find_lockouts(template: &Template, plan: &Plan, guild: &Guild, bot: &BotStanding) -> Option<String> {
    Preflight { template, plan, guild, bot }.lockouts()
}

struct Preflight<'a> {
    template: &'a Template,
    plan: &'a Plan,
    guild: &'a Guild,
    bot: &'a BotStanding,
}

/// The permissions that the bot lacks for a step.
struct MissingAccess<'a> {
    lacks: Permissions,
    /// The object whose overwrites decide, and whether they are those of the template.
    place: Option<(ObjectKind, &'a ObjectKey, bool)>,
}

impl Preflight<'_> {
    fn is_unbound(&self) -> bool {
        self.bot.is_owner || !self.bot.permissions.intersection(ADMINISTRATOR).is_empty()
    }

    /// Returns a conflict for each missing permission, and for each that overwrites take away.
    fn permissions(&self) -> Vec<Conflict> {
        if self.is_unbound() {
            return Vec::new();
        }
        let mut missing: BTreeMap<u8, (usize, StepTarget)> = BTreeMap::new();
        let mut locked: Vec<Conflict> = Vec::new();
        for step in self.plan.writes() {
            let MissingAccess { lacks, place } = self.missing(step);
            for (_, bit) in NAMES.iter().filter(|(_, bit)| lacks.0 & (1 << bit) != 0) {
                let permission = Permissions(1 << bit);
                let is_taken = !self.bot.permissions.intersection(permission).is_empty();
                match place.filter(|_| is_taken) {
                    Some((kind, key, by_template)) => {
                        let (key, first) = (key.clone(), step.target.clone());
                        locked.push(Conflict::LockedOut { permission, kind, key, first, by_template });
                    }
                    None => missing.entry(*bit).or_insert_with(|| (0, step.target.clone())).0 += 1,
                }
            }
        }
        let conflict = |(bit, (steps, first)): (u8, (usize, StepTarget))| Conflict::MissingPermission {
            permission: Permissions(1 << bit),
            steps,
            first,
        };
        missing.into_iter().map(conflict).chain(locked).collect()
    }

    /// Returns the permissions that the bot lacks for a step.
    fn missing<'s>(&'s self, step: &'s PlanStep) -> MissingAccess<'s> {
        let base = self.bot.permissions;
        let anywhere = |needed: Permissions| MissingAccess { lacks: needed.difference(base), place: None };
        match &step.target {
            StepTarget::RoleOrder => anywhere(MANAGE_ROLES),
            StepTarget::ChannelOrder => anywhere(MANAGE_CHANNELS),
            StepTarget::Object(ObjectKind::Role, _) => anywhere(MANAGE_ROLES.union(granted(step))),
            StepTarget::Object(kind @ (ObjectKind::Category | ObjectKind::Channel), key) => {
                let granted = granted(step);
                let roles = if granted.is_empty() { Permissions(0) } else { MANAGE_ROLES };
                let given = roles.union(granted);
                let Some(live) = step.id.and_then(|id| self.guild.channel(id)) else {
                    return anywhere(MANAGE_CHANNELS.union(given));
                };
                let held = held_with(self.bot, self.guild.id, &live.overwrites);
                let lacks = MANAGE_CHANNELS.union(VIEW_CHANNEL).difference(held);
                // What it gives away it must have in the guild.
                let lacks = lacks.union(given.difference(base));
                MissingAccess { lacks, place: Some((*kind, key, false)) }
            }
            StepTarget::Object(ObjectKind::Message, key) => {
                let message = self.template.messages.iter().find(|message| message.key == *key);
                let Some(channel) = message.and_then(|message| self.channel(&message.channel)) else {
                    return anywhere(POST);
                };
                let held = self.held_with_template(self.template.overwrites_of(channel));
                let place = Some((ObjectKind::Channel, &channel.key, true));
                MissingAccess { lacks: POST.difference(held), place }
            }
        }
    }

    fn held_with_template(&self, overwrites: &[OverwriteSpec]) -> Permissions {
        held_with(self.bot, self.guild.id, &planned_overwrites(overwrites, self.plan, self.guild))
    }

    /// Returns a remark about the objects whose new overwrites keep the bot from changing them.
    fn lockouts(&self) -> Option<String> {
        if self.is_unbound() {
            return None;
        }
        let is_locked = |step: &&PlanStep| {
            let overwrites = match &step.target {
                StepTarget::Object(ObjectKind::Category, key) => {
                    let category = self.template.categories.iter().find(|category| category.key == *key);
                    category.map(|category| category.overwrites.as_slice())
                }
                StepTarget::Object(ObjectKind::Channel, key) => {
                    self.channel(key).map(|channel| self.template.overwrites_of(channel))
                }
                _ => None,
            };
            let needed = MANAGE_CHANNELS.union(VIEW_CHANNEL).intersection(self.bot.permissions);
            let is_written = step.changes.iter().any(|change| change.field == "overwrites");
            is_written
                && overwrites.is_some_and(|own| !needed.difference(self.held_with_template(own)).is_empty())
        };
        let locked = self.plan.writes().filter(|step| step.action != Action::Remove).filter(is_locked);
        let locked: Vec<_> = locked.map(|step| step.target.to_string()).collect();
        (!locked.is_empty()).then(|| {
            let locked = locked.join(", ");
            format!("Overwrites of the template will keep the bot, which is no administrator, from changing these again: {locked}.")
        })
    }

    fn channel(&self, key: &ObjectKey) -> Option<&ChannelSpec> {
        self.template.channels.iter().find(|channel| channel.key == *key)
    }

    /// Returns a conflict for each role that is not below the bot's own.
    fn positions(&self) -> Vec<Conflict> {
        let moved = self.plan.writes().any(|step| step.target == StepTarget::RoleOrder);
        let touched = |step: &&PlanStep| {
            step.target.kind() == Some(ObjectKind::Role)
                && (matches!(step.action, Action::Update | Action::Remove) || moved)
        };
        let above = |step: &PlanStep| {
            let StepTarget::Object(_, key) = &step.target else { return None };
            let role = self.guild.role(step.id?).filter(|role| role.position >= self.bot.top_position)?;
            Some(Conflict::RoleAboveBot { key: key.clone(), id: role.id })
        };
        if self.bot.is_owner {
            return Vec::new();
        }
        self.plan.steps.iter().filter(touched).filter_map(above).collect()
    }

    /// Returns a conflict if channels need a community that the guild is not.
    fn features(&self) -> Option<Conflict> {
        let needs = |channel: &ChannelSpec| {
            matches!(
                channel.channel_type,
                ChannelType::Announcement | ChannelType::Stage | ChannelType::Forum
            )
        };
        let made = |step: &PlanStep| {
            let StepTarget::Object(ObjectKind::Channel, key) = &step.target else { return None };
            let is_typed = step.changes.iter().any(|change| change.field == "type");
            self.channel(key).filter(|channel| needs(channel) && is_typed).map(|channel| channel.key.clone())
        };
        let channels: Vec<_> = self.plan.writes().filter_map(made).collect();
        (self.bot.has_community == Some(false) && !channels.is_empty())
            .then_some(Conflict::NoCommunity { channels })
    }
}

/// Returns the permissions that a step gives to a role, or names in overwrites: no one can give
/// what they do not have.
fn granted(step: &PlanStep) -> Permissions {
    let Some(CallBody::Fields(UnresolvedJson::Object(fields))) = step.call.as_ref().map(|call| &call.body)
    else {
        return Permissions(0);
    };
    let bits = |value: &UnresolvedJson| match value {
        UnresolvedJson::Plain(value) => value.as_str().and_then(|text| text.parse().ok()).unwrap_or(0),
        _ => 0,
    };
    let in_overwrite = |overwrite: &UnresolvedJson| match overwrite {
        UnresolvedJson::Object(fields) => {
            let named = fields.iter().filter(|(name, _)| matches!(*name, "allow" | "deny"));
            named.fold(0, |all, (_, value)| all | bits(value))
        }
        _ => 0,
    };
    let all = fields.iter().fold(0, |all, (name, value)| match (*name, value) {
        ("permissions", value) => all | bits(value),
        ("permission_overwrites", UnresolvedJson::List(list)) => {
            list.iter().fold(all, |all, overwrite| all | in_overwrite(overwrite))
        }
        _ => all,
    });
    Permissions(all)
}
