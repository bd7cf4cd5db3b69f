//! JSON output of a plan and its estimate, for scripts.

use serde_json::{Value, json};
use tidegate_core::fingerprint::{Fingerprint, hex};

use super::step::PlanStep;
use super::{Conflict, Estimate, Plan};

impl Plan {
    /// Returns a digest of the plan: another one means that something else would be done.
    #[must_use]
    pub fn digest(&self) -> String {
        hex(&Fingerprint::of("discord plan").part(self.to_json().to_string().as_bytes()).finish()[..16])
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
            "conflicts": self.conflicts.iter().map(conflict_json).collect::<Vec<_>>(),
            "leftovers": leftovers.collect::<Vec<_>>(),
            "warning": self.warning(),
        })
    }
}

fn step_json(step: &PlanStep) -> Value {
    let changes = step
        .changes
        .iter()
        .map(|change| json!({"field": change.field, "from": change.from, "to": change.to}));
    let (kind, key) = match &step.target {
        super::StepTarget::Object(kind, key) => (kind.to_string(), key.to_string()),
        super::StepTarget::RoleOrder => ("order".to_owned(), "roles".to_owned()),
        super::StepTarget::ChannelOrder => ("order".to_owned(), "channels".to_owned()),
    };
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

fn conflict_json(conflict: &Conflict) -> Value {
    let message = conflict.to_string();
    match conflict {
        Conflict::DuplicateKey { kind, key, ids } => {
            json!({"what": "several", "kind": kind, "key": key, "ids": ids, "message": message})
        }
        Conflict::TypeMismatch { key, id, .. } => {
            json!({"what": "other_type", "kind": "channel", "key": key, "ids": [id], "message": message})
        }
        Conflict::NoRoom { what, would_be, most } => {
            json!({"what": "no_room", "of": what, "would_be": would_be, "most": most, "message": message})
        }
        Conflict::MissingPermission { permission, steps, .. } => {
            json!({"what": "missing_permission", "permission": permission.to_string(), "steps": steps, "message": message})
        }
        Conflict::RoleAboveBot { key, id } => {
            json!({"what": "role_above_bot", "kind": "role", "key": key, "ids": [id], "message": message})
        }
        Conflict::NoCommunity { channels } => {
            json!({"what": "no_community", "channels": channels, "message": message})
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
        })
    }
}
