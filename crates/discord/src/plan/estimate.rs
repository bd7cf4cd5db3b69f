//! The cost of a plan before it is applied: room, calls, hidden quotas, and time at the given
//! limits. Calls of one guild run one after the other, so the time is found by simulating them in
//! the order of execution.

use std::collections::BTreeMap;

use super::call::PlannedCall;
use super::step::{Action, PlanStep};
use super::{CallBody, GuildRoute, Plan, UnresolvedJson, WriteMethod};
use crate::bounds::{CHANNELS_MAX, RENAMES_MAX, RENAMES_PER, ROLE_CREATES_MAX, ROLE_CREATES_PER, ROLES_MAX};
use crate::{Id, ObjectKind};

/// A number of calls per period, which starts with the first of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Calls.
    pub calls: u32,
    /// Milliseconds.
    pub per_ms: u64,
}

/// The limits known so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownLimits {
    /// The limit on all calls together.
    pub global: Rate,
    /// Limits by method and route, as in `POST /guilds/{guild}/roles`, for each guild or channel.
    /// Nothing is known yet of a route without an entry.
    pub routes: BTreeMap<String, Rate>,
    /// The duration of one call.
    pub latency_ms: u64,
    /// Roles created recently, as far as known.
    pub role_creates_used: u32,
    /// Names and topics changed recently, by channel, as far as known.
    pub renames_used: BTreeMap<Id, u32>,
}

impl KnownLimits {
    /// Returns the limits that Discord documents, with no call made yet: 50 calls per second.
    #[must_use]
    pub fn documented(latency_ms: u64) -> Self {
        Self {
            global: Rate { calls: 50, per_ms: 1_000 },
            routes: BTreeMap::new(),
            latency_ms,
            role_creates_used: 0,
            renames_used: BTreeMap::new(),
        }
    }

    /// The limit of a route, by method and template.
    fn rate(&self, (method, template): (&str, &str)) -> Option<Rate> {
        self.routes.get(&format!("{method} {template}")).copied()
    }
}

/// The resources a plan needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// Roles that the guild still has room for afterwards.
    pub roles_left: usize,
    /// Channels that the guild still has room for afterwards.
    pub channels_left: usize,
    /// Calls that change something.
    pub calls: usize,
    /// Calls by method and route.
    pub by_route: BTreeMap<(&'static str, &'static str), usize>,
    /// Roles that can still be created, of those that Discord allows in 48 hours.
    pub role_creates_left: u32,
    /// Channels whose name or topic cannot be changed at once: two changes in ten minutes are
    /// allowed.
    pub renames_held: Vec<Id>,
    /// Time from the first call to the last response.
    pub time_ms: u64,
    /// Routes with several calls whose limits are not known yet. If there are any, it may take
    /// longer.
    pub routes_unknown: usize,
}

impl Plan {
    /// Estimates what the plan needs, without making a call.
    #[must_use]
    pub fn estimate(&self, limits: &KnownLimits) -> Estimate {
        let new = |kind| self.count(kind, Action::Create);
        let mut by_route = BTreeMap::new();
        let mut renames_held = Vec::new();
        for call in self.writes().filter_map(|step: &PlanStep| step.call.as_ref()) {
            *by_route.entry(route(call)).or_default() += 1;
            let used = |id: &Id| limits.renames_used.get(id).copied().unwrap_or(0);
            renames_held.extend(renamed_channel(call).filter(|id| used(id) >= RENAMES_MAX));
        }
        let gone = |kind| self.count(kind, Action::Remove);
        let creates = u32::try_from(new(ObjectKind::Role)).unwrap_or(u32::MAX);
        let is_unknown = |(route, calls): &(&(_, _), &usize)| **calls > 1 && limits.rate(**route).is_none();
        let routes_unknown = by_route.iter().filter(is_unknown).count();
        Estimate {
            roles_left: (ROLES_MAX + gone(ObjectKind::Role))
                .saturating_sub(self.roles + new(ObjectKind::Role)),
            channels_left: (CHANNELS_MAX + gone(ObjectKind::Category) + gone(ObjectKind::Channel))
                .saturating_sub(self.channels + new(ObjectKind::Category) + new(ObjectKind::Channel)),
            calls: self.writes().count(),
            by_route,
            role_creates_left: ROLE_CREATES_MAX
                .saturating_sub(limits.role_creates_used.saturating_add(creates)),
            renames_held,
            time_ms: duration_ms(self.calls(), limits),
            routes_unknown,
        }
    }

    /// Yields its calls in the order of execution.
    fn calls(&self) -> impl Iterator<Item = &PlannedCall> {
        let orders = self.writes().filter(|step| step.action == Action::Order);
        self.scheduled_steps().into_iter().chain(orders).filter_map(|step| step.call.as_ref())
    }
}

/// Returns how long calls take one after the other, from the first call to the last response.
pub fn duration_ms<'a>(calls: impl Iterator<Item = &'a PlannedCall>, limits: &KnownLimits) -> u64 {
    let mut global = Window::new(limits.global, 0);
    let role_creates = Rate { calls: ROLE_CREATES_MAX, per_ms: ROLE_CREATES_PER * 1_000 };
    let mut role_creates = Window::new(role_creates, limits.role_creates_used);
    let mut routes: BTreeMap<_, Window> = BTreeMap::new();
    let mut now = 0;
    for call in calls {
        let mut at = now;
        if let Some(rate) = limits.rate(route(call)) {
            let own = (route(call), call.route.channel());
            at = routes.entry(own).or_insert_with(|| Window::new(rate, 0)).take(at);
        }
        if call.route == GuildRoute::RoleCreate {
            at = role_creates.take(at);
        }
        if let Some(id) = renamed_channel(call) {
            let rate = Rate { calls: RENAMES_MAX, per_ms: RENAMES_PER * 1_000 };
            at = Window::new(rate, limits.renames_used.get(&id).copied().unwrap_or(0)).take(at);
        }
        now = global.take(at) + limits.latency_ms;
    }
    now
}

fn route(call: &PlannedCall) -> (&'static str, &'static str) {
    (call.route.method().as_str(), call.route.template())
}

/// Returns the channel whose name or topic a call changes.
fn renamed_channel(call: &PlannedCall) -> Option<Id> {
    let (GuildRoute::ChannelEdit(id), WriteMethod::Patch) = (&call.route, call.route.method()) else {
        return None;
    };
    let CallBody::Fields(UnresolvedJson::Object(fields)) = &call.body else { return None };
    fields.iter().any(|(name, _)| matches!(*name, "name" | "topic")).then_some(*id)
}

/// A budget that comes back all at once. Earlier usage counts as if it had happened just now.
struct Window {
    rate: Rate,
    opened: u64,
    used: u32,
}

impl Window {
    fn new(rate: Rate, used: u32) -> Self {
        Self { rate: Rate { calls: rate.calls.max(1), ..rate }, opened: 0, used }
    }

    /// Returns when a call that is ready at `now` may be sent.
    fn take(&mut self, now: u64) -> u64 {
        let ends = self.opened.saturating_add(self.rate.per_ms);
        let at = if self.used >= self.rate.calls { now.max(ends) } else { now };
        if at >= ends || self.used == 0 {
            (self.opened, self.used) = (at, 0);
        }
        self.used += 1;
        at
    }
}
