//! When which verb fails, and how.

use std::collections::HashMap;
use std::time::Duration;

use crate::dice::Dice;

/// A verb of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each is the method of that name")]
pub enum Verb {
    Own,
    Renew,
    Release,
    Owners,
    Load,
    Append,
    Read,
    List,
    Snapshot,
    Sweep,
    ClaimRecord,
    CompleteRecord,
    ReleaseRecord,
    RenewRecord,
    LookRecord,
    ListRecords,
    ForgetRecord,
    SweepRecords,
    AcquireLease,
    RenewLease,
    ReleaseLease,
    LookLease,
    ListLeases,
    Reserve,
    SettleBucket,
    ObserveBucket,
    ListBuckets,
    ForgetBucket,
    OpenWindow,
    PeekWindow,
    KeepDeployment,
    WriteJournal,
    Deployment,
    Deployments,
    DeploymentSteps,
    Mapped,
    Register,
    Heartbeat,
    ListNodes,
    Notify,
    Listen,
    Migrate,
    Layout,
    Partitions,
    Secret,
    Health,
    Stats,
}

impl Verb {
    /// Whether it changes nothing, so that a lost answer leaves nothing unsure.
    #[must_use]
    pub const fn only_reads(self) -> bool {
        matches!(
            self,
            Self::Owners
                | Self::Load
                | Self::Read
                | Self::List
                | Self::LookRecord
                | Self::ListRecords
                | Self::LookLease
                | Self::ListLeases
                | Self::ObserveBucket
                | Self::ListBuckets
                | Self::PeekWindow
                | Self::Deployment
                | Self::Deployments
                | Self::DeploymentSteps
                | Self::Mapped
                | Self::ListNodes
                | Self::Listen
                | Self::Layout
                | Self::Health
                | Self::Stats
        )
    }
}

/// What happens to one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Injury {
    /// Nothing: it is done and answered.
    #[default]
    None,
    /// It is not done; `Unavailable`.
    Fail,
    /// It is done this much later.
    Delay(Duration),
    /// It is done, and answered with `Unsure` (with `Unavailable` when it only reads).
    LoseReply,
}

/// How often what happens, in calls of a thousand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Odds {
    /// Fails before it is done.
    pub fail: u16,
    /// Is delayed.
    pub delay: u16,
    /// Loses its answer.
    pub lose_reply: u16,
    /// The longest delay.
    pub delay_max: Duration,
}

/// When which verb fails.
#[derive(Debug, Default)]
pub struct Plan {
    script: HashMap<(Verb, u64), Injury>,
    seen: HashMap<Verb, u64>,
    chance: Option<(Dice, Odds)>,
    only: Option<Vec<Verb>>,
}

impl Plan {
    /// Nothing ever fails.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// By chance, from a seed.
    #[must_use]
    pub fn seeded(seed: u64, odds: Odds) -> Self {
        Self { chance: Some((Dice::new(seed), odds)), ..Self::default() }
    }

    /// Chance touches these verbs only.
    #[must_use]
    pub fn only(mut self, verbs: &[Verb]) -> Self {
        self.only = Some(verbs.to_vec());
        self
    }

    /// The `nth` call of `verb` from now on (1 is the next one) has this injury.
    #[must_use]
    pub fn at(mut self, verb: Verb, nth: u64, injury: Injury) -> Self {
        self.script.insert((verb, nth), injury);
        self
    }

    /// What happens to the next call of `verb`.
    pub fn next(&mut self, verb: Verb) -> Injury {
        let seen = self.seen.entry(verb).or_default();
        *seen += 1;
        if let Some(injury) = self.script.get(&(verb, *seen)) {
            return *injury;
        }
        if self.only.as_ref().is_some_and(|only| !only.contains(&verb)) {
            return Injury::None;
        }
        self.chance.as_mut().map_or(Injury::None, |(dice, odds)| by_chance(dice, *odds))
    }
}

fn by_chance(dice: &mut Dice, odds: Odds) -> Injury {
    let roll = dice.below(1_000) as u16;
    let delay = Duration::from_micros(dice.below(odds.delay_max.as_micros() as u64 + 1));
    if roll < odds.fail {
        Injury::Fail
    } else if roll < odds.fail + odds.delay {
        Injury::Delay(delay)
    } else if roll < odds.fail + odds.delay + odds.lose_reply {
        Injury::LoseReply
    } else {
        Injury::None
    }
}
