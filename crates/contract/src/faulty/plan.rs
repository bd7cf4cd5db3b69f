//! The plan of which method fails when, and how.

use std::collections::HashMap;
use std::time::Duration;

use crate::rng::TestRng;

/// A method of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each is the method of that name")]
pub enum StoreMethod {
    AcquirePartition,
    Renew,
    Release,
    PartitionOwners,
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
    GetRecord,
    ListRecords,
    ForgetRecord,
    SweepRecords,
    AcquireLease,
    RenewLease,
    ReleaseLease,
    LeaseStatus,
    ListLeases,
    Reserve,
    SettleBucket,
    ObserveBucket,
    ListBuckets,
    ForgetBucket,
    OpenWindow,
    SaveDeployment,
    WriteJournal,
    Deployment,
    Deployments,
    DeploymentSteps,
    DeploymentEvents,
    MappedObjects,
    AddAuditEntry,
    AuditEntries,
    Register,
    Heartbeat,
    ListNodes,
    Notify,
    Listen,
    Migrate,
    CheckLayout,
    EnsurePartitions,
    EnsureSecret,
    Health,
    Stats,
}

impl StoreMethod {
    /// Whether it changes nothing, so that a lost reply leaves nothing unsure.
    #[must_use]
    pub const fn only_reads(self) -> bool {
        matches!(
            self,
            Self::PartitionOwners
                | Self::Load
                | Self::Read
                | Self::List
                | Self::GetRecord
                | Self::ListRecords
                | Self::LeaseStatus
                | Self::ListLeases
                | Self::ObserveBucket
                | Self::ListBuckets
                | Self::Deployment
                | Self::Deployments
                | Self::DeploymentSteps
                | Self::DeploymentEvents
                | Self::MappedObjects
                | Self::AuditEntries
                | Self::ListNodes
                | Self::Listen
                | Self::CheckLayout
                | Self::Health
                | Self::Stats
        )
    }
}

/// The fault injected into one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InjectedFault {
    /// None: the call is executed and its result returned.
    #[default]
    None,
    /// The call is not executed; returns `Unavailable`.
    Fail,
    /// The call is executed after this delay.
    Delay(Duration),
    /// The call is executed, and returns `Unsure` (`Unavailable` when it only reads).
    LoseReply,
}

/// The rates of faults, per thousand calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultRates {
    /// Calls that fail before they are executed.
    pub fail: u16,
    /// Calls that are delayed.
    pub delay: u16,
    /// Calls whose reply is lost.
    pub lose_reply: u16,
    /// The longest delay.
    pub delay_max: Duration,
}

/// The plan of which method fails when.
#[derive(Debug, Default)]
pub struct FaultPlan {
    script: HashMap<(StoreMethod, u64), InjectedFault>,
    seen: HashMap<StoreMethod, u64>,
    chance: Option<(TestRng, FaultRates)>,
    only: Option<Vec<StoreMethod>>,
}

impl FaultPlan {
    /// Creates a plan without faults.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Creates a plan of random faults from a seed.
    #[must_use]
    pub fn seeded(seed: u64, odds: FaultRates) -> Self {
        Self { chance: Some((TestRng::new(seed), odds)), ..Self::default() }
    }

    /// Restricts random faults to these methods.
    #[must_use]
    pub fn only(mut self, verbs: &[StoreMethod]) -> Self {
        self.only = Some(verbs.to_vec());
        self
    }

    /// Injects a fault into the `nth` call of `verb` from now on (1 is the next one).
    #[must_use]
    pub fn at(mut self, verb: StoreMethod, nth: u64, injury: InjectedFault) -> Self {
        self.script.insert((verb, nth), injury);
        self
    }

    /// The fault for the next call of `verb`.
    pub fn next_fault(&mut self, verb: StoreMethod) -> InjectedFault {
        let seen = self.seen.entry(verb).or_default();
        *seen += 1;
        if let Some(injury) = self.script.get(&(verb, *seen)) {
            return *injury;
        }
        if self.only.as_ref().is_some_and(|only| !only.contains(&verb)) {
            return InjectedFault::None;
        }
        self.chance.as_mut().map_or(InjectedFault::None, |(rng, odds)| random_fault(rng, *odds))
    }
}

fn random_fault(rng: &mut TestRng, odds: FaultRates) -> InjectedFault {
    let roll = rng.below(1_000) as u16;
    let delay = Duration::from_micros(rng.below(odds.delay_max.as_micros() as u64 + 1));
    if roll < odds.fail {
        InjectedFault::Fail
    } else if roll < odds.fail + odds.delay {
        InjectedFault::Delay(delay)
    } else if roll < odds.fail + odds.delay + odds.lose_reply {
        InjectedFault::LoseReply
    } else {
        InjectedFault::None
    }
}
