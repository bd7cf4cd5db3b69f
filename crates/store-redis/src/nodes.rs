//! Node membership in one hash, and hints through publish and subscribe. A listener has a
//! connection of its own; hints are lost while it reconnects.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::StreamExt;
use redis::aio::PubSub;
use redis::cmd;
use serde::{Deserialize, Serialize};
use tidegate_core::Time;
use tidegate_core::bounds::HINTS_WAITING_MAX;
use tidegate_core::id::Partition;
use tidegate_store::nodes::{Node, NodeRecord};
use tidegate_store::{Error, Hints, Nodes, Result, StoreErrorKind, StoreFuture};
use tokio::sync::mpsc;

use crate::connection::CommandFailure;
use crate::errors::{Delivery, undecided, unusable};
use crate::scripts::{self, ScriptCall};
use crate::subscriber::{Channels, Subscriber};
use crate::{RedisStore, reply, span};

/// How long a listener waits before it reconnects.
const PAUSE: Duration = Duration::from_millis(250);

impl RedisStore {
    /// Registers a node, or renews an existing one; `None` when it does not exist.
    async fn keep_node(
        &self,
        name: &str,
        record: Option<&NodeRecord>,
        ttl: Duration,
    ) -> Result<Option<Node>> {
        let call = ScriptCall::new(&scripts::NODE_REGISTER, [self.keys.nodes()])
            .with_arg(self.now())
            .with_arg(name)
            .with_arg(record.map(encode_record).transpose()?.unwrap_or_default())
            .with_arg(span(ttl))
            .with_arg(u8::from(record.is_none()));
        let answer = call.send(&self.connection).await;
        let answer =
            answer.map_err(|failed| undecided(self.connection.name(), "register the node", failed))?;
        let mut parts = reply::list(answer)?;
        if parts.is_empty() {
            return Ok(None);
        }
        let until = reply::time_at(&mut parts, 0)?;
        let record = parse_record(&reply::part_at::<String>(&mut parts, 1)?)?;
        Ok(Some(Node { name: name.to_owned(), record, until }))
    }

    async fn nodes_now(&self) -> Result<Vec<Node>> {
        let call = ScriptCall::new(&scripts::NODE_LIST, [self.keys.nodes()]).with_arg(self.now());
        let answer =
            call.send(&self.connection).await.map_err(|failed| unusable(self.connection.name(), failed))?;
        let mut words = reply::parsed::<Vec<String>>(answer)?.into_iter();
        let time =
            |text: &str| text.parse().map(Time::from_micros).map_err(|_| reply::unexpected_reply("a time"));
        let now = time(&words.next().unwrap_or_default())?;
        let mut nodes = Vec::new();
        while let (Some(name), Some(kept)) = (words.next(), words.next()) {
            let (until, record) = kept.split_once(' ').ok_or_else(|| reply::unexpected_reply("a node"))?;
            let until = time(until)?;
            if until > now {
                nodes.push(Node { name, record: parse_record(record)?, until });
            }
        }
        nodes.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(nodes)
    }
}

/// A record as it is stored.
#[derive(Serialize, Deserialize)]
struct StoredRecord<'a> {
    #[serde(borrow)]
    address: Cow<'a, str>,
    leaving: bool,
    unreadable: BTreeSet<Partition>,
    #[serde(borrow)]
    placement_hash: Option<Cow<'a, str>>,
}

fn encode_record(record: &NodeRecord) -> Result<String> {
    let stored = StoredRecord {
        address: record.address.as_str().into(),
        leaving: record.leaving,
        unreadable: record.unreadable.clone(),
        placement_hash: record.placement_hash.as_deref().map(Cow::Borrowed),
    };
    serde_json::to_string(&stored).map_err(|cause| {
        Error::new(StoreErrorKind::Invalid, "the record of the node cannot be written").with_source(cause)
    })
}

fn parse_record(text: &str) -> Result<NodeRecord> {
    // A node of an earlier format registers its address, and words that only such nodes read.
    if !text.starts_with('{') {
        return Ok(NodeRecord::at(text.split(' ').next().unwrap_or_default()));
    }
    let stored: StoredRecord<'_> =
        serde_json::from_str(text).map_err(|_| reply::unexpected_reply("the record of a node"))?;
    Ok(NodeRecord {
        address: stored.address.into_owned(),
        leaving: stored.leaving,
        unreadable: stored.unreadable,
        placement_hash: stored.placement_hash.map(Cow::into_owned),
    })
}

/// Passes hints on until no one listens any more. Reconnects when the connection is lost.
async fn pass_on(ears: Subscriber, channel: Channels, first: PubSub, listener: mpsc::Sender<String>) {
    let mut ear = Some(first);
    loop {
        if let Some(ear) = ear.take() {
            let mut hints = ear.into_on_message();
            loop {
                tokio::select! {
                    () = listener.closed() => return,
                    hint = hints.next() => {
                        let Some(hint) = hint else { break };
                        if let Ok(text) = hint.get_payload() {
                            // A slow listener loses hints: no one waits for it.
                            let _ = listener.try_send(text);
                        }
                    }
                }
            }
        }
        tokio::select! {
            () = listener.closed() => return,
            () = tokio::time::sleep(PAUSE) => ear = ears.subscribe(&channel).await.ok(),
        }
    }
}

impl Nodes for RedisStore {
    fn register(&self, name: &str, record: &NodeRecord, ttl: Duration) -> StoreFuture<'_, Node> {
        let (name, record) = (name.to_owned(), record.clone());
        Box::pin(async move {
            let node = self.keep_node(&name, Some(&record), ttl).await?;
            node.ok_or_else(|| reply::unexpected_reply("a node"))
        })
    }

    fn heartbeat(&self, name: &str, ttl: Duration) -> StoreFuture<'_, Node> {
        let name = name.to_owned();
        Box::pin(async move {
            let node = self.keep_node(&name, None, ttl).await?;
            node.ok_or_else(|| {
                Error::new(StoreErrorKind::Invalid, format!("the node {name} is not registered"))
            })
        })
    }

    fn list_nodes(&self) -> StoreFuture<'_, Vec<Node>> {
        Box::pin(self.nodes_now())
    }
}

impl Hints for RedisStore {
    fn notify(&self, topic: &str, hint: &str) -> StoreFuture<'_, usize> {
        let mut publish = cmd("PUBLISH");
        publish.arg(self.keys.channel(topic)).arg(hint);
        Box::pin(async move {
            let answer = self.connection.send(&publish).await;
            reply::parsed(answer.map_err(|failed| unusable(self.connection.name(), failed))?)
        })
    }

    fn listen(&self, topic: &str) -> StoreFuture<'_, mpsc::Receiver<String>> {
        let channel = Channels::Exact(self.keys.channel(topic));
        Box::pin(async move {
            let ears = self.connection.subscriber();
            let first = ears.subscribe(&channel).await;
            let first = first.map_err(|cause| {
                unusable(self.connection.name(), CommandFailure { delivery: Delivery::NoEffect, cause })
            })?;
            let (listener, hints) = mpsc::channel(HINTS_WAITING_MAX);
            tokio::spawn(pass_on(ears, channel, first, listener));
            Ok(hints)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let record = NodeRecord {
            address: "10.0.0.2:7400".into(),
            leaving: true,
            unreadable: [3, 12].into(),
            placement_hash: Some("7f".into()),
        };
        let text = encode_record(&record).unwrap();
        let frozen =
            r#"{"address":"10.0.0.2:7400","leaving":true,"unreadable":[3,12],"placement_hash":"7f"}"#;
        assert_eq!(text, frozen);
        assert_eq!(parse_record(frozen).unwrap(), record);
        let earlier = parse_record("10.0.0.2:7400 leaving without=3").unwrap();
        assert_eq!(earlier, NodeRecord::at("10.0.0.2:7400"));
        assert_eq!(parse_record("").unwrap(), NodeRecord::default());
    }
}
