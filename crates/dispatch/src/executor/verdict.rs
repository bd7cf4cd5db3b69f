//! What a failure of a provider means for the generation, and which breaker it counts against: the
//! key, the account, the provider, or none.

use tidegate_core::{Blame, Fault, Verdict};
use tidegate_images::{FaultCause, Heat, ProviderFault};
use tidegate_upstream::Outcome;

use crate::provider_set::PickedProvider;

/// The breaker that a failure counts against.
fn blame(picked: PickedProvider<'_>, fault: &ProviderFault) -> Blame {
    let limits = &picked.provider.limits;
    match fault.cause.heat() {
        Heat::Nobody => Blame::NoOne,
        Heat::Key => Blame::Limit(limits.of_key(picked.key)),
        Heat::Account => Blame::Limit(limits.of_account(picked.key)),
        Heat::Provider => Blame::Limit(limits.breaker.clone()),
    }
}

/// The outcome of a submit that failed. Wrong input ends the generation; a throttled key is waited
/// for; anything else that created no job strikes the alternative out, and the next one is used.
pub(crate) fn failed_submit(picked: PickedProvider<'_>, fault: &ProviderFault) -> Outcome {
    let blame = blame(picked, fault);
    let reason = Fault::from(fault);
    let verdict = match (fault.cause, &blame) {
        (cause, _) if cause.ends_generation() => Verdict::Rejected(reason),
        (FaultCause::Throttled { after, .. }, Blame::Limit(limit)) => {
            Verdict::Throttled { after, scope: Some(limit.clone()), fault: reason }
        }
        (cause, _) if cause.may_be_billed() => Verdict::Unknown(reason),
        _ => Verdict::Retry { after: None, fault: reason },
    };
    Outcome::unanswered(verdict).with_blame(blame)
}

/// The outcome of a job that failed after the provider had accepted it: the generation fails.
pub(crate) fn failed_job(picked: PickedProvider<'_>, fault: &ProviderFault) -> Outcome {
    let name = &picked.provider.config.name;
    let reason = Fault::from(fault);
    let reason = Fault { message: format!("{name}: {}", reason.message), ..reason };
    Outcome::unanswered(Verdict::Rejected(reason)).with_blame(blame(picked, fault))
}
