//! One deployment from its first look to its last line: read, plan, carry, and again when the plan did not hold. Orders
//! come last, from a guild that was listed when all was there.

use std::time::Duration;

use tidegate_core::journal::Stage;
use tidegate_limits::Guard;
use tokio::time::Instant;

use super::audit::Audit;
use super::error::{Error, Result};
use super::progress::{Listener, Told};
use super::queue::Queue;
use super::record::{Applied, Became, Pen};
use super::report::Report;
use super::step::Stepped;
use super::under_way::UnderWay;
use super::wanted::Wanted;
use super::{Deployer, mapping, reading};
use crate::Kind;
use crate::guild::Guild;
use crate::journal::Journal;
use crate::plan::{Action, Options, Plan, Step};
use crate::template::Template;

/// Plans in a row that get nothing done, before it is given up.
const FRUITLESS_MAX: u32 = 5;
/// Plans of one run.
const ROUNDS_MAX: u32 = 200;
/// What may have happened a moment ago is given time to show before the guild is listed anew.
const SETTLE: Duration = Duration::from_millis(500);

/// A deployment under way.
pub(super) struct Run<'a> {
    deployer: &'a Deployer,
    pub(super) wanted: &'a Wanted,
    template: &'a Template,
    pub(super) guard: &'a Guard,
    pub(super) listener: &'a dyn Listener,
    pub(super) pen: Pen,
    pub(super) journal: Journal,
    pub(super) report: Report,
    pub(super) audit: Audit,
    /// When it was last not known whether something was made.
    pub(super) unsure: Option<Instant>,
    _under_way: UnderWay,
}

/// How a plan went.
enum Went {
    /// All of it is done.
    Through,
    /// Objects were made: what depends on where they stand comes next.
    Grown,
    /// It did not hold, for this reason; steps that were applied before that.
    Broken(String, usize),
}

impl<'a> Run<'a> {
    pub(super) async fn begin(
        deployer: &'a Deployer,
        wanted: &'a Wanted,
        template: &'a Template,
        guard: &'a Guard,
        listener: &'a dyn Listener,
    ) -> Result<Self> {
        let (pen, resumed) = Pen::take_up(deployer.store.clone(), wanted, guard.fence()).await?;
        let report = Report { deployment: pen.id().to_owned(), resumed, ..Report::default() };
        listener.tell(&Told::Begun { deployment: pen.id(), resumed });
        let journal = mapping::known(&*deployer.store, &wanted.group()).await?;
        let audit = Audit::default();
        // What an interrupted run had sent may have had its effect or not.
        let (unsure, _under_way) = (resumed.then(Instant::now), UnderWay::new(pen.id()));
        Ok(Self {
            deployer,
            wanted,
            template,
            guard,
            listener,
            pen,
            journal,
            report,
            audit,
            unsure,
            _under_way,
        })
    }

    pub(super) async fn finish(mut self) -> Result<Report> {
        let ended = self.rounds().await;
        let (stage, note) = match &ended {
            Ok(()) => (Stage::Done, None),
            // It goes on with the next run.
            Err(error) if error.is_passing() => {
                tracing::warn!(deployment = self.pen.id(), %error, "the deployment was interrupted");
                return ended.map(|()| self.report);
            }
            Err(error) => (Stage::Failed, Some(error.to_string())),
        };
        if stage == Stage::Done {
            self.pen.close_rest().await?;
        }
        self.mirror(note.as_deref()).await;
        self.pen.end(stage, note).await?;
        ended.map(|()| self.report)
    }

    async fn rounds(&mut self) -> Result<()> {
        let mut fruitless = 0;
        for _ in 0..ROUNDS_MAX {
            self.report.rounds += 1;
            match self.round().await? {
                Went::Through => return self.no_twins().await,
                Went::Grown => fruitless = 0,
                Went::Broken(because, applied) => {
                    fruitless = if applied == 0 { fruitless + 1 } else { 0 };
                    if fruitless == FRUITLESS_MAX {
                        return Err(Error::GaveUp { rounds: self.report.rounds, last: because });
                    }
                    self.listener.tell(&Told::Again { because: &because });
                    tokio::time::sleep(SETTLE * (1 << fruitless)).await;
                }
            }
            self.pen.next_round().await?;
        }
        Err(Error::GaveUp { rounds: self.report.rounds, last: "the guild keeps changing".into() })
    }

    /// What was made late, after it was looked for, shows now: then something is there twice, and it is said which.
    async fn no_twins(&self) -> Result<()> {
        let Some(unsure) = self.unsure else { return Ok(()) };
        tokio::time::sleep_until(unsure + self.deployer.late).await;
        let guild = reading::guild(&self.queue(), self.template, &self.journal, false).await?;
        let plan = Plan::make(self.template, &guild, &self.journal, Options { prune: self.wanted.prune });
        if plan.conflicts.is_empty() { Ok(()) } else { Err(Error::Conflicts(plan.conflicts)) }
    }

    pub(super) fn queue(&self) -> Queue<'_> {
        self.deployer.queue(self.wanted, Some(self.pen.id()), self.listener)
    }

    async fn round(&mut self) -> Result<Went> {
        self.listener.tell(&Told::Reading);
        let first = self.report.rounds == 1;
        let all = self.wanted.verify && first;
        let guild = reading::guild(&self.queue(), self.template, &self.journal, all).await?;
        let plan = Plan::make(self.template, &guild, &self.journal, Options { prune: self.wanted.prune });
        if !plan.conflicts.is_empty() {
            return Err(Error::Conflicts(plan.conflicts));
        }
        self.announce(&plan, &guild, first).await?;
        let grows = plan.writes().any(makes_a_place);
        let orders = plan.writes().filter(|step| step.action == Action::Order && !grows);
        let mut applied = 0;
        for step in plan.carried().into_iter().chain(orders) {
            match self.step(&plan, step, &guild).await? {
                Stepped::Applied => applied += 1,
                Stepped::Outdated(because) => return Ok(Went::Broken(because, applied)),
            }
        }
        Ok(if grows { Went::Grown } else { Went::Through })
    }

    /// Writes down what is to be done, and what is as it should be.
    async fn announce(&mut self, plan: &Plan, guild: &Guild, first: bool) -> Result<()> {
        let calls = plan.writes().count();
        self.listener.tell(&Told::Planned { plan, calls, round: self.report.rounds });
        self.report.leftovers = plan.leftovers.len();
        for step in &plan.steps {
            if step.adopted {
                self.report.adopted += 1;
            }
            if step.call.is_none() {
                if first {
                    self.report.count(Action::Skip);
                }
                let channel = step.id.and_then(|id| guild.channel_of_message(id));
                self.remember(step, step.id, channel);
            }
        }
        let became = |step: &Step| match step.call {
            Some(_) => Became::Planned,
            None => Became::Applied(Applied { id: step.id, channel: self.channel_of(step), operation: None }),
        };
        let lines: Vec<_> = (0..).zip(&plan.steps).map(|(nth, step)| (nth, step, became(step))).collect();
        self.pen.write(lines).await
    }
}

/// Whether a step makes something that has a place among others.
fn makes_a_place(step: &Step) -> bool {
    step.action == Action::Create && step.target.kind() != Some(Kind::Message)
}
