//! Overwrites as one field: they are sent as a whole, so they are compared as a whole. Overwrites
//! that people added by hand on a managed channel are a difference, and are removed again.

use std::collections::BTreeMap;

use serde_json::json;

use crate::guild::{self, Guild};
use crate::journal::GuildJournal;
use crate::permission::Permissions;
use crate::plan::field::Field;
use crate::plan::matching::Matches;
use crate::plan::wire::{ObjectRef, UnresolvedJson};
use crate::template::{OverwriteSpec, OverwriteTarget};
use crate::{Id, ObjectKind};

/// Target, in the order in which it is shown and sent, and its allowed and denied permissions.
type OverwriteSet = BTreeMap<(ObjectRef, bool), (Permissions, Permissions)>;

pub(super) fn field(
    wanted: &[OverwriteSpec],
    live: Option<&guild::Channel>,
    guild: &Guild,
    journal: &GuildJournal,
    matches: &Matches,
) -> Field {
    let wanted: OverwriteSet = wanted
        .iter()
        .map(|overwrite| {
            let handle = match &overwrite.target {
                OverwriteTarget::Everyone => ObjectRef::Known(guild.id),
                OverwriteTarget::Role(key) => matches.handle(ObjectKind::Role, key),
            };
            ((handle, false), (overwrite.allow, overwrite.deny))
        })
        .collect();
    // An empty overwrite does nothing, and is no reason for a call.
    let says = |overwrite: &&guild::Overwrite| !overwrite.allow.union(overwrite.deny).is_empty();
    let is = live.map(|live| -> OverwriteSet {
        let entry = |o: &guild::Overwrite| ((ObjectRef::Known(o.id), o.of_member), (o.allow, o.deny));
        live.overwrites.iter().filter(says).map(entry).collect()
    });
    Field {
        wire: "permission_overwrites",
        label: "overwrites",
        value: UnresolvedJson::List(wanted.iter().map(|((handle, _), set)| wire(handle, *set)).collect()),
        to: describe_set(&wanted, guild, journal),
        from: is.map(|is| describe_set(&is, guild, journal)),
        usual: wanted.is_empty(),
    }
}

fn wire(handle: &ObjectRef, (allow, deny): (Permissions, Permissions)) -> UnresolvedJson {
    UnresolvedJson::Object(vec![
        ("id", UnresolvedJson::Id(handle.clone())),
        ("type", UnresolvedJson::Plain(json!(0))),
        ("allow", UnresolvedJson::Plain(json!(allow))),
        ("deny", UnresolvedJson::Plain(json!(deny))),
    ])
}

/// Describes a set for people. Two sets read alike only if they are equal: each entry has its id.
fn describe_set(set: &OverwriteSet, guild: &Guild, journal: &GuildJournal) -> String {
    if set.is_empty() {
        return "none".to_owned();
    }
    let entry = |((handle, of_member), (allow, deny)): (&(ObjectRef, bool), &(Permissions, Permissions))| {
        let mut text = describe_target(handle, *of_member, guild, journal);
        for (word, set) in [("allow", allow), ("deny", deny)] {
            if !set.is_empty() {
                text.push_str(&format!(" {word} {set}"));
            }
        }
        text
    };
    set.iter().map(entry).collect::<Vec<_>>().join("; ")
}

fn describe_target(handle: &ObjectRef, of_member: bool, guild: &Guild, journal: &GuildJournal) -> String {
    let role = |id: Id| match (journal.key_of(ObjectKind::Role, id), guild.role(id)) {
        (Some(key), _) => format!("{key} ({id})"),
        (None, Some(role)) => format!("{:?} ({id})", role.name),
        (None, None) => format!("role {id}"),
    };
    match handle {
        ObjectRef::Planned(_, key) => format!("{key} (new)"),
        ObjectRef::Known(id) if of_member => format!("member {id}"),
        ObjectRef::Known(id) if *id == guild.id => "@everyone".to_owned(),
        ObjectRef::Known(id) => role(*id),
    }
}
