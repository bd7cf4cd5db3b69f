//! The idempotency key of a forwarded request, as one header between nodes: how long it is kept,
//! how long ago it was new, and its name.

use std::time::Duration;

use axum::http::{HeaderName, HeaderValue};
use tidegate_idempotency::HeldKey;
use tokio::time::Instant;

pub(super) const HEADER: HeaderName = HeaderName::from_static("x-tidegate-held-key");
/// Stands for the age of a key that was taken over.
const TAKEN_OVER: &str = "-";

pub(super) fn write(key: &HeldKey) -> String {
    let age =
        key.since.map_or_else(|| TAKEN_OVER.to_owned(), |since| since.elapsed().as_micros().to_string());
    format!("{} {age} {}", key.ttl.as_millis(), key.name)
}

/// Reads what `write` wrote; `None` when it is anything else.
pub(super) fn read(value: &HeaderValue) -> Option<HeldKey> {
    let (ttl, rest) = value.to_str().ok()?.split_once(' ')?;
    let (age, name) = rest.split_once(' ').filter(|(_, name)| !name.is_empty())?;
    let since = match age {
        TAKEN_OVER => None,
        age => Some(Instant::now().checked_sub(Duration::from_micros(age.parse().ok()?))?),
    };
    Some(HeldKey { name: name.into(), ttl: Duration::from_millis(ttl.parse().ok()?), since })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// IDM-12: a key that is forwarded is the same key, as old as it was.
    #[tokio::test(start_paused = true)]
    async fn idm_12_a_key_passes_between_nodes() {
        tokio::time::advance(Duration::from_secs(60)).await;
        let since = Instant::now().checked_sub(Duration::from_millis(1_500));
        for since in [since, None] {
            let name = "app POST /v1/operations order%3A7".into();
            let key = HeldKey { name, ttl: Duration::from_secs(3_600), since };
            let read = read(&HeaderValue::from_str(&write(&key)).unwrap()).unwrap();
            assert_eq!((read.name, read.ttl, read.since), (key.name, key.ttl, key.since));
        }
        for other in ["", "7", "7 - ", "x - name", "7 soon name"] {
            assert!(read(&HeaderValue::from_static(other)).is_none(), "{other}");
        }
    }
}
