//! The body of a client's request that is too large to be kept: it is passed on while it comes, and
//! a few pieces of it are in memory at a time.

use std::time::Duration;

use axum::body::{BodyDataStream, Bytes};
use futures_util::StreamExt;
use tidegate_upstream::http::stream::{BodySender, StreamedBody, channel};

use crate::edge::content::DISCARDED_MAX;

/// A body whose beginning has come. A piece of the rest is waited for at most `idle_max`.
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

/// Passes pieces on no faster than they are read. What does not come to its end breaks off.
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
                    // Whoever reads may have gone.
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

/// Reads what nobody wants any more, within a bound, so that the client hears the answer.
pub(crate) async fn discard(mut rest: BodyDataStream, idle_max: Duration) {
    let mut len = 0;
    while let Ok(Some(Ok(piece))) = tokio::time::timeout(idle_max, rest.next()).await
        && len < DISCARDED_MAX
    {
        len += piece.len();
    }
}
