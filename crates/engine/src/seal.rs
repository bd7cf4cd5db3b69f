//! The checksum of a stored operation, which is the last field of its envelope. It covers all that
//! a call is made from, so a request that a store damaged is noticed before it is sent or shown, on
//! every store. It does not keep out someone who may write to the store. It is short, because a
//! store on disk writes it three times. An operation that an earlier version accepted has none, or
//! a longer one in hexadecimal.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use bytes::Bytes;
use tidegate_core::fingerprint::{Fingerprint, hex, hex_digits};
use tidegate_store::log::StoredOperation;
use tidegate_store::{Error, StoreErrorKind};
use xxhash_rust::xxh3::xxh3_128;

/// What precedes the checksum, and what follows it.
const OPEN: &[u8] = b"\"xxh3\":\"";
const CLOSE: &[u8] = b"\"}";
/// What precedes a checksum that is a SHA-256.
const OPEN_SHA256: &[u8] = b"\"check\":\"";
/// The fields of the envelopes that were written without a checksum.
const OLDER_FIELDS: [&str; 9] = [
    "cost",
    "deadline_at",
    "deployment_id",
    "max_attempts",
    "on_failure",
    "on_unknown",
    "priority",
    "request_id",
    "upstream",
];
/// The length of the length that precedes a part.
const LEN_LEN: usize = size_of::<u64>();
/// The length up to which the parts are put together without an allocation.
const SHORT_LEN: usize = 256;
/// The bytes of a checksum: the first half of an XXH3 of 128 bits.
const SUM_BYTES: usize = 8;
/// The length of a checksum in base64, and of an earlier one in hexadecimal.
const SUM_LEN: usize = 11;
const HEX_LEN: usize = 32;

/// What a checksum covers besides the envelope.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SealedContent<'a> {
    pub group: &'a str,
    pub kind: &'a str,
    pub key: Option<&'a str>,
    pub payload: &'a [u8],
}

/// Adds the checksum to an encoded envelope: an object in JSON, or nothing.
pub(crate) fn seal(envelope: &[u8], content: SealedContent<'_>) -> Bytes {
    let (fields, next): (_, &[u8]) = match envelope.strip_suffix(b"}") {
        Some(fields) if fields.len() > 1 => (fields, b","),
        _ => (&b"{"[..], b""),
    };
    // Exactly: a buffer that is full becomes `Bytes` as it is.
    let len = fields.len() + next.len() + OPEN.len() + SUM_LEN + CLOSE.len();
    let mut sealed = Vec::with_capacity(len);
    sealed.extend_from_slice(fields);
    sealed.extend_from_slice(next);
    let sum = encoded(xxh3(&sealed, content));
    sealed.extend_from_slice(OPEN);
    sealed.extend_from_slice(&sum);
    sealed.extend_from_slice(CLOSE);
    sealed.into()
}

/// Checks that a stored operation is what was accepted.
///
/// # Errors
/// `Unreadable` when it is not.
pub(crate) fn check(operation: &StoredOperation) -> Result<(), Error> {
    let StoredOperation { seq, group, kind, key, envelope, payload, .. } = operation;
    let content = SealedContent { group, kind, key: key.as_deref(), payload };
    let is_intact = if let Some((fields, found)) = split(envelope, OPEN, SUM_LEN) {
        encoded(xxh3(fields, content)) == found
    } else if let Some((fields, found)) = split(envelope, OPEN, HEX_LEN) {
        hex_digits(xxh3(fields, content)) == found
    } else if let Some((fields, found)) = split(envelope, OPEN_SHA256, HEX_LEN) {
        sha256(fields, content).as_bytes() == found
    } else {
        was_never_sealed(envelope)
    };
    if is_intact {
        return Ok(());
    }
    let message = format!("operation {} is damaged: its request is not what was accepted", seq.0);
    Err(Error::new(StoreErrorKind::Unreadable, message))
}

/// Splits an envelope into what precedes the checksum of a kind, and the checksum.
fn split<'a>(envelope: &'a [u8], open: &[u8], sum_len: usize) -> Option<(&'a [u8], &'a [u8])> {
    let rest = envelope.strip_suffix(CLOSE)?;
    let (rest, found) = rest.split_at_checked(rest.len().checked_sub(sum_len)?)?;
    Some((rest.strip_suffix(open)?, found))
}

/// Whether an envelope without a checksum at its end is one that an earlier version wrote.
fn was_never_sealed(envelope: &[u8]) -> bool {
    type Fields = serde_json::Map<String, serde_json::Value>;
    let is_older = |name: &String| OLDER_FIELDS.contains(&name.as_str());
    envelope.is_empty()
        || serde_json::from_slice::<Fields>(envelope).is_ok_and(|fields| fields.keys().all(is_older))
}

/// Hashes the payload, which may be long, where it is; and the hash with the other parts, each
/// prefixed with its length, so that no byte can change sides.
fn xxh3(fields: &[u8], SealedContent { group, kind, key, payload }: SealedContent<'_>) -> [u8; 16] {
    let key = key.map(str::as_bytes);
    let parts = [Some(fields), Some(group.as_bytes()), Some(kind.as_bytes()), key];
    let len: usize = parts.iter().map(|part| part.map_or(0, <[u8]>::len) + LEN_LEN).sum();
    let len = len + size_of::<u128>();
    let (mut short, mut long) = ([0; SHORT_LEN], Vec::new());
    let whole = match short.get_mut(..len) {
        Some(whole) => whole,
        None => {
            long.resize(len, 0);
            &mut long[..]
        }
    };
    let mut rest = &mut *whole;
    for part in parts {
        rest = write(rest, &part.map_or(u64::MAX, |part| part.len() as u64).to_be_bytes());
        rest = write(rest, part.unwrap_or_default());
    }
    write(rest, &xxh3_128(payload).to_be_bytes());
    xxh3_128(whole).to_be_bytes()
}

/// The checksum as it is stored.
fn encoded(sum: [u8; 16]) -> [u8; SUM_LEN] {
    let mut text = [0; SUM_LEN];
    // It fits: 8 bytes have 11 digits.
    let _ = BASE64_URL_SAFE_NO_PAD.encode_slice(&sum[..SUM_BYTES], &mut text);
    text
}

/// Writes a part to the beginning of a buffer; returns the rest.
fn write<'a>(buffer: &'a mut [u8], part: &[u8]) -> &'a mut [u8] {
    let (now, rest) = buffer.split_at_mut(part.len());
    now.copy_from_slice(part);
    rest
}

fn sha256(fields: &[u8], SealedContent { group, kind, key, payload }: SealedContent<'_>) -> String {
    let sum = Fingerprint::of("stored operation").part(fields).part(group.as_bytes()).part(kind.as_bytes());
    let sum = match key {
        Some(key) => sum.part(b"key").part(key.as_bytes()),
        None => sum.part(b""),
    };
    hex(&sum.part(payload).short().to_be_bytes())
}

#[cfg(test)]
mod tests {
    use tidegate_core::{Seq, Time};

    use super::*;

    fn stored(envelope: &[u8]) -> StoredOperation {
        let (group, kind, key) = ("g", "http", Some("k"));
        let payload = Bytes::from_static(b"{\"path\":\"/pay\"}");
        let envelope = seal(envelope, SealedContent { group, kind, key, payload: &payload });
        let at = Time::from_millis(5);
        StoredOperation {
            seq: Seq(7),
            at,
            group: group.into(),
            kind: kind.into(),
            key: Some("k".into()),
            envelope,
            payload,
        }
    }

    /// OPS-8: whichever byte of a stored request was changed, it is noticed.
    #[test]
    fn ops_8_a_changed_byte_is_noticed() {
        for envelope in [&b""[..], br#"{"max_attempts":3}"#] {
            let whole = stored(envelope);
            check(&whole).unwrap();
            for at in 0..whole.payload.len() {
                let mut payload = whole.payload.to_vec();
                payload[at] ^= 1;
                assert!(check(&StoredOperation { payload: payload.into(), ..whole.clone() }).is_err());
            }
            for at in 0..whole.envelope.len() {
                let mut envelope = whole.envelope.to_vec();
                envelope[at] ^= 1;
                let changed = StoredOperation { envelope: envelope.into(), ..whole.clone() };
                assert!(check(&changed).is_err(), "byte {at} of {:?}", whole.envelope);
            }
            assert!(check(&StoredOperation { key: None, ..whole.clone() }).is_err());
            assert!(check(&StoredOperation { group: "h".into(), ..whole.clone() }).is_err());
            assert!(check(&StoredOperation { kind: "h".into(), ..whole.clone() }).is_err());
            assert!(check(&StoredOperation { payload: Bytes::new(), ..whole }).is_err());
        }
    }

    #[test]
    fn what_an_earlier_version_accepted_is_taken_as_it_is() {
        let mut older = stored(b"");
        for envelope in [&b""[..], br#"{"max_attempts":3,"request_id":"r-1"}"#] {
            older.envelope = Bytes::copy_from_slice(envelope);
            check(&older).unwrap();
        }
        older.envelope = Bytes::from_static(b"not json");
        assert!(check(&older).is_err());
    }

    #[test]
    fn a_sealed_envelope_is_json_with_the_checksum_last() {
        let text = String::from_utf8(stored(br#"{"priority":2}"#).envelope.to_vec()).unwrap();
        assert!(text.starts_with(r#"{"priority":2,"xxh3":""#), "{text}");
        serde_json::from_str::<serde_json::Value>(&text).unwrap();
        assert!(stored(b"").envelope.starts_with(b"{\"xxh3\":\""));
    }

    /// OPS-8: all checksums are frozen, so what any version has stored is read by the next ones.
    #[test]
    fn ops_8_checksums_are_frozen() {
        let mut one = stored(br#"{"priority":2}"#);
        assert_eq!(one.envelope, FROZEN);
        for earlier in [FROZEN_HEX, FROZEN_SHA256] {
            one.envelope = Bytes::from_static(earlier.as_bytes());
            check(&one).unwrap();
            let payload = Bytes::from_static(b"{\"path\":\"/pax\"}");
            assert!(check(&StoredOperation { payload, ..one.clone() }).is_err());
        }
    }

    const FROZEN: &str = r#"{"priority":2,"xxh3":"my_lH5UQPdU"}"#;
    const FROZEN_HEX: &str = r#"{"priority":2,"xxh3":"9b2fe51f95103dd5b0525cd7f575096b"}"#;
    const FROZEN_SHA256: &str = r#"{"priority":2,"check":"362b8987eda21defde26807ba33acb84"}"#;
}
