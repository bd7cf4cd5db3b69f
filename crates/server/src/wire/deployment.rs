//! A deployment and its steps, as they are told: by the API, and by the command that reads the journal itself.

use serde_json::{Value, json};
use tidegate_core::journal::{Deployment, Stage, Step, StepState};

use super::time::At;

/// A deployment, with its steps where they are given. What was asked for is not in it: it may be long.
#[must_use]
pub fn deployment(one: &Deployment, steps: Option<&[Step]>) -> Value {
    let mut value = json!({
        "id": one.id,
        "scope": one.scope,
        "stage": one.stage.word(),
        "plans": one.round,
        "note": one.note,
        "started_at": At(one.started_at),
        "updated_at": At(one.updated_at),
        "finished_at": (one.stage != Stage::Running).then_some(At(one.updated_at)),
    });
    if let Some(steps) = steps {
        let in_state = |state| steps.iter().filter(|step| step.state == state).count();
        value["counts"] = json!({
            "planned": in_state(StepState::Planned),
            "applied": in_state(StepState::Applied),
            "failed": in_state(StepState::Failed),
        });
        value["steps"] = steps.iter().map(step).collect();
    }
    value
}

fn step(step: &Step) -> Value {
    json!({
        "kind": step.kind,
        "key": step.key,
        "action": step.action,
        "state": step.state.word(),
        "fingerprint": step.fingerprint,
        "object": step.foreign_id,
        "operation": step.operation,
        "note": step.note,
        "at": At(step.at),
    })
}
