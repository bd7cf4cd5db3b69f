//! An operation or a result as one field of a batch: a readable line of JSON, then opaque bytes.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tidegate_core::{EndState, Fault, FaultClass, Fence, Seq, State, Time};
use tidegate_store::attempt::StoredAttempt;
use tidegate_store::log::{StoredOperation, StoredResult};
use tidegate_store::{Result, codec};

use crate::errors::unreadable;

/// The line of an operation. The length of the envelope comes first: a script reads it there.
#[derive(Deserialize)]
struct OperationLine<'a> {
    envelope: usize,
    at: u64,
    #[serde(borrow)]
    group: std::borrow::Cow<'a, str>,
    #[serde(borrow)]
    kind: std::borrow::Cow<'a, str>,
    #[serde(borrow)]
    key: Option<std::borrow::Cow<'a, str>>,
}

/// Marks the field with the end of an attempt.
const END_OF_ATTEMPT: &str = ":end";

/// The line of a result.
#[derive(Deserialize)]
struct ResultLine<'a> {
    at: u64,
    #[serde(borrow)]
    state: std::borrow::Cow<'a, str>,
    attempt: u16,
    fault: Option<FaultLine>,
}

#[derive(Serialize, Deserialize)]
struct FaultLine {
    class: String,
    message: String,
}

/// Writes the field of an operation.
pub(crate) fn encode_operation(operation: &StoredOperation, field: &mut Vec<u8>) -> Result<()> {
    let StoredOperation { at, group, kind, key, envelope, payload, .. } = operation;
    field.extend_from_slice(b"{\"envelope\":");
    push_number(field, envelope.len() as u64);
    field.extend_from_slice(b",\"at\":");
    push_number(field, at.as_micros());
    field.extend_from_slice(b",\"group\":");
    push_json(field, &**group)?;
    field.extend_from_slice(b",\"kind\":");
    push_json(field, &**kind)?;
    field.extend_from_slice(b",\"key\":");
    push_json(field, &key.as_deref())?;
    field.extend_from_slice(b"}\n");
    field.extend_from_slice(envelope);
    field.extend_from_slice(payload);
    Ok(())
}

/// Writes the field of a result.
pub(crate) fn encode_result(result: &StoredResult, field: &mut Vec<u8>) -> Result<()> {
    let StoredResult { at, state, attempt, fault, body, .. } = result;
    field.extend_from_slice(b"{\"at\":");
    push_number(field, at.as_micros());
    field.extend_from_slice(b",\"state\":\"");
    field.extend_from_slice(State::from(*state).as_str().as_bytes());
    field.extend_from_slice(b"\",\"attempt\":");
    push_number(field, u64::from(*attempt));
    field.extend_from_slice(b",\"fault\":");
    let fault = fault.as_ref().map(|fault| FaultLine {
        class: fault.class.as_str().into(),
        message: fault.stored_message().into_owned(),
    });
    push_json(field, &fault)?;
    field.extend_from_slice(b"}\n");
    field.extend_from_slice(body);
    Ok(())
}

/// The note of a result next to the append that holds it: when and how it ended.
pub(crate) fn result_note(result: &StoredResult) -> Vec<u8> {
    let mut note = Vec::with_capacity(32);
    note.push(b' ');
    push_number(&mut note, result.at.as_micros());
    note.push(b' ');
    note.extend_from_slice(State::from(result.state).as_str().as_bytes());
    note
}

/// The note for an archive next to the append: when the first of these ended, and which they are.
pub(crate) fn archive_note(results: &[StoredResult]) -> String {
    let oldest = results.iter().map(|result| result.at).min().unwrap_or_default();
    let mut steps = format!(" {}", oldest.as_micros());
    for result in results {
        steps.push(' ');
        steps.push_str(&result.seq.0.to_string());
    }
    steps
}

/// A note, with the number of the append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) lsn: u64,
    pub(crate) at: Time,
    pub(crate) ended: EndState,
}

impl Note {
    pub(crate) fn parse(note: &str) -> Result<Self> {
        let mut words = note.split(' ');
        let mut next = || words.next();
        let found = (|| {
            let (lsn, at) = (next()?.parse().ok()?, next()?.parse().ok()?);
            Some(Self { lsn, at: Time::from_micros(at), ended: EndState::parse(next()?)? })
        })();
        found.ok_or_else(|| unreadable("a note of a result is damaged"))
    }
}

/// Decodes the operation in a field. An outline has no payload.
pub(crate) fn decode_operation(seq: Seq, kept: &Bytes) -> Result<StoredOperation> {
    let (line, rest) = split(kept).ok_or_else(|| damaged("operation", seq))?;
    let line: OperationLine<'_> = read(line, "operation", seq)?;
    if line.envelope > rest.len() {
        return Err(damaged("operation", seq));
    }
    Ok(StoredOperation {
        seq,
        at: Time::from_micros(line.at),
        group: Arc::from(&*line.group),
        kind: Arc::from(&*line.kind),
        key: line.key.as_deref().map(Arc::from),
        envelope: rest.slice(..line.envelope),
        payload: rest.slice(line.envelope..),
    })
}

/// Decodes the result in a field. An outline has no body.
pub(crate) fn decode_result(seq: Seq, kept: &Bytes) -> Result<StoredResult> {
    let (line, body) = split(kept).ok_or_else(|| damaged("result", seq))?;
    let line: ResultLine<'_> = read(line, "result", seq)?;
    let fault = match line.fault {
        Some(FaultLine { class, message }) => {
            let class = FaultClass::parse(&class).ok_or_else(|| damaged("result", seq))?;
            Some(Fault::from_stored(class, message))
        }
        None => None,
    };
    let state = EndState::parse(&line.state).ok_or_else(|| damaged("result", seq))?;
    Ok(StoredResult { seq, at: Time::from_micros(line.at), state, attempt: line.attempt, fault, body })
}

/// The field of an attempt's row: its fence, and for its end a mark, because the end is merged when
/// it is read.
pub(crate) fn attempt_field(attempt: &StoredAttempt) -> String {
    let end = if attempt.ended_at.is_some() { END_OF_ATTEMPT } else { "" };
    format!("{}{end}", attempt.fence.0)
}

/// Decodes the attempts of an operation, by fence.
pub(crate) fn decode_attempts(seq: Seq, rows: &BTreeMap<String, Vec<u8>>) -> Result<Vec<StoredAttempt>> {
    let mut found: BTreeMap<Fence, StoredAttempt> = BTreeMap::new();
    // The end of an attempt sorts after its first row.
    for (field, row) in rows {
        let fence = field.strip_suffix(END_OF_ATTEMPT).unwrap_or(field).parse();
        let fence = Fence(fence.map_err(|_| damaged("an attempt of operation", seq))?);
        let row = codec::decode_attempt(seq, fence, row)?;
        let merged = match found.remove(&fence) {
            Some(earlier) => earlier.merge(row),
            None => row,
        };
        found.insert(fence, merged);
    }
    Ok(found.into_values().collect())
}

/// The text that the line of an operation contains when its group is this one. It may also be there
/// for another reason.
pub(crate) fn mark_of_group(group: &str) -> Result<String> {
    Ok(format!("\"group\":{}", as_json(&group)?))
}

/// The text that the line of an operation contains when its kind is this one.
pub(crate) fn mark_of_kind(kind: &str) -> Result<String> {
    Ok(format!("\"kind\":{}", as_json(&kind)?))
}

fn as_json<T: Serialize>(what: &T) -> Result<String> {
    serde_json::to_string(what).map_err(|cause| unreadable("a line cannot be written").with_source(cause))
}

fn push_json<T: Serialize + ?Sized>(line: &mut Vec<u8>, what: &T) -> Result<()> {
    serde_json::to_writer(line, what)
        .map_err(|cause| unreadable("a line cannot be written").with_source(cause))
}

fn push_number(line: &mut Vec<u8>, number: u64) {
    line.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

fn split(kept: &Bytes) -> Option<(&[u8], Bytes)> {
    let stop = kept.iter().position(|byte| *byte == b'\n')?;
    Some((&kept[..stop], kept.slice(stop + 1..)))
}

fn read<'a, T: Deserialize<'a>>(line: &'a [u8], what: &str, seq: Seq) -> Result<T> {
    serde_json::from_slice(line).map_err(|cause| damaged(what, seq).with_source(cause))
}

fn damaged(what: &str, seq: Seq) -> tidegate_store::Error {
    unreadable(format!("{what} {} is damaged", seq.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> Bytes {
        let mut field = Vec::new();
        write(&mut field).unwrap();
        field.into()
    }

    #[test]
    fn lines_read_back_and_damaged_ones_are_refused() {
        let odd = StoredOperation {
            seq: Seq(7),
            at: Time::from_millis(5),
            group: "it's \"quoted\"\n".into(),
            kind: "http".into(),
            key: Some("\"envelope\":9".into()),
            envelope: Bytes::from_static(b"{\"envelope\":3}\n"),
            payload: Bytes::from_static(b"\n\n\0"),
        };
        let kept = written(|field| encode_operation(&odd, field));
        assert!(kept.starts_with(b"{\"envelope\":15,"), "a script reads it there");
        assert_eq!(decode_operation(Seq(7), &kept).unwrap(), odd);
        for cut in 0..kept.len() - 3 {
            assert!(decode_operation(Seq(7), &kept.slice(..cut)).is_err(), "cut at {cut}");
        }
        let ended = StoredResult {
            seq: Seq(7),
            at: Time::from_millis(6),
            state: EndState::Canceled,
            attempt: 3,
            fault: Some(Fault::new(FaultClass::Conflict, "naïve — ‘quoted’").in_doubt()),
            body: Bytes::from_static(b"\nbody"),
        };
        assert_eq!(decode_result(Seq(7), &written(|field| encode_result(&ended, field))).unwrap(), ended);
        let noted = Note::parse(&format!("12{}", result_note(&ended).escape_ascii())).unwrap();
        assert_eq!(noted, Note { lsn: 12, at: ended.at, ended: EndState::Canceled });
        assert!(Note::parse("12 5").is_err() && Note::parse("").is_err());
    }
}
