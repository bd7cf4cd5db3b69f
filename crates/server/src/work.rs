//! What works behind the door: one engine, when the store is this process's own, or this node's share of the
//! partitions of a store that many nodes use.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tidegate::{Code, Engine, Error, Options, Result};
use tidegate_cluster::{Cluster, Settings};
use tidegate_core::model::Counts;
use tidegate_store::outbox::Published;

use crate::api;
use crate::app::{App, House};
use crate::carriers::{self, Carriers};
use crate::config::Config;
use crate::dialects::Dialects;
use crate::edge::front_door::Guarded;
use crate::edge::node_secret::NodeSecret;
use crate::front::{self, Courier, Front, Greeter, Hello, Landlord, Plan, Rooms};

/// How long a start waits until this node takes part: longer than the others take to say who they are.
const SETTLED: Duration = Duration::from_secs(5);

pub(crate) enum Work {
    /// All of it, in one engine.
    Alone(Arc<App>),
    /// A share of it.
    Shared(Arc<Front>),
}

impl Work {
    pub(crate) async fn start(
        config: &Config,
        addr: SocketAddr,
        house: Arc<House>,
        dialects: Dialects,
    ) -> Result<Self> {
        let Carriers { executors, limits } = carriers::of(config, dialects, house.pacing.handover.clone())?;
        let options = options(config);
        if !house.store.is_shared() {
            let (store, archiving) = (Arc::clone(&house.store), house.archiving.clone());
            let engine = Engine::open_archived(store, archiving, options, executors, limits).await?;
            let app = App::new(engine, house);
            if !app.house.bots.is_empty() {
                let bots = app.house.bots.clone();
                app.deploying.go_on(move |wanted| bots.contains(&wanted.upstream));
            }
            return Ok(Self::Alone(Arc::new(app)));
        }
        let address = address(config, addr)?;
        house.store.migrate().await?;
        let partitions = house.store.partitions(config.cluster.partitions).await?;
        if partitions != config.cluster.partitions {
            let asked_for = config.cluster.partitions;
            tracing::warn!(
                partitions,
                asked_for,
                "the store keeps the number of partitions it was first used with"
            );
        }
        let node = format!("{}@{address}", config.node);
        let plan = Plan {
            house: Arc::clone(&house),
            options: Options { node: node.clone(), ..options },
            executors,
            limits,
            spread: config.spread.clone(),
            partitions,
        };
        let rooms = Arc::new(Rooms::new(plan));
        if house.store.outbox().is_some() {
            tokio::spawn(front::hear(Arc::clone(&rooms)));
        }
        let secret = match &config.cluster.token {
            Some(secret) => NodeSecret::configured(secret.reveal())?,
            None => NodeSecret::kept_in(Arc::clone(&house.store)).await?,
        };
        let courier = Courier::new(Arc::new(secret));
        let hello = Arc::new(Hello::new(&node, &config.upstreams, &config.spread));
        let settings = Settings { partitions, placing: hello.placing(), ..Settings::new(node, address) };
        let greeter = Greeter::new(courier.clone(), Arc::clone(&hello));
        let landlord = Landlord { rooms: Arc::clone(&rooms), greeter, published: published(config) };
        let cluster = Cluster::join(Arc::clone(&house.store), settings, Arc::new(landlord)).await?;
        let spread = config.spread.clone();
        Ok(Self::Shared(Arc::new(Front { cluster, rooms, courier, house, hello, spread })))
    }

    /// Waits until this node takes part, or says why it does not. It has to be reached for that.
    pub(crate) async fn settled(&self) {
        if let Self::Shared(front) = self {
            front.cluster.settled(SETTLED).await;
        }
    }

    pub(crate) fn router(&self) -> Guarded {
        match self {
            Self::Alone(app) => api::router(app),
            Self::Shared(front) => front::router(front),
        }
    }

    pub(crate) async fn counts(&self) -> Result<Counts> {
        match self {
            Self::Alone(app) => app.engine.counts().await,
            Self::Shared(front) => front.rooms.counts().await,
        }
    }

    pub(crate) async fn failed(&self) -> Error {
        match self {
            Self::Alone(app) => app.engine.stopped().await,
            // A share that was lost is taken on again, here or elsewhere.
            Self::Shared(_) => std::future::pending().await,
        }
    }

    pub(crate) async fn drain(&self) {
        match self {
            Self::Alone(app) => {
                app.deploying.end().await;
                app.engine.drain().await;
            }
            Self::Shared(front) => front.cluster.leave().await,
        }
    }
}

/// What the store's outbox has to know of upstreams.
fn published(config: &Config) -> Vec<Published> {
    let is_spread = |name: &String| config.spread.contains(name);
    let names = config.upstreams.iter().map(|upstream| &upstream.name);
    names.map(|name| Published { name: name.clone(), is_spread: is_spread(name) }).collect()
}

/// Where the other nodes reach this one.
fn address(config: &Config, addr: SocketAddr) -> Result<String> {
    let wrong = |message: String| Err(Error::new(Code::BadConfig, message));
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

/// The settings of engines.
pub(crate) fn options(config: &Config) -> Options {
    Options {
        node: config.node.clone(),
        workers: config.workers,
        dedupe_window: config.dedupe_window,
        on_failure: config.on_failure.clone(),
        retention: config.retention,
        drain: config.drain,
        ..Options::default()
    }
}
