//! What the bot may do in a channel: its permissions in the guild, and what overwrites give to it
//! or take from it there.

use super::Plan;
use super::step::StepTarget;
use crate::guild::{BotStanding, Guild, Overwrite};
use crate::permission::Permissions;
use crate::template::{OverwriteSpec, OverwriteTarget};
use crate::{Id, ObjectKind};

/// Returns the bot's permissions in a channel with these overwrites, in the order of Discord's
/// rules: @everyone, then all of its roles together, then the bot itself.
pub(super) fn held_with(bot: &BotStanding, guild: Id, overwrites: &[Overwrite]) -> Permissions {
    let is_everyone = |one: &Overwrite| !one.of_member && one.id == guild;
    let is_role = |one: &Overwrite| !one.of_member && bot.roles.contains(&one.id);
    let is_self = |one: &Overwrite| one.of_member && one.id == bot.id;
    let apply = |held: Permissions, is_meant: &dyn Fn(&Overwrite) -> bool| {
        let meant = || overwrites.iter().filter(|one| is_meant(one));
        let allow = meant().fold(Permissions(0), |all, one| all.union(one.allow));
        let deny = meant().fold(Permissions(0), |all, one| all.union(one.deny));
        held.difference(deny).union(allow)
    };
    [&is_everyone as &dyn Fn(&Overwrite) -> bool, &is_role, &is_self].into_iter().fold(bot.permissions, apply)
}

/// Returns the overwrites of a template as they will be, without those of roles that do not exist
/// yet: the bot has none of these.
pub(super) fn planned_overwrites(specs: &[OverwriteSpec], plan: &Plan, guild: &Guild) -> Vec<Overwrite> {
    let id_of = |target: &OverwriteTarget| match target {
        OverwriteTarget::Everyone => Some(guild.id),
        OverwriteTarget::Role(key) => {
            let target = StepTarget::Object(ObjectKind::Role, key.clone());
            plan.steps.iter().find(|step| step.target == target).and_then(|step| step.id)
        }
    };
    let overwrite = |spec: &OverwriteSpec| {
        let (allow, deny) = (spec.allow, spec.deny);
        id_of(&spec.target).map(|id| Overwrite { id, of_member: false, allow, deny })
    };
    specs.iter().filter_map(overwrite).collect()
}
