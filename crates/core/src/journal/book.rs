//! The journal as plain maps: the reference for every store, and the journal used where there is no
//! store.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{
    Deployment, DeploymentStage, DeploymentStep, ForeignObject, JournalLines, ObjectMapping, StepEvents,
};
use crate::bounds::{DEPLOYMENT_EVENTS_KEPT, DEPLOYMENTS_KEPT};

type MappingKey = (Arc<str>, Arc<str>);

/// An in-memory journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryJournal {
    deployments: BTreeMap<Arc<str>, Deployment>,
    steps: BTreeMap<Arc<str>, BTreeMap<MappingKey, DeploymentStep>>,
    events: BTreeMap<Arc<str>, StepEvents>,
    mapped: BTreeMap<Arc<str>, BTreeMap<MappingKey, ForeignObject>>,
}

impl MemoryJournal {
    /// Writes a deployment, new or known. Returns `false` and changes nothing when a writer with a
    /// newer fence has written it since. The first write of a new deployment prunes the scope: only
    /// its newest ended deployments stay.
    pub fn save_deployment(&mut self, deployment: Deployment) -> bool {
        match self.deployments.get(&deployment.id) {
            Some(known) if known.fence > deployment.fence => return false,
            Some(_) => {}
            None => self.make_room(&deployment.scope),
        }
        self.deployments.insert(Arc::clone(&deployment.id), deployment);
        true
    }

    fn make_room(&mut self, scope: &str) {
        let ended = |known: &&Deployment| *known.scope == *scope && known.stage != DeploymentStage::Running;
        let ended: Vec<_> =
            self.deployments.values().filter(ended).map(|known| Arc::clone(&known.id)).collect();
        for id in ended.iter().rev().skip(DEPLOYMENTS_KEPT - 1) {
            self.deployments.remove(id);
            self.steps.remove(id);
            self.events.remove(id);
        }
    }

    /// Writes lines of a deployment, and adds those of steps to its events; when there are too
    /// many, the oldest are dropped and counted. Returns `false` and changes nothing when the
    /// deployment does not exist or a writer with a newer fence has written it since.
    pub fn write_lines(&mut self, id: &str, fence: u64, lines: JournalLines) -> bool {
        let Some(known) = self.deployments.get(id).filter(|known| known.fence <= fence) else { return false };
        let steps = self.steps.entry(Arc::clone(&known.id)).or_default();
        let events = self.events.entry(Arc::clone(&known.id)).or_default();
        for step in lines.steps {
            events.events.push(step.clone());
            steps.insert((Arc::clone(&step.kind), Arc::clone(&step.key)), step);
        }
        let excess = events.events.len().saturating_sub(DEPLOYMENT_EVENTS_KEPT);
        events.events.drain(..excess);
        events.dropped += excess as u64;
        let mapped = self.mapped.entry(Arc::clone(&known.scope)).or_default();
        for ObjectMapping { kind, key, object } in lines.mapped {
            match object {
                Some(object) => mapped.insert((kind, key), object),
                None => mapped.remove(&(kind, key)),
            };
        }
        true
    }

    /// Returns the deployment with this id.
    #[must_use]
    pub fn deployment(&self, id: &str) -> Option<Deployment> {
        self.deployments.get(id).cloned()
    }

    /// Lists the deployments of a scope, or of all scopes, newest first; at most `most`.
    #[must_use]
    pub fn deployments(&self, scope: Option<&str>, most: usize) -> Vec<Deployment> {
        let of = |known: &&Deployment| scope.is_none_or(|scope| *known.scope == *scope);
        self.deployments.values().rev().filter(of).take(most).cloned().collect()
    }

    /// Lists the steps of a deployment, in order.
    #[must_use]
    pub fn steps(&self, id: &str) -> Vec<DeploymentStep> {
        let mut steps: Vec<_> =
            self.steps.get(id).into_iter().flat_map(|steps| steps.values().cloned()).collect();
        steps.sort_by(|a, b| (a.nth, &a.kind, &a.key).cmp(&(b.nth, &b.kind, &b.key)));
        steps
    }

    /// Lists the events of a deployment, oldest first.
    #[must_use]
    pub fn events(&self, id: &str) -> StepEvents {
        self.events.get(id).cloned().unwrap_or_default()
    }

    /// Lists the mapped objects of a scope, by kind and key.
    #[must_use]
    pub fn mapped_objects(&self, scope: &str) -> Vec<ObjectMapping> {
        let mapped = self.mapped.get(scope).into_iter().flatten();
        let line = |((kind, key), object): (&MappingKey, &ForeignObject)| ObjectMapping {
            kind: Arc::clone(kind),
            key: Arc::clone(key),
            object: Some(object.clone()),
        };
        mapped.map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::StepState;
    use crate::time::Time;

    fn deployment(id: &str, fence: u64, stage: DeploymentStage) -> Deployment {
        Deployment {
            id: id.into(),
            scope: "guild:1".into(),
            fence,
            round: 1,
            stage,
            request: Arc::from(&b"{}"[..]),
            note: None,
            started_at: Time::from_millis(1),
            updated_at: Time::from_millis(2),
        }
    }

    fn lines(key: &str, state: StepState, object: Option<&str>) -> JournalLines {
        let step = DeploymentStep {
            kind: "role".into(),
            key: key.into(),
            nth: 0,
            action: "create".into(),
            fingerprint: "f".into(),
            state,
            operation: None,
            foreign_id: None,
            note: None,
            at: Time::from_millis(3),
        };
        let object = object.map(|id| ForeignObject { id: id.into(), place: None, fingerprint: "f".into() });
        let mapped = vec![ObjectMapping { kind: "role".into(), key: key.into(), object }];
        JournalLines { steps: vec![step], mapped }
    }

    /// OPS-17: a step is planned, then applied with the object's id; it has a single line.
    #[test]
    fn ops_17_a_step_has_one_line_that_says_where_it_stands() {
        let mut book = MemoryJournal::default();
        assert!(
            !book.write_lines("a", 1, lines("desk", StepState::Planned, None)),
            "there is no such deployment"
        );
        assert!(book.save_deployment(deployment("a", 1, DeploymentStage::Running)));
        assert!(book.write_lines("a", 1, lines("desk", StepState::Planned, None)));
        assert!(book.write_lines("a", 1, lines("desk", StepState::Applied, Some("77"))));
        let steps = book.steps("a");
        assert_eq!((steps.len(), steps[0].state), (1, StepState::Applied));
        assert_eq!(book.mapped_objects("guild:1")[0].object.as_ref().map(|object| &*object.id), Some("77"));
        assert!(book.write_lines("a", 1, lines("desk", StepState::Applied, None)));
        assert!(book.mapped_objects("guild:1").is_empty(), "what was removed is forgotten");
    }

    /// OPS-17: each line of a step is an event; the oldest make room, and are counted.
    #[test]
    fn ops_17_each_line_of_a_step_is_an_event() {
        let mut book = MemoryJournal::default();
        assert!(book.save_deployment(deployment("a", 1, DeploymentStage::Running)));
        for state in [StepState::Planned, StepState::Failed, StepState::Planned, StepState::Applied] {
            assert!(book.write_lines("a", 1, lines("desk", state, None)));
        }
        let states: Vec<_> = book.events("a").events.iter().map(|event| event.state.as_str()).collect();
        assert_eq!(states, ["planned", "failed", "planned", "applied"]);
        let step = lines("door", StepState::Planned, None).steps.remove(0);
        let many = vec![step; DEPLOYMENT_EVENTS_KEPT - 1];
        assert!(book.write_lines("a", 1, JournalLines { steps: many, mapped: Vec::new() }));
        let StepEvents { dropped, events } = book.events("a");
        assert_eq!((dropped, events.len()), (3, DEPLOYMENT_EVENTS_KEPT));
        assert_eq!((&*events[0].key, events[0].state), ("desk", StepState::Applied));
    }

    #[test]
    fn who_lost_the_lease_writes_nothing() {
        let mut book = MemoryJournal::default();
        assert!(book.save_deployment(deployment("a", 1, DeploymentStage::Running)));
        assert!(
            book.save_deployment(deployment("a", 2, DeploymentStage::Running)),
            "another one goes on with it"
        );
        let before = book.clone();
        assert!(!book.save_deployment(deployment("a", 1, DeploymentStage::Done)));
        assert!(!book.write_lines("a", 1, lines("desk", StepState::Applied, Some("77"))));
        assert_eq!(book, before);
    }

    #[test]
    fn old_deployments_go_and_running_ones_stay() {
        let mut book = MemoryJournal::default();
        assert!(book.save_deployment(deployment("000", 1, DeploymentStage::Running)));
        for n in 1..=DEPLOYMENTS_KEPT + 5 {
            let id = format!("{n:03}");
            assert!(book.save_deployment(deployment(&id, 1, DeploymentStage::Done)));
            assert!(book.write_lines(&id, 1, lines("desk", StepState::Applied, Some("77"))));
        }
        let kept = book.deployments(Some("guild:1"), usize::MAX);
        assert_eq!(kept.len(), DEPLOYMENTS_KEPT + 1);
        assert_eq!((&*kept[0].id, &*kept[DEPLOYMENTS_KEPT].id), ("105", "000"));
        assert!(book.steps("005").is_empty() && !book.steps("006").is_empty());
        assert!(book.events("005").events.is_empty() && !book.events("006").events.is_empty());
        assert!(book.deployments(Some("guild:2"), 9).is_empty());
        assert_eq!(book.deployments(None, 3).len(), 3);
    }
}
