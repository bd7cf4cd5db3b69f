//! Generates commands: mostly sensible ones, because those go deepest, and some late, repeated or
//! odd ones.

use std::sync::Arc;
use std::time::Duration;

use tidegate_core::model::{AcceptOutcome, CancelOutcome, EndedOperation, Resolution, SettleOutcome};
use tidegate_core::{Draft, EndState, Fence, Model, Seq, Time};

use super::command::{Command, CommandKind, CommandOutcome, REMOTE_KINDS};
use super::content::{LIMITS, alternatives, draft, hint, shape, verdict};
use crate::rng::TestRng;
use crate::samples::some;

const GROUPS: [&str; 4] = ["a", "b", "c", "d"];

/// Generates commands, and remembers their results.
pub(super) struct CommandGenerator {
    pub(super) rng: TestRng,
    now: Time,
    last_seq: Seq,
    claims: Vec<(Seq, Fence)>,
    ended: Vec<(Seq, EndState)>,
    answer: Option<CommandOutcome>,
    history: Vec<Command>,
}

impl CommandGenerator {
    pub(super) const fn new(rng: TestRng, now: Time) -> Self {
        Self {
            rng,
            now,
            last_seq: Seq(0),
            claims: Vec::new(),
            ended: Vec::new(),
            answer: None,
            history: Vec::new(),
        }
    }

    /// Creates the limits; one in four is left out, so that some charges name a missing one.
    pub(super) fn limits(&mut self) -> Vec<Command> {
        let mut commands = Vec::new();
        for limit in LIMITS {
            if self.rng.percent(75) {
                let order = CommandKind::Configure(limit.into(), shape(&mut self.rng, limit));
                commands.push(Command { now: self.now, order });
            }
        }
        self.history.clone_from(&commands);
        commands
    }

    /// The last result of the model.
    pub(super) const fn last_answer(&self) -> Option<&CommandOutcome> {
        self.answer.as_ref()
    }

    /// The next command, at some later time.
    pub(super) fn next(&mut self, model: &Model) -> Command {
        self.pass_time(model);
        let back = if self.rng.percent(3) { Duration::from_secs(2) } else { Duration::ZERO };
        let command = Command { now: self.now.before(back), order: self.common_command() };
        self.history.push(command.clone());
        command
    }

    /// Remembers what can be claimed, settled or reopened.
    pub(super) fn learn(&mut self, answer: CommandOutcome) {
        match &answer {
            CommandOutcome::Accept(AcceptOutcome::New(seq)) => self.last_seq = *seq,
            CommandOutcome::Take(take) => {
                self.claims.extend(take.claims.iter().map(|claim| (claim.seq, claim.fence)));
                take.ended.iter().for_each(|ended| self.note_end(ended));
            }
            CommandOutcome::Settle(SettleOutcome::Settled { ended: Some(ended), .. })
            | CommandOutcome::Cancel(CancelOutcome::Ended(ended))
            | CommandOutcome::Resolve(Ok(Some(ended))) => self.note_end(ended),
            CommandOutcome::Reopen(seq, Ok(())) => self.ended.retain(|(other, _)| other != seq),
            _ => {}
        }
        self.answer = Some(answer);
    }

    fn note_end(&mut self, ended: &EndedOperation) {
        if ended.state != EndState::Succeeded {
            self.ended.push((ended.seq, ended.state));
        }
    }

    fn pass_time(&mut self, model: &Model) {
        let by = match self.rng.below(10) {
            0..4 => Duration::ZERO,
            4..7 => Duration::from_micros(self.rng.below(2_000_000)),
            7 | 8 => model.next_change(true).map_or(Duration::ZERO, |at| at.since(self.now)),
            _ => Duration::from_secs(self.rng.below(90)),
        };
        self.now = self.now.after(by.min(Duration::from_secs(3_600)));
    }

    fn common_command(&mut self) -> CommandKind {
        match self.rng.below(24) {
            0..7 => CommandKind::Accept(self.draft_of_any_group()),
            7..13 => self.take(),
            13..18 => self.settle(),
            18 => self.renew(),
            19 => CommandKind::Cancel(self.seq()),
            20 => {
                let says = [Resolution::Succeeded, Resolution::Failed, Resolution::Repeat];
                CommandKind::Resolve(self.seq(), *self.rng.pick(&says))
            }
            21 if self.rng.percent(15) => CommandKind::PauseUnpaused(self.group()),
            21 if self.rng.percent(50) => CommandKind::Pause(self.group()),
            21 | 22 => CommandKind::Resume(self.group()),
            _ => self.rare(),
        }
    }

    fn rare(&mut self) -> CommandKind {
        let limit = *self.rng.pick(&LIMITS);
        match self.rng.below(7) {
            6 => CommandKind::AwaitAgain(self.now.after(Duration::from_secs(self.rng.below(60)))),
            // Most of those that were accepted last still wait or run.
            4 | 5 => {
                let newest = self.last_seq.0.saturating_sub(self.rng.below(6));
                CommandKind::Rechain(Seq(newest), alternatives(&mut self.rng))
            }
            0 => CommandKind::SetLimit(limit.into(), shape(&mut self.rng, limit)),
            1 => CommandKind::Configure(limit.into(), shape(&mut self.rng, limit)),
            // A cap cannot be closed, but the last one that was claimed may wait for it.
            2 if limit == "cap" => {
                CommandKind::Wake(self.claims.last().map_or(self.last_seq, |(seq, _)| *seq))
            }
            2 if self.rng.percent(30) => CommandKind::ThawClosed(limit.into()),
            2 => CommandKind::Thaw(limit.into()),
            _ if self.ended.is_empty() => self.take(),
            _ => {
                let accepted_at = self.now.before(Duration::from_secs(self.rng.below(60)));
                let (seq, ended) = *self.rng.pick(&self.ended);
                CommandKind::Reopen(seq, accepted_at, ended, self.draft_of_any_group())
            }
        }
    }

    fn group(&mut self) -> Arc<str> {
        (*self.rng.pick(&GROUPS)).into()
    }

    fn draft_of_any_group(&mut self) -> Draft {
        let group = self.group();
        draft(&mut self.rng, group, self.now)
    }

    fn seq(&mut self) -> Seq {
        Seq(self.rng.below(self.last_seq.0 + 2))
    }

    fn chance(&mut self) -> u32 {
        self.rng.roll() as u32
    }

    fn take(&mut self) -> CommandKind {
        let n = self.rng.within(1..6) as usize;
        let (lease, chance) = (Duration::from_secs(self.rng.within(1..40)), self.chance());
        if self.rng.percent(50) {
            return CommandKind::Take { n, lease, chance };
        }
        let remote = (0..self.rng.within(1..4)).map(|_| self.remote_slots()).collect();
        let n = if self.rng.percent(30) { 0 } else { n };
        CommandKind::TakeFor { n, remote, lease, chance }
    }

    /// The kinds and the free slots of a remote worker.
    fn remote_slots(&mut self) -> (Vec<Arc<str>>, usize) {
        let mut kinds = vec![Arc::from(*self.rng.pick(&REMOTE_KINDS))];
        if self.rng.percent(30) {
            kinds = REMOTE_KINDS.map(Arc::from).into();
        }
        (kinds, self.rng.within(0..4) as usize)
    }

    /// A claim that is or was in flight: reports come late and twice.
    fn claim(&mut self) -> (Seq, Fence) {
        if self.claims.is_empty() {
            return (self.seq(), Fence(self.rng.below(5)));
        }
        let place = self.rng.index(self.claims.len());
        if self.rng.percent(85) { self.claims.swap_remove(place) } else { self.claims[place] }
    }

    fn settle(&mut self) -> CommandKind {
        let (seq, fence) = self.claim();
        let verdict = verdict(&mut self.rng);
        let hints = some(&mut self.rng, 1, hint);
        CommandKind::Settle { seq, fence, verdict, hints, chance: self.chance() }
    }

    fn renew(&mut self) -> CommandKind {
        let (seq, fence) = self.claims.last().copied().unwrap_or((Seq(1), Fence(1)));
        let span = Duration::from_secs(self.rng.below(60));
        if self.now.as_micros().is_multiple_of(2) {
            return CommandKind::Send { seq, fence };
        }
        CommandKind::Renew { seq, fence, until: self.now.after(span) }
    }
}

impl Drop for CommandGenerator {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the commands of the sequence that failed:");
            for (place, Command { now, order }) in self.history.iter().enumerate() {
                eprintln!("{place:4} at {} µs: {order:?}", now.as_micros());
            }
        }
    }
}
