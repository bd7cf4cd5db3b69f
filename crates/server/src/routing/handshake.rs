//! The handshake between nodes: `GET /internal/hello`. The caller learns whether the expected node
//! responds at that address, whether their secrets match, and where their configurations differ. It
//! makes no decision about that.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, Hasher};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use tidegate_cluster::HandshakeOutcome;
use tidegate_core::fingerprint::{Fingerprint, hex};
use tidegate_upstream::http::{LimitKind, UpstreamConfig};

use super::RoutingState;
use super::peer_client::PeerClient;

/// The path of the handshake.
pub(crate) const PATH: &str = "/internal/hello";
/// The response timeout. A slow node is fine, but a node that hangs must not delay others.
const TIMEOUT: Duration = Duration::from_secs(2);
/// How many bytes of a hash are sent: enough to tell configurations apart.
const HASH_LEN: usize = 8;

/// What a node tells other nodes about itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct NodeHandshake {
    node: String,
    /// Random for each process and each start.
    run: String,
    /// Upstreams that are spread by group.
    spread: BTreeSet<String>,
    /// A hash of each upstream's limits.
    limits: BTreeMap<String, String>,
    /// Kinds of remote workers that have limits, and therefore one partition each.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    limited_kinds: BTreeSet<String>,
}

impl NodeHandshake {
    pub(crate) fn new(node: &str, upstreams: &[UpstreamConfig], spread: &BTreeSet<String>) -> Self {
        let run = format!("{:016x}-{}", random_run(), std::process::id());
        let limits =
            upstreams.iter().map(|upstream| (upstream.name.clone(), limits_hash(upstream))).collect();
        Self { node: node.to_owned(), run, spread: spread.clone(), limits, limited_kinds: BTreeSet::new() }
    }

    /// Adds the kinds of remote workers that have limits.
    pub(crate) fn with_limited_kinds(mut self, kinds: &BTreeSet<String>) -> Self {
        self.limited_kinds.clone_from(kinds);
        self
    }

    /// Hashes exactly what decides the partition of an operation, except for the number of
    /// partitions, which the store keeps.
    pub(crate) fn placement_hash(&self) -> String {
        let rule = Fingerprint::of("placing 1");
        let whole = self.spread.iter().fold(rule, |whole, name| whole.part(name.as_bytes()));
        let kinds = self.limited_kinds.iter().map(|name| format!("kind {name}"));
        let whole = kinds.fold(whole, |whole, kind| whole.part(kind.as_bytes()));
        hex(&whole.finish()[..HASH_LEN])
    }

    /// Describes what makes the other node place operations differently, as the end of a sentence.
    fn placement_mismatch(&self, other: &Self) -> Option<String> {
        if let Some(kind) = self.limited_kinds.symmetric_difference(&other.limited_kinds).next() {
            let is_here = self.limited_kinds.contains(kind);
            let (limited, not) = if is_here { (self, other) } else { (other, self) };
            return Some(format!("the kind {kind} has limits at {}, and none at {}", limited.node, not.node));
        }
        let name = self.spread.symmetric_difference(&other.spread).next()?;
        let (spread, not) = if self.spread.contains(name) { (self, other) } else { (other, self) };
        Some(format!("the upstream {name} is spread by group at {}, and not at {}", spread.node, not.node))
    }
}

/// A number that differs from that of another start.
pub(super) fn random_run() -> u64 {
    std::hash::RandomState::new().build_hasher().finish()
}

fn limits_hash(upstream: &UpstreamConfig) -> String {
    let mut limits: Vec<_> = upstream.limits.iter().collect();
    limits.sort_by(|a, b| a.name.cmp(&b.name));
    let whole = limits.into_iter().fold(Fingerprint::of("limits 1"), |whole, limit| {
        let figures = match limit.kind {
            LimitKind::Drip { capacity, refill_per_s } => format!("drip {capacity} {refill_per_s}"),
            LimitKind::AtOnce { at_once } => format!("cap {at_once}"),
        };
        whole.part(limit.name.as_bytes()).part(figures.as_bytes())
    });
    hex(&whole.finish()[..HASH_LEN])
}

/// Responds to the handshake of another node.
pub(crate) async fn answer(State(routing): State<Arc<RoutingState>>) -> Response {
    Json(&*routing.handshake).into_response()
}

/// Makes handshakes with other nodes.
pub(crate) struct HandshakeClient {
    pub peers: PeerClient,
    pub handshake: Arc<NodeHandshake>,
    /// Differences of limits that were logged, by node and upstream, each once.
    reported: Mutex<BTreeSet<(String, String)>>,
}

impl HandshakeClient {
    pub(crate) fn new(client: PeerClient, hello: Arc<NodeHandshake>) -> Self {
        Self { peers: client, handshake: hello, reported: Mutex::default() }
    }

    /// Finds out which node responds at an address.
    pub(super) async fn probe(&self, address: &str) -> HandshakeOutcome {
        let nobody = |found: &str| HandshakeOutcome::Nobody(found.to_owned());
        // If the store has lost the secret, it is stored again, so that the next node to start has
        // it too.
        self.peers.secret().refresh().await;
        match tokio::time::timeout(TIMEOUT, self.peers.ask(address, PATH)).await {
            Err(_) => nobody(&format!("no answer came within {} s", TIMEOUT.as_secs())),
            Ok(None) => nobody("no node answers there"),
            Ok(Some((StatusCode::FORBIDDEN, _))) => HandshakeOutcome::Refused,
            Ok(Some((status, body))) => match serde_json::from_slice::<NodeHandshake>(&body) {
                Ok(_) if status != StatusCode::OK => nobody(&format!("the answer there is {status}")),
                Ok(other) if other.run == self.handshake.run => HandshakeOutcome::ThisProcess,
                Ok(other) => {
                    self.warn_of_limit_drift(&other);
                    HandshakeOutcome::Node {
                        differs: self.handshake.placement_mismatch(&other),
                        name: other.node,
                    }
                }
                Err(_) => nobody(&format!("the response {status} is not from a node of this version")),
            },
        }
    }

    /// Warns of limits that differ. They do no harm, because each partition uses those of its
    /// owner, but they are hardly intended.
    fn warn_of_limit_drift(&self, other: &NodeHandshake) {
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        for (upstream, mine) in &self.handshake.limits {
            let differs = other.limits.get(upstream).is_some_and(|theirs| theirs != mine);
            if differs && reported.insert((other.node.clone(), upstream.clone())) {
                tracing::warn!(
                    upstream,
                    node = other.node,
                    "its limits differ there: those of the node that owns its partition apply"
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello(node: &str, spread: &[&str]) -> NodeHandshake {
        let spread = spread.iter().map(|name| (*name).to_owned()).collect();
        NodeHandshake::new(node, &[UpstreamConfig::new("echo", "http://localhost")], &spread)
    }

    /// OPS-7: nodes that place operations alike have the same hash, and others do not; it is
    /// frozen, because nodes of two versions compare it.
    #[test]
    fn ops_7_a_hash_tells_of_exactly_what_places_operations() {
        let plain = hello("ann", &[]).placement_hash();
        assert_eq!(plain, "970cee96895aeb6e");
        assert_eq!(hello("ben", &[]).placement_hash(), plain);
        let wide = hello("ann", &["wide"]);
        assert_eq!(wide.placement_hash(), hello("ben", &["wide"]).placement_hash());
        assert_ne!(wide.placement_hash(), plain);
        assert_ne!(wide.placement_hash(), hello("ann", &["wi", "de"]).placement_hash());
        let differs = wide.placement_mismatch(&hello("ben", &[])).unwrap();
        assert_eq!(differs, "the upstream wide is spread by group at ann, and not at ben");
        assert_eq!(wide.placement_mismatch(&hello("ben", &["wide"])), None);
        let kinds = ["resize".to_owned()].into();
        let limited = hello("ann", &["wide"]).with_limited_kinds(&kinds);
        assert_ne!(limited.placement_hash(), wide.placement_hash());
        let differs = limited.placement_mismatch(&hello("ben", &["wide"])).unwrap();
        assert_eq!(differs, "the kind resize has limits at ann, and none at ben");
    }

    #[test]
    fn a_process_knows_itself_from_one_of_the_same_name() {
        assert_ne!(hello("ann", &[]).run, hello("ann", &[]).run);
    }
}
