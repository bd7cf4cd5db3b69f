//! The encoding of an append in a file: length, checksum, number, what was durable before it, then
//! the batch. One that does not check was torn and never acknowledged, unless a later one says that
//! it had been durable.

use std::sync::Arc;

use bytes::{Buf, BufMut, Bytes};
use tidegate_core::{EndState, Fault, FaultClass, Fence, OperationId, Seq, Time};
use tidegate_store::attempt::StoredAttempt;
use tidegate_store::codec;
use tidegate_store::costs::Cost;
use tidegate_store::log::{Batch, Lsn, StoredOperation, StoredResult};

use super::super::tail::PendingAppend;

/// Length, checksum, number, and the last append that was durable when it was written.
const HEAD_LEN: usize = 4 + 4 + 8 + 8;
/// No file holds more appends.
const NEAR: u64 = 1 << 32;
/// No append is longer; a damaged length cannot ask for more.
const BODY_LEN_MAX: usize = 1 << 30;

/// Encodes a batch; only its number and checksum are missing.
pub(in crate::embedded) fn encode(facts: &[u8], batch: &Batch) -> Vec<u8> {
    let payloads: usize = batch.operations.iter().map(|one| one.payload.len() + 128).sum();
    let mut out = Vec::with_capacity(HEAD_LEN + facts.len() + payloads + batch.results.len() * 96 + 64);
    out.put_bytes(0, HEAD_LEN);
    put_bytes(&mut out, facts);
    put_len(&mut out, batch.operations.len());
    for one in &batch.operations {
        out.put_u64_le(one.seq.0);
        out.put_u64_le(one.at.as_micros());
        put_bytes(&mut out, one.group.as_bytes());
        put_bytes(&mut out, one.kind.as_bytes());
        put_option(&mut out, one.key.as_deref().map(str::as_bytes));
        put_bytes(&mut out, &one.envelope);
        put_bytes(&mut out, &one.payload);
    }
    put_len(&mut out, batch.results.len());
    for one in &batch.results {
        out.put_u64_le(one.seq.0);
        out.put_u64_le(one.at.as_micros());
        out.put_u8(one.state as u8);
        out.put_u16_le(one.attempt);
        put_option(&mut out, one.fault.as_ref().map(|fault| fault.class.as_str().as_bytes()));
        let message = one.fault.as_ref().map(Fault::stored_message);
        put_option(&mut out, message.as_deref().map(str::as_bytes));
        put_bytes(&mut out, &one.body);
    }
    put_len(&mut out, batch.reopened.len());
    for seq in &batch.reopened {
        out.put_u64_le(seq.0);
    }
    let has_rates = batch.costs.iter().any(|cost| cost.restore_rate.is_some());
    if !batch.costs.is_empty() || !batch.attempts.is_empty() {
        put_costs(&mut out, &batch.costs);
    }
    if !batch.attempts.is_empty() || has_rates {
        put_attempts(&mut out, &batch.attempts);
    }
    if has_rates {
        for cost in &batch.costs {
            put_number(&mut out, cost.restore_rate);
        }
    }
    out
}

/// Encodes attempts, after the costs. Few appends have any; those of earlier versions had none. The
/// restore rates of the costs, if any is known, come last: earlier versions knew none.
fn put_attempts(out: &mut Vec<u8>, attempts: &[StoredAttempt]) {
    put_len(out, attempts.len());
    for one in attempts {
        out.put_u64_le(one.seq.0);
        out.put_u64_le(one.fence.0);
        put_bytes(out, &codec::encode_attempt(one));
    }
}

/// Encodes costs. Most appends have none, and end before them; so did all of earlier versions.
fn put_costs(out: &mut Vec<u8>, costs: &[Cost]) {
    put_len(out, costs.len());
    for one in costs {
        out.put_u64_le(one.at.as_micros());
        out.put_u64_le(one.operation.accepted_at_millis());
        out.put_u16_le(one.operation.partition());
        out.put_u64_le(one.operation.seq().0);
        out.put_u64_le(one.claim.0);
        out.put_u8(one.nth);
        put_bytes(out, one.limit.as_bytes());
        put_bytes(out, one.shape.as_bytes());
        out.put_u64_le(one.requested);
        put_number(out, one.actual);
    }
}

/// Sets the number of an encoded batch, and notes that everything up to `durable` is already on
/// disk.
pub(in crate::embedded) fn seal(frame: &mut [u8], lsn: Lsn, durable: Lsn) {
    let len = u32::try_from(frame.len() - HEAD_LEN).unwrap_or(u32::MAX);
    frame[..4].copy_from_slice(&len.to_le_bytes());
    frame[8..16].copy_from_slice(&lsn.0.to_le_bytes());
    frame[16..HEAD_LEN].copy_from_slice(&durable.0.to_le_bytes());
    let sum = crc32fast::hash(&frame[8..]);
    frame[4..8].copy_from_slice(&sum.to_le_bytes());
}

/// Decodes the first append in `bytes` and its length; `None` when it is incomplete.
pub(super) fn decode(bytes: &Bytes) -> Option<(PendingAppend, usize)> {
    let mut head = bytes.get(..HEAD_LEN)?;
    let len = head.get_u32_le() as usize;
    let sum = head.get_u32_le();
    let lsn = Lsn(head.get_u64_le());
    if len > BODY_LEN_MAX || crc32fast::hash(bytes.get(8..HEAD_LEN + len)?) != sum {
        return None;
    }
    let mut body = bytes.slice(HEAD_LEN..HEAD_LEN + len);
    let facts = take_bytes(&mut body)?;
    let batch = take_batch(&mut body)?;
    Some((PendingAppend { lsn, facts, batch }, HEAD_LEN + len))
}

/// The newest append anywhere in `bytes` that was written when `missing` had been durable: the
/// missing append had then been acknowledged, and is damaged.
pub(super) fn newest_after(bytes: &Bytes, missing: Lsn) -> Option<Lsn> {
    let heads = bytes.windows(HEAD_LEN).enumerate();
    let suspects = heads.filter(|(_, head)| {
        let (_, mut rest) = head.split_at(8);
        let (lsn, durable) = (rest.get_u64_le(), rest.get_u64_le());
        durable >= missing.0 && durable < lsn && lsn - missing.0 < NEAR
    });
    suspects.filter_map(|(at, _)| decode(&bytes.slice(at..)).map(|(found, _)| found.lsn)).max()
}

/// The length of the append at the start of `bytes` by its head, if the head is that of this
/// append.
pub(super) fn len_of(bytes: &Bytes, lsn: Lsn) -> Option<usize> {
    let mut head = bytes.get(..HEAD_LEN)?;
    let len = HEAD_LEN + head.get_u32_le() as usize;
    head.advance(4);
    (head.get_u64_le() == lsn.0 && len <= bytes.len()).then_some(len)
}

fn take_batch(body: &mut Bytes) -> Option<Batch> {
    let operations = (0..body.try_get_u32_le().ok()?)
        .map(|_| take_operation(body).map(Arc::new))
        .collect::<Option<_>>()?;
    let results = (0..body.try_get_u32_le().ok()?).map(|_| take_result(body)).collect::<Option<_>>()?;
    let reopened = (0..body.try_get_u32_le().ok()?)
        .map(|_| body.try_get_u64_le().ok().map(Seq))
        .collect::<Option<_>>()?;
    let costs = if body.is_empty() { 0 } else { body.try_get_u32_le().ok()? };
    let mut costs = (0..costs).map(|_| take_cost(body)).collect::<Option<Vec<_>>>()?;
    let attempts = if body.is_empty() { 0 } else { body.try_get_u32_le().ok()? };
    let attempts = (0..attempts).map(|_| take_attempt(body)).collect::<Option<_>>()?;
    if !body.is_empty() {
        for cost in &mut costs {
            cost.restore_rate = take_number(body)?;
        }
    }
    Some(Batch { operations, results, reopened, costs, attempts, ..Batch::default() })
}

fn take_attempt(body: &mut Bytes) -> Option<StoredAttempt> {
    let seq = Seq(body.try_get_u64_le().ok()?);
    let fence = Fence(body.try_get_u64_le().ok()?);
    codec::decode_attempt(seq, fence, &take_bytes(body)?).ok()
}

fn take_cost(body: &mut Bytes) -> Option<Cost> {
    let at = Time::from_micros(body.try_get_u64_le().ok()?);
    let accepted = Time::from_millis(body.try_get_u64_le().ok()?);
    let partition = body.try_get_u16_le().ok()?;
    Some(Cost {
        at,
        operation: OperationId::new(accepted, partition, Seq(body.try_get_u64_le().ok()?)),
        claim: Fence(body.try_get_u64_le().ok()?),
        nth: body.try_get_u8().ok()?,
        limit: take_text(body)?,
        shape: take_text(body)?,
        requested: body.try_get_u64_le().ok()?,
        actual: take_number(body)?,
        restore_rate: None,
    })
}

fn take_operation(body: &mut Bytes) -> Option<StoredOperation> {
    Some(StoredOperation {
        seq: Seq(body.try_get_u64_le().ok()?),
        at: Time::from_micros(body.try_get_u64_le().ok()?),
        group: take_text(body)?,
        kind: take_text(body)?,
        key: take_option(body, take_text)?,
        envelope: take_bytes(body)?,
        payload: take_bytes(body)?,
    })
}

fn take_result(body: &mut Bytes) -> Option<StoredResult> {
    let seq = Seq(body.try_get_u64_le().ok()?);
    let at = Time::from_micros(body.try_get_u64_le().ok()?);
    let state = match body.try_get_u8().ok()? {
        0 => EndState::Succeeded,
        1 => EndState::Failed,
        2 => EndState::Canceled,
        _ => return None,
    };
    let attempt = body.try_get_u16_le().ok()?;
    let class = take_option(body, take_text)?;
    let message = take_option(body, take_text)?;
    let fault = match (class, message) {
        (Some(class), Some(message)) => {
            Some(Fault::from_stored(FaultClass::parse(&class)?, message.to_string()))
        }
        _ => None,
    };
    Some(StoredResult { seq, at, state, attempt, fault, body: take_bytes(body)? })
}

fn put_len(out: &mut Vec<u8>, len: usize) {
    out.put_u32_le(u32::try_from(len).unwrap_or(u32::MAX));
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_len(out, bytes.len());
    out.put_slice(bytes);
}

fn put_option(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    out.put_u8(u8::from(bytes.is_some()));
    if let Some(bytes) = bytes {
        put_bytes(out, bytes);
    }
}

fn put_number(out: &mut Vec<u8>, number: Option<u64>) {
    put_option(out, number.map(u64::to_le_bytes).as_ref().map(|number| &number[..]));
}

fn take_number(body: &mut Bytes) -> Option<Option<u64>> {
    take_option(body, |body| take_bytes(body)?.try_get_u64_le().ok())
}

fn take_bytes(body: &mut Bytes) -> Option<Bytes> {
    let len = body.try_get_u32_le().ok()? as usize;
    (len <= body.len()).then(|| body.split_to(len))
}

fn take_text(body: &mut Bytes) -> Option<Arc<str>> {
    Some(std::str::from_utf8(&take_bytes(body)?).ok()?.into())
}

fn take_option<T>(body: &mut Bytes, take: impl Fn(&mut Bytes) -> Option<T>) -> Option<Option<T>> {
    match body.try_get_u8().ok()? {
        0 => Some(None),
        _ => take(body).map(Some),
    }
}

#[cfg(test)]
mod tests {
    use tidegate_store::attempt::AttemptState;

    use super::*;

    fn batch() -> Batch {
        let fault = Fault::new(FaultClass::Transient, "502").in_doubt();
        Batch {
            operations: vec![Arc::new(StoredOperation {
                seq: Seq(7),
                at: Time::from_millis(9),
                group: "g".into(),
                kind: "http".into(),
                key: Some("k".into()),
                envelope: Bytes::new(),
                payload: Bytes::from_static(b"payload"),
            })],
            results: vec![StoredResult {
                seq: Seq(3),
                at: Time::from_millis(11),
                state: EndState::Failed,
                attempt: 2,
                fault: Some(fault),
                body: Bytes::from_static(b"{}"),
            }],
            reopened: vec![Seq(1)],
            costs: vec![cost(Some(7)), cost(None)],
            attempts: vec![attempt()],
            ..Batch::default()
        }
    }

    fn attempt() -> StoredAttempt {
        StoredAttempt {
            seq: Seq(7),
            fence: Fence(1 << 40),
            number: 1,
            at: Time::from_millis(9),
            ended_at: None,
            state: AttemptState::Awaiting,
            external_id: Some("job-1".into()),
            cost: None,
            memo: Bytes::from_static(b"memo"),
        }
    }

    fn cost(actual: Option<u64>) -> Cost {
        Cost {
            at: Time::from_millis(12),
            operation: OperationId::new(Time::from_millis(9), 5, Seq(7)),
            claim: Fence(1 << 40),
            nth: 1,
            limit: "acme/points".into(),
            shape: "Größe#1".into(),
            requested: 9,
            actual,
            restore_rate: actual.map(|actual| actual * 10),
        }
    }

    /// LIM-10: an append of a version without costs is read as it was.
    #[test]
    fn lim_10_an_append_of_before_there_were_costs_is_read() {
        let before = Batch { costs: Vec::new(), attempts: Vec::new(), ..batch() };
        let mut frame = encode(b"facts", &before);
        let mut with_costs = encode(b"facts", &batch());
        assert!(with_costs.starts_with(&frame[..]), "nothing but what comes after it is new");
        seal(&mut frame, Lsn(1), Lsn(0));
        seal(&mut with_costs, Lsn(1), Lsn(0));
        let read = |frame: Vec<u8>| decode(&Bytes::from(frame)).map(|(pending, _)| pending.batch);
        assert_eq!((read(frame), read(with_costs)), (Some(before), Some(batch())));
    }

    /// LIM-10: an append of a version without restore rates is read as it was.
    #[test]
    fn lim_10_an_append_of_before_there_were_restore_rates_is_read() {
        for attempts in [Vec::new(), vec![attempt()]] {
            let unknown = Cost { restore_rate: None, ..cost(Some(7)) };
            let before = Batch { costs: vec![unknown, cost(None)], attempts, ..batch() };
            let now = Batch { costs: batch().costs, ..before.clone() };
            let (mut older, mut newer) = (encode(b"facts", &before), encode(b"facts", &now));
            assert!(newer.starts_with(&older[..]), "nothing but what comes after it is new");
            seal(&mut older, Lsn(1), Lsn(0));
            seal(&mut newer, Lsn(1), Lsn(0));
            let read = |frame: Vec<u8>| decode(&Bytes::from(frame)).map(|(pending, _)| pending.batch);
            assert_eq!((read(older), read(newer)), (Some(before), Some(now)));
        }
    }

    /// OPS-8: an append of a version without attempts is read as it was, and one may have no costs.
    #[test]
    fn ops_8_an_append_of_before_there_were_attempts_is_read() {
        for given in [Batch { attempts: Vec::new(), ..batch() }, Batch { costs: Vec::new(), ..batch() }] {
            let mut frame = encode(b"facts", &given);
            seal(&mut frame, Lsn(1), Lsn(0));
            assert_eq!(decode(&Bytes::from(frame)).map(|(pending, _)| pending.batch), Some(given));
        }
    }

    #[test]
    fn an_append_reads_back_and_every_torn_or_changed_one_is_refused() {
        let mut frame = encode(b"facts", &batch());
        seal(&mut frame, Lsn(42), Lsn(41));
        let whole = Bytes::from(frame.clone());
        let facts = Bytes::from_static(b"facts");
        let pending = PendingAppend { lsn: Lsn(42), facts, batch: batch() };
        assert_eq!(decode(&whole), Some((pending, whole.len())));
        for cut in 0..frame.len() {
            assert_eq!(decode(&whole.slice(..cut)), None, "cut at {cut}");
        }
        for at in 0..frame.len() {
            let mut changed = frame.clone();
            changed[at] ^= 0x40;
            assert_eq!(decode(&Bytes::from(changed)), None, "changed at {at}");
        }
        assert_eq!(decode(&Bytes::from(vec![0; 64])), None, "zeroes are not an append");
    }

    /// What follows an append that does not check tells a torn write from damage.
    #[test]
    fn a_later_append_knows_what_had_been_durable() {
        let frame = |lsn, durable| {
            let mut frame = encode(b"facts", &batch());
            seal(&mut frame, Lsn(lsn), Lsn(durable));
            frame
        };
        let after = |rest: Vec<u8>| newest_after(&Bytes::from([vec![0xff; 33], rest].concat()), Lsn(7));
        assert_eq!(after(frame(8, 7)), Some(Lsn(8)), "it was durable before the next one was written");
        assert_eq!(after(frame(8, 6)), None, "both were written at once: torn");
        assert_eq!(after(frame(6, 5)), None, "left over from before");
        assert_eq!(after(vec![0; 4_096]), None, "never used");
        let mut torn = frame(8, 7);
        torn.pop();
        assert_eq!(after(torn), None, "the later one does not check either");
    }
}
