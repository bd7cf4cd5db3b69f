//! A foreign API as a source: a question becomes a read of an upstream, which is an operation like
//! any other. It waits for the limits, is counted, and is canceled when no one can be waiting for
//! it any more.

use std::time::Duration;

use axum::body::to_bytes;
use tidegate_hydration::{EntityQuestion, EntitySource, SourceAnswer, SourceError, SourceFuture};
use tokio::time::timeout;

use super::entity_read::{EntityRead, read_answer};
use crate::config::SourceConfig;
use crate::pacing::caller::PacedCaller;
use crate::pacing::response::is_from_upstream;

/// The largest response, as on every bus.
const RESPONSE_LEN_MAX: usize = tidegate_core::bounds::BUS_PAYLOAD_LEN_MAX;

pub(super) struct UpstreamSource {
    config: SourceConfig,
    caller: PacedCaller,
    /// How long a read may take: after that, whoever still wants the entity has asked again.
    timeout: Duration,
}

impl UpstreamSource {
    pub(super) const fn new(config: SourceConfig, caller: PacedCaller, timeout: Duration) -> Self {
        Self { config, caller, timeout }
    }

    async fn read(&self, question: &EntityQuestion) -> Result<SourceAnswer, SourceError> {
        let EntityRead { method, path, body } = EntityRead::new(&self.config, question.key.id())?;
        let read = self.caller.call(&self.config.upstream, method, &path, body, &question.correlation_id);
        let response = read.await?;
        let status = response.status();
        if !is_from_upstream(&response) {
            return Err(format!("the upstream was not read; the call ended with status {status}").into());
        }
        let body = to_bytes(response.into_body(), RESPONSE_LEN_MAX).await?;
        read_answer(&self.config, status, &body)
    }
}

impl EntitySource for UpstreamSource {
    fn load<'a>(&'a self, question: &'a EntityQuestion) -> SourceFuture<'a> {
        Box::pin(async {
            // A read that is dropped is canceled, unless it is in flight. That is no failure of the
            // source: whoever still waits asks again.
            timeout(self.timeout, self.read(question)).await.unwrap_or_else(|_| {
                let (entity_type, entity_id) = (question.key.entity_type(), question.key.id());
                tracing::info!(
                    target: "tidegate::hydration",
                    entity_type,
                    entity_id,
                    "the limits of the upstream did not let it be read in time"
                );
                Ok(SourceAnswer::Later)
            })
        })
    }

    fn module(&self) -> Option<String> {
        Some(self.config.upstream.clone())
    }
}
