//! The events of all nodes in one stream, from any of them.
//!
//! # Design
//!
//! Each node numbers the events of its partitions and keeps the last ones in a ring
//! ([`NodeEvents`]). It serves them to the other nodes at [`PATH`], and never those of others, so
//! no event travels in a circle. For a client of `/v1/events` a node reads its own ring and opens
//! that stream at each other live node, with the client's filter: a
//! [`PeerFeed`](peer_feed::PeerFeed). [`ClusterStream`] merges them. It opens a feed for a node
//! that appears, and a feed reconnects, from where it was, while its node is in the view of the
//! cluster.
//!
//! A stream opens with the position that it starts after. The id of an event is the position in the
//! events of every node: for each a hash of its name, its run, and the number of its last event
//! that was read. So a client that resumes, at any node, gets what it missed from every node whose
//! ring still has it. It gets `reset` when something may be missing: a ring that was overrun, a
//! node of its id that is gone or has restarted, a node that left without sending its last events,
//! and a partition that was lost rather than handed over. The events of an operation come in order,
//! unless its partition moved to another node in between.
//!
//! No node collects events for a slow client: nothing is read from a feed until the client takes
//! it, so the feed's node falls behind, skips what its ring no longer has, and sends `reset`. The
//! feeds of all clients from one node share a connection, on which each has a window of its own.

mod cluster_stream;
mod node_events;
mod node_stream;
mod peer_feed;
mod sse_reader;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::Event as Message;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use futures_util::stream::{once, unfold};

pub(crate) use node_events::NodeEvents;

use super::RoutingState;
use crate::api::events::{self, EventFilter, EventText, LastEvent, NodeKey, NodePosition, StreamItem};
use crate::edge::query::{Query, bad_parameter};
use crate::error::{Error, ErrorCode, Result};
use crate::wire::error::ApiError;
use cluster_stream::ClusterStream;
use node_stream::NodeStream;

/// Where a node streams its own events to the others.
pub(crate) const PATH: &str = "/internal/events";
/// The name of the message that says how far a node's events were read.
const POSITION: &str = "position";
/// The name of the message that says that no event of a node follows.
const END: &str = "end";
/// The name of the message that says that events may be missing.
const RESET: &str = "reset";

/// Where the events of a node are read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FeedStart {
    Now,
    /// From the start of the node.
    Beginning,
    /// From there; from its start if it is another run.
    After(NodePosition),
}

impl fmt::Display for FeedStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Now => f.write_str("now"),
            Self::Beginning => f.write_str("beginning"),
            Self::After(position) => position.fmt(f),
        }
    }
}

impl FromStr for FeedStart {
    type Err = ();

    fn from_str(text: &str) -> std::result::Result<Self, ()> {
        match text {
            "now" => Ok(Self::Now),
            "beginning" => Ok(Self::Beginning),
            position => position.parse().map(Self::After),
        }
    }
}

/// What comes from the events of one node.
#[derive(Debug)]
pub(crate) enum FeedItem {
    /// Everything up to there was read; what did not pass the filter is left out.
    Progress(NodePosition),
    Event(NodePosition, EventText),
    /// Events may be missing.
    Gap,
    /// The node sent its last event.
    End,
    /// The node has left the cluster, with or without sending its last event.
    Gone {
        node: NodeKey,
        is_complete: bool,
    },
}

impl FeedItem {
    /// The message to another node.
    fn into_message(self) -> Message {
        let named = |name: &str| Message::default().event(name).data("{}");
        match self {
            Self::Progress(position) => named(POSITION).id(position.to_string()),
            Self::Event(position, text) => text.into_message(position.to_string()),
            Self::Gap => named(RESET),
            Self::End | Self::Gone { .. } => named(END),
        }
    }
}

/// Streams the events of all nodes to a client.
pub(crate) async fn stream(
    State(routing): State<Arc<RoutingState>>,
    headers: HeaderMap,
    mut query: Query,
) -> Response {
    let read = |query: &mut Query| Ok((LastEvent::read(&headers, query)?, EventFilter::read(query)?));
    let (last, wanted) = match read(&mut query).and_then(|asked| query.finish().map(|()| asked)) {
        Ok(asked) => asked,
        Err(error) => return ApiError(error).into_response(),
    };
    let (stream, opening) = ClusterStream::open(routing, wanted, last).await;
    let opening = once(async { StreamItem::Message(opening) });
    let items = unfold(stream, |mut stream| async move { Some((stream.next().await?, stream)) });
    events::respond(opening.chain(items))
}

/// Streams the events of this node to another one.
pub(crate) async fn of_this_node(State(routing): State<Arc<RoutingState>>, query: Query) -> Response {
    if routing.partitions.events().has_ended() {
        return ApiError(Error::new(ErrorCode::Stopping, "The server is shutting down.")).into_response();
    }
    let (from, wanted) = match read_feed(query) {
        Ok(asked) => asked,
        Err(error) => return ApiError(error).into_response(),
    };
    let stream = NodeStream::open(&routing.partitions, wanted, from);
    events::respond(unfold(stream, |mut stream| async move {
        Some((StreamItem::Message(stream.next().await?.into_message()), stream))
    }))
}

fn read_feed(mut query: Query) -> Result<(FeedStart, EventFilter)> {
    let wrong = |()| bad_parameter("from", "must be now, beginning, or a position");
    let from = query.take("from").map_or(Ok(FeedStart::Now), |from| from.parse().map_err(wrong))?;
    let wanted = EventFilter::read(&mut query)?;
    query.finish()?;
    Ok((from, wanted))
}
