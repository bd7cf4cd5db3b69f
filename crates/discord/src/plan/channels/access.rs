//! Overwrites as one field: they are sent as a whole, so they are compared as a whole. What people added by hand on a
//! managed channel differs, and is taken away again.

use std::collections::BTreeMap;

use serde_json::json;

use crate::guild::{self, Guild};
use crate::journal::Journal;
use crate::permission::Permissions;
use crate::plan::field::Field;
use crate::plan::matching::Matches;
use crate::plan::wire::{Handle, Wire};
use crate::template::{Overwrite, Whom};
use crate::{Id, Kind};

/// Whom it is about, in the order in which it is shown and sent, and what it says.
type Set = BTreeMap<(Handle, bool), (Permissions, Permissions)>;

pub(super) fn field(
    wanted: &[Overwrite],
    live: Option<&guild::Channel>,
    guild: &Guild,
    journal: &Journal,
    matches: &Matches,
) -> Field {
    let wanted: Set = wanted
        .iter()
        .map(|overwrite| {
            let handle = match &overwrite.whom {
                Whom::Everyone => Handle::Known(guild.id),
                Whom::Role(key) => matches.handle(Kind::Role, key),
            };
            ((handle, false), (overwrite.allow, overwrite.deny))
        })
        .collect();
    // One that says nothing does nothing, and is no reason for a call.
    let says = |overwrite: &&guild::Overwrite| !overwrite.allow.with(overwrite.deny).is_empty();
    let is = live.map(|live| -> Set {
        let entry = |o: &guild::Overwrite| ((Handle::Known(o.id), o.of_member), (o.allow, o.deny));
        live.overwrites.iter().filter(says).map(entry).collect()
    });
    Field {
        wire: "permission_overwrites",
        label: "overwrites",
        value: Wire::List(wanted.iter().map(|((handle, _), set)| wire(handle, *set)).collect()),
        to: shown(&wanted, guild, journal),
        from: is.map(|is| shown(&is, guild, journal)),
        usual: wanted.is_empty(),
    }
}

fn wire(handle: &Handle, (allow, deny): (Permissions, Permissions)) -> Wire {
    Wire::Object(vec![
        ("id", Wire::Id(handle.clone())),
        ("type", Wire::Plain(json!(0))),
        ("allow", Wire::Plain(json!(allow))),
        ("deny", Wire::Plain(json!(deny))),
    ])
}

/// For people. Two sets read alike only if they are: each entry has its id.
fn shown(set: &Set, guild: &Guild, journal: &Journal) -> String {
    if set.is_empty() {
        return "none".to_owned();
    }
    let entry = |((handle, of_member), (allow, deny)): (&(Handle, bool), &(Permissions, Permissions))| {
        let mut text = whom(handle, *of_member, guild, journal);
        for (word, set) in [("allow", allow), ("deny", deny)] {
            if !set.is_empty() {
                text.push_str(&format!(" {word} {set}"));
            }
        }
        text
    };
    set.iter().map(entry).collect::<Vec<_>>().join("; ")
}

fn whom(handle: &Handle, of_member: bool, guild: &Guild, journal: &Journal) -> String {
    let role = |id: Id| match (journal.key_of(Kind::Role, id), guild.role(id)) {
        (Some(key), _) => format!("{key} ({id})"),
        (None, Some(role)) => format!("{:?} ({id})", role.name),
        (None, None) => format!("role {id}"),
    };
    match handle {
        Handle::Made(_, key) => format!("{key} (new)"),
        Handle::Known(id) if of_member => format!("member {id}"),
        Handle::Known(id) if *id == guild.id => "@everyone".to_owned(),
        Handle::Known(id) => role(*id),
    }
}
