//! JSON output of a plan and its estimate, for scripts.

use serde_json::{Value, json};
use tidegate_core::fingerprint::{Fingerprint, hex};

use super::step::{Action, PlanStep};
use super::{Conflict, Estimate, Namesake, Plan};

impl Plan {
    /// Returns a digest of the plan: another one means that something else would be done.
    #[must_use]
    pub fn digest(&self) -> String {
        let mut plan = self.to_json();
        if let Some(fields) = plan.as_object_mut() {
            // They are about what stays as it is.
            fields.retain(|name, _| !matches!(name.as_str(), "namesakes" | "remarks"));
        }
        hex(&Fingerprint::of("discord plan").part(plan.to_string().as_bytes()).finish()[..16])
    }

    /// Converts the plan to JSON. Ids that are not known yet are written as `<role mods>`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let leftovers = self.leftovers.iter().map(|left| {
            json!({"kind": left.kind, "key": left.key, "id": left.id, "channel": left.channel, "name": left.name})
        });
        json!({
            "guild": self.guild,
            "writes": self.writes().count(),
            "steps": self.steps.iter().map(step_json).collect::<Vec<_>>(),
            "conflicts": self.conflicts.iter().map(Conflict::to_json).collect::<Vec<_>>(),
            "leftovers": leftovers.collect::<Vec<_>>(),
            "namesakes": self.namesakes.iter().map(namesake_json).collect::<Vec<_>>(),
            "remarks": self.remarks,
            "warning": self.warning(),
        })
    }
}

fn step_json(step: &PlanStep) -> Value {
    let changes = step.changes.iter().map(|change| {
        let to = (step.action != Action::Remove).then_some(&change.to);
        json!({"field": change.field, "from": change.from, "to": to})
    });
    let (kind, key) = step.target.words();
    let call = step.call.as_ref().map(|call| {
        let route = &call.route;
        json!({"method": route.method().as_str(), "route": route.template(), "body": call.to_display_json()})
    });
    json!({
        "kind": kind,
        "key": key,
        "action": step.action.as_str(),
        "operation": step.operation(),
        "id": step.id,
        "adopted": step.adopted,
        "drift": step.drift.map(super::Drift::as_str),
        "fingerprint": step.fingerprint,
        "changes": changes.collect::<Vec<_>>(),
        "call": call,
    })
}

fn namesake_json(other: &Namesake) -> Value {
    json!({
        "kind": other.kind, "key": other.key, "id": other.id, "name": other.name, "managed_id": other.managed_id,
    })
}

impl Conflict {
    /// Converts the conflict to JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let message = self.to_string();
        match self {
            Self::DuplicateKey { kind, key, ids, names } => {
                json!({"what": "several", "kind": kind, "key": key, "ids": ids, "names": names, "message": message})
            }
            Self::TypeMismatch { key, id, .. } => {
                json!({"what": "other_type", "kind": "channel", "key": key, "ids": [id], "message": message})
            }
            Self::NoRoom { what, would_be, most } => {
                json!({"what": "no_room", "of": what, "would_be": would_be, "most": most, "message": message})
            }
            Self::MissingPermission { permission, steps, .. } => {
                json!({"what": "missing_permission", "permission": permission.to_string(), "steps": steps, "message": message})
            }
            Self::LockedOut { permission, kind, key, .. } => {
                let permission = permission.to_string();
                json!({"what": "locked_out", "permission": permission, "kind": kind, "key": key, "message": message})
            }
            Self::RoleAboveBot { key, id } => {
                json!({"what": "role_above_bot", "kind": "role", "key": key, "ids": [id], "message": message})
            }
            Self::NoCommunity { channels } => {
                json!({"what": "no_community", "channels": channels, "message": message})
            }
        }
    }
}

impl Estimate {
    /// Converts the estimate to JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let by_route =
            self.by_route.iter().map(|((verb, route), count)| (format!("{verb} {route}"), json!(count)));
        json!({
            "roles_left": self.roles_left,
            "channels_left": self.channels_left,
            "calls": self.calls,
            "calls_by_route": by_route.collect::<serde_json::Map<_, _>>(),
            "role_creates_left": self.role_creates_left,
            "renames_held": self.renames_held,
            "time_ms": self.time_ms,
            "routes_unknown": self.routes_unknown,
        })
    }
}
