//! Checks keys: unique within their kind, and every reference leads to an existing object.

use std::collections::HashMap;

use super::Findings;
use crate::template::{Template, TemplatePath};
use crate::{ObjectKey, ObjectKind};

pub(super) fn check(template: &Template, findings: &mut Findings) {
    let roles = template.roles.iter().map(|role| &role.key);
    let categories = template.categories.iter().map(|category| &category.key);
    let channels = template.channels.iter().map(|channel| &channel.key);
    let messages = template.messages.iter().map(|message| &message.key);
    check_duplicate_keys(ObjectKind::Role, "roles", roles, ObjectKey::to_string, findings);
    check_duplicate_keys(ObjectKind::Category, "categories", categories, ObjectKey::to_string, findings);
    check_duplicate_keys(ObjectKind::Channel, "channels", channels, ObjectKey::short, findings);
    check_duplicate_keys(ObjectKind::Message, "messages", messages, ObjectKey::to_string, findings);
    let known: Vec<_> = template.categories.iter().map(|category| &category.key).collect();
    for (index, channel) in template.channels.iter().enumerate() {
        if let Some(category) = &channel.category {
            let at = TemplatePath::of("channels").item(index).field("category");
            check_reference(ObjectKind::Category, category, &known, at, findings);
        }
    }
    let known: Vec<_> = template.channels.iter().map(|channel| &channel.key).collect();
    for (index, message) in template.messages.iter().enumerate() {
        let at = TemplatePath::of("messages").item(index).field("channel");
        check_reference(ObjectKind::Channel, &message.channel, &known, at, findings);
    }
}

/// Reports two keys that read alike where they are used: a channel's name has no case and no `-`.
fn check_duplicate_keys<'a>(
    kind: ObjectKind,
    list: &'static str,
    keys: impl Iterator<Item = &'a ObjectKey>,
    form: fn(&ObjectKey) -> String,
    findings: &mut Findings,
) {
    let mut seen: HashMap<String, (usize, &ObjectKey)> = HashMap::new();
    for (index, key) in keys.enumerate() {
        let Some((first, other)) = seen.get(&form(key)) else {
            seen.insert(form(key), (index, key));
            continue;
        };
        let at = TemplatePath::of(list).item(index).field("key");
        let before = TemplatePath::of(list).item(*first);
        findings.push((
            at,
            if *other == key {
                format!("the {kind} {key} is defined twice; the first is {before}.")
            } else {
                format!("{key} and {other} ({before}) are both {:?} in a channel's name.", form(key))
            },
        ));
    }
}

/// Reports a reference to a missing object. Keys that could not be read were reported already.
pub(super) fn check_reference(
    kind: ObjectKind,
    key: &ObjectKey,
    known: &[&ObjectKey],
    at: TemplatePath,
    findings: &mut Findings,
) {
    if known.contains(&key) || key.is_unreadable() {
        return;
    }
    let near = known.iter().map(|known| (strsim::jaro_winkler(key.as_str(), known.as_str()), known));
    let near = near.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(score, _)| *score > 0.8);
    let hint = near.map_or_else(|| ".".to_owned(), |(_, near)| format!("; did you mean {near}?"));
    findings.push((at, format!("there is no {kind} {key} in this template{hint}")));
}
