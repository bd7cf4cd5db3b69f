//! Requests to configured upstreams, by name, over HTTP. Each upstream has a gate of its own name, which a 429 closes,
//! and a dialect that says what else a request charges and what an answer means; the plain one learns nothing.

pub mod answer;
pub mod config;
mod connect;
mod connections;
pub mod dialect;
pub mod download;
pub mod handover;
pub mod plain;
pub mod result;
pub mod send;
pub mod target;
pub mod withdraw;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tidegate_core::{Fault, FaultClass, OnUnknown, Verdict};

pub use config::{LimitConfig, LimitKind, TokenHeader, UpstreamConfig};
pub use dialect::{Dialect, MadeLimit, Meaning, Reader};
pub use handover::{Expected, Handover, Whole};
pub use plain::Plain;

use crate::port::{Call, Carrying, Checked, Outcome, Refusal, Upstream};
use crate::request::{Envelope, HttpRequest, Proxied};
use send::Sender;

/// The configured upstreams.
pub struct HttpUpstreams {
    by_name: BTreeMap<String, Configured>,
    handover: Handover,
}

/// One upstream with all that a call needs.
struct Configured {
    dialect: Arc<dyn Dialect>,
    sender: Sender,
}

impl HttpUpstreams {
    /// Takes the configuration, checked, with the plain dialect for each; opens no connection.
    ///
    /// # Errors
    /// Names the first upstream and field that cannot be used.
    pub fn new(configs: Vec<UpstreamConfig>) -> Result<Self, Refusal> {
        let plain = |config: UpstreamConfig| {
            let dialect = Plain::new(&config.name, &config.limits);
            (config, Arc::new(dialect) as Arc<dyn Dialect>)
        };
        Self::with_dialects(configs.into_iter().map(plain).collect())
    }

    /// Takes the configuration, checked, with a dialect for each; opens no connection.
    ///
    /// # Errors
    /// Names the first upstream and field that cannot be used.
    pub fn with_dialects(configs: Vec<(UpstreamConfig, Arc<dyn Dialect>)>) -> Result<Self, Refusal> {
        let mut by_name = BTreeMap::new();
        for (config, dialect) in configs {
            config.validate()?;
            let configured = Configured { dialect, sender: Sender::new(&config)? };
            if by_name.insert(config.name.clone(), configured).is_some() {
                return Err(config.refuse("name", "Two upstreams have this name."));
            }
        }
        Ok(Self { by_name, handover: Handover::default() })
    }

    /// Hands answers that are waited for over here.
    #[must_use]
    pub fn handing_over(self, handover: Handover) -> Self {
        Self { handover, ..self }
    }

    /// What must be set in the model before anything is carried: for each upstream its gate, then its limits.
    #[must_use]
    pub fn limits(&self) -> Vec<MadeLimit> {
        self.by_name.values().flat_map(|upstream| upstream.dialect.limits()).collect()
    }

    /// The names of the upstreams, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }

    fn find(&self, name: &str) -> Result<&Configured, Refusal> {
        self.by_name.get(name).ok_or_else(|| {
            let known: Vec<_> = self.names().collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            let name: String = name.chars().take(config::NAME_LEN_MAX).collect();
            Refusal::new("upstream", format!("No upstream is called {name:?}; configured: {known}."))
        })
    }

    /// The payload, and the upstream that is to get it.
    fn read(&self, payload: &[u8]) -> Result<(Envelope, &Configured), Refusal> {
        let envelope = Envelope::decode(payload)?;
        let upstream = self.find(&envelope.upstream)?;
        upstream.sender.check(&envelope.request)?;
        Ok((envelope, upstream))
    }

    async fn attempt(&self, call: Call<'_>) -> Outcome {
        match self.read(call.payload) {
            Ok((envelope, upstream))
                if call.look_first && upstream.dialect.on_unknown(&envelope.request) == OnUnknown::Ask =>
            {
                Outcome::unanswered(Verdict::Unknown(cannot_look(&envelope)))
            }
            Ok((Envelope { mut request, proxied, .. }, upstream)) => {
                let reader = upstream.dialect.ready(&mut request, call.operation);
                match proxied {
                    Some(proxied) => self.pass(upstream, request, reader, &proxied, call).await,
                    None => upstream.sender.send(request, reader, call).await,
                }
            }
            // It was accepted once; the configuration has changed since.
            Err(refusal) => Outcome::unanswered(no_longer_fits(&refusal)),
        }
    }
}

impl HttpUpstreams {
    /// The same for a client that waits for the answer itself. Whatever it gets is an answer, also where it is pointed
    /// elsewhere.
    async fn pass(
        &self,
        upstream: &Configured,
        request: HttpRequest,
        reader: Option<Box<dyn Reader + '_>>,
        proxied: &Proxied,
        call: Call<'_>,
    ) -> Outcome {
        self.handover.put(&proxied.ticket, None);
        let asked = upstream.sender.asked(request.method);
        let accept = request.header("accept-encoding").map(str::to_owned);
        let received = match upstream.sender.receive(request, call).await {
            Ok(answer) => answer,
            Err(missed) => return missed,
        };
        let as_it_came = received.is_readable_to(accept.as_deref()).then(|| Whole::from(&received));
        let answer = received.decoded(upstream.sender.response_max_bytes()).await;
        self.handover.put(&proxied.ticket, Some(as_it_came.unwrap_or_else(|| Whole::from(&answer))));
        let mut outcome = answer.outcome(&asked, reader);
        if outcome.status.is_some_and(|status| (300..400).contains(&status)) {
            outcome.verdict = Verdict::Done;
        }
        outcome
    }
}

/// How long to wait before looking whether an upstream that is missing has come back.
const MISSING: Duration = Duration::from_secs(15);

/// An upstream that is gone from the configuration may be a slip of the pen: what was accepted for it waits. What no
/// longer fits the upstream that is there fails.
fn no_longer_fits(refusal: &Refusal) -> Verdict {
    let fault = Fault::new(FaultClass::Validation, format!("It was not sent: {refusal}"));
    if refusal.field == "upstream" {
        return Verdict::Throttled { after: Some(MISSING), scope: None, fault };
    }
    Verdict::Rejected(fault)
}

/// Plain HTTP has no way to look whether a request took effect, and nothing is repeated blindly.
fn cannot_look(envelope: &Envelope) -> Fault {
    let (method, upstream) = (envelope.request.method, &envelope.upstream);
    let message =
        format!("{method} to {upstream} was not sent again: whether it took effect cannot be looked up.");
    Fault::new(FaultClass::Transient, message)
}

impl Upstream for HttpUpstreams {
    fn check(&self, payload: &[u8], cost: &BTreeMap<String, u64>) -> Result<Checked, Refusal> {
        let (envelope, upstream) = self.read(payload)?;
        let charges = upstream.dialect.charges(&envelope.request, cost)?;
        Ok(Checked {
            opens: upstream.dialect.opens(&envelope.request, &charges),
            charges,
            on_unknown: upstream.dialect.on_unknown(&envelope.request),
            can_reconcile: false,
        })
    }

    fn carry<'a>(&'a self, call: Call<'a>) -> Carrying<'a> {
        Box::pin(self.attempt(call))
    }
}

impl fmt::Debug for HttpUpstreams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}
