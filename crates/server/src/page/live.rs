//! Notifies an open page of changes, at most once a second however many there are, and now and
//! then without a change, so that its relative times stay correct. Each tick says whether the store
//! is away.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::sse::{Event as Message, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::unfold;
use serde_json::json;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

use crate::api::events::UNBUFFERED;
use crate::routing::RoutingState;
use crate::state::{ServerState, SharedPartition};
use crate::wire::time::Timestamp;

const AT_MOST_EVERY: Duration = Duration::from_secs(1);
const AT_LEAST_EVERY: Duration = Duration::from_secs(5);

pub(crate) async fn ticks(State(app): State<SharedPartition>) -> Response {
    tick_stream(app.engine.events(None).live, &app.server)
}

/// The same for the partitions of a node.
pub(crate) async fn ticks_of_node(State(routing): State<Arc<RoutingState>>) -> Response {
    tick_stream(routing.partitions.events().subscribe(), &routing.server)
}

/// A tick for the changes in `live`, until the server shuts down.
fn tick_stream<T: Clone + Send + 'static>(live: Receiver<T>, server: &Arc<ServerState>) -> Response {
    let (server, stopping) = (Arc::clone(server), server.stopping.clone());
    let ticks = unfold((ChangeListener { live, stopping }, server), |(mut listener, server)| async move {
        listener.change().await?;
        let away_since = server.page.store_watch.away_since(&*server.store, &*server.clock).await;
        let tick = json!({ "store_away_since": away_since.map(Timestamp) });
        let message = Message::default().event("tick").data(tick.to_string());
        Some((Ok::<_, Infallible>(message), (listener, server)))
    });
    (UNBUFFERED, Sse::new(ticks)).into_response()
}

struct ChangeListener<T> {
    live: Receiver<T>,
    stopping: CancellationToken,
}

impl<T: Clone> ChangeListener<T> {
    /// Waits for a change; `None` if the server shuts down.
    async fn change(&mut self) -> Option<()> {
        let wait = async {
            tokio::time::sleep(AT_MOST_EVERY).await;
            let more = AT_LEAST_EVERY - AT_MOST_EVERY;
            let next = tokio::time::timeout(more, self.live.recv()).await;
            // All changes in the meantime count as one.
            self.live = self.live.resubscribe();
            !matches!(next, Ok(Err(RecvError::Closed)))
        };
        tokio::select! {
            open = wait => open.then_some(()),
            () = self.stopping.cancelled() => None,
        }
    }
}
