//! The events of another node for one client, from one connection after the other until the node
//! leaves the cluster.

use std::collections::VecDeque;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::{BoxStream, unfold};
use tidegate_cluster::Cluster;
use tidegate_store::nodes::Node;

use super::sse_reader::{SseMessage, SseReader, StreamFailure};
use super::{END, FeedItem, FeedStart, PATH, POSITION, RESET};
use crate::api::events::{EventText, NodeKey, NodePosition};
use crate::routing::PeerClient;

/// How long a node may take to open its stream.
const OPEN_TIMEOUT: Duration = Duration::from_secs(2);
/// The pause between two attempts to open it, unless the cluster changes.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The events of another node.
pub(super) struct PeerFeed {
    name: String,
    peers: PeerClient,
    cluster: Cluster,
    /// The client's filter, as a query.
    query: String,
    from: FeedStart,
    /// Whether the client is to be told of a gap as soon as the node responds.
    has_gap: bool,
    /// Whether all events of the node's last run were read, or the client was told of the rest.
    is_complete: bool,
    connection: Option<SseReader>,
    due: VecDeque<FeedItem>,
}

impl PeerFeed {
    pub(super) fn new(node: &Node, peers: PeerClient, cluster: Cluster, query: String) -> Self {
        Self {
            name: node.name.clone(),
            peers,
            cluster,
            query,
            from: FeedStart::Now,
            has_gap: false,
            is_complete: false,
            connection: None,
            due: VecDeque::new(),
        }
    }

    /// Sets where it starts.
    pub(super) fn starting_at(self, from: FeedStart) -> Self {
        Self { from, ..self }
    }

    /// Resumes the feed of a node that had left, and whose client was told so.
    pub(super) fn of_returned_node(self, last: NodePosition) -> Self {
        Self { from: FeedStart::After(last), is_complete: true, ..self }
    }

    /// How far the node's events were read; `None` if it has not responded yet.
    pub(super) const fn position(&self) -> Option<NodePosition> {
        match self.from {
            FeedStart::After(position) => Some(position),
            FeedStart::Now | FeedStart::Beginning => None,
        }
    }

    /// Opens the stream before the client gets its response, so that it misses nothing from then
    /// on. What is to start now and cannot, starts later, with a gap.
    pub(super) async fn open(&mut self) {
        self.has_gap = !self.connect().await && self.from == FeedStart::Now;
    }

    /// Everything that comes, until the node is gone.
    pub(super) fn into_stream(self) -> BoxStream<'static, FeedItem> {
        unfold(Some(self), |feed| async move {
            let mut feed = feed?;
            let item = feed.next().await;
            let rest = (!matches!(item, FeedItem::Gone { .. })).then_some(feed);
            Some((item, rest))
        })
        .boxed()
    }

    async fn next(&mut self) -> FeedItem {
        loop {
            if let Some(item) = self.due.pop_front() {
                return item;
            }
            let Some(connection) = &mut self.connection else {
                if self.node().is_none() {
                    return FeedItem::Gone { node: NodeKey::of(&self.name), is_complete: self.is_complete };
                }
                if !self.connect().await {
                    // Whichever comes first.
                    let _ = tokio::time::timeout(RETRY_AFTER, self.cluster.changed()).await;
                }
                continue;
            };
            match connection.next().await {
                Ok(message) => {
                    if let Some(item) = self.read(message) {
                        return item;
                    }
                }
                Err(failure) => self.close(failure),
            }
        }
    }

    /// The node, while it is in the cluster.
    fn node(&self) -> Option<Node> {
        self.cluster.view().nodes.into_iter().find(|node| node.name == self.name)
    }

    /// Opens the stream and reads where it starts; returns whether that succeeded.
    async fn connect(&mut self) -> bool {
        let Some(node) = self.node() else { return false };
        let target = format!("{PATH}?{}&from={}", self.query, self.from);
        let opened = async {
            let mut connection = SseReader::new(self.peers.open_stream(&node, &target).await?);
            let first = connection.next().await.ok().filter(|first| first.name == POSITION)?;
            Some((connection, first.id.parse::<NodePosition>().ok()?))
        };
        let Ok(Some((connection, position))) = tokio::time::timeout(OPEN_TIMEOUT, opened).await else {
            return false;
        };
        let is_other_run = self.position().is_some_and(|last| last.run != position.run);
        // Before the position: a client that resumes before it was told is told again.
        if std::mem::take(&mut self.has_gap) || is_other_run && !self.is_complete {
            self.due.push_back(FeedItem::Gap);
        }
        self.due.push_back(FeedItem::Progress(position));
        self.is_complete = false;
        self.from = FeedStart::After(position);
        self.connection = Some(connection);
        true
    }

    /// What a message is; `None` for one that is only for this feed, or not understood.
    fn read(&mut self, message: SseMessage) -> Option<FeedItem> {
        let SseMessage { id, name, data } = message;
        match &*name {
            RESET => return Some(FeedItem::Gap),
            END => {
                self.is_complete = true;
                return None;
            }
            _ => {}
        }
        let position = id.parse().ok()?;
        self.from = FeedStart::After(position);
        Some(match &*name {
            POSITION => FeedItem::Progress(position),
            _ => FeedItem::Event(position, EventText { name: name.into(), data }),
        })
    }

    fn close(&mut self, failure: StreamFailure) {
        self.connection = None;
        if failure == StreamFailure::TooLong {
            tracing::warn!(node = self.name, "an event of it is too long; its reader is told to reload");
            self.from = FeedStart::Now;
            self.has_gap = true;
        }
    }
}
