//! Applies calls to the guilds: a plain state machine. The same calls at the same times from the
//! same seed have the same results.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use hyper::StatusCode;
use serde_json::{Value, json};
use tidegate_core::Time;

use super::DiscordSimOptions;
use super::dispatch::{api_info, dispatch};
use super::fault_switch::FaultSwitch;
use super::guild::{Actor, Guild, GuildCall};
use super::limits::DiscordLimits;
use super::log::{GuildWrite, GuildWriteLog};
use super::quirks::DiscordQuirks;
use super::rate_limiter::{LimitExceeded, LimitScope, RateLimiter};
use super::refusal::{CompletedCall, DiscordErrorCode, DiscordRefusal, status_body};
use super::request::DiscordRequest;
use super::response::DiscordResponse;
use super::route::{DiscordEndpoint, RouteTarget, strip_version};
use super::snowflake::SnowflakeGenerator;
use super::stats::DiscordStats;
use crate::rng::SeededRng;

/// Most guilds.
pub const GUILDS_MAX: usize = 10_000;

/// The outcome of a call. Its effect has happened.
#[derive(Clone, Debug, PartialEq)]
pub enum DiscordSimOutcome {
    /// It gets this response.
    Answer(DiscordResponse),
    /// Its connection is cut.
    Cut,
    /// It gets no response until the fault is lifted.
    Hang,
}

/// All guilds.
#[derive(Debug)]
pub struct DiscordSimState {
    /// The limits.
    pub limits: DiscordLimits,
    /// The rate limiter.
    pub limiter: RateLimiter,
    /// The injected fault.
    pub stop: FaultSwitch,
    /// How it differs from Discord.
    pub quirks: DiscordQuirks,
    guilds: BTreeMap<u64, Guild>,
    /// The guild of each channel that ever existed.
    places: HashMap<u64, u64>,
    ids: SnowflakeGenerator,
    log: GuildWriteLog,
    stats: DiscordStats,
    rng: SeededRng,
    fail_rate: f64,
    cut_rate: f64,
    seed: u64,
}

impl DiscordSimState {
    /// Creates a state without guilds.
    #[must_use]
    pub fn new(options: &DiscordSimOptions) -> Self {
        Self {
            limits: options.limits.clone(),
            limiter: RateLimiter::default(),
            stop: FaultSwitch::default(),
            quirks: options.quirks.clone(),
            guilds: BTreeMap::new(),
            places: HashMap::new(),
            ids: SnowflakeGenerator::default(),
            log: GuildWriteLog::default(),
            stats: DiscordStats::default(),
            rng: SeededRng::new(options.seed),
            fail_rate: options.fail_rate,
            cut_rate: options.cut_rate,
            seed: options.seed,
        }
    }

    /// Handles a call and applies its effect, if it has one.
    pub fn handle(&mut self, arrival: &DiscordRequest, now: Time) -> DiscordSimOutcome {
        if self.stop.holds() {
            return DiscordSimOutcome::Hang;
        }
        self.stats.all.calls += 1;
        if let Some(left) = self.limiter.ban_remaining(arrival.peer, now) {
            self.stats.banned += 1;
            return DiscordSimOutcome::Answer(DiscordResponse::banned(left));
        }
        let (outcome, is_shared) = self.decide(arrival, now);
        if let DiscordSimOutcome::Answer(answer) = &outcome
            && matches!(answer.status.as_u16(), 401 | 403 | 429)
            && !is_shared
        {
            self.stats.invalid += 1;
            self.stats.bans += u64::from(self.limiter.count_invalid(arrival.peer, &self.limits, now));
        }
        outcome
    }

    /// Decides the outcome of a call that is not banned, and whether a shared limit refused it.
    fn decide(&mut self, arrival: &DiscordRequest, now: Time) -> (DiscordSimOutcome, bool) {
        let (target, actor) = match identify(arrival) {
            Ok(identified) => identified,
            Err(refusal) => return (DiscordSimOutcome::Answer(refusal_response(refusal)), false),
        };
        let hash = target.hash(self.seed);
        let bot = if let Actor::Bot(bot) = actor { bot } else { 0 };
        let ruling = match self.limiter.admit(bot, &target, &self.limits, now) {
            Ok(ruling) => ruling,
            Err(mut limited) => {
                if limited.scope == LimitScope::User {
                    let longer = Duration::from_millis(self.quirks.longer_wait_ms);
                    limited.wait = self.limiter.close_route(bot, &target, limited.wait, longer, now);
                }
                let (name, is_shared) = (scope_name(limited.scope), limited.scope == LimitScope::Shared);
                self.stats.throttle(target.name(), name);
                let reported = self.quirks.reported(limited.decision);
                let answer = DiscordResponse::limited(&limited).with_limit_headers(reported, hash, now);
                return (DiscordSimOutcome::Answer(answer), is_shared);
            }
        };
        // All are drawn each time, so that one rate does not shift what another one hits.
        let (fails, cuts) = (self.rng.happens(self.fail_rate), self.rng.happens(self.cut_rate));
        let drawn = self.rng.next();
        if fails {
            self.stats.faults += 1;
            return (DiscordSimOutcome::Answer(DiscordResponse::failed(drawn)), false);
        }
        let answer = match self.run(arrival, target, actor, now) {
            Ok(None) => return (self.stop_here(), false),
            Ok(Some(done)) => DiscordResponse::new(done.status, done.body),
            Err(DiscordRefusal::Hidden(wait)) => {
                self.stats.throttle(target.name(), "hidden");
                DiscordResponse::limited(&LimitExceeded { scope: LimitScope::User, wait, decision: ruling })
            }
            Err(refusal) => refusal_response(refusal),
        };
        if cuts {
            self.stats.faults += 1;
            return (DiscordSimOutcome::Cut, false);
        }
        let reported = self.quirks.reported(ruling);
        (DiscordSimOutcome::Answer(answer.with_limit_headers(reported, hash, now)), false)
    }

    fn stop_here(&mut self) -> DiscordSimOutcome {
        self.stats.faults += 1;
        if self.stop.holds() { DiscordSimOutcome::Hang } else { DiscordSimOutcome::Cut }
    }

    /// Executes a call; `None` when a fault stopped it.
    fn run(
        &mut self,
        arrival: &DiscordRequest,
        target: RouteTarget,
        actor: Actor,
        now: Time,
    ) -> Result<Option<CompletedCall>, DiscordRefusal> {
        if matches!(
            target.route.call,
            DiscordEndpoint::Gateway
                | DiscordEndpoint::GatewayBot
                | DiscordEndpoint::Me
                | DiscordEndpoint::Application
        ) {
            self.count(&target, actor);
            return Ok(Some(api_info(target.route.call, actor)));
        }
        let home = self.guild_of(&target, actor, now)?;
        let (body, query) = (arrival.body()?, &arrival.query);
        self.quirks.check(&target, actor, body)?;
        let guild = self.guilds.get_mut(&home).ok_or(DiscordErrorCode::UnknownChannel)?;
        let stops = actor != Actor::Operator && self.stop.is_next();
        let before = stops.then(|| guild.clone());
        let kept = self.quirks.kept_overwrites(actor, guild);
        let (ids, limits) = (&mut self.ids, &self.limits);
        let mut turn = GuildCall { actor, now, target, body, query, ids, limits };
        let done = dispatch(guild, &mut turn)?;
        if let (Some(before), Some(_)) = (before, done.wrote) {
            *guild = before;
            self.stop.write();
            return Ok(None);
        }
        self.count(&target, actor);
        let Some(id) = done.wrote else { return Ok(Some(done)) };
        if let (Some(kept), Some(guild)) = (kept, self.guilds.get_mut(&home)) {
            for (id, channel) in &mut guild.channels {
                channel.overwrites = kept.get(id).cloned().unwrap_or_default();
            }
        }
        self.log_write(arrival, (home, target, id), actor);
        let stopped = actor != Actor::Operator && self.stop.write().is_some();
        Ok((!stopped).then_some(done))
    }

    fn count(&mut self, target: &RouteTarget, actor: Actor) {
        if actor != Actor::Operator {
            *self.stats.done_by_route.entry(target.name()).or_default() += 1;
        }
    }

    /// Returns the guild of a call. A guild is created when it is first named, and a bot joins it
    /// with its first call.
    fn guild_of(&mut self, target: &RouteTarget, actor: Actor, now: Time) -> Result<u64, DiscordRefusal> {
        let named = target.guild.or_else(|| self.places.get(&target.channel?).copied());
        let id = named.ok_or(DiscordErrorCode::UnknownChannel)?;
        if !self.guilds.contains_key(&id) && self.guilds.len() >= GUILDS_MAX {
            let full = json!({ "message": format!("there are {GUILDS_MAX} guilds already"), "code": 0 });
            return Err(DiscordRefusal::Plain(StatusCode::SERVICE_UNAVAILABLE, full));
        }
        let has_community = !self.quirks.no_community;
        let guild = self.guilds.entry(id).or_insert_with(|| Guild::new(id));
        guild.has_community = has_community;
        if let Actor::Bot(bot) = actor {
            guild.join(bot, &mut self.ids, now, self.quirks.bot_permissions);
        }
        Ok(id)
    }

    fn log_write(
        &mut self,
        arrival: &DiscordRequest,
        (guild, target, id): (u64, RouteTarget, u64),
        actor: Actor,
    ) {
        if target.route.call == DiscordEndpoint::ChannelCreate {
            self.places.insert(id, guild);
        }
        let by_hand = actor == Actor::Operator;
        self.stats.all.writes += u64::from(!by_hand);
        self.log.push(GuildWrite {
            n: self.log.last() + 1,
            guild: guild.to_string(),
            route: target.name(),
            id: id.to_string(),
            reason: arrival.reason.clone(),
            by_hand,
        });
    }

    /// Executes a change or a read as the operator: the same calls, without limits, permissions or
    /// faults.
    pub fn handle_as_operator(&mut self, arrival: &DiscordRequest, path: &str, now: Time) -> DiscordResponse {
        let done = RouteTarget::of(&arrival.method, path)
            .and_then(|target| self.run(arrival, target, Actor::Operator, now));
        match done {
            Ok(Some(done)) => DiscordResponse::new(done.status, done.body),
            Ok(None) => DiscordResponse::new(StatusCode::NO_CONTENT, None),
            Err(refusal) => refusal_response(refusal),
        }
    }

    /// Sets how often calls fail without effect, and how often responses are cut after it.
    pub const fn set_fault_rates(&mut self, fail_rate: f64, cut_rate: f64) {
        (self.fail_rate, self.cut_rate) = (fail_rate, cut_rate);
    }

    /// Sets the permissions and the position of the roles of every bot in a guild.
    pub fn set_bots(&mut self, guild: u64, permissions: Option<u64>, position: Option<u64>) -> bool {
        let Some(guild) = self.guilds.get_mut(&guild) else { return false };
        for role in guild.roles.values_mut().filter(|role| role.bot.is_some()) {
            role.permissions = permissions.unwrap_or(role.permissions);
            role.position = position.unwrap_or(role.position);
        }
        true
    }

    /// Returns everything in a guild.
    #[must_use]
    pub fn dump(&self, guild: u64) -> Option<Value> {
        self.guilds.get(&guild).map(Guild::dump)
    }

    /// Returns the writes after a number.
    #[must_use]
    pub fn writes(&self, after: u64) -> Vec<&GuildWrite> {
        self.log.page(after)
    }

    /// Returns the counts.
    #[must_use]
    pub fn stats(&self) -> DiscordStats {
        self.stats.with(self.guilds.values())
    }
}

/// Returns the route of a call, and its caller.
fn identify(arrival: &DiscordRequest) -> Result<(RouteTarget, Actor), DiscordRefusal> {
    if !arrival.has_agent {
        return Err(DiscordErrorCode::Blocked.into());
    }
    let target = RouteTarget::of(&arrival.method, strip_version(&arrival.path)?);
    let open = matches!(&target, Ok(target) if target.route.call == DiscordEndpoint::Gateway);
    match arrival.bot {
        Some(bot) => Ok((target?, Actor::Bot(bot))),
        None if open => Ok((target?, Actor::Bot(0))),
        None => {
            let status = StatusCode::UNAUTHORIZED;
            Err(DiscordRefusal::Plain(status, status_body(status)))
        }
    }
}

fn refusal_response(refusal: DiscordRefusal) -> DiscordResponse {
    match refusal {
        DiscordRefusal::Plain(status, body) => DiscordResponse::new(status, Some(body)),
        DiscordRefusal::Hidden(wait) => {
            DiscordResponse::limited(&LimitExceeded { scope: LimitScope::User, wait, decision: None })
        }
    }
}

const fn scope_name(scope: LimitScope) -> &'static str {
    match scope {
        LimitScope::User => "user",
        LimitScope::Global => "global",
        LimitScope::Shared => "shared",
    }
}
