//! The one task of a node in the cluster: it gives signs of life, looks at who is there and who owns what, and takes
//! partitions on or hands them over until its share is what it should be. Hints from others only make it look earlier.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tidegate_core::id::Partition;
use tidegate_store::log::Tenancy;
use tidegate_store::nodes::Node;
use tidegate_store::{Kind, Result, Store};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::host::{Declined, Host, Tenant};
use crate::join::{Order, Settings};
use crate::notice;
use crate::share::{Desk, share};
use crate::view::View;

/// What nodes tell each other about.
const TOPIC: &str = "cluster";
/// Looks are no closer together than this, however many ask for one.
const LOOK_GAP: Duration = Duration::from_millis(20);
/// After this a partition that could not be read is tried again, unless somebody else has it.
const UNREADABLE_FOR: Duration = Duration::from_secs(60);

/// Something that was begun has ended.
enum Event {
    TakenOn(Partition, std::result::Result<Arc<dyn Tenant>, Declined>),
    HandedOver(Partition),
    Ended(Partition, Arc<dyn Tenant>, String),
}

/// A partition that is served here.
struct Held {
    tenant: Arc<dyn Tenant>,
    /// Whether it is being handed over.
    leaving: bool,
}

pub(crate) struct Member {
    store: Arc<dyn Store>,
    settings: Settings,
    host: Arc<dyn Host>,
    held: BTreeMap<Partition, Held>,
    coming: BTreeSet<Partition>,
    /// What cannot be read here, and when it is tried again.
    unreadable: BTreeMap<Partition, Instant>,
    leaving: bool,
    /// The notice that was put up last.
    put_up: String,
    /// Whether a newer version has changed the store.
    outdated: bool,
    view: watch::Sender<View>,
    tell: mpsc::UnboundedSender<Event>,
    events: mpsc::UnboundedReceiver<Event>,
}

impl Member {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        settings: Settings,
        host: Arc<dyn Host>,
        view: watch::Sender<View>,
    ) -> Self {
        let (tell, events) = mpsc::unbounded_channel();
        let (held, coming, unreadable) = (BTreeMap::new(), BTreeSet::new(), BTreeMap::new());
        let put_up = settings.address.clone();
        let (leaving, outdated) = (false, false);
        Self {
            store,
            settings,
            host,
            held,
            coming,
            unreadable,
            leaving,
            put_up,
            outdated,
            view,
            tell,
            events,
        }
    }

    pub(crate) async fn work(mut self, mut orders: mpsc::Receiver<Order>) {
        let mut hints = self.listen().await;
        let mut look_at = Instant::now();
        let mut gone = None;
        loop {
            tokio::select! {
                () = tokio::time::sleep_until(look_at) => {
                    self.look().await;
                    look_at = Instant::now() + self.settings.every;
                    if self.leaving && self.held.is_empty() && self.coming.is_empty() {
                        break;
                    }
                }
                Some(event) = self.events.recv() => {
                    self.note(event).await;
                    look_at = look_at.min(Instant::now() + LOOK_GAP);
                }
                Some(_) = hints.recv() => look_at = look_at.min(Instant::now() + LOOK_GAP),
                order = orders.recv() => {
                    if let Some(Order::Leave(done)) = order {
                        gone = Some(done);
                    }
                    // Without anybody who could ask for it, it leaves by itself.
                    self.leaving |= gone.is_some() || orders.is_closed();
                    look_at = look_at.min(Instant::now() + LOOK_GAP);
                }
            }
        }
        // A node that cannot say good-bye is forgotten after its time.
        let _ = self.store.heartbeat(&self.settings.node, Duration::ZERO).await;
        self.hint().await;
        if let Some(gone) = gone {
            let _ = gone.send(());
        }
    }

    async fn listen(&self) -> mpsc::Receiver<String> {
        match self.store.listen(TOPIC).await {
            Ok(hints) => hints,
            Err(error) => {
                tracing::warn!(%error, "no hints from other nodes; looking every so often is enough");
                mpsc::channel(1).1
            }
        }
    }

    async fn hint(&self) {
        if let Err(error) = self.store.notify(TOPIC, &self.settings.node).await {
            tracing::debug!(%error, "the other nodes were not told");
        }
    }

    /// Looks at the store and does what follows from it.
    async fn look(&mut self) {
        if self.is_outdated().await {
            return;
        }
        match self.ask().await {
            Ok((nodes, owners)) => {
                let (nodes, staying) = notice::read(nodes);
                self.act(&staying, &owners);
                let (me, here) = (self.settings.node.clone(), self.held.keys().copied().collect());
                let partitions = self.view.borrow().partitions;
                let next = View { me, partitions, nodes, owners, here };
                self.view.send_if_modified(|view| {
                    let changed = *view != next;
                    *view = next;
                    changed
                });
            }
            // What is served here goes on: each append is checked by the store.
            Err(error) => tracing::warn!(%error, "the other nodes cannot be seen"),
        }
    }

    /// Whether a newer version has changed the store. Then this node gives no more signs of life and takes nothing on;
    /// what it serves ends by itself with the next renewal.
    async fn is_outdated(&mut self) -> bool {
        // Whatever else is wrong is said by what comes next.
        let newer = self.store.migrate().await.err().filter(|error| error.kind() == Kind::Unreadable);
        let before = std::mem::replace(&mut self.outdated, newer.is_some());
        match newer {
            Some(error) if !before => {
                tracing::error!(%error, "a newer version has changed the store: this node takes no more part");
            }
            None if before => {
                self.unreadable.clear();
                tracing::info!("the store can be read again");
            }
            _ => {}
        }
        if self.outdated {
            let here: Vec<Partition> = self.held.keys().copied().collect();
            self.view.send_modify(|view| {
                view.nodes.clear();
                view.owners.clear();
                view.here = here;
            });
        }
        self.outdated
    }

    async fn ask(&mut self) -> Result<(Vec<Node>, BTreeMap<Partition, Tenancy>)> {
        self.unreadable.retain(|_, until| *until > Instant::now());
        let without = self.unreadable.keys().copied().collect();
        let Settings { node, address, ttl, .. } = &self.settings;
        let notice = notice::notice(address, self.leaving, &without);
        let is_new = notice != self.put_up;
        let heard = if is_new { None } else { self.store.heartbeat(node, *ttl).await.err() };
        // Forgotten, when it gave no sign of life for too long.
        let is_forgotten = heard.as_ref().is_some_and(|error| error.kind() == Kind::Invalid);
        if is_new || is_forgotten {
            self.store.register(node, &notice, *ttl).await?;
        } else if let Some(error) = heard {
            return Err(error);
        }
        self.put_up = notice;
        let nodes = self.store.list_nodes().await?;
        let owners = self.store.owners().await?;
        Ok((nodes, owners.into_iter().map(|owner| (owner.partition, owner)).collect()))
    }

    /// Takes on what is missing from its share, hands over what is not in it.
    fn act(&mut self, staying: &[Desk], owners: &BTreeMap<Partition, Tenancy>) {
        let me = self.settings.node.clone();
        let owned = owners.iter().map(|(partition, owner)| (*partition, owner.node.as_str())).collect();
        let shares = share(staying, &owned, self.view.borrow().partitions);
        for (partition, node) in &shares {
            let waits = owners.get(partition).is_some_and(|owner| owner.node != me);
            if *node == me && !waits {
                self.take_on(*partition);
            }
        }
        let held: Vec<Partition> = self.held.keys().copied().collect();
        for partition in held {
            if self.leaving || shares.get(&partition).is_some_and(|node| *node != me) {
                self.hand_over(partition);
            }
        }
    }

    fn take_on(&mut self, partition: Partition) {
        let has_reason = self.leaving || self.unreadable.contains_key(&partition);
        if has_reason || self.held.contains_key(&partition) || !self.coming.insert(partition) {
            return;
        }
        let (host, tell) = (Arc::clone(&self.host), self.tell.clone());
        tokio::spawn(async move {
            let taken = host.take_on(partition).await;
            // Without a member there is nobody to serve it for.
            let _ = tell.send(Event::TakenOn(partition, taken));
        });
    }

    fn hand_over(&mut self, partition: Partition) {
        let Some(held) = self.held.get_mut(&partition).filter(|held| !held.leaving) else { return };
        held.leaving = true;
        let (tenant, tell) = (Arc::clone(&held.tenant), self.tell.clone());
        tracing::info!(partition, "handing over");
        tokio::spawn(async move {
            tenant.hand_over().await;
            let _ = tell.send(Event::HandedOver(partition));
        });
    }

    async fn note(&mut self, event: Event) {
        match event {
            Event::TakenOn(partition, Ok(tenant)) => {
                tracing::info!(partition, "serving");
                self.coming.remove(&partition);
                let (watched, tell) = (Arc::clone(&tenant), self.tell.clone());
                tokio::spawn(async move {
                    let why = watched.ended().await;
                    let _ = tell.send(Event::Ended(partition, watched, why));
                });
                self.held.insert(partition, Held { tenant, leaving: false });
            }
            Event::TakenOn(partition, Err(Declined { why, unreadable: true })) => {
                tracing::error!(partition, why, "cannot be read here, and is left to the others for a while");
                self.coming.remove(&partition);
                self.unreadable.insert(partition, Instant::now() + UNREADABLE_FOR);
            }
            Event::TakenOn(partition, Err(Declined { why, .. })) => {
                // Another one may have been quicker: looked at again in a moment.
                tracing::info!(partition, why, "not taken on");
                self.coming.remove(&partition);
                return;
            }
            Event::HandedOver(partition) => {
                self.held.remove(&partition);
            }
            Event::Ended(partition, tenant, why) => {
                let is_it = |held: &&Held| !held.leaving && Arc::ptr_eq(&held.tenant, &tenant);
                if self.held.get(&partition).filter(is_it).is_none() {
                    return;
                }
                tracing::warn!(partition, %why, "served no more");
                self.held.remove(&partition);
            }
        }
        self.hint().await;
    }
}
