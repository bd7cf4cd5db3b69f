//! The connection to the server: shared by all callers, and replaced when it was lost. Every
//! failure tells whether anything can have reached the server.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::{Route, RoutingInfo, SingleNodeRoutingInfo, Slot, SlotAddr};
use redis::{
    AsyncConnectionConfig, Client, Cmd, Pipeline, PushInfo, PushKind, RedisError, RedisResult, Value,
};
use tidegate_store::Result;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::address::Address;
use crate::errors::{Delivery, unusable};
use crate::slot_backoff::{SlotBackoff, slot_of};
use crate::subscriber::Subscriber;

/// The timeout for establishing a connection.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The timeout for a response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);
/// How often the driver retries while a cluster changes.
const CLUSTER_RETRIES: u32 = 6;
/// The longest wait between two retries, in milliseconds.
const CLUSTER_RETRY_WAIT_MAX_MS: u64 = 500;

/// A connection that replaces itself.
pub(crate) struct SharedConnection {
    name: String,
    maker: ConnectionFactory,
    live: Mutex<Option<LiveConnection>>,
    /// Held while a connection is established, so that all waiters share one.
    making: tokio::sync::Mutex<()>,
    /// Of a cluster: the slots that could not be reached.
    away: SlotBackoff,
}

enum ConnectionFactory {
    Server(Box<Client>),
    Cluster { cluster: Box<ClusterClient>, nodes: Vec<Client> },
}

#[derive(Clone)]
struct LiveConnection {
    raw: RawConnection,
    lost: Arc<watch::Sender<bool>>,
}

#[derive(Clone)]
enum RawConnection {
    Server(MultiplexedConnection),
    Cluster(ClusterConnection),
}

/// A failure, and whether the server may have seen the command.
#[derive(Debug)]
pub(crate) struct CommandFailure {
    pub(crate) delivery: Delivery,
    pub(crate) cause: RedisError,
}

impl SharedConnection {
    /// Creates a connection to this address; does not connect yet.
    pub(crate) fn new(address: &Address) -> Result<Self> {
        if address.is_tls() {
            provide_cryptography();
        }
        let name = address.to_string();
        let wrong = |cause| unusable(&name, CommandFailure { delivery: Delivery::NoEffect, cause });
        let client = |node: &redis::ConnectionInfo| Client::open(node.clone()).map_err(wrong);
        let nodes = address.nodes.iter().map(client).collect::<Result<Vec<_>>>()?;
        let maker = if address.is_cluster {
            let cluster = ClusterClient::builder(address.nodes.clone())
                .retries(CLUSTER_RETRIES)
                .max_retry_wait(CLUSTER_RETRY_WAIT_MAX_MS)
                .connection_timeout(CONNECT_TIMEOUT)
                .response_timeout(RESPONSE_TIMEOUT)
                .overall_response_timeout(None)
                .build()
                .map_err(wrong)?;
            ConnectionFactory::Cluster { cluster: Box::new(cluster), nodes }
        } else {
            let Some(client) = nodes.into_iter().next() else {
                return Err(wrong((redis::ErrorKind::InvalidClientConfig, "the URL names no server").into()));
            };
            ConnectionFactory::Server(Box::new(client))
        };
        Ok(Self {
            name,
            maker,
            live: Mutex::default(),
            making: tokio::sync::Mutex::default(),
            away: SlotBackoff::default(),
        })
    }

    /// The name of the server, without secrets.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whether the keys of one step must be in one slot.
    pub(crate) const fn is_cluster(&self) -> bool {
        matches!(self.maker, ConnectionFactory::Cluster { .. })
    }

    /// Sends one command.
    pub(crate) async fn send(&self, command: &Cmd) -> std::result::Result<Value, CommandFailure> {
        let mut live = self.live_connection().await?;
        let lost = live.lost();
        let answer = match &mut live.raw {
            RawConnection::Server(wire) => unless_lost(lost, wire.req_packed_command(command)).await,
            RawConnection::Cluster(wire) => {
                self.guarded(slot_of(command), wire.req_packed_command(command)).await?
            }
        };
        self.check_answer(&live, answer.and_then(Value::extract_error))
    }

    /// Sends several commands in one pipeline. Each has its own reply, which may be an error of the
    /// server.
    pub(crate) async fn send_all(
        &self,
        commands: &Pipeline,
    ) -> std::result::Result<Vec<Value>, CommandFailure> {
        let mut live = self.live_connection().await?;
        let lost = live.lost();
        let answer = match &mut live.raw {
            RawConnection::Server(wire) => {
                unless_lost(lost, wire.req_packed_commands(commands, 0, commands.len())).await
            }
            RawConnection::Cluster(wire) => {
                let slot = commands.cmd_iter().find_map(slot_of);
                self.guarded(slot, wire.req_packed_commands(commands, 0, commands.len())).await?
            }
        };
        self.check_answer(&live, answer)
    }

    /// Sends one command to the node that has `key`, for commands that name no key.
    pub(crate) async fn send_to(
        &self,
        key: &str,
        command: Cmd,
    ) -> std::result::Result<Value, CommandFailure> {
        self.send_along(Slot::for_key(key), command).await
    }

    async fn send_along(&self, slot: Slot, command: Cmd) -> std::result::Result<Value, CommandFailure> {
        let mut live = self.live_connection().await?;
        let lost = live.lost();
        let answer = match &mut live.raw {
            RawConnection::Server(wire) => unless_lost(lost, wire.req_packed_command(&command)).await,
            RawConnection::Cluster(wire) => {
                let route = Route::with_slot(slot, SlotAddr::Master);
                let node = RoutingInfo::SingleNode(SingleNodeRoutingInfo::SpecificNode(route));
                self.guarded(Some(slot), wire.route_command(command, node)).await?
            }
        };
        self.check_answer(&live, answer.and_then(Value::extract_error))
    }

    /// Sends one command to the node that has a slot, for commands that name no key.
    pub(crate) async fn send_to_slot(
        &self,
        slot: u16,
        command: Cmd,
    ) -> std::result::Result<Value, CommandFailure> {
        let slot = Slot::new(slot).ok_or_else(|| CommandFailure {
            delivery: Delivery::NoEffect,
            cause: (redis::ErrorKind::InvalidClientConfig, "there is no such slot").into(),
        })?;
        self.send_along(slot, command).await
    }

    /// Sends something to a cluster, unless the server with the slot was away a moment ago.
    async fn guarded<T>(
        &self,
        slot: Option<Slot>,
        answer: impl Future<Output = RedisResult<T>>,
    ) -> std::result::Result<RedisResult<T>, CommandFailure> {
        self.away.check(slot, Instant::now())?;
        let answer = answer.await;
        self.away.record(slot, &answer, Instant::now());
        Ok(answer)
    }

    /// Creates a subscriber. In a cluster any node that responds will do.
    pub(crate) fn subscriber(&self) -> Subscriber {
        Subscriber::new(match &self.maker {
            ConnectionFactory::Server(client) => vec![Client::clone(client)],
            ConnectionFactory::Cluster { nodes, .. } => nodes.clone(),
        })
    }

    async fn live_connection(&self) -> std::result::Result<LiveConnection, CommandFailure> {
        if let Some(live) = self.current() {
            return Ok(live);
        }
        let _making = self.making.lock().await;
        if let Some(live) = self.current() {
            return Ok(live);
        }
        let lost = Arc::new(watch::Sender::new(false));
        let made = tokio::time::timeout(CONNECT_TIMEOUT, self.connect(&lost)).await;
        let made = made.unwrap_or_else(|_| Err(std::io::Error::from(std::io::ErrorKind::TimedOut).into()));
        let wire = made.map_err(|cause| CommandFailure { delivery: Delivery::NoEffect, cause })?;
        let live = LiveConnection { raw: wire, lost };
        *self.slot() = Some(live.clone());
        Ok(live)
    }

    async fn connect(&self, lost: &Arc<watch::Sender<bool>>) -> RedisResult<RawConnection> {
        let lost = Arc::clone(lost);
        match &self.maker {
            ConnectionFactory::Server(client) => {
                let config = AsyncConnectionConfig::new()
                    .set_connection_timeout(Some(CONNECT_TIMEOUT))
                    .set_response_timeout(Some(RESPONSE_TIMEOUT))
                    .set_push_sender(move |push: PushInfo| {
                        if push.kind == PushKind::Disconnection {
                            lost.send_replace(true);
                        }
                        Ok::<(), redis::aio::SendError>(())
                    });
                client.get_multiplexed_async_connection_with_config(&config).await.map(RawConnection::Server)
            }
            ConnectionFactory::Cluster { cluster, .. } => {
                cluster.get_async_connection().await.map(RawConnection::Cluster)
            }
        }
    }

    fn check_answer<T>(
        &self,
        live: &LiveConnection,
        answer: RedisResult<T>,
    ) -> std::result::Result<T, CommandFailure> {
        answer.map_err(|cause| {
            // A cluster's driver retries by itself, so whatever it reports last, an earlier attempt
            // may have arrived.
            let reach = if self.is_cluster() { Delivery::Unknown } else { Delivery::of(&cause) };
            if reach == Delivery::Unknown && (!self.is_cluster() || cause.is_unrecoverable_error()) {
                live.lost.send_replace(true);
            }
            CommandFailure { delivery: reach, cause }
        })
    }

    fn current(&self) -> Option<LiveConnection> {
        self.slot().as_ref().filter(|live| !*live.lost.borrow()).cloned()
    }

    fn slot(&self) -> MutexGuard<'_, Option<LiveConnection>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LiveConnection {
    /// Resolves when the connection is lost.
    fn lost(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut lost = self.lost.subscribe();
        async move {
            // The sender lives as long as the connection does.
            let _ = lost.wait_for(|is_lost| *is_lost).await;
        }
    }
}

/// Waits for a reply or the loss of the connection: the driver can overlook a command that was sent
/// while the connection was being lost.
async fn unless_lost<T>(
    lost: impl Future<Output = ()>,
    answer: impl Future<Output = RedisResult<T>>,
) -> RedisResult<T> {
    tokio::select! {
        biased;
        answer = answer => answer,
        () = lost => Err(std::io::Error::from(std::io::ErrorKind::ConnectionAborted).into()),
    }
}

/// Installs a cryptography provider: the driver uses that of the process, and panics when there is
/// none or more than one.
fn provide_cryptography() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Another caller may have been quicker: then theirs is used.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}
