//! Checks overwrites: they refer to existing roles, each once, are not empty, and form no cycle.

use super::{Findings, references};
use crate::bounds::OVERWRITES_MAX;
use crate::template::{ChannelSpec, OverwriteSource, OverwriteSpec, OverwriteTarget, Template, TemplatePath};
use crate::{ObjectKey, ObjectKind};

pub(super) fn check(template: &Template, findings: &mut Findings) {
    let roles: Vec<_> = template.roles.iter().map(|role| &role.key).collect();
    for (index, category) in template.categories.iter().enumerate() {
        let at = TemplatePath::of("categories").item(index).field("overwrites");
        check_overwrites(&category.overwrites, &roles, &at, findings);
    }
    let channels: Vec<_> = template.channels.iter().map(|channel| &channel.key).collect();
    for (index, channel) in template.channels.iter().enumerate() {
        let at = TemplatePath::of("channels").item(index);
        match &channel.access {
            OverwriteSource::Inherited => {}
            OverwriteSource::Own(overwrites) => {
                check_overwrites(overwrites, &roles, &at.field("overwrites"), findings);
            }
            OverwriteSource::SameAs(key) => {
                let at = at.field("same_overwrites_as");
                references::check_reference(ObjectKind::Channel, key, &channels, at.clone(), findings);
                if let Some(circle) = overwrite_cycle(template, channel) {
                    findings.push((at, format!("this is a cycle: {circle}.")));
                }
            }
        }
    }
}

fn check_overwrites(
    overwrites: &[OverwriteSpec],
    roles: &[&ObjectKey],
    at: &TemplatePath,
    findings: &mut Findings,
) {
    if overwrites.len() > OVERWRITES_MAX {
        let count = overwrites.len();
        findings.push((at.clone(), format!("{count} overwrites; Discord accepts at most {OVERWRITES_MAX}.")));
    }
    for (index, overwrite) in overwrites.iter().enumerate() {
        let at = at.item(index);
        let whom = match &overwrite.target {
            OverwriteTarget::Everyone => "@everyone",
            OverwriteTarget::Role(key) => {
                references::check_reference(ObjectKind::Role, key, roles, at.field("role"), findings);
                key.as_str()
            }
        };
        if overwrites[..index].iter().any(|before| before.target == overwrite.target) {
            findings.push((at.field("role"), format!("there are two overwrites for {whom}; merge them.")));
        }
        let both = overwrite.allow.intersection(overwrite.deny);
        if !both.is_empty() {
            findings.push((at.clone(), format!("{both} is both allowed and denied for {whom}.")));
        }
        if overwrite.allow.union(overwrite.deny).is_empty() {
            findings.push((
                at,
                format!("this overwrite for {whom} is empty: list permissions under allow or deny."),
            ));
        }
    }
}

/// Returns the cycle that a channel is part of, reported once: at its first channel in the
/// template.
fn overwrite_cycle(template: &Template, channel: &ChannelSpec) -> Option<String> {
    let place = |key: &ObjectKey| template.channels.iter().position(|known| known.key == *key);
    let start = place(&channel.key)?;
    let mut way = vec![start];
    let mut here = channel;
    while let OverwriteSource::SameAs(next) = &here.access {
        let next = place(next)?;
        if next == start {
            let keys = way.iter().chain([&start]).map(|index| template.channels[*index].key.as_str());
            return Some(keys.collect::<Vec<_>>().join(" → "));
        }
        // After the first one, or on a cycle that this channel only leads to.
        if next < start || way.contains(&next) {
            return None;
        }
        way.push(next);
        here = &template.channels[next];
    }
    None
}
