//! What a dialect adds to plain HTTP for one upstream: the limits it makes, what a request charges, a small change
//! before it is sent, what an answer means beyond its status. It neither sends nor repeats anything.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidegate_core::fact::Shape;
use tidegate_core::{Charge, Hint, OnUnknown, Verdict};

use super::answer::{Answer, Asked};
use crate::port::{Refusal, Spending};
use crate::request::{HttpRequest, Method};

/// A limit by its full name, and what it is at first.
pub type MadeLimit = (Arc<str>, Shape);

/// The dialect of one upstream.
pub trait Dialect: Send + Sync {
    /// The limits of the upstream, by their full names: its gate first, which has the upstream's own name.
    fn limits(&self) -> Vec<MadeLimit>;

    /// What must be granted before the request is sent. `cost` is what the caller says, by the short names of limits.
    ///
    /// # Errors
    /// Names the field that cannot be accepted.
    fn charges(&self, request: &HttpRequest, cost: &BTreeMap<String, u64>) -> Result<Vec<Charge>, Refusal>;

    /// Those of the charged limits that nobody can list in advance, such as one for each route and channel: they are made
    /// like this when there are none of these names.
    fn opens(&self, request: &HttpRequest, charges: &[Charge]) -> Vec<MadeLimit> {
        let _ = (request, charges);
        Vec::new()
    }

    /// What follows an unknown outcome of the request, when the caller does not say.
    fn on_unknown(&self, request: &HttpRequest) -> OnUnknown {
        request.on_unknown()
    }

    /// Whether the request changes nothing, so that it may be handed in anew by somebody who does not know what became of it.
    fn only_reads(&self, request: &HttpRequest) -> bool {
        matches!(request.method, Method::Get | Method::Head | Method::Options)
    }

    /// Makes a request ready to leave for the operation of this id, and says who reads the answer to it. With nobody,
    /// the status decides alone.
    fn ready<'a>(&'a self, request: &mut HttpRequest, operation: &str) -> Option<Box<dyn Reader + 'a>> {
        let _ = (request, operation);
        None
    }
}

/// What an answer means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meaning {
    /// For the operation.
    pub verdict: Verdict,
    /// For limits.
    pub hints: Vec<Hint>,
    /// For people who look later at what calls cost.
    pub spending: Vec<Spending>,
}

/// Who reads the answer to one request.
pub trait Reader: Send {
    /// What the answer means. By its status alone it would be `verdict`.
    fn read(self: Box<Self>, answer: &Answer, asked: &Asked<'_>, verdict: Verdict) -> Meaning;
}
