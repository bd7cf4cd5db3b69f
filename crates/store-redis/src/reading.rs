//! Operations by seq. The batch that holds one is the last that starts at or before it; where its result is has been
//! noted. Two trips, whatever the number.

use redis::{Value, pipe};
use tidegate_core::Seq;
use tidegate_core::id::Partition;
use tidegate_store::Result;
use tidegate_store::log::Stored;

use crate::checks::within_scores;
use crate::entry::{self, Note};
use crate::{Redis, reply};

/// Operations that are asked for at once.
const PAGE: usize = 256;

/// Where an operation and its result are.
#[derive(Clone, Debug, Default)]
struct Place {
    lsn: Option<String>,
    ended: Option<u64>,
}

impl Redis {
    pub(crate) async fn read_all(&self, partition: Partition, seqs: &[Seq]) -> Result<Vec<Option<Stored>>> {
        let mut found = Vec::with_capacity(seqs.len());
        for page in seqs.chunks(PAGE) {
            let places = self.places(partition, page).await?;
            found.extend(self.stored(partition, page, &places).await?);
        }
        Ok(found)
    }

    async fn places(&self, partition: Partition, seqs: &[Seq]) -> Result<Vec<Place>> {
        let ops = self.keys.ops(partition);
        let mut ask = pipe();
        for seq in seqs {
            let newest = within_scores(*seq).0;
            ask.cmd("ZREVRANGEBYSCORE").arg(&ops).arg(newest).arg("-inf").arg("LIMIT").arg(0).arg(1);
        }
        ask.cmd("HMGET").arg(self.keys.res(partition));
        for seq in seqs {
            ask.arg(seq.0);
        }
        let mut answers = self.asked(&ask).await?;
        let notes: Vec<Option<String>> = reply::parsed(answers.pop().unwrap_or_default())?;
        let mut places = Vec::with_capacity(seqs.len());
        for (answer, note) in answers.into_iter().zip(notes) {
            let lsn = reply::parsed::<Vec<String>>(answer)?.pop();
            let ended = note.as_deref().map(Note::parse).transpose()?.map(|note| note.lsn);
            places.push(Place { lsn, ended });
        }
        Ok(places)
    }

    async fn stored(
        &self,
        partition: Partition,
        seqs: &[Seq],
        places: &[Place],
    ) -> Result<Vec<Option<Stored>>> {
        let batches = self.keys.batches(partition);
        let mut ask = pipe();
        for (seq, place) in seqs.iter().zip(places) {
            let lsn = place.lsn.as_deref().unwrap_or_default();
            ask.cmd("HGET").arg(format!("{batches}{lsn}")).arg(format!("o:{}", seq.0));
            let ended = place.ended.map(|lsn| lsn.to_string()).unwrap_or_default();
            ask.cmd("HGET").arg(format!("{batches}{ended}")).arg(format!("r:{}", seq.0));
        }
        if ask.is_empty() {
            return Ok(Vec::new());
        }
        let mut answers = self.asked(&ask).await?.into_iter();
        let mut next = || reply::bytes(answers.next().unwrap_or(Value::Nil));
        let mut found = Vec::with_capacity(seqs.len());
        for seq in seqs {
            let (operation, result) = (next()?, next()?);
            let operation = operation.map(|kept| entry::operation(*seq, &kept)).transpose()?;
            let result = result.map(|kept| entry::result(*seq, &kept)).transpose()?;
            found.push(operation.map(|operation| Stored { operation, result }));
        }
        Ok(found)
    }
}
