//! Traces for a collector: `[telemetry]`.

use super::problem::ConfigProblem;
use super::read::read_public_url;
use super::section::Section;

/// The settings of traces.
#[derive(Clone, Debug, PartialEq)]
pub struct TelemetryConfig {
    /// The collector that traces are sent to, by OTLP over HTTP; without it there are none.
    pub otlp_endpoint: Option<String>,
    /// The name of this service in traces.
    pub service_name: String,
    /// The share of operations that are traced, 0 to 1.
    pub sampling_ratio: f64,
}

/// Reads the section.
pub(super) fn read(root: &mut Section<'_>, problems: &mut Vec<ConfigProblem>) -> Option<TelemetryConfig> {
    let mut section = root.section("telemetry", problems);
    let endpoint = section.text("otlp_endpoint", problems);
    let service_name = section.text("service_name", problems);
    let sampling_ratio = section.number("sampling_ratio", 0.0..=1.0, problems);
    section.finish(problems);
    let service_name = service_name?;
    if service_name.value.is_empty() {
        problems.push(service_name.problem("It must not be empty."));
        return None;
    }
    let otlp_endpoint = endpoint.and_then(|found| read_public_url(found, problems));
    let (service_name, sampling_ratio) = (service_name.value, sampling_ratio?.value);
    Some(TelemetryConfig { otlp_endpoint, service_name, sampling_ratio })
}
