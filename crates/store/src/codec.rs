//! Encodes facts as bytes, the same in every backend: a version, the number of facts, and the
//! facts. The format is frozen; a change needs a new version, and the old one stays readable. Any
//! input is decoded or refused, never trusted. The codec does not interpret facts.

mod attempts;
mod compound;
mod facts;
mod numbers;
#[cfg(test)]
mod samples;
#[cfg(test)]
mod tests;
mod wire;

pub use attempts::{decode_attempt, encode_attempt};
use bytes::Bytes;
use tidegate_core::Fact;

use crate::{Error, Result, StoreErrorKind};
use wire::{Input, Wire};

/// The version that is written, and the newest that can be read.
const VERSION: u8 = 1;
/// The maximum number of facts to allocate memory for before reading them; a damaged count cannot
/// request more.
const ROOM_MAX: usize = 4_096;
/// The maximum length of a version and a count.
const HEAD_LEN_MAX: usize = 11;

/// Encodes a list of facts.
#[must_use]
pub fn encode(facts: &[Fact]) -> Bytes {
    let mut body = Vec::with_capacity(facts.len() * 32);
    for fact in facts {
        fact.put(&mut body);
    }
    seal(facts.len(), &body)
}

/// Encodes facts in parts of about `part_len` bytes, each of which can be decoded alone. No facts
/// give no part.
pub fn encode_iter(facts: impl Iterator<Item = Fact>, part_len: usize) -> Vec<Bytes> {
    let (mut parts, mut body, mut count) = (Vec::new(), Vec::new(), 0);
    for fact in facts {
        fact.put(&mut body);
        count += 1;
        if body.len() >= part_len {
            parts.push(seal(count, &body));
            body.clear();
            count = 0;
        }
    }
    if count > 0 {
        parts.push(seal(count, &body));
    }
    parts
}

/// Decodes a list of facts.
///
/// # Errors
/// `Unreadable` when the bytes are damaged, truncated, or of a newer version.
pub fn decode(bytes: &[u8]) -> Result<Vec<Fact>> {
    let mut input = Input::new(bytes);
    let version = u8::get(&mut input).map_err(|_| damaged("it is empty"))?;
    if version != VERSION {
        let message = format!("the facts are of format {version}; this program reads format {VERSION}");
        return Err(Error::new(StoreErrorKind::Unreadable, message));
    }
    let facts = list(&mut input).map_err(|problem| {
        let place = format!("at byte {} of {}", input.position(bytes), bytes.len());
        match problem {
            wire::Problem::Tag => newer(&place),
            problem => damaged(&format!("{problem} {place}")),
        }
    })?;
    if input.left() > 0 {
        return Err(damaged(&format!("{} bytes follow the last fact", input.left())));
    }
    Ok(facts)
}

fn list(input: &mut Input<'_>) -> std::result::Result<Vec<Fact>, wire::Problem> {
    let count = usize::get(input)?;
    let mut facts = Vec::with_capacity(count.min(input.left()).min(ROOM_MAX));
    for _ in 0..count {
        facts.push(Fact::get(input)?);
    }
    Ok(facts)
}

fn seal(count: usize, body: &[u8]) -> Bytes {
    let mut sealed = Vec::with_capacity(HEAD_LEN_MAX + body.len());
    sealed.push(VERSION);
    count.put(&mut sealed);
    sealed.extend_from_slice(body);
    sealed.into()
}

fn newer(place: &str) -> Error {
    let message = format!(
        "a fact is of a kind that this program does not know, {place}: a newer version wrote it, or it is damaged"
    );
    Error::new(StoreErrorKind::Unreadable, message)
}

fn damaged(how: &str) -> Error {
    Error::new(StoreErrorKind::Unreadable, format!("an encoded list of facts is damaged: {how}"))
}
