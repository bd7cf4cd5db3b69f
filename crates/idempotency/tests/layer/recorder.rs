//! A recorder of one test's own.

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

/// What is counted on this thread while it lives.
pub(crate) struct TestRecorder<'a> {
    handle: PrometheusHandle,
    _guard: metrics::LocalRecorderGuard<'a>,
}

/// Runs `test` with a recorder of its own.
pub(crate) fn counting() -> TestRecorder<'static> {
    let recorder = Box::leak(Box::new(PrometheusBuilder::new().build_recorder()));
    TestRecorder { handle: recorder.handle(), _guard: metrics::set_default_local_recorder(recorder) }
}

impl TestRecorder<'_> {
    /// How often something was counted.
    pub(crate) fn of(&self, name: &str) -> u64 {
        let text = self.handle.render();
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|count| count.trim().parse().ok()).unwrap_or_default()
    }
}
