//! Sends the traces of ended operations to a collector, by OTLP over HTTP. They wait in a bounded
//! queue: when the collector is away they are dropped and counted, and nothing else waits for it.

use std::time::Duration;

use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::http::{HeaderMap, Method};
use tidegate::{EndedJourney, JourneySink};
use tidegate_upstream::http::exchange::{Exchange, OneRequest};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout, timeout_at};

use super::otlp::{self, Resource};
use crate::config::Config;

/// Operations that wait to be exported.
const QUEUE_MAX: usize = 8_192;
/// Operations in one request.
const BATCH_MAX: usize = 256;
/// How long a batch is collected.
const BATCH_EVERY: Duration = Duration::from_secs(2);
/// How often a batch is sent.
const TRIES: u32 = 3;
/// The pause after a batch that was not taken, twice as long after the next.
const PAUSE: Duration = Duration::from_secs(1);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);
const RESPONSE_LEN_MAX: usize = 64 * 1024;
/// How long a shutdown waits for the last batch.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// What waits in the queue.
enum QueueItem {
    Ended(Box<EndedJourney>),
    /// Export what is there, and say so.
    Flush(oneshot::Sender<()>),
}

/// Sends traces, if a collector is configured.
#[derive(Debug)]
pub(crate) struct TraceExporter(Option<TraceQueue>);

#[derive(Clone, Debug)]
struct TraceQueue {
    sender: mpsc::Sender<QueueItem>,
    sampling_ratio: f64,
}

impl TraceExporter {
    /// Starts the exporter, in a task of the current runtime.
    pub(crate) fn start(config: &Config) -> Self {
        let telemetry = &config.telemetry;
        let Some(endpoint) = &telemetry.otlp_endpoint else { return Self(None) };
        let (sender, queue) = mpsc::channel(QUEUE_MAX);
        let collector = Collector {
            url: format!("{}/v1/traces", endpoint.trim_end_matches('/')),
            resource: Resource { service_name: telemetry.service_name.clone(), node: config.node.clone() },
            exchange: Exchange::new(CONNECT_TIMEOUT),
        };
        tokio::spawn(collector.run(queue));
        Self(Some(TraceQueue { sender, sampling_ratio: telemetry.sampling_ratio }))
    }

    /// Where engines report the operations that end.
    pub(crate) fn sink(&self) -> Option<JourneySink> {
        let queue = self.0.clone()?;
        Some(JourneySink::new(move |ended| queue.add(ended)))
    }

    /// Exports what is in the queue, within a moment.
    pub(crate) async fn flush(&self) {
        let Some(queue) = &self.0 else { return };
        let (done, flushed) = oneshot::channel();
        let flush = async {
            if queue.sender.send(QueueItem::Flush(done)).await.is_ok() {
                let _ = flushed.await;
            }
        };
        if timeout(FLUSH_TIMEOUT, flush).await.is_err() {
            tracing::warn!("the collector did not take the last traces in time");
        }
    }
}

impl TraceQueue {
    /// Never waits: what does not fit is dropped.
    fn add(&self, ended: EndedJourney) {
        if otlp::is_sampled(otlp::trace_id(ended.id), self.sampling_ratio)
            && self.sender.try_send(QueueItem::Ended(Box::new(ended))).is_err()
        {
            count_dropped("queue_full", 1);
        }
    }
}

/// A collector, and what is said to it.
struct Collector {
    url: String,
    resource: Resource,
    exchange: Exchange,
}

impl Collector {
    async fn run(self, mut queue: mpsc::Receiver<QueueItem>) {
        let mut is_away = false;
        while let Some(first) = queue.recv().await {
            let (mut batch, mut waiting) = (Vec::new(), None);
            let mut next = Some(first);
            let end = Instant::now() + BATCH_EVERY;
            while let Some(item) = next.take() {
                match item {
                    QueueItem::Ended(ended) => batch.push(*ended),
                    QueueItem::Flush(done) => waiting = Some(done),
                }
                if batch.len() < BATCH_MAX && waiting.is_none() {
                    next = timeout_at(end, queue.recv()).await.ok().flatten();
                }
            }
            let problem = self.export(&batch).await.err();
            log_change(&mut is_away, problem);
            if let Some(done) = waiting {
                // A shutdown may have waited long enough.
                let _ = done.send(());
            }
        }
    }

    /// Sends a batch, a few times if the collector is away or asks for it.
    ///
    /// # Errors
    /// Why it was dropped.
    async fn export(&self, batch: &[EndedJourney]) -> Result<(), String> {
        if batch.is_empty() {
            return Ok(());
        }
        let body = otlp::encode(&self.resource, batch).map_err(|error| error.to_string())?;
        let mut problem = String::new();
        for attempt in 0..TRIES {
            if attempt > 0 {
                tokio::time::sleep(PAUSE * (1 << (attempt - 1))).await;
            }
            match self.send(body.clone()).await {
                Ok(status) if (200..300).contains(&status) => {
                    metrics::counter!("tidegate_traces_exported_total").increment(batch.len() as u64);
                    return Ok(());
                }
                Ok(status @ (429 | 502 | 503 | 504)) => problem = format!("it returned {status}"),
                Ok(status) => {
                    count_dropped("refused", batch.len());
                    return Err(format!("it returned {status}"));
                }
                Err(why) => problem = why,
            }
        }
        count_dropped("unreachable", batch.len());
        Err(problem)
    }

    async fn send(&self, body: String) -> Result<u16, String> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let request = OneRequest { method: Method::POST, url: self.url.clone(), headers, body: body.into() };
        let response = self.exchange.send(request, RESPONSE_TIMEOUT, RESPONSE_LEN_MAX).await;
        response.map(|response| response.status).map_err(|error| error.reason)
    }
}

fn count_dropped(reason: &'static str, count: usize) {
    metrics::counter!("tidegate_traces_dropped_total", "reason" => reason).increment(count as u64);
}

/// Logs when the collector is away and when it is back, once each.
fn log_change(is_away: &mut bool, problem: Option<String>) {
    match problem {
        Some(problem) if !*is_away => {
            tracing::warn!(problem, "the collector takes no traces; they are dropped and counted");
            *is_away = true;
        }
        None if *is_away => {
            tracing::info!("the collector takes traces again");
            *is_away = false;
        }
        _ => {}
    }
}
