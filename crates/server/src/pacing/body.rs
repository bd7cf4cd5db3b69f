//! Streams a client's request body that is too large to be buffered, with only a few pieces of it
//! in memory at a time.

use std::time::Duration;

use axum::body::{BodyDataStream, Bytes};
use futures_util::StreamExt;
use tidegate_core::bounds::DISCARDED_LEN_MAX;
use tidegate_upstream::http::stream::{BodySender, StreamedBody, channel};

/// Streams a body whose beginning has arrived. Each further piece may take at most `idle_max`.
pub(crate) fn stream_body(
    first: Bytes,
    rest: Option<BodyDataStream>,
    len: Option<u64>,
    idle_max: Duration,
) -> StreamedBody {
    let (sender, body) = channel(len);
    tokio::spawn(pump(first, rest, sender, idle_max));
    body
}

/// Forwards pieces no faster than they are read. A body that does not end is cut off.
async fn pump(first: Bytes, rest: Option<BodyDataStream>, to: BodySender, idle_max: Duration) {
    let begun = to.send(first).await;
    if let Some(mut rest) = rest {
        let mut passed = begun;
        while passed.is_ok() {
            let piece = tokio::select! {
                piece = tokio::time::timeout(idle_max, rest.next()) => piece,
                () = to.closed() => break,
            };
            match piece {
                Ok(Some(Ok(piece))) => passed = to.send(piece).await,
                Ok(None) => {
                    // The reader may have been dropped.
                    let _ = to.end().await;
                    return;
                }
                Ok(Some(Err(_))) | Err(_) => return,
            }
        }
        discard(rest, idle_max).await;
    } else {
        let _ = to.end().await;
    }
}

/// Reads and drops the rest of a body, within a bound, so that the client receives the response.
pub(crate) async fn discard(mut rest: BodyDataStream, idle_max: Duration) {
    let mut len = 0;
    while let Ok(Some(Ok(piece))) = tokio::time::timeout(idle_max, rest.next()).await
        && len < DISCARDED_LEN_MAX
    {
        len += piece.len();
    }
}
