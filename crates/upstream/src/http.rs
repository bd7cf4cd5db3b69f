//! Sends requests to configured upstreams, by name, over HTTP. Each upstream has a gate of its own
//! name, which a 429 closes, and a dialect that defines the further charges of a request and the
//! meaning of a response; the plain dialect learns nothing.

pub mod config;
mod connect;
mod connections;
pub mod dialect;
#[doc(hidden)]
pub mod download;
#[doc(hidden)]
pub mod exchange;
mod jobs;
mod limit_reset;
pub mod plain;
mod proxying;
pub mod response;
#[doc(hidden)]
pub mod response_relay;
#[doc(hidden)]
pub mod result;
#[doc(hidden)]
pub mod send;
#[doc(hidden)]
pub mod send_state;
#[doc(hidden)]
pub mod stream;
pub mod target;

// What is hidden serves the dialects, proxies and clients of Tidegate itself, and may change with
// any version.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tidegate_core::bounds::UPSTREAM_NAME_LEN_MAX;
use tidegate_core::{Fault, FaultClass, OnUnknown, Verdict};

pub use config::{LimitConfig, LimitKind, TokenHeader, UpstreamConfig};
pub use connect::{TlsConnector, tls_connector};
pub use dialect::{Dialect, LimitDefinition, Meaning, ResponseInterpreter};
pub use plain::{ConfiguredLimits, PlainDialect};
#[doc(hidden)]
pub use response_relay::{CompleteResponse, ResponseRelay, ResponseWaiter, StreamingResponse};

use crate::port::{
    AcceptedJob, Call, CallFuture, CallRequirements, CallbackMeaning, FieldRefusal, Outcome, Upstream,
    is_same_json,
};
use crate::request::{Envelope, RequestLine, RequestView};
use send::Sender;

/// The configured upstreams.
pub struct HttpUpstreams {
    by_name: BTreeMap<String, ConfiguredUpstream>,
    response_relay: ResponseRelay,
    /// Where services call back.
    callback_base: Option<String>,
}

/// One upstream with everything a call needs.
struct ConfiguredUpstream {
    dialect: Arc<dyn Dialect>,
    sender: Sender,
}

impl HttpUpstreams {
    /// Validates the configuration, with the plain dialect for each upstream; opens no connection.
    ///
    /// # Errors
    /// Names the first upstream and field that are invalid.
    pub fn new(configs: Vec<UpstreamConfig>) -> Result<Self, FieldRefusal> {
        let plain = |config: UpstreamConfig| {
            let dialect = PlainDialect::new(&config.name, &config.limits);
            (config, Arc::new(dialect) as Arc<dyn Dialect>)
        };
        Self::with_dialects(configs.into_iter().map(plain).collect())
    }

    /// Validates the configuration, with a dialect for each upstream; opens no connection.
    ///
    /// # Errors
    /// Names the first upstream and field that are invalid.
    pub fn with_dialects(configs: Vec<(UpstreamConfig, Arc<dyn Dialect>)>) -> Result<Self, FieldRefusal> {
        let mut by_name = BTreeMap::new();
        for (mut config, dialect) in configs {
            config.validate()?;
            config.server_errors.get_or_insert_with(|| dialect.server_errors());
            let configured = ConfiguredUpstream { dialect, sender: Sender::new(&config)? };
            if by_name.insert(config.name.clone(), configured).is_some() {
                return Err(config.refuse("name", "Two upstreams have this name."));
            }
        }
        Ok(Self { by_name, response_relay: ResponseRelay::default(), callback_base: None })
    }

    /// Relays awaited responses through `handover`.
    #[must_use]
    pub fn with_response_relay(self, handover: ResponseRelay) -> Self {
        Self { response_relay: handover, ..self }
    }

    /// The limits that must be set in the model before anything is sent: for each upstream its
    /// gate, then its limits.
    #[must_use]
    pub fn limits(&self) -> Vec<LimitDefinition> {
        self.by_name.values().flat_map(|upstream| upstream.dialect.limits()).collect()
    }

    /// The names of the upstreams, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }

    fn find(&self, name: &str) -> Result<&ConfiguredUpstream, FieldRefusal> {
        self.by_name.get(name).ok_or_else(|| {
            let known: Vec<_> = self.names().collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            let name: String = name.chars().take(UPSTREAM_NAME_LEN_MAX).collect();
            FieldRefusal::new("upstream", format!("No upstream is called {name:?}; configured: {known}."))
        })
    }

    /// Decodes the payload and finds its upstream.
    fn read(&self, payload: &[u8]) -> Result<(Envelope, &ConfiguredUpstream), FieldRefusal> {
        let envelope = Envelope::decode(payload)?;
        let upstream = self.find(&envelope.upstream)?;
        upstream.sender.check(&envelope.request)?;
        Ok((envelope, upstream))
    }

    async fn attempt(&self, call: Call<'_>) -> Outcome {
        match self.read(call.payload) {
            Ok((envelope, upstream))
                if call.reconcile_first
                    && upstream.dialect.on_unknown(&envelope.request) == OnUnknown::Ask =>
            {
                Outcome::unanswered(Verdict::Unknown(cannot_reconcile(&envelope)))
            }
            Ok((envelope, upstream)) => {
                let rules = envelope.completion_rules().ok().flatten();
                let Envelope { mut request, proxied, .. } = envelope;
                let reader = upstream.dialect.prepare_request(&mut request, call.operation);
                match (proxied, rules) {
                    (Some(proxied), _) => self.send_proxied(upstream, request, reader, &proxied, call).await,
                    (None, Some(rules)) => self.submit_job(upstream, request, &rules, reader, call).await,
                    (None, None) => upstream.sender.send(request, reader, call).await,
                }
            }
            // It was accepted before; the configuration has changed since.
            Err(refusal) => Outcome::unanswered(stale_payload_verdict(&refusal)),
        }
    }
}

/// How long to wait before checking whether a missing upstream has returned.
const MISSING: Duration = Duration::from_secs(15);

/// An upstream missing from the configuration may be a typo: operations accepted for it wait. An
/// operation that no longer fits its existing upstream fails.
fn stale_payload_verdict(refusal: &FieldRefusal) -> Verdict {
    let fault = Fault::new(FaultClass::Validation, format!("It was not sent: {refusal}"));
    if refusal.field == "upstream" {
        return Verdict::Throttled { after: Some(MISSING), scope: None, fault };
    }
    Verdict::Rejected(fault)
}

/// Plain HTTP cannot check whether a request took effect, and nothing is retried blindly.
fn cannot_reconcile(envelope: &Envelope) -> Fault {
    let (method, upstream) = (envelope.request.method, &envelope.upstream);
    let message =
        format!("{method} to {upstream} was not sent again: whether it took effect cannot be checked.");
    Fault::new(FaultClass::Transient, message)
}

impl Upstream for HttpUpstreams {
    fn check(&self, payload: &[u8], cost: &BTreeMap<String, u64>) -> Result<CallRequirements, FieldRefusal> {
        let (envelope, upstream) = self.read(payload)?;
        self.check_callback(&envelope)?;
        let charges = upstream.dialect.charges(&envelope.request, cost)?;
        let opens = upstream.dialect.limits_to_open(&envelope.request, &charges);
        let on_unknown = upstream.dialect.on_unknown(&envelope.request);
        Ok(CallRequirements::new(charges).with_opens(opens).with_on_unknown(on_unknown))
    }

    fn difference(&self, one: &[u8], other: &[u8]) -> Option<&'static str> {
        match (Envelope::decode(one), Envelope::decode(other)) {
            (Ok(one), Ok(other)) => one.difference(&other),
            _ => (!is_same_json(one, other)).then_some("request"),
        }
    }

    fn job_response<'a>(&self, memo: &'a [u8]) -> &'a [u8] {
        jobs::JobMemo::decode(memo).response
    }

    fn request_line(&self, payload: &[u8]) -> Option<RequestLine> {
        let Envelope { request, .. } = Envelope::decode(payload).ok()?;
        Some(RequestLine::of_request(&request))
    }

    fn request_view(&self, payload: &[u8]) -> RequestView {
        let Ok(Envelope { request, proxied, completion, .. }) = Envelope::decode(payload) else {
            return RequestView::of_payload(payload);
        };
        RequestView::of_request(&request, proxied.is_some_and(|proxied| proxied.streamed))
            .with_completion(completion.as_deref())
    }

    fn rerun_refusal(&self, payload: &[u8]) -> Option<&'static str> {
        let is_streamed = |envelope: Envelope| envelope.proxied.is_some_and(|proxied| proxied.streamed);
        let is_gone = Envelope::decode(payload).is_ok_and(is_streamed);
        is_gone.then_some("Its body was streamed and not kept, so that it cannot be sent again.")
    }

    fn read_callback(&self, payload: &[u8], content: &[u8]) -> Option<CallbackMeaning> {
        jobs::read_callback(payload, content)
    }

    fn carry<'a>(&'a self, call: Call<'a>) -> CallFuture<'a> {
        Box::pin(self.attempt(call))
    }

    fn poll<'a>(&'a self, call: Call<'a>, job: AcceptedJob<'a>) -> CallFuture<'a> {
        Box::pin(self.poll_job(call, job))
    }
}

impl fmt::Debug for HttpUpstreams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}
