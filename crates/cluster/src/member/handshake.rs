//! Handshakes with all nodes, this one included, to learn whether they respond, who they are, and
//! whether they accept calls from this node. A round runs concurrently with the looks at the store,
//! so a slow node delays no heartbeat.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tidegate_store::nodes::Node;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::Member;
use super::partitions::Event;
use crate::host::HandshakeOutcome;

/// The time between two rounds while this node has not joined.
const EVERY_APART: Duration = Duration::from_secs(2);
/// The time between two rounds while this node has joined.
const EVERY_JOINED: Duration = Duration::from_secs(10);

/// The state of the rounds.
#[derive(Default)]
pub(super) struct HandshakeRounds {
    /// When the last round ended.
    last: Option<Instant>,
    is_under_way: bool,
}

/// The responses of one round.
pub(super) struct HandshakeRound {
    own: HandshakeOutcome,
    others: BTreeMap<String, HandshakeOutcome>,
}

impl Member {
    /// Starts a round when one is due, or when a node is new.
    pub(super) fn start_handshakes(&mut self, nodes: &[Node]) {
        let me = &self.settings.node;
        let others: Vec<_> = nodes.iter().filter(|node| node.name != *me).collect();
        let is_new = others.iter().any(|node| !self.findings.others.contains_key(&node.name));
        let every = if self.joined { EVERY_JOINED } else { EVERY_APART };
        let is_due = is_new || self.handshakes.last.is_none_or(|last| last.elapsed() >= every);
        if self.handshakes.is_under_way || self.leaving || !is_due {
            return;
        }
        self.handshakes.is_under_way = true;
        let mut calls = JoinSet::new();
        for node in others {
            let (host, name, address) =
                (Arc::clone(&self.host), node.name.clone(), node.record.address.clone());
            calls.spawn(async move { (name, host.handshake(address).await) });
        }
        let (host, address, tell) =
            (Arc::clone(&self.host), self.settings.address.clone(), self.tell.clone());
        tokio::spawn(async move {
            let own = host.handshake(address).await;
            let mut others = BTreeMap::new();
            while let Some(met) = calls.join_next().await {
                others.extend(met.ok());
            }
            // Without a member no one needs the result.
            let _ = tell.send(Event::HandshakesDone(HandshakeRound { own, others }));
        });
    }

    /// Records the result of a round.
    pub(super) fn record_handshakes(&mut self, HandshakeRound { own, others }: HandshakeRound) {
        self.findings.record_round(own, others);
        self.handshakes = HandshakeRounds { last: Some(Instant::now()), is_under_way: false };
    }
}
