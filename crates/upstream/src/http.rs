//! The plain HTTP dialect: requests to configured upstreams, by name, within limits that are set by hand. Each
//! upstream also has a gate of its own name, which a 429 closes. It learns nothing else from an answer.

pub mod answer;
pub mod config;
pub mod download;
pub mod result;
pub mod send;
pub mod target;
pub mod withdraw;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tidegate_core::bucket::usual_margin;
use tidegate_core::fact::Shape;
use tidegate_core::{Charge, Fault, FaultClass, OnUnknown, Verdict};

pub use config::{LimitConfig, LimitKind, TokenHeader, UpstreamConfig};

use crate::port::{Call, Carrying, Checked, Outcome, Refusal, Upstream};
use crate::request::Envelope;
use send::Sender;

/// The configured upstreams.
pub struct HttpUpstreams {
    by_name: BTreeMap<String, Configured>,
}

/// One upstream with all that a call needs.
struct Configured {
    gate: Arc<str>,
    limits: Vec<Limit>,
    sender: Sender,
}

/// One limit: the name callers use, the name the model uses, and what it is.
struct Limit {
    short: String,
    name: Arc<str>,
    shape: Shape,
}

impl HttpUpstreams {
    /// Takes the configuration, checked; opens no connection.
    ///
    /// # Errors
    /// Names the first upstream and field that cannot be used.
    pub fn new(configs: Vec<UpstreamConfig>) -> Result<Self, Refusal> {
        let mut by_name = BTreeMap::new();
        for config in configs {
            config.validate()?;
            let configured = Configured {
                gate: Arc::from(config.name.as_str()),
                limits: config.limits.iter().map(|limit| Limit::of(&config.name, limit)).collect(),
                sender: Sender::new(&config)?,
            };
            if by_name.insert(config.name.clone(), configured).is_some() {
                return Err(config.refuse("name", "Two upstreams have this name."));
            }
        }
        Ok(Self { by_name })
    }

    /// What must be set in the model before anything is carried: for each upstream its gate, then its limits.
    #[must_use]
    pub fn limits(&self) -> Vec<(Arc<str>, Shape)> {
        let of = |upstream: &Configured| {
            let gate = (Arc::clone(&upstream.gate), Shape::Gate);
            let limits = upstream.limits.iter().map(|limit| (Arc::clone(&limit.name), limit.shape));
            std::iter::once(gate).chain(limits).collect::<Vec<_>>()
        };
        self.by_name.values().flat_map(of).collect()
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
            Ok((envelope, _)) if call.look_first && envelope.request.on_unknown() == OnUnknown::Ask => {
                Outcome::unanswered(Verdict::Unknown(cannot_look(&envelope)))
            }
            Ok((envelope, upstream)) => upstream.sender.send(envelope.request, call).await,
            // It was accepted once; the configuration has changed since.
            Err(refusal) => Outcome::unanswered(no_longer_fits(&refusal)),
        }
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
        Ok(Checked {
            charges: upstream.charges(cost)?,
            on_unknown: envelope.request.on_unknown(),
            can_reconcile: false,
        })
    }

    fn carry<'a>(&'a self, call: Call<'a>) -> Carrying<'a> {
        Box::pin(self.attempt(call))
    }
}

impl Configured {
    /// The gate, then every limit: what the caller said it costs, else one.
    fn charges(&self, cost: &BTreeMap<String, u64>) -> Result<Vec<Charge>, Refusal> {
        if let Some(stranger) = cost.keys().find(|name| self.limits.iter().all(|limit| limit.short != **name))
        {
            let stranger: String = stranger.chars().take(config::NAME_LEN_MAX).collect();
            let message = format!("The upstream {} has no limit called {stranger:?}.", self.gate);
            return Err(Refusal::new(format!("cost.{stranger}"), message));
        }
        let gate = Charge::tokens(Arc::clone(&self.gate), 1);
        let limits = self.limits.iter().map(|limit| {
            Charge::tokens(Arc::clone(&limit.name), cost.get(&limit.short).copied().unwrap_or(1))
        });
        Ok(std::iter::once(gate).chain(limits).collect())
    }
}

impl Limit {
    fn of(upstream: &str, config: &LimitConfig) -> Self {
        let shape = match config.kind {
            LimitKind::Drip { .. } => {
                let (capacity, refill_per_s) = config.kind.micro_tokens();
                Shape::Drip { capacity, refill_per_s, margin: usual_margin(capacity, refill_per_s) }
            }
            LimitKind::AtOnce { at_once } => Shape::Cap { at_once },
        };
        Self { short: config.name.clone(), name: format!("{upstream}/{}", config.name).into(), shape }
    }
}

impl fmt::Debug for HttpUpstreams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}
