//! Checks that clean names are unique: without keys in them, a lost journal is rebuilt by exact
//! match.

use std::collections::BTreeMap;

use super::Findings;
use crate::ObjectKind;
use crate::template::{ChannelSpec, ChannelType, NameStyle, Template, TemplatePath};

pub(super) fn check(template: &Template, findings: &mut Findings) {
    if template.names != NameStyle::Clean {
        return;
    }
    let roles = template.roles.iter().map(|role| template.role_name(role));
    check_unique(ObjectKind::Role, "roles", roles, findings);
    let categories = template.categories.iter().map(|category| template.category_name(category));
    check_unique(ObjectKind::Category, "categories", categories, findings);
    // Channels of one name in two categories, or a text and a voice channel, are told apart.
    let place = |channel: &ChannelSpec| {
        let kind = match channel.channel_type {
            ChannelType::Announcement => ChannelType::Text,
            other => other,
        };
        let category = channel.category.as_ref().map_or("", |category| category.as_str());
        format!("{category} {} {}", kind.as_str(), template.channel_name(channel))
    };
    check_unique(ObjectKind::Channel, "channels", template.channels.iter().map(place), findings);
}

fn check_unique(
    kind: ObjectKind,
    list: &'static str,
    names: impl Iterator<Item = String>,
    findings: &mut Findings,
) {
    let mut seen = BTreeMap::new();
    for (index, name) in names.enumerate() {
        let Some(first) = seen.insert(NameStyle::Clean.shown(&name), index) else { continue };
        let at = TemplatePath::of(list).item(index).field("name");
        let before = TemplatePath::of(list).item(first);
        findings.push((
            at,
            format!("with clean names, no two may be called alike; this {kind} is called like {before}."),
        ));
    }
}
