//! Parses replies of the server. A reply of another shape is unreadable, never guessed at.

use bytes::Bytes;
use redis::{FromRedisValue, Value, from_redis_value};
use tidegate_core::Time;
use tidegate_store::{Error, Result};

use crate::errors::unreadable;

/// Parses a reply as this type.
pub(crate) fn parsed<T: FromRedisValue>(value: Value) -> Result<T> {
    from_redis_value(value)
        .map_err(|cause| unreadable("a reply of Redis has an unexpected shape").with_source(cause))
}

/// The parts of a reply.
pub(crate) fn list(value: Value) -> Result<Vec<Value>> {
    match value {
        Value::Array(parts) | Value::Set(parts) => Ok(parts),
        Value::Nil => Ok(Vec::new()),
        _ => Err(unexpected_reply("a list")),
    }
}

/// Bytes, or `None`.
pub(crate) fn bytes(value: Value) -> Result<Option<Bytes>> {
    match value {
        Value::BulkString(bytes) => Ok(Some(bytes.into())),
        Value::SimpleString(text) => Ok(Some(text.into_bytes().into())),
        Value::Nil => Ok(None),
        _ => Err(unexpected_reply("bytes")),
    }
}

/// Splits a reply into its first word, which says what follows, and the rest; nothing follows a
/// lone word.
pub(crate) fn split_verdict(value: Value) -> Result<(String, Vec<Value>)> {
    if let Value::BulkString(_) = value {
        return Ok((parsed(value)?, Vec::new()));
    }
    let mut parts = list(value)?.into_iter();
    let word = parts.next().ok_or_else(|| unexpected_reply("a word"))?;
    Ok((parsed(word)?, parts.collect()))
}

/// Parses the part at an index.
pub(crate) fn part_at<T: FromRedisValue>(parts: &mut [Value], place: usize) -> Result<T> {
    let part = parts.get_mut(place).map(std::mem::take).ok_or_else(|| unexpected_reply("one more part"))?;
    parsed(part)
}

/// Parses the time at an index.
pub(crate) fn time_at(parts: &mut [Value], place: usize) -> Result<Time> {
    part_at(parts, place).map(Time::from_micros)
}

/// The error for an unexpected reply.
pub(crate) fn unexpected_reply(wanted: &str) -> Error {
    unreadable(format!("Redis did not reply with {wanted}"))
}
