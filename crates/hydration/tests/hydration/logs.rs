//! What can be seen.

use std::io;
use std::sync::{Arc, Mutex};

use metrics_exporter_prometheus::PrometheusBuilder;
use serde_json::{Value, json};
use tidegate_bus::{Bus, InProcessBus};
use tidegate_hydration::{
    CorrelationId, EntityQuestion, EntitySource, GetOptions, Hydrator, MemoryCopies, SourceAnswer,
    SourceFuture, SourceServer,
};

use super::world::*;

#[derive(Clone, Default)]
struct LogLines(Arc<Mutex<Vec<u8>>>);

impl io::Write for LogLines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl LogLines {
    /// The fields of the lines with this message.
    fn with_message(&self, message: &str) -> Vec<Value> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.map(|line| line["fields"].clone()).filter(|fields| fields["message"] == message).collect()
    }
}

struct Customers;

impl EntitySource for Customers {
    fn load<'a>(&'a self, _: &'a EntityQuestion) -> SourceFuture<'a> {
        let data = object(json!({ "name": "secret" }));
        Box::pin(async { Ok(SourceAnswer::Found { data, version: None }) })
    }
}

/// HYD-15: both sides log entity, level, modules, correlation id, wait, and result; the data is in
/// no line. Metrics count what happened.
#[test]
fn hyd_15_both_sides_log_and_count() {
    let lines = LogLines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .json()
        .with_max_level(tracing_subscriber::filter::LevelFilter::DEBUG)
        .with_writer(move || writer.clone())
        .finish();
    let recorder = PrometheusBuilder::new().build_recorder();
    let handle = recorder.handle();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tracing::subscriber::with_default(subscriber, || {
        metrics::with_local_recorder(&recorder, || {
            runtime.block_on(async {
                let bus: Arc<dyn Bus> = Arc::new(InProcessBus::new());
                let _source =
                    SourceServer::start("customers", "customer", Arc::clone(&bus), Arc::new(Customers)).await;
                let copies = Arc::new(MemoryCopies::default());
                let hydrator = Hydrator::builder("orders", bus, copies).start().await.unwrap();
                let correlation_id = Some(CorrelationId::new("request-9").unwrap());
                let options = GetOptions { correlation_id, ..GetOptions::full() };
                for _ in 0..2 {
                    assert_eq!(name(&hydrator.get(&key("c-7"), &options).await), "secret");
                }
                hydrator.close().await;
            });
        });
    });
    let caller = &lines.with_message("hydrated")[..];
    let [caller] = caller else { panic!("{caller:?}") };
    for (field, value) in [
        ("entity_type", json!("customer")),
        ("entity_id", json!("c-7")),
        ("hydration_mode", json!("full")),
        ("requester_module", json!("orders")),
        ("correlation_id", json!("request-9")),
        ("wait_timeout_ms", json!(500)),
        ("negative_cache_hit", json!(false)),
        ("result", json!("updated")),
    ] {
        assert_eq!(caller[field], value, "{field}");
    }
    let source = &lines.with_message("answered a question")[0];
    assert_eq!(
        (&source["source_module"], &source["requester_module"]),
        (&json!("customers"), &json!("orders"))
    );
    assert!(source["correlation_id"].as_str().unwrap().starts_with("request-9."));
    assert!(!String::from_utf8_lossy(&lines.0.lock().unwrap()).contains("secret"));
    let metrics = handle.render();
    for line in
        ["hydration_published 1", "hydration_local_hit 1", "hydration_updated 1", "hydration_flights 0"]
    {
        assert!(metrics.lines().any(|found| found == line), "{line}: {metrics}");
    }
}
