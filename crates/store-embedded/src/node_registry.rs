//! Node membership when all nodes are in this process: a registry and channels. Nothing of it
//! outlives the process.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidegate_core::bounds::HINTS_WAITING_MAX;
use tidegate_store::nodes::{Node, NodeRecord};
use tidegate_store::{Clock, Error, Result, StoreErrorKind};
use tokio::sync::mpsc;

/// The registry of nodes and the listeners of topics.
pub(crate) struct NodeRegistry {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    nodes: BTreeMap<String, Node>,
    listeners: HashMap<String, Vec<mpsc::Sender<String>>>,
}

impl NodeRegistry {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, state: Mutex::default() }
    }

    pub(crate) fn register(&self, name: &str, record: NodeRecord, ttl: Duration) -> Node {
        let until = self.clock.now().after(ttl);
        let node = Node { name: name.into(), record, until };
        self.state().nodes.insert(name.into(), node.clone());
        node
    }

    pub(crate) fn heartbeat(&self, name: &str, ttl: Duration) -> Result<Node> {
        let now = self.clock.now();
        let mut state = self.state();
        state.nodes.retain(|_, node| node.until > now);
        let Some(node) = state.nodes.get_mut(name) else {
            return Err(Error::new(StoreErrorKind::Invalid, format!("the node {name} is not registered")));
        };
        node.until = now.after(ttl);
        Ok(node.clone())
    }

    pub(crate) fn list(&self) -> Vec<Node> {
        let now = self.clock.now();
        self.state().nodes.values().filter(|node| node.until > now).cloned().collect()
    }

    pub(crate) fn notify(&self, topic: &str, hint: &str) -> usize {
        let mut state = self.state();
        let Some(listeners) = state.listeners.get_mut(topic) else { return 0 };
        listeners.retain(|listener| !listener.is_closed());
        let reached = listeners.iter().filter(|listener| listener.try_send(hint.into()).is_ok()).count();
        if listeners.is_empty() {
            state.listeners.remove(topic);
        }
        reached
    }

    pub(crate) fn listen(&self, topic: &str) -> mpsc::Receiver<String> {
        let (listener, hints) = mpsc::channel(HINTS_WAITING_MAX);
        let mut state = self.state();
        let listeners = state.listeners.entry(topic.into()).or_default();
        listeners.retain(|listener| !listener.is_closed());
        listeners.push(listener);
        hints
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
