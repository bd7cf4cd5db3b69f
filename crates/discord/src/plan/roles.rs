//! Steps for roles.

use serde_json::json;

use super::call::Route;
use super::field::{Field, Object};
use super::fingerprint;
use super::matching::Matches;
use super::step::Step;
use super::wire::Wire;
use crate::Kind;
use crate::guild::{self, Guild};
use crate::journal::Journal;
use crate::name;
use crate::template::{Role, Template};

/// One for each role, in the order of the template: a new role enters at the bottom, so the highest comes first.
pub(super) fn steps(template: &Template, guild: &Guild, journal: &Journal, matches: &Matches) -> Vec<Step> {
    let step = |role: &Role| {
        let live = matches.id(Kind::Role, &role.key).and_then(|id| guild.role(id));
        let object = Object {
            kind: Kind::Role,
            key: &role.key,
            id: live.map(|live| live.id),
            entry: journal.get(Kind::Role, &role.key),
            fingerprint: fingerprint::role(template, role),
            fixed: Vec::new(),
            fields: fields(template, role, live),
        };
        object.step(Route::RoleCreate, Route::RoleEdit)
    };
    template.roles.iter().map(step).collect()
}

fn color(color: u32) -> String {
    if color == 0 { "none".to_owned() } else { format!("#{color:06x}") }
}

/// Permissions are always sent: without them a role gets those of @everyone.
fn fields(template: &Template, role: &Role, live: Option<&guild::Role>) -> Vec<Field> {
    let name = name::marked(&template.prefix, &role.name, &role.key);
    let yes = |label: &'static str, to: bool, from: Option<bool>| Field {
        wire: label,
        label,
        value: Wire::Plain(json!(to)),
        to: to.to_string(),
        from: from.map(|from| from.to_string()),
        usual: !to,
    };
    vec![
        Field {
            wire: "name",
            label: "name",
            value: Wire::Plain(json!(name)),
            to: format!("{name:?}"),
            from: live.map(|live| format!("{:?}", live.name)),
            usual: false,
        },
        Field {
            wire: "permissions",
            label: "permissions",
            value: Wire::Plain(json!(role.permissions)),
            to: role.permissions.to_string(),
            from: live.map(|live| live.permissions.to_string()),
            usual: role.permissions.is_empty(),
        },
        Field {
            wire: "color",
            label: "color",
            value: Wire::Plain(json!(role.color)),
            to: color(role.color),
            from: live.map(|live| color(live.color)),
            usual: role.color == 0,
        },
        yes("hoist", role.hoist, live.map(|live| live.hoist)),
        yes("mentionable", role.mentionable, live.map(|live| live.mentionable)),
    ]
}
