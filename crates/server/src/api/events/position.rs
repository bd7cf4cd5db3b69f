//! The ids of events. A single node numbers its events. The id of an event in a cluster is a
//! position in the events of every node, so that a client can resume at any node. To clients both
//! are opaque.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use axum::http::HeaderMap;
use tidegate_core::fingerprint::Fingerprint;

use super::{last_event_text, wrong_last_event};
use crate::edge::query::Query;
use crate::error::Result;

/// The maximum number of nodes in one id. A client of a larger cluster that resumes is told to
/// reload.
const NODES_MAX: usize = 128;
/// The hexadecimal digits of a node and of its run.
const KEY_LEN: usize = 8;
/// The maximum number of digits of an event's number.
const NUMBER_LEN_MAX: usize = 19;

/// The event that a client saw last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LastEvent {
    /// Of a single node.
    Number(u64),
    Cluster(ClusterPosition),
}

impl LastEvent {
    pub(crate) fn read(headers: &HeaderMap, query: &mut Query) -> Result<Option<Self>> {
        last_event_text(headers, query).map(|text| text.parse().map_err(|()| wrong_last_event())).transpose()
    }
}

impl FromStr for LastEvent {
    type Err = ();

    fn from_str(text: &str) -> std::result::Result<Self, ()> {
        match text.parse() {
            Ok(number) => Ok(Self::Number(number)),
            Err(_) => text.parse().map(Self::Cluster),
        }
    }
}

/// A node, by a hash of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NodeKey(u32);

impl NodeKey {
    pub(crate) fn of(name: &str) -> Self {
        let hash = Fingerprint::of("node of an event").part(name.as_bytes()).finish();
        Self(u32::from_be_bytes([hash[0], hash[1], hash[2], hash[3]]))
    }
}

/// How far the events of one node were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodePosition {
    pub node: NodeKey,
    /// Random for each start of the node.
    pub run: u32,
    /// The number of the last event, counted from 1 in each run.
    pub number: u64,
}

impl fmt::Display for NodePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}{:08x}-{}", self.node.0, self.run, self.number)
    }
}

impl FromStr for NodePosition {
    type Err = ();

    fn from_str(text: &str) -> std::result::Result<Self, ()> {
        let (keys, number) = text.split_once('-').ok_or(())?;
        let (node, run) = keys.split_at_checked(KEY_LEN).filter(|(_, run)| run.len() == KEY_LEN).ok_or(())?;
        let is_hex = |c: u8| c.is_ascii_digit() || (b'a'..=b'f').contains(&c);
        let is_number = number.len() <= NUMBER_LEN_MAX && number.bytes().all(|c| c.is_ascii_digit());
        if !keys.bytes().all(is_hex) || !is_number {
            return Err(());
        }
        let key = |text| u32::from_str_radix(text, 16).map_err(|_| ());
        let number = number.parse().map_err(|_| ())?;
        Ok(Self { node: NodeKey(key(node)?), run: key(run)?, number })
    }
}

/// How far the events of each node were read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClusterPosition(BTreeMap<NodeKey, NodePosition>);

impl ClusterPosition {
    pub(crate) fn get(&self, node: NodeKey) -> Option<NodePosition> {
        self.0.get(&node).copied()
    }

    pub(crate) fn set(&mut self, position: NodePosition) {
        self.0.insert(position.node, position);
    }

    /// The same, unless it is full: then a node without a position is read from its start.
    pub(crate) fn set_if_room(&mut self, position: NodePosition) {
        if !self.is_full() {
            self.set(position);
        }
    }

    pub(crate) fn remove(&mut self, node: NodeKey) -> Option<NodePosition> {
        self.0.remove(&node)
    }

    pub(crate) fn nodes(&self) -> impl Iterator<Item = NodeKey> + '_ {
        self.0.keys().copied()
    }

    /// Whether an id may have left nodes out.
    pub(crate) fn is_full(&self) -> bool {
        self.0.len() >= NODES_MAX
    }
}

impl fmt::Display for ClusterPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, position) in self.0.values().take(NODES_MAX).enumerate() {
            let separator = if index == 0 { "" } else { "." };
            write!(f, "{separator}{position}")?;
        }
        Ok(())
    }
}

impl FromStr for ClusterPosition {
    type Err = ();

    fn from_str(text: &str) -> std::result::Result<Self, ()> {
        let mut nodes = Self::default();
        for part in text.split('.') {
            if nodes.is_full() {
                return Err(());
            }
            nodes.set(part.parse()?);
        }
        Ok(nodes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(node: u32, number: u64) -> NodePosition {
        NodePosition { node: NodeKey(node), run: 0xbeef, number }
    }

    #[test]
    fn an_id_is_read_as_it_was_written() {
        let mut cluster = ClusterPosition::default();
        cluster.set(position(7, 12));
        cluster.set(position(u32::MAX, 0));
        let text = cluster.to_string();
        assert_eq!(text, "000000070000beef-12.ffffffff0000beef-0");
        assert_eq!(text.parse(), Ok(LastEvent::Cluster(cluster)));
        assert_eq!("17".parse(), Ok(LastEvent::Number(17)));
        for wrong in [
            "",
            "x",
            "-1",
            "000000070000beef",
            "000000070000beef-",
            "000000070000beef-+1",
            "000000070000BEEF-1",
            "00000007+000beef-1",
            "000000070000beef-12.",
            "000000070000beef-12345678901234567890",
        ] {
            assert_eq!(wrong.parse::<LastEvent>(), Err(()), "{wrong}");
        }
    }

    #[test]
    fn an_id_is_bounded() {
        let mut cluster = ClusterPosition::default();
        for node in 0..200 {
            cluster.set(position(node, u64::from(node)));
        }
        let text = cluster.to_string();
        let Ok(LastEvent::Cluster(read)) = text.parse() else { panic!("{text}") };
        assert!(read.is_full() && read.nodes().count() == NODES_MAX, "{text}");
        assert_eq!(format!("{text}.000000070000beef-12").parse::<LastEvent>(), Err(()));
        let room = 1 + 2 * KEY_LEN + 1 + NUMBER_LEN_MAX;
        assert!(text.len() <= NODES_MAX * room, "{}", text.len());
    }

    #[test]
    fn names_are_told_apart() {
        assert_ne!(NodeKey::of("tidegate@node-1:7400"), NodeKey::of("tidegate@node-2:7400"));
    }
}
