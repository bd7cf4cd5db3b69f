//! The way in to a cluster: any node that is in rotation, one after the other, as a load balancer
//! would choose.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use hyper::{HeaderMap, Method};
use serde_json::Value;
use tokio::time::sleep;

use crate::caller::Caller;

/// Between two tries while a call cannot be answered.
const PAUSE: Duration = Duration::from_millis(20);
/// How long an operation is waited for in one call.
const WAIT_MS: u64 = 2_000;

/// What came back: the status, the headers and the text.
pub(super) type FullResponse = (u16, HeaderMap, String);

/// A node as its callers see it.
struct NodeClient {
    caller: Caller,
    is_open: AtomicBool,
}

/// All nodes.
pub(super) struct NodeClients {
    doors: Vec<NodeClient>,
    next: AtomicUsize,
}

impl NodeClients {
    /// Of nodes at these addresses, all of them in rotation.
    pub(super) fn of(addresses: &[String]) -> Self {
        let door =
            |address: &String| NodeClient { caller: Caller::of(address), is_open: AtomicBool::new(true) };
        Self { doors: addresses.iter().map(door).collect(), next: AtomicUsize::new(0) }
    }

    /// Takes a node out of rotation, or back in.
    pub(super) fn set_open(&self, node: usize, is_open: bool) {
        self.doors[node].is_open.store(is_open, Ordering::SeqCst);
    }

    /// The way in to this node.
    pub(super) fn at(&self, node: usize) -> &Caller {
        &self.doors[node].caller
    }

    /// The next in rotation.
    pub(super) fn any(&self) -> &Caller {
        loop {
            let door = &self.doors[self.next.fetch_add(1, Ordering::Relaxed) % self.doors.len()];
            if door.is_open.load(Ordering::SeqCst) {
                return &door.caller;
            }
        }
    }

    /// Hands an operation in, once; `None` when no whole answer came.
    pub(super) async fn post(&self, operation: &Value) -> Option<FullResponse> {
        self.any().call_full(Method::POST, "/v1/operations", &[], Some(operation)).await
    }

    /// Hands an operation in until it is acknowledged, at any node, with the same key; its id.
    pub(super) async fn submit(&self, operation: &Value) -> String {
        loop {
            match self.post(operation).await {
                Some((200 | 202, _, answer)) => return id_in(&answer),
                None | Some((503, ..)) => sleep(PAUSE).await,
                Some((status, _, answer)) => panic!("{status} {answer}"),
            }
        }
    }

    /// What an operation that was acknowledged has come to, once it has ended.
    pub(super) async fn wait_until_ended(&self, id: &str) -> Value {
        let path = format!("/v1/operations/{id}?wait_ms={WAIT_MS}");
        loop {
            match self.any().call(Method::GET, &path, &[], None).await {
                Some((200, answer)) => {
                    let answer: Value = serde_json::from_str(&answer).unwrap();
                    if matches!(answer["state"].as_str(), Some("succeeded" | "failed" | "canceled")) {
                        return answer;
                    }
                }
                None | Some((503, _)) => sleep(PAUSE).await,
                Some((status, answer)) => panic!("{id} was acknowledged and is lost: {status} {answer}"),
            }
        }
    }
}

/// The id in the answer to a submission.
pub(super) fn id_in(answer: &str) -> String {
    let answer: Value = serde_json::from_str(answer).unwrap();
    answer["id"].as_str().unwrap().to_owned()
}

/// The partition that an id tells of: it is in the middle of its 128 bits.
pub(super) fn partition_of(id: &str) -> u16 {
    const DIGITS: &str = "0123456789abcdefghjkmnpqrstvwxyz";
    let digits = id.strip_prefix("op_").unwrap().chars().map(|digit| DIGITS.find(digit).unwrap() as u128);
    (digits.fold(0, |bits, digit| bits << 5 | digit) >> 64) as u16
}
