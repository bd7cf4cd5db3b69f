//! Checks whether the guild has room for the missing objects, next to existing ones that are not
//! ours.

use super::conflict::Conflict;
use super::matching::Matches;
use super::step::{Action, PlanStep};
use crate::ObjectKind;
use crate::bounds::{CHANNELS_MAX, CHANNELS_PER_CATEGORY_MAX, ROLES_MAX};
use crate::guild::Guild;
use crate::template::Template;

/// The room in the guild.
pub(super) struct GuildRoom {
    /// What there is no room for.
    pub conflicts: Vec<Conflict>,
    /// Whether there is room only after the removals.
    pub prunes_first: bool,
}

/// A count of objects that is bounded.
struct BoundedCount {
    what: String,
    now: usize,
    gone: usize,
    new: usize,
    most: usize,
}

pub(super) fn check_capacity(
    template: &Template,
    guild: &Guild,
    matches: &Matches,
    steps: &[PlanStep],
) -> GuildRoom {
    let count = |action: Action, kinds: &[ObjectKind]| {
        let of = |step: &&PlanStep| {
            step.action == action && step.target.kind().is_some_and(|kind| kinds.contains(&kind))
        };
        steps.iter().filter(of).count()
    };
    let counted = |what: &str, now: usize, kinds: &[ObjectKind], most: usize| BoundedCount {
        what: what.to_owned(),
        now,
        gone: count(Action::Remove, kinds),
        new: count(Action::Create, kinds),
        most,
    };
    let placed = [ObjectKind::Category, ObjectKind::Channel];
    let mut counts = vec![
        counted("roles", guild.roles.len(), &[ObjectKind::Role], ROLES_MAX),
        counted("channels", guild.channels.len(), &placed, CHANNELS_MAX),
    ];
    let is_removed = |id| steps.iter().any(|step| step.action == Action::Remove && step.id == Some(id));
    for category in &template.categories {
        let ours =
            template.channels.iter().filter(|channel| channel.category.as_ref() == Some(&category.key));
        let id = matches.id(ObjectKind::Category, &category.key);
        let others = guild.channels.iter().filter(|channel| {
            channel.parent.is_some() && channel.parent == id && !matches.has(ObjectKind::Channel, channel.id)
        });
        let others: Vec<_> = others.map(|channel| channel.id).collect();
        counts.push(BoundedCount {
            what: format!("channels in the category {}", category.key),
            now: others.len(),
            gone: others.iter().filter(|id| is_removed(**id)).count(),
            new: ours.count(),
            most: CHANNELS_PER_CATEGORY_MAX,
        });
    }
    // A guild that exceeds a bound already is not this plan's fault: only a plan that adds to it
    // gets a conflict.
    counts.retain(|count| count.new > 0 && count.now + count.new > count.most);
    let would_be = |count: &BoundedCount| (count.now + count.new).saturating_sub(count.gone);
    let prunes_first = counts.iter().any(|count| count.gone > 0);
    counts.retain(|count| would_be(count) > count.most);
    let conflict = |count: &BoundedCount| Conflict::NoRoom {
        what: count.what.clone(),
        would_be: would_be(count),
        most: count.most,
    };
    GuildRoom { conflicts: counts.iter().map(conflict).collect(), prunes_first }
}
