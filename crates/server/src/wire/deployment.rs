//! A deployment, its steps and its events as JSON, for the API and for the command that reads the
//! journal itself.

use serde_json::{Value, json};
use tidegate_core::journal::{Deployment, DeploymentStage, DeploymentStep, StepEvents, StepState};

use super::time::Timestamp;

/// A deployment, with its steps if they are given. The request is not included: it may be long.
#[must_use]
pub fn deployment_json(one: &Deployment, steps: Option<&[DeploymentStep]>) -> Value {
    let mut value = json!({
        "id": one.id,
        "scope": one.scope,
        "stage": one.stage.as_str(),
        "plans": one.round,
        "note": one.note,
        "started_at": Timestamp(one.started_at),
        "updated_at": Timestamp(one.updated_at),
        "finished_at": (one.stage != DeploymentStage::Running).then_some(Timestamp(one.updated_at)),
    });
    if let Some(steps) = steps {
        let in_state = |state| steps.iter().filter(|step| step.state == state).count();
        value["counts"] = json!({
            "planned": in_state(StepState::Planned),
            "applied": in_state(StepState::Applied),
            "failed": in_state(StepState::Failed),
        });
        value["steps"] = steps.iter().map(step_json).collect();
    }
    value
}

/// The events of a deployment, oldest first, and how many older ones were dropped.
#[must_use]
pub fn events_json(deployment: &str, events: &StepEvents) -> Value {
    let listed: Vec<Value> = events.events.iter().map(step_json).collect();
    json!({ "deployment": deployment, "dropped": events.dropped, "events": listed })
}

fn step_json(step: &DeploymentStep) -> Value {
    json!({
        "kind": step.kind,
        "key": step.key,
        "action": step.action,
        "state": step.state.as_str(),
        "fingerprint": step.fingerprint,
        "object": step.foreign_id,
        "operation": step.operation,
        "note": step.note,
        "at": Timestamp(step.at),
    })
}
