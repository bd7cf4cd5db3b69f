//! Steps for roles.

use serde_json::json;

use super::call::GuildRoute;
use super::field::{DesiredObject, Field};
use super::fingerprint;
use super::matching::Matches;
use super::step::PlanStep;
use super::wire::UnresolvedJson;
use crate::ObjectKind;
use crate::guild::{self, Guild};
use crate::journal::GuildJournal;
use crate::template::{RoleSpec, Template};

/// Returns a step for each role, in the order of the template: a new role enters at the bottom, so
/// the highest comes first.
pub(super) fn steps(
    template: &Template,
    guild: &Guild,
    journal: &GuildJournal,
    matches: &Matches,
) -> Vec<PlanStep> {
    let step = |role: &RoleSpec| {
        let live = matches.id(ObjectKind::Role, &role.key).and_then(|id| guild.role(id));
        let object = DesiredObject {
            kind: ObjectKind::Role,
            key: &role.key,
            id: live.map(|live| live.id),
            entry: journal.get(ObjectKind::Role, &role.key),
            fingerprint: fingerprint::role(template, role),
            fixed: Vec::new(),
            fields: fields(template, role, live),
        };
        object.step(GuildRoute::RoleCreate, GuildRoute::RoleEdit)
    };
    template.roles.iter().map(step).collect()
}

fn color(color: u32) -> String {
    if color == 0 { "none".to_owned() } else { format!("#{color:06x}") }
}

/// Returns the fields of a role. Permissions are always sent: without them a role gets those of
/// @everyone.
fn fields(template: &Template, role: &RoleSpec, live: Option<&guild::Role>) -> Vec<Field> {
    let name = template.role_name(role);
    let shown = |name: &str| format!("{:?}", template.names.shown(name));
    let yes = |label: &'static str, to: bool, from: Option<bool>| Field {
        wire: label,
        label,
        value: UnresolvedJson::Plain(json!(to)),
        to: to.to_string(),
        from: from.map(|from| from.to_string()),
        usual: !to,
    };
    vec![
        Field {
            wire: "name",
            label: "name",
            value: UnresolvedJson::Plain(json!(name)),
            to: shown(&name),
            from: live.map(|live| shown(&live.name)),
            usual: false,
        },
        Field {
            wire: "permissions",
            label: "permissions",
            value: UnresolvedJson::Plain(json!(role.permissions)),
            to: role.permissions.to_string(),
            from: live.map(|live| live.permissions.to_string()),
            usual: role.permissions.is_empty(),
        },
        Field {
            wire: "color",
            label: "color",
            value: UnresolvedJson::Plain(json!(role.color)),
            to: color(role.color),
            from: live.map(|live| color(live.color)),
            usual: role.color == 0,
        },
        yes("hoist", role.hoist, live.map(|live| live.hoist)),
        yes("mentionable", role.mentionable, live.map(|live| live.mentionable)),
    ]
}
