//! The engines of this process: a single engine when the store is its own, or this node's share of
//! the partitions of a store that several nodes use.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tidegate::{CompletionKey, Engine, Options};
use tidegate_cluster::{Cluster, Settings};
use tidegate_core::model::Counts;
use tidegate_store::Store;
use tidegate_store::outbox::PublishedUpstream;

use crate::api;
use crate::config::Config;
use crate::confirmation::ConfirmationKey;
use crate::dialects::Dialects;
use crate::edge::guard::GuardedRouter;
use crate::edge::node_secret::{self, NodeSecret};
use crate::error::{Error, ErrorCode, Result};
use crate::executors::{self, EngineInputs};
use crate::history::ActivityHistory;
use crate::pacing::caller::PacedCaller;
use crate::routing::{
    self, HandshakeClient, LocalPartitionHost, LocalPartitions, NodeHandshake, PartitionSetup, PeerClient,
    RoutingState,
};
use crate::state::{PartitionState, ServerState};
use crate::work;

/// How long the start waits for this node to join: longer than the handshakes of the other nodes
/// take.
const JOIN_TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) enum NodeRuntime {
    /// Everything in one engine.
    SingleNode(Arc<PartitionState>),
    /// This node's share of the partitions.
    Clustered(Arc<RoutingState>),
}

impl NodeRuntime {
    pub(crate) async fn start(
        config: &Config,
        addr: SocketAddr,
        server: Arc<ServerState>,
        dialects: Dialects,
    ) -> Result<Self> {
        let handover = server.pacing.handover.clone();
        let shared =
            executors::SharedParts { store: Some(&server.store), generations: server.generations.as_ref() };
        let inputs = executors::from_config(config, dialects, handover, shared)?;
        let secret = shared_secret(&*server.store).await?;
        server.confirmation_key.get_or_init(|| ConfirmationKey::new(&secret));
        let key = server.completion_key.get_or_init(|| CompletionKey::new(&secret)).clone();
        let options = engine_options(config).with_completion_key(key).with_journey_sink(server.traces.sink());
        if !server.store.is_shared() {
            return Self::start_single(server, options, inputs).await;
        }
        let EngineInputs { executors, limits, remote_kinds } = inputs;
        let address = advertised_address(config, addr)?;
        let partitions = server.store.ensure_partitions(config.cluster.partitions).await?;
        if partitions != config.cluster.partitions {
            let asked_for = config.cluster.partitions;
            tracing::warn!(
                partitions,
                asked_for,
                "the store keeps the number of partitions it was first used with"
            );
        }
        let node = node_name(config, addr, &*server.store)?;
        let plan = PartitionSetup {
            server: Arc::clone(&server),
            options: options.with_node(node.clone()),
            executors,
            remote_kinds,
            limits,
            spread: config.spread.clone(),
            partitions,
        };
        let local = Arc::new(LocalPartitions::new(plan));
        if server.store.outbox().is_some() {
            tokio::spawn(routing::wake_drainers(Arc::clone(&local)));
        }
        let secret = match &config.cluster.token {
            Some(secret) => NodeSecret::configured(secret.reveal())?,
            None => NodeSecret::from_store(Arc::clone(&server.store)).await?,
        };
        let peers = PeerClient::new(Arc::new(secret));
        let handshake = Arc::new(
            NodeHandshake::new(&node, &config.upstreams, &config.spread)
                .with_limited_kinds(&server.remote_kinds.limited),
        );
        let settings = Settings {
            partitions,
            placement_hash: handshake.placement_hash(),
            ..Settings::new(node, address)
        };
        let handshakes = HandshakeClient::new(peers.clone(), Arc::clone(&handshake));
        let host = LocalPartitionHost {
            partitions: Arc::clone(&local),
            handshakes,
            published: outbox_upstreams(config),
        };
        let cluster = Cluster::join(Arc::clone(&server.store), settings, Arc::new(host)).await?;
        let spread = config.spread.clone();
        let routing = Arc::new(RoutingState { cluster, partitions: local, peers, server, handshake, spread });
        if !routing.server.remote_kinds.is_empty() {
            tokio::spawn(routing::work::pull_from_peers(Arc::clone(&routing)));
            tokio::spawn(routing::work::return_undelivered(Arc::clone(&routing)));
        }
        Ok(Self::Clustered(routing))
    }

    /// Starts the engine of a store that is this process's own.
    async fn start_single(server: Arc<ServerState>, options: Options, inputs: EngineInputs) -> Result<Self> {
        let engine = Engine::builder(Arc::clone(&server.store))
            .options(options)
            .executors(inputs.executors)
            .remote_kinds(inputs.remote_kinds)
            .limits(inputs.limits)
            .archive(server.archiving.clone())
            .open()
            .await?;
        work::attach(&server.work, &engine);
        work::return_undelivered(&server.work, &engine, server.stopping.clone());
        let app = Arc::new(PartitionState::new(engine, server, true));
        ActivityHistory::sample(&app);
        if !app.server.discord_upstreams.is_empty() {
            let bots = app.server.discord_upstreams.clone();
            app.deployments.resume_interrupted(move |wanted| bots.contains(&wanted.upstream));
        }
        Ok(Self::SingleNode(app))
    }

    /// Waits until this node has joined, or logs why it has not. Other nodes must be able to reach
    /// it for that.
    pub(crate) async fn wait_until_joined(&self) {
        if let Self::Clustered(routing) = self {
            routing.cluster.wait_until_decided(JOIN_TIMEOUT).await;
        }
    }

    pub(crate) fn router(&self) -> GuardedRouter {
        match self {
            Self::SingleNode(app) => api::router(app),
            Self::Clustered(routing) => routing::router(routing),
        }
    }

    /// What this process calls upstreams with, through their limits.
    pub(crate) fn paced_caller(&self) -> PacedCaller {
        match self {
            Self::SingleNode(app) => PacedCaller::SingleNode(api::partition_router(Arc::clone(app))),
            Self::Clustered(routing) => PacedCaller::Clustered(Arc::clone(routing)),
        }
    }

    pub(crate) async fn counts(&self) -> Result<Counts> {
        match self {
            Self::SingleNode(app) => Ok(app.engine.counts().await?),
            Self::Clustered(routing) => routing.partitions.counts().await,
        }
    }

    pub(crate) async fn failed(&self) -> Error {
        match self {
            Self::SingleNode(app) => app.engine.stopped().await.into(),
            // A lost partition is taken over again, by this node or another.
            Self::Clustered(_) => std::future::pending().await,
        }
    }

    pub(crate) async fn drain(&self) {
        match self {
            Self::SingleNode(app) => {
                app.deployments.stop().await;
                app.engine.drain().await;
            }
            Self::Clustered(routing) => {
                routing.cluster.leave().await;
                routing.partitions.events().end();
            }
        }
    }
}

/// The upstreams as they are published for the store's outbox.
fn outbox_upstreams(config: &Config) -> Vec<PublishedUpstream> {
    let is_spread = |name: &String| config.spread.contains(name);
    let names = config.upstreams.iter().map(|upstream| &upstream.name);
    names.map(|name| PublishedUpstream { name: name.clone(), is_spread: is_spread(name) }).collect()
}

/// The name of this node, unique in its store.
///
/// # Errors
/// When other nodes could not reach it.
pub(crate) fn node_name(config: &Config, addr: SocketAddr, store: &dyn Store) -> Result<String> {
    if !store.is_shared() {
        return Ok(config.node.clone());
    }
    Ok(format!("{}@{}", config.node, advertised_address(config, addr)?))
}

/// The address at which the other nodes reach this one.
fn advertised_address(config: &Config, addr: SocketAddr) -> Result<String> {
    let wrong = |message: String| Err(Error::new(ErrorCode::BadConfig, message));
    let address = match &config.cluster.advertise {
        Some(address) => address.clone(),
        None if addr.ip().is_unspecified() => {
            return wrong(format!(
                "It listens on {addr}, where no other node can reach it by that name: set advertise in [cluster]."
            ));
        }
        None => addr.to_string(),
    };
    if config.cluster.token.is_none() && !addr.ip().is_loopback() {
        return wrong(
            "Nodes that can be reached from other machines need a secret: set token_env in [cluster].".into(),
        );
    }
    Ok(address)
}

/// Brings the store up to date, and returns the secret that it keeps for all nodes. The keys of
/// tokens are made from it.
async fn shared_secret(store: &dyn Store) -> Result<Vec<u8>> {
    if store.is_shared() {
        store.migrate().await?;
    }
    Ok(store.ensure_secret(node_secret::random()?).await?.to_vec())
}

/// The options of engines.
pub(crate) fn engine_options(config: &Config) -> Options {
    Options::default()
        .with_node(config.node.clone())
        .with_workers(config.workers)
        .with_dedupe_window(config.dedupe_window)
        .with_on_failure(config.on_failure.clone())
        .with_retention(config.retention)
        .with_drain(config.drain)
}
