//! What every handler holds.

use std::sync::Arc;

use metrics_exporter_prometheus::PrometheusHandle;
use tidegate::Engine;
use tidegate_store::{Clock, Store};
use tokio_util::sync::CancellationToken;

use crate::config::Token;
use crate::edge::request_id::RequestIds;

/// Shared by all handlers.
pub(crate) struct App {
    pub engine: Engine,
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    pub tokens: Vec<Token>,
    pub metrics: PrometheusHandle,
    pub request_ids: RequestIds,
    /// The server is about to stop: streams and waits end.
    pub stopping: CancellationToken,
    /// How long a body may take to arrive.
    pub read_timeout: std::time::Duration,
}

/// The state of the router.
pub(crate) type Shared = Arc<App>;
