//! How a stream of events is sent: messages as they come, and while there are none a comment, or
//! the position if events that the client does not want have moved it.

use std::convert::Infallible;

use axum::response::sse::{Event as Message, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::unfold;
use futures_util::{Stream, StreamExt};
use tokio::time::{Instant, sleep_until};

use super::{COMMENT_EVERY, UNBUFFERED};

/// What a stream of events has next.
pub(crate) enum StreamItem {
    Message(Message),
    /// The client has everything up to this id.
    Position(String),
}

/// Sends what comes.
pub(crate) fn respond(items: impl Stream<Item = StreamItem> + Send + 'static) -> Response {
    (UNBUFFERED, Sse::new(with_signs_of_life(items))).into_response()
}

fn with_signs_of_life(
    items: impl Stream<Item = StreamItem> + Send + 'static,
) -> impl Stream<Item = Result<Message, Infallible>> + Send {
    unfold((items.boxed(), None), |(mut items, mut position)| async move {
        let silent_at = Instant::now() + COMMENT_EVERY;
        let message = loop {
            // The stream is polled, not a future of one item: nothing of an item is lost.
            let item = tokio::select! {
                biased;
                () = sleep_until(silent_at) => break match position.take() {
                    Some(position) => Message::default().id(position),
                    None => Message::default().comment(""),
                },
                item = items.next() => item?,
            };
            match item {
                StreamItem::Message(message) => {
                    position = None;
                    break message;
                }
                StreamItem::Position(id) => position = Some(id),
            }
        };
        Some((Ok(message), (items, position)))
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::stream::iter;
    use tokio::sync::mpsc;

    use super::*;

    /// The text of the next message, and after how many seconds it came.
    async fn next(stream: &mut (impl Stream<Item = Result<Message, Infallible>> + Unpin)) -> (String, u64) {
        let from = Instant::now();
        let Ok(message) = stream.next().await.unwrap();
        (format!("{message:?}"), from.elapsed().as_secs())
    }

    /// A quiet stream says where it is when that has changed, and is never silent for long.
    #[tokio::test(start_paused = true)]
    async fn a_stream_without_events_says_where_it_is() {
        let (sender, receiver) = mpsc::channel(8);
        let items = unfold(receiver, |mut items| async move { Some((items.recv().await?, items)) });
        let mut stream = with_signs_of_life(items).boxed();
        let (text, waited) = next(&mut stream).await;
        assert!(text.contains(": \\n") && !text.contains("id") && waited == 15, "{text} after {waited}");
        for id in ["7", "8"] {
            sender.send(StreamItem::Position(id.to_owned())).await.ok().unwrap();
        }
        let (text, waited) = next(&mut stream).await;
        assert!(text.contains("id: 8") && waited == 15, "{text} after {waited}");
        let (text, _) = next(&mut stream).await;
        assert!(!text.contains("id"), "once: {text}");
        sender.send(StreamItem::Position("9".to_owned())).await.ok().unwrap();
        sender.send(StreamItem::Message(Message::default().id("10").data("x"))).await.ok().unwrap();
        let (text, waited) = next(&mut stream).await;
        assert!(text.contains("id: 10") && waited == 0, "{text} after {waited}");
        tokio::time::advance(Duration::from_secs(1)).await;
        let (text, _) = next(&mut stream).await;
        assert!(!text.contains("id"), "an earlier position is not sent: {text}");
        drop(sender);
        assert!(stream.next().await.is_none());
    }

    /// What does not pass the filter does not delay a comment.
    #[tokio::test(start_paused = true)]
    async fn positions_do_not_keep_a_stream_silent() {
        let every = Duration::from_secs(10);
        let items = iter(1..).then(move |id: u32| async move {
            tokio::time::sleep(every).await;
            StreamItem::Position(id.to_string())
        });
        let mut stream = with_signs_of_life(items).boxed();
        let (text, waited) = next(&mut stream).await;
        assert!(text.contains("id: 1") && waited == 15, "{text} after {waited}");
    }
}
