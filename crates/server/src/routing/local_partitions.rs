//! The partitions that this node serves, each with its own engine and router. The cluster decides
//! when a partition is opened and when it is handed off to another node.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use axum::Router;
use tidegate::{Engine, EventSink, Executors, InFlightCalls, Options};
use tidegate_cluster::{AcquireError, BoxFuture, HandshakeOutcome, PartitionHandle, PartitionHost};
use tidegate_core::fact::LimitShape;
use tidegate_core::id::Partition;
use tidegate_core::model::Counts;
use tidegate_core::{LimitName, Placement};
use tidegate_store::outbox::PublishedUpstream;
use tokio::sync::Notify;

use super::drainer::Drainer;
use super::events::NodeEvents;
use super::handshake::HandshakeClient;
use super::placement::PlacementKey;
use crate::api;
use crate::deployment_runner::DeploymentRunner;
use crate::generations;
use crate::history::ActivityHistory;
use crate::state::{PartitionState, ServerState};
use crate::work;

/// What every partition is set up with.
pub(crate) struct PartitionSetup {
    pub server: Arc<ServerState>,
    pub options: Options,
    pub executors: Executors,
    /// The kinds that are left to remote workers.
    pub remote_kinds: Vec<Arc<str>>,
    /// Limits by the upstream they belong to.
    pub limits: Vec<(Arc<str>, LimitShape)>,
    pub spread: std::collections::BTreeSet<String>,
    pub partitions: Partition,
}

struct LocalPartition {
    engine: Engine,
    router: Router,
    /// Wakes its drainer.
    wake: Arc<Notify>,
}

/// The open partitions.
pub(crate) struct LocalPartitions {
    setup: PartitionSetup,
    /// Calls in flight by partition, kept when an engine loses its partition.
    in_flight: Mutex<BTreeMap<Partition, InFlightCalls>>,
    open: RwLock<BTreeMap<Partition, LocalPartition>>,
    events: Arc<NodeEvents>,
}

impl LocalPartitions {
    pub(crate) fn new(mut plan: PartitionSetup) -> Self {
        let events = Arc::new(NodeEvents::new(&plan.options.node));
        let published = Arc::clone(&events);
        let sink = EventSink::new(move |event| published.publish(event));
        plan.options = plan.options.with_event_sink(sink);
        Self { setup: plan, in_flight: Mutex::default(), open: RwLock::default(), events }
    }

    /// The router of a partition, if this node serves it.
    pub(super) fn router(&self, partition: Partition) -> Option<Router> {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        open.get(&partition).map(|room| room.router.clone())
    }

    pub(crate) fn engines(&self) -> Vec<Engine> {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        open.values().map(|room| room.engine.clone()).collect()
    }

    pub(super) fn server(&self) -> &Arc<ServerState> {
        &self.setup.server
    }

    /// Wakes the drainer of a partition, if this node serves it.
    pub(super) fn wake(&self, partition: Partition) {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(room) = open.get(&partition) {
            room.wake.notify_one();
        }
    }

    /// The events of all local partitions.
    pub(crate) const fn events(&self) -> &Arc<NodeEvents> {
        &self.events
    }

    /// Counts the operations of all local partitions by state.
    pub(crate) async fn counts(&self) -> crate::error::Result<Counts> {
        let mut counts = Counts::default();
        for engine in self.engines() {
            counts += engine.counts().await?;
        }
        Ok(counts)
    }

    fn in_flight(&self, partition: Partition) -> InFlightCalls {
        let mut all = self.in_flight.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(partition).or_default().clone()
    }

    fn close(&self, partition: Partition) {
        self.open.write().unwrap_or_else(PoisonError::into_inner).remove(&partition);
    }

    /// The limits that belong to a partition.
    fn limits_of(&self, partition: Partition) -> Vec<(Arc<str>, LimitShape)> {
        let here = |name: &str| {
            let upstream = generations::home_of_limit(LimitName::parse(name).upstream());
            self.setup.spread.contains(upstream)
                || Placement::Upstream(upstream).partition(self.setup.partitions) == partition
        };
        self.setup.limits.iter().filter(|(name, _)| here(name)).cloned().collect()
    }

    /// Resumes the deployments that belong to a partition.
    fn resume_deployments(&self, deploying: &DeploymentRunner, partition: Partition) {
        let PartitionSetup { server, spread, partitions, .. } = &self.setup;
        if server.discord_upstreams.is_empty() {
            return;
        }
        let (bots, spread, partitions) = (server.discord_upstreams.clone(), spread.clone(), *partitions);
        deploying.resume_interrupted(move |wanted| {
            let head = PlacementKey::new(wanted.upstream.as_str().into(), wanted.group().into());
            bots.contains(&wanted.upstream) && head.partition_among(&spread, partitions) == partition
        });
    }
}

/// The partition host that the cluster calls.
pub(crate) struct LocalPartitionHost {
    pub partitions: Arc<LocalPartitions>,
    pub handshakes: HandshakeClient,
    /// The upstreams as they are published for the store's outbox.
    pub published: Vec<PublishedUpstream>,
}

impl PartitionHost for LocalPartitionHost {
    fn handshake(&self, address: String) -> BoxFuture<'_, HandshakeOutcome> {
        Box::pin(async move { self.handshakes.probe(&address).await })
    }

    /// Publishes the placement of upstreams to the store's outbox. A node that places differently
    /// must not.
    fn prepare(&self) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async move {
            let Some(outbox) = self.partitions.setup.server.store.outbox() else { return Ok(()) };
            outbox.publish(self.published.clone()).await.map_err(|error| error.to_string())
        })
    }

    fn acquire_partition(
        &self,
        partition: Partition,
    ) -> BoxFuture<'_, Result<Arc<dyn PartitionHandle>, AcquireError>> {
        let partitions = Arc::clone(&self.partitions);
        Box::pin(async move {
            let PartitionSetup { server, options, executors, remote_kinds, .. } = &partitions.setup;
            let in_flight = partitions.in_flight(partition);
            let options = options.clone().with_partition(partition).with_in_flight(in_flight);
            let limits = partitions.limits_of(partition);
            let (store, archiving) = (Arc::clone(&server.store), server.archiving.clone());
            let engine = Engine::builder(store)
                .options(options)
                .executors(executors.clone())
                .remote_kinds(remote_kinds.iter().cloned())
                .limits(limits)
                .archive(archiving)
                .open()
                .await;
            let declined =
                |error: tidegate::Error| AcquireError { why: error.message, unreadable: error.unreadable };
            let engine = engine.map_err(declined)?;
            work::attach(&server.work, &engine);
            let has_generations = generations::partition(partitions.setup.partitions) == partition;
            let app = PartitionState::new(engine.clone(), Arc::clone(server), has_generations);
            let app = Arc::new(app);
            ActivityHistory::sample(&app);
            let deploying = app.deployments.clone();
            partitions.resume_deployments(&deploying, partition);
            let wake = Arc::new(Notify::new());
            if server.store.outbox().is_some() {
                let drainer = Drainer {
                    engine: engine.clone(),
                    wake: Arc::clone(&wake),
                    kinds: server.remote_kinds.clone(),
                };
                tokio::spawn(drainer.run());
            }
            let room = LocalPartition { engine: engine.clone(), router: api::partition_router(app), wake };
            partitions.open.write().unwrap_or_else(PoisonError::into_inner).insert(partition, room);
            Ok(Arc::new(LocalPartitionHandle {
                partitions: Arc::clone(&partitions),
                engine,
                deployments: deploying,
                partition,
                is_handed_over: AtomicBool::new(false),
            }) as Arc<dyn PartitionHandle>)
        })
    }
}

struct LocalPartitionHandle {
    partitions: Arc<LocalPartitions>,
    engine: Engine,
    deployments: DeploymentRunner,
    partition: Partition,
    is_handed_over: AtomicBool,
}

impl PartitionHandle for LocalPartitionHandle {
    fn hand_over(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.is_handed_over.store(true, Ordering::Release);
            self.deployments.stop().await;
            self.engine.hand_over().await;
            self.partitions.close(self.partition);
        })
    }

    fn ended(&self) -> BoxFuture<'_, String> {
        Box::pin(async move {
            let why = self.engine.stopped().await;
            if !self.is_handed_over.load(Ordering::Acquire) {
                // Its last writes may have reached the store without an event.
                self.partitions.events.publish_gap();
            }
            self.deployments.stop().await;
            self.partitions.close(self.partition);
            why.message
        })
    }
}
