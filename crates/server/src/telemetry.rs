//! The metrics at `/metrics`. What the engine counts itself is not counted again.

mod describe;
mod gauges;
mod otlp;
mod traces;

use std::sync::{Mutex, PoisonError};

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tokio::time::Instant;

use crate::error::{Error, ErrorCode, Result};
pub(crate) use gauges::{ReportedLimits, refresh};
pub(crate) use traces::TraceExporter;

const SECONDS: [f64; 16] =
    [0.0005, 0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0];
const COUNTS: [f64; 10] = [1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0];

static INSTALLED: Mutex<Option<PrometheusHandle>> = Mutex::new(None);

/// Installs the recorder of this process, once.
pub(crate) fn install() -> Result<PrometheusHandle> {
    let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(handle) = &*installed {
        return Ok(handle.clone());
    }
    let failed = |what: String| Error::new(ErrorCode::Internal, format!("Cannot set up metrics: {what}."));
    let recorder = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".into()), &SECONDS)
        .and_then(|builder| builder.set_buckets(&COUNTS))
        .map_err(|error| failed(error.to_string()))?
        .build_recorder();
    let handle = recorder.handle();
    metrics::set_global_recorder(recorder).map_err(|error| failed(error.to_string()))?;
    describe::describe();
    *installed = Some(handle.clone());
    Ok(handle)
}

pub(crate) fn record_accepted(started: Instant, deduplicated: bool) {
    metrics::histogram!("tidegate_accept_seconds").record(started.elapsed().as_secs_f64());
    if deduplicated {
        metrics::counter!("tidegate_operations_deduplicated_total").increment(1);
    }
}

pub(crate) fn record_refused(error: &Error) {
    metrics::counter!("tidegate_operations_refused_total", "code" => error.code.to_string()).increment(1);
}

pub(crate) fn record_drained(accepted: usize) {
    metrics::counter!("tidegate_outbox_accepted_total").increment(accepted as u64);
}

pub(crate) fn record_outbox_refused(error: &Error) {
    metrics::counter!("tidegate_outbox_refused_total", "code" => error.code.to_string()).increment(1);
}
