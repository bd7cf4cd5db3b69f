//! Notifies an open page of changes, at most twice a second however many there are, and now and
//! then without a change, so that its relative times stay correct.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::sse::{Event as Message, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::unfold;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

use crate::api::events::UNBUFFERED;
use crate::routing::RoutingState;
use crate::state::SharedPartition;

const AT_MOST_EVERY: Duration = Duration::from_millis(500);
const AT_LEAST_EVERY: Duration = Duration::from_secs(5);

pub(crate) async fn ticks(State(app): State<SharedPartition>) -> Response {
    tick_stream(app.engine.events(None).live, app.server.stopping.clone())
}

/// The same for the partitions of a node.
pub(crate) async fn ticks_of_node(State(routing): State<Arc<RoutingState>>) -> Response {
    tick_stream(routing.partitions.events().subscribe(), routing.server.stopping.clone())
}

/// A tick for the changes in `live`, until the server shuts down.
fn tick_stream<T: Clone + Send + 'static>(live: Receiver<T>, stopping: CancellationToken) -> Response {
    let ticks = unfold(ChangeListener { live, stopping }, |mut listener| async move {
        listener.change().await?;
        Some((Ok::<_, Infallible>(Message::default().event("tick").data("{}")), listener))
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
