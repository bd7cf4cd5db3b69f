//! A plan as text for people: lines with a mark each. Colors are up to the terminal.

use std::fmt;

use super::Plan;
use super::estimate::Estimate;
use super::step::{Action, PlanStep};
use crate::Id;
use crate::bounds::{CHANNELS_MAX, ROLE_CREATES_MAX, ROLES_MAX};
use crate::counted::{agreeing, counted};

/// The kind of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineMark {
    /// A new object.
    Add,
    /// A change.
    Change,
    /// A removal.
    Remove,
    /// Something that stays, and is worth mentioning.
    Keep,
    /// A conflict that people have to resolve.
    Conflict,
    /// A remark.
    Note,
}

impl LineMark {
    /// Returns the mark as one character.
    #[must_use]
    pub fn sign(self) -> char {
        match self {
            Self::Add => '+',
            Self::Change => '~',
            Self::Remove => '-',
            Self::Keep => '=',
            Self::Conflict => '!',
            Self::Note => ' ',
        }
    }
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanLine {
    /// Its kind.
    pub mark: LineMark,
    /// How far it is indented: 0 for an object, 1 for a field of it.
    pub depth: usize,
    /// The text after the mark.
    pub text: String,
}

impl fmt::Display for PlanLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = format!("{}{} {}", "    ".repeat(self.depth), self.mark.sign(), self.text);
        f.write_str(line.trim_end())
    }
}

fn line(mark: LineMark, depth: usize, text: impl Into<String>) -> PlanLine {
    PlanLine { mark, depth, text: text.into() }
}

impl Plan {
    /// Returns the plan as lines. Objects that stay as they are have no line.
    #[must_use]
    pub fn lines(&self) -> Vec<PlanLine> {
        let mut lines = vec![line(LineMark::Note, 0, self.headline())];
        lines.extend(self.legend().map(|legend| line(LineMark::Note, 0, legend)));
        lines.extend(self.conflicts.iter().map(|conflict| line(LineMark::Conflict, 0, conflict.to_string())));
        for step in &self.steps {
            lines.extend(step_lines(step));
        }
        for left in self.leftovers.iter().filter(|left| !self.is_pruned(left.id)) {
            let (kind, key, id) = (left.kind, &left.key, left.id);
            let name = if left.name.is_empty() { String::new() } else { format!(" {:?}", left.name) };
            let text = format!("{kind} {key}{name} ({id}) is not in the template; it stays unless you prune");
            lines.push(line(LineMark::Keep, 0, text));
        }
        lines.extend(self.namesakes.iter().map(|other| line(LineMark::Keep, 0, other.to_string())));
        lines.extend(self.remarks.iter().map(|remark| line(LineMark::Note, 0, remark.as_str())));
        lines.push(line(LineMark::Note, 0, self.warning()));
        if self.writes().next().is_some() {
            // Again at the end: the first line of a long plan has scrolled away.
            lines.push(line(LineMark::Note, 0, format!("Plan: {}.", self.counts().join(", "))));
        }
        lines
    }

    /// Explains the marks that the plan has.
    fn legend(&self) -> Option<String> {
        let has = |action| self.steps.iter().any(|step| step.action == action);
        let keeps = self.leftovers.iter().any(|left| !self.is_pruned(left.id));
        let adopts = self.steps.iter().any(|step| step.action == Action::Skip && step.adopted);
        let marks = [
            (has(Action::Create), LineMark::Add, "create"),
            (has(Action::Update) || has(Action::Order), LineMark::Change, "change in place"),
            (has(Action::Remove), LineMark::Remove, "remove"),
            (keeps || adopts || !self.namesakes.is_empty(), LineMark::Keep, "leave as it is"),
            (!self.conflicts.is_empty(), LineMark::Conflict, "conflict"),
        ];
        let marks: Vec<_> = marks
            .into_iter()
            .filter(|(is_there, ..)| *is_there)
            .map(|(_, mark, what)| format!("{} {what}", mark.sign()))
            .collect();
        (!marks.is_empty()).then(|| format!("Marks: {}", marks.join(", ")))
    }

    fn is_pruned(&self, id: Id) -> bool {
        self.steps.iter().any(|step| step.action == Action::Remove && step.id == Some(id))
    }

    /// Counts what there is to do, and what there is not.
    fn counts(&self) -> Vec<String> {
        let count = |action| self.steps.iter().filter(|step| step.action == action).count();
        let skipped = count(Action::Skip);
        [
            (count(Action::Create), "to create"),
            (count(Action::Update), "to change"),
            (count(Action::Order), "to put in order"),
            (count(Action::Remove), "to remove"),
            (skipped, agreeing(skipped, "as it should be", "as they should be")),
            (self.conflicts.len(), "to be resolved by you first"),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect()
    }

    fn headline(&self) -> String {
        if self.is_empty() {
            return format!(
                "No changes: guild {} matches the template, {}, nothing to do.",
                self.guild,
                counted(self.steps.len(), "object")
            );
        }
        format!("Guild {}: {}.", self.guild, self.counts().join(", "))
    }
}

fn step_lines(step: &PlanStep) -> Vec<PlanLine> {
    let id = step.id.map_or_else(String::new, |id| format!(" ({id})"));
    let mut text = format!("{}{id}", step.target);
    if step.adopted {
        text.push_str(", adopted");
    }
    if let Some(drift) = step.drift {
        text.push_str(&format!(", {} by hand", drift.as_str()));
    }
    let mark = match step.action {
        Action::Create => LineMark::Add,
        Action::Update | Action::Order => LineMark::Change,
        Action::Remove => LineMark::Remove,
        Action::Skip if step.adopted => LineMark::Keep,
        Action::Skip => return Vec::new(),
    };
    let field = |change: &super::FieldChange| {
        let text = match &change.from {
            Some(from) if step.action == Action::Remove => format!("{}: {from}", change.field),
            Some(from) => format!("{}: {from} → {}", change.field, change.to),
            None => format!("{}: {}", change.field, change.to),
        };
        line(mark, 1, text)
    };
    let mut lines = vec![line(mark, 0, text)];
    lines.extend(step.changes.iter().map(field));
    lines
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines().iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

/// Formats a time in the unit that people would use.
fn format_time(ms: u64) -> String {
    match ms {
        0..120_000 => format!("{} s", ms.div_ceil(1_000).max(1)),
        120_000..7_200_000 => format!("{} min", ms.div_ceil(60_000)),
        _ => format!("{} h", ms.div_ceil(3_600_000)),
    }
}

impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let calls = counted(self.calls, "call");
        let time = format_time(self.time_ms);
        match self.routes_unknown {
            0 => writeln!(f, "{calls}, about {time}.")?,
            unknown => {
                let routes = counted(unknown, "route");
                writeln!(f, "{calls}, {time} or longer: the limits of {routes} are not known yet.")?;
            }
        }
        for ((verb, route), count) in &self.by_route {
            writeln!(f, "  {count:>4} {verb} {route}")?;
        }
        writeln!(
            f,
            "Room afterwards: {} of {ROLES_MAX} roles, {} of {CHANNELS_MAX} channels.",
            self.roles_left, self.channels_left
        )?;
        writeln!(f, "Role creates left in 48 hours: {} of {ROLE_CREATES_MAX}.", self.role_creates_left)?;
        if !self.renames_held.is_empty() {
            let count = self.renames_held.len();
            let channels = counted(count, "channel");
            let have = agreeing(count, "has", "have");
            writeln!(f, "{channels} had two changes of name or topic in ten minutes and {have} to wait.")?;
        }
        Ok(())
    }
}
