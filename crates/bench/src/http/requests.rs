//! The requests, rendered before the measurement: complete HTTP texts, one per group or batch of
//! groups.

use std::net::SocketAddr;

use crate::call::{self, delayed};

/// Requests to be sent over and over.
#[derive(Debug)]
pub(super) struct Requests(Vec<Vec<u8>>);

impl Requests {
    /// Renders requests with `batch` operations each, over all `groups`, with a body of `payload`
    /// bytes.
    pub(super) fn render(addr: SocketAddr, batch: usize, groups: usize, payload: usize) -> Self {
        let body = call::body(payload);
        let requests = (0..groups.div_ceil(batch)).map(|number| {
            let of = |at: usize| delayed(((number * batch + at) % groups) as u64, &body);
            match batch {
                1 => call::single(addr, &of(0)),
                _ => call::batch(addr, &(0..batch).map(of).collect::<Vec<_>>()),
            }
        });
        Self(requests.collect())
    }

    /// Returns the request with this number; numbers wrap around.
    pub(super) fn at(&self, number: usize) -> &[u8] {
        &self.0[number % self.0.len()]
    }

    /// Returns the bytes of the longest request.
    pub(super) fn longest(&self) -> usize {
        self.0.iter().map(Vec::len).max().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn every_group_is_in_a_request_and_lengths_are_right() {
        let addr = SocketAddr::from(([127, 0, 0, 1], 7_400));
        for (batch, groups) in [(1, 7), (3, 7), (10, 7)] {
            let requests = Requests::render(addr, batch, groups, 64);
            let mut seen = std::collections::BTreeSet::new();
            for request in &requests.0 {
                let text = std::str::from_utf8(request).unwrap();
                let (head, body) = text.split_once("\r\n\r\n").unwrap();
                assert!(head.ends_with(&format!("content-length: {}", body.len())), "{head}");
                let body: Value = serde_json::from_str(body).unwrap();
                let operations = body["operations"].as_array().cloned().unwrap_or_else(|| vec![body.clone()]);
                assert_eq!(operations.len(), batch);
                seen.extend(operations.iter().map(|operation| operation["group"].to_string()));
            }
            assert_eq!(seen.len(), groups);
        }
    }
}
