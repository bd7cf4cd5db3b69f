//! The events of all nodes for one client, merged.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::response::sse::Event as Message;
use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream::{BoxStream, SelectAll, unfold};
use tidegate_cluster::{Cluster, ClusterView};
use tidegate_store::nodes::Node;

use super::node_stream::NodeStream;
use super::peer_feed::PeerFeed;
use super::{FeedItem, FeedStart};
use crate::api::events::{self, ClusterPosition, EventFilter, LastEvent, NodeKey, StreamItem};
use crate::routing::{JOIN, RoutingState};

/// The events of all nodes from where a client was.
pub(super) struct ClusterStream {
    routing: Arc<RoutingState>,
    cluster: Cluster,
    /// The client's filter, as a query.
    query: String,
    feeds: SelectAll<BoxStream<'static, FeedItem>>,
    /// The nodes that have a feed.
    nodes: BTreeSet<NodeKey>,
    position: ClusterPosition,
    /// How far the events of nodes that have left were read: one that was only silent for a while
    /// returns with the same run.
    left: ClusterPosition,
    has_gap: bool,
}

/// The nodes other than this one that can be reached.
fn other_nodes(view: &ClusterView) -> impl Iterator<Item = &Node> {
    view.nodes.iter().filter(|node| node.name != view.this_node && !node.record.address.is_empty())
}

/// Where a client that saw this event last starts to read a node.
fn start_at(node: NodeKey, last: Option<&LastEvent>) -> FeedStart {
    match last {
        None | Some(LastEvent::Number(_)) => FeedStart::Now,
        Some(LastEvent::Cluster(last)) => match last.get(node) {
            Some(position) => FeedStart::After(position),
            None if last.is_full() => FeedStart::Now,
            // A node that was not there at the client's last event: it missed all of its events.
            None => FeedStart::Beginning,
        },
    }
}

/// Whether a client that saw this event last missed something that no one has.
fn has_missed(last: &LastEvent, live: &BTreeSet<NodeKey>) -> bool {
    match last {
        // Of a single node, or of a version whose nodes streamed their own events only.
        LastEvent::Number(_) => true,
        LastEvent::Cluster(last) => last.is_full() || last.nodes().any(|node| !live.contains(&node)),
    }
}

impl ClusterStream {
    /// The stream, and its first message.
    pub(super) async fn open(
        routing: Arc<RoutingState>,
        wanted: EventFilter,
        last: Option<LastEvent>,
    ) -> (Self, Message) {
        let view = routing.cluster.wait_until_decided(JOIN).await;
        let this_node = NodeKey::of(&view.this_node);
        let mut stream = Self {
            cluster: routing.cluster.clone(),
            query: wanted.to_query(),
            feeds: SelectAll::new(),
            nodes: BTreeSet::from([this_node]),
            position: ClusterPosition::default(),
            left: ClusterPosition::default(),
            has_gap: false,
            routing,
        };
        let start = start_at(this_node, last.as_ref());
        let own = NodeStream::open(&stream.routing.partitions, wanted, start);
        let mut peers = Vec::new();
        for node in other_nodes(&view) {
            let key = NodeKey::of(&node.name);
            let start = start_at(key, last.as_ref());
            // Where the client is, until the feed says that it is further.
            if let FeedStart::After(position) = start {
                stream.position.set(position);
            }
            peers.push(stream.feed(node).starting_at(start));
            stream.nodes.insert(key);
        }
        join_all(peers.iter_mut().map(PeerFeed::open)).await;
        let is_other_run = |last| matches!(last, FeedStart::After(last) if last.run != own.position().run);
        let has_gap = is_other_run(start) || last.is_some_and(|last| has_missed(&last, &stream.nodes));
        stream.position.set(own.position());
        for position in peers.iter().filter_map(PeerFeed::position) {
            if stream.position.get(position.node).is_none() {
                stream.position.set(position);
            }
        }
        stream.feeds.push(unfold(own, |mut own| async move { Some((own.next().await?, own)) }).boxed());
        stream.feeds.extend(peers.into_iter().map(PeerFeed::into_stream));
        let opening = events::opening(stream.position.to_string(), has_gap);
        (stream, opening)
    }

    fn feed(&self, node: &Node) -> PeerFeed {
        PeerFeed::new(node, self.routing.peers.clone(), self.cluster.clone(), self.query.clone())
    }

    /// Waits for what comes next; `None` when this node shuts down.
    pub(super) async fn next(&mut self) -> Option<StreamItem> {
        loop {
            if std::mem::take(&mut self.has_gap) {
                return Some(StreamItem::Message(events::reset().id(self.position.to_string())));
            }
            let stopping = &self.routing.server.stopping;
            let item = tokio::select! {
                biased;
                () = stopping.cancelled() => return None,
                () = self.cluster.changed() => {
                    self.add_feeds();
                    continue;
                }
                Some(item) = self.feeds.next() => item,
            };
            match item {
                FeedItem::Progress(position) if self.position.get(position.node) == Some(position) => {}
                FeedItem::Progress(position) => {
                    self.position.set(position);
                    return Some(StreamItem::Position(self.position.to_string()));
                }
                FeedItem::Event(position, text) => {
                    self.position.set(position);
                    return Some(StreamItem::Message(text.into_message(self.position.to_string())));
                }
                FeedItem::Gap => self.has_gap = true,
                FeedItem::Gone { node, is_complete } => self.forget(node, is_complete),
                // This node shuts down.
                FeedItem::End => {}
            }
        }
    }

    /// Follows nodes that have appeared, each from its start.
    fn add_feeds(&mut self) {
        let view = self.cluster.view();
        for node in other_nodes(&view) {
            let key = NodeKey::of(&node.name);
            if self.nodes.insert(key) {
                let feed = self.feed(node);
                let feed = match self.left.remove(key) {
                    Some(position) => feed.of_returned_node(position),
                    None => feed.starting_at(FeedStart::Beginning),
                };
                self.feeds.push(feed.into_stream());
            }
        }
    }

    /// Forgets a node that has left.
    fn forget(&mut self, node: NodeKey, is_complete: bool) {
        self.nodes.remove(&node);
        self.has_gap |= !is_complete;
        if let Some(position) = self.position.remove(node) {
            self.left.set_if_room(position);
        }
    }
}
