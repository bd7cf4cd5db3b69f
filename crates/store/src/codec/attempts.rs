//! Encodes an attempt as bytes, for backends that keep it as a whole: a version, then its fields in
//! order. The format is frozen.

use bytes::Bytes;
use tidegate_core::{Fence, Seq};

use super::wire::{Input, Problem, Wire};
use super::{Error, Result, StoreErrorKind};
use crate::attempt::{AttemptState, StoredAttempt};

/// The version that is written, and the newest that can be read.
const VERSION: u8 = 1;

/// Encodes an attempt, without the claim that it belongs to.
#[must_use]
pub fn encode_attempt(attempt: &StoredAttempt) -> Bytes {
    let StoredAttempt { number, at, ended_at, state, external_id, cost, memo, .. } = attempt;
    let mut out = vec![VERSION];
    number.put(&mut out);
    at.put(&mut out);
    ended_at.put(&mut out);
    out.push(tag(*state));
    external_id.put(&mut out);
    cost.put(&mut out);
    memo.len().put(&mut out);
    out.extend_from_slice(memo);
    out.into()
}

/// Decodes an attempt of this claim.
///
/// # Errors
/// `Unreadable` when the bytes are damaged, truncated, or of a newer version.
pub fn decode_attempt(seq: Seq, fence: Fence, bytes: &[u8]) -> Result<StoredAttempt> {
    let mut input = Input::new(bytes);
    let found = read(seq, fence, &mut input).ok().filter(|_| input.left() == 0);
    found.ok_or_else(|| {
        let message = format!("attempt {} of operation {} is damaged, or of a newer version", fence.0, seq.0);
        Error::new(StoreErrorKind::Unreadable, message)
    })
}

fn read(seq: Seq, fence: Fence, input: &mut Input<'_>) -> std::result::Result<StoredAttempt, Problem> {
    if u8::get(input)? != VERSION {
        return Err(Problem::Tag);
    }
    let (number, at, ended_at) = (Wire::get(input)?, Wire::get(input)?, Wire::get(input)?);
    let word = u8::get(input)?;
    let state = AttemptState::ALL.into_iter().find(|state| tag(*state) == word).ok_or(Problem::Tag)?;
    let (external_id, cost) = (Wire::get(input)?, Wire::get(input)?);
    let memo = Vec::<u8>::get(input)?.into();
    Ok(StoredAttempt { seq, fence, number, at, ended_at, state, external_id, cost, memo })
}

const fn tag(state: AttemptState) -> u8 {
    match state {
        AttemptState::Awaiting => 1,
        AttemptState::Succeeded => 2,
        AttemptState::Failed => 3,
        AttemptState::Retried => 4,
        AttemptState::Canceled => 5,
        AttemptState::Unknown => 6,
    }
}

#[cfg(test)]
mod tests {
    use tidegate_core::Time;
    use tidegate_core::fingerprint::hex;

    use super::*;

    fn attempt() -> StoredAttempt {
        StoredAttempt {
            seq: Seq(7),
            fence: Fence(9),
            number: 2,
            at: Time::from_micros(300),
            ended_at: Some(Time::from_micros(5)),
            state: AttemptState::Retried,
            external_id: Some("job-é".into()),
            cost: Some(4),
            memo: Bytes::from_static(b"\0\xff"),
        }
    }

    /// OPS-8: every later version reads what an earlier one wrote, and nothing else.
    #[test]
    fn ops_8_the_format_of_attempts_is_frozen() {
        let written = encode_attempt(&attempt());
        assert_eq!(hex(&written), "0102ac0201050401066a6f622dc3a901040200ff");
        assert_eq!(decode_attempt(Seq(7), Fence(9), &written).expect("it reads back"), attempt());
        for cut in 0..written.len() {
            assert!(decode_attempt(Seq(7), Fence(9), &written[..cut]).is_err(), "cut at {cut}");
        }
        let bare = StoredAttempt { ended_at: None, external_id: None, cost: None, ..attempt() };
        for state in AttemptState::ALL {
            let bare = StoredAttempt { state, ..bare.clone() };
            let read = decode_attempt(Seq(7), Fence(9), &encode_attempt(&bare)).expect("it reads back");
            assert_eq!((read, AttemptState::parse(state.as_str())), (bare, Some(state)));
        }
    }
}
