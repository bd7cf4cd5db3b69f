//! Keys that people read: strings, hashes and sorted sets that expire by themselves.

use std::time::Duration;

use redis::pipe;
use tidegate_core::time::millis_up;
use tidegate_store::StoreFuture;
use tidegate_store::status_board::{StatusBoard, StatusEntry, StatusValue};

use crate::RedisStore;
use crate::errors::unusable;

impl StatusBoard for RedisStore {
    fn publish_status(
        &self,
        kind: &str,
        name: &str,
        entries: Vec<StatusEntry>,
        ttl: Duration,
    ) -> StoreFuture<'_, ()> {
        let mut commands = pipe();
        for StatusEntry { key, value } in entries {
            let key = self.keys.status(kind, name, key);
            commands.cmd("DEL").arg(&key);
            match value {
                StatusValue::Text(text) => {
                    commands.cmd("SET").arg(&key).arg(text);
                }
                StatusValue::Fields(fields) => {
                    let set = commands.cmd("HSET").arg(&key);
                    for (field, text) in fields {
                        set.arg(field).arg(text);
                    }
                }
                StatusValue::Ranked(names) if names.is_empty() => continue,
                StatusValue::Ranked(names) => {
                    let add = commands.cmd("ZADD").arg(&key);
                    for (name, number) in names {
                        add.arg(number).arg(name);
                    }
                }
            }
            commands.cmd("PEXPIRE").arg(&key).arg(millis_up(ttl));
        }
        Box::pin(async move {
            let sent = self.connection.send_all(&commands).await;
            sent.map(drop).map_err(|failed| unusable(self.connection.name(), failed))
        })
    }
}
