//! The one task of a node in the cluster. It sends heartbeats, reads which nodes are alive and
//! which partitions they own, and acquires or hands over partitions until this node has its share.
//! Hints from other nodes only make it look earlier.

mod handshake;
mod partitions;
mod presence;
mod version;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tidegate_core::id::Partition;
use tidegate_store::Store;
use tidegate_store::nodes::NodeRecord;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::admission::Findings;
use crate::host::PartitionHost;
use crate::join::{MemberCommand, Settings};
use crate::node_record;
use crate::view::ClusterView;
use handshake::HandshakeRounds;
use partitions::{Event, ServedPartition};

/// The topic of hints between nodes.
const TOPIC: &str = "cluster";
/// The shortest time between two looks at the store, however many are requested.
const LOOK_GAP: Duration = Duration::from_millis(20);
/// How often an outage of the store is logged.
const WARN_EVERY: Duration = Duration::from_secs(30);

pub(crate) struct Member {
    store: Arc<dyn Store>,
    settings: Settings,
    host: Arc<dyn PartitionHost>,
    held: BTreeMap<Partition, ServedPartition>,
    acquiring: BTreeSet<Partition>,
    /// The partitions that this node cannot read, and when each is tried again.
    unreadable: BTreeMap<Partition, Instant>,
    leaving: bool,
    /// The record that is published, if one is.
    published_record: Option<NodeRecord>,
    /// Whether this node has a share like the others, or may get one.
    joined: bool,
    /// Whether the record is published while the node checks who else is about to join.
    is_candidate: bool,
    /// The problem as last reported.
    trouble: Option<String>,
    findings: Findings,
    handshakes: HandshakeRounds,
    /// Whether a newer version has changed the store.
    outdated: bool,
    /// When the current outage of the store was last logged.
    outage_logged_at: Option<Instant>,
    view: watch::Sender<ClusterView>,
    tell: mpsc::UnboundedSender<Event>,
    events: mpsc::UnboundedReceiver<Event>,
}

impl Member {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        settings: Settings,
        host: Arc<dyn PartitionHost>,
        view: watch::Sender<ClusterView>,
    ) -> Self {
        let (tell, events) = mpsc::unbounded_channel();
        Self {
            store,
            settings,
            host,
            held: BTreeMap::new(),
            acquiring: BTreeSet::new(),
            unreadable: BTreeMap::new(),
            leaving: false,
            published_record: None,
            joined: false,
            is_candidate: false,
            trouble: None,
            findings: Findings::default(),
            handshakes: HandshakeRounds::default(),
            outdated: false,
            outage_logged_at: None,
            view,
            tell,
            events,
        }
    }

    pub(crate) async fn run(mut self, mut orders: mpsc::Receiver<MemberCommand>) {
        let mut hints = self.listen().await;
        let mut look_at = Instant::now();
        let (mut gone, mut is_wanted) = (None, true);
        loop {
            tokio::select! {
                () = tokio::time::sleep_until(look_at) => {
                    self.look().await;
                    look_at = Instant::now() + self.settings.every;
                    if self.leaving && self.held.is_empty() && self.acquiring.is_empty() {
                        break;
                    }
                }
                Some(event) = self.events.recv() => {
                    self.handle_event(event).await;
                    look_at = look_at.min(Instant::now() + LOOK_GAP);
                }
                Some(_) = hints.recv() => look_at = look_at.min(Instant::now() + LOOK_GAP),
                order = orders.recv(), if is_wanted => {
                    // Without anyone who could request it, the node leaves by itself.
                    is_wanted = order.is_some();
                    if let Some(MemberCommand::Leave(done)) = order {
                        gone = Some(done);
                    }
                    self.leaving |= gone.is_some() || !is_wanted;
                    look_at = look_at.min(Instant::now() + LOOK_GAP);
                }
            }
        }
        // A node that cannot withdraw its record is removed when its time expires.
        let _ = self.withdraw_record().await;
        self.hint().await;
        if let Some(gone) = gone {
            let _ = gone.send(());
        }
    }

    async fn listen(&self) -> mpsc::Receiver<String> {
        match self.store.listen(TOPIC).await {
            Ok(hints) => hints,
            Err(error) => {
                tracing::warn!(%error, "no hints from other nodes; polling the store instead");
                mpsc::channel(1).1
            }
        }
    }

    async fn hint(&self) {
        if let Err(error) = self.store.notify(TOPIC, &self.settings.node).await {
            tracing::debug!(%error, "could not notify the other nodes");
        }
    }

    /// Looks at the store and acts on what it finds.
    async fn look(&mut self) {
        if self.is_outdated().await {
            if self.leaving {
                self.hand_over_all();
            }
            return;
        }
        match self.refresh_membership().await {
            Ok((nodes, owners)) => {
                self.outage_logged_at = None;
                self.start_handshakes(&nodes);
                self.apply_share(&node_record::candidates(&nodes), &owners);
                let (me, here) = (self.settings.node.clone(), self.held.keys().copied().collect());
                let partitions = self.view.borrow().partitions;
                let (joined, trouble) = (self.joined, self.trouble.clone());
                let next = ClusterView {
                    this_node: me,
                    partitions,
                    joined,
                    problem: trouble,
                    nodes,
                    owners,
                    local_partitions: here,
                };
                self.view.send_if_modified(|view| {
                    let changed = *view != next;
                    *view = next;
                    changed
                });
            }
            // The partitions served by this node continue: the store checks each append.
            Err(error) => {
                if self.outage_logged_at.is_none_or(|warned| warned.elapsed() >= WARN_EVERY) {
                    tracing::warn!(%error, "could not read the state of the other nodes");
                    self.outage_logged_at = Some(Instant::now());
                }
                if self.leaving {
                    self.hand_over_all();
                }
            }
        }
    }
}
