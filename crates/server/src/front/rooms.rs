//! The partitions that this node serves: each a room with an engine and a router of its own. The cluster says when a
//! room is opened and when it is given to another node.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use axum::Router;
use tidegate::{Engine, Event, Executors, InFlight, Options};
use tidegate_cluster::{Answered, Declined, Host, Later, Tenant};
use tidegate_core::fact::Shape;
use tidegate_core::id::Partition;
use tidegate_core::model::Counts;
use tidegate_store::outbox::Published;
use tokio::sync::{Notify, broadcast};

use super::drainer::Drainer;
use super::hello::Greeter;
use super::reach::{Head, upstream_place};
use crate::api;
use crate::app::{App, House};
use crate::deploying::Deploying;

/// Events that a slow listener may be behind.
const EVENTS_KEPT: usize = 4_096;

/// What every room is furnished with.
pub(crate) struct Plan {
    pub house: Arc<House>,
    pub options: Options,
    pub executors: Executors,
    /// Limits by the upstream they belong to.
    pub limits: Vec<(Arc<str>, Shape)>,
    pub spread: std::collections::BTreeSet<String>,
    pub partitions: Partition,
}

struct Room {
    engine: Engine,
    router: Router,
    /// Tells its drainer to look.
    wake: Arc<Notify>,
}

/// The rooms that are open.
pub(crate) struct Rooms {
    plan: Plan,
    /// Calls in flight, by partition: kept when an engine loses its partition.
    in_flight: Mutex<BTreeMap<Partition, InFlight>>,
    open: RwLock<BTreeMap<Partition, Room>>,
    events: broadcast::Sender<Arc<Event>>,
}

impl Rooms {
    pub(crate) fn new(plan: Plan) -> Self {
        Self {
            plan,
            in_flight: Mutex::default(),
            open: RwLock::default(),
            events: broadcast::channel(EVENTS_KEPT).0,
        }
    }

    /// The way into a room, if it is here.
    pub(super) fn router(&self, partition: Partition) -> Option<Router> {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        open.get(&partition).map(|room| room.router.clone())
    }

    pub(crate) fn engines(&self) -> Vec<Engine> {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        open.values().map(|room| room.engine.clone()).collect()
    }

    pub(super) fn house(&self) -> &Arc<House> {
        &self.plan.house
    }

    /// Has the drainer of a partition look, if it is here.
    pub(super) fn wake(&self, partition: Partition) {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(room) = open.get(&partition) {
            room.wake.notify_one();
        }
    }

    /// What happens in all rooms.
    pub(super) fn events(&self) -> broadcast::Receiver<Arc<Event>> {
        self.events.subscribe()
    }

    /// Operations in all rooms, by state.
    pub(crate) async fn counts(&self) -> tidegate::Result<Counts> {
        let mut counts = Counts::default();
        for engine in self.engines() {
            counts += engine.counts().await?;
        }
        Ok(counts)
    }

    fn in_flight(&self, partition: Partition) -> InFlight {
        let mut all = self.in_flight.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(partition).or_default().clone()
    }

    fn close(&self, partition: Partition) {
        self.open.write().unwrap_or_else(PoisonError::into_inner).remove(&partition);
    }

    /// The limits that have their place in a partition.
    fn limits_in(&self, partition: Partition) -> Vec<(Arc<str>, Shape)> {
        let here = |name: &str| {
            let upstream = name.split('/').next().unwrap_or_default();
            self.plan.spread.contains(upstream) || upstream_place(upstream, self.plan.partitions) == partition
        };
        self.plan.limits.iter().filter(|(name, _)| here(name)).cloned().collect()
    }

    /// Goes on with the deployments that have their place in a partition.
    fn go_on(&self, deploying: &Deploying, partition: Partition) {
        let Plan { house, spread, partitions, .. } = &self.plan;
        if house.bots.is_empty() {
            return;
        }
        let (bots, spread, partitions) = (house.bots.clone(), spread.clone(), *partitions);
        deploying.go_on(move |wanted| {
            let head = Head::of(wanted.upstream.as_str().into(), wanted.group().into());
            bots.contains(&wanted.upstream) && head.place_among(&spread, partitions) == partition
        });
    }

    /// Lets those who listen hear what happens in a room.
    fn tell_of(&self, engine: &Engine) {
        let (mut live, events) = (engine.events(None).live, self.events.clone());
        tokio::spawn(async move {
            loop {
                match live.recv().await {
                    // Nobody has to listen.
                    Ok(event) => drop(events.send(event)),
                    Err(broadcast::error::RecvError::Lagged(_)) => {}
                    Err(broadcast::error::RecvError::Closed) => return,
                }
            }
        });
    }
}

/// The host that the cluster talks to.
pub(crate) struct Landlord {
    pub rooms: Arc<Rooms>,
    pub greeter: Greeter,
    /// What the store's outbox has to know.
    pub published: Vec<Published>,
}

impl Host for Landlord {
    fn call_at(&self, address: String) -> Later<'_, Answered> {
        Box::pin(async move { self.greeter.call_at(&address).await })
    }

    /// Has the store's outbox know where what is handed in has its place. One that places differently must not.
    fn prepare(&self) -> Later<'_, Result<(), String>> {
        Box::pin(async move {
            let Some(outbox) = self.rooms.plan.house.store.outbox() else { return Ok(()) };
            outbox.publish(self.published.clone()).await.map_err(|error| error.to_string())
        })
    }

    fn take_on(&self, partition: Partition) -> Later<'_, Result<Arc<dyn Tenant>, Declined>> {
        let rooms = Arc::clone(&self.rooms);
        Box::pin(async move {
            let Plan { house, options, executors, .. } = &rooms.plan;
            let in_flight = rooms.in_flight(partition);
            let options = Options { partition, in_flight, ..options.clone() };
            let limits = rooms.limits_in(partition);
            let (store, archiving) = (Arc::clone(&house.store), house.archiving.clone());
            let engine = Engine::open_archived(store, archiving, options, executors.clone(), limits).await;
            let declined =
                |error: tidegate::Error| Declined { why: error.message, unreadable: error.unreadable };
            let engine = engine.map_err(declined)?;
            rooms.tell_of(&engine);
            let app = Arc::new(App::new(engine.clone(), Arc::clone(house)));
            let deploying = app.deploying.clone();
            rooms.go_on(&deploying, partition);
            let wake = Arc::new(Notify::new());
            if house.store.outbox().is_some() {
                let drainer = Drainer { engine: engine.clone(), wake: Arc::clone(&wake) };
                tokio::spawn(drainer.work());
            }
            let room = Room { engine: engine.clone(), router: api::room(app), wake };
            rooms.open.write().unwrap_or_else(PoisonError::into_inner).insert(partition, room);
            Ok(Arc::new(Lodger { rooms: Arc::clone(&rooms), engine, deploying, partition })
                as Arc<dyn Tenant>)
        })
    }
}

struct Lodger {
    rooms: Arc<Rooms>,
    engine: Engine,
    deploying: Deploying,
    partition: Partition,
}

impl Tenant for Lodger {
    fn hand_over(&self) -> Later<'_, ()> {
        Box::pin(async move {
            self.deploying.end().await;
            self.engine.hand_over().await;
            self.rooms.close(self.partition);
        })
    }

    fn ended(&self) -> Later<'_, String> {
        Box::pin(async move {
            let why = self.engine.stopped().await;
            self.deploying.end().await;
            self.rooms.close(self.partition);
            why.message
        })
    }
}
