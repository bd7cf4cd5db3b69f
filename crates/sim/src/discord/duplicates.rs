//! Finds duplicate objects: of one kind in one guild, with the same managed key or, where they have
//! none, the same name. Messages are duplicates when one bot posted the same text in one channel.

use std::collections::BTreeMap;

use super::guild::{Guild, SOMEBODY};

/// Returns the key in a managed name, `〚SSO〛 Desk 〔desk〕`, with its prefix.
fn managed_key(name: &str) -> Option<(&str, &str)> {
    let (prefix, rest) = name.strip_prefix('〚')?.split_once('〛')?;
    let (_, key) = rest.strip_suffix('〕')?.rsplit_once('〔')?;
    Some((prefix, key))
}

fn label(name: &str) -> String {
    managed_key(name).map_or_else(|| name.to_owned(), |(prefix, key)| format!("〚{prefix}〛〔{key}〕"))
}

/// Returns the ids of duplicate objects, by kind and key.
#[must_use]
pub fn find_duplicates(guild: &Guild) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut count = |what: String, id: u64| found.entry(what).or_default().push(id.to_string());
    for role in guild.roles.values().filter(|role| role.bot.is_none()) {
        count(format!("role {}", label(&role.name)), role.id);
    }
    for channel in guild.channels.values() {
        count(format!("channel type {} {}", channel.kind, label(&channel.name)), channel.id);
    }
    for message in guild.messages.values().flat_map(BTreeMap::values).filter(|one| one.author != SOMEBODY) {
        let what = format!("{} {}", message.content, message.embeds);
        count(format!("message in {} {what}", message.channel), message.id);
    }
    found.retain(|_, ids| ids.len() > 1);
    // The text of a message is not shown.
    let short = |what: String, ids: &[String]| match what.strip_prefix("message in ") {
        Some(rest) => {
            let channel = rest.split(' ').next().unwrap_or_default();
            format!("message {} in {channel}", ids.first().map_or("", String::as_str))
        }
        None => what,
    };
    found.into_iter().map(|(what, ids)| (short(what, &ids), ids)).collect()
}

/// Returns how many objects are in excess.
#[must_use]
pub fn excess(twins: &BTreeMap<String, Vec<String>>) -> u64 {
    twins.values().map(|ids| ids.len() as u64 - 1).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discord::channel::Channel;
    use crate::discord::role::Role;

    /// OPS-14: a changed display name does not hide a second object with the same key.
    #[test]
    fn ops_14_twins_are_found_by_key_then_by_name() {
        let mut guild = Guild::new(1);
        let names = [
            "〚SSO〛 Desk 〔desk〕",
            "〚SSO〛 Front desk 〔desk〕",
            "〚X〛 Desk 〔desk〕",
            "plain",
            "plain",
            "plain",
        ];
        for (id, name) in (2..).zip(names) {
            guild.roles.insert(id, Role::new(id, name, 1, 0));
        }
        for (id, kind) in [(20, 0), (21, 0), (22, 2)] {
            let mut channel = Channel::new(id, 1, kind);
            channel.name = "talk-desk".to_owned();
            guild.channels.insert(id, channel);
        }
        let found = find_duplicates(&guild);
        let ids = |what: &str| found[what].join(" ");
        assert_eq!(ids("role 〚SSO〛〔desk〕"), "2 3");
        assert_eq!(ids("role plain"), "5 6 7");
        assert_eq!(ids("channel type 0 talk-desk"), "20 21");
        assert_eq!((found.len(), excess(&found)), (3, 4));
    }
}
