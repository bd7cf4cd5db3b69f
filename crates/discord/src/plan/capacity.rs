//! Checks whether the guild has room for the missing objects, next to existing ones that are not
//! ours.

use super::conflict::Conflict;
use super::matching::Matches;
use super::step::{Action, PlanStep};
use crate::ObjectKind;
use crate::bounds::{CHANNELS_MAX, CHANNELS_PER_CATEGORY_MAX, ROLES_MAX};
use crate::guild::Guild;
use crate::template::Template;

pub(super) fn check_capacity(
    template: &Template,
    guild: &Guild,
    matches: &Matches,
    steps: &[PlanStep],
) -> Vec<Conflict> {
    let new = |kinds: &[ObjectKind]| {
        let made = |step: &&PlanStep| {
            step.action == Action::Create && step.target.kind().is_some_and(|kind| kinds.contains(&kind))
        };
        steps.iter().filter(made).count()
    };
    let (new_roles, new_channels) =
        (new(&[ObjectKind::Role]), new(&[ObjectKind::Category, ObjectKind::Channel]));
    let mut conflicts = Vec::new();
    // A guild that exceeds a bound already is not this plan's fault: only a plan that adds to it
    // gets a conflict.
    let mut hold = |what: String, new: usize, would_be: usize, most: usize| {
        if new > 0 && would_be > most {
            conflicts.push(Conflict::NoRoom { what, would_be, most });
        }
    };
    hold("roles".into(), new_roles, guild.roles.len() + new_roles, ROLES_MAX);
    hold("channels".into(), new_channels, guild.channels.len() + new_channels, CHANNELS_MAX);
    for category in &template.categories {
        let ours =
            template.channels.iter().filter(|channel| channel.category.as_ref() == Some(&category.key));
        let ours = ours.count();
        let id = matches.id(ObjectKind::Category, &category.key);
        let foreign = guild.channels.iter().filter(|channel| {
            channel.parent.is_some() && channel.parent == id && !matches.has(ObjectKind::Channel, channel.id)
        });
        let what = format!("channels in the category {}", category.key);
        hold(what, ours, foreign.count() + ours, CHANNELS_PER_CATEGORY_MAX);
    }
    conflicts
}
