//! Snapshots: the parts of a large one are written next to the old one in small steps, then one
//! short step swaps them in; a small one is written in one step. Appends continue meanwhile.
//! Replaced data is removed afterwards; if that fails, the next snapshot does it.

use bytes::Bytes;
use tidegate_store::Result;
use tidegate_store::log::{Lsn, Ownership};

use crate::session::{RetrySafety, Statement};
use crate::{PostgresStore, checks, rows};

/// The bytes of parts that one step writes, or one part.
const STEP_LEN_MAX: usize = 1024 * 1024;
/// The rows that one step removes.
const TRIMMED_AT_ONCE: i32 = 1_000;

const PUT: &str = "SELECT verdict, number FROM put_snapshot($1, $2, $3, $4)";
const START: &str = "SELECT verdict, number FROM begin_snapshot($1, $2, $3)";
const ADD: &str = "SELECT verdict, number FROM add_parts($1, $2, $3, $4, $5)";
const FINISH: &str = "SELECT verdict, number FROM finish_snapshot($1, $2, $3, $4)";
const TRIM: &str = "SELECT trim_log($1, $2)";

impl PostgresStore {
    /// Replaces everything up to `upto` with a snapshot.
    pub(crate) async fn write_snapshot(&self, owner: Ownership, upto: Lsn, parts: Vec<Bytes>) -> Result<()> {
        checks::check_snapshot_parts(&parts)?;
        let (partition, epoch) = (i32::from(owner.partition), owner.epoch.0.cast_signed());
        let number = i64::try_from(upto.0).unwrap_or(i64::MAX);
        let steps = steps(&parts);
        if steps.len() < 2 {
            let parts: Vec<&[u8]> = parts.iter().map(|part| &**part).collect();
            self.step(owner, upto, PUT, |q| q.bind(partition).bind(epoch).bind(number).bind(parts.clone()))
                .await?;
        } else {
            let version =
                self.step(owner, upto, START, |q| q.bind(partition).bind(epoch).bind(number)).await?;
            for (first, step) in steps {
                let step: Vec<&[u8]> = step.iter().map(|part| &**part).collect();
                self.step(owner, upto, ADD, |q| {
                    q.bind(partition).bind(epoch).bind(version).bind(rows::count(first)).bind(step.clone())
                })
                .await?;
            }
            self.step(owner, upto, FINISH, |q| q.bind(partition).bind(epoch).bind(version).bind(number))
                .await?;
        }
        while let Ok(row) =
            self.sessions.row(RetrySafety::Harmless, TRIM, |q| q.bind(partition).bind(TRIMMED_AT_ONCE)).await
        {
            if self.sessions.column::<i64>(&row, 0)? < i64::from(TRIMMED_AT_ONCE) {
                break;
            }
        }
        Ok(())
    }

    async fn step<'q>(
        &self,
        owner: Ownership,
        upto: Lsn,
        sql: &'static str,
        bind: impl Fn(Statement<'q>) -> Statement<'q>,
    ) -> Result<i64> {
        let row = self.sessions.row(RetrySafety::Unsafe, sql, bind).await?;
        let number = self.sessions.column(&row, 1)?;
        match self.sessions.column(&row, 0)? {
            "ok" => Ok(number),
            refused => Err(checks::snapshot_refusal(owner, upto, refused, number)),
        }
    }
}

/// Splits the parts into runs of a bounded size, each with the index of its first part.
fn steps(parts: &[Bytes]) -> Vec<(usize, &[Bytes])> {
    let (mut found, mut first) = (Vec::new(), 0);
    while first < parts.len() {
        let mut len = 0;
        let more = parts[first..].iter().take_while(|part| {
            let fits = len == 0 || len + part.len() <= STEP_LEN_MAX;
            len += part.len();
            fits
        });
        let end = first + more.count().max(1);
        found.push((first, &parts[first..end]));
        first = end;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_bounded_and_cover_everything_once() {
        let lens = [0, 10, STEP_LEN_MAX, STEP_LEN_MAX * 3, 1, 1, STEP_LEN_MAX - 2, 1];
        let parts: Vec<Bytes> = lens.iter().map(|len| Bytes::from(vec![0; *len])).collect();
        let mut next = 0;
        for (first, step) in steps(&parts) {
            assert_eq!(first, next);
            next += step.len();
            assert!(step.len() == 1 || step.iter().map(Bytes::len).sum::<usize>() <= STEP_LEN_MAX + 1);
        }
        assert_eq!(next, parts.len());
        assert!(steps(&[]).is_empty());
    }
}
