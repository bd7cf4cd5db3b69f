//! Answers of the server as the types they stand for. An answer of another shape is unreadable, never guessed at.

use bytes::Bytes;
use redis::{FromRedisValue, Value, from_redis_value};
use tidegate_core::Time;
use tidegate_store::{Error, Result};

use crate::errors::unreadable;

/// An answer as this type.
pub(crate) fn parsed<T: FromRedisValue>(value: Value) -> Result<T> {
    from_redis_value(value)
        .map_err(|cause| unreadable("an answer of Redis has another shape").with_source(cause))
}

/// The parts of an answer.
pub(crate) fn list(value: Value) -> Result<Vec<Value>> {
    match value {
        Value::Array(parts) | Value::Set(parts) => Ok(parts),
        Value::Nil => Ok(Vec::new()),
        _ => Err(unexpected_reply("a list")),
    }
}

/// Bytes, or nothing.
pub(crate) fn bytes(value: Value) -> Result<Option<Bytes>> {
    match value {
        Value::BulkString(bytes) => Ok(Some(bytes.into())),
        Value::SimpleString(text) => Ok(Some(text.into_bytes().into())),
        Value::Nil => Ok(None),
        _ => Err(unexpected_reply("bytes")),
    }
}

/// The first word of an answer says what follows; behind a lone word nothing does.
pub(crate) fn split_verdict(value: Value) -> Result<(String, Vec<Value>)> {
    if let Value::BulkString(_) = value {
        return Ok((parsed(value)?, Vec::new()));
    }
    let mut parts = list(value)?.into_iter();
    let word = parts.next().ok_or_else(|| unexpected_reply("a word"))?;
    Ok((parsed(word)?, parts.collect()))
}

/// The part at a place.
pub(crate) fn part_at<T: FromRedisValue>(parts: &mut [Value], place: usize) -> Result<T> {
    let part = parts.get_mut(place).map(std::mem::take).ok_or_else(|| unexpected_reply("one more part"))?;
    parsed(part)
}

/// A time at a place.
pub(crate) fn time_at(parts: &mut [Value], place: usize) -> Result<Time> {
    part_at(parts, place).map(Time::from_micros)
}

/// An answer that is none of those that were agreed on.
pub(crate) fn unexpected_reply(wanted: &str) -> Error {
    unreadable(format!("Redis answered something else than {wanted}"))
}
