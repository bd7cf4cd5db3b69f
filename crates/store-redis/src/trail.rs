//! What ended and is not archived yet: a list of notes, one for each append that ended something, which the append's own
//! script writes. A note is the append, when the first of them ended, and the seqs: `17 1780000000000000 4711 4712`.

use redis::pipe;
use tidegate_core::id::Partition;
use tidegate_core::{Seq, Time};
use tidegate_store::log::{Lsn, Ownership};
use tidegate_store::trail::{Noted, Spent};
use tidegate_store::{Answer, Result, Trail};

use crate::scripts::{self, Call};
use crate::trouble::{undecided, unreadable};
use crate::{Redis, log, reply};

/// A note that was read.
#[derive(Debug, PartialEq, Eq)]
struct Step {
    lsn: Lsn,
    oldest: Time,
    seqs: Vec<Seq>,
}

impl Step {
    fn parse(note: &str) -> Result<Self> {
        let mut numbers = note.split(' ').map(str::parse::<u64>);
        let mut next = || numbers.next()?.ok();
        let (lsn, oldest) = (next(), next());
        let seqs = numbers.map(|seq| seq.map(Seq)).collect();
        match (lsn, oldest, seqs) {
            (Some(lsn), Some(oldest), Ok(seqs)) => {
                Ok(Self { lsn: Lsn(lsn), oldest: Time::from_micros(oldest), seqs })
            }
            _ => Err(unreadable("a note of what ended is damaged")),
        }
    }
}

impl Redis {
    async fn noted(&self, partition: Partition, most: usize) -> Result<Option<Noted>> {
        let mut ask = pipe();
        ask.cmd("HGET").arg(self.keys.head(partition)).arg("trail");
        ask.cmd("LRANGE").arg(self.keys.trail(partition)).arg(0).arg(most.max(1) - 1);
        let mut answers = self.asked(&ask).await?;
        let notes: Vec<String> = reply::parsed(answers.pop().unwrap_or_default())?;
        let waiting: Option<u64> = reply::parsed(answers.pop().unwrap_or_default())?;
        let mut noted: Option<Noted> = None;
        for note in &notes {
            let step = Step::parse(note)?;
            let noted = noted.get_or_insert_with(|| Noted {
                seqs: Vec::new(),
                upto: step.lsn,
                oldest: step.oldest,
                waiting: waiting.unwrap_or(0),
            });
            noted.seqs.extend(step.seqs);
            noted.upto = noted.upto.max(step.lsn);
            if noted.seqs.len() >= most {
                break;
            }
        }
        Ok(noted)
    }

    /// Says so when an earlier owner noted what ended and this one knows of no archive: what is on the trail is kept.
    pub(crate) async fn look_for_trail(&self, partition: Partition) {
        if self.notes_ends {
            return;
        }
        let asked = self.link.send(redis::cmd("LLEN").arg(self.keys.trail(partition))).await;
        let appends = asked.ok().and_then(|answer| reply::parsed::<u64>(answer).ok()).unwrap_or(0);
        if appends > 0 {
            let trail = self.keys.trail(partition);
            tracing::warn!(
                trail,
                appends,
                "what ended waits for an archive that this node knows nothing of, and is kept"
            );
        }
    }

    async fn tread(&self, owner: Ownership, upto: Lsn) -> Result<()> {
        let keys = [self.keys.head(owner.partition), self.keys.trail(owner.partition)];
        let call = Call::new(&scripts::TRODDEN, keys).with(owner.epoch.0).with(upto.0);
        let doing = format!("shorten the trail of partition {}", owner.partition);
        let answer = call.send(&self.link).await;
        let answer = answer.map_err(|failed| undecided(self.link.name(), &doing, failed))?;
        let (word, mut parts) = reply::said(answer)?;
        if word == "ok" { Ok(()) } else { Err(log::fenced(owner, &reply::at::<String>(&mut parts, 0)?)) }
    }
}

impl Trail for Redis {
    fn ended(&self, partition: Partition, most: usize) -> Answer<'_, Option<Noted>> {
        Box::pin(self.noted(partition, most))
    }

    fn trodden(&self, owner: Ownership, upto: Lsn) -> Answer<'_, ()> {
        Box::pin(self.tread(owner, upto))
    }

    fn spent(&self, partition: Partition, most: usize) -> Answer<'_, Option<Spent>> {
        Box::pin(self.noted_costs(partition, most))
    }

    fn booked(&self, owner: Ownership, upto: Lsn) -> Answer<'_, ()> {
        Box::pin(self.book(owner, upto))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_read_and_damaged_ones_refused() {
        let step = Step::parse("17 5 4711 4712").unwrap();
        let seqs = vec![Seq(4711), Seq(4712)];
        assert_eq!(step, Step { lsn: Lsn(17), oldest: Time::from_micros(5), seqs });
        for damaged in ["", "17", "17 5 x", "a 5 4711", "17 5 4711 "] {
            assert!(Step::parse(damaged).is_err(), "{damaged:?}");
        }
    }
}
