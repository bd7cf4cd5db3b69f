//! The events of this node for one reader: a client of this node, or another node.

use std::sync::Arc;

use super::node_events::{NodeEvent, NodeEvents, NodeReading};
use super::{FeedItem, FeedStart};
use crate::api::events::{EngineLookup, EventFilter, EventQueue, EventRenderer, NodePosition, QueueItem};
use crate::routing::LocalPartitions;

/// After how many events that do not pass the filter the reader is told how far it is.
const PROGRESS_EVERY: u64 = 256;

/// The events of this node from a start.
pub(super) struct NodeStream {
    events: Arc<NodeEvents>,
    queue: EventQueue<NodeEvent>,
    renderer: EventRenderer,
    /// Where the reader is, as it was told.
    told: NodePosition,
    state: StreamState,
}

enum StreamState {
    /// The reader was not told yet where it starts.
    Opening {
        after_gap: Option<NodePosition>,
    },
    /// The reader was not told yet that it missed the events before this position.
    Missed(NodePosition),
    /// The reader was told that it missed events, but not yet where it resumes. If it reconnects
    /// before that, it is told again.
    AfterGap(NodePosition),
    Open,
    Ended,
}

impl NodeStream {
    pub(super) fn open(partitions: &Arc<LocalPartitions>, wanted: EventFilter, from: FeedStart) -> Self {
        let events = Arc::clone(partitions.events());
        let NodeReading { queue, from: told, after_gap } = events.read_from(from);
        let partitions = Arc::clone(partitions);
        let find: EngineLookup = Arc::new(move |id| {
            partitions.engines().into_iter().find(|engine| engine.partition() == id.partition())
        });
        let renderer = EventRenderer { wanted, find };
        Self { events, queue, renderer, told, state: StreamState::Opening { after_gap } }
    }

    /// Where the reader is.
    pub(super) const fn position(&self) -> NodePosition {
        self.told
    }

    /// What comes next: first the position; `None` after the end.
    pub(super) async fn next(&mut self) -> Option<FeedItem> {
        match self.state {
            StreamState::Opening { after_gap } => {
                self.state = after_gap.map_or(StreamState::Open, StreamState::Missed);
                return Some(FeedItem::Progress(self.told));
            }
            StreamState::Missed(position) => {
                self.state = StreamState::AfterGap(position);
                return Some(FeedItem::Gap);
            }
            StreamState::AfterGap(position) => {
                self.state = StreamState::Open;
                self.told = position;
                return Some(FeedItem::Progress(position));
            }
            StreamState::Open => {}
            StreamState::Ended => return None,
        }
        loop {
            let NodeEvent { number, event } = match self.queue.next().await {
                Some(QueueItem::Event(event)) => event,
                Some(QueueItem::Gap) => return Some(FeedItem::Gap),
                None => {
                    self.state = StreamState::Ended;
                    return Some(FeedItem::End);
                }
            };
            let Some(event) = event else { return Some(FeedItem::Gap) };
            let position = self.events.position(number);
            if let Some(text) = self.renderer.render(&event).await {
                self.told = position;
                return Some(FeedItem::Event(position, text));
            }
            if number >= self.told.number + PROGRESS_EVERY {
                self.told = position;
                return Some(FeedItem::Progress(position));
            }
        }
    }
}
