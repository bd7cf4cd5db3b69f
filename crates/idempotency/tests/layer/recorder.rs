//! A metrics recorder for one test.

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

/// The metrics of this thread while it lives.
pub(crate) struct TestRecorder<'a> {
    handle: PrometheusHandle,
    _guard: metrics::LocalRecorderGuard<'a>,
}

/// Installs a recorder for the current test.
pub(crate) fn counting() -> TestRecorder<'static> {
    let recorder = Box::leak(Box::new(PrometheusBuilder::new().build_recorder()));
    TestRecorder { handle: recorder.handle(), _guard: metrics::set_default_local_recorder(recorder) }
}

impl TestRecorder<'_> {
    /// The value of a counter.
    pub(crate) fn of(&self, name: &str) -> u64 {
        let text = self.handle.render();
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|count| count.trim().parse().ok()).unwrap_or_default()
    }
}
