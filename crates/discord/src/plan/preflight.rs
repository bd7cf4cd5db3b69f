//! Checks before the first write whether the bot may do what a plan needs: its permissions, the
//! position of its role, and the features of the guild. All problems are found at once.

use std::collections::BTreeMap;

use super::conflict::Conflict;
use super::step::{Action, PlanStep, StepTarget};
use super::{CallBody, Plan, UnresolvedJson};
use crate::guild::{BotStanding, Guild};
use crate::permission::{NAMES, Permissions};
use crate::template::{ChannelSpec, ChannelType, OverwriteTarget, Template};
use crate::{ObjectKey, ObjectKind};

/// What an administrator has: everything.
const ADMINISTRATOR: Permissions = Permissions(1 << 3);
const MANAGE_CHANNELS: Permissions = Permissions(1 << 4);
const MANAGE_ROLES: Permissions = Permissions(1 << 28);
/// Reading a channel and posting to it.
const POST: Permissions = Permissions((1 << 10) | (1 << 11) | (1 << 16));

/// Returns everything that would keep the bot from applying a plan.
#[must_use]
pub fn check_standing(template: &Template, plan: &Plan, guild: &Guild, bot: &BotStanding) -> Vec<Conflict> {
    let check = Preflight { template, guild, bot };
    let mut conflicts = check.permissions(plan);
    conflicts.extend(check.positions(plan));
    conflicts.extend(check.features(plan));
    conflicts
}

struct Preflight<'a> {
    template: &'a Template,
    guild: &'a Guild,
    bot: &'a BotStanding,
}

impl Preflight<'_> {
    /// Returns a conflict for each missing permission.
    fn permissions(&self, plan: &Plan) -> Vec<Conflict> {
        if self.bot.is_owner || !self.bot.permissions.intersection(ADMINISTRATOR).is_empty() {
            return Vec::new();
        }
        let mut missing: BTreeMap<u8, (usize, StepTarget)> = BTreeMap::new();
        for step in plan.writes() {
            let lacks = self.missing(step);
            for (_, bit) in NAMES.iter().filter(|(_, bit)| lacks.0 & (1 << bit) != 0) {
                missing.entry(*bit).or_insert_with(|| (0, step.target.clone())).0 += 1;
            }
        }
        let conflict = |(bit, (steps, first)): (u8, (usize, StepTarget))| Conflict::MissingPermission {
            permission: Permissions(1 << bit),
            steps,
            first,
        };
        missing.into_iter().map(conflict).collect()
    }

    /// Returns the permissions that the bot lacks for a step.
    fn missing(&self, step: &PlanStep) -> Permissions {
        let (needed, held) = match &step.target {
            StepTarget::RoleOrder => (MANAGE_ROLES, self.bot.permissions),
            StepTarget::ChannelOrder => (MANAGE_CHANNELS, self.bot.permissions),
            StepTarget::Object(ObjectKind::Role, _) => {
                (MANAGE_ROLES.union(granted(step)), self.bot.permissions)
            }
            StepTarget::Object(ObjectKind::Category | ObjectKind::Channel, _) => {
                let granted = granted(step);
                let roles = if granted.is_empty() { Permissions(0) } else { MANAGE_ROLES };
                (MANAGE_CHANNELS.union(roles).union(granted), self.bot.permissions)
            }
            StepTarget::Object(ObjectKind::Message, key) => (POST, self.held_for_message(key)),
        };
        needed.difference(held)
    }

    /// Returns what the bot holds in a message's channel, with the overwrites of the template.
    fn held_for_message(&self, key: &ObjectKey) -> Permissions {
        let message = self.template.messages.iter().find(|message| message.key == *key);
        let channel = message.and_then(|message| self.channel(&message.channel));
        let overwrites = channel.map(|channel| self.template.overwrites_of(channel)).unwrap_or_default();
        let everyone = overwrites.iter().find(|overwrite| overwrite.target == OverwriteTarget::Everyone);
        let held = self.bot.permissions;
        everyone.map_or(held, |overwrite| held.difference(overwrite.deny).union(overwrite.allow))
    }

    fn channel(&self, key: &ObjectKey) -> Option<&ChannelSpec> {
        self.template.channels.iter().find(|channel| channel.key == *key)
    }

    /// Returns a conflict for each role that is not below the bot's own.
    fn positions(&self, plan: &Plan) -> Vec<Conflict> {
        let moved = plan.writes().any(|step| step.target == StepTarget::RoleOrder);
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
        plan.steps.iter().filter(touched).filter_map(above).collect()
    }

    /// Returns a conflict if channels need a community that the guild is not.
    fn features(&self, plan: &Plan) -> Option<Conflict> {
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
        let channels: Vec<_> = plan.writes().filter_map(made).collect();
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
