//! A simulator of Discord's REST API, as far as a bot that builds a guild needs it: roles,
//! channels, overwrites, positions and messages, with its limits, announced and hidden, its names,
//! its permissions and its refusals. There is no gateway and there are no people.

pub mod channel;
pub mod channels;
pub mod control;
mod dispatch;
pub mod duplicates;
pub mod fault_switch;
pub mod form;
pub mod guild;
pub mod limits;
pub mod log;
pub mod message;
pub mod messages;
pub mod names;
pub mod overwrite;
pub mod overwrites;
pub mod permissions;
pub mod quirks;
pub mod rate_limiter;
pub mod refusal;
pub mod request;
pub mod response;
pub mod role;
pub mod roles;
pub mod route;
pub mod sim_state;
pub mod snowflake;
pub mod stats;
pub mod window;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use hyper::{Request, Response};
use tidegate_core::Time;
use tidegate_store::{Clock, WallClock};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::server::{SimReply, SimServer, Simulator};
use control::ControlEffect;
use limits::DiscordLimits;
use quirks::DiscordQuirks;
use request::DiscordRequest;
use sim_state::{DiscordSimOutcome, DiscordSimState};
use stats::DiscordStats;

/// The options of the simulator.
#[derive(Clone, Debug)]
pub struct DiscordSimOptions {
    /// The address to listen on; port 0 lets the system choose.
    pub listen: SocketAddr,
    /// Its limits.
    pub limits: DiscordLimits,
    /// The latency of each response.
    pub latency: Duration,
    /// How often a call fails with a 5xx and no effect, from 0 to 1.
    pub fail_rate: f64,
    /// How often the connection is cut after the effect, from 0 to 1.
    pub cut_rate: f64,
    /// Determines which calls fail, which are cut, and the hashes of limits.
    pub seed: u64,
    /// How it differs from Discord.
    pub quirks: DiscordQuirks,
}

impl Default for DiscordSimOptions {
    /// Discord's limits, no latency, no faults, any free port.
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            limits: DiscordLimits::default(),
            latency: Duration::ZERO,
            fail_rate: 0.0,
            cut_rate: 0.0,
            seed: 0,
            quirks: DiscordQuirks::default(),
        }
    }
}

/// A running simulator. Dropping it stops it.
#[derive(Debug)]
pub struct DiscordSim {
    server: SimServer,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    latency: Duration,
    /// The machine's time at the start, so that ids and headers contain dates.
    epoch: Time,
    started: Instant,
    /// Signals that hanging calls are to be cut.
    lifted: watch::Sender<u64>,
}

#[derive(Debug)]
struct State {
    world: DiscordSimState,
    /// How far the clock was advanced.
    forward: Duration,
}

impl DiscordSim {
    /// Starts a simulator.
    ///
    /// # Errors
    /// When an option is invalid, or the address cannot be bound.
    pub async fn start(options: DiscordSimOptions) -> io::Result<Self> {
        let is_rate = |rate| (0.0..=1.0).contains(&rate);
        if !is_rate(options.fail_rate) || !is_rate(options.cut_rate) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "A fail rate and a cut rate are 0 to 1.",
            ));
        }
        let shared = Arc::new(Shared {
            state: Mutex::new(State { world: DiscordSimState::new(&options), forward: Duration::ZERO }),
            latency: options.latency,
            epoch: WallClock.now(),
            started: Instant::now(),
            lifted: watch::Sender::new(0),
        });
        let server = SimServer::start(options.listen, Arc::clone(&shared)).await?;
        Ok(Self { server, shared })
    }

    /// Returns the address it listens on.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.server.addr()
    }

    /// Returns the counts so far.
    #[must_use]
    pub fn stats(&self) -> DiscordStats {
        self.shared.state().0.world.stats()
    }

    /// Stops it.
    pub async fn shutdown(self) {
        self.server.shutdown().await;
    }
}

impl Shared {
    /// Returns the state and the time. The time is read under the lock, so that windows never see
    /// it go back.
    fn state(&self) -> (MutexGuard<'_, State>, Time) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.epoch.after(self.started.elapsed()).after(state.forward);
        (state, now)
    }

    fn control(&self, request: &Request<Bytes>) -> Response<Bytes> {
        let (mut state, now) = self.state();
        let (response, after) = control::control(&mut state.world, request, now);
        match after {
            ControlEffect::Nothing => {}
            ControlEffect::Forward(by) => state.forward = state.forward.saturating_add(by),
            ControlEffect::Lift => self.lifted.send_modify(|lifts| *lifts += 1),
        }
        response
    }
}

impl Simulator for Shared {
    async fn reply(&self, request: Request<Bytes>) -> SimReply {
        if request.uri().path().starts_with("/_sim/") {
            return SimReply::Answer(self.control(&request));
        }
        let arrival = DiscordRequest::of(&request);
        let (outcome, mut lifted) = {
            let (mut state, now) = self.state();
            // Under the lock, so that no release is missed.
            (state.world.handle(&arrival, now), self.lifted.subscribe())
        };
        match outcome {
            DiscordSimOutcome::Hang => {
                let _ = lifted.changed().await;
                SimReply::Cut
            }
            DiscordSimOutcome::Cut => {
                tokio::time::sleep(self.latency).await;
                SimReply::Cut
            }
            DiscordSimOutcome::Answer(answer) => {
                tokio::time::sleep(self.latency).await;
                SimReply::Answer(answer.to_response())
            }
        }
    }
}
