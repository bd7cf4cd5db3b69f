//! What calls do to the guilds: a plain state machine. The same calls at the same times from the same seed do the same.

use std::collections::{BTreeMap, HashMap};

use hyper::StatusCode;
use serde_json::{Value, json};
use tidegate_core::Time;

use super::DiscordSimOptions;
use super::answer::Answer;
use super::arrival::Arrival;
use super::dispatch::{about, call};
use super::gate::{Gate, Limited, Scope};
use super::guild::{Actor, Guild, Turn};
use super::limits::Limits;
use super::log::{Entry, Log};
use super::refusal::{Code, Done, Refusal, by_status};
use super::route::{Call, Target, behind_version};
use super::snowflake::Snowflakes;
use super::stats::DiscordStats;
use super::stop::Stop;
use crate::chance::Chance;

/// Most guilds.
pub const GUILDS_MAX: usize = 10_000;

/// What becomes of a call. Its effect has happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Fate {
    /// This is told.
    Answer(Answer),
    /// Nobody hears of it.
    Cut,
    /// Nobody hears of it until the stop is lifted.
    Hang,
}

/// All guilds.
#[derive(Debug)]
pub struct World {
    /// The limits.
    pub limits: Limits,
    /// Who gets in.
    pub gate: Gate,
    /// Where it stops.
    pub stop: Stop,
    guilds: BTreeMap<u64, Guild>,
    /// The guild of each channel that ever was.
    places: HashMap<u64, u64>,
    ids: Snowflakes,
    log: Log,
    stats: DiscordStats,
    chance: Chance,
    fail_rate: f64,
    cut_rate: f64,
    seed: u64,
}

impl World {
    /// One without guilds.
    #[must_use]
    pub fn new(options: &DiscordSimOptions) -> Self {
        Self {
            limits: options.limits.clone(),
            gate: Gate::default(),
            stop: Stop::default(),
            guilds: BTreeMap::new(),
            places: HashMap::new(),
            ids: Snowflakes::default(),
            log: Log::default(),
            stats: DiscordStats::default(),
            chance: Chance::new(options.seed),
            fail_rate: options.fail_rate,
            cut_rate: options.cut_rate,
            seed: options.seed,
        }
    }

    /// A call comes in, and has its effect if it has one.
    pub fn arrive(&mut self, arrival: &Arrival, now: Time) -> Fate {
        if self.stop.holds() {
            return Fate::Hang;
        }
        self.stats.all.calls += 1;
        if let Some(left) = self.gate.ban_of(arrival.peer, now) {
            self.stats.banned += 1;
            return Fate::Answer(Answer::banned(left));
        }
        let (fate, is_shared) = self.decide(arrival, now);
        if let Fate::Answer(answer) = &fate
            && matches!(answer.status.as_u16(), 401 | 403 | 429)
            && !is_shared
        {
            self.stats.invalid += 1;
            self.stats.bans += u64::from(self.gate.count_invalid(arrival.peer, &self.limits, now));
        }
        fate
    }

    /// What becomes of a call that is not banned, and whether a shared limit refused it.
    fn decide(&mut self, arrival: &Arrival, now: Time) -> (Fate, bool) {
        let (target, actor) = match identify(arrival) {
            Ok(identified) => identified,
            Err(refusal) => return (Fate::Answer(refused(refusal)), false),
        };
        let hash = target.hash(self.seed);
        let bot = if let Actor::Bot(bot) = actor { bot } else { 0 };
        let ruling = match self.gate.admit(bot, &target, &self.limits, now) {
            Ok(ruling) => ruling,
            Err(limited) => {
                let (name, is_shared) = (scope(limited.scope), limited.scope == Scope::Shared);
                self.stats.throttle(target.name(), name);
                let answer = Answer::limited(&limited).with_limit(limited.ruling, hash, now);
                return (Fate::Answer(answer), is_shared);
            }
        };
        // All are drawn each time, so that one rate does not shift what another one hits.
        let (fails, cuts) = (self.chance.happens(self.fail_rate), self.chance.happens(self.cut_rate));
        let drawn = self.chance.next();
        if fails {
            self.stats.faults += 1;
            return (Fate::Answer(Answer::failed(drawn)), false);
        }
        let answer = match self.run(arrival, target, actor, now) {
            Ok(None) => return (self.halted(), false),
            Ok(Some(done)) => Answer::new(done.status, done.body),
            Err(Refusal::Hidden(wait)) => {
                self.stats.throttle(target.name(), "hidden");
                Answer::limited(&Limited { scope: Scope::User, wait, ruling })
            }
            Err(refusal) => refused(refusal),
        };
        if cuts {
            self.stats.faults += 1;
            return (Fate::Cut, false);
        }
        (Fate::Answer(answer.with_limit(ruling, hash, now)), false)
    }

    fn halted(&mut self) -> Fate {
        self.stats.faults += 1;
        if self.stop.holds() { Fate::Hang } else { Fate::Cut }
    }

    /// Does a call; `None` when it was stopped at.
    fn run(
        &mut self,
        arrival: &Arrival,
        target: Target,
        actor: Actor,
        now: Time,
    ) -> Result<Option<Done>, Refusal> {
        if matches!(target.route.call, Call::Gateway | Call::GatewayBot | Call::Me) {
            self.count(&target, actor);
            return Ok(Some(about(target.route.call, actor)));
        }
        let home = self.home(&target, actor, now)?;
        let (body, query) = (arrival.body()?, &arrival.query);
        let guild = self.guilds.get_mut(&home).ok_or(Code::UnknownChannel)?;
        let stops = actor != Actor::Hand && self.stop.is_next();
        let before = stops.then(|| guild.clone());
        let (ids, limits) = (&mut self.ids, &self.limits);
        let mut turn = Turn { actor, now, target, body, query, ids, limits };
        let done = call(guild, &mut turn)?;
        if let (Some(before), Some(_)) = (before, done.wrote) {
            *guild = before;
            self.stop.write();
            return Ok(None);
        }
        self.count(&target, actor);
        let Some(id) = done.wrote else { return Ok(Some(done)) };
        self.note(arrival, (home, target, id), actor);
        let stopped = actor != Actor::Hand && self.stop.write().is_some();
        Ok((!stopped).then_some(done))
    }

    fn count(&mut self, target: &Target, actor: Actor) {
        if actor != Actor::Hand {
            *self.stats.done_by_route.entry(target.name()).or_default() += 1;
        }
    }

    /// The guild that a call is about; a guild is made when it is first named, and a bot is in it from its first call.
    fn home(&mut self, target: &Target, actor: Actor, now: Time) -> Result<u64, Refusal> {
        let named = target.guild.or_else(|| self.places.get(&target.channel?).copied());
        let id = named.ok_or(Code::UnknownChannel)?;
        if !self.guilds.contains_key(&id) && self.guilds.len() >= GUILDS_MAX {
            let full = json!({ "message": format!("there are {GUILDS_MAX} guilds already"), "code": 0 });
            return Err(Refusal::Plain(StatusCode::SERVICE_UNAVAILABLE, full));
        }
        let guild = self.guilds.entry(id).or_insert_with(|| Guild::new(id));
        if let Actor::Bot(bot) = actor {
            guild.join(bot, &mut self.ids, now);
        }
        Ok(id)
    }

    fn note(&mut self, arrival: &Arrival, (guild, target, id): (u64, Target, u64), actor: Actor) {
        if target.route.call == Call::ChannelCreate {
            self.places.insert(id, guild);
        }
        let by_hand = actor == Actor::Hand;
        self.stats.all.writes += u64::from(!by_hand);
        self.log.push(Entry {
            n: self.log.last() + 1,
            guild: guild.to_string(),
            route: target.name(),
            id: id.to_string(),
            reason: arrival.reason.clone(),
            by_hand,
        });
    }

    /// A change by hand, or a look: the same calls, and no limit, permission or fault in the way.
    pub fn by_hand(&mut self, arrival: &Arrival, path: &str, now: Time) -> Answer {
        let done =
            Target::of(&arrival.method, path).and_then(|target| self.run(arrival, target, Actor::Hand, now));
        match done {
            Ok(Some(done)) => Answer::new(done.status, done.body),
            Ok(None) => Answer::new(StatusCode::NO_CONTENT, None),
            Err(refusal) => refused(refusal),
        }
    }

    /// What a bot's role in a guild may, and where it stands; of every bot in it.
    pub fn set_bots(&mut self, guild: u64, permissions: Option<u64>, position: Option<u64>) -> bool {
        let Some(guild) = self.guilds.get_mut(&guild) else { return false };
        for role in guild.roles.values_mut().filter(|role| role.bot.is_some()) {
            role.permissions = permissions.unwrap_or(role.permissions);
            role.position = position.unwrap_or(role.position);
        }
        true
    }

    /// Everything in a guild.
    #[must_use]
    pub fn dump(&self, guild: u64) -> Option<Value> {
        self.guilds.get(&guild).map(Guild::dump)
    }

    /// The writes after one.
    #[must_use]
    pub fn writes(&self, after: u64) -> Vec<&Entry> {
        self.log.page(after)
    }

    /// The counts.
    #[must_use]
    pub fn stats(&self) -> DiscordStats {
        self.stats.with(self.guilds.values())
    }
}

/// Which call it is, and whose.
fn identify(arrival: &Arrival) -> Result<(Target, Actor), Refusal> {
    if !arrival.has_agent {
        return Err(Code::Blocked.into());
    }
    let target = Target::of(&arrival.method, behind_version(&arrival.path)?);
    let open = matches!(&target, Ok(target) if target.route.call == Call::Gateway);
    match arrival.bot {
        Some(bot) => Ok((target?, Actor::Bot(bot))),
        None if open => Ok((target?, Actor::Bot(0))),
        None => {
            let status = StatusCode::UNAUTHORIZED;
            Err(Refusal::Plain(status, by_status(status)))
        }
    }
}

fn refused(refusal: Refusal) -> Answer {
    match refusal {
        Refusal::Plain(status, body) => Answer::new(status, Some(body)),
        Refusal::Hidden(wait) => Answer::limited(&Limited { scope: Scope::User, wait, ruling: None }),
    }
}

const fn scope(scope: Scope) -> &'static str {
    match scope {
        Scope::User => "user",
        Scope::Global => "global",
        Scope::Shared => "shared",
    }
}
